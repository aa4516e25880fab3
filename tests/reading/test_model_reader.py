import json
import shutil

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyserini_compneg.expression import Atom, Difference, format_expression, leaves
from pyserini_compneg.reading import ModelReader, decompose, undivided
from pyserini_compneg.reading.model_reader import PACKAGED, packaged_reader
from pyserini_compneg.support.errors import ArgumentError, QueryError

REQUESTS = {
    "I want horror movies from the 1980s, but please nothing with zombies or vampires": (
        "horror movies from the 1980s NOT (zombies OR vampires)"
    ),
    "films with Vanessa Bayer other than Trainwreck": "films with Vanessa Bayer NOT Trainwreck",
    "French or Italian comedies, but not musicals": "(French comedies OR Italian comedies) NOT musicals",
    "spy films not comedies": "spy films NOT comedies",
    "Non-Lenovo laptops under 500": "laptops under 500 NOT Lenovo",
    "non-Japanese brands of tea or coffee": "(brands of tea OR brands of coffee) NOT Japanese",
    "Bistros in Metz, bitte nix mit Innereien": "Bistros in Metz NOT Innereien",
    "muffin recipes sin pasas": "muffin recipes NOT pasas",
    "Filme über Wien, aber keine Musicals": "Filme über Wien NOT Musicals",
    "des romans policiers, mais pas de Simenon": "des romans policiers NOT Simenon",
}
WHOLE = (
    "Who did not vote in the referendum?",
    "why is my phone not charging",
    "To be or not to be",
    "Doctors Without Borders volunteer requirements",
    "TypeError: 'NoneType' object is not iterable",
)
PIECES = st.sampled_from(
    [
        *("films", "Oslo", "the Beatles", "who", "not", "or", "and", "no", "except", "besides", "both", "without"),
        *("other than", "excluding", "1,000", "C++", "A. A. Milne", "\u200b", "İ", "ß", "\u0301", "日本", "\ud800"),
        *(",", ".", "?", '"', "“", "”", "'", "(", ")", "[", "]", "-", "—", "/", "\n", "\x1b[31m", "\x00"),
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map(" ".join) | st.lists(PIECES, max_size=30).map("".join) | st.text()


@pytest.mark.parametrize("text", REQUESTS)
def test_requests(text):
    assert format_expression(decompose(text).expression) == REQUESTS[text]


def test_the_network_names_no_folder_of_the_machine_that_made_it():
    assert b"site-packages" not in (PACKAGED / "model.onnx").read_bytes()


@pytest.mark.parametrize("text", WHOLE)
def test_a_negation_that_is_a_fact_stays(text):
    assert decompose(text).expression == Atom(text)


def wanted(expression):
    """The atoms that are not below the right side of a difference."""
    match expression:
        case Atom():
            return [expression]
        case Difference(left, _):
            return wanted(left)
    return [atom for operand in expression.operands for atom in wanted(operand)]


@settings(deadline=None)
@given(TEXTS.filter(str.strip))
@example("???")
@example("not")
@example('"')
@example("(not")
def test_what_holds_for_every_text(text):
    result = decompose(text)
    assert result.text == text
    assert 0 <= result.confidence <= 1
    assert wanted(result.expression)
    texts = [part.text for part in result.parts]
    assert set(texts) == {atom.text for atom in leaves(result.expression)}
    for part in result.parts:
        assert part.text and part.spans
        assert all(0 <= start < end <= len(text) for start, end in part.spans)
        assert all(one[1] <= other[0] for one, other in zip(part.spans, part.spans[1:], strict=False))
        assert part.text.split() == " ".join(text[start:end] for start, end in part.spans).split()
    kept = [span for part in result.parts if not part.excluded for span in part.spans]
    gone = [span for part in result.parts if part.excluded for span in part.spans]
    assert all(one[1] <= other[0] or other[1] <= one[0] for one in kept for other in gone)
    if isinstance(result.expression, Atom):
        assert result == undivided(text, result.confidence, *result.doubts)


def test_many_texts_are_read_as_one_by_one():
    texts = [*REQUESTS, *WHOLE, "a", "spy films " * 50]
    assert [reading.expression for reading in packaged_reader().read(texts)] == [
        decompose(text).expression for text in texts
    ]


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("spies who never, except once, lied", "'never' is searched as a word"),
        ("films nobody saw, or not", "'or' is searched as a word"),
        ("no spies but films, not that one", "'no' is searched as a word"),
        ("no leather, no fur", "it only excludes"),
        ("could you please help", "it asks for nothing"),
    ],
)
def test_what_may_be_misread_is_said(text, doubt):
    reading = decompose(text)
    assert doubt in reading.doubts and not reading.understood


