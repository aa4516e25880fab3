"""The flags with which commands read, encode and compose queries, and what they choose."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyserini_compneg.commands import flags
from pyserini_compneg.compose import CPT_FORMS, DIFFERENCES, INTERSECTIONS, UNIONS, WEIGHT_SCALE, Operators
from pyserini_compneg.compose.lowering import FACTORED
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.errors import CollectionError, DecompositionError
from pyserini_compneg.expression import Atom, parse

if TYPE_CHECKING:
    from pyserini_compneg.expression.decomposition import Decomposition
    from pyserini_compneg.expression.topics import Topic
    from pyserini_compneg.search import SignedImpactSearcher

DECOMPOSED_DIFFERENCE = "damped"
"""The default of NOT with --decompose, for all topics of a run: the best on the dev splits of ExcluIR and
NegConstraint. It needs an index and factored conjunctions. Without these the default is that of expressions."""

SYNTAX = """\
Expressions have AND, OR, NOT in capitals, parentheses, and "quotes" around phrases that contain these words. AND and
NOT bind alike, from left to right, and tighter than OR. Topics are TSV (id, tab, expression) or JSON Lines with an
`expression`, QUEST's `original_query`, a plain `query` or `text`, or a composed `vector` or `score`.
"""

_OPERATORS = {"union": ("OR", UNIONS), "intersection": ("AND", INTERSECTIONS), "difference": ("NOT", DIFFERENCES)}

_logger = logging.getLogger(__name__)


def add_query_options(parser: argparse.ArgumentParser) -> None:
    """Adds the usual flags: the queries, their encoder, their operators and their decomposition."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--topics", metavar="FILE", help="topics, TSV or JSON Lines, or - for standard input")
    source.add_argument("--query", metavar="EXPRESSION", help="one query")
    text = f"bm25, a model ({flags.MODEL}), or JSON Lines of encoded atoms (default: the encoder of the index)"
    parser.add_argument("--encoder", metavar="NAME", help=text)
    for kind, (sign, names) in _OPERATORS.items():
        default = getattr(Operators(), kind)
        if kind == "difference":
            default += f"; with --decompose {DECOMPOSED_DIFFERENCE}"
        text = f"{sign}: {', '.join(names)} (default {default})"
        parser.add_argument(f"--{kind}", choices=names, metavar="NAME", help=text)
    flags.add_decompose(
        parser,
        "read plain texts as expressions: not at all (default), by cue phrases, or with a language model, whose "
        "OpenAI-compatible API the environment names (OPENAI_BASE_URL, COMPNEG_LLM_MODEL, OPENAI_API_KEY); the text "
        "of --query is then plain, too",
    )


def add_advanced_query_options(group: flags.Flags, batches: bool = True) -> None:
    """Adds the other flags for queries; ``--batch-size`` only where there are batches."""
    add = group.add_argument
    add("--plain", action="store_true", help="queries are plain text: no word in them is an operator")
    add(
        "--fallback",
        choices=("none", "vanilla"),
        default="none",
        help="with --decompose, what becomes of a text that only excludes: an error (default), or one atom",
    )
    add(
        "--cpt",
        choices=CPT_FORMS,
        default=CPT_FORMS[0],
        help=f"form of conjunctions: for any index (factored), or for one with pairs (default {CPT_FORMS[0]})",
    )
    add(
        "--weight-scale",
        type=flags.positive,
        default=WEIGHT_SCALE,
        metavar="X",
        help=f"query weight = round(weight * X); composed queries keep their weights (default {WEIGHT_SCALE:g})",
    )
    if batches:
        add("--batch-size", type=flags.count, default=64, metavar="N", help="queries encoded together (default 64)")
    flags.add_model_options(group, "queries")
    add(
        "--ablation",
        choices=ABLATIONS,
        help="leave out of query vectors: terms that are no tokens of the query, weights, or both (no network)",
    )


def chosen_settings(args: argparse.Namespace) -> dict[str, Any]:
    """How queries are composed, as keyword arguments of ``SignedImpactSearcher`` and ``compose_queries``."""
    named = {kind: getattr(args, kind) for kind in _OPERATORS if getattr(args, kind)}
    if args.decompose != "off" and args.index is not None and args.cpt == FACTORED:
        named.setdefault("difference", DECOMPOSED_DIFFERENCE)
    return {"operators": Operators(**named), "cpt": args.cpt, "weight_scale": args.weight_scale}


def chosen_model(args: argparse.Namespace) -> dict[str, Any]:
    """How a model encodes the queries, as keyword arguments of ``SignedImpactSearcher`` and ``query_encoder``.

    Raises:
        EncodingError: Options that exclude each other.
    """
    return {"model_options": flags.chosen_model_options(args), "ablation": args.ablation}


def open_searcher(args: argparse.Namespace) -> SignedImpactSearcher:
    """The searcher of ``--index``, with the encoder and the operators that were chosen.

    Raises:
        CompNegError: As ``SignedImpactSearcher``, and for options that exclude each other.
    """
    from pyserini_compneg.search.searcher import SignedImpactSearcher

    return SignedImpactSearcher(args.index, args.encoder, **chosen_settings(args), **chosen_model(args))


def chosen_topics(args: argparse.Namespace, qid: str | None = None) -> list[Topic]:
    """The topics of ``--topics``, or the one of ``--query``, whose text is plain with ``--plain`` or ``--decompose``.

    Args:
        args: The arguments.
        qid: The only topic that is wanted; no other is decomposed.

    Raises:
        CollectionError: A file without topics or without this topic, or a line that is no topic.
        QuerySyntaxError: An expression that cannot be parsed.
        DecompositionError: A plain text that only excludes, or no language model is named.
    """
    from pyserini_compneg.expression.topics import Topic, decompose_topics, read_topics

    decompose = _decomposer(args)
    if args.query is not None:
        if decompose is None:
            return [Topic("1", args.query, Atom(args.query) if args.plain else parse(args.query), plain=args.plain)]
        decomposition = decompose(args.query)
        return [Topic("1", args.query, decomposition.expression, plain=True, decomposition=decomposition)]
    topics = read_topics(args.topics, args.plain)
    if qid is not None:
        qids = [topic.qid for topic in topics]
        if qid not in qids:
            listed = ", ".join(qids[:3]) + (", ..." if len(qids) > 3 else "")
            raise CollectionError(f"{args.topics}: no query {qid!r} among its {len(qids)}: {listed}")
        topics = [topics[qids.index(qid)]]
    return topics if decompose is None else decompose_topics(topics, decompose)


def _decomposer(args: argparse.Namespace) -> Callable[[str], Decomposition] | None:
    """The reader of plain texts; None where they stay atoms."""
    if args.decompose == "off":
        return None
    from pyserini_compneg.encode.models.cache import cache_home
    from pyserini_compneg.reading import or_undivided, reader

    read = reader(args.decompose, cache_home())
    return or_undivided(read, _warn_of_fallback) if read and args.fallback == "vanilla" else read


def _warn_of_fallback(error: DecompositionError) -> None:
    _logger.warning("%s; searched as it is", str(error).partition(";")[0])
