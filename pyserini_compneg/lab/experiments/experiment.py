"""From a protocol and a dataset to results: every method answers the queries of its sections, and runs are scored."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

from pyserini_compneg.baselines import DenseEncoder, check_dense_model, check_pair_scorer
from pyserini_compneg.compose import DEFAULT_OPERATORS, WEIGHT_SCALE
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.expression.marks import TEMPLATES
from pyserini_compneg.lab.experiments.datasets.dataset import Dataset
from pyserini_compneg.lab.experiments.datasets.nevir import EDITS
from pyserini_compneg.lab.experiments.datasets.opening import TITLES
from pyserini_compneg.lab.experiments.dense import similarities
from pyserini_compneg.lab.experiments.evaluation import Evaluator, RowRun
from pyserini_compneg.lab.experiments.jobs import Jobs, Plan
from pyserini_compneg.lab.experiments.per_query import check_interference, examples, interference_curve, sweep_curve
from pyserini_compneg.lab.experiments.protocol import DENSE, WORD_SPACE, Protocol, Reading
from pyserini_compneg.lab.experiments.provided import ALL_MINILM, MS_MARCO_MINILM
from pyserini_compneg.lab.experiments.results import LOWER_IS_BETTER, SYNONYMS, Curve, Results, Section
from pyserini_compneg.lab.experiments.splits import reported_split, tuning_split
from pyserini_compneg.lab.experiments.synonyms import WORDNET, check_wordnet
from pyserini_compneg.lab.experiments.workplace import Engine, Models, Workplace
from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.errors import DownloadError, EncodingError, InputError

_PACKAGES = ("pyserini_compneg", "pyserini", "onnxruntime", "torch", "sentence-transformers")
_logger = logging.getLogger(__name__)


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
    models: Mapping[str, Path] | None = None,
    wordnet: Path | None = None,
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
        threads: As for :meth:`SignedImpactSearcher.batch_search`.
        model_options: How models encode; None for the defaults.
        read: How the texts are read for rows that take the dataset's expressions; ``expression`` leaves them as they
            are.
        model_weight: The share of the model of ``bm25+MODEL``, where a row does not say it; None for the default.
        models: The folders of trained models, by the names that the protocol gives them; rows of others are not run.
        wordnet: The folder of WordNet's files; None for Debian's, without which a protocol loses its synonyms.
        command: What the report shows as the command that made it.

    Raises:
        InputError: A dataset that the protocol is not for, a split without its queries, or no other to tune rows on.
        CompNegError: Whatever reading, building or searching raises.
    """
    chosen = reported_split(protocol, dataset, split)
    protocol = protocol.reading(read).with_models(models or {})
    if not protocol.sections:
        said = "all its rows are of trained models, and none is there; train them with --train"
        raise InputError(f"protocol {protocol.name}: {said}, or name their folder with --models")
    tuned_on = tuning_split(protocol, dataset, chosen)
    protocol, *left_out = _possible(protocol, dense_encoder, reranker)
    protocol, *without_words = _with_synonyms(protocol, wordnet)
    left_out += without_words
    other = next((engine.encoder for engine in engines if not engine.is_hybrid), None)
    if protocol.weighs_model and other is not None:
        rows = [row for section in protocol.sections for row in section.rows if row.model_weight is not None]
        said = f"row {rows[0].title!r} says a share of a model; give --encoder bm25+MODEL, not {other}"
        raise InputError(f"protocol {protocol.name}: {said}")
    dense = dense_encoder or ALL_MINILM
    places = Models(dense, reranker or MS_MARCO_MINILM)
    with ExitStack() as opened:

        def open_split(name: str) -> Workplace:
            place = Workplace(folder, dataset, name, threads, model_options, places, model_weight)
            return opened.enter_context(place)

        workplace = open_split(chosen)
        if protocol.queries == "words":
            workplace.ask_words()
        jobs = Jobs(protocol, engines, models or {})
        if tuned_on is not None:
            jobs.tuning = open_split(tuned_on)
            note = f"Of several values, the one with the best {protocol.measures[0]} on {tuned_on}."
            protocol = jobs.protocol = protocol.noting(note)
        plans = _plans(protocol, workplace)
        neighbours = workplace.words if protocol.queries == "words" else None
        evaluator = Evaluator(protocol.measures, workplace, wordnet or WORDNET, neighbours)
        ran = jobs.run(plans, workplace)
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
            settings=_settings(protocol, workplace, engines, jobs, "; ".join(filter(None, left_out)), read),
            command=command,
            measures=protocol.measures,
            is_papers=chosen in protocol.papers.get(dataset.kind, ()),
            sections=tuple(sections),
            curves=tuple(_curves(protocol, shown, workplace.models.dense)),
            examples=tuple(chain.from_iterable(found)),
            seconds=jobs.seconds,
            runs_made=jobs.made,
            lower_is_better=tuple(name for name in protocol.measures if name in LOWER_IS_BETTER),
            papers_dataset=" or ".join(
                f"{TITLES[kind]} ({', '.join(splits)})" for kind, splits in protocol.papers.items()
            ),
        )


