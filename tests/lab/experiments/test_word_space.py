import numpy as np
import pytest
from refusals import refusal

from pyserini_compneg.documents.source_documents import SourceDocument
from pyserini_compneg.expression import parse
from pyserini_compneg.lab.experiments.word_space import (
    ONE_NEGATED,
    TWO_NEGATED,
    WordSpace,
    WordSpaceMethod,
    _contexts,
    word_queries,
)
from pyserini_compneg.support.errors import InputError, QueryError
from pyserini_compneg.topics.topics import Topic

COURT = ["lawsuit suit plaintiff judge", "suit lawsuit judge damages", "plaintiff damages judge lawsuit"]
CLOTHES = ["suit jacket silk shirt", "jacket shirt silk dress", "suit dress shirt jacket"]
OTHERS = ["planet rocket orbit", "garden flower seed", "soup bread salt"]


def documents(texts):
    return [SourceDocument(f"d{number:03}", text, "") for number, text in enumerate(texts)]


@pytest.fixture(scope="module")
def space():
    return WordSpace(documents([*COURT * 5, *CLOTHES * 5, *OTHERS * 100]))


def test_words_of_one_sense_are_neighbours(space):
    assert {*space.of(["judge"])[:3]} <= {"damages", "plaintiff", "lawsuit", "suit"}
    assert {*space.of(["silk"])[:3]} <= {"jacket", "shirt", "dress", "suit"}
    assert "suit" not in space.of(["suit"]) and space.of(["nowhere"]) == []


def test_negation_leaves_the_other_sense(space):
    """As ``suit NOT lawsuit`` in Table 1."""
    topic = Topic("q", "suit NOT lawsuit", parse("suit NOT lawsuit"))
    before, after = (
        [*WordSpaceMethod(name).compose(lambda: space, topic).weights] for name in ("ignore", "orthogonal")
    )
    court = {"lawsuit", "judge", "plaintiff", "damages"}
    assert before[0] == "suit" and court & {*before[:4]}
    assert not court & {*after[:4]} and "lawsuit" not in after


def test_counts_beside_content_words_stay_in_the_document():
    """A brute-force count, in windows of seven words on each side."""
    draw = np.random.default_rng(0)
    numbers, rows = draw.integers(-1, 6, 200), np.sort(draw.integers(0, 8, 200))
    content = [4, 1]
    found = _contexts(numbers, rows, content, 6).toarray()
    expected = np.zeros((6, 2))
    for one in range(200):
        for other in range(max(0, one - 7), min(200, one + 8)):
            if one != other and rows[one] == rows[other] and numbers[one] >= 0 and numbers[other] in content:
                expected[numbers[one], content.index(numbers[other])] += 1
    assert (found == expected).all()


def test_queries_are_words_without_their_nearest_neighbours(space):
    topics = word_queries(space)
    first = space.words[0]
    near, next_one = space.of([first])[:2]
    assert [(topic.qid, topic.group) for topic in topics[:2]] == [
        ("frequent-0-1", ONE_NEGATED),
        ("frequent-0-2", TWO_NEGATED),
    ]
    assert [topic.text for topic in topics[:2]] == [f"{first} NOT {near}", f"{first} NOT {near} OR {next_one}"]
    assert str(topics[1].expression) == str(parse(f"{first} NOT ({near} OR {next_one})"))
    assert topics[2].qid == "reversed-0-1" and topics[2].text == f"{near} NOT {first}"
    assert len({topic.qid for topic in topics}) == len(topics)


def test_filtering_drops_documents_and_vectors_do_not(space):
    topic = Topic("q", "suit NOT lawsuit", parse("suit NOT lawsuit"))
    holding = space.holding("lawsuit")
    assert len(holding) == 15 and space.holding("nowhere") == set()
    rankings = {
        name: [hit.docid for hit in WordSpaceMethod(name).search(lambda: space, [topic], 20)["q"]]
        for name in ("ignore", "filtering", "orthogonal", "constant", "subtraction")
    }
    assert all(len(ranking) == 20 for ranking in rankings.values())
    assert {*rankings["ignore"]} & holding and not {*rankings["filtering"]} & holding
    everything = [hit.docid for hit in WordSpaceMethod("ignore").search(lambda: space, [topic], 10**6)["q"]]
    assert rankings["filtering"] == [docid for docid in everything if docid not in holding][:20]
    assert {*rankings["orthogonal"][:10]} <= {f"d{number:03}" for number in range(15, 30)}


def test_what_is_refused(space):
    assert refusal(WordSpace, documents(["a b", "c"]), error=InputError) == (
        "of 2 documents no word is in 5 and in 10% at most, so there are no words to make queries of; give a larger "
        "collection"
    )
    assert refusal(WordSpaceMethod, "vanilla", error=QueryError) == (
        "difference in a word space must be one of orthogonal, constant, subtraction, ignore, filtering, got 'vanilla'"
    )
    topic = Topic("q1", "suit", parse("suit"))
    message = refusal(WordSpaceMethod("filtering").search, lambda: space, [topic], 5, error=InputError)
    assert message == "query 'q1' must be WORD NOT WORD, or WORD NOT (WORD OR WORD), got 'suit'"
    unknown = Topic("q", "nowhere NOT suit", parse("nowhere NOT suit"))
    assert WordSpaceMethod().search(lambda: space, [unknown], 5) == {"q": []}
