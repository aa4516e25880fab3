"""Runs a protocol: every method answers the queries of its sections, and its runs are scored."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.encode.models.cache import cache_home
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.experiments.dense import DenseMethod
from pyserini_compneg.experiments.evaluation import Evaluator, RowRun
from pyserini_compneg.experiments.kept_runs import kept_run
from pyserini_compneg.experiments.methods import DENSE, Context, Method, make_method
from pyserini_compneg.experiments.protocol import Protocol, Reading, RowPlan, SectionPlan
from pyserini_compneg.experiments.results import Section
from pyserini_compneg.experiments.workplace import Workplace, index_fingerprint
from pyserini_compneg.expression import Atom
from pyserini_compneg.expression.topics import Topic, decompose_topics
from pyserini_compneg.progress import progress
from pyserini_compneg.reading import or_undivided, reader


@dataclass(frozen=True, slots=True)
class Engine:
    """An encoder and the index of its documents.

    Attributes:
        encoder: As ``--encoder`` takes it.
        index: An index that is there already; None to build one.
        label: What distinguishes its rows; empty where it is the only one.
    """

    encoder: str
    index: Path | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class SectionRun:
    """A section that was run.

    Attributes:
        plan: The section.
        topics: Its queries.
        rows: The rows with a method.
        section: The figures.
    """

    plan: SectionPlan
    topics: Sequence[Topic]
    rows: Sequence[RowRun]
    section: Section


class ProtocolRun(NamedTuple):
    """A protocol that was run.

    Attributes:
        sections: Its sections.
        seconds: How long it took to make runs.
        made: How many runs were made. The other runs were there already.
    """

    sections: list[SectionRun]
    seconds: float
    made: int


def run_protocol(
    protocol: Protocol, workplace: Workplace, engines: Sequence[Engine], skip: frozenset[str]
) -> ProtocolRun:
    """Runs all sections whose queries the split has.

    Args:
        protocol: What to run.
        workplace: Has the dataset, and keeps indexes and runs.
        engines: The encoders; each row is run with each of them.
        skip: Methods whose rows are left out.

    Raises:
        ProtocolError: The split has none of the queries, or lacks templates, or a method or a setting is unknown.
        CompNegError: Whatever building an index or searching raises.
    """
    evaluator = Evaluator(protocol.measures, workplace)
    plans = [(section, topics) for section in protocol.sections if (topics := members(section, workplace.topics))]
    if not plans:
        raise ProtocolError(
            f"{workplace.dataset.folder}: split {workplace.split} has no query of protocol {protocol.name}: "
            f"{', '.join(repr(name) for section in protocol.sections for name in section.templates)}"
        )
    needed = {row.reads for section, _ in plans for row in section.rows if row.method and row.method not in skip}
    readings = {reads: topics_as(reads, workplace.topics) for reads in sorted(needed)}
    jobs = [_jobs(section, engines, skip, workplace) for section, _ in plans]
    if not any(jobs):
        raise ProtocolError(f"protocol {protocol.name}: all of its methods ({', '.join(sorted(skip))}) are left out")
    seconds, made, sections = 0.0, 0, []
    with progress(None, sum(map(len, jobs)), " runs", protocol.name) as bar:
        for (plan, topics), rows in zip(plans, jobs, strict=True):
            ran = []
            for job in rows:
                started = time.monotonic()
                read = readings[job.plan.reads]
                asked = [read[topic.qid] for topic in topics]
                name = f"{plan.title}-{job.name}"
                path, was_there = kept_run(
                    workplace.folder, name, job.depends_on, asked, job.method.search, protocol.hits
                )
                if not was_there:
                    seconds, made = seconds + time.monotonic() - started, made + 1
                ran.append(RowRun(job.plan, job.name, job.method, path, read_run(path), read))
                bar.update()
            if ran:
                sections.append(SectionRun(plan, topics, ran, evaluator.section(plan, topics, ran)))
    return ProtocolRun(sections, seconds, made)


def topics_as(reads: Reading, topics: Sequence[Topic]) -> Mapping[str, Topic]:
    """The topics by their ids, with what is made of their texts.

    Call it once for all topics: each call with ``llm`` makes a new reader, which counts failures of its own.

    Args:
        reads: As in a row of a protocol. A text that only says what it does not ask for stays one atom.
        topics: The topics of a dataset.

    Raises:
        DecompositionError: There is no language model in the environment.
    """
    read: Sequence[Topic] = topics
    if reads != "expression":
        read = [replace(topic, expression=Atom(topic.text), composed=None, plain=True) for topic in topics]
    if take_apart := reader(reads, cache_home()):
        read = decompose_topics(read, or_undivided(take_apart))
    return {topic.qid: topic for topic in read}


def members(section: SectionPlan, topics: Sequence[Topic]) -> list[Topic]:
    """The queries of a section, among those of a split."""
    return [topic for topic in topics if not section.templates or topic.group in section.templates]


class _Job(NamedTuple):
    plan: RowPlan
    name: str
    method: Method
    depends_on: Mapping[str, object]


def _jobs(section: SectionPlan, engines: Sequence[Engine], skip: frozenset[str], workplace: Workplace) -> list[_Job]:
    """Makes all methods of a section before any is run, so that a wrong setting is known at once."""
    jobs = []
    for row in section.rows:
        if row.method is None or row.method in skip:
            continue
        depends_on: dict[str, object] = {"method": row.method, "settings": row.settings, "ablation": row.ablation}
        if row.method == DENSE:
            method: Method = DenseMethod(workplace.dense, row.settings)
            jobs.append(_Job(row, row.title, method, depends_on | {"dense": workplace.dense_fingerprint()}))
            continue
        for engine in engines:
            searcher = workplace.searcher(engine.encoder, engine.index, row.ablation)
            method = make_method(row.method, row.settings, Context(searcher, workplace.threads))
            encoded = {
                "encoder": workplace.encoder_fingerprint(engine.encoder),
                "index": index_fingerprint(searcher.reader.folder),
            }
            name = f"{row.title} [{engine.label}]" if engine.label else row.title
            jobs.append(_Job(row, name, method, depends_on | encoded))
    return jobs
