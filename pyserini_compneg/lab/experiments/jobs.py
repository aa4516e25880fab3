"""Runs the rows of a protocol: searches, whose run files are kept, and the choice of values for tuned rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.baselines import RERANKED, ComposingMethod, Reranked, dense_model_hash, make_method
from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.eval import evaluate, mean, parse_measures, read_run
from pyserini_compneg.expression import ID, Atom, Filter, atoms
from pyserini_compneg.lab.experiments.dense import DenseMethod
from pyserini_compneg.lab.experiments.evaluation import heaviest_terms
from pyserini_compneg.lab.experiments.inputs import WORD_SPACE
from pyserini_compneg.lab.experiments.protocol import ROW_METHODS, ProtocolPlan, Read, RowPlan, SectionPlan
from pyserini_compneg.lab.experiments.results import RowRun, Section
from pyserini_compneg.lab.experiments.run_cache import cached_run
from pyserini_compneg.lab.experiments.run_folder import Engine, RunFolder
from pyserini_compneg.lab.experiments.word_space import WordSpace, WordSpaceMethod
from pyserini_compneg.reading import reader
from pyserini_compneg.search import Hit, Method, SignedImpactSearcher
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.progress import gathered_warnings, progress
from pyserini_compneg.topics import Topic, decompose_topics, find_each, search_batch, topic_query

WORDS = "the documents' words, format 1"
"""The version of word spaces, an input of their rankings besides the documents. It changes with the space."""

_logger = logging.getLogger(__name__)

Search: TypeAlias = Callable[[Sequence[Topic], int], dict[str, list[Hit]]]
"""Gives rankings of topics."""


@dataclass
class Jobs:
    """Runs the rows of a protocol, and counts the new runs of the report."""

    protocol: ProtocolPlan
    engines: Sequence[Engine]  # the command's engines; each row without a model runs with each
    models: Mapping[str, Path]  # the folders of trained models, by the names that rows give them
    tuning: RunFolder | None = None  # for the split on which rows are tuned
    seconds: float = 0.0
    made: int = 0
    _read: dict[tuple[int, Read], Mapping[str, Topic]] = field(default_factory=dict, init=False)

    def run(self, sections: Sequence[Section], run_folder: RunFolder) -> None:
        """Adds the runs of their rows to the sections, or the terms of a section's query."""
        engines = [[(row, self._engines(row)) for row in section.plan.rows] for section in sections]
        rows = [one for own in engines for one in own]
        for row, of_row in rows:
            if of_row:  # before the first search: a failing reader ends the work immediately
                self._readings(run_folder, row.reads)
        total = sum(len(of_row) for _, of_row in rows)  # the first run of an encoder builds its index
        with progress(None, total, " runs", self.protocol.name, even=False) as bar:
            for section, own in zip(sections, engines, strict=True):
                for row, of_row in own:
                    if not of_row:
                        section.rows.append(RowRun(row, row.title))
                    for engine in of_row:
                        add = self._shown if section.plan.query else self._reported
                        section.rows.append(add(section, row, engine, run_folder))
                        bar.update()

    def _shown(self, section: Section, row: RowPlan, engine: Engine | None, run_folder: RunFolder) -> RowRun:
        """A row with the heaviest terms of the section's query. Adds the terms of its atoms to a drawn section."""
        _, compose, _ = self._search(row, engine, run_folder)
        assert compose is not None, "rows of sections with a query have operators"
        (topic,) = topics_as(row.reads, section.topics).values()
        words = atoms(topic.expression) if row.method == WORD_SPACE and topic.expression else []
        if words and (unknown := run_folder.words.unknown(words)):
            if not section.rows:  # once for all rows
                said = "section %r has no words: too few documents have %s for a vector"
                _logger.warning(said, section.plan.title, " and ".join(map(repr, unknown)))
            return RowRun(row, row.title)
        found = RowRun(row, _name(row, engine), terms=heaviest_terms(compose(topic)))
        if section.plan.is_drawn and topic.expression is not None:
            asked = {text: replace(topic, expression=Atom(text)) for text in atoms(topic.expression)}
            section.atoms[found.name] = {text: heaviest_terms(compose(one)) for text, one in asked.items()}
        return found

    def _engines(self, row: RowPlan) -> Sequence[Engine | None]:
        """The encoders of a row; None for a method with its own encoder."""
        if row.method is None:
            return []
        if isinstance(make_method(ROW_METHODS, row.method, row.settings), DenseMethod | WordSpaceMethod):
            return [None]
        if row.encoder is not None:
            return [Engine(row.encoder)]
        return self.engines if row.model is None else [Engine(str(self.models[row.model]))]

    def _reported(self, section: Section, row: RowPlan, engine: Engine | None, run_folder: RunFolder) -> RowRun:
        """The run of a row. A tuned row has the best value of its sweep."""
        if not row.tuned:
            return self._run(section.plan, row, engine, section.topics, run_folder)
        assert self.tuning is not None, "protocols with tuned rows have a split for it"
        best = self._run(section.plan, self._best(section.plan, row, engine), engine, section.topics, run_folder)
        note = f"Of several values, the one with the best {self.protocol.measures[0]} on {self.tuning.split}."
        best.plan = row.model_copy(update={"note": f"{row.note} {note}".strip()})
        return best

    def _run(
        self, plan: SectionPlan, row: RowPlan, engine: Engine | None, topics: Sequence[Topic], run_folder: RunFolder
    ) -> RowRun:
        """The run of a row at one value of its sweep, with an encoder. Builds the encoder's index if necessary."""
        search, compose, depends_on = self._search(row, engine, run_folder)
        name = _name(row, engine)
        read, started = self._readings(run_folder, row.reads), time.monotonic()
        asked = [read[topic.qid] for topic in topics]
        file = f"{plan.title}-{name}" if run_folder is not self.tuning else f"tuning-{plan.title}-{name}"
        with gathered_warnings(f"row {name!r} of {plan.title!r}"):
            path, there = cached_run(run_folder.folder, file, depends_on, asked, search, self.protocol.hits)
        if not there:
            self.seconds += time.monotonic() - started
            self.made += run_folder is not self.tuning
        return RowRun(row, name, path.relative_to(run_folder.folder).as_posix(), read_run(path), read, compose)

    def _search(
        self, row: RowPlan, engine: Engine | None, run_folder: RunFolder
    ) -> tuple[Search, Callable[[Topic], ScoringNode] | None, dict[str, object]]:
        """The ranking and composing functions of a row, and the inputs of its rankings besides the topics."""
        method = make_method(ROW_METHODS, row.method or "", row.settings)
        settings = _settings_of_key(row.settings)
        depends_on: dict[str, object] = {"method": row.method, "settings": settings, "ablation": row.ablation}

        def words() -> WordSpace:
            return run_folder.words

        if isinstance(method, WordSpaceMethod):
            depends_on |= {"words": WORDS, "collection": run_folder.collection_key}
            return partial(method.search, words), partial(method.compose, words), depends_on
        if isinstance(method, DenseMethod):
            encoder = row.encoder or (run_folder.dense_name if row.model is None else str(self.models[row.model]))
            depends_on["dense"] = run_folder.dense_fingerprint(encoder, row.similarity)
            return partial(method.search, lambda: run_folder.dense(encoder, row.similarity)), None, depends_on
        assert engine is not None, "sparse methods have an encoder"
        weight = run_folder.model_weight if row.model_weight is None else row.model_weight
        searcher = run_folder.searcher(engine, row.ablation, weight)
        compose = partial(_composed, searcher, method) if isinstance(method, ComposingMethod) else None
        if row.rerank:
            documents = _judged(run_folder) if row.rerank_judged else RERANKED
            depends_on["rerank"] = [row.rerank, documents, dense_model_hash(run_folder.reranker_name)]
            compose = None
        share = {"model weight": weight} if engine.is_hybrid and weight is not None else {}
        search = partial(_searched, run_folder, searcher, method, row)
        return search, compose, depends_on | share | run_folder.depends_on(engine)

    def _best(self, plan: SectionPlan, row: RowPlan, engine: Engine | None) -> RowPlan:
        """A tuned row at the value with the highest mean of the main measure. Of equal means, the first wins."""
        run_folder = self.tuning
        assert run_folder is not None
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

    def _readings(self, run_folder: RunFolder, reads: Read) -> Mapping[str, Topic]:
        key = id(run_folder), reads
        if key not in self._read:
            self._read[key] = topics_as(reads, run_folder.topics)
        return self._read[key]


def _settings_of_key(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings of a row, with the names of operators in release 1.0, so that its runs are reused."""
    is_renamed = settings.get("intersection") == "cpt-maxpool"
    return {**settings, "intersection": "disentangled"} if is_renamed else settings


def _name(row: RowPlan, engine: Engine | None) -> str:
    return f"{row.title} [{engine.label}]" if engine and engine.label else row.title


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
    return find_each(topics, lambda batch: search_batch(searcher, batch, k, run_folder.threads, method), None)


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
