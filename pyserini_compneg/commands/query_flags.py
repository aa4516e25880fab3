"""The flags with which commands read, encode and compose queries, and what they choose."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_compneg.commands import flags
from pyserini_compneg.compose import CPT_FORMS, DIFFERENCES, INTERSECTIONS, UNIONS, WEIGHT_SCALE, Operators
from pyserini_compneg.compose.difference import DIFFERENCE_WEIGHTS
from pyserini_compneg.compose.intersection import CPT_TERMS, DISENTANGLED_CPT_WEIGHT
from pyserini_compneg.compose.operators import EXCLUSION_SHARE
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.progress import warn_of
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    from pyserini_compneg.search import SignedImpactSearcher
    from pyserini_compneg.topics.topics import Topic

SYNTAX = """\
Expressions have AND, OR, NOT in capitals, parentheses, and "quotes" around phrases that contain these words. AND and
NOT have the same precedence, from left to right, and bind tighter than OR. Words join each of the alternatives beside
them: `(French OR Italian) comedies` is `French comedies OR Italian comedies`. NOT lowers the scores of documents and
removes none. NOT! removes what matches: `spy films NOT! comedies`, or by a filter field `spy films NOT! genre=Comedy`.
AND! scores as AND and finds only what has every operand: `spy films AND! comedies`.
Topics are TSV (id, tab, text) or JSON Lines with an `expression`, QUEST's `original_query`, a plain `query` or `text`,
or a composed `vector` or `score`, with an optional `filter` {field: values}. --read parses all texts in the same way.
"""

_STRENGTHS = ("difference_weight", "cpt_terms", "cpt_weight", "exclusion")
_OPERATORS = {"union": ("OR", UNIONS), "intersection": ("AND", INTERSECTIONS), "difference": ("NOT", DIFFERENCES)}

_logger = logging.getLogger(__name__)


def add_query_options(parser: argparse.ArgumentParser) -> None:
    """Adds the usual flags: the queries, their encoder, their operators and their decomposition."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--topics", metavar="FILE", help="topics, TSV or JSON Lines, or - for standard input")
    source.add_argument("--query", metavar="EXPRESSION", help="one query")
    text = f"bm25, a model ({flags.MODEL}), bm25+MODEL, or JSON Lines of encoded atoms (default: that of the index)"
    parser.add_argument("--encoder", metavar="NAME", help=text)
    for kind, (sign, names) in _OPERATORS.items():
        text = f"{sign}: {', '.join(names)} (default {getattr(Operators(), kind)})"
        parser.add_argument(f"--{kind}", choices=names, metavar="NAME", help=text)
    text = "find only the documents whose ids the file has, one a line"
    parser.add_argument("--filter", metavar="FILE", help=text)
    parser.add_argument(
        "--filter-field",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="find only documents with this value of a field of index --filter-fields, or with a number in the range "
        "1990..1999; repeat a field to accept any of its values; different fields must all match",
    )
    flags.add_read(
        parser,
        "how texts are parsed: as an expression (default of TSV and --query); plain, as one atom (default of `query` "
        "and `text` in JSON Lines); or as plain English by the small model of the package (model), by a reader of your "
        "own (its folder), or by a language model (llm; set OPENAI_BASE_URL, COMPNEG_LLM_MODEL and OPENAI_API_KEY)",
    )