def test_a_clear_request_is_understood():
    clear = ("films with Vanessa Bayer other than Trainwreck", "spy films", "Can you list spy films, please?", *WHOLE)
    for text in (*clear, "Why did Switzerland never join the EU?", "animals that cannot jump"):
        assert (decompose(text).doubts, decompose(text).understood) == ((), True)


def test_a_blank_text_is_refused():
    with pytest.raises(QueryError, match="^the text is blank, got "):
        decompose("\n\t")


@pytest.mark.parametrize("texts", ["spy films", [None], [b"spy"]])
def test_what_is_no_list_of_texts_is_refused(texts):
    with pytest.raises(ArgumentError, match="^read takes a list of str and decompose one str, got "):
        packaged_reader().read(texts)


def test_a_text_in_another_script_stays_whole():
    assert decompose("映画 コメディ以外").expression == Atom("映画 コメディ以外")


@pytest.mark.parametrize("text", ["spy films but not comedies, " * 40_000, "x" * 1_000_000, "not " * 900])
def test_a_long_text_stays_whole(text):
    assert decompose(text) == undivided(text, 0.0, "it is too long")


@pytest.mark.parametrize("scores", [np.zeros((1, 4)), np.zeros((1, 6, 4)), np.full((1, 6, 6), np.nan)])
def test_another_network_is_one_line(monkeypatch, scores):
    class Session:
        def run(self, *_):
            return [scores]

    monkeypatch.setattr(packaged_reader()._tagger, "_session", Session())
    with pytest.raises(QueryError, match="^the reader's network gives no scores of 6 tags for each token"):
        decompose("a b c d")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(PACKAGED, tmp_path / "reader")


def changed(path, **entries):
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in (settings | entries).items() if value is not None}))


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda at: shutil.rmtree(at), "not the folder of a reader: it has no reader.json"),
        (lambda at: (at / "reader.json").write_text("{"), "reader.json: not valid JSON"),
        (
            lambda at: (at / "reader.json").write_bytes(b"\xff"),
            "reader.json: cannot be read: 'utf-8' codec",
        ),
        (lambda at: changed(at / "reader.json", format_version=1), "format version 1, but this release reads 2"),
        (lambda at: changed(at / "reader.json", tags=["W"]), "bad value for 'tags': ['W']; train"),
        (lambda at: changed(at / "reader.json", transitions=None), "the key 'transitions' is missing; train"),
        (lambda at: changed(at / "reader.json", transitions=[[0] * 6]), "bad value for 'transitions': "),
        (lambda at: changed(at / "reader.json", confidence=[1]), "bad value for 'confidence': "),
        (lambda at: changed(at / "reader.json", threshold="nan"), "bad value for 'threshold': "),
        (lambda at: changed(at / "reader.json", separators="and"), "bad value for 'separators': "),
        (lambda at: changed(at / "reader.json", max_tokens=10**400), "bad value for 'max_tokens': "),
        (lambda at: (at / "model.onnx").unlink(), "model.onnx: cannot be read: no such file or directory"),
        (lambda at: (at / "model.onnx").write_bytes(b"?"), "model.onnx: damaged: its SHA-256 is not the one in reader"),
        (lambda at: (at / "tokenizer.json").write_text("{}"), "tokenizer.json: damaged: its SHA-256 is not the one"),
    ],
)
def test_a_damaged_reader_is_one_line(folder, damage, said):
    damage(folder)
    with pytest.raises(QueryError) as refused:
        ModelReader(folder)
    assert said in str(refused.value) and str(folder) in str(refused.value) and "\n" not in str(refused.value)
