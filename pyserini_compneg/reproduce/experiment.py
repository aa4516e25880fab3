"""Runs a protocol: every method on its queries, their runs, their values, and what they differ by."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.progress import progress
from pyserini_compneg.reproduce.dense import DenseMethod
from pyserini_compneg.reproduce.methods import DENSE, Context, make_method
from pyserini_compneg.reproduce.methods.method import Method
from pyserini_compneg.reproduce.protocol import Protocol, RowPlan, SectionPlan
from pyserini_compneg.reproduce.readings import topics_as
from pyserini_compneg.reproduce.results import Section
from pyserini_compneg.reproduce.runs import kept_run
from pyserini_compneg.reproduce.scoring import RanRow, Scorer
from pyserini_compneg.reproduce.versions import code_fingerprint
from pyserini_compneg.reproduce.workplace import Workplace, index_fingerprint


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
class RanSection:
    """A section that was run.

    Attributes:
        plan: The section.
        topics: Its queries.
        rows: The rows with a method.
        section: What they gave.
    """

    plan: SectionPlan
    topics: Sequence[Topic]
    rows: Sequence[RanRow]
    section: Section


class Ran(NamedTuple):
    """A protocol that was run.

    Attributes:
        sections: Its sections.
        seconds: What making runs took.
        made: How many were made; the others were there already.
    """

    sections: list[RanSection]
    seconds: float
    made: int


def run_protocol(protocol: Protocol, place: Workplace, engines: Sequence[Engine], skip: frozenset[str]) -> Ran:
    """Runs all sections whose queries the split has.

    Args:
        protocol: What to run.
        place: Where.
        engines: The encoders; each row is run with each of them.
        skip: Methods whose rows are left out.

    Raises:
        ProtocolError: The split has none of the queries, or lacks templates, or a method or a setting is unknown.
        CompNegError: Whatever building an index or searching raises.
    """
    scorer = Scorer(protocol.measures, place)
    plans = [(section, members(section, place.topics)) for section in protocol.sections]
    plans = [(section, topics) for section, topics in plans if topics]
    if not plans:
        raise ProtocolError(
            f"{place.dataset.folder}: split {place.split} has no query of protocol {protocol.name}: "
            f"{', '.join(repr(name) for section in protocol.sections for name in section.templates)}"
        )
    needed = {row.reads for section, _ in plans for row in section.rows if row.method and row.method not in skip}
    readings = {reads: topics_as(reads, place.topics) for reads in sorted(needed)}
    seconds, made, sections = 0.0, 0, []
    jobs = [_jobs(section, engines, skip, place) for section, _ in plans]
    if not any(jobs):
        raise ProtocolError(f"protocol {protocol.name}: all of its methods ({', '.join(sorted(skip))}) are left out")
    total = sum(map(len, jobs))
    with progress(None, total, " runs", protocol.name) as bar:
        for (plan, topics), rows in zip(plans, jobs, strict=True):
            ran = []
            for job in rows:
                started = time.monotonic()
                read = readings[job.plan.reads]
                path, was_there = _run(job, plan, [read[topic.qid] for topic in topics], place, protocol.hits)
                if not was_there:
                    seconds, made = seconds + time.monotonic() - started, made + 1
                ran.append(RanRow(job.plan, job.name, job.method, path, read_run(path), read))
                bar.update()
            if ran:
                sections.append(RanSection(plan, topics, ran, scorer.section(plan, topics, ran)))
    return Ran(sections, seconds, made)


class _Job(NamedTuple):
    plan: RowPlan
    name: str
    method: Method
    depends_on: Mapping[str, object]


def _jobs(section: SectionPlan, engines: Sequence[Engine], skip: frozenset[str], place: Workplace) -> list[_Job]:
    """Makes all methods of a section before any is run, so that a wrong setting is known at once."""
    jobs = []
    for row in section.rows:
        if row.method is None or row.method in skip:
            continue
        if row.method == DENSE:
            dense = {"dense": place.dense_fingerprint()}
            jobs.append(_Job(row, row.name, DenseMethod(place.dense, row.settings), _depends_on(row) | dense))
            continue
        for engine in engines:
            searcher = place.searcher(engine.encoder, engine.index, row.ablation)
            method = make_method(row.method, row.settings, Context(searcher, place.threads))
            encoded = {
                "encoder": place.encoder_fingerprint(engine.encoder),
                "index": index_fingerprint(searcher.reader.folder),
            }
            name = f"{row.name} [{engine.label}]" if engine.label else row.name
            jobs.append(_Job(row, name, method, _depends_on(row) | encoded))
    return jobs


def _depends_on(row: RowPlan) -> dict[str, object]:
    return {
        "code": code_fingerprint(),
        "method": row.method,
        "settings": dict(row.settings),
        "ablation": row.ablation,
    }


def _run(job: _Job, section: SectionPlan, topics: Sequence[Topic], place: Workplace, hits: int) -> tuple[Path, bool]:
    return kept_run(place.folder, f"{section.title}-{job.name}", job.depends_on, topics, job.method.search, hits)


def members(section: SectionPlan, topics: Sequence[Topic]) -> list[Topic]:
    """The queries of a section, among those of a split."""
    if not section.templates:
        return list(topics)
    return [topic for topic in topics if topic.group in section.templates]
