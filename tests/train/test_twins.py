"""Examples that have each other's documents as negatives."""

import pytest

from pyserini_compneg.train.examples import Example

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from datasets import Dataset  # noqa: E402

from pyserini_compneg.train.twins import TwinBatchSampler, split_twins  # noqa: E402


def test_twins_stand_together_and_lose_their_negatives():
    first, second = Example("q1", "a", ("b",)), Example("q2", "b", ("a",))
    alone = [Example("q3", "a", ("c",)), Example("q4", "b"), Example("q5", "b", ("a", "c"))]
    twins, others = split_twins([first, alone[0], alone[1], second, alone[2]])
    assert twins == [Example("q1", "a"), Example("q2", "b")]
    assert others == alone


def test_each_example_has_one_twin_at_most():
    """Three queries of the same two documents; and a query is not its own twin."""
    examples = [Example("q1", "a", ("b",)), Example("q2", "b", ("a",)), Example("q3", "b", ("a",))]
    assert split_twins(examples) == ([Example("q1", "a"), Example("q2", "b")], [examples[2]])
    same = [Example("q", "a", ("b",)), Example("q", "b", ("a",))]
    assert split_twins(same) == ([], same)


@pytest.mark.parametrize("batch_size", [1, 2, 5, 6])
def test_batches_separate_no_twins_and_have_no_text_twice(batch_size):
    """Every third pair has the documents of the one before."""
    texts = [text for pair in range(24) for text in (f"d{pair - (pair % 3 == 2)}", f"e{pair - (pair % 3 == 2)}")]
    table = Dataset.from_dict({"query": [f"q{row}" for row in range(48)], "positive": texts})
    sampler = TwinBatchSampler(table, batch_size, False, generator=torch.Generator(), seed=3)
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
