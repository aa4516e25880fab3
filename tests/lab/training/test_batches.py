"""Contrastive pairs: examples that have each other's documents as negatives."""

import re

import pytest
from checkpoints import sample_texts
from json_lines import write_jsonl
from tiny_training import tiny_config

from pyserini_compneg.lab.training.examples import TrainingExample as Example

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from datasets import Dataset  # noqa: E402

from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.batches import ContrastivePairSampler, split_contrastive_pairs  # noqa: E402
from pyserini_compneg.lab.training.trainers import SparseTrainer  # noqa: E402


def test_pairs_stand_together_and_lose_their_negatives():
    first, second = Example("q1", "a", ("b",)), Example("q2", "b", ("a",))
    alone = [Example("q3", "a", ("c",)), Example("q4", "b"), Example("q5", "b", ("a", "c"))]
    pairs, others = split_contrastive_pairs([first, alone[0], alone[1], second, alone[2]])
    assert pairs == [Example("q1", "a"), Example("q2", "b")]
    assert others == alone


def test_an_example_is_in_one_pair_at_most():
    """Three queries of the same two documents; and a query is no pair with itself."""
    examples = [
        Example("q1", "a", ("b",)),
        Example("q2", "b", ("a",)),
        Example("q3", "b", ("a",)),
    ]
    assert split_contrastive_pairs(examples) == (
        [Example("q1", "a"), Example("q2", "b")],
        [examples[2]],
    )
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
