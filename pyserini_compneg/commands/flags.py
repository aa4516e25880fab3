"""What the parsers of several commands share: their form, and flags that mean the same in each."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from pyserini_compneg.commands.versions import ShowVersions
from pyserini_compneg.encode.hybrid import MODEL_WEIGHT
from pyserini_compneg.encode.models import Head, ModelOptions
from pyserini_compneg.reading.decomposition import READINGS
from pyserini_compneg.support.arguments import finite_number, whole_number
from pyserini_compneg.support.errors import ArgumentError, OutputError
from pyserini_compneg.support.options import add_flags, given_options
from pyserini_compneg.support.progress import Runner, in_turn
from pyserini_compneg.support.staging import of_standard_output
from pyserini_compneg.support.terminal import shown, suggestion

Flags: TypeAlias = argparse._ActionsContainer
"""A parser, or a group of its flags."""

MODEL = "mini, a folder, or a name on the Hugging Face hub"
_FLAGS_ELSEWHERE = {
    ("index", "--input"): "the documents are --collection",
    ("search", "--q"): "the query is --query",
    ("search", "--operator"): "the operators are --union, --intersection and --difference",
    ("search", "--docid"): "the command explain has it",
    ("search", "--k1"): "k1 and b belong to index, which keeps them",
    ("search", "--b"): "k1 and b belong to index, which keeps them",
}
"""What to say of flags that people bring from other tools, by the command."""
_STARTED = re.compile(r"python -m pyserini_compneg[. ]")
_MODEL_OPTIONS = ("backend", "precision", "device", "max_length", "head", "top_terms", "threshold")


def command_parser(name: str, usage: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """The parser of a command.

    Args:
        name: The command, for example ``search``.
        usage: The arguments that it needs; all others are ``[options]``.
        description: What it does.
        epilog: Remarks, and at the end examples.
    """
    program = program_name(name)
    parser = _Parser(
        prog=program,
        usage=f"%(prog)s {f'{usage} [options]'.lstrip()}",
        description=textwrap.fill(description, 100),
        epilog=_STARTED.sub("compneg ", epilog) if program.startswith("compneg") else epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=ShowVersions, nargs=0, help="show what is installed and exit")
    return parser


def program_name(command: str) -> str:
    """How a command was started: ``compneg search``, or ``python -m pyserini_compneg.search``."""
    program = Path(sys.argv[0])
    if program.stem == "compneg":
        return f"compneg {command}"
    return f"python -m pyserini_compneg{' ' if program.parent.name == 'pyserini_compneg' else '.'}{command}"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and one more that names the help.

    Flags are never abbreviated: an abbreviation of today would be another flag, or none, in the next release.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses unknown flags before anything else: one that is written wrongly may be one that is required."""
        for argument in takewhile(lambda one: one != "--", args):
            flag = argument.partition("=")[0]
            if f"-{flag}" in self._option_string_actions and flag not in self._option_string_actions:
                self.error(f"there is no {shown(flag)}; flags have two dashes: -{flag}")
            if flag.startswith("--") and " " not in flag and flag not in self._option_string_actions:
                known = _FLAGS_ELSEWHERE.get((self.prog.replace(".", " ").split()[-1], flag))
                close = f"; {known}" if known else suggestion(flag, self._option_string_actions)
                self.error(f"there is no {flag}{close}")
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints a help text; the method of argparse is silent about a disk that is full."""
        try:
            print(message, end="", file=file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(of_standard_output(error)) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is no choice, and names the choice that is most like it."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += suggestion(str(value), map(str, action.choices or ()))
            raise

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(message, below=f"see {self.prog} -h")


def advanced(parser: argparse.ArgumentParser) -> Flags:
    """The group of the flags that few people need; the help shows it last."""
    return parser.add_argument_group("advanced options")


def whole(text: str) -> int:
    """A whole number, as the ``type`` of an argument."""
    if (value := whole_number(text)) is None:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text}")
    return value


def count(text: str) -> int:
    """A whole number from 1, as the ``type`` of an argument."""
    if (value := whole_number(text)) is None or value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text}")
    return value


def number(text: str) -> float:
    """A finite number, as the ``type`` of an argument."""
    if (value := finite_number(text)) is None:
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text}")
    return value


def positive(text: str) -> float:
    """A finite number above 0, as the ``type`` of an argument."""
    if (value := finite_number(text)) is None or value <= 0:
        raise argparse.ArgumentTypeError(f"must be a finite number above 0, got {text}")
    return value


def add_index(flags: Flags, required: bool = True) -> None:
    """Adds ``--index``, an index that is read."""
    text = "index folder, of this package or of Anserini, or the name of a prebuilt index"
    flags.add_argument("--index", required=required, metavar="DIR", help=text)


def add_collection(flags: Flags, required: bool = True) -> None:
    """Adds ``--collection``."""
    text = "file of JSON Lines, of a JSON list, or of CSV or TSV with a header; or folder of such files"
    flags.add_argument("--collection", required=required, metavar="PATH", help=text)
    text = "how to read it: jsonl, json, csv or tsv (default: by its name, and by how it begins)"
    flags.add_argument("--format", choices=("jsonl", "json", "csv", "tsv"), dest="collection_format", help=text)


def add_threads(flags: Flags, default: int, what: str = "queries searched at once") -> None:
    """Adds ``--threads`` of a search."""
    text = f"{what} (default {default})"
    flags.add_argument("--threads", type=count, default=default, metavar="N", help=text)


def add_ray(flags: Flags, what: str) -> None:
    """Adds ``--ray``."""
    text = f"{what} on a Ray cluster: its address, such as head:6379, auto for that of this machine, or local to start "
    flags.add_argument("--ray", metavar="ADDRESS", help=f"{text}one here (docs/cluster.md)")


def add_replicas(flags: Flags) -> None:
    """Adds ``--replicas``."""
    text = "processes that search each shard on a cluster (default 1)"
    flags.add_argument("--replicas", type=count, default=1, metavar="N", help=text)


def check_replicas(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses ``--replicas`` without a cluster."""
    if args.replicas > 1 and args.ray is None:
        parser.error("--replicas needs --ray, the cluster whose processes hold the shards")


