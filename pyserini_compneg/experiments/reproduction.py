"""From a protocol and a dataset to results: runs, tables, curves and examples."""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pyserini_compneg.compose import DEFAULT_OPERATORS, WEIGHT_SCALE
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.errors import DownloadError, EncodingError, ProtocolError
from pyserini_compneg.experiments.datasets.dataset import Dataset
from pyserini_compneg.experiments.datasets.opening import TITLES
from pyserini_compneg.experiments.dense import DenseEncoder, check_dense_model, similarities
from pyserini_compneg.experiments.experiment import Engine, ProtocolRun, members, run_protocol
from pyserini_compneg.experiments.methods import DENSE
from pyserini_compneg.experiments.per_query import check_interference, examples, interference_curve, sweep_curve
from pyserini_compneg.experiments.protocol import ALL_MINILM, LOWER_IS_BETTER, Protocol
from pyserini_compneg.experiments.results import Curve, Example, Results
from pyserini_compneg.experiments.workplace import Workplace
from pyserini_compneg.lucene import java_class

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
    threads: int = 1,
    model_options: ModelOptions | None = None,
    decompose: Literal["off", "cues", "llm"] = "off",
    command: str = "",
) -> Results:
    """Runs a protocol, as far as its runs are not in the folder already.

    Args:
        protocol: What to run.
        dataset: The dataset.
        engines: The encoders, with the indexes that are there already.
        folder: Where runs, indexes and judgements are kept.
        split: The split; None for the protocol's first that the dataset has.
        dense_encoder: Encodes for dense rows and for similarities; None for all-MiniLM-L6-v2. Where the latter cannot
            be had, only a protocol's other rows are run.
        threads: Queries searched at once.
        model_options: How models encode; None for the defaults.
        decompose: ``cues`` or ``llm`` reads the plain texts for rows that take the dataset's expressions; ``off``
            reads nothing.
        command: What the report shows as the command that made it.

    Raises:
        ProtocolError: A dataset that the protocol is not for.
        CompNegError: Whatever reading, building or searching raises.
    """
    if dataset.kind not in protocol.datasets:
        kinds = ", ".join(protocol.datasets)
        raise ProtocolError(f"{dataset.folder} is of the kind {dataset.kind}; protocol {protocol.name} is for: {kinds}")
    protocol = protocol if decompose == "off" else protocol.reading(decompose)
    chosen = split or _split(protocol, dataset)
    dataset.part(chosen)
    left_out = _left_out(protocol, dense_encoder)
    with Workplace(folder, dataset, chosen, threads, model_options, dense_encoder or ALL_MINILM) as workplace:
        if not left_out:
            _check_curve(protocol, workplace)
        ran = run_protocol(protocol, workplace, engines, frozenset({DENSE} if left_out else ()))
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
            settings=_settings(protocol, workplace, engines, left_out)
            | ({} if decompose == "off" else {"queries": f"plain texts, decomposed ({decompose})"}),
            command=command,
            measures=protocol.measures,
            is_papers=chosen in protocol.papers.get(dataset.kind, ()),
            sections=tuple(section.section for section in ran.sections),
            curves=tuple(_curves(protocol, ran, "" if left_out else workplace.dense_encoder)),
            examples=tuple(_examples(protocol, ran, workplace)),
            seconds=ran.seconds,
            runs_made=ran.made,
            lower_is_better=tuple(name for name in protocol.measures if name in LOWER_IS_BETTER),
            papers_dataset=" or ".join(
                f"{TITLES[kind]} ({', '.join(splits)})" for kind, splits in protocol.papers.items()
            ),
        )


def _settings(
    protocol: Protocol, workplace: Workplace, engines: Sequence[Engine], left_out: str
) -> dict[str, str | int | float]:
    """What the figures depend on, besides what the rows say."""
    settings: dict[str, str | int | float] = {"hits": protocol.hits}
    if protocol.methods != {DENSE}:
        for engine in engines:
            manifest = workplace.searcher(engine.encoder, engine.index).reader.manifest
            about = {} if manifest is None else {**manifest.settings, "impact scale": manifest.impact_scale}
            values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in about.items()}
            listed = ", ".join(f"{name} {value}" for name, value in values.items())
            name = f"encoder [{engine.label}]" if engine.label else "encoder"
            settings[name] = f"{engine.encoder} ({listed})" if listed else engine.encoder
        if workplace.model_options is not None:
            settings["model options"] = repr(workplace.model_options)
        settings["query weights"] = f"round(weight * {WEIGHT_SCALE:g})"
        settings["operators, where a row does not say"] = ", ".join(
            f"{field.name} {getattr(DEFAULT_OPERATORS, field.name)}" for field in fields(DEFAULT_OPERATORS)
        )
    if left_out:
        settings["left out"] = left_out
    elif DENSE in protocol.methods or protocol.interference:
        settings["dense encoder"] = workplace.dense_encoder
    return {**settings, **_versions()}


def _versions() -> dict[str, str]:
    versions = {
        "Python": platform.python_version(),
        "Java": str(java_class("java.lang.System").getProperty("java.version")),
        "Lucene": str(java_class("org.apache.lucene.util.Version").LATEST.toString()),
    }
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _check_curve(protocol: Protocol, workplace: Workplace) -> None:
    plan = protocol.interference
    for section in protocol.sections:
        if plan is not None and section.title == plan.section and (topics := members(section, workplace.topics)):
            check_interference(plan, topics, workplace.qrels.keys())


def _left_out(protocol: Protocol, dense_encoder: str | None) -> str:
    """What is left out because the default dense encoder cannot be had; empty for nothing.

    It is an error if the missing encoder was named, or if nothing else is left.
    """
    methods = protocol.methods
    if DENSE not in methods and protocol.interference is None:
        return ""
    try:
        check_dense_model(dense_encoder or ALL_MINILM)
    except (DownloadError, EncodingError) as error:
        if dense_encoder is not None or methods == {DENSE}:
            raise
        parts = (["rows of dense vectors"] if DENSE in methods else []) + (
            ["the curve by similarity"] if protocol.interference else []
        )
        message = f"{' and '.join(parts)}: {error}"
        _logger.warning("left out: %s", message)
        return message
    return ""


def _split(protocol: Protocol, dataset: Dataset) -> str:
    for split in protocol.splits:
        if split in dataset.splits:
            return split
    raise ProtocolError(
        f"{dataset.folder}: none of the protocol's splits ({', '.join(protocol.splits)}); "
        f"choose one with --split: {', '.join(dataset.splits)}"
    )


def _curves(protocol: Protocol, ran: ProtocolRun, dense_encoder: str) -> Iterator[Curve]:
    plan, measure = protocol.interference, protocol.measures[0]
    for section in ran.sections:
        if plan is not None and dense_encoder and section.plan.title == plan.section:
            yield interference_curve(
                plan, section, measure, lambda pairs: similarities(DenseEncoder(dense_encoder), pairs)
            )
        if section.plan.sweep_symbol:
            yield sweep_curve(section, measure)


def _examples(protocol: Protocol, ran: ProtocolRun, workplace: Workplace) -> Iterator[Example]:
    if protocol.examples:
        for section in ran.sections:
            yield from examples(section, protocol.measures[0], protocol.examples, workplace.qrels, workplace.title)
