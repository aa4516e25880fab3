"""Every error that this package raises on purpose.

The class of an error says what a caller can do about it. Each class is also the built-in exception that a caller would
expect, so ``except ValueError`` works. An error consists of fields; its text is put together when it is shown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

TORCH = "torch==2.13.0"
"""The version of torch in constraints.txt, for which indexes of packages offer a small build without CUDA."""

_LONGEST = 200
"""The most characters of a library's message in a message of this package."""

Recast = TypeVar("Recast", bound="CompNegError")

_WITH_TORCH = ("torch", "sentence-transformers", "mteb", "pyserini")


class CompNegError(Exception):
    """Base of all errors. The command line prints one line for an error and exits with ``exit_code``.

    Args:
        what: The fault, with the value and the limit.
        where: The file with its line, or the argument.
        remedy: The way to correct the fault.
        below: Further lines for people: a text with a caret under its fault, or the place of further help.

    Attributes:
        exit_code: 2 if a flag, a name or an input is wrong, so that the same command fails again; 1 if the disk, the
            network or Java fails.
    """

    exit_code = 2

    def __init__(self, what: str = "", *, where: object = "", remedy: str = "", below: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.remedy, self.below = what, where, remedy, below

    def __str__(self) -> str:
        return f"{self.message}\n{self.below}" if self.below else self.message

    @property
    def message(self) -> str:
        """``where: what; remedy``, in one line unless a value contains line ends."""
        placed = f"{self.where}: {self.what}" if self.where else self.what
        return f"{placed}; {self.remedy}" if self.remedy else placed

    @property
    def where(self) -> str:
        return ": ".join(self._places)

    @where.setter
    def where(self, place: object) -> None:
        self._places = [str(place)] if str(place) else []

    def at(self, place: object) -> Self:
        """Returns the error with ``place``, unless it is empty, before its other places."""
        self._places = [one for one in (str(place), *self._places) if one]
        return self

    def without(self, *places: object) -> Self:
        """Returns the error without some places, for a caller that names them in another way."""
        self._places = [place for place in self._places if place not in map(str, places)]
        return self

    def recast(self, kind: type[Recast], remedy: str | None = None) -> Recast:
        """Returns an error of another class with the same fields, but for another remedy if one is given."""
        error = kind(self.what, remedy=self.remedy if remedy is None else remedy, below=self.below)
        error._places = [*self._places]
        return error


class ArgumentError(CompNegError, TypeError, ValueError):
    """An argument has a wrong type or is out of its range."""


class QueryError(CompNegError, ValueError):
    """A query cannot be read or composed, for example because an expression has no positive part."""


class InputError(CompNegError, ValueError):
    """A file or a setting cannot be read: documents, topics, runs, judgements, a protocol, a training."""


class EncodingError(CompNegError, ValueError):
    """A text or a model cannot be encoded with, or a weight of a vector is not a finite number."""


class IndexFormatError(CompNegError, ValueError):
    """A folder is not an impact index, or an index does not fit the encoder or the operation."""


class IndexReadError(IndexFormatError):
    """An index or a shard cannot be read, contradicts itself, or no longer answers."""

    exit_code = 1


class SearchCancelled(CompNegError, RuntimeError):
    """A search was ended early, because its result is no longer needed."""

    exit_code = 1


class SearchTimeout(SearchCancelled, TimeoutError):
    """A search was ended early, at its time limit."""


class ClusterError(CompNegError, RuntimeError):
    """A cluster cannot be reached, has other versions on its nodes, or gave up work."""

    exit_code = 1


class OutputError(CompNegError, OSError):
    """A result cannot be written."""

    exit_code = 1


class BusyError(OutputError):
    """Another process, or another request of a server, is writing the same result."""


class DownloadError(CompNegError, OSError):
    """A file cannot be downloaded, or has unexpected content."""

    exit_code = 1


class JvmError(CompNegError, RuntimeError):
    """There is no usable Java, or a running Java machine lacks the classes of this package."""

    exit_code = 1


@contextmanager
def in_one_line(
    error: type[CompNegError],
    what: str,
    *,
    where: object = "",
    remedy: str = "",
    passing: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Turns an error of a library into an error of this package, with :func:`first_line` of the library's message.

    Errors of this package and errors in ``passing`` are raised unchanged.
    """
    try:
        yield
    except CompNegError:
        raise
    except passing:
        raise
    except Exception as cause:
        raise error(f"{what}: {first_line(cause)}", where=where, remedy=remedy) from None


def first_line(cause: Exception) -> str:
    """The first line of a library's message, with the second if the first ends with a colon.

    A longer line ends with its last sentence that fits in ``_LONGEST`` characters.
    """
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()] or [type(cause).__name__]
    said = " ".join(lines[: 1 + lines[0].endswith(":")])
    if isinstance(cause, KeyError):  # whose message is the key alone
        said = f"no {said}"
    return said if len(said) <= _LONGEST else said[:_LONGEST].rpartition(". ")[0] or said[:_LONGEST]


def install_hint(extra: str) -> str:
    """The command that installs the missing packages of an extra, or all packages of the extra if none is missing.

    The command names the packages, because ``pyserini_compneg[EXTRA]`` needs an index that offers this package. It
    names the version of torch that is tested: pip would take the newest one, with gigabytes of CUDA.
    """
    from importlib import metadata  # takes long to import, and most commands install nothing

    try:
        needed = list(_requirements(extra))
    except metadata.PackageNotFoundError:  # a checkout in PYTHONPATH
        needed = []
    if not needed:  # or one that was installed before it had this extra
        return f"pip install -c constraints.txt -e '.[{extra}]' in the checkout"
    named = list(filter(_is_missing, needed)) or needed
    if _is_missing(TORCH) and any(_name(requirement) in _WITH_TORCH for requirement in named):
        named = [TORCH, *(requirement for requirement in named if _name(requirement) != "torch")]
    return shlex.join(["pip", "install", *named])


def _requirements(extra: str) -> Iterator[str]:
    """The requirements of an extra, including the extras of this package that it names."""
    from importlib import metadata

    for line in metadata.requires("pyserini_compneg") or ():
        requirement, *own = re.split(r"[][;]", line)
        if not line.endswith(f'; extra == "{extra}"'):
            continue
        if requirement == "pyserini_compneg":
            for name in own[0].split(","):
                yield from _requirements(name)
        else:
            yield requirement


def _is_missing(requirement: str) -> bool:
    from importlib import metadata

    try:
        metadata.version(_name(requirement))
    except metadata.PackageNotFoundError:
        return True
    return False


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~ ]", requirement)[0]
