"""Every error that this package raises on purpose.

Each class is also the built-in exception that a caller would expect, so ``except ValueError`` keeps working.
A message is one line: what is wrong, the value, the limit, and the remedy; with path and line for a file. A remedy that
is a flag of a command is named as its keyword, ``overwrite=True``; the command line says ``--overwrite``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Self


class CompNegError(Exception):
    """Root of the tree. The command line prints one line for it and exits with ``exit_code``.

    Attributes:
        exit_code: 2 where a flag, a name or an input is wrong, so that the same command fails again; 1 where the disk,
            the network or Java fails.
        below: Further lines, under that one: a text with a caret under its fault, or where there is help. They are a
            part of ``str(error)``, and not of ``message``.
    """

    exit_code = 2
    below = ""

    def __str__(self) -> str:
        """The message, and what is below it."""
        return f"{self.message}\n{self.below}" if self.below else self.message

    @property
    def message(self) -> str:
        """What is wrong, in one line as long as no value in it has line ends."""
        return super().__str__()

    def with_lines(self, below: str) -> Self:
        """The error itself, with further lines."""
        self.below = below
        return self

    def prefixed(self, place: str) -> Self:
        """The same error, whose message begins with a place."""
        return type(self)(f"{place}{self.message}").with_lines(self.below)


class ArgumentError(CompNegError, TypeError, ValueError):
    """An argument of a wrong type, or out of its range."""


class QuerySyntaxError(CompNegError, ValueError):
    """An expression that cannot be parsed; the message ends with the text and a caret under the fault."""


class DecompositionError(CompNegError, ValueError):
    """A text that has no positive part, or a language model that cannot be asked."""


class CompositionError(CompNegError, ValueError):
    """An expression that cannot become a query, for example one without a positive part."""


class EncodingError(CompNegError, ValueError):
    """A text that cannot be encoded, or a vector with a weight that is no finite number."""


class CollectionError(CompNegError, ValueError):
    """A document or a topic file that cannot be read: missing, empty, a broken line, an id given twice."""


class IndexFormatError(CompNegError, ValueError):
    """A folder that is no impact index, or an index that does not fit the encoder or the operation."""


class IndexReadError(IndexFormatError):
    """An index whose files cannot be read, or contradict each other: rebuild it."""

    exit_code = 1


class ShardError(IndexReadError):
    """A shard that cannot be opened, or does not answer any more."""


class RunFormatError(CompNegError, ValueError):
    """A run or a qrels file that cannot be read."""


class TrainingError(CompNegError, ValueError):
    """A configuration that cannot be trained, or a training that cannot go on."""


class MeasureError(CompNegError, ValueError):
    """An unknown measure, or one that is no mean over queries."""


class ProtocolError(CompNegError, ValueError):
    """A wrong description of an experiment, or an experiment that does not fit the dataset."""


class SearchCancelled(CompNegError, RuntimeError):
    """A search that was ended before it was done, because nobody waits for it any more."""

    exit_code = 1


class SearchTimeout(SearchCancelled, TimeoutError):
    """A search that was ended because its time was over."""


class ServerError(CompNegError, ValueError):
    """A configuration of the server that is wrong, or an address that it cannot have."""


class ClusterError(CompNegError, RuntimeError):
    """A cluster that cannot be reached, has other versions on its nodes, or gave up work."""

    exit_code = 1


class OutputError(CompNegError, OSError):
    """A result that cannot be written."""

    exit_code = 1


class DownloadError(CompNegError, OSError):
    """A file that cannot be downloaded, or whose content is not the expected one."""

    exit_code = 1


class JvmError(CompNegError, RuntimeError):
    """No usable Java, or a running Java machine without the classes that the package needs."""

    exit_code = 1


@contextmanager
def in_one_line(
    error: type[CompNegError], before: str, after: str = "", passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Turns what a library raises, of whatever class, into an error of this package.

    Args:
        error: Its class.
        before: What is put before the first line of the library's message.
        after: The remedy.
        passing: Errors that stay as they are, as those of this package do.
    """
    try:
        yield
    except CompNegError:
        raise
    except passing:
        raise
    except Exception as cause:
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise error(f"{before}: {lines[0][:200]}{after}") from None


def install_hint(extra: str) -> str:
    """The command that installs what this environment lacks of an extra; all of the extra if it lacks nothing.

    It names the packages themselves, because ``pyserini_compneg[EXTRA]`` works only where an index offers this package.
    """
    try:
        needed = list(_requirements(extra))
    except metadata.PackageNotFoundError:  # a checkout in PYTHONPATH
        return f"pip install -e '.[{extra}]' in the checkout"
    return shlex.join(["pip", "install", *(list(filter(_is_missing, needed)) or needed)])


def _requirements(extra: str) -> Iterator[str]:
    """The requirements of an extra, and of those of our extras that it names."""
    for line in metadata.requires("pyserini_compneg") or ():
        requirement, *own = re.split(r"[][;]", line)
        if not line.endswith(f'; extra == "{extra.replace("_", "-")}"'):
            continue
        if requirement == "pyserini_compneg":
            for name in own[0].split(","):
                yield from _requirements(name)
        else:
            yield requirement


def _is_missing(requirement: str) -> bool:
    try:
        metadata.version(re.split(r"[<>=!~ ]", requirement)[0])
    except metadata.PackageNotFoundError:
        return True
    return False