def _with_synonyms(protocol: Protocol, wordnet: Path | None) -> tuple[Protocol, str]:
    """What can be measured, and what is left out because WordNet is not at its usual place; empty for nothing.

    It is an error if the missing folder was named.
    """
    if SYNONYMS not in protocol.measures:
        return protocol, ""
    try:
        check_wordnet(wordnet or WORDNET)
    except InputError as error:
        if wordnet is not None or len(protocol.measures) == 1:
            raise
        message = f"{SYNONYMS}: {error}"
        _logger.warning("left out: %s", message)
        return protocol.without_measure(SYNONYMS), message
    return protocol, ""


def _possible(protocol: Protocol, dense_encoder: str | None, reranker: str | None) -> tuple[Protocol, str]:
    """What can be run, and what is left out because a default model cannot be had; empty for nothing.

    It is an error if the missing model was named, or if nothing else is left.
    """
    said = []
    rows = [row for section in protocol.sections for row in section.rows if row.method]
    dense = [row for row in rows if row.method == DENSE and row.model is None]
    if dense or protocol.interference is not None:
        parts = ["rows of dense vectors"] * bool(dense)
        parts += ["the curve by similarity"] * (protocol.interference is not None)
        if missing := _missing(check_dense_model, dense_encoder, ALL_MINILM, len(dense) == len(rows)):
            said.append(f"{' and '.join(parts)}: {missing}")
            protocol = protocol.without(lambda row: row in dense).model_copy(update={"interference": None})
    if protocol.reranks:
        needed = all(row.rerank for row in rows)
        if missing := _missing(check_pair_scorer, reranker, MS_MARCO_MINILM, needed):
            said.append(f"rows that are reranked: {missing}")
            protocol = protocol.without(lambda row: row.rerank)
    for message in said:
        _logger.warning("left out: %s", message)
    return protocol, "; ".join(said)


def _missing(check: Callable[[str], object], name: str | None, default: str, needed: bool) -> str:
    """Why a model cannot be had; empty if it can.

    Raises:
        EncodingError: It cannot or is of another kind, though it was named or is needed.
        DownloadError: Likewise.
    """
    try:
        check(name or default)
    except (DownloadError, EncodingError) as error:
        if name is not None or needed:
            raise
        return str(error)
    return ""


def _plans(protocol: Protocol, workplace: Workplace) -> list[Plan]:
    """The sections whose queries the split has, with these queries."""
    known = {*TEMPLATES, *(topic.group for topic in workplace.topics)}
    if workplace.dataset.kind == "nevir":
        known |= {*EDITS}
    where = f"{workplace.dataset.folder}: split {workplace.split}"
    plans = []
    for section in protocol.sections:
        if unknown := [template for template in section.templates if template not in known]:
            reason = f"no query has the template {unknown[0]!r}, which is none of QUEST's"
            raise InputError(f"protocol {protocol.name}, section {section.title!r}: {where}: {reason}")
        topics = section.of(workplace.topics)
        if protocol.interference and protocol.interference.section == section.title and topics:
            check_interference(protocol.interference, topics, workplace.qrels.keys())
        if topics:
            plans.append((section, topics))
    if not plans:
        templates = ", ".join(repr(name) for section in protocol.sections for name in section.templates)
        raise InputError(f"{where} has no query of protocol {protocol.name}: {templates}")
    return plans


def _curves(
    protocol: Protocol, shown: Iterable[tuple[Plan, list[RowRun], Section]], dense_encoder: str
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
    protocol: Protocol, workplace: Workplace, engines: Sequence[Engine], jobs: Jobs, left_out: str, read: Reading
) -> dict[str, str | int | float]:
    """What the figures depend on, besides what the rows say."""
    settings: dict[str, str | int | float] = {"hits": protocol.hits}
    for name, folder in jobs.models.items():
        settings[f"model {name!r}"] = str(folder)
    if jobs.tuning is not None:
        settings["tuned on"] = jobs.tuning.split
    if protocol.methods - {DENSE, WORD_SPACE}:
        for engine in engines if protocol.runs_encoders else ():  # asking for a searcher builds its index
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
            f"{field.name} {value}"
            for field in fields(DEFAULT_OPERATORS)
            if (value := getattr(DEFAULT_OPERATORS, field.name)) is not None
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
