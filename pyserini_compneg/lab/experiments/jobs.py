"""Runs the rows of a protocol: searches, whose run files are kept, and the choice of values for tuned rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from pyserini_compneg.baselines import RERANKED, ComposingMethod, Reranked, dense_model_hash, make_method
from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.eval import evaluate, mean, parse_measures, read_run
from pyserini_compneg.expression import ID, Atom, Filter, atoms
from pyserini_compneg.lab.experiments.dense import DenseMethod
from pyserini_compneg.lab.experiments.evaluation import heaviest_terms
from pyserini_compneg.lab.experiments.inputs import WORD_SPACE
from pyserini_compneg.lab.experiments.protocol import ProtocolPlan, SectionPlan
from pyserini_compneg.lab.experiments.results import RowRun, Section
from pyserini_compneg.lab.experiments.rows import ROW_METHODS, Read, RowPlan
from pyserini_compneg.lab.experiments.run_cache import cached_run
from pyserini_compneg.lab.experiments.run_folder import Engine, RunFolder
from pyserini_compneg.lab.experiments.word_space import WordSpaceMethod
from pyserini_compneg.reading import reader
from pyserini_compneg.search import Hit, Method, SignedImpactSearcher
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.progress import gathered_warnings, progress
from pyserini_compneg.topics import Topic, decompose_topics, find_each, search_batch, topic_query

WORDS = "the documents' words, format 1"
"""The version of word spaces, an input of their rankings besides the documents. It changes with the space."""

_logger = logging.getLogger(__name__)


@dataclass
class Jobs:
    """Runs the rows of a protocol, and counts the new runs of the report."""

    protocol: ProtocolPlan
    run_folder: RunFolder
    tuning: RunFolder | None = None  # for the split on which rows are tuned
    seconds: float = 0.0
    made: int = 0
    _read: dict[tuple[int, Read], Mapping[str, Topic]] = field(default_factory=dict, init=False)

    def run(self, sections: Sequence[Section]) -> None:
        """Adds the runs of their rows to the sections, or the terms of a section's query."""
        encoders = self.run_folder.options.encoders
        runs = [(row, encoders(row)) for section in sections for row in section.plan.rows]
        for row, of_row in runs:
            if of_row:  # before the first search: a failing reader ends the work immediately
                self._readings(row, self.run_folder)
        total = sum(len(of_row) for _, of_row in runs)  # the first run of an encoder builds its index
        with progress(None, total, " runs", self.protocol.name, even=False) as bar:
            for section in sections:
                add = self._shown if section.plan.query else self._reported
                for row in section.plan.rows:
                    if row.method is None:
                        section.rows.append(RowRun(row, row.title))
                    for engine in encoders(row):
                        section.rows.append(add(section, row, engine))
                        bar.update()

    def _shown(self, section: Section, row: RowPlan, engine: Engine) -> RowRun:
        """A row with the heaviest terms of the section's query. Adds the terms of its atoms to a drawn section."""
        compose = _ranking(row, engine, self.run_folder).compose
        assert compose is not None, "rows of sections with a query have operators"
        (topic,) = topics_as(_reading(row, self.run_folder), section.topics).values()
        words = atoms(topic.expression) if row.method == WORD_SPACE and topic.expression else []
        if words and (unknown := self.run_folder.words.unknown(words)):
            if not section.rows:  # once for all rows
                said = "section %r has no words: too few documents have %s for a vector"
                _logger.warning(said, section.plan.title, " and ".join(map(repr, unknown)))
            return RowRun(row, row.title)
        found = RowRun(row, _name(row, engine), terms=heaviest_terms(compose(topic)))
        if section.plan.is_drawn and topic.expression is not None:
            asked = {text: replace(topic, expression=Atom(text)) for text in atoms(topic.expression)}
            section.atoms[found.name] = {text: heaviest_terms(compose(one)) for text, one in asked.items()}
        return found

    def _reported(self, section: Section, row: RowPlan, engine: Engine) -> RowRun:
        """The run of a row. A tuned row has the best value of its sweep."""
        best = self._best(section.plan, row, engine) if row.tuned else row
        found = self._run(section.plan, best, engine, section.topics, self.run_folder)
        if row.tuned and self.tuning is not None:
            note = f"Of several values, the one with the best {self.protocol.measures[0]} on {self.tuning.split}."
            found.plan = row.model_copy(update={"note": f"{row.note} {note}".strip()})
        return found

    def _run(
        self, plan: SectionPlan, row: RowPlan, engine: Engine, topics: Sequence[Topic], run_folder: RunFolder
    ) -> RowRun:
        """The run of a row at one value of its sweep, with an encoder. Builds the encoder's index if necessary."""
        ranking, name = _ranking(row, engine, run_folder), _name(row, engine)
        read, started = self._readings(row, run_folder), time.monotonic()
        asked = [read[topic.qid] for topic in topics]
        file = f"{plan.title}-{name}" if run_folder is not self.tuning else f"tuning-{plan.title}-{name}"
        with gathered_warnings(f"row {name!r} of {plan.title!r}"):
            inputs, hits = ranking.inputs, self.protocol.hits
            path, there = cached_run(run_folder.folder, file, inputs, asked, ranking.search, hits)
        if not there:
            self.seconds += time.monotonic() - started
            self.made += run_folder is not self.tuning
        return RowRun(row, name, path.relative_to(run_folder.folder).as_posix(), read_run(path), read, ranking.compose)

    def _best(self, plan: SectionPlan, row: RowPlan, engine: Engine) -> RowPlan:
        """A tuned row at the value with the highest mean of the main measure. Of equal means, the first wins."""
        run_folder = self.tuning
        assert run_folder is not None, "protocols with tuned rows have a split for it"
        topics = [topic for topic in plan.of(run_folder.topics) if topic.qid in run_folder.qrels]
        if not topics:
            said = f"split {run_folder.split} has no judged query of {plan.title!r}, to tune {row.name!r} on"
            raise InputError(said, where=run_folder.dataset.folder)
        qrels = {topic.qid: run_folder.qrels[topic.qid] for topic in topics}
        (measure,) = parse_measures(self.protocol.measures[:1])
        values = []
        for candidate in row.at_each_value():
            run = self._run(plan, candidate, engine, topics, run_folder).run
            values.append((mean(evaluate(qrels, run, [measure]), measure, list(qrels)), candidate))
        best = max(values, key=lambda one: one[0])[1]
        assert best.sweep is not None, "a row that is tuned has a sweep"
        name = f"{row.title} {best.sweep.symbol} = {best.sweep.values[0]:g}"
        return best.model_copy(update={"name": name, "sweep": None})

    def _readings(self, row: RowPlan, run_folder: RunFolder) -> Mapping[str, Topic]:
        key = id(run_folder), (reads := _reading(row, run_folder))
        if key not in self._read:
            self._read[key] = topics_as(reads, run_folder.topics)
        return self._read[key]


