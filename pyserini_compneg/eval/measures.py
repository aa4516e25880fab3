"""Measures of trec_eval and ir_measures by name, computed by trec_eval's code, and measures of contrast."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pyserini_compneg.eval.contrast import CONTRASTS, PAIRED, Contrast, contrast_values, parse_contrast, partners
from pyserini_compneg.eval.tables import checked_qrels, checked_run
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.terminal import shown, suggestion

DEFAULT_MEASURES = ("ndcg_cut.10", "recall.100")

_LARGEST_CUTOFF = 1_000_000
_NO_DOCUMENT = "\n"
"""A docid with judgement 0, added if a query has only negative judgements: trec_eval would write beyond its arrays."""

_TREC_NAMES = ("ndcg_cut", "recall", "map", "recip_rank", "ndcg", "map_cut", "success")
_EXAMPLES = "ndcg_cut.10, recall.100, map, recip_rank, P.10, nDCG@10, R@100, AP, RR"
_WITH_CUTOFF = {name.lower(): name for name in ("nDCG@10", "nDCG@100", "R@10", "R@100", "R@1000", "P@10", "RR@10")}
_CONTRAST_EXAMPLES = ", ".join(CONTRASTS)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure that is a mean over queries.

    Attributes:
        name: The user's name for the measure, the header of its column.
        definition: The measure of ir_measures to compute, or a :class:`Contrast`.
        reciprocal_rank_cutoff: The rank k of ``RR@k``, which trec_eval does not have; below this rank the value is 0.
    """

    name: str
    definition: Any
    reciprocal_rank_cutoff: int | None = None

    def adjusted(self, value: float) -> float:
        """The value at the cutoff. A reciprocal rank shows whether its rank is below the cutoff."""
        cutoff = self.reciprocal_rank_cutoff
        return 0.0 if cutoff is not None and value * (cutoff + 0.5) < 1 else value


def parse_measures(names: str | Iterable[str]) -> list[Measure]:
    """Parses names of measures. Repeated names count once.

    Args:
        names: One or more names: of trec_eval (``ndcg_cut.10``, ``P.5,10``), of ir_measures (``nDCG@10``), or of
            measures of contrast (``right_rank``, see :func:`~pyserini_compneg.eval.contrast.contrast_values`). Case is
            ignored; the measure then has its usual name.

    Raises:
        InputError: A name is unknown, or trec_eval's code cannot compute the measure.

    >>> [measure.name for measure in parse_measures(["ndcg_cut.10", "R@100", "P.5,10", "ndcg@3"])]
    ['ndcg_cut.10', 'R@100', 'P@5', 'P@10', 'nDCG@3']
    """
    measures: dict[str, Measure] = {}
    for given in [names] if isinstance(names, str) else names:
        name = _spelled(given)
        if contrast := parse_contrast(name):
            _check_cutoff(name, contrast.cutoff)
            measures.setdefault(name, Measure(name, contrast))
            continue
        definitions = _definitions(name)
        for definition in definitions:
            label = name if len(definitions) == 1 else str(definition)
            measures.setdefault(label, _measure(label, definition))
    return list(measures.values())


def evaluate(
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
    measures: str | Sequence[Measure | str],
) -> dict[str, dict[str, float]]:
    """The value of each measure for each query of the judgements, as ``trec_eval -c`` computes them.

    A query that the run lacks scores 0; a query without judgements is ignored (see :func:`coverage`).
    Documents are ranked by score, ties by docid in descending order, whatever the order of the run.

    Args:
        qrels: ``{qid: {docid: relevance}}``. A relevance is a whole number, of any type: ``numpy.int64(1)`` and 1.0
            are 1.
        run: ``{qid: {docid: score}}``. A score is a finite number. In both, whole numbers may be ids: 7 is ``"7"``.
        measures: The measures, or names as :func:`parse_measures` takes them.

    Returns:
        ``{qid: {measure name: value}}``, with the ids of ``qrels``, in the order of ``qrels`` and ``measures``.

    Raises:
        ArgumentError: ``qrels`` or ``run`` is not a mapping, or ``measures`` is not a list of measures.
        InputError: An id, a relevance or a score is wrong; a name is unknown, or a measure of contrast cannot use the
            judgements.

    >>> evaluate({"1": {"a": 1}, "2": {"b": 1}}, {"1": {"c": 2.0, "a": 1.0}}, ["recip_rank"])
    {'1': {'recip_rank': 0.5}, '2': {'recip_rank': 0.0}}
    """
    judged, ranked = checked_qrels(qrels), checked_run(run)
    names = checked_list("measures", [measures] if isinstance(measures, str) else measures)
    if not names:
        raise ArgumentError("measures must name at least one measure, got []")
    for one in names:
        if not isinstance(one, (str, Measure)):
            raise ArgumentError(f"a measure must be a name or a Measure, got {shown(one)}")
    chosen = [one for each in names for one in (parse_measures(each) if isinstance(each, str) else [each])]
    values = _trec_values(
        judged, ranked, [measure for measure in chosen if not isinstance(measure.definition, Contrast)]
    )
    for measure in chosen:
        if isinstance(measure.definition, Contrast):
            values[measure.definition] = contrast_values(measure.definition, judged, ranked)
    return {
        given: {measure.name: measure.adjusted(values[measure.definition][qid]) for measure in chosen}
        for given, qid in zip(qrels, judged, strict=True)
    }


