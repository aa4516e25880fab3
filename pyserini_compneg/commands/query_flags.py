"""The flags with which commands read, encode, compose and answer queries, and the objects that the flags choose."""

from __future__ import annotations

import argparse
import logging
import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_compneg.baselines import METHODS, RERANKED, Reranked, make_method, pair_scorer
from pyserini_compneg.baselines.feedback import BETA, GAMMA, TERMS
from pyserini_compneg.baselines.methods import DEPTH
from pyserini_compneg.baselines.reranking import SHARE
from pyserini_compneg.commands import flags
from pyserini_compneg.commands.clusters import open_searcher as open_index
from pyserini_compneg.compose import OPERATOR_SETS, Operators
from pyserini_compneg.encode.hybrid import places, short_name
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.expression.filters import read_facets
from pyserini_compneg.lucene import ENGLISH
from pyserini_compneg.search import Method, SearchSettings
from pyserini_compneg.search.matches import TOTALS, Counting
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.options import COUNT, NOT_NEGATIVE, PART, add_flags, given_options
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    from pyserini_compneg.search import SignedImpactSearcher
    from pyserini_compneg.topics.topics import Topic

SYNTAX = """\
Expressions have AND, OR, NOT in capitals between two parts, parentheses, and "quotes" around phrases that contain
these words. Any other text is searched as it is, with its parentheses and quotes. AND and NOT have the same
precedence, from left to right, and bind tighter than OR. Words join each of the alternatives beside them: `(French OR
Italian) comedies` is `French comedies OR Italian comedies`. NOT lowers the scores of documents and removes none. NOT!
removes what matches: `spy films NOT! comedies`, or by a filter field `spy films NOT! genre=Comedy`. AND! scores as AND
and finds only what has every operand: `spy films AND! comedies`. `*` alone finds all documents.
Topics are TSV (id, tab, text) or JSON Lines with an `expression`, QUEST's `original_query`, a plain `query`, `text` or
`title`, or a composed `vector` or `score`, with an optional `filter` {field: values}; or TREC's, read as plain text.
--read parses all texts in the same way.
"""

_KINDS = ("union", "intersection", "difference")
_STRENGTHS = ("difference_weight", "cpt_terms", "cpt_weight", "exclusion")
_ENCODING = ("model_weight", "latent_weight", "min_idf", "language", "weight_scale", "ablation")
_PRUNING = ("precision", "top_terms", "threshold")
_DEFAULTS = asdict(SearchSettings()) | asdict(Operators()) | {"read": "expression", "ablation": ABLATIONS[0]}
"""Default values, which the tag of a run leaves out."""

_logger = logging.getLogger(__name__)


