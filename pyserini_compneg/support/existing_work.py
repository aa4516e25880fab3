"""Existing results and unfinished work: whether they are refused, continued or replaced.

Work that can be continued leaves a record of what it makes, and from which inputs: :func:`continues` compares it with
the requested work.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, get_args

from pyserini_compneg.support.errors import OutputError

Existing = Literal["refuse", "resume", "overwrite", "resume or overwrite"]
"""How existing results and unfinished work are treated."""

START_ANEW = "start anew with --overwrite (existing='overwrite') and without --resume"
_RESUME, _OVERWRITE = "--resume (existing='resume')", "--overwrite (existing='overwrite')"

_logger = logging.getLogger(__name__)


def existing_option(*further: str) -> Any:
    """Makes the field of :class:`ExistingWork`. ``further`` are more ways to replace a result and resume work."""
    return field(default="refuse", metadata={"choices": (*get_args(Existing), *further)})


class ExistingWork:
    """Settings with a field ``existing``."""

    __slots__ = ()
    existing: str

    @property
    def may_overwrite(self) -> bool:
        """Whether an existing result may be replaced, and unfinished work discarded."""
        return self.existing not in ("refuse", "resume")

    @property
    def may_resume(self) -> bool:
        return self.existing not in ("refuse", "overwrite")


def read_record(file: Path) -> dict[str, Any] | None:
    """The JSON object that unfinished work has left in a file. It is empty if it is damaged; None without a file."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def continues(
    target: Path,
    before: Mapping[str, Any] | None,
    now: Mapping[str, Any],
    existing: str,
    *,
    restarts: bool = False,
    same: Collection[str] = (),
    complete: bool = False,
) -> bool:
    """Whether unfinished work on a result is continued; if not, it may be discarded.

    ``before`` is the plan of this work: what is made, and from which inputs; None if there is no such work, empty if
    nothing says what it is: such work is refused, unless it may be discarded. ``now`` is the plan of the requested
    work. If other settings than those in ``same`` differ, the work is refused, or with ``restarts`` discarded.
    ``complete`` says, for the message, that the work has been finished.
    """
    if before is None or existing == "overwrite":
        return False
    if existing == "refuse":
        raise unfinished_work(target)
    if not before and existing != "resume":
        return False
    names = changed_settings(before, json.loads(json.dumps(now)))
    changed = ", ".join(name for name in names if name not in same)
    if not before or (changed and not restarts):
        why = f"{changed} changed since" if before else "its record is missing or damaged"
        said = f"exists already, and {why}" if complete else f"the unfinished work cannot be continued, because {why}"
        raise OutputError(said, where=target, remedy=START_ANEW)
    if changed:
        _logger.warning("%s: %s changed since the work was begun, so it starts anew", target, changed)
    return not changed


def say_kept(target: Path) -> None:
    """Warns that work has ended before its result was complete, and can be continued."""
    _logger.warning("%s: the unfinished work is kept; add %s to continue it", target, _RESUME)


def exists_already(target: Path) -> OutputError:
    remedy = f"give {_OVERWRITE} to replace it, or another place"
    return OutputError("exists already", where=target, remedy=remedy)


def unfinished_work(target: Path) -> OutputError:
    remedy = f"give {_RESUME} to continue it, or {_OVERWRITE} to discard it"
    return OutputError("there is unfinished work", where=target, remedy=remedy)


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of the settings that differ between unfinished work and the requested work."""
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]
