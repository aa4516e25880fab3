"""Runs a protocol on a dataset: every method answers the queries of its sections, and the runs are scored."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from pyserini_compneg.baselines import DenseEncoder, check_dense_model, check_pair_scorer
from pyserini_compneg.compose import DEFAULT_OPERATORS, WEIGHT_SCALE
from pyserini_compneg.encode.models import Head, ModelOptions, NeuralSide, load_checkpoint
from pyserini_compneg.expression import TEMPLATES
from pyserini_compneg.lab.experiments.datasets import Dataset
from pyserini_compneg.lab.experiments.datasets.nevir import EDITS
from pyserini_compneg.lab.experiments.datasets.opening import TITLES
from pyserini_compneg.lab.experiments.dense import similarities
from pyserini_compneg.lab.experiments.evaluation import (
    check_interference,
    examples,
    interference_curve,
    score,
    sweep_curve,
)
from pyserini_compneg.lab.experiments.inputs import (
    ALL_MINILM,
    DENSE,
    LOWER_IS_BETTER,
    MS_MARCO_MINILM,
    SYNONYMS,
    TERM_MEASURES,
    WORD_SPACE,
)
from pyserini_compneg.lab.experiments.jobs import Jobs
from pyserini_compneg.lab.experiments.protocol import ProtocolPlan, Read, RowPlan
from pyserini_compneg.lab.experiments.results import Curve, Results, Section
from pyserini_compneg.lab.experiments.run_folder import Engine, RunFolder
from pyserini_compneg.lab.experiments.splits import reported_split, tuning_split
from pyserini_compneg.lab.experiments.term_measures import WORDNET, TermMeasures, check_wordnet
from pyserini_compneg.lab.experiments.text_statistics import text_statistics
from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.errors import DownloadError, EncodingError, InputError

_PACKAGES = ("pyserini_compneg", "pyserini", "onnxruntime", "torch", "sentence-transformers")
_logger = logging.getLogger(__name__)


def reproduce(
    protocol: ProtocolPlan,
    dataset: Dataset,
    engines: Sequence[Engine],
    folder: Path,
    *,
    split: str | None = None,
    dense_encoder: str | None = None,
    reranker: str | None = None,
    threads: int = 1,
    model_options: ModelOptions | None = None,
    read: Read = "expression",
    model_weight: float | None = None,
    models: Mapping[str, Path] | None = None,
    wordnet: Path | None = None,
    training_split: str | None = None,
    command: str = "",
) -> Results:
    """Runs a protocol. Runs that are already in the folder are reused.

    Each row is run with each engine. ``dense_encoder``, ``reranker`` and ``wordnet`` default to all-MiniLM-L6-v2, a
    cross-encoder of MS MARCO and Debian's folder. If a default is missing, the parts that need it are left out.
    ``read`` says how texts are read in rows that take the dataset's expressions. ``models`` has the folders of trained
    models by their names in the protocol; rows of other models are not run. The report shows ``command``, and how many
    queries ``training_split`` has, which is by default the domain split's or the whole training split.
    """
    models = models or {}
    chosen = reported_split(protocol, dataset, split)
    protocol = _with_models(protocol, models)
    protocol = protocol.changed(lambda row: {"reads": read} if row.reads == "expression" else {})
    tuned_on = tuning_split(protocol, dataset, chosen)
    protocol, left_out = _possible(protocol, dense_encoder, reranker, wordnet)
    _check_weights(protocol, engines)
    open_split = partial(
        RunFolder,
        folder,
        dataset,
        dense=dense_encoder or ALL_MINILM,
        reranker=reranker or MS_MARCO_MINILM,
        threads=threads,
        model_options=model_options,
        model_weight=model_weight,
    )
    with ExitStack() as opened:
        run_folder = opened.enter_context(open_split(split=chosen))
        is_of_words = protocol.queries == "words"
        if is_of_words:
            run_folder.ask_words()
        jobs = Jobs(protocol, engines, models)
        if tuned_on is not None:
            jobs.tuning = opened.enter_context(open_split(split=tuned_on))
        sections = _sections(protocol, run_folder)
        terms = None
        if {*protocol.measures} & {*TERM_MEASURES}:
            texts = {document.docid: document.text or "" for document in run_folder.documents()}
            files = (wordnet or WORDNET) if SYNONYMS in protocol.measures else None
            terms = TermMeasures(texts, run_folder.topics, run_folder.words if is_of_words else None, files)
        jobs.run(sections, run_folder)
        judged = sections if protocol.measures else []
        for section in judged:
            score(section, protocol.measures, run_folder, terms)
        count = protocol.examples
        statistics, distributions = _statistics(protocol, run_folder)
        found = [
            examples(section, protocol.measures[0], count, run_folder.qrels, run_folder.title)
            for section in judged
            if count
        ]
        return Results(
            protocol=protocol.name,
            title=protocol.title,
            about=protocol.about,
            dataset={
                "name": dataset.name,
                "kind": dataset.kind,
                "split": chosen,
                "provenance": dataset.provenance,
                "documents": run_folder.document_count(),
                "queries": len(run_folder.topics),
                **_training(protocol, dataset, training_split),
            },
            settings=_settings(protocol, run_folder, jobs, left_out, read),
            command=command,
            measures=protocol.measures,
            is_papers=chosen in protocol.papers.get(dataset.kind, ()),
            sections=sections,
            curves=[*_curves(protocol, judged, run_folder), *distributions],
            examples=list(chain.from_iterable(found)),
            heads=_heads(protocol, engines, models, model_options),
            seconds=jobs.seconds,
            runs_made=jobs.made,
            statistics=statistics,
            lower_is_better=tuple(name for name in protocol.measures if name in LOWER_IS_BETTER),
            papers_dataset=" or ".join(
                f"{TITLES[kind]} ({', '.join(splits)})" for kind, splits in protocol.papers.items()
            ),
        )


def _with_models(protocol: ProtocolPlan, names: Mapping[str, Path]) -> ProtocolPlan:
    """The protocol without runs of missing models. Their rows are shown if they have published figures."""

    def change(row: RowPlan) -> dict[str, Any] | None:
        if row.method is not None and (row.model is None or row.model in names):
            return {}
        if not row.published and not row.published_terms:
            return None
        missing = f"Published for {row.model}, which is not run here; --train trains it." if row.model else ""
        return {"method": None, "note": f"{row.note} {missing}".strip()}

    changed = protocol.changed(change, some_run=True)
    if not changed.sections:
        said = f"protocol {protocol.name}: all its rows are of trained models, and none is there"
        raise InputError(said, remedy="train them with --train, or name their folder with --models")
    return changed


def _check_weights(protocol: ProtocolPlan, engines: Sequence[Engine]) -> None:
    other = next((engine.encoder for engine in engines if not engine.is_hybrid), None)
    row = next((row for row in protocol.rows if row.model_weight is not None), None)
    if row is not None and other is not None:
        said = f"protocol {protocol.name}: row {row.title!r} says a share of a model"
        raise InputError(said, remedy=f"give --encoder bm25+MODEL, not {other}")


def _possible(
    protocol: ProtocolPlan, dense_encoder: str | None, reranker: str | None, wordnet: Path | None
) -> tuple[ProtocolPlan, str]:
    """The protocol without rows and measures whose default model or WordNet is missing, and a note that names them.

    Raises an error if the user named the missing model or folder, or if nothing else is left.
    """
    said = []
    rows = [row for row in protocol.rows if row.method]
    dense = [row for row in rows if row.method == DENSE and row.model is None and row.encoder is None]
    if dense or protocol.interference is not None:
        parts = ["rows of dense vectors"] * bool(dense)
        parts += ["the curve by similarity"] * (protocol.interference is not None)
        if missing := _missing(check_dense_model, dense_encoder, ALL_MINILM, len(dense) == len(rows)):
            said.append(f"{' and '.join(parts)}: {missing}")
            protocol = protocol.changed(lambda row: None if row in dense else {}, some_run=True)
            protocol = protocol.model_copy(update={"interference": None})
    if any(row.rerank for row in protocol.rows):
        needed = all(row.rerank for row in rows)
        if missing := _missing(check_pair_scorer, reranker, MS_MARCO_MINILM, needed):
            said.append(f"rows that are reranked: {missing}")
            protocol = protocol.changed(lambda row: None if row.rerank else {}, some_run=True)
    for encoder in dict.fromkeys(row.encoder for row in rows if row.encoder):
        own = [row for row in rows if row.encoder == encoder]
        is_dense = own[0].method == DENSE
        check = partial(check_dense_model, similarity=own[0].similarity) if is_dense else load_checkpoint
        if missing := _missing(check, None, encoder, len(own) == len(rows)):
            said.append(f"rows of {encoder}: {missing}")
            protocol = protocol.without_encoders([encoder])
    needed = len(protocol.measures) == 1
    if SYNONYMS in protocol.measures and (missing := _missing(check_wordnet, wordnet, WORDNET, needed)):
        said.append(f"{SYNONYMS}: {missing}")
        at = protocol.measures.index(SYNONYMS)
        protocol = protocol.changed(lambda row: {"published": row.published[:at] + row.published[at + 1 :]})
        protocol = protocol.model_copy(update={"measures": protocol.measures[:at] + protocol.measures[at + 1 :]})
    for message in said:
        _logger.warning("left out: %s", message)
    return protocol, "; ".join(said)


def _missing(check: Callable[[Any], object], name: str | Path | None, default: str | Path, needed: bool) -> str:
    """The reason why a model or folder is unavailable, or an empty text. Raises an error if it was named or needed."""
    try:
        check(name or default)
    except (DownloadError, EncodingError, InputError) as error:
        if name is not None or needed:
            raise
        return str(error)
    return ""


def _training(protocol: ProtocolPlan, dataset: Dataset, split: str | None) -> dict[str, str | int]:
    """The queries of the split for training, of which a model may take a part, and how many exclude something."""
    split = split or next((name for name in ("domain-train", "train") if name in dataset.splits), None)
    if split is None or dataset.of_domain is None or not protocol.models:
        return {}
    try:
        topics = dataset.topics(split)
    except InputError:  # no query of these domains; no model is trained
        return {}
    negated = sum("not" in (topic.group or "").split() for topic in topics)
    _logger.info("%s: %d queries for training (%s), %d of them with NOT", dataset.folder, len(topics), split, negated)
    return {"training split": split, "queries for training": len(topics), "of them with NOT": negated}


def _sections(protocol: ProtocolPlan, run_folder: RunFolder) -> list[Section]:
    """The sections with queries in the split, and these queries."""
    known = {*TEMPLATES, *(topic.group for topic in run_folder.topics)}
    if run_folder.dataset.kind == "nevir":
        known |= {*EDITS}
    folder, split = run_folder.dataset.folder, f"split {run_folder.split}"
    sections = []
    for plan in protocol.sections:
        if unknown := [template for template in plan.templates if template not in known]:
            reason = f"no query has the template {unknown[0]!r}, which is not one of QUEST's"
            raise InputError(f"protocol {protocol.name}, section {plan.title!r}: {folder}: {split}: {reason}")
        topics = plan.of(run_folder.topics)
        if protocol.interference and protocol.interference.section == plan.title and topics:
            check_interference(protocol.interference, topics, run_folder.qrels.keys())
        if topics:
            sections.append(Section(plan, topics))
    if not sections:
        templates = ", ".join(repr(name) for plan in protocol.sections for name in plan.templates)
        raise InputError(f"{split} has no query of protocol {protocol.name}: {templates}", where=folder)
    return sections


def _statistics(
    protocol: ProtocolPlan, run_folder: RunFolder
) -> tuple[dict[str, tuple[float, float | None]], list[Curve]]:
    """The statistics that the protocol names, each with the published figure, and their distribution."""
    if not protocol.statistics:
        return {}, []
    values, curve = text_statistics(run_folder.dataset.kind, run_folder.topics, run_folder.documents())
    return {name: (values[name], published) for name, published in protocol.statistics.items()}, [curve]


def _curves(protocol: ProtocolPlan, sections: Sequence[Section], run_folder: RunFolder) -> Iterator[Curve]:
    plan = protocol.interference
    for section in sections:
        measure = protocol.measures[0]
        if plan is not None and section.plan.title == plan.section:
            compare = partial(similarities, DenseEncoder(run_folder.dense_name))
            yield interference_curve(section, plan.bins, measure, compare)
        if section.plan.sweep_symbol:
            yield sweep_curve(section, measure)


def _heads(
    protocol: ProtocolPlan, engines: Sequence[Engine], models: Mapping[str, Path], options: ModelOptions | None
) -> dict[str, Head]:
    """The heads of the sparse models that were run, by the names of models and encoders; none if no head has signs."""
    sparse = [row for row in protocol.rows if row.method and row.method not in (DENSE, WORD_SPACE)]
    named = {row.model: str(models[row.model]) for row in sparse if row.model}
    if any(not row.model and not row.encoder for row in sparse):
        named |= {engine.label or engine.encoder: engine.encoder for engine in engines if not engine.is_lexical}
    sides = {name: load_checkpoint(place, options).document for name, place in named.items()}
    heads = {name: side.head for name, side in sides.items() if isinstance(side, NeuralSide)}
    return heads if any(head.signed for head in heads.values()) else {}


def _settings(
    protocol: ProtocolPlan, run_folder: RunFolder, jobs: Jobs, left_out: str, read: Read
) -> dict[str, str | int | float]:
    """The inputs of the figures, other than the rows."""
    settings: dict[str, str | int | float] = {"hits": protocol.hits}
    settings |= {f"model {name!r}": str(folder) for name, folder in jobs.models.items()}
    if jobs.tuning is not None:
        settings["tuned on"] = jobs.tuning.split
    own = {DENSE, WORD_SPACE}
    if protocol.methods - own:
        if any(row.method and row.method not in own and not row.model for row in protocol.rows):
            settings |= _encoders(jobs.engines, run_folder)
        if run_folder.model_options is not None:
            settings["model options"] = repr(run_folder.model_options)
        if run_folder.model_weight is not None:
            settings["model weight, where a row does not say"] = run_folder.model_weight
        settings["query weights"] = f"round(weight * {WEIGHT_SCALE:g})"
        settings["operators, where a row does not say"] = ", ".join(
            f"{field.name} {value}"
            for field in fields(DEFAULT_OPERATORS)
            if (value := getattr(DEFAULT_OPERATORS, field.name)) is not None
        )
    if left_out:
        settings["left out"] = left_out
    if protocol.interference or any(row.method == DENSE and not row.encoder for row in protocol.rows):
        settings["dense encoder"] = run_folder.dense_name
    if any(row.rerank for row in protocol.rows):
        settings["reranker"] = run_folder.reranker_name
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


def _encoders(engines: Sequence[Engine], run_folder: RunFolder) -> Iterator[tuple[str, str]]:
    """The encoders and the settings of their indexes. Missing indexes are built."""
    for engine in engines:
        manifest = run_folder.searcher(engine).reader.manifest
        about = {} if manifest is None else {**manifest.settings, "impact scale": manifest.impact_scale}
        values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in about.items()}
        listed = ", ".join(f"{name} {value}" for name, value in values.items())
        name = f"encoder [{engine.label}]" if engine.label else "encoder"
        yield name, f"{engine.encoder} ({listed})" if listed else engine.encoder
