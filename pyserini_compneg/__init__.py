"""Set-compositional and negated first-stage retrieval on Lucene impact indexes.

    from pyserini_compneg import SignedImpactSearcher
    searcher = SignedImpactSearcher("indexes/films")
    hits = searcher.search("spy films AND comedies NOT animated films", k=10)

Importing the package starts no Java and loads no model library; what needs them loads them on first use.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyserini_compneg.compose import Operators, compose_query
    from pyserini_compneg.encode import encode_collection
    from pyserini_compneg.encode.models import ModelOptions
    from pyserini_compneg.eval import evaluate, parse_measures, read_qrels, read_run
    from pyserini_compneg.expression import parse
    from pyserini_compneg.index import ImpactIndexer, build_index
    from pyserini_compneg.reading import decompose
    from pyserini_compneg.search import SignedImpactSearcher
    from pyserini_compneg.support.errors import ArgumentError, CompNegError

__all__ = [
    "ArgumentError",
    "CompNegError",
    "ImpactIndexer",
    "ModelOptions",
    "Operators",
    "SignedImpactSearcher",
    "build_index",
    "compose_query",
    "decompose",
    "encode_collection",
    "evaluate",
    "parse",
    "parse_measures",
    "read_qrels",
    "read_run",
]

_HOMES = {
    "ArgumentError": "support.errors",
    "CompNegError": "support.errors",
    "ImpactIndexer": "index",
    "ModelOptions": "encode.models",
    "Operators": "compose",
    "SignedImpactSearcher": "search",
    "build_index": "index",
    "compose_query": "compose",
    "decompose": "reading",
    "encode_collection": "encode",
    "evaluate": "eval",
    "parse": "expression",
    "parse_measures": "eval",
    "read_qrels": "eval",
    "read_run": "eval",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib import metadata  # takes longer than all else here

        try:
            return metadata.version(__name__)
        except metadata.PackageNotFoundError:  # a checkout that is not installed
            return "0"
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def end_quietly(number: int, _: object) -> None:
    """Ends a command that gets a signal while Python still imports it, so that nothing is lost."""
    os.write(2, b"terminated\n" if number == signal.SIGTERM else b"interrupted\n")
    os._exit(128 + number)


_modules = [name.split(".") for flag, name in pairwise(sys.orig_argv) if flag == "-m"]
_run_by_name = [rest for package, *rest in _modules if package == __name__]
for _signal in (signal.SIGINT, signal.SIGTERM):
    if _run_by_name and signal.getsignal(_signal) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(_signal, end_quietly)
for _rest in _run_by_name:
    if len(_rest) == 1 and _rest[0] not in ("search", "index", "encode", "eval"):  # as Pyserini has them
        _shown = f"compneg {_rest[0]}, or python -m {__name__} {_rest[0]}"
        print(f"error: there is no python -m {__name__}.{_rest[0]}; write {_shown}", file=sys.stderr)
        raise SystemExit(2)
