from itertools import count
from threading import Barrier
from time import sleep
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.encode.models.batching import batches, encode_tokens
from pyserini_compneg.support.errors import EncodingError

TERMS = [f"t{number}" for number in range(50)]


class CountingModel:
    device = "cpu"

    def __init__(self, unpadded=False, together=1):
        self.shapes, self.unpadded, self.together = [], unpadded, together

    def __call__(self, ids, mask):
        self.shapes.append(ids.shape)
        assert ids.dtype == mask.dtype == np.int64
        assert mask[:, 0].all()
        dense = np.zeros((len(ids), len(TERMS)), np.float32)
        for row, column in zip(*np.nonzero(mask), strict=True):
            dense[row, ids[row, column]] += 1
        rows, columns = np.nonzero(dense)
        return (rows, columns, dense[rows, columns])


texts = st.lists(st.lists(st.integers(0, 49), min_size=1, max_size=12), max_size=20)


@given(texts, st.integers(1, 7), st.booleans(), st.sampled_from([1, 3]))
def test_vectors_come_in_the_order_of_their_texts(ids, batch_size, unpadded, together):
    model = CountingModel(unpadded, together)
    expected = [{TERMS[number]: float(text.count(number)) for number in sorted(set(text))} for text in ids]
    found = encode_tokens(model, ids, TERMS, batch_size)
    assert found == expected
    assert [list(vector) for vector in found] == [list(vector) for vector in expected]
    assert all(rows <= batch_size for rows, _ in model.shapes)
    if unpadded:
        assert sum(rows * tokens for rows, tokens in model.shapes) == sum(map(len, ids))


def test_batches_run_at_once_and_an_error_ends_those_that_wait():
    meeting, calls = Barrier(2, timeout=60), count()
    model = CountingModel(together=2)

    def fail(ids, mask):
        if next(calls) < 2:
            meeting.wait()  # two batches run at once, else this raises BrokenBarrierError
        sleep(0.01)
        raise EncodingError("the model failed")

    with (
        pytest.raises(EncodingError, match="the model failed"),
        patch.object(CountingModel, "__call__", staticmethod(fail)),
    ):
        encode_tokens(model, [[number] for number in range(1000)], TERMS, 1)
    assert next(calls) < 1000


def test_a_text_without_a_token_has_no_terms():
    model = CountingModel()
    assert encode_tokens(model, [[], [3, 3], []], TERMS) == [{}, {"t3": 2.0}, {}]
    assert encode_tokens(model, [[], []], TERMS) == [{}, {}]
    assert encode_tokens(model, [], TERMS) == []
    assert model.shapes == [(1, 2)]


def test_long_texts_come_first_and_in_small_batches():
    lengths = [3, 100, 5, 50, 50, 4, 1000]
    assert list(batches(lengths, 2, 100)) == [[6], [1], [3, 4], [2, 5], [0]]
    assert list(batches([9] * 70, 32, 1000)) == [list(range(32)), list(range(32, 64)), list(range(64, 70))]
    assert list(batches([], 3, 100)) == []


def encoded(rows, columns, weights):
    """The vectors of three texts by a model that gives these entries."""

    def model(ids, mask):
        return (np.array(rows, np.int64), np.array(columns, np.int64), np.array(weights, np.float32))

    model.device, model.unpadded, model.together = "cpu", False, 1
    return encode_tokens(model, [[1], [2], [3]], TERMS)


def test_weights_are_rounded_and_those_that_vanish_are_dropped():
    found = encoded([0, 0, 0, 1], [1, 2, 3, 1], [1.2345678, 4e-6, -0.5, -6e-6])
    assert found == [{"t1": 1.23457, "t3": -0.5}, {"t1": -1e-05}, {}]


@pytest.mark.parametrize("rows", [[], [0], [2], [0, 2]])
def test_texts_without_entries(rows):
    expected = [{"t0": 1.0} if row in rows else {} for row in range(3)]
    assert encoded(rows, [0] * len(rows), [1] * len(rows)) == expected


def test_weights_that_are_no_numbers_are_refused():
    message = refusal(encoded, [0], [1], [np.nan], error=EncodingError)
    assert message == "the model gives weights that are not finite numbers; the weights in its files are damaged"
