"""Tiny datasets and settings for tests of training."""

import json

from checkpoints import sample_texts

from pyserini_compneg.train.config import DevConfig, ModelConfig, SourceConfig, TrainConfig, TrainingConfig


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write_dataset(folder, pairs):
    """A folder in QUEST's fields: some words of a film's lead ask for it."""
    texts = sample_texts(pairs)
    write_lines(folder / "documents.jsonl", [{"docid": f"d{i}", "text": text} for i, text in enumerate(texts)])
    queries = [
        {"qid": f"q{i}", "query": words, "original_query": f"<mark>{words}</mark>", "docs": [f"d{i}"]}
        for i, words in enumerate(" ".join(text.split()[:6]) for text in texts)
    ]
    write_lines(folder / "train.jsonl", [{**query, "metadata": {"template": "_"}} for query in queries])
    return folder


def tiny_config(base, dataset, dev=True, **changes):
    """A training on such a folder, evaluated on what it learns."""
    model = {"head": "relu:max", "max_length": 32, **changes.pop("model", {})}
    defaults = {"batch_size": 4, "learning_rate": 1e-3, "evaluate_every": 2, "warmup": 0.0}
    return TrainConfig(
        ModelConfig(str(base), **model),
        (SourceConfig(str(dataset), "train"),),
        TrainingConfig(**{**defaults, **changes}),
        DevConfig(str(dataset), "train", ("recip_rank", "P.1")) if dev else None,
    )
