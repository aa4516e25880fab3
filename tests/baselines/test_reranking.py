"""Reranking by a stand-in for a model, against scores composed by hand."""

import math

import pytest
from film_index import FILMS, build
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg import SignedImpactSearcher, build_index, decompose
from pyserini_compneg.baselines import Reranked, ScoreFusion
from pyserini_compneg.baselines.reranking import READS
from pyserini_compneg.support.errors import (
    ArgumentError,
    EncodingError,
    IndexFormatError,
    InputError,
)

TEXTS = {docid: f"{title}\n{text}" for docid, (title, text) in FILMS.items()}


def share(text, document):
    """What share of a text's letters, counted by kind, a document's words begin with; any number will do."""
    found = sum(word.lower().startswith(text[0]) for word in document.split())
    return found / (1 + len(document.split())) + len(text) / 1000


class StandIn:
    """Shaped like a pair scorer; it remembers what it was asked."""

    name = "a/model"

    def __init__(self, score=share):
        self.score, self.asked = score, []

    def scores(self, pairs):
        self.asked += pairs
        return [self.score(*pair) for pair in pairs]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("reranking"), store_raw=True)


@pytest.fixture
def searcher(index):
    with SignedImpactSearcher(index) as opened:
        yield opened


def composed(query, s):
    """The scores of the queries below, from those of the atoms."""
    return {
        "spy": lambda: s("spy"),
        "spy OR western": lambda: max(s("spy"), s("western")),
        "spy AND comedy": lambda: min(s("spy"), s("comedy")),
        "spy NOT comedy": lambda: s("spy") - s("comedy"),
        "(spy NOT drama NOT clumsy) AND comedy": lambda: min(s("spy"), s("comedy")) - max(s("drama"), s("clumsy")),
        "(spy OR western) NOT comedy": lambda: max(s("spy"), s("western")) - s("comedy"),
        "spy NOT (comedy AND drama)": lambda: s("spy") - min(s("comedy"), s("drama")),
        "spy NOT! drama": lambda: s("spy"),
        "spy AND! comedy": lambda: min(s("spy"), s("comedy")),
    }[query]()


WORDINGS = {
    "spy": "spy",
    "spy OR western": "spy or western",
    "spy AND comedy": "spy that are also comedy",
    "spy NOT comedy": "spy that are not comedy",
    "(spy NOT drama NOT clumsy) AND comedy": "(spy that are not drama or clumsy) that are also comedy",
    "(spy OR western) NOT comedy": "(spy or western) that are not comedy",
    "spy NOT (comedy AND drama)": "spy that are not (comedy that are also drama)",
    "spy NOT! drama": "spy",
    "spy AND! comedy": "spy that are also comedy",
}


@pytest.mark.parametrize("by", READS)
def test_the_first_documents_are_ranked_by_the_models_scores(searcher, by):
    model = StandIn()
    method = Reranked(model, by=by, hits=4)
    queries = list(WORDINGS)
    found = searcher.batch_search(queries, queries, 3, threads=2, method=method)
    first = searcher.batch_search(queries, queries, 4)
    for query, wording in WORDINGS.items():
        expected = {}
        for docid, _ in first[query]:
            parts = [share(wording, TEXTS[docid])] if by != "atoms" else []
            parts += [composed(query, lambda text, d=docid: share(text, TEXTS[d]))] if by != "text" else []
            expected[docid] = sum(parts) / len(parts)
        ranked = sorted(expected.items(), key=lambda hit: (-hit[1], hit[0]))[:3]
        assert [hit.docid for hit in found[query]] == [docid for docid, _ in ranked]
        assert [hit.score for hit in found[query]] == pytest.approx([score for _, score in ranked])
    assert len(set(model.asked)) == len(model.asked)  # no pair is read twice
    if by == "atoms":
        assert {text for text, _ in model.asked} == {"spy", "western", "comedy", "drama", "clumsy"}


