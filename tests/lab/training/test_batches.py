import math
import re

import pytest
from checkpoints import sample_texts, write_t5
from json_lines import write_jsonl
from refusals import refusal
from tiny_training import tiny_config, training_log

from pyserini_compneg.baselines import MonoT5
from pyserini_compneg.lab.training.config import TeacherConfig
from pyserini_compneg.lab.training.examples import TrainingExample as Example
from pyserini_compneg.support.errors import InputError

torch = pytest.importorskip("torch", reason="training runs on torch")
models = pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from datasets import Dataset  # noqa: E402

from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.batches import (  # noqa: E402
    ContrastivePairSampler,
    margins,
    split_contrastive_pairs,
)
from pyserini_compneg.lab.training.trainers import SparseTrainer  # noqa: E402


def test_pairs_stand_together_and_lose_their_negatives():
    """An example is in one pair at most, and a query is no pair with itself."""
    first, second = Example("q1", "a", ("b",)), Example("q2", "b", ("a",))
    alone = [Example("q3", "a", ("c",)), Example("q4", "b"), Example("q5", "b", ("a", "c"))]
    pair = [Example("q1", "a"), Example("q2", "b")]
    assert split_contrastive_pairs([first, alone[0], alone[1], second, alone[2]]) == (pair, alone)
    third = Example("q3", "b", ("a",))
    assert split_contrastive_pairs([first, second, third]) == (pair, [third])
    same = [Example("q", "a", ("b",)), Example("q", "b", ("a",))]
    assert split_contrastive_pairs(same) == ([], same)


@pytest.mark.parametrize("batch_size", [1, 2, 5, 6])
def test_batches_separate_no_pair_and_have_no_text_twice(batch_size):
    """Every third pair has the documents of the one before."""
    texts = [text for pair in range(24) for text in (f"d{pair - (pair % 3 == 2)}", f"e{pair - (pair % 3 == 2)}")]
    table = Dataset.from_dict({"query": [f"q{row}" for row in range(48)], "positive": texts})
    sampler = ContrastivePairSampler(table, batch_size, False, generator=torch.Generator(), seed=3)
    epochs = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        epochs.append(list(sampler))
    assert epochs[0] == epochs[2] != epochs[1]
    for batches in epochs:
        assert sorted(row for batch in batches for row in batch) == list(range(48))
        for batch in batches:
            assert {row ^ 1 for row in batch} == set(batch)
            assert len(batch) <= max(2, batch_size)
            assert len({texts[row] for row in batch}) == len(batch)
    assert len(sampler) <= len(epochs[0])


def test_a_training_separates_no_pair(tmp_path, checkpoints, dataset, monkeypatch):
    """All twelve queries of pairs name the number of their pair; other examples are in batches of their own."""
    lines = []
    for number, text in enumerate(sample_texts(6)):
        other = f"not {text}"
        lines.append({"query": f"{number} a film", "positive": text, "negative": other})
        lines.append({"query": f"{number} the film", "positive": other, "negative": text})
    file = write_jsonl(tmp_path / "pairs.jsonl", *lines)
    batches = []
    compute_loss = SparseTrainer.compute_loss

    def noting(self, model, inputs, *arguments, **more):
        texts = self.model.tokenizer.batch_decode(inputs["query_input_ids"], skip_special_tokens=True)
        batches.append([text for text in texts if re.fullmatch(r"\d (a|the) film", text)])
        assert len(batches[-1]) in (0, len(texts))
        assert sum(name.endswith("input_ids") for name in inputs) == 2  # no negatives besides
        return compute_loss(self, model, inputs, *arguments, **more)

    monkeypatch.setattr(SparseTrainer, "compute_loss", noting)
    train(tiny_config(checkpoints.bert, dataset, file, dev=False, steps=12), tmp_path / "m")
    assert any(batches)
    for batch in batches:
        assert len(batch) == 2 * len({text[0] for text in batch})


EXAMPLES = [
    Example("spy films", "a spy in Vienna", ("a film about cats", "music")),
    Example("cats", "a film about cats", ("music", "a spy in Vienna")),
]


@pytest.fixture(scope="module")
def bi_encoder(checkpoints, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teachers") / "bi"
    models.SentenceTransformer(str(checkpoints.distilbert)).save_pretrained(str(folder))
    return folder


def test_margins_of_teachers(tmp_path, checkpoints, bi_encoder):
    torch.manual_seed(0)
    models.CrossEncoder(str(checkpoints.bert), num_labels=1).save_pretrained(str(tmp_path))
    t5 = MonoT5(str(write_t5(tmp_path / "t5")))
    bi, cross = models.SentenceTransformer(str(bi_encoder)), models.CrossEncoder(str(tmp_path))
    for folder, scale, tolerance, least, score in (
        (
            bi_encoder,
            20.0,
            1e-3,
            0.01,
            lambda *pair: bi.similarity_pairwise(*(bi.encode([text]) for text in pair)).item(),
        ),
        (tmp_path, 1.0, 1e-4, 0.001, lambda *pair: float(cross.predict([pair])[0])),
        (tmp_path / "t5", 2.0, 1e-4, 0.001, lambda *pair: math.log(t5.scores([pair])[0])),
    ):
        computed = margins(TeacherConfig(model=str(folder), scale=scale), EXAMPLES)
        expected = [[score(e.query, e.positive) - score(e.query, text) for text in e.negatives] for e in EXAMPLES]
        assert computed == [pytest.approx([scale * margin for margin in row], abs=tolerance) for row in expected]
        assert max(abs(margin) for row in computed for margin in row) > least


def test_a_teacher_needs_negatives(bi_encoder):
    examples = [Example("spy films", "a spy")]
    assert refusal(margins, TeacherConfig(model=str(bi_encoder)), examples, error=InputError) == (
        "a teacher compares two documents, but query 'spy films' has no negative; give its source data.negatives, or "
        "leave the teacher out"
    )


def teacher_error(folder):
    start, _, reason = refusal(margins, TeacherConfig(model=str(folder)), EXAMPLES, error=InputError).partition(
        ": cannot be loaded as a teacher: "
    )
    assert start == str(folder)
    return reason


def test_what_is_no_teacher(tmp_path, checkpoints):
    (tmp_path / "config.json").write_text("{}")
    assert teacher_error(tmp_path)
    models.CrossEncoder(str(checkpoints.bert), num_labels=3).save_pretrained(str(tmp_path))
    assert teacher_error(tmp_path) == "it has 3 scores for a pair of texts, not one"


@pytest.mark.slow
def test_margins_are_learned(tmp_path, checkpoints, bi_encoder):
    texts = sample_texts(16)
    lines = [
        {"query": " ".join(own.split()[:6]), "positive": own, "negative": other}
        for own, other in zip(texts[::2], texts[1::2], strict=True)
    ]
    file = write_jsonl(tmp_path / "pairs.jsonl", *lines)
    teacher = TeacherConfig(model=str(bi_encoder), scale=5.0)
    settings = {"steps": 60, "batch_size": 8, "learning_rate": 5e-3}
    train(tiny_config(checkpoints.bert, file, dev=False, teacher=teacher, **settings), tmp_path / "m")
    losses = [entry["base_loss"] for entry in training_log(tmp_path / "m") if "base_loss" in entry]
    assert losses[-1] < 0.25 * losses[0]
