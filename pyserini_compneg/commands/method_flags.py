"""The flags of other ways to answer queries than by operators alone: methods and reranking."""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyserini_compneg.baselines import METHODS, RERANKED, Reranked, make_method, pair_scorer
from pyserini_compneg.baselines.methods import DEPTH
from pyserini_compneg.baselines.reranking import READS
from pyserini_compneg.commands import flags, query_flags
from pyserini_compneg.compose import CPT_FORMS, WEIGHT_SCALE
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS
from pyserini_compneg.encode.hybrid import split_name
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError

OPERATORS = "operators"

_RANKING = (
    *("union", "intersection", "difference", "difference_weight", "cpt_terms", "cpt_weight", "exclusion", "cpt"),
    *(
        "read",
        "filter",
        "filter_field",
        "model_weight",
        "min_idf",
        "weight_scale",
        "ablation",
        "precision",
        "max_length",
        "top_terms",
        "threshold",
    ),
    *("depth", "rerank", "rerank_by", "rerank_hits"),
)
"""The flags that change a ranking."""

_DEFAULTS = asdict(DEFAULT_OPERATORS) | {
    "cpt": CPT_FORMS[0],
    "weight_scale": WEIGHT_SCALE,
    "read": "expression",
    "ablation": ABLATIONS[0],
}
"""The values that need no mention in a tag."""


def add_method_options(parser: argparse.ArgumentParser) -> None:
    """Adds ``--method`` and ``--rerank``."""
    text = f"how queries are answered: {', '.join(METHODS)} (default {OPERATORS}; docs/baselines.md)"
    parser.add_argument("--method", choices=METHODS, default=OPERATORS, metavar="NAME", help=text)
    parser.add_argument(
        "--rerank",
        metavar="MODEL",
        help="rank the first documents again by their stored texts: a cross-encoder or a bi-encoder of "
        "sentence-transformers, a folder or a name on the Hugging Face hub",
    )


def add_advanced_method_options(group: flags.Flags) -> None:
    """Adds their settings."""
    text = f"documents of each atom whose scores score-fusion fuses (default all), or that two-step ranks ({DEPTH})"
    group.add_argument("--depth", type=flags.count, metavar="N", help=text)
    text = f"documents that --rerank ranks again; the others are left out (default {RERANKED})"
    group.add_argument("--rerank-hits", type=flags.count, metavar="N", help=text)
    text = (
        f"what --rerank reads of a query: its text, its atoms, whose scores are composed, or both (default {READS[0]})"
    )
    group.add_argument("--rerank-by", choices=READS, help=text)


def chosen_method(args: argparse.Namespace) -> Method | None:
    """The method that was chosen; None for operators alone. The model that reranks is loaded.

    Raises:
        ArgumentError: A flag that has no use with the method.
        CompNegError: A setting out of its range, or a model that cannot be loaded.
    """
    method = None if args.method == OPERATORS else make_method(METHODS, args.method, _settings(args))
    if args.method == OPERATORS and args.depth is not None:
        raise ArgumentError("--depth has no use with operators; it is for --method score-fusion or two-step")
    given: dict[str, Any] = {"hits": args.rerank_hits, "by": args.rerank_by}
    given = {name: value for name, value in given.items() if value is not None}
    if args.rerank is None:
        if given:
            raise ArgumentError(f"--rerank-{min(given)} has no use without --rerank MODEL")
        return method
    return Reranked(pair_scorer(args.rerank), first=method, **given)


def run_tag(args: argparse.Namespace, searcher: SignedImpactSearcher) -> str:
    """The name of the run: the one that was chosen, or the encoder and the flags that set this ranking apart."""
    if args.tag:
        return str(args.tag)
    manifest = searcher.reader.manifest
    is_hybrid, model = split_name(manifest.encoder if manifest else args.encoder or "")
    parts = ["compneg", f"bm25+{Path(model).name}" if is_hybrid else Path(model).name]
    parts += [args.method] * (args.method != OPERATORS)
    for name in _RANKING:
        value = getattr(args, name)
        if value not in (None, [], _DEFAULTS.get(name)):
            shown = Path(value).name if name in ("read", "rerank", "filter") else value
            shown = ",".join(shown) if isinstance(shown, list) else shown
            parts.append(f"{name.replace('_', '-')}={shown}")
    return re.sub(r"[^\w.,+=-]+", "_", "-".join(parts))


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of a method other than operators."""
    known = METHODS[args.method][1]
    given = query_flags.given_operators(args)
    if args.depth is not None:
        given["depth"] = args.depth
    unused = [name for name in given if name not in known]
    if args.cpt != CPT_FORMS[0] and "intersection" not in known:
        unused.append("cpt")
    if unused:
        raise ArgumentError(f"--{unused[0].replace('_', '-')} has no use with --method {args.method}")
    return given
