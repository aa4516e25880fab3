"""Acts at a step of a work: just before it opens, renames or removes something in a folder, or calls Java."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
OWN_STEP = "a step of a test"


class _Watch:
    """The folder that is watched now, and what is done at the next step in it; hooks cannot be removed."""

    folder: str | None = None
    thread = 0
    act: Callable[[str, str], None]


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _Watch.folder is None or threading.get_ident() != _Watch.thread:
        return
    if event == "open":
        is_step = bool(arguments[2] & WRITING) and _is_inside(arguments[0])
    else:
        is_step = event == OWN_STEP or (event in CHANGES and _is_inside(arguments[0]))
    if is_step:
        folder, _Watch.folder = _Watch.folder, None  # what is done there has no steps
        try:
            _Watch.act(event, os.fsdecode(arguments[0]) if arguments else "")
        finally:
            _Watch.folder = folder


def _is_inside(path: object) -> bool:
    """A path that is not absolute is one of ``shutil.rmtree``, relative to the folder that is being removed."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path)
    return not os.path.isabs(text) or text.startswith(f"{_Watch.folder}/")


sys.addaudithook(_hear)


@contextmanager
def at_step(
    folder: Path, number: int | Container[int], act: Callable[[str], object]
) -> Iterator[list[tuple[str, str]]]:
    """Calls ``act`` before step ``number`` in a folder, or several; yields the steps so far, with their paths."""
    numbers = (number,) if isinstance(number, int) else number
    seen: list[tuple[str, str]] = []

    def count(event: str, path: str) -> None:
        seen.append((event, path))
        if len(seen) in numbers:
            act(event)

    _Watch.act, _Watch.thread, _Watch.folder = count, threading.get_ident(), str(folder)
    try:
        yield seen
    finally:
        _Watch.folder = None


def as_steps(patch: Any, owner: type, *names: str) -> None:
    """Makes a step before and one after each call of some methods, which change the folder unseen by Python."""

    def stepping(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            sys.audit(OWN_STEP)
            result = method(*arguments, **options)
            sys.audit(OWN_STEP)
            return result

        return call

    for name in names:
        patch.setattr(owner, name, stepping(getattr(owner, name)))


def copied(folder: Path, to: Path) -> None:
    """Copies what a process that is killed now leaves. Java may remove files meanwhile that no commit names."""

    def copy(source: str, target: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)

    shutil.copytree(folder, to, copy_function=copy)
