"""The folder of a trained model: what ``--encoder`` takes, with a model card, a log and a learning curve."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.config import LOG_FILE, SourceConfig, TrainConfig
from pyserini_compneg.lab.training.dev import DevEvaluator
from pyserini_compneg.lab.training.examples import Example
from pyserini_compneg.lab.training.fine_tuning import Trained
from pyserini_compneg.search import Hit, write_run
from pyserini_compneg.support.files import atomic_writer

_DEPTH = 100
_SPARSE_USE = "python -m pyserini_compneg.index --collection documents.jsonl --index indexes/name --encoder THIS_FOLDER"
_DENSE_USE = "python -m pyserini_compneg.reproduce dense --dataset DIR --report DIR --dense-encoder THIS_FOLDER"


def write_trained(folder: Path, config: TrainConfig, trained: Trained, examples: Sequence[Sequence[Example]]) -> None:
    """Writes a trained model.

    Args:
        folder: The folder to make; a folder that exists is deleted first.
        config: The settings of the training.
        trained: Its result.
        examples: The examples of each source.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    trained.save(folder)
    log = {"config": config.model_dump(mode="json"), "results": trained.results, "log": trained.log}
    (folder / LOG_FILE).write_text(json.dumps(log, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_model_card(config, trained.results, examples), encoding="utf-8")
    if trained.dev:
        _write_dev_run(folder / "dev_run.txt", trained.dev)
    _plot_curve(folder / "learning_curve.png", trained.log, trained.dev.primary_metric if trained.dev else None)


def _write_dev_run(path: Path, dev: DevEvaluator) -> None:
    """Writes the last evaluation as a TREC run: the 100 best documents of each query, and those that are judged."""
    with atomic_writer(path) as handle:
        for qid, scores in dev.run.items():
            hits = [Hit(docid, score) for docid, score in sorted(scores.items(), key=lambda item: (-item[1], item[0]))]
            judged = dev.qrels.get(qid, {})
            kept = [hit for rank, hit in enumerate(hits) if rank < _DEPTH or hit.docid in judged]
            write_run(handle, qid, kept)


def _model_card(config: TrainConfig, results: dict[str, float], examples: Sequence[Sequence[Example]]) -> str:
    """The model card: purpose, sources with their licences, results and settings."""
    import yaml

    settings = yaml.safe_dump(config.model_dump(mode="json", exclude_none=True), sort_keys=False, allow_unicode=True)
    sources = "\n".join(f"- {_provenance(*pair)}" for pair in zip(config.data, examples, strict=True))
    rows = "\n".join(f"| {name} | {value:.4f} |" for name, value in results.items())
    evaluated = ""
    if config.dev:
        part = f", {config.dev.documents} documents" if config.dev.documents else ""
        evaluated = (
            f"\n## Results\n\nOn {config.dev.dataset}, split {config.dev.split}{part}:\n\n| | |\n|---|---|\n{rows}\n"
        )
    tags, title, use = ("sparse-encoder, splade", "A sparse encoder", _SPARSE_USE)
    if config.model.is_dense:
        tags, title, use = "sentence-similarity", "A dense bi-encoder", _DENSE_USE
    return f"""---
library_name: sentence-transformers
pipeline_tag: feature-extraction
tags: [{tags}, pyserini_compneg]
---

# {title}

{config.about or "Trained with pyserini_compneg."}

    {use}

## Made of

- the weights of {config.model.base}, whose licence applies
{sources}
{evaluated}
## Settings

```yaml
{settings}```
"""


def _provenance(source: SourceConfig, examples: Sequence[Example]) -> str:
    """The source, its examples, their hard negatives, and its licence."""
    count = sum(bool(one.negatives) for one in examples)
    kind = "its own" if source.negatives in (None, "judged") else source.negatives
    negatives = f"{count} of them with hard negatives ({kind})" if count else "without hard negatives"
    if not Path(source.dataset).is_dir():
        return f"{source.dataset}, a file with the licence of its author: {len(examples)} examples, {negatives}"
    provenance = open_dataset(source.dataset).provenance
    return f"{source.dataset}, split {source.split}: {provenance}; {len(examples)} examples, {negatives}"


def _plot_curve(path: Path, log: list[dict[str, Any]], measure: str | None) -> None:
    """Draws the loss, and the first dev measure if there is one, by steps."""
    from matplotlib.figure import Figure

    curves = {"loss": [(entry["step"], entry["loss"]) for entry in log if "loss" in entry]}
    if measure:
        name = f"eval_{measure}"
        curves[f"{measure} on dev"] = [(entry["step"], entry[name]) for entry in log if name in entry]
    figure = Figure(figsize=(7, 1 + 2.5 * len(curves)), layout="constrained")
    panels = figure.subplots(len(curves), sharex=True, squeeze=False)[:, 0]
    for axes, (label, points) in zip(panels, curves.items(), strict=True):
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 50 else None)
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    panels[-1].set_xlabel("step")
    figure.savefig(path, dpi=120)