def test_any_method_may_come_first(searcher):
    first = ScoreFusion(depth=2)
    hits = searcher.search("spy AND comedy", 10, method=Reranked(StandIn(), first=first))
    assert {hit.docid for hit in hits} == {hit.docid for hit in searcher.search("spy AND comedy", 10, method=first)}
    again = Reranked(StandIn(lambda text, document: -len(document)), hits=1, first=Reranked(StandIn()))
    assert len(searcher.search("spy", 10, method=again)) == 1


def test_a_text_that_was_read_keeps_its_wording(searcher):
    model = StandIn()
    text = "spy films but no comedies"
    searcher.search(decompose(text), method=Reranked(model, by="both"))
    assert {asked for asked, _ in model.asked} >= {text, "comedies"}


def test_nothing_is_found_and_nothing_is_read(searcher, caplog):
    model = StandIn()
    assert searcher.search("zebra", method=Reranked(model)) == []
    assert model.asked == []
    assert [message.split(":")[0] for message in caplog.messages] == ["no result for query zebra"]


def test_filters_hold(searcher):
    found = searcher.search("spy", filter={"id": ["d2", "d3"]}, method=Reranked(StandIn()))
    assert {hit.docid for hit in found} == {"d2", "d3"}


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_model_that_gives_no_number(searcher, score):
    message = refusal(searcher.search, "spy", method=Reranked(StandIn(lambda *_: score)), error=EncodingError)
    assert message == f"a/model: scores document 'd1' with {score} for 'spy'; its weights are damaged"


def test_an_index_without_texts(tmp_path):
    with SignedImpactSearcher(build(tmp_path)) as searcher:
        message = refusal(searcher.search, "spy", method=Reranked(StandIn()), error=IndexFormatError)
        said = "reranking reads the documents' texts, which are not stored; build it with index --store-raw"
        assert message == f"{tmp_path / 'index'}: {said}"


def test_documents_without_a_text(tmp_path, caplog):
    documents = [
        {"id": "d1", "contents": "", "vector": {"a": 1}},
        {"id": "d2", "vector": {"a": 2}},
        {"id": "d3", "contents": "words", "vector": {"a": 3}},
        {"id": "d4", "contents": 7, "vector": {"b": 3}},
    ]
    write_jsonl(tmp_path / "atoms.jsonl", {"text": "a", "vector": {"a": 1}}, {"text": "b", "vector": {"b": 1}})
    folder = write_jsonl(tmp_path / "documents.jsonl", *documents)
    build_index(folder, tmp_path / "index", "a-model", store_raw=True)
    with SignedImpactSearcher(tmp_path / "index", tmp_path / "atoms.jsonl") as searcher:
        model = StandIn(lambda text, document: len(document))
        hits = searcher.search("a", method=Reranked(model))
        assert [tuple(hit) for hit in hits] == [("d3", 5.0), ("d1", 0.0), ("d2", 0.0)]
        said = "has no text, so the model reads an empty one"
        assert [message for message in caplog.messages if "no text" in message] == [
            f"2 of 3 documents, such as 'd2': {said}"
        ]
        message = refusal(searcher.search, "a", filter={"id": ["d2"]}, method=Reranked(model), error=IndexFormatError)
        said = "reranking reads the documents' texts, and the stored sources have none (contents, or title and text)"
        assert message == f"{tmp_path / 'index'}: {said}, such as 'd2'"
        message = refusal(searcher.search, "b", method=Reranked(model), error=InputError)
        assert message == f"{tmp_path / 'index'}: d4: `contents` must be a text, got a whole number"


def test_wrong_settings():
    assert (
        refusal(Reranked, StandIn(), by="all", error=ArgumentError) == "by must be one of both, text, atoms, got 'all'"
    )
    assert refusal(Reranked, StandIn(), hits=0, error=ArgumentError) == "hits must be a whole number from 1, got 0"
