"""From a protocol and a dataset to results: every method answers the queries of its sections, and runs are scored."""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pyserini_compneg.compose import DEFAULT_OPERATORS, WEIGHT_SCALE, ScoringNode
from pyserini_compneg.compose.batch import answers, topic_query
from pyserini_compneg.encode.dense import DenseEncoder, check_dense_model, dense_model_hash
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.encode.models.cache import cache_home
from pyserini_compneg.errors import DownloadError, EncodingError, ProtocolError
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.experiments.datasets.dataset import Dataset
from pyserini_compneg.experiments.datasets.opening import TITLES
from pyserini_compneg.experiments.dense import DenseMethod, similarities
from pyserini_compneg.experiments.evaluation import Evaluator, RowRun
from pyserini_compneg.experiments.kept_runs import kept_run
from pyserini_compneg.experiments.per_query import check_interference, examples, interference_curve, sweep_curve
from pyserini_compneg.experiments.protocol import DENSE, ROW_METHODS, Protocol, Reading, RowPlan, SectionPlan
from pyserini_compneg.experiments.provided import ALL_MINILM, MS_MARCO_MINILM
from pyserini_compneg.experiments.results import LOWER_IS_BETTER, Curve, Results, Section
from pyserini_compneg.experiments.workplace import Engine, Models, Workplace
from pyserini_compneg.expression import Atom
from pyserini_compneg.expression.marks import TEMPLATES
from pyserini_compneg.expression.topics import Topic, decompose_topics
from pyserini_compneg.lucene import java_class
from pyserini_compneg.progress import progress
from pyserini_compneg.reading import reader
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.search.methods import ComposingMethod, make_method
from pyserini_compneg.search.reranking import Reranked
from pyserini_compneg.search.searcher import Method
from pyserini_compneg.search.topic_runs import search_batch

_PACKAGES = ("pyserini_compneg", "pyserini", "onnxruntime", "torch", "sentence-transformers")
_logger = logging.getLogger(__name__)

_Plan: TypeAlias = tuple[SectionPlan, list[Topic]]
"""A section with its queries."""


def reproduce(
    protocol: Protocol,
    dataset: Dataset,
    engines: Sequence[Engine],
    folder: Path,
    *,
    split: str | None = None,
    dense_encoder: str | None = None,
    reranker: str | None = None,
    threads: int = 1,
    model_options: ModelOptions | None = None,
    read: Reading = "expression",
    model_weight: float | None = None,
    command: str = "",
) -> Results:
    """Runs a protocol, as far as its runs are not in the folder already.

    Args:
        protocol: What to run.
        dataset: The dataset.
        engines: The encoders, with the indexes that are there already; each row is run with each of them.
        folder: Where runs, indexes and judgements are kept.
        split: The split; None for the protocol's first that the dataset has.
        dense_encoder: Encodes for dense rows and for similarities; None for all-MiniLM-L6-v2. Where the latter cannot
            be had, only a protocol's other rows are run.
        reranker: Reranks in the rows that say so; None for a cross-encoder of MS MARCO, if it can be had.
        threads: Queries searched at once.
        model_options: How models encode; None for the defaults.
        read: How the texts are read for rows that take the dataset's expressions; ``expression`` leaves them as they
            are.
        model_weight: The share of the model of ``bm25+MODEL``, where a row does not say it; None for the default.
        command: What the report shows as the command that made it.

    Raises:
        ProtocolError: A dataset that the protocol is not for, or a split without its queries.
        CompNegError: Whatever reading, building or searching raises.
    """
    if dataset.kind not in protocol.datasets:
        kinds = ", ".join(protocol.datasets)
        raise ProtocolError(f"{dataset.folder} is of the kind {dataset.kind}; protocol {protocol.name} is for: {kinds}")
    protocol = protocol.reading(read)
    chosen = split or _split(protocol, dataset)
    dataset.part(chosen)
    protocol, left_out = _possible(protocol, dense_encoder, reranker)
    other = next((engine.encoder for engine in engines if not engine.is_hybrid), None)
    rows = [row for section in protocol.sections for row in section.rows if row.model_weight is not None]
    if rows and other is not None:
        said = f"row {rows[0].title!r} says a share of a model; give --encoder bm25+MODEL, not {other}"
        raise ProtocolError(f"protocol {protocol.name}: {said}")
    dense = dense_encoder or ALL_MINILM
    models = Models(dense, reranker or MS_MARCO_MINILM)
    with Workplace(folder, dataset, chosen, threads, model_options, models, model_weight) as workplace:
        plans = _plans(protocol, workplace)
        evaluator = Evaluator(protocol.measures, workplace)
        ran, seconds, made = _run(protocol, plans, workplace, engines)
        sections = [evaluator.section(plan, topics, rows) for (plan, topics), rows in zip(plans, ran, strict=True)]
        shown = list(zip(plans, ran, sections, strict=True))
        main, count = protocol.measures[0], protocol.examples
        found = [examples(rows, own, main, count, workplace.qrels, workplace.title) for _, rows, own in shown if count]
        return Results(
            protocol=protocol.name,
            title=protocol.title,
            about=protocol.about,
            dataset={
                "name": dataset.name,
                "kind": dataset.kind,
                "split": chosen,
                "provenance": dataset.provenance,
                "documents": workplace.document_count(),
                "queries": len(workplace.topics),
            },
            settings=_settings(protocol, workplace, engines, left_out, read),
            command=command,
            measures=protocol.measures,
            is_papers=chosen in protocol.papers.get(dataset.kind, ()),
            sections=tuple(sections),
            curves=tuple(_curves(protocol, shown, workplace.models.dense)),
            examples=tuple(chain.from_iterable(found)),
            seconds=seconds,
            runs_made=made,
            lower_is_better=tuple(name for name in protocol.measures if name in LOWER_IS_BETTER),
            papers_dataset=" or ".join(
                f"{TITLES[kind]} ({', '.join(splits)})" for kind, splits in protocol.papers.items()
            ),
        )


