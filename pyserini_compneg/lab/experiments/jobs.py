"""What is run for the rows of a protocol: searches, kept as run files, and the values of rows that are tuned."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pyserini_compneg.baselines import ComposingMethod, Reranked, dense_model_hash, make_method
from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.encode.models import cache_home
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.measures import mean
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.expression import Atom, Filter
from pyserini_compneg.expression.filters import ID
from pyserini_compneg.lab.experiments.dense import DenseMethod
from pyserini_compneg.lab.experiments.evaluation import RowRun
from pyserini_compneg.lab.experiments.kept_runs import kept_run
from pyserini_compneg.lab.experiments.protocol import ROW_METHODS, Protocol, Reading, RowPlan, SectionPlan
from pyserini_compneg.lab.experiments.word_space import WordSpace, WordSpaceMethod
from pyserini_compneg.lab.experiments.workplace import Engine, Workplace
from pyserini_compneg.reading import reader
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.search.searcher import Method
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.progress import gathered_warnings, progress
from pyserini_compneg.topics.batch import answers, topic_query
from pyserini_compneg.topics.topic_runs import search_batch
from pyserini_compneg.topics.topics import Topic, decompose_topics

Plan: TypeAlias = tuple[SectionPlan, list[Topic]]
"""A section with its queries."""

WORDS = "the documents' words, format 1"
"""What rankings in a word space depend on besides the documents; a change of the space changes it."""


class Job(NamedTuple):
    """A row with an encoder.

    Attributes:
        plan: The row, at one value of its sweep.
        name: Its name, with the encoder where there are several.
        search: Gives rankings of topics.
        compose: Composes a query of terms; None where there are no terms.
        depends_on: What rankings depend on besides the topics.
    """

    plan: RowPlan
    name: str
    search: Callable[[Sequence[Topic], int], dict[str, list[Hit]]]
    compose: Callable[[Topic], ScoringNode] | None
    depends_on: Mapping[str, object]


@dataclass
class Jobs:
    """Runs the rows of a protocol.

    Args:
        protocol: The protocol.
        engines: The encoders of the command; each row that names no model is run with each of them.
        models: The folders of trained models, by the names that rows give them.
        tuning: The workplace of the split on which rows are tuned; None where none is.

    Attributes:
        seconds: How long it took to make runs.
        made: How many runs of rows were made; the others were there already.
    """

    protocol: Protocol
    engines: Sequence[Engine]
    models: Mapping[str, Path]
    tuning: Workplace | None = None
    seconds: float = 0.0
    made: int = 0
    _read: dict[tuple[int, Reading], Mapping[str, Topic]] = field(default_factory=dict, init=False)

    def run(self, plans: Sequence[Plan], workplace: Workplace) -> list[list[RowRun]]:
        """The runs of each section."""
        rows = [[(row, engine) for row in section.rows for engine in self._engines(row)] for section, _ in plans]
        for row, _ in chain(*rows):
            self._readings(workplace, row.reads)  # before the first search: one that fails ends the work at once
        ran = []
        with progress(None, sum(map(len, rows)), " runs", self.protocol.name) as bar:
            for (section, topics), own in zip(plans, rows, strict=True):
                done = []
                for row, engine in own:
                    job = self._job(self._chosen(section, row, engine), engine, workplace)
                    done.append(self._ran(section, job, topics, workplace)._replace(plan=row))
                    bar.update()
                ran.append(done)
        return ran

    def _engines(self, row: RowPlan) -> Sequence[Engine | None]:
        """The encoders of a row; None for a method that has its own."""
        if row.method is None:
            return []
        if isinstance(make_method(ROW_METHODS, row.method, row.settings), DenseMethod | WordSpaceMethod):
            return [None]
        return self.engines if row.model is None else [Engine(str(self.models[row.model]))]

    def _job(self, row: RowPlan, engine: Engine | None, workplace: Workplace) -> Job:
        """A row as it is run with an encoder, whose index is built here."""
        method = make_method(ROW_METHODS, row.method or "", row.settings)
        depends_on: dict[str, object] = {"method": row.method, "settings": row.settings, "ablation": row.ablation}

        def words() -> WordSpace:
            return workplace.words

        if isinstance(method, WordSpaceMethod):
            depends_on |= {"words": WORDS, "collection": workplace.collection_key}
            return Job(row, row.title, partial(method.search, words), partial(method.compose, words), depends_on)
        if isinstance(method, DenseMethod):
            encoder = workplace.models.dense if row.model is None else str(self.models[row.model])
            depends_on["dense"] = workplace.dense_fingerprint(encoder)
            return Job(row, row.title, partial(method.search, lambda: workplace.dense(encoder)), None, depends_on)
        assert engine is not None, "sparse methods have an encoder"
        weight = workplace.model_weight if row.model_weight is None else row.model_weight
        searcher = workplace.searcher(engine, row.ablation, weight)
        compose = partial(_composed, searcher, method) if isinstance(method, ComposingMethod) else None
        if row.rerank:
            documents = _judged(workplace) if row.rerank_judged else row.rerank_hits
            depends_on["rerank"] = [row.rerank, documents, dense_model_hash(workplace.models.reranker)]
            compose = None
        name = f"{row.title} [{engine.label}]" if engine.label else row.title
        share = {"model weight": weight} if engine.is_hybrid and weight is not None else {}
        search = partial(_searched, workplace, searcher, method, row)
        return Job(row, name, search, compose, depends_on | share | workplace.depends_on(engine))

    def _ran(self, section: SectionPlan, job: Job, topics: Sequence[Topic], workplace: Workplace) -> RowRun:
        read, started = self._readings(workplace, job.plan.reads), time.monotonic()
        asked = [read[topic.qid] for topic in topics]
        name = f"{section.title}-{job.name}" if workplace is not self.tuning else f"tuning-{section.title}-{job.name}"
        with gathered_warnings(f"row {job.name!r} of {section.title!r}"):
            path, there = kept_run(workplace.folder, name, job.depends_on, asked, job.search, self.protocol.hits)
        if not there:
            self.seconds += time.monotonic() - started
            self.made += workplace is not self.tuning
        relative = path.relative_to(workplace.folder).as_posix()
        return RowRun(job.plan, job.name, relative, read_run(path), read, job.compose)

    def _chosen(self, section: SectionPlan, row: RowPlan, engine: Engine | None) -> RowPlan:
        """A row that is tuned at the value of the highest mean of the main measure; the first of equal ones."""
        if not row.tuned:
            return row
        workplace = self.tuning
        assert workplace is not None, "protocols with tuned rows have a split for it"
        topics = [topic for topic in section.of(workplace.topics) if topic.qid in workplace.qrels]
        if not topics:
            where = f"{workplace.dataset.folder}: split {workplace.split}"
            raise InputError(f"{where} has no judged query of {section.title!r}, to tune {row.name!r} on")
        qrels = {topic.qid: workplace.qrels[topic.qid] for topic in topics}
        (measure,) = parse_measures(self.protocol.measures[:1])
        best, most = row, float("-inf")
        for candidate in row.at_each_value():
            ran = self._ran(section, self._job(candidate, engine, workplace), topics, workplace)
            value = mean(evaluate(qrels, ran.run, [measure]), measure, list(qrels))
            if value > most:
                best, most = candidate, value
        sweep = best.sweep
        assert sweep is not None, "a row that is tuned has a sweep"
        return best.model_copy(update={"name": f"{row.title} {sweep.symbol} = {sweep.values[0]:g}", "sweep": None})

    def _readings(self, workplace: Workplace, reads: Reading) -> Mapping[str, Topic]:
        key = id(workplace), reads
        if key not in self._read:
            self._read[key] = topics_as(reads, workplace.topics)
        return self._read[key]


def _composed(searcher: SignedImpactSearcher, method: ComposingMethod, topic: Topic) -> ScoringNode:
    return method.compose(searcher, [topic_query(topic)])[0]


def _searched(
    workplace: Workplace,
    searcher: SignedImpactSearcher,
    method: Method,
    row: RowPlan,
    topics: Sequence[Topic],
    k: int,
) -> dict[str, list[Hit]]:
    if row.rerank:  # the model is loaded only where a run has to be made
        hits = row.rerank_hits
        if row.rerank_judged:
            judged = _judged(workplace)
            hits = max(1, *map(len, judged.values()))
            topics = [_among(topic, judged.get(topic.qid, [])) for topic in topics]
        method = Reranked(workplace.reranker, row.rerank, hits, method)
    return answers(topics, lambda batch: search_batch(searcher, batch, k, workplace.threads, method), None)


def _judged(workplace: Workplace) -> dict[str, list[str]]:
    return {qid: sorted(judgements) for qid, judgements in sorted(workplace.qrels.items())}


def _among(topic: Topic, docids: Sequence[str]) -> Topic:
    some = Filter({ID: docids})
    return replace(topic, filter=some if topic.filter is None else topic.filter & some)


def topics_as(reads: Reading, topics: Sequence[Topic]) -> Mapping[str, Topic]:
    """The topics by their ids, with what is made of their texts.

    Call it once for all topics: each call with ``llm`` makes a new reader, which counts failures of its own.

    Args:
        reads: As in a row of a protocol.
        topics: The topics of a dataset.

    Raises:
        QueryError: There is no language model in the environment.
    """
    read: Sequence[Topic] = topics
    if reads != "expression":
        read = [replace(topic, expression=Atom(topic.text), composed=None, plain=True) for topic in topics]
    if take_apart := reader(reads, cache_home()):
        read = decompose_topics(read, take_apart)
    return {topic.qid: topic for topic in read}
