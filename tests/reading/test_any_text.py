"""What holds for every text, sensible or not."""

import re
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, Difference, Union, leaves
from pyserini_compneg.reading import decompose
from pyserini_compneg.reading.language import load_language

CUES = sorted({*load_language().cues.words} | {"not", "or", "also", "both", "non-", "that are also"})
PIECES = st.sampled_from(
    [
        *CUES,
        *("films", "Oslo", "the Beatles", "what", "who", "other", "else", "has", "including", "any", "information"),
        *("without mentioning", "apart from", "besides", "that are not", "do not mention", "either", "and", "but"),
        *(",", ".", "?", "!", '"', "“", "”", "'", "’", "(", ")", "（", "-", "—", "J.", "\n", "İ", "ß", "\u0301"),
    ]
)
SENTENCES = st.lists(PIECES, max_size=30).map(" ".join)
TEXTS = SENTENCES | st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=200)


def reading(text):
    try:
        return decompose(text)
    except DecompositionError as error:
        assert "\n" not in str(error)
        return None


def wanted(expression):
    """The atoms that are not below the right side of a difference."""
    match expression:
        case Atom():
            return [expression]
        case Difference(left, _):
            return wanted(left)
    return [atom for operand in expression.operands for atom in wanted(operand)]


@settings(max_examples=4 * settings.default.max_examples)
@given(TEXTS)
@example("not not")
@example("(not")
@example('"')
@example("which films, besides X,")
def test_parts_are_made_of_the_words_in_their_spans(text):
    result = reading(text)
    if result is None:
        return
    assert result.text == text
    assert [part.text for part in result.parts] == [atom.text for atom in leaves(result.expression)]
    for part in result.parts:
        assert part.spans
        assert all(0 <= start < end <= len(text) for start, end in part.spans)
        assert all(one[1] <= other[0] for one, other in zip(part.spans, part.spans[1:], strict=False))
        assert part.text.split() == " ".join(text[start:end] for start, end in part.spans).split()
    for reason in result.reasons:
        assert reason.cue == text[slice(*reason.span)] and reason.cue
    assert list(result.reasons) == sorted(result.reasons, key=lambda reason: reason.span)


@settings(max_examples=4 * settings.default.max_examples)
@given(TEXTS)
def test_something_is_wanted_and_excluded_words_are_not_among_it(text):
    result = reading(text)
    if result is None:
        return
    assert wanted(result.expression)
    kept = [span for part in result.parts if not part.excluded for span in part.spans]
    gone = [span for part in result.parts if part.excluded for span in part.spans]
    assert kept
    assert all(one[1] <= other[0] or other[1] <= one[0] for one in kept for other in gone)
    assert 0 < result.confidence <= 1
    assert result.reasons or result.expression == Atom(text)


@pytest.mark.parametrize("wanted", ["Norwegian songs", "films about Oslo", "the work of J. Smith"])
@pytest.mark.parametrize(
    "cue", ["except", "other than", "but not", "without mentioning any details about", "excluding"]
)
def test_atoms_are_read_as_atoms_again(wanted, cue):
    result = decompose(f"{wanted} {cue} Edvard Grieg")
    assert result.reasons
    assert all(decompose(part.text).expression == Atom(part.text) for part in result.parts)


def steps(text):
    """How many lines of Python a reading takes, which does not depend on the machine."""
    taken = 0

    def count(frame, event, _):
        nonlocal taken
        taken += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        reading(text)
    finally:
        sys.settrace(before)
    return taken


REPEATED = """\
not |films except |without mentioning |(|(not |) |" |' |or |a or b |, |no. |what, who |besides X, |besides X or Y and |
that are also both |both a and b |non-|and also |Who (besides X) |other than Oslo to |x|İ|in addition to |
but please do not |which aren't |save |leave x |aside, |x aside, |x are not relevant |
but x are not relevant. |[; not """


@pytest.mark.parametrize("piece", REPEATED.replace("\n", "").split("|"))
def test_the_steps_grow_no_faster_than_the_text(piece):
    prefix = "what films "
    few, many = (steps(prefix + piece * (length // len(piece))) for length in (2_500, 10_000))
    assert many < 4.8 * few + 2_000


def test_a_long_text():
    names = ", ".join(f"Name{number}" for number in range(10_000))
    result = decompose(f"all people except {names} and Ada")
    assert isinstance(result.expression.right, Union)
    assert len(result.parts) == 10_002
    assert re.fullmatch(r"Name\d+", result.parts[1].text)
