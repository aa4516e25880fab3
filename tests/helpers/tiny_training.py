"""Tiny datasets and settings for tests of training."""

import json
from contextlib import contextmanager
from pathlib import Path

import pytest
from checkpoints import sample_texts
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.lab.training import train
from pyserini_compneg.lab.training.config import DevConfig, ModelConfig, SourceConfig, TrainConfig, TrainingConfig
from pyserini_compneg.support.errors import CompNegError


def write_dataset(folder, pairs):
    """A folder in QUEST's fields: some words of a film's lead ask for it."""
    texts = sample_texts(pairs)
    write_jsonl(folder / "documents.jsonl", *({"docid": f"d{i}", "text": text} for i, text in enumerate(texts)))
    queries = [
        {"qid": f"q{i}", "query": words, "original_query": f"<mark>{words}</mark>", "docs": [f"d{i}"]}
        for i, words in enumerate(" ".join(text.split()[:6]) for text in texts)
    ]
    write_jsonl(folder / "train.jsonl", *({**query, "metadata": {"template": "_"}} for query in queries))
    return folder


def tiny_config(base, *sources, dev=True, teacher=None, model=None, **training):
    """A training on folders and files, evaluated on the first one."""
    defaults = {"batch_size": 4, "learning_rate": 1e-3, "evaluate_every": 2, "warmup": 0.0}
    return TrainConfig(
        model=ModelConfig(base=str(base), **{"head": "relu:max", "max_length": 32, **(model or {})}),
        data=tuple(SourceConfig(dataset=str(path), split="train" if path.is_dir() else None) for path in sources),
        training=TrainingConfig(**{**defaults, **training}),
        dev=DevConfig(dataset=str(sources[0]), split="train", measures=("recip_rank", "P.1")) if dev else None,
        teacher=teacher,
    )


def train_error(config, output, **options):
    """The message of a training that cannot be done."""
    return refusal(train, config, output, **options, error=CompNegError)


def training_log(folder):
    return json.loads((Path(folder) / "training_log.json").read_text())["log"]


@contextmanager
def killed_at(step, trainer=None):
    """Interrupts a training at a step."""
    from pyserini_compneg.lab.training.trainers import SparseTrainer

    trainer = trainer or SparseTrainer
    training_step = trainer.training_step

    def killed(self, *arguments, **more):
        if self.state.global_step == step:
            raise KeyboardInterrupt
        return training_step(self, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainer, "training_step", killed)
        yield
