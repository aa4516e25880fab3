"""The folder of a trained model, for ``--encoder``, with a model card, a log and a learning curve."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.config import LOG_FILE, SourceConfig, TrainConfig
from pyserini_compneg.lab.training.examples import TrainingExample
from pyserini_compneg.search import Hit, write_run
from pyserini_compneg.support.staging import atomic_writer

if TYPE_CHECKING:  # readers are trained without sentence-transformers
    from pyserini_compneg.lab.training.dev import DevEvaluator
    from pyserini_compneg.lab.training.fine_tuning import Trained

SPARSE_TAGS = "sentence-transformers", "feature-extraction", "sparse-encoder, splade, pyserini_compneg"
"""The library, the task and the tags of a model card."""

_DENSE_TAGS = "sentence-transformers", "feature-extraction", "sentence-similarity, pyserini_compneg"
_DEPTH = 100
_SPARSE_USE = "index --collection documents.jsonl --index indexes/name --encoder THIS_FOLDER"
_DENSE_USE = "reproduce dense --dataset DIR --report DIR --dense-encoder THIS_FOLDER"


def write_trained(
    folder: Path, config: TrainConfig, trained: Trained, examples: Sequence[Sequence[TrainingExample]]
) -> dict[str, float]:
    """Writes a trained model into a folder, which is deleted first. Returns its results on dev, empty without dev."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    trained.save(folder)
    dev, is_dense = trained.dev, config.model.is_dense
    results = dev.results if dev else {}
    write_log(folder, config=config.model_dump(mode="json"), results=results, log=trained.log)
    write_card(
        folder,
        _DENSE_TAGS if is_dense else SPARSE_TAGS,
        "A dense bi-encoder" if is_dense else "A sparse encoder",
        config.about or "Trained with pyserini_compneg.",
        _DENSE_USE if is_dense else _SPARSE_USE,
        [f"the weights of {config.model.base}, whose licence applies", *map(_provenance, config.data, examples)],
        config.model_dump(mode="json", exclude_none=True),
        _results(config, results),
    )
    if dev:
        _write_dev_run(folder / "dev_run.txt", dev)
    _plot_curve(folder / "learning_curve.png", trained.log, dev.primary_metric if dev else None)
    return results


def write_log(folder: Path, **entries: Any) -> None:
    (folder / LOG_FILE).write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")


def write_card(
    folder: Path,
    tags: tuple[str, str, str],
    title: str,
    about: str,
    use: str,
    made_of: Sequence[str],
    settings: Mapping[str, Any],
    results: str = "",
) -> None:
    """Writes the model card: purpose, sources with their licences, results and settings."""
    import yaml

    library, task, others = tags
    listed = "\n".join(f"- {source}" for source in made_of)
    text = yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True)
    card = f"""---
library_name: {library}
pipeline_tag: {task}
tags: [{others}]
---

# {title}

{about}

    compneg {use}

## Made of

{listed}
{results}
## Settings

```yaml
{text}```
"""
    (folder / "README.md").write_text(card, encoding="utf-8")


def _results(config: TrainConfig, results: Mapping[str, float]) -> str:
    if not config.dev:
        return ""
    part = f", {config.dev.documents} documents" if config.dev.documents else ""
    rows = "\n".join(f"| {name} | {value:.4f} |" for name, value in results.items())
    return f"\n## Results\n\nOn {config.dev.dataset}, split {config.dev.split}{part}:\n\n| | |\n|---|---|\n{rows}\n"


def _provenance(source: SourceConfig, examples: Sequence[TrainingExample]) -> str:
    """A line about a source: its examples, their hard negatives, and its licence."""
    count = sum(bool(one.negatives) for one in examples)
    kind = "its own" if source.negatives in (None, "judged") else source.negatives
    negatives = f"{count} of them with hard negatives ({kind})" if count else "without hard negatives"
    if not Path(source.dataset).is_dir():
        return f"{source.dataset}, a file with the licence of its author: {len(examples)} examples, {negatives}"
    provenance = open_dataset(source.dataset).provenance
    return f"{source.dataset}, split {source.split}: {provenance}; {len(examples)} examples, {negatives}"


def _write_dev_run(path: Path, dev: DevEvaluator) -> None:
    """Writes the last evaluation as a TREC run: the 100 best documents of each query, and the judged documents."""
    with atomic_writer(path) as handle:
        for qid, scores in dev.run.items():
            hits = [Hit(docid, score) for docid, score in sorted(scores.items(), key=lambda item: (-item[1], item[0]))]
            judged = dev.qrels.get(qid, {})
            kept = [hit for rank, hit in enumerate(hits) if rank < _DEPTH or hit.docid in judged]
            write_run(handle, qid, kept)


def _plot_curve(path: Path, log: list[dict[str, Any]], measure: str | None) -> None:
    """Draws the loss, and the first dev measure if there is one, over the steps."""
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
