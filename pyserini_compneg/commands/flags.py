"""Shared code of the parsers: their form, and flags that have the same meaning in several commands."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, NoReturn, TypeAlias

from pyserini_compneg.commands.versions import ShowVersions
from pyserini_compneg.documents.formats import SUFFIXES
from pyserini_compneg.encode.models import Head, ModelOptions
from pyserini_compneg.lucene.manifest import fit_passages
from pyserini_compneg.reading.decomposition import READINGS
from pyserini_compneg.support.arguments import whole_number
from pyserini_compneg.support.errors import ArgumentError, OutputError
from pyserini_compneg.support.options import COUNT, add_flags, given_options
from pyserini_compneg.support.staging import of_standard_output
from pyserini_compneg.support.terminal import shown, suggestion

Flags: TypeAlias = argparse._ActionsContainer
"""A parser, or a group of its flags."""

MODEL = "mini, latent, latent:FOLDER, a folder, or a name on the Hugging Face hub"
_READ = {"--plain": "write --read plain", "--decompose": "write --read model, or --read llm"}
_OF_QUERIES = {
    **_READ,
    "--filter-field": "write --filter FIELD=VALUE",
    "--explain": "the output says how --read model, FOLDER or llm parses a text",
    "--batch-size": "64 queries are encoded together",
    "--max-length": "queries are read up to the limit of the model",
}
_REPLICAS = {"--replicas": "write --ray ADDRESS replicas=N"}
_FLAGS_ELSEWHERE: dict[str, Mapping[str, str]] = {
    "index": {"--input": "the documents are --collection"},
    "search": {
        **_OF_QUERIES,
        "--q": "the query is --query",
        "--k": "the number of hits is --hits",
        "--operator": "the operators are --union, --intersection and --difference",
        "--docid": "the command explain has it",
        "--k1": "k1 and b belong to index, which keeps them",
        "--b": "k1 and b belong to index, which keeps them",
        "--depth": "write --method NAME depth=N",
        "--rerank-hits": "write --rerank MODEL hits=N",
        **_REPLICAS,
    },
    "explain": _OF_QUERIES,
    "compose": _OF_QUERIES,
    "reproduce": _READ,
    "serve": _REPLICAS,
}
"""Advice on flags of other tools or of development versions, by command."""


def command_parser(name: str, usage: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """The parser of a command. ``usage`` lists the required arguments; all others are ``[options]``."""
    parser = _Parser(
        prog=f"compneg {name}",
        usage=f"%(prog)s {f'{usage} [options]'.lstrip()}",
        description=textwrap.fill(description, 100),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # an abbreviation could become ambiguous in a later release
    )
    parser.add_argument("--version", action=ShowVersions, nargs=0, help="show what is installed and exit")
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, followed by a line that names the help."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses unknown flags first, because an unknown flag may be a misspelt required flag."""
        known = self._option_string_actions
        for argument in takewhile(lambda one: one != "--", args):
            flag = argument.partition("=")[0]
            if flag in known or " " in flag:
                continue
            if f"-{flag}" in known:
                self.error(f"there is no {shown(flag)}; flags have two dashes: -{flag}")
            moved = _FLAGS_ELSEWHERE.get(self.prog.split()[-1], {})
            other = moved.get(flag) or (moved.get(f"-{flag}") if flag.startswith("-") else None)
            if other or flag.startswith("--"):
                self.error(f"there is no {flag}" + (f"; {other}" if other else suggestion(flag, known)))
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += suggestion(str(value), map(str, action.choices or ()))
            raise

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints a help text. The method of argparse ignores a full disk."""
        try:
            print(message, end="", file=file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(of_standard_output(error)) from None

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(message, below=f"see {self.prog} -h")


class _WithSettings(argparse.Action):
    """The action of a flag ``NAME [setting=VALUE ...]``. Its value is the name and a dict of the settings."""

    def __init__(self, *, kinds: Mapping[str, Callable[[str], object]], **options: Any) -> None:
        super().__init__(**options | {"nargs": "+"})
        self.kinds, self.names = kinds, self.choices
        self.choices = None  # argparse would check the settings, too

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        name, *given = values
        if self.names is not None and name not in self.names:
            listed = ", ".join(self.names)
            reason = f"invalid choice: {name!r} (choose from {listed}){suggestion(name, self.names)}"
            raise argparse.ArgumentError(self, reason)
        settings = {}
        for text in given:
            key, _, value = text.partition("=")
            if key not in self.kinds or not value:
                known = " and ".join(f"{one}=..." for one in self.kinds)
                raise argparse.ArgumentError(self, f"no setting is {shown(text)}; give {known}")
            if key in settings:
                raise argparse.ArgumentError(self, f"{key} is given twice")
            try:
                settings[key] = self.kinds[key](value)
            except argparse.ArgumentTypeError as error:
                raise argparse.ArgumentError(self, f"{key} {error}") from None
        setattr(namespace, self.dest, (name, settings))


def with_settings(**kinds: Callable[[str], object]) -> Any:
    """The ``action`` of a flag whose value is a name, followed by settings of these kinds."""
    return partial(_WithSettings, kinds=kinds)


def advanced(parser: argparse.ArgumentParser) -> Flags:
    """The group of rarely needed flags, which the help shows last."""
    return parser.add_argument_group("advanced options")


def add_index(flags: Flags, required: bool = True) -> None:
    text = "index folder, of this package or of Anserini, or the name of a prebuilt index"
    flags.add_argument("--index", required=required, metavar="DIR", help=text)


def add_collection(flags: Flags, required: bool = True) -> None:
    text = "file of JSON Lines, of a JSON list, of CSV, TSV or parquet; or folder of such files"
    flags.add_argument("--collection", required=required, metavar="PATH", help=text)
    text = f"its format: {', '.join(SUFFIXES)} (default: detected from its name and first bytes)"
    flags.add_argument("--format", choices=[*SUFFIXES], dest="collection_format", help=text)


def add_passages(flags: Flags) -> None:
    text = "split texts into passages of N words that share N words, such as words=200,overlap=50; a search gives each "
    text += "document once, by its best passage"
    flags.add_argument("--passages", type=_passages, metavar="words=N,overlap=N", help=text)


def _passages(text: str) -> dict[str, int]:
    """The words and the overlap of passages. Without an overlap it is 0."""
    given = {name.strip(): whole_number(number) for name, _, number in (one.partition("=") for one in text.split(","))}
    if len(given) <= text.count(","):
        raise argparse.ArgumentTypeError(f"gives a size twice: {text}")
    sizes = {name: number for name, number in {"overlap": 0, **given}.items() if number is not None}
    if len(sizes) < len({"overlap", *given}) or not fit_passages(sizes):
        said = "must be words=N,overlap=N with an overlap below the words, such as words=200,overlap=50"
        raise argparse.ArgumentTypeError(f"{said}, got {text}")
    return sizes


def add_threads(flags: Flags, default: int, what: str = "queries searched at once") -> None:
    text = f"{what} (default {default})"
    flags.add_argument("--threads", type=COUNT, default=default, metavar="N", help=text)


def add_output(flags: Flags, what: str) -> None:
    flags.add_argument("--output", metavar="FILE", help=f"{what} (default standard output)")


def add_read(flags: Flags, text: str) -> None:
    flags.add_argument("--read", type=_reading, metavar=f"{{{','.join(READINGS)},FOLDER}}", help=text)


def _reading(name: str) -> str:
    if name in READINGS or os.path.isdir(name):
        return name
    raise argparse.ArgumentTypeError(
        f"invalid choice: {name!r} (choose from {', '.join(READINGS)}, or the folder of a reader)"
    )


def add_log_format(flags: Flags) -> None:
    """Adds ``--log-format``, which :mod:`.running` reads."""
    text = "format of standard error: text (default), or json, one object a line"
    flags.add_argument("--log-format", choices=("text", "json"), default="text", help=text)


_MODEL_OPTIONS = ("backend", "precision", "device", "max_length", "head", "top_terms", "threshold")


def add_model_options(flags: Flags, without: str = "") -> None:
    """Adds the options for running a model, except ``without``."""
    add_flags(flags, ModelOptions, [name for name in _MODEL_OPTIONS if name != without])


def chosen_existing(args: argparse.Namespace) -> Any:
    """How the flags treat an existing result and unfinished work, for ``existing``."""
    further = [name for name in ("replace", "update") if getattr(args, name, False)]
    return " or ".join(further or [name for name in ("resume", "overwrite") if getattr(args, name)]) or "refuse"


def chosen_model_options(args: argparse.Namespace, batch_size: int | None = None) -> ModelOptions | None:
    given = {name: value for name, value in given_options(ModelOptions, args).items() if name in _MODEL_OPTIONS}
    if batch_size is not None:
        given["batch_size"] = batch_size
    if "head" in given:
        given["head"] = Head.parse(given["head"])
    return ModelOptions(**given) if given else None
