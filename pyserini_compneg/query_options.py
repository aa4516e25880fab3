"""The flags with which commands take queries, and what they choose."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyserini_compneg.cli import count, positive
from pyserini_compneg.compose import CPT_FORMS, DIFFERENCES, INTERSECTIONS, UNIONS, WEIGHT_SCALE, Operators
from pyserini_compneg.compose.lowering import FACTORED
from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, parse
from pyserini_compneg.model_options import add_model_options, chosen_model_options
from pyserini_compneg.models import ABLATIONS

if TYPE_CHECKING:
    from pyserini_compneg.datasets.topics import Topic
    from pyserini_compneg.decompose import Decomposition

DECOMPOSED_DIFFERENCE = "damped"
"""What stands for NOT with --decompose, in all topics of a run: the best on the dev splits of ExcluIR and
NegConstraint. It needs an index, and is no sum over pairs; without the one, or for the other, NOT is what it is for
expressions."""

_logger = logging.getLogger(__name__)

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
        note = f"{default}, with --decompose {DECOMPOSED_DIFFERENCE}" if kind == "difference" else default
        parser.add_argument(
            f"--{kind}", choices=names, metavar="NAME", help=f"{sign}: {', '.join(names)} (default {note})"
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
    parser.add_argument(
        "--decompose",
        choices=("off", "cues", "llm"),
        default="off",
        help="read plain texts as expressions: not at all (default), by cue phrases, or with a language model whose "
        "OpenAI-compatible API the environment names (OPENAI_BASE_URL, COMPNEG_LLM_MODEL, OPENAI_API_KEY); --query is "
        "plain text then",
    )
    parser.add_argument(
        "--fallback",
        choices=("none", "vanilla"),
        default="none",
        help="what a text becomes that only says what it does not ask for: an error (default), or one atom",
    )
    models = add_model_options(parser, "queries")
    models.add_argument(
        "--ablation",
        choices=ABLATIONS,
        help="leave out of query vectors: terms that are no tokens of the query, weights, or both (no network)",
    )


def chosen_operators(args: argparse.Namespace) -> Operators:
    """What stands for union, intersection and difference."""
    named = {kind: getattr(args, kind) for kind in ("union", "intersection", "difference") if getattr(args, kind)}
    if args.decompose != "off" and args.index is not None and args.cpt == FACTORED:
        named.setdefault("difference", DECOMPOSED_DIFFERENCE)
    return Operators(**named)


def chosen_encoder(args: argparse.Namespace) -> dict[str, Any]:
    """How a model encodes the queries, as ``SignedImpactSearcher`` and ``query_encoder`` take it.

    Raises:
        EncodingError: A combination that there is none of.
    """
    return {"model_options": chosen_model_options(args), "ablation": args.ablation}


def chosen_decomposer(args: argparse.Namespace) -> Callable[[str], Decomposition] | None:
    """What reads plain texts as expressions; None where they stay atoms.

    Raises:
        DecompositionError: There is no language model in the environment.
    """
    if args.decompose == "off":
        return None
    from pyserini_compneg.decompose import LlmReader, decompose, or_undivided
    from pyserini_compneg.models.cache import cache_home

    read = decompose if args.decompose == "cues" else LlmReader(os.environ, cache_home() / "decompositions")
    if args.fallback != "vanilla":
        return read
    return or_undivided(read, _tell)


def _tell(error: DecompositionError) -> None:
    _logger.warning("%s; searched as it is", str(error).partition(";")[0])


def chosen_query(args: argparse.Namespace) -> Topic | None:
    """The topic of ``--query``, whose text is plain with ``--plain`` or ``--decompose``; None where there are topics.

    Raises:
        QuerySyntaxError: It is no expression.
        DecompositionError: It is plain, and only says what it does not ask for.
    """
    if args.query is None:
        return None
    from pyserini_compneg.datasets.topics import Topic

    decompose = chosen_decomposer(args)
    if decompose is None:
        return Topic("1", args.query, Atom(args.query) if args.plain else parse(args.query), plain=args.plain)
    decomposition = decompose(args.query)
    return Topic("1", args.query, decomposition.expression, plain=True, decomposition=decomposition)


def chosen_topics(args: argparse.Namespace) -> list[Topic]:
    """The topics of ``--topics``, or the one of ``--query``.

    Raises:
        CollectionError: A file without topics, or a line that is none.
        QuerySyntaxError: An expression that cannot be parsed.
        DecompositionError: A plain text that only says what it does not ask for.
    """
    query = chosen_query(args)
    if query is not None:
        return [query]
    from pyserini_compneg.datasets.topics import decompose_topics, read_topics

    topics = read_topics(args.topics, args.plain)
    decompose = chosen_decomposer(args)
    return topics if decompose is None else decompose_topics(topics, decompose)
