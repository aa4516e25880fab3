"""Runs commands: errors in one line, exit codes, interruptions and closed pipes.

docs/reference/commands.md lists the exit codes: 0 done, also if the reader of the output has closed it; 1 failed
(disk, network, Java, a closed standard output); 2 wrong usage or input; 130 interrupted; 143 terminated; 129
terminated by SIGHUP.
"""

from __future__ import annotations

import argparse
import errno
import io
import itertools
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from pyserini_compneg import end_quietly
from pyserini_compneg.support.errors import ArgumentError, CompNegError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.staging import of_standard_output
from pyserini_compneg.support.surrogates import without_halves
from pyserini_compneg.support.terminal import printable_line

DONE, FAILED, INTERRUPTED = 0, 1, 130
_TERMINATED = {143: "terminated", 129: "terminated: the terminal was closed"}


def run_main(main: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code. An error prints one line. ``main`` may return None for 0."""
    given = list(sys.argv[1:] if argv is None else argv)
    _lines.json = "--log-format=json" in given or ("--log-format", "json") in itertools.pairwise(given)
    _prepare_streams()
    _take_signals()
    code = _ended(main, argv)
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard_output()
        if code == DONE and not isinstance(error, BrokenPipeError):
            return _say(of_standard_output(error), FAILED, "error")
    return code


def command(
    make_parser: Callable[[], argparse.ArgumentParser],
    work: Callable[[argparse.Namespace, argparse.ArgumentParser], None],
) -> Callable[..., int]:
    """The ``main(argv=None)`` of a command. ``work`` also gets all arguments, as ``arguments``."""

    def main(argv: Sequence[str] | None) -> None:
        arguments = list(sys.argv[1:] if argv is None else argv)
        parser = make_parser()
        work(parser.parse_args(arguments, argparse.Namespace(arguments=arguments)), parser)

    return partial(run_main, main)


def say(message: str) -> None:
    """Prints the outcome of a command on standard error, in the form of ``--log-format``."""
    _say(message, DONE)


def _ended(main: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None) -> int:
    """Runs ``main`` and returns the exit code for any outcome."""
    try:
        _check_text(sys.argv[1:] if argv is None else argv)
        return main(argv) or DONE
    except SystemExit as stop:  # argparse: --help, --version and wrong usage
        if stop.code in _TERMINATED:
            return _say(_TERMINATED[stop.code], stop.code)
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or DONE
        return _say(str(stop.code), FAILED)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _discard_output()
        return DONE
    except CompNegError as error:
        return _say(error.message, error.exit_code, "error", error.below)
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        code = ArgumentError.exit_code if error.errno == errno.ENAMETOOLONG else FAILED
        return _say(f"{path}{reason_of(error)}", code, "error")


def _check_text(argv: Sequence[str]) -> None:
    """Refuses arguments that are not text, and empty arguments, which would name the current folder."""
    for flag, argument in itertools.pairwise(["", *argv]):
        if argument != (text := without_halves(argument)):
            raise ArgumentError(f"the argument {text!r} is not UTF-8 text")
        if not argument or (argument.startswith("--") and argument.endswith("=")):
            named = argument.rstrip("=") or (flag if flag.startswith("-") else "")
            raise ArgumentError(f"argument {named}: must not be empty" if named else "an argument must not be empty")


def _take_signals() -> None:
    """Turns signals into exceptions, so that unfinished files are removed. Only the main thread can do this."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
            signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
        if signal.getsignal(signal.SIGINT) is end_quietly:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _say(message: str, code: int, level: str = "", below: str = "") -> int:
    record = logging.makeLogRecord({"levelname": level, "msg": message, "below": below})
    with suppress(OSError):  # the terminal may be closed
        print(_lines.format(record), file=sys.stderr)
    return code


def _prepare_streams() -> None:
    """Sets UTF-8 regardless of the locale, and prints the package's warnings as ``warning: ...`` on standard error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process closed it
            writable = os.O_WRONLY if name == "stderr" else os.O_RDONLY  # printing a result must then fail
            setattr(sys, name, open(os.open(os.devnull, writable), "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    handler = logging.StreamHandler()
    handler.setFormatter(_lines)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("pyserini_compneg").setLevel(logging.INFO)


def _discard_output() -> None:
    """Drops buffered output, because the interpreter's flush at exit would report the error again."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


class _Lines(logging.Formatter):
    """``level: message`` in one line, or one JSON object, with the numbers of the progress if the record has any."""

    json = False

    def format(self, record: logging.LogRecord) -> str:
        level, message = record.levelname.lower(), printable_line(record.getMessage())
        below = self.formatException(record.exc_info) if record.exc_info else getattr(record, "below", "")
        if below:
            message = "\n".join((message, *map(printable_line, below.split("\n"))))
        if not self.json:
            return f"{level}: {message}" if level else message
        now = datetime.now(UTC).isoformat(timespec="seconds")
        values = {"time": now, "level": level or "info", "message": message, **getattr(record, "progress", {})}
        return json.dumps(values, ensure_ascii=False)


_lines = _Lines()
