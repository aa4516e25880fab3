import pytest

from pyserini_compneg.compose import Linear, Max, Product, Sum
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.topics.token_form import MOST_TOKENS, token_line

A, B = Linear({"a": 1.0}), Linear({"b": 2.0})
AB = Product(({"a": 1.0}, {"b": 1.0}))
OURS = "--output-format jsonl, for compneg search"


def test_weights_are_repetitions():
    assert token_line("q1", Linear({"a": 2.0, "a∩b": 1.0, "¬": 1.0})) == "q1\ta a a∩b ¬"
    assert token_line("q1", Linear({"a": 2.0, "a∩b": 0.75})) == "q1\t" + " ".join(["a"] * 8 + ["a∩b"] * 3)
    assert len(token_line("q1", Linear({"a": float(MOST_TOKENS)}))) == 2 + 2 * MOST_TOKENS


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (Linear({"a": 2.0, "x": -3.0}), f"a negative weight, -3 of 'x'; use {OURS}"),
        (Sum((AB, Linear({"x": -3.0}))), f"a negative weight, -3 of 'x'; use {OURS}"),
        (
            Linear({f"t{i}": 1.0 for i in range(1025)}),
            f"1025 terms (Lucene's limit is 1024); use {OURS}",
        ),
        (Linear({"a": 2.5}), f"a fractional weight, 2.5 of 'a'; use {OURS}"),
        (Linear({"a∩b": 2.5, "a": 0.1}), f"a fractional weight, 0.1 of 'a'; use {OURS}"),
        (Linear({"a\xa0b": 2.0}), f"a term that is not a token, 'a\\xa0b'; use {OURS}"),
        (Linear({"a" * 256: 2.0}), f"a term that is not a token, {'a' * 40!r}; use {OURS}"),
        (
            Linear({"a": MOST_TOKENS, "b": 1}),
            f"1000001 tokens (the limit is 1000000); lower --weight-scale, or use {OURS}",
        ),
        (AB, f"a product; use --cpt materialised, or {OURS}"),
        (Max((A, Sum((AB, B)))), f"a product; use --cpt materialised, or {OURS}"),
        (Sum((Linear({"a": 1.0}), Product(AB.operands, weight=-1.0))), f"a product of negative weight; use {OURS}"),
        (Sum((AB, Product(AB.operands, 1.0, 2))), f"a product with powers or a root of its own; use {OURS}"),
        (Max((A, B)), f"a maximum; use --union maxpool or addition, or {OURS}"),
        (Sum((A, B)), f"a sum of vectors; use {OURS}"),
    ],
)
def test_what_tokens_cannot_say(node, said):
    with pytest.raises(QueryError) as error:
        token_line("q1", node)
    assert str(error.value) == f"query q1: tsv cannot hold {said}"
