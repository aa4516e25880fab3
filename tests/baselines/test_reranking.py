"""Reranking by a stand-in for a model and by a tiny bi-encoder, against scores composed by hand."""

import math

import numpy as np
import pytest
from checkpoints import needs_sentence_transformers, write_dense
from film_index import FILMS, build
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg import SignedImpactSearcher, build_index, decompose
from pyserini_compneg.baselines import Reranked, ScoreFusion
from pyserini_compneg.index import build_sharded_index
from pyserini_compneg.search import Hit
from pyserini_compneg.support.errors import ArgumentError, EncodingError, IndexFormatError, InputError

TEXTS = {docid: f"{title}\n{text}" for docid, (title, text) in FILMS.items()}


def letters(text, document):
    """What share of a text's letters, counted by kind, a document's words begin with; any number will do."""
    found = sum(word.lower().startswith(text[0]) for word in document.split())
    return found / (1 + len(document.split())) + len(text) / 1000


class StandIn:
    """Shaped like a pair scorer; it remembers what it was asked."""

    name = "a/model"

    def __init__(self, score=letters):
        self.score, self.asked = score, []

    def scores(self, pairs):
        self.asked += pairs
        return [self.score(*pair) for pair in pairs]


class Rescaled:
    """The operators, with other scores."""

    def __init__(self, scale):
        self.scale = scale

    def answer(self, searcher, request):
        found = searcher.batch_search(request.queries, request.qids, request.k, filter=request.filters)
        return {
            qid: sorted((Hit(docid, self.scale(score)) for docid, score in hits), key=lambda hit: (-hit[1], hit[0]))
            for qid, hits in found.items()
        }


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("reranking"), store_raw=True)


@pytest.fixture
def searcher(index):
    with SignedImpactSearcher(index) as opened:
        yield opened


def composed(query, s):
    """The scores of the queries below, from those of the atoms."""

    def both(*scores):
        return (min(scores) + sum(scores) / len(scores)) / 2

    return {
        "spy": lambda: s("spy"),
        "spy OR western": lambda: max(s("spy"), s("western")),
        "spy AND comedy": lambda: both(s("spy"), s("comedy")),
        "spy NOT comedy": lambda: s("spy") - s("comedy") / 2,
        "(spy NOT drama NOT clumsy) AND comedy": lambda: both(s("spy"), s("comedy")) - max(s("drama"), s("clumsy")) / 2,
        "(spy OR western) NOT comedy": lambda: max(s("spy"), s("western")) - s("comedy") / 2,
        "spy NOT (comedy AND drama)": lambda: s("spy") - both(s("comedy"), s("drama")) / 2,
        "spy NOT! drama": lambda: s("spy"),
        "spy AND! comedy": lambda: both(s("spy"), s("comedy")),
    }[query]()


QUERIES = [
    "spy",
    "spy OR western",
    "spy AND comedy",
    "spy NOT comedy",
    "(spy NOT drama NOT clumsy) AND comedy",
    "(spy OR western) NOT comedy",
    "spy NOT (comedy AND drama)",
    "spy NOT! drama",
    "spy AND! comedy",
]


def scaled(values, of):
    return (np.array(values) - min(of)) / (max(of) - min(of) or 1)


def blended(query, first, score, share, count):
    """The ranking by the sum of shares, of which the first ``count`` documents have scores of the model."""
    texts = [TEXTS[hit.docid] for hit in first[:count]]

    def of_atom(text):
        values = [score(text, document) for document in texts]
        return dict(zip(texts, scaled(values, values), strict=True))

    values = [composed(query, lambda atom, t=text: of_atom(atom)[t]) for text in texts]
    firsts = scaled([hit.score for hit in first], [hit.score for hit in first[:count]])
    new = (1 - share) * firsts[:count] + share * scaled(values, values)
    docids = [hit.docid for hit in first]
    return sorted(zip(docids, [*new, *firsts[count:] - 1], strict=True), key=lambda hit: (-hit[1], hit[0]))


def check(found, expected):
    assert [hit.docid for hit in found] == [docid for docid, _ in expected]
    assert [hit.score for hit in found] == pytest.approx([score for _, score in expected], abs=1e-9)


@pytest.mark.parametrize("share", [1e-9, 0.3, 1])
@pytest.mark.parametrize(("hits", "k"), [(4, 3), (2, 9), (9, 9), (1, 9)])
def test_a_share_of_the_models_scores_joins_the_first_ones(searcher, share, hits, k):
    model = StandIn()
    found = searcher.batch_search(QUERIES, QUERIES, k, threads=2, method=Reranked(model, share, hits))
    first = searcher.batch_search(QUERIES, QUERIES, max(hits, k))
    for query in QUERIES:
        check(found[query], blended(query, first[query], letters, share, hits)[:k])
        rest = [docid for docid, _ in first[query][hits:k]]
        assert [hit.docid for hit in found[query][hits:]] == rest  # in their first order
    assert len(set(model.asked)) == len(model.asked)  # no pair is read twice
    assert {text for text, _ in model.asked} == {"spy", "western", "comedy", "drama", "clumsy"}


