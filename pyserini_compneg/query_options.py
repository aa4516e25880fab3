"""The flags with which commands take queries, and what they choose."""

from __future__ import annotations

import argparse
from typing import Any

from pyserini_compneg.cli import count, positive
from pyserini_compneg.compose import CPT_FORMS, DIFFERENCES, INTERSECTIONS, UNIONS, WEIGHT_SCALE, Operators
from pyserini_compneg.expression import Atom, Expression, parse
from pyserini_compneg.model_options import add_model_options, chosen_model_options
from pyserini_compneg.models import ABLATIONS

SYNTAX = """\
Expressions use AND, OR, NOT in capitals, parentheses, and "quotes" around phrases that hold these. AND and NOT bind
alike, from left to right, tighter than OR. Topics are TSV (id and expression) or JSON Lines (`expression`, QUEST's
`original_query`, plain `query` or `text`, or a composed `vector` or `score`).
"""


def add_query_options(parser: argparse.ArgumentParser, many: bool = True) -> None:
    """Adds what queries are read, encoded and composed with; where they are not many, no size of batches."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--topics", metavar="FILE", help="topics, TSV or JSON Lines, or - for standard input")
    what.add_argument("--query", metavar="EXPRESSION", help="one query")
    if many:
        parser.add_argument("--batch-size", type=count, default=64, metavar="N", help="queries a batch (default 64)")
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        help="bm25, a model (a folder, or a name of the Hugging Face hub), or JSON Lines of encoded atoms "
        "(default: the index's own encoder)",
    )
    defaults = Operators()
    for kind, sign, names in (
        ("union", "OR", UNIONS),
        ("intersection", "AND", INTERSECTIONS),
        ("difference", "NOT", DIFFERENCES),
    ):
        default = getattr(defaults, kind)
        listed = ", ".join(names)
        parser.add_argument(
            f"--{kind}", choices=names, default=default, metavar="NAME", help=f"{sign}: {listed} (default {default})"
        )
    parser.add_argument(
        "--cpt",
        choices=CPT_FORMS,
        default=CPT_FORMS[0],
        help=f"form of conjunctions: for any index, or for one with pairs (default {CPT_FORMS[0]})",
    )
    parser.add_argument(
        "--weight-scale",
        type=positive,
        default=WEIGHT_SCALE,
        metavar="X",
        help=f"query weight = round(weight * X), unless composed already (default {WEIGHT_SCALE:g})",
    )
    parser.add_argument("--plain", action="store_true", help="queries are plain text; nothing in them is an operator")
    models = add_model_options(parser, "queries")
    models.add_argument(
        "--ablation",
        choices=ABLATIONS,
        help="leave out of query vectors: terms that are no tokens of the query, weights, or both (no network)",
    )


def chosen_operators(args: argparse.Namespace) -> Operators:
    """What stands for union, intersection and difference."""
    return Operators(args.union, args.intersection, args.difference)


def chosen_encoder(args: argparse.Namespace) -> dict[str, Any]:
    """How a model encodes the queries, as ``SignedImpactSearcher`` and ``query_encoder`` take it.

    Raises:
        EncodingError: A combination that there is none of.
    """
    return {"model_options": chosen_model_options(args), "ablation": args.ablation}


def chosen_query(args: argparse.Namespace) -> Expression | None:
    """The tree of ``--query``; None where there are topics.

    Raises:
        QuerySyntaxError: It is no expression.
    """
    if args.query is None:
        return None
    return Atom(args.query) if args.plain else parse(args.query)