def add_advanced_query_options(group: flags.Flags, batches: bool = True) -> None:
    """Adds the other flags for queries; ``--batch-size`` only where there are batches."""
    add = group.add_argument
    add(
        "--cpt",
        choices=CPT_FORMS,
        default=CPT_FORMS[0],
        help="form of conjunctions: factored suits any index (default), materialised needs index --pair-terms",
    )
    weights = ", ".join(f"{name} {weight:g}" for name, weight in DIFFERENCE_WEIGHTS.items())
    text = f"strength of NOT: the excluded part is multiplied by X (defaults: {weights})"
    add("--difference-weight", type=flags.positive, metavar="X", help=text)
    text = "terms of each operand that a conjunction by cpt combines, or of which AND! requires one; pairs of "
    text += f"cpt-pairs (default {CPT_TERMS})"
    add("--cpt-terms", type=flags.count, metavar="N", help=text)
    text = f"weight of joint occurrence in disentangled AND (default {DISENTANGLED_CPT_WEIGHT:g})"
    add("--cpt-weight", type=flags.positive, metavar="X", help=text)
    text = f"NOT! removes documents above this share of the best score (default {EXCLUSION_SHARE}), or that have "
    text += "any or all of the heaviest terms (--cpt-terms)"
    add("--exclusion", type=_exclusion, metavar="SHARE", help=text)
    add(
        "--weight-scale",
        type=flags.positive,
        default=WEIGHT_SCALE,
        metavar="X",
        help=f"query weight = round(weight * X); composed queries keep their weights (default {WEIGHT_SCALE:g})",
    )
    text = "leave out terms of a query whose idf, ln(documents / documents with the term), is X or lower; 0 leaves out "
    text += "those of every document, as Pyserini does (default: none)"
    add("--min-idf", type=flags.number, metavar="X", help=text)
    if batches:
        add("--batch-size", type=flags.count, default=64, metavar="N", help="queries encoded together (default 64)")
        add(
            "--on-error",
            choices=("stop", "skip"),
            default="stop",
            help="a query that cannot be parsed, encoded or composed ends the command (default), or is left out with a "
            "warning",
        )
    flags.add_log_format(group)
    flags.add_model_options(group)
    flags.add_model_weight(group)
    add(
        "--ablation",
        choices=ABLATIONS,
        help="leave out of query vectors: terms that are not tokens of the query (no-expansion), weights "
        "(no-weighting), or both, so that no network runs (doc-only)",
    )


def _exclusion(text: str) -> str | float:
    try:
        return Operators(exclusion=text if text in ("any", "all") else flags.number(text)).exclusion
    except (ValueError, argparse.ArgumentTypeError):
        named = "must be a number above 0 and below 1, any or all"
        raise argparse.ArgumentTypeError(f"{named}, got {text}") from None


def _with_filter(topics: Sequence[Topic], args: argparse.Namespace) -> list[Topic]:
    """The topics with the filter of the flags beside their own."""
    from pyserini_compneg.expression.filters import ID, narrowed, read_conditions, read_ids

    if args.filter and "=" in args.filter and not Path(args.filter).exists():
        raise ArgumentError(f"--filter {shown(args.filter)}: no such file; conditions are --filter-field FIELD=VALUE")
    fields = read_conditions(args.filter_field)
    given = narrowed(fields or None, {ID: read_ids(args.filter)} if args.filter is not None else None)
    if given is None:
        return list(topics)
    made = []
    for topic in topics:
        try:
            made.append(replace(topic, filter=narrowed(topic.filter, given)))
        except ArgumentError as error:
            raise InputError(f"{topic.source}: {error}") from None
    return made


def chosen_settings(args: argparse.Namespace) -> dict[str, Any]:
    """How queries are composed, as keyword arguments of ``SignedImpactSearcher`` and ``compose_queries``."""
    return {"operators": Operators(**given_operators(args)), "cpt": args.cpt, "weight_scale": args.weight_scale}