class _OperatorSet(argparse.Action):
    """Gives the flags of operators that are not given the values of a set, which the last of several sets replaces."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        for name in getattr(namespace, "of_set", ()):
            setattr(namespace, name, None)
        chosen = {
            name: value for name, value in OPERATOR_SETS[values].items() if getattr(namespace, name, None) is None
        }
        for name, value in chosen.items():
            setattr(namespace, name, value)
        namespace.of_set = list(chosen)


def add_query_options(parser: argparse.ArgumentParser) -> None:
    """Adds the usual flags: the queries, their encoder, operators, filter and reading."""
    source = parser.add_mutually_exclusive_group(required=True)
    text = "topics, TSV, JSON Lines or TREC's <top>, or - for standard input; or the name of Pyserini's topics"
    source.add_argument("--topics", metavar="FILE", help=text)
    source.add_argument("--query", metavar="EXPRESSION", help="one query")
    text = f"bm25, a model ({flags.MODEL}), bm25+MODEL, or JSON Lines of encoded atoms (default: the index's encoder)"
    parser.add_argument("--encoder", metavar="NAME", help=text)
    parser.add_argument(
        "--operators",
        action=_OperatorSet,
        choices=OPERATOR_SETS,
        help="operators for OR, AND and NOT together: default, paper (maxpool, cpt and disentangled), or vanilla (the "
        "query in words, encoded as one text); the next flags replace single ones",
    )
    add_flags(parser, Operators, _KINDS)
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="FIELD=VALUE|FILE",
        help="find only documents that have this value in a field of index --filter-fields, a number in the range "
        "1990..1999 or above it ('year>1990'), a date in released=1999..2003 or 'released>=1999-05-01', or an id that "
        "is a line of FILE; repeat a field to accept any of its values; different fields must all match",
    )
    flags.add_read(
        parser,
        "how texts are parsed: as an expression (default of TSV and --query); plain, as one atom (default of `query` "
        "and `text` in JSON Lines); or as plain English by the small model of the package (model), by a reader of your "
        "own (its folder), or by a language model (llm; set OPENAI_BASE_URL, COMPNEG_LLM_MODEL and OPENAI_API_KEY)",
    )


def add_advanced_query_options(group: flags.Flags, batches: bool = True) -> None:
    """Adds the other flags for queries; ``--on-error`` only if there are several queries."""
    text = "field of TREC's, Pyserini's or JSON topics that is searched: title (default), desc, narr, or another"
    group.add_argument("--topic-field", metavar="NAME", help=text)
    add_flags(group, Operators, _STRENGTHS)
    add_flags(group, SearchSettings)
    if batches:
        group.add_argument(
            "--on-error",
            choices=("stop", "skip"),
            default="stop",
            help="a query that cannot be parsed, encoded or composed ends the command (default), or is left out with a "
            "warning",
        )
    flags.add_log_format(group)
    flags.add_model_options(group, without="max_length")


def add_method_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        action=flags.with_settings(depth=COUNT, judged=str, beta=NOT_NEGATIVE, gamma=NOT_NEGATIVE, terms=COUNT),
        choices=METHODS,
        default=("operators", {}),
        metavar=("NAME", "SETTING=VALUE"),
        help=f"how queries are answered: {', '.join(METHODS)} (default operators; "
        "docs/reference/baselines.md); depth=N: "
        f"how many documents score-fusion fuses for each atom (default all), or two-step ranks again (default {DEPTH})"
        "; judged=FILE: the judged documents of rocchio, lines of `qid 0 docid relevance`; the qid of --query is 1; "
        f"beta={BETA:g}, gamma={GAMMA:g}: the weights of the relevant and of the other documents; terms={TERMS}: how "
        "many of their terms are added",
    )
    parser.add_argument(
        "--rerank",
        action=flags.with_settings(share=PART, hits=COUNT),
        metavar=("MODEL", "share=X hits=N"),
        help="rank the first documents again by their stored texts: a cross-encoder, a bi-encoder or a ColBERT of "
        "sentence-transformers, a folder or a name on the Hugging Face hub; share=X: the model's share of the scores, "
        f"up to 1 for the model alone (default {SHARE:g}); hits=N: how many are ranked again (default {RERANKED}), the "
        "others follow",
    )


def chosen_method(args: argparse.Namespace) -> Method | None:
    """The chosen method, or None for operators alone. Loads the model that reranks."""
    name, settings = args.method
    known, method = METHODS[name][1], None
    if name != "operators":
        settings = {**settings, **given_options(Operators, args)}
    unused = [one for one in settings if one not in known]
    if name != "operators" and args.cpt is not None and "intersection" not in known:
        unused.append("cpt")
    if unused:
        flag = unused[0] if unused[0] in args.method[1] else f"--{unused[0].replace('_', '-')}"
        flag = "--operators" if unused[0] in getattr(args, "of_set", ()) else flag
        takers = [method for method, (_, settings) in METHODS.items() if unused[0] in settings]
        remedy = f"it is for --method {' or '.join(takers)}" if takers else ""
        raise ArgumentError(f"{flag} has no use with --method {name}", remedy=remedy)
    if name != "operators":
        method = make_method(METHODS, name, settings)
    if args.rerank is None:
        return method
    model, options = args.rerank
    return Reranked(pair_scorer(model), first=method, **options)


def chosen_counting(args: argparse.Namespace, as_list: bool) -> Counting | None:
    """What is counted of the documents that match, or None if no flag asks for it."""
    if args.total is None and args.facets is None:
        return None
    flag = "--facets" if args.facets is not None else "--total"
    if not as_list and args.output_format != "json":
        raise ArgumentError(f"{flag} has no place in a run of this format", remedy="use --output-format json")
    if args.method[0] != "operators" or args.rerank is not None:
        raise ArgumentError(f"{flag} counts what the operators find, so it has no use with --method and --rerank")
    return Counting(args.total or TOTALS[0], {} if args.facets is None else read_facets(args.facets))


def run_tag(args: argparse.Namespace, searcher: SignedImpactSearcher) -> str:
    """The chosen name of the run, or the encoder and the flags that differ from the defaults."""
    if args.tag:
        return str(args.tag)
    manifest = searcher.reader.manifest
    parts = ["compneg", short_name(manifest.encoder if manifest else args.encoder or "")]
    method, settings = args.method
    parts += [method] * (method != "operators")
    rerank, options = args.rerank or ("", dict[str, object]())
    chosen = {
        **{name: getattr(args, name) for name in (*_KINDS, *_STRENGTHS, "cpt")},
        "read": args.read and Path(args.read).name,
        "filter": ",".join(one if _is_condition(one) else Path(one).name for one in args.filter) or None,
        **{name: getattr(args, name) for name in (*_ENCODING, *_PRUNING)},
        **settings,
        "judged": Path(settings.get("judged", "")).name or None,
        "rerank": Path(rerank).name or None,
        **{f"rerank_{name}": options[name] for name in ("share", "hits") if name in options},
    }
    for name, value in chosen.items():
        if value not in (None, _DEFAULTS.get(name)):
            parts.append(f"{name.replace('_', '-')}={value}")
    parts += ["remove-query"] * args.remove_query
    return re.sub(r"[^\w.,+=-]+", "_", "-".join(parts))


def _with_filter(topics: list[Topic], args: argparse.Namespace) -> list[Topic]:
    """The topics, with the filter of ``--filter`` in addition to their own."""
    from pyserini_compneg.expression.filters import ID, narrowed, read_conditions, read_ids

    given = None
    if conditions := [one for one in args.filter if _is_condition(one)]:
        given = narrowed(None, read_conditions(conditions))
    for path in (one for one in args.filter if not _is_condition(one)):
        if path != "-" and not os.path.exists(path):
            what, remedy = "no such file of ids", "a condition is FIELD=VALUE, FIELD>=VALUE or FIELD<VALUE"
            raise ArgumentError(what, where=f"--filter {shown(path)}", remedy=remedy)
        given = narrowed(given, {ID: read_ids(path)})
    if given is None:
        return topics
    made = []
    for topic in topics:
        try:
            made.append(replace(topic, filter=narrowed(topic.filter, given)))
        except ArgumentError as error:
            raise error.at(topic.source).recast(InputError) from None
    return made


def _is_condition(filter: str) -> bool:
    return not {"=", "<", ">"}.isdisjoint(filter) and not os.path.exists(filter)


def chosen_settings(args: argparse.Namespace) -> SearchSettings:
    return SearchSettings(
        Operators(**given_options(Operators, args)),
        model_options=flags.chosen_model_options(args),
        **given_options(SearchSettings, args),
    )


def inputs(args: argparse.Namespace, *others: str | None) -> list[str]:
    """The files and folders that a query command must not replace: index, topics, encoder, filter, and others."""
    files = [one for one in args.filter if not _is_condition(one)]
    return list(filter(None, (args.index, args.topics, *places(args.encoder or ""), *files, *others)))


def open_searcher(args: argparse.Namespace) -> SignedImpactSearcher:
    """The searcher of ``--index``, with the chosen encoder and settings."""
    settings = chosen_settings(args)
    searcher = open_index(args, {name: getattr(settings, name) for name in SearchSettings.__slots__})
    if args.read == "model" and (language := searcher.language) != ENGLISH:
        searcher.close()
        what = f"--read model reads English, and the language of {args.index} is {language}"
        raise ArgumentError(what, remedy="write an expression, or give --read llm or a reader of your own")
    return searcher


def chosen_topics(args: argparse.Namespace, qid: str | None = None) -> list[Topic]:
    """The topics of ``--topics`` or ``--query``, parsed as ``--read`` says; with ``qid``, only the topic with that id.

    Warns of words that look like operators but are searched as text.
    """
    from pyserini_compneg.topics.topics import read_text, read_topics
    from pyserini_compneg.topics.unread import notes_on

    by_model = args.read not in (None, "expression", "plain")
    skip = getattr(args, "on_error", "stop") == "skip"
    read = "plain" if by_model else args.read
    if args.query is not None:
        if args.topic_field is not None:
            raise ArgumentError("--topic-field has no use with --query", remedy="it is for --topics")
        topics = [read_text("1", args.query, read or "expression")]
    else:
        topics = read_topics(args.topics, read, skip=skip, field=args.topic_field)
    if qid is not None:
        topics = [_only(topics, qid, args.topics)]
    if by_model:
        topics = _read_by_model(topics, args.read)
    topics = _with_filter(topics, args)
    for note in notes_on(topics):
        _logger.warning("%s", note)
    return topics


def _only(topics: list[Topic], qid: str, path: str) -> Topic:
    qids = [topic.qid for topic in topics]
    if qid not in qids:
        listed = ", ".join(qids[:3]) + (", ..." if len(qids) > 3 else "")
        raise InputError(f"no query {shown(qid)} among its {len(qids)}: {listed}", where=path)
    return topics[qids.index(qid)]


def _read_by_model(topics: list[Topic], name: str) -> list[Topic]:
    """The topics with their plain texts decomposed. One warning lists texts that may be misread."""
    from pyserini_compneg.reading import reader, warn_of_doubts
    from pyserini_compneg.topics.topics import decompose_topics

    read = reader(name)
    topics = decompose_topics(topics, read) if read else topics
    warn_of_doubts({topic.qid: topic.decomposition for topic in topics if topic.decomposition is not None})
    return topics