def _settings_of_key(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings of a row, with the names of operators in release 1.0, so that its runs are reused."""
    is_renamed = settings.get("intersection") == "cpt-maxpool"
    return {**settings, "intersection": "disentangled"} if is_renamed else settings


def _name(row: RowPlan, engine: Engine) -> str:
    return f"{row.title} [{engine.label}]" if engine.label else row.title


def _reading(row: RowPlan, run_folder: RunFolder) -> Read:
    return run_folder.options.read if row.reads == "expression" else row.reads


class _Ranking(NamedTuple):
    """How a row ranks, and the inputs of its rankings besides the topics."""

    search: Callable[[Sequence[Topic], int], dict[str, list[Hit]]]
    compose: Callable[[Topic], ScoringNode] | None  # None without query terms
    inputs: dict[str, object]


def _ranking(row: RowPlan, engine: Engine, run_folder: RunFolder) -> _Ranking:
    method = make_method(ROW_METHODS, row.method or "", row.settings)
    settings = _settings_of_key(row.settings)
    inputs: dict[str, object] = {"method": row.method, "settings": settings, "ablation": row.ablation}
    match method:
        case WordSpaceMethod():
            inputs |= {"words": WORDS, "collection": run_folder.collection_key}
            words = partial(getattr, run_folder, "words")
            return _Ranking(partial(method.search, words), partial(method.compose, words), inputs)
        case DenseMethod():
            inputs["dense"] = run_folder.dense_fingerprint(engine.encoder, row.similarity)
            index = partial(run_folder.dense, engine.encoder, row.similarity)
            return _Ranking(partial(method.search, index), None, inputs)
    weight = run_folder.options.model_weight if row.model_weight is None else row.model_weight
    searcher = run_folder.searcher(engine, row.ablation, weight)
    if engine.is_hybrid and weight is not None:
        inputs["model weight"] = weight
    if row.rerank:
        documents = _judged(run_folder) if row.rerank_judged else RERANKED
        inputs["rerank"] = [row.rerank, documents, dense_model_hash(run_folder.options.reranker_name)]
    compose = None
    if isinstance(method, ComposingMethod) and not row.rerank:
        compose = partial(_composed, searcher, method)
    search = partial(_searched, run_folder, searcher, method, row)
    return _Ranking(search, compose, inputs | run_folder.depends_on(engine, searcher.reader.folder))


def _composed(searcher: SignedImpactSearcher, method: ComposingMethod, topic: Topic) -> ScoringNode:
    return method.compose(searcher, [topic_query(topic)])[0]


def _searched(
    run_folder: RunFolder, searcher: SignedImpactSearcher, method: Method, row: RowPlan, topics: Sequence[Topic], k: int
) -> dict[str, list[Hit]]:
    if row.rerank:  # the model is loaded only for new runs
        hits = RERANKED
        if row.rerank_judged:
            judged = _judged(run_folder)
            hits = max(1, *map(len, judged.values()))
            topics = [_among(topic, judged.get(topic.qid, [])) for topic in topics]
        method = Reranked(run_folder.reranker, row.rerank, hits, method)
    return find_each(topics, lambda batch: search_batch(searcher, batch, k, run_folder.options.threads, method), None)


def _judged(run_folder: RunFolder) -> dict[str, list[str]]:
    return {qid: sorted(judgements) for qid, judgements in sorted(run_folder.qrels.items())}


def _among(topic: Topic, docids: Sequence[str]) -> Topic:
    some = Filter({ID: docids})
    return replace(topic, filter=some if topic.filter is None else topic.filter & some)


def topics_as(reads: Read, topics: Sequence[Topic]) -> Mapping[str, Topic]:
    """The topics by their ids, with their texts read in a given way.

    Call this once for all topics: each call with ``llm`` makes a new reader, which counts its own failures.
    """
    read: Sequence[Topic] = topics
    if reads != "expression":
        read = [replace(topic, expression=Atom(topic.text), composed=None, plain=True) for topic in topics]
    if read_texts := reader(reads):
        read = decompose_topics(read, read_texts)
    return {topic.qid: topic for topic in read}
