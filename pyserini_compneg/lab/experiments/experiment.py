"""Runs a protocol on a dataset: every method answers the queries of its sections, and the runs are scored."""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pyserini_compneg.baselines import DenseEncoder
from pyserini_compneg.compose import DEFAULT_OPERATORS, WEIGHT_SCALE
from pyserini_compneg.encode.models import Head, NeuralSide, load_checkpoint
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
from pyserini_compneg.lab.experiments.inputs import DENSE, LOWER_IS_BETTER, SYNONYMS, TERM_MEASURES
from pyserini_compneg.lab.experiments.jobs import Jobs
from pyserini_compneg.lab.experiments.protocol import ProtocolPlan
from pyserini_compneg.lab.experiments.results import Curve, Results, Section
from pyserini_compneg.lab.experiments.rows import OF_TEXTS, OF_TOKENS, RERANKER
from pyserini_compneg.lab.experiments.run_folder import RunFolder, RunOptions
from pyserini_compneg.lab.experiments.splits import reported_split, tuning_split
from pyserini_compneg.lab.experiments.term_measures import WORDNET, TermMeasures
from pyserini_compneg.lab.experiments.text_statistics import text_statistics
from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.errors import InputError

_PACKAGES = ("pyserini_compneg", "pyserini", "onnxruntime", "torch", "sentence-transformers")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Runs protocols on a dataset.

    The folder keeps indexes, runs and judgements, and runs that are already there are reused. The report shows
    ``command``, and the number of queries in ``training_split``: by default the training split of the domains, or else
    the whole training split.
    """

    dataset: Dataset
    folder: Path
    options: RunOptions
    split: str | None = None  # None for the first split of the protocol that the dataset has
    training_split: str | None = None
    command: str = ""

    def run(self, protocol: ProtocolPlan) -> Results:
        """Runs the rows whose models are there, with each engine, and scores them."""
        split = reported_split(protocol, self.dataset, self.split)
        protocol = self._with_models(protocol)
        tuned_on = tuning_split(protocol, self.dataset, split)
        absent = self.options.absent(protocol)
        for message in absent.values():
            _logger.warning("left out: %s", message)
        protocol = protocol.without(absent)
        self._check_weights(protocol)
        opened = partial(RunFolder, self.folder, self.dataset, options=self.options)
        with opened(split=split) as run_folder, opened(split=tuned_on) if tuned_on else nullcontext() as tuning:
            if protocol.queries == "words":
                run_folder.ask_words()
            sections = _sections(protocol, run_folder)
            terms = _term_measures(protocol, run_folder)
            jobs = Jobs(protocol, run_folder, tuning)
            jobs.run(sections)
            for section in sections if protocol.measures else []:
                score(section, protocol.measures, run_folder, terms)
            return self._results(protocol, jobs, sections, "; ".join(absent.values()))

    def _with_models(self, protocol: ProtocolPlan) -> ProtocolPlan:
        """The protocol without runs of missing trained models, and without rows for the other kind of dense model."""
        trained = [need for need in protocol.needs if need.is_trained]
        changed = protocol.without([need for need in trained if need.model not in self.options.models])
        if not changed.sections:
            said = f"protocol {protocol.name}: all its rows are of trained models, and none is there"
            raise InputError(said, remedy="train them with --train, or name their folder with --models")
        return changed.without([OF_TEXTS if self.options.has_late_interaction(changed) else OF_TOKENS])

    def _check_weights(self, protocol: ProtocolPlan) -> None:
        other = next((engine.encoder for engine in self.options.engines if not engine.is_hybrid), None)
        row = next((row for row in protocol.rows if row.model_weight is not None), None)
        if row is not None and other is not None:
            said = f"protocol {protocol.name}: row {row.title!r} says a share of a model"
            raise InputError(said, remedy=f"give --encoder bm25+MODEL, not {other}")

    def _results(self, protocol: ProtocolPlan, jobs: Jobs, sections: Sequence[Section], left_out: str) -> Results:
        run_folder = jobs.run_folder
        judged = sections if protocol.measures else []
        statistics, distributions = _statistics(protocol, run_folder)
        return Results(
            protocol=protocol.name,
            title=protocol.title,
            about=protocol.about,
            dataset={
                "name": self.dataset.name,
                "kind": self.dataset.kind,
                "split": run_folder.split,
                "provenance": self.dataset.provenance,
                "documents": run_folder.document_count(),
                "queries": len(run_folder.topics),
                **self._training(protocol),
            },
            settings=_settings(protocol, jobs, left_out),
            command=self.command,
            measures=protocol.measures,
            is_papers=run_folder.split in protocol.papers.get(self.dataset.kind, ()),
            sections=sections,
            curves=[*_curves(protocol, judged, run_folder), *distributions],
            examples=[
                one
                for section in judged
                for one in examples(section, protocol.measures[0], protocol.examples, run_folder)
            ],
            heads=_heads(protocol, self.options),
            seconds=jobs.seconds,
            runs_made=jobs.made,
            statistics=statistics,
            lower_is_better=tuple(name for name in protocol.measures if name in LOWER_IS_BETTER),
            papers_dataset=" or ".join(
                f"{TITLES[kind]} ({', '.join(splits)})" for kind, splits in protocol.papers.items()
            ),
        )

    def _training(self, protocol: ProtocolPlan) -> dict[str, str | int]:
        """The queries of the split for training, of which a model may take a part, and how many exclude something."""
        dataset = self.dataset
        usual = next((name for name in ("domain-train", "train") if name in dataset.splits), None)
        split = self.training_split or usual
        if split is None or dataset.of_domain is None or not protocol.models:
            return {}
        try:
            topics = dataset.topics(split)
        except InputError:  # no query of these domains; no model is trained
            return {}
        negated = sum("not" in (topic.group or "").split() for topic in topics)
        _logger.info(
            "%s: %d queries for training (%s), %d of them with NOT", dataset.folder, len(topics), split, negated
        )
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


def _term_measures(protocol: ProtocolPlan, run_folder: RunFolder) -> TermMeasures | None:
    """What computes the protocol's ``TERM_MEASURES``, if it has any."""
    if not {*protocol.measures} & {*TERM_MEASURES}:
        return None
    texts = {document.docid: document.text or "" for document in run_folder.documents()}
    files = (run_folder.options.wordnet or WORDNET) if SYNONYMS in protocol.measures else None
    space = run_folder.words if protocol.queries == "words" else None
    return TermMeasures(texts, run_folder.topics, space, files)


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
            compare = partial(similarities, DenseEncoder(run_folder.options.dense_name))
            yield interference_curve(section, plan.bins, measure, compare)
        if section.plan.sweep_symbol:
            yield sweep_curve(section, measure)