def given_operators(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of ``Operators`` that were chosen."""
    names = (*_OPERATORS, *_STRENGTHS)
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def inputs(args: argparse.Namespace, *others: str | None) -> list[str]:
    """The files and folders that a command of queries must not replace: index, encoder, filter, and others."""
    from pyserini_compneg.encode.hybrid import split_name

    return list(filter(None, (args.index, split_name(args.encoder or "")[1], args.filter, *others)))


def chosen_model(args: argparse.Namespace) -> dict[str, Any]:
    """How a model encodes the queries, as keyword arguments of ``SignedImpactSearcher`` and ``query_encoder``.

    Raises:
        EncodingError: Options that exclude each other.
    """
    own = {"ablation": args.ablation, "model_weight": args.model_weight}
    return {"model_options": flags.chosen_model_options(args), **own}


def open_searcher(args: argparse.Namespace) -> SignedImpactSearcher:
    """The searcher of ``--index``, with the encoder and the operators that were chosen.

    Raises:
        CompNegError: As ``SignedImpactSearcher``, and for options that exclude each other.
    """
    from pyserini_compneg.lucene import open_reader
    from pyserini_compneg.search.searcher import SignedImpactSearcher

    chosen = chosen_settings(args) | chosen_model(args) | {"min_idf": args.min_idf}
    partial = getattr(args, "allow_partial", False)
    if (address := getattr(args, "ray", None)) is not None:
        from pyserini_compneg.cluster import ShardedImpactSearcher

        shards = {"ray": address, "replicas": args.replicas, "allow_partial": partial}
        return ShardedImpactSearcher(args.index, args.encoder, **shards, **chosen)
    return SignedImpactSearcher(open_reader(args.index, partial), args.encoder, **chosen)


def chosen_topics(args: argparse.Namespace, qid: str | None = None) -> list[Topic]:
    """The topics of ``--topics``, or the one of ``--query``, read as ``--read`` says.

    Warns of words that look like operators and are none.

    Args:
        args: The arguments.
        qid: The only topic that is wanted; no other is decomposed.

    Raises:
        InputError: A file without topics or without this topic, or a line that is no topic.
        QueryError: An expression that cannot be parsed.
        QueryError: A reader cannot be loaded, or no language model is named.
    """
    from pyserini_compneg.topics.topics import read_text, read_topics
    from pyserini_compneg.topics.unread import notes_on

    decompose = takes_apart(args)
    skip = getattr(args, "on_error", "stop") == "skip" and args.query is None
    read = "plain" if decompose else args.read
    if args.query is not None:
        topics = [read_text("1", args.query, read or "expression")]
    else:
        topics = read_topics(args.topics, read, skip=skip)
    if qid is not None:
        topics = [_only(topics, qid, args.topics)]
    if decompose:
        topics = _taken_apart(topics, args.read)
    topics = _with_filter(topics, args)
    for note in notes_on(topics):
        _logger.warning("%s", note)
    if getattr(args, "explain", False) and not decompose:
        _logger.warning(
            "--explain shows how --read model, FOLDER or llm parses texts; here no text is parsed by a model, and the "
            "command explain shows what a query became"
        )
    return topics


def _only(topics: Sequence[Topic], qid: str, path: str) -> Topic:
    qids = [topic.qid for topic in topics]
    if qid not in qids:
        listed = ", ".join(qids[:3]) + (", ..." if len(qids) > 3 else "")
        raise InputError(f"{path}: no query {shown(qid)} among its {len(qids)}: {listed}")
    return topics[qids.index(qid)]


def takes_apart(args: argparse.Namespace) -> bool:
    """Whether plain texts are taken apart."""
    return args.read not in (None, "expression", "plain")


def _taken_apart(topics: list[Topic], name: str) -> list[Topic]:
    """The topics with their plain texts taken apart. One warning tells of those that may be misread."""
    from pyserini_compneg.encode.models.cache import cache_home
    from pyserini_compneg.reading import reader
    from pyserini_compneg.topics.topics import decompose_topics

    read = reader(name, cache_home())
    topics = decompose_topics(topics, read) if read else topics
    doubted = {
        topic.qid: f"{shown(topic.text)} ({'; '.join(topic.decomposition.doubts)})"
        for topic in topics
        if topic.decomposition is not None and topic.decomposition.doubts
    }
    qids = [topic.qid for topic in topics]
    warn_of("text", "texts", "may be misread; the command read shows how texts are read", doubted, qids)
    return topics