def coverage(qrels: Mapping[str, Any], run: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The queries that the run lacks, and the queries of the run that have no judgements.

    >>> coverage({"1": {}, "2": {}}, {"2": {}, "3": {}})
    (['1'], ['3'])
    """
    return [qid for qid in qrels if qid not in run], [qid for qid in run if qid not in qrels]


def mean(per_query: Mapping[str, Mapping[str, float]], measure: Measure, qids: Sequence[str]) -> float:
    """The mean of a measure over some queries, at least one."""
    return sum(per_query[qid][measure.name] for qid in qids) / len(qids)


def observations(measure: Measure, qrels: Mapping[str, Mapping[str, int]], qids: Sequence[str]) -> list[str]:
    """The queries whose values are independent observations. Of a pair, as in ``paired_accuracy``, the first counts.

    >>> qrels = {"1": {"a": 1, "b": 0}, "2": {"a": 0, "b": 1}}
    >>> [observations(measure, qrels, ["1", "2"]) for measure in parse_measures(["paired_accuracy", "map"])]
    [['1'], ['1', '2']]
    """
    if not isinstance(measure.definition, Contrast) or measure.definition.kind not in PAIRED:
        return list(qids)
    partner = partners(qrels)
    firsts: dict[str, None] = {}
    for qid in qids:
        if partner[qid] not in firsts:
            firsts[qid] = None
    return list(firsts)


def _trec_values(
    qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]], measures: Sequence[Measure]
) -> dict[Any, dict[str, float]]:
    """``{definition: {qid: value}}`` from trec_eval's code, which is loaded only if needed."""
    if not measures:
        return {}
    from ir_measures import pytrec_eval

    values: dict[Any, dict[str, float]] = {}
    judged = {qid: run[qid] for qid in qrels if qid in run}
    safe = {
        qid: {_NO_DOCUMENT: 0, **relevances} if all(value < 0 for value in relevances.values()) else relevances
        for qid, relevances in qrels.items()
    }
    try:
        for metric in pytrec_eval.iter_calc([measure.definition for measure in measures], safe, judged):
            values.setdefault(metric.measure, {})[metric.query_id] = metric.value
    except (AssertionError, KeyError, TypeError, ValueError) as cause:
        names = ", ".join(measure.name for measure in measures)
        raise InputError(f"trec_eval cannot compute one of {names}: {cause}") from None
    return values


def _spelled(name: str) -> str:
    """A name in the measure's usual capitals."""
    for spelled in (name, name.lower()):
        if parse_contrast(spelled):
            return spelled
    from ir_measures.measures import registry

    head = re.split(r"\W", name, maxsplit=1)[0]
    usual = {alias.lower(): str(measure.NAME) for alias, measure in registry.items()}
    for spelled in (name, name.lower(), usual.get(head.lower(), head) + name[len(head) :]):
        if _definitions(spelled):
            return spelled
    known = [*registry, *_TREC_NAMES, *PAIRED, *(contrast.partition("@")[0] for contrast in CONTRASTS)]
    close = ""
    if head not in known and head.lower() not in usual:
        near = get_close_matches(name.lower(), _WITH_CUTOFF, 1, 0.75)
        close = f"; did you mean {_WITH_CUTOFF[near[0]]}?" if near else suggestion(head, known)
    examples = f"expected for example one of {_EXAMPLES}, {_CONTRAST_EXAMPLES}"
    raise InputError(f"unknown measure {shown(name)}{close or f'; {examples}'}")


def _definitions(name: str) -> list[Any]:
    """ir_measures' objects for a name, several for a trec_eval name with several cutoffs; empty for an unknown name."""
    import ir_measures

    if not name.isascii() or re.search("[0-9]_[0-9]", name):  # Python would read these as digits
        return []
    logging.getLogger("ir_measures").setLevel(logging.ERROR)  # it warns of parts of "official" that it leaves out
    for parse in (lambda text: [ir_measures.parse_measure(text)], ir_measures.parse_trec_measure):
        try:
            with redirect_stdout(None):  # where ir_measures prints what it leaves out of "official"
                definitions: list[Any] = parse(name)
        except Exception:  # the text is arbitrary, and the parsers raise various errors
            continue
        if definitions and all(isinstance(definition, ir_measures.Measure) for definition in definitions):
            return definitions
    return []


def _measure(name: str, definition: Any) -> Measure:
    from ir_measures import RR, NumQ, NumRel, NumRet, pytrec_eval

    cutoff = definition.params.get("cutoff")
    _check_cutoff(name, cutoff)
    if definition.NAME == RR.NAME and cutoff is not None:
        uncut = RR(**{key: value for key, value in definition.params.items() if key != "cutoff"})
        return Measure(name, uncut, cutoff)
    try:
        supported = pytrec_eval.supports(definition)
    except (AssertionError, TypeError, ValueError):
        what = f"measure {shown(name)} lacks a parameter that it needs, or has one that it does not take"
        raise InputError(what, remedy=f"expected one like {_EXAMPLES}") from None
    if definition.NAME in {NumQ.NAME, NumRel.NAME, NumRet.NAME} or not supported:
        what = f"measure {shown(name)} is not a mean that trec_eval computes"
        raise InputError(what, remedy=f"expected one like {_EXAMPLES}")
    return Measure(name, definition)


def _check_cutoff(name: str, cutoff: Any) -> None:
    """Refuses cutoffs for which trec_eval's code would abort the process."""
    if cutoff is not None and (not isinstance(cutoff, int) or not 1 <= cutoff <= _LARGEST_CUTOFF):
        raise InputError(f"the cutoff of measure {shown(name)} must be a whole number from 1 to {_LARGEST_CUTOFF}")