@contextmanager
def runner(address: str | None, cpus: int = 1, gpus: int = 0) -> Iterator[Runner]:
    """Who does the parts of some work: the cluster of ``--ray``, or without one this process.

    Args:
        address: What ``--ray`` was given.
        cpus: The processors that a part uses.
        gpus: The graphics processors.
    """
    if address is None:
        yield in_turn
        return
    from pyserini_compneg.cluster import RayCluster, RayRunner

    with RayCluster(address) as cluster:
        yield RayRunner(cluster, cpus, gpus)


def add_output(flags: Flags, what: str) -> None:
    """Adds ``--output``, a file."""
    flags.add_argument("--output", metavar="FILE", help=f"{what} (default standard output)")


def add_read(flags: Flags, text: str) -> None:
    """Adds ``--read``, and its two older names, which no help shows. Where none is given, ``read`` is None."""
    choice = flags.add_mutually_exclusive_group()
    choice.add_argument("--read", type=_reading, metavar=f"{{{','.join(READINGS)},FOLDER}}", help=text)
    choice.add_argument("--plain", dest="read", action="store_const", const="plain", help=argparse.SUPPRESS)
    choice.add_argument("--decompose", dest="read", type=_reading, help=argparse.SUPPRESS)


def _reading(name: str) -> str:
    """A way to read texts, or the folder of a reader."""
    if name in READINGS or os.path.isdir(name):
        return name
    raise argparse.ArgumentTypeError(
        f"invalid choice: {name!r} (choose from {', '.join(READINGS)}, or the folder of a reader)"
    )


def add_log_format(flags: Flags) -> None:
    """Adds ``--log-format``."""
    text = "format of standard error: text (default), or json, one object a line"
    flags.add_argument("--log-format", choices=("text", "json"), default="text", help=text)


def add_model_weight(flags: Flags) -> None:
    """Adds ``--model-weight``."""
    text = f"share of the model in bm25+MODEL: its query weights are multiplied by X (default {MODEL_WEIGHT:g})"
    flags.add_argument("--model-weight", type=_weight, metavar="X", help=text)


def _weight(text: str) -> float:
    if (value := finite_number(text)) is None or value < 0:
        raise argparse.ArgumentTypeError(f"must be a finite number, 0 or more, got {text}")
    return value


def add_model_options(flags: Flags) -> None:
    """Adds how a model encodes texts. All flags default to None, so that it is known whether any was given."""
    add_flags(flags, ModelOptions, _MODEL_OPTIONS)


def chosen_model_options(args: argparse.Namespace, batch_size: int | None = None) -> ModelOptions | None:
    """The model options that were given; None if none was."""
    given = {name: value for name, value in given_options(ModelOptions, args).items() if name in _MODEL_OPTIONS}
    if batch_size is not None:
        given["batch_size"] = batch_size
    if "head" in given:
        given["head"] = Head.parse(given["head"])
    return ModelOptions(**given) if given else None
