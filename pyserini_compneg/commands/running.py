"""How every command runs: errors in one line, exit codes, interruptions and closed pipes."""

from __future__ import annotations

import argparse
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial

from pyserini_compneg.errors import CompNegError
from pyserini_compneg.files import atomic_writer, reason_of
from pyserini_compneg.terminal import printable_lines

DONE, FAILED, INTERRUPTED, TERMINATED = 0, 1, 130, 143


def run_main(main: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None = None) -> int:
    """Runs a command and turns whatever ends it into an exit code.

    Args:
        main: The command itself: it parses its arguments and does the work; ``None`` counts as 0.
        argv: The arguments, by default those of the process.

    Returns:
        0 when done, or when the reader of our output went away; 1 after an error, which is printed in one line; 2 for
        wrong usage; 130 when interrupted; 143 when terminated.
    """
    _prepare_streams()
    _exit_on_sigterm()
    code = _ended(main, argv)
    try:
        sys.stdout.flush()
    except OSError:  # the error was reported above
        _discard_output()
    return code


def command(
    make_parser: Callable[[], argparse.ArgumentParser],
    work: Callable[[argparse.Namespace, argparse.ArgumentParser], None],
) -> Callable[..., int]:
    """The ``main(argv=None)`` of a command.

    Args:
        make_parser: Makes the command's parser.
        work: Does what the arguments say. Beside those of the parser, ``arguments`` has all of them as a list. The
            parser is for errors of usage.
    """

    def main(argv: Sequence[str] | None) -> None:
        arguments = list(sys.argv[1:] if argv is None else argv)
        parser = make_parser()
        work(parser.parse_args(arguments, argparse.Namespace(arguments=arguments)), parser)

    return partial(run_main, main)


def _ended(main: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None) -> int:
    """The exit code of whatever ended the command."""
    try:
        _check_text(sys.argv[1:] if argv is None else argv)
        code = main(argv)
        with atomic_writer(None):  # flushes what was printed
            pass
        return code or DONE
    except SystemExit as stop:  # argparse: --help, --version and wrong usage
        if stop.code == TERMINATED:
            return _say("terminated", TERMINATED)
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or DONE
        return _say(str(stop.code), FAILED)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _discard_output()
        return DONE
    except CompNegError as error:
        return _say(f"error: {error}", FAILED)
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        return _say(f"error: {path}{reason_of(error)}", FAILED)


def _check_text(argv: Sequence[str]) -> None:
    for argument in argv:
        if argument != (text := argument.encode(errors="replace").decode()):
            raise CompNegError(f"the argument {text!r} is no UTF-8 text")


def _exit_on_sigterm() -> None:
    """Turns SIGTERM into an exception, so that unfinished files are removed; does nothing outside the main thread."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


def _say(message: str, code: int) -> int:
    print(printable_lines(message), file=sys.stderr)
    return code


def _prepare_streams() -> None:
    """Sets UTF-8 whatever the locale, and prints the package's warnings as ``warning: ...`` on standard error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process closed it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    handler = logging.StreamHandler()
    handler.setFormatter(_LowerCaseLevel())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("pyserini_compneg").setLevel(logging.INFO)


def _discard_output() -> None:
    """Drops what is still buffered, because the interpreter's own flush at exit would report the error again."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


class _LowerCaseLevel(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(f"{record.levelname.lower()}: {record.getMessage()}")