def _split(protocol: Protocol, dataset: Dataset) -> str:
    if there := [split for split in protocol.splits if split in dataset.splits]:
        return there[0]
    raise ProtocolError(
        f"{dataset.folder}: none of the protocol's splits ({', '.join(protocol.splits)}); "
        f"choose one with --split: {', '.join(dataset.splits)}"
    )


def _possible(protocol: Protocol, dense_encoder: str | None, reranker: str | None) -> tuple[Protocol, str]:
    """What can be run, and what is left out because a default model cannot be had; empty for nothing.

    It is an error if the missing model was named, or if nothing else is left.
    """
    said = []
    if DENSE in protocol.methods or protocol.interference is not None:
        parts = ["rows of dense vectors"] * (DENSE in protocol.methods)
        parts += ["the curve by similarity"] * (protocol.interference is not None)
        if missing := _missing(dense_encoder, ALL_MINILM, protocol.methods == {DENSE}):
            said.append(f"{' and '.join(parts)}: {missing}")
            protocol = protocol.without(lambda row: row.method == DENSE).model_copy(update={"interference": None})
    if protocol.reranks:
        rows = [row for section in protocol.sections for row in section.rows if row.method]
        if missing := _missing(reranker, MS_MARCO_MINILM, all(row.rerank for row in rows)):
            said.append(f"rows that are reranked: {missing}")
            protocol = protocol.without(lambda row: row.rerank)
    for message in said:
        _logger.warning("left out: %s", message)
    return protocol, "; ".join(said)


def _missing(name: str | None, default: str, needed: bool) -> str:
    """Why a model cannot be had; empty if it can.

    Raises:
        EncodingError: It cannot, though it was named or is needed.
        DownloadError: Likewise.
    """
    try:
        check_dense_model(name or default)
    except (DownloadError, EncodingError) as error:
        if name is not None or needed:
            raise
        return str(error)
    return ""


def _plans(protocol: Protocol, workplace: Workplace) -> list[_Plan]:
    """The sections whose queries the split has, with these queries."""
    groups = {topic.group for topic in workplace.topics}
    where = f"{workplace.dataset.folder}: split {workplace.split}"
    plans = []
    for section in protocol.sections:
        if unknown := [template for template in section.templates if template not in {*groups, *TEMPLATES}]:
            reason = f"no query has the template {unknown[0]!r}, which is none of QUEST's"
            raise ProtocolError(f"protocol {protocol.name}, section {section.title!r}: {where}: {reason}")
        topics = [topic for topic in workplace.topics if not section.templates or topic.group in section.templates]
        if protocol.interference and protocol.interference.section == section.title and topics:
            check_interference(protocol.interference, topics, workplace.qrels.keys())
        if topics:
            plans.append((section, topics))
    if not plans:
        templates = ", ".join(repr(name) for section in protocol.sections for name in section.templates)
        raise ProtocolError(f"{where} has no query of protocol {protocol.name}: {templates}")
    return plans


class _Job(NamedTuple):
    plan: RowPlan
    name: str
    search: Callable[[Sequence[Topic], int], dict[str, list[Hit]]]
    compose: Callable[[Topic], ScoringNode] | None
    depends_on: Mapping[str, object]


def _jobs(section: SectionPlan, engines: Sequence[Engine], workplace: Workplace) -> Iterator[_Job]:
    """What is to be run for a section. The indexes that it needs are built here."""
    for row in section.rows:
        if row.method is None:
            continue
        method = make_method(ROW_METHODS, row.method, row.settings)
        weight = workplace.model_weight if row.model_weight is None else row.model_weight
        depends_on: dict[str, object] = {"method": row.method, "settings": row.settings, "ablation": row.ablation}
        if isinstance(method, DenseMethod):
            search = partial(method.search, lambda: workplace.dense)
            yield _Job(row, row.title, search, None, depends_on | {"dense": workplace.dense_fingerprint()})
            continue
        for engine in engines:
            searcher = workplace.searcher(engine, row.ablation, weight)
            compose = partial(_composed, searcher, method) if isinstance(method, ComposingMethod) else None
            name = f"{row.title} [{engine.label}]" if engine.label else row.title
            search = partial(_searched, workplace, searcher, method, row)
            if row.rerank:
                depends_on |= {"rerank": [row.rerank, row.rerank_hits, dense_model_hash(workplace.models.reranker)]}
                compose = None
            share = {"model weight": weight} if engine.is_hybrid and weight is not None else {}
            yield _Job(row, name, search, compose, depends_on | share | workplace.depends_on(engine))


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
        method = Reranked(workplace.reranker, row.rerank, row.rerank_hits, method)
    return answers(topics, lambda batch: search_batch(searcher, batch, k, workplace.threads, method), None)


