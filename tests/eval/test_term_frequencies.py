import pytest
from refusals import refusal

from pyserini_compneg.eval import term_frequencies
from pyserini_compneg.eval.term_frequencies import TermFrequencies

TEXTS = ["Spy films are films about spies.", "A comedy; no SPY FILM.", "", "Straße, strasse."]


@pytest.mark.parametrize(
    ("terms", "texts", "words"),
    [
        (["spy"], 2 / 4, 2 / 13),
        (["films"], 1 / 4, 2 / 13),
        (["spy", "comedy"], 2 / 4, 3 / 13),
        (["spy films"], 1 / 4, 1 / 13),
        (["spy", "spy film", "Spy"], 2 / 4, 3 / 13),
        (["STRASSE"], 1 / 4, 2 / 13),
        (["sp"], 0, 0),
        (["films are films about spies a comedy"], 0, 0),
    ],
)
def test_counts_by_hand(terms, texts, words):
    assert term_frequencies(TEXTS, terms) == TermFrequencies(texts, words)


@pytest.mark.parametrize("texts", [[], ["", "?!"]])
def test_nothing_to_count_in(texts):
    assert term_frequencies(texts, ["spy"]) == TermFrequencies(0.0, 0.0)


@pytest.mark.parametrize(("terms", "got"), [([], "none"), (["spy", "?!"], "?!"), ([""], "")])
def test_no_terms(terms, got):
    message = refusal(term_frequencies, TEXTS, terms, error=ValueError)
    assert message == f"terms must be words or phrases, at least one, got {got!r}"
