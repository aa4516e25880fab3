"""Works: functions and commands that are begun again and again, and killed, and how their results are looked at."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps import at_step, copied

from pyserini_compneg.support.staging import former_folder


@dataclass(frozen=True)
class Work:
    """What makes a result in a folder.

    Attributes:
        start: Begins it, given its input, the folder and further options: a function runs it, a command is a process.
        result: The name in the folder that becomes visible.
        state: What a result holds. Fails if it is not whole. None if parts are still to come.
        prepare: Puts into a folder what the work begins with.
        beside: Further names that stay in the folder.
    """

    start: Callable[..., Any]
    result: str
    state: Callable[[Path], object]
    prepare: Callable[[Path], object] = lambda folder: None
    beside: tuple[str, ...] = ()

    def look(self, folder: Path) -> object:
        """The state of the result; None if there is none."""
        result = folder / self.result
        if not result.exists():  # killed between two renames, which the next work repairs
            result = former_folder(result)
        return self.state(result) if result.exists() else None

    def left(self, folder: Path) -> set[str]:
        """What is in the folder, or hidden in the result, and belongs to no finished work."""
        hidden = {path.name for path in (folder / self.result).rglob(".*")}
        return ({path.name for path in folder.iterdir()} | hidden) - {self.result, *self.beside}


@contextmanager
def killed_at_steps(folder: Path, to: Path, every: int = 1) -> Iterator[list[Path]]:
    """Copies the folder at every so many steps of a work, as a process that is killed there would leave it."""
    killed: list[Path] = []

    def kill(_: str) -> None:
        killed.append(to / f"killed{len(killed)}")
        copied(folder, killed[-1])

    with at_step(folder, range(1, 10_000, every), kill):
        yield killed
