"""Set-compositional and negated first-stage retrieval on Lucene impact indexes.

    from pyserini_compneg import SignedImpactSearcher
    searcher = SignedImpactSearcher("indexes/films")
    hits = searcher.search("spy films AND comedies NOT animated films", k=10)

Importing the package starts no Java and loads no model library; what needs them loads them on first use.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyserini_compneg.compose import Operators, compose_query
    from pyserini_compneg.encode.corpus import encode_collection
    from pyserini_compneg.encode.models import ModelOptions
    from pyserini_compneg.errors import CompNegError
    from pyserini_compneg.expression import parse
    from pyserini_compneg.index import ImpactIndexer, build_index
    from pyserini_compneg.reading import decompose
    from pyserini_compneg.search import ComposedQueryEncoder, SignedImpactSearcher

__all__ = [
    "CompNegError",
    "ComposedQueryEncoder",
    "ImpactIndexer",
    "ModelOptions",
    "Operators",
    "SignedImpactSearcher",
    "build_index",
    "compose_query",
    "decompose",
    "encode_collection",
    "parse",
]

_HOMES = {
    "CompNegError": "errors",
    "ComposedQueryEncoder": "search",
    "ImpactIndexer": "index",
    "ModelOptions": "encode.models",
    "Operators": "compose",
    "SignedImpactSearcher": "search",
    "build_index": "index",
    "compose_query": "compose",
    "decompose": "reading",
    "encode_collection": "encode.corpus",
    "parse": "expression",
}

try:
    __version__ = version("pyserini_compneg")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