def _run(
    protocol: Protocol, plans: Sequence[_Plan], workplace: Workplace, engines: Sequence[Engine]
) -> tuple[list[list[RowRun]], float, int]:
    """The runs of each section, how long it took to make runs, and how many were made."""
    jobs = [list(_jobs(section, engines, workplace)) for section, _ in plans]
    readings = {reads: topics_as(reads, workplace.topics) for reads in sorted({job.plan.reads for job in chain(*jobs)})}
    ran, seconds, made = [], 0.0, 0
    with progress(None, sum(map(len, jobs)), " runs", protocol.name) as bar:
        for (section, topics), own in zip(plans, jobs, strict=True):
            rows = []
            for job in own:
                read, started = readings[job.plan.reads], time.monotonic()
                asked = [read[topic.qid] for topic in topics]
                name = f"{section.title}-{job.name}"
                path, was_there = kept_run(workplace.folder, name, job.depends_on, asked, job.search, protocol.hits)
                if not was_there:
                    seconds, made = seconds + time.monotonic() - started, made + 1
                relative = path.relative_to(workplace.folder).as_posix()
                rows.append(RowRun(job.plan, job.name, relative, read_run(path), read, job.compose))
                bar.update()
            ran.append(rows)
    return ran, seconds, made


def topics_as(reads: Reading, topics: Sequence[Topic]) -> Mapping[str, Topic]:
    """The topics by their ids, with what is made of their texts.

    Call it once for all topics: each call with ``llm`` makes a new reader, which counts failures of its own.

    Args:
        reads: As in a row of a protocol.
        topics: The topics of a dataset.

    Raises:
        DecompositionError: There is no language model in the environment.
    """
    read: Sequence[Topic] = topics
    if reads != "expression":
        read = [replace(topic, expression=Atom(topic.text), composed=None, plain=True) for topic in topics]
    if take_apart := reader(reads, cache_home()):
        read = decompose_topics(read, take_apart)
    return {topic.qid: topic for topic in read}


def _curves(
    protocol: Protocol, shown: Iterable[tuple[_Plan, list[RowRun], Section]], dense_encoder: str
) -> Iterator[Curve]:
    plan, measure = protocol.interference, protocol.measures[0]
    for (section, topics), ran, figures in shown:
        if plan is not None and section.title == plan.section:
            yield interference_curve(
                plan, topics, figures, measure, lambda pairs: similarities(DenseEncoder(dense_encoder), pairs)
            )
        if section.sweep_symbol:
            yield sweep_curve(ran, figures, section.sweep_symbol, measure)


def _settings(
    protocol: Protocol, workplace: Workplace, engines: Sequence[Engine], left_out: str, read: Reading
) -> dict[str, str | int | float]:
    """What the figures depend on, besides what the rows say."""
    settings: dict[str, str | int | float] = {"hits": protocol.hits}
    if protocol.methods != {DENSE}:
        for engine in engines:
            manifest = workplace.searcher(engine).reader.manifest
            about = {} if manifest is None else {**manifest.settings, "impact scale": manifest.impact_scale}
            values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in about.items()}
            listed = ", ".join(f"{name} {value}" for name, value in values.items())
            name = f"encoder [{engine.label}]" if engine.label else "encoder"
            settings[name] = f"{engine.encoder} ({listed})" if listed else engine.encoder
        if workplace.model_options is not None:
            settings["model options"] = repr(workplace.model_options)
        if workplace.model_weight is not None:
            settings["model weight, where a row does not say"] = workplace.model_weight
        settings["query weights"] = f"round(weight * {WEIGHT_SCALE:g})"
        settings["operators, where a row does not say"] = ", ".join(
            f"{field.name} {getattr(DEFAULT_OPERATORS, field.name)}" for field in fields(DEFAULT_OPERATORS)
        )
    if left_out:
        settings["left out"] = left_out
    if DENSE in protocol.methods or protocol.interference:
        settings["dense encoder"] = workplace.models.dense
    if protocol.reranks:
        settings["reranker"] = workplace.models.reranker
    settings |= {
        "Python": platform.python_version(),
        "Java": str(java_class("java.lang.System").getProperty("java.version")),
        "Lucene": str(java_class("org.apache.lucene.util.Version").LATEST.toString()),
    }
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            settings[package] = version(package)
    if read != "expression":
        settings["queries"] = f"plain texts, read as {read}"
    return settings