@pytest.mark.parametrize(
    "scale", [lambda x: x, lambda x: x - 1000, lambda x: -5 * (1 - x), lambda x: 1e-6 * x, lambda x: 1e300 * x]
)
def test_the_zero_and_the_unit_of_scores_do_not_matter(searcher, scale):
    """Neither of the first scores, which may all be negative, nor of the model's, such as logits."""
    expected = searcher.batch_search(QUERIES, QUERIES, 9, method=Reranked(StandIn(), hits=3))
    model = StandIn(lambda text, document: scale(letters(text, document)))
    found = searcher.batch_search(QUERIES, QUERIES, 9, method=Reranked(model, hits=3, first=Rescaled(scale)))
    for query in QUERIES:
        check(found[query], expected[query])


@pytest.mark.slow
def test_the_cosines_of_a_bi_encoder(searcher, tmp_path):
    """With vectors of the library, whose cosines numpy computes."""
    pytest.importorskip("torch", reason="sentence-transformers runs on torch")
    library = needs_sentence_transformers()
    from pyserini_compneg.baselines import pair_scorer

    folder = str(write_dense(tmp_path / "model"))
    model = library.SentenceTransformer(folder, device="cpu")

    def unit(encode, text):
        vector = encode([text], show_progress_bar=False)[0].astype(float)
        return vector / np.linalg.norm(vector)

    def cosine(text, document):
        return float(unit(model.encode_query, text) @ unit(model.encode_document, document))

    for query in ("spy AND comedy", "(spy OR western) NOT comedy"):
        first = searcher.search(query, 9)
        expected = blended(query, first, cosine, 0.15, 4)
        found = searcher.search(query, 9, method=Reranked(pair_scorer(folder), hits=4))
        assert [hit.docid for hit in found] == [docid for docid, _ in expected]
        assert [hit.score for hit in found] == pytest.approx([score for _, score in expected], abs=1e-3)


def test_ties_are_in_the_order_of_ids(searcher):
    """Scores of one value have no least and no best, and leave the other ones to decide."""
    first = searcher.search("spy OR comedy OR western", 9)
    assert len({hit.score for hit in first}) > 2
    method = Reranked(StandIn(lambda *_: -7.0), 0.3, 3)
    assert [hit.docid for hit in searcher.search("spy OR comedy OR western", 9, method=method)] == [
        hit.docid for hit in first
    ]
    method = Reranked(StandIn(lambda *_: -7.0), 0.3, 3, Rescaled(lambda _: -2.0))
    found = searcher.search("spy OR comedy OR western", 9, method=method)
    docids = sorted(hit.docid for hit in first)
    assert [tuple(hit) for hit in found] == [
        *((docid, 0.0) for docid in docids[:3]),
        *((one, -1.0) for one in docids[3:]),
    ]


def test_shards_give_the_ranking_of_one_index(tmp_path, searcher):
    films = ({"id": docid, "title": title, "text": text} for docid, (title, text) in FILMS.items())
    build_sharded_index(write_jsonl(tmp_path / "films.jsonl", *films), tmp_path / "shards", 2, store_raw=True)
    with SignedImpactSearcher(tmp_path / "shards") as shards:
        for query in QUERIES:
            method = Reranked(StandIn(), hits=3)
            assert shards.search(query, 9, method=method) == searcher.search(query, 9, method=method) != []


def test_any_method_may_come_first(searcher):
    first = ScoreFusion(depth=2)
    hits = searcher.search("spy AND comedy", 10, method=Reranked(StandIn(), first=first))
    assert {hit.docid for hit in hits} == {hit.docid for hit in searcher.search("spy AND comedy", 10, method=first)}
    inner = Reranked(StandIn())
    again = searcher.search(
        "spy", 10, method=Reranked(StandIn(lambda text, document: -len(document)), hits=1, first=inner)
    )
    assert [hit.docid for hit in again] == [hit.docid for hit in searcher.search("spy", 10, method=inner)]


def test_the_atoms_of_a_text_are_read(searcher):
    model = StandIn()
    text = "spy films but no comedies"
    searcher.search(decompose(text), method=Reranked(model))
    assert {asked for asked, _ in model.asked} == {"spy films", "comedies"}


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
        assert [tuple(hit) for hit in hits] == [("d3", 1.0), ("d2", 0.425), ("d1", 0.0)]
        said = "has no text, so the model reads an empty one"
        assert [message for message in caplog.messages if "no text" in message] == [
            f"2 of 3 documents, such as 'd2': {said}"
        ]
        message = refusal(searcher.search, "a", filter={"id": ["d2"]}, method=Reranked(model), error=IndexFormatError)
        said = "reranking reads the documents' texts, and the stored sources have none (contents, or title and text)"
        assert message == f"{tmp_path / 'index'}: {said}, such as 'd2'"
        message = refusal(searcher.search, "b", method=Reranked(model), error=InputError)
        assert message == f"{tmp_path / 'index'}: d4: `contents` must be a text, got a whole number"


@pytest.mark.parametrize("share", [0, -0.5, 1.5, math.nan, True, "1"])
def test_a_wrong_share(share):
    message = refusal(Reranked, StandIn(), share, error=ArgumentError)
    assert message == f"share must be a number above 0 and at most 1, got {share!r}"


def test_wrong_hits():
    assert refusal(Reranked, StandIn(), hits=0, error=ArgumentError) == "hits must be a whole number from 1, got 0"