def _heads(protocol: ProtocolPlan, options: RunOptions) -> dict[str, Head]:
    """The heads of the sparse models that were run, by the names of models and encoders; none if no head has signs."""
    named = {row.model: str(options.models[row.model]) for row in protocol.rows if row.is_sparse and row.model}
    if any(row.takes_encoders for row in protocol.rows):
        named |= {engine.label or engine.encoder: engine.encoder for engine in options.engines if not engine.is_lexical}
    sides = {name: load_checkpoint(place, options.model_options).document for name, place in named.items()}
    heads = {
        name: side.head for name, side in sides.items() if isinstance(side, NeuralSide) and isinstance(side.head, Head)
    }
    return heads if any(head.signed for head in heads.values()) else {}


def _settings(protocol: ProtocolPlan, jobs: Jobs, left_out: str) -> dict[str, str | int | float]:
    """The inputs of the figures, other than the rows."""
    options = jobs.run_folder.options
    settings: dict[str, str | int | float] = {"hits": protocol.hits}
    settings |= {f"model {name!r}": str(folder) for name, folder in options.models.items()}
    if jobs.tuning is not None:
        settings["tuned on"] = jobs.tuning.split
    if sparse := [row for row in protocol.rows if row.is_sparse]:
        if any(not row.model for row in sparse):
            settings |= _encoders(jobs.run_folder)
        if options.model_options is not None:
            settings["model options"] = repr(options.model_options)
        if options.model_weight is not None:
            settings["model weight, where a row does not say"] = options.model_weight
        settings["query weights"] = f"round(weight * {WEIGHT_SCALE:g})"
        settings["operators, where a row does not say"] = ", ".join(
            f"{field.name} {value}"
            for field in fields(DEFAULT_OPERATORS)
            if (value := getattr(DEFAULT_OPERATORS, field.name)) is not None
        )
    if left_out:
        settings["left out"] = left_out
    if protocol.interference or any(row.method == DENSE and not row.encoder for row in protocol.rows):
        settings["dense encoder"] = options.dense_name
    if RERANKER in protocol.needs:
        settings["reranker"] = options.reranker_name
    settings |= {
        "Python": platform.python_version(),
        "Java": str(java_class("java.lang.System").getProperty("java.version")),
        "Lucene": str(java_class("org.apache.lucene.util.Version").LATEST.toString()),
    }
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            settings[package] = version(package)
    if options.read != "expression":
        settings["queries"] = f"plain texts, read as {options.read}"
    return settings


def _encoders(run_folder: RunFolder) -> Iterator[tuple[str, str]]:
    """The encoders and the settings of their indexes. Missing indexes are built."""
    for engine in run_folder.options.engines:
        manifest = run_folder.searcher(engine, None, run_folder.options.model_weight).reader.manifest
        about = {} if manifest is None else {**manifest.settings, "impact scale": manifest.impact_scale}
        values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in about.items()}
        listed = ", ".join(f"{name} {value}" for name, value in values.items())
        name = f"encoder [{engine.label}]" if engine.label else "encoder"
        yield name, f"{engine.encoder} ({listed})" if listed else engine.encoder
