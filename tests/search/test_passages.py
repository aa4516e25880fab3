"""An index of passages ranks documents by their best passages, as brute force over all passages does."""

import json
import math
from collections import Counter

import pytest
from filter_oracle import allows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_lines import write_jsonl

from pyserini_compneg import SignedImpactSearcher, build_index
from pyserini_compneg.compose import Linear
from pyserini_compneg.documents.passages import split_text
from pyserini_compneg.expression import Filter
from pyserini_compneg.index import ImpactIndexer, ImpactUpdater, build_sharded_index, verify_index
from pyserini_compneg.lucene import ImpactReader, ImpactWriter
from pyserini_compneg.lucene.passage_reader import by_document
from pyserini_compneg.search import PassageHit
from pyserini_compneg.support.errors import CompNegError

WORDS = ["spy", "war", "soup", "bird"]
IDS = ["a", "a!", "a!b", "a#1", "a#00001", "b", "1990..1999", "é", "😀", "\uffee", "a\x01", "B", "ab", "12"]
QUERIES = ["spy", "spy AND war", "spy OR bird", "spy NOT war", "(spy OR soup) NOT! war", "spy AND! bird"]
FILTERS = [
    None,
    Filter({"genre": "x"}),
    Filter({"id": ["a", "a#1", "1990..1999", "nobody"]}),
    Filter({"id": "b", "genre": "y"}),
]
INDEPENDENT = settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@st.composite
def collections(draw):
    """Documents with few words, so that many passages have equal scores."""
    docids = draw(st.lists(st.sampled_from(IDS), min_size=2, max_size=len(IDS), unique=True))
    texts = st.lists(st.sampled_from([*WORDS, "spy war", "spy\n  spy"]), max_size=30).map(" ".join)
    titles = st.none() | st.sampled_from(["", "bird", "War film"])
    documents = []
    for number, docid in enumerate(docids):
        document = {"id": docid, "text": draw(texts), "genre": draw(st.sampled_from("xy")), "title": draw(titles)}
        document["text"] += " spy" * (number == 0)  # so that the index is not empty
        documents.append({name: value for name, value in document.items() if value is not None})
    documents[0]["genre"] = "x"
    return documents


def write(path, documents):
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in documents))
    return path


def split(document, words, overlap):
    """The passages of a document, by the definition."""
    found, step = document["text"].split(), words - overlap
    lists = [found[i : i + words] for i in range(0, max(1, len(found)), step)]
    while len(lists) > 1 and len(lists[-2]) < words or (len(lists) > 1 and len(lists[-1]) <= overlap):
        lists.pop()
    return [" ".join(one) for one in lists]


def plain(documents, words, overlap):
    """The same passages as documents of their own."""
    for document in documents:
        title = [document["title"]] if "title" in document else []
        for number, text in enumerate(split(document, words, overlap)):
            passage = {"id": f"{document['id']}#{number:05}", "contents": "\n".join([*title, text])}
            yield {**passage, "genre": document["genre"]}


def best(hits, k, allowed):
    """The documents of passages by their best scores."""
    found = {}
    for passage, score in hits:
        docid, _, number = passage.rpartition("#")
        if docid in allowed:
            found[docid] = min(found.get(docid, (math.inf, 0)), (-score, int(number)))
    ranked = sorted((score, docid, number) for docid, (score, number) in found.items())
    return [(docid, -score, number) for score, docid, number in ranked][:k]


def triples(hits):
    return [(hit.docid, hit.score, hit.passage) for hit in hits]


@INDEPENDENT
@given(collections(), st.integers(1, 6), st.data(), st.integers(1, 3))
def test_documents_rank_by_their_best_passages(tmp_path_factory, documents, words, data, shards):
    folder, overlap = tmp_path_factory.mktemp("index"), data.draw(st.integers(0, words - 1))
    lines = write(folder / "documents.jsonl", documents)
    options = {"filter_fields": ["genre"], "store_raw": True, "passages": {"words": words, "overlap": overlap}}
    shards = 1 if data.draw(st.booleans()) else min(shards, len(documents))
    try:
        if shards == 1:
            build_index(lines, folder / "index", **options)
        else:
            build_sharded_index(lines, folder / "index", shards, **options)
    except CompNegError as error:
        assert "nothing to index" in str(error)  # a shard without a word
        return
    others = write(folder / "passages.jsonl", plain(documents, words, overlap))
    manifest = build_index(others, folder / "plain", filter_fields=["genre"])
    assert verify_index(folder / "index") == manifest.documents
    with SignedImpactSearcher(folder / "index") as searcher, SignedImpactSearcher(folder / "plain") as passages:
        assert searcher.num_docs == len(documents)
        for query in data.draw(st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3, unique=True)):
            only, k = data.draw(st.sampled_from(FILTERS)), data.draw(st.integers(1, len(documents)))
            values = {one["id"]: {"genre": [one["genre"]], "id": [one["id"]]} for one in documents}
            allowed = {docid for docid in values if only is None or allows(only, values[docid])}
            (query,) = searcher.compose([query])  # NOT damps by the scores of the best documents, not passages
            every = passages.search(query, 10_000)
            wanted = best(every, len(documents), allowed)
            hits = searcher.search(query, k, filter=only)
            assert triples(hits) == wanted[:k]
            genres = Counter(values[docid]["genre"][0] for docid, *_ in wanted)
            counted = searcher.matches(query, filter=only, facets={"genre": 1 + k % 2}, threads=2)
            assert counted.total == (len(wanted), "eq")
            ranked = sorted(genres.items(), key=lambda one: (-one[1], one[0]))
            assert [*counted.facets["genre"].items()] == ranked[: 1 + k % 2]
            pages, after = [], None
            while page := searcher.search(query, 2, filter=only, after=after):
                pages, after = pages + page, page[-1]
            assert triples(pages) == wanted
            scores = {docid: score for docid, score, _ in best(every, len(documents), set(values))}
            assert searcher.score(query, [*values, "nobody"]) == [*map(scores.get, values), None]
            for hit in hits:
                assert searcher.explain(query, hit.docid).score == hit.score
                assert searcher.explain(query, hit.docid, filter=only).passage == hit.passage
                source = next(one for one in documents if one["id"] == hit.docid)
                passage = searcher.passage(hit)
                assert passage.text.split() == split(source, words, overlap)[hit.passage].split()
                assert source["text"][passage.start : passage.end] == passage.text
                assert searcher.doc(hit.docid) == source


@st.composite
def vectors(draw):
    """Documents with vectors of their passages, of few weights, so that many have equal scores."""
    docids = draw(st.lists(st.sampled_from(IDS), min_size=2, max_size=len(IDS), unique=True))
    vector = st.dictionaries(st.sampled_from(WORDS), st.integers(1, 2), max_size=3)
    passages = st.lists(vector, min_size=1, max_size=4)
    documents = [{"id": one, "vectors": draw(passages), "genre": draw(st.sampled_from("xy"))} for one in docids]
    documents[0] |= {"vectors": [{}, {"spy": 1}], "genre": "x"}  # so that the index is not empty
    return documents


def best_passages(documents, weights):
    """The definition of MaxP: the first of the passages with the highest score, among those with a wanted term."""
    found = {}
    for document in documents:
        for number, vector in enumerate(document["vectors"]):
            score = sum(weights.get(term, 0) * impact for term, impact in vector.items())
            if any(weights.get(term, 0) > 0 for term in vector):
                found.setdefault(document["id"], []).append((-score, number))
    ranked = sorted((min(passages), docid) for docid, passages in found.items())
    ranked.sort(key=lambda one: (one[0][0], one[1]))
    return [(docid, -score, number) for (score, number), docid in ranked]


@INDEPENDENT
@given(vectors(), st.dictionaries(st.sampled_from(WORDS), st.integers(-2, 3), min_size=1), st.booleans(), st.data())
def test_vectors_of_passages_rank_as_their_definition_says(tmp_path_factory, documents, weights, sharded, data):
    folder = tmp_path_factory.mktemp("index")
    lines = write(folder / "documents.jsonl", documents)
    options = {"filter_fields": ["genre"], "passages": {"words": 9, "overlap": 0}}
    try:
        if sharded:
            build_sharded_index(lines, folder / "index", 2, "m", **options)
        else:
            build_index(lines, folder / "index", "m", **options)
    except CompNegError as error:
        assert "nothing to index" in str(error)
        return
    with SignedImpactSearcher(folder / "index") as searcher:
        query = Linear({term: float(weight) for term, weight in weights.items()})
        for only in FILTERS:
            there = [one for one in documents if not only or allows(only, {"genre": [one["genre"]], "id": [one["id"]]})]
            wanted = best_passages(there, weights)
            for k in (1, 2, len(documents)):
                assert triples(searcher.search(query, k, filter=only)) == wanted[:k]
            genres = Counter(one["genre"] for one in there if one["id"] in {docid for docid, *_ in wanted})
            counted = searcher.matches(query, filter=only, facets={"genre": 2})
            assert (counted.total.value, counted.facets["genre"]) == (len(wanted), dict(genres))
        if wanted := best_passages(documents, weights):
            place = data.draw(st.integers(0, len(wanted) - 1))
            docid, score, passage = wanted[place]
            assert (
                triples(searcher.search(query, 3, after=PassageHit(docid, score, passage))) == wanted[place + 1 :][:3]
            )


@given(st.text("ab \n\u3000é", max_size=40), st.integers(1, 5), st.data())
def test_passages_cover_a_text(text, words, data):
    passages = split_text(text, words, data.draw(st.integers(0, words - 1)))
    assert {word for passage in passages for word in passage.text.split()} == set(text.split())
    assert all(len(passage.text.split()) == words for passage in passages[:-1])
    assert all(text[start:end] == found for _, start, end, found in passages)


@pytest.mark.parametrize("other", ["a!", "a#00000"])
def test_a_document_whose_equal_passages_come_last_is_first(tmp_path, other):
    """The ids of the other document's passages are smaller, though its own id is larger."""
    documents = [{"id": other, "contents": "spy " * 40}, {"id": "a", "contents": "war war spy"}]
    lines = write(tmp_path / "documents.jsonl", documents)
    build_index(lines, tmp_path / "index", passages={"words": 1, "overlap": 0})
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert [(hit.docid, hit.passage) for hit in searcher.search("spy", 1)] == [("a", 2)]
        assert [hit.docid for hit in searcher.search("spy", 2)] == ["a", other]


def test_further_passages_do_not_repeat_the_lines_of_their_block(tmp_path, monkeypatch):
    """Otherwise a long text among short ones takes quadratic time."""
    sizes, add_lines = [], ImpactIndexer.add_lines

    def counting(self, lines, *more):
        sizes.append(len(lines.splitlines()))
        add_lines(self, lines, *more)

    monkeypatch.setattr(ImpactIndexer, "add_lines", counting)
    texts = ["owl", "spy owl", "owl", "spy spy owl", "owl"]
    lines = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    source = write_jsonl(tmp_path / "c.jsonl", *lines)
    build_index(source, tmp_path / "index", encoder="bm25", passages={"words": 1, "overlap": 0})
    assert sizes == [5, 3, 1]
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert [(hit.docid, hit.passage) for hit in searcher.search("spy", 9)] == [("d1", 0), ("d3", 0)]
        owls = {hit.docid: hit.passage for hit in searcher.search("owl", 9)}
    assert owls == {"d0": 0, "d1": 1, "d2": 0, "d3": 2, "d4": 0}


def test_explanations_push_no_filter_out(tmp_path):
    lines = [{"id": f"d{number}", "text": "spy owl", "genre": "x"} for number in range(5)]
    source = write_jsonl(tmp_path / "c.jsonl", *lines)
    build_index(source, tmp_path / "index", passages={"words": 1, "overlap": 0}, filter_fields=["genre"])
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        hits = searcher.search("spy", 5, filter={"genre": "x"})
        kept = searcher.reader.passages._kept_filters.cache_info().currsize
        assert len(hits) == 5 and all(searcher.explain("spy", hit.docid) for hit in hits)
        assert searcher.reader.passages._kept_filters.cache_info().currsize == kept


def test_a_reader_of_passages_is_as_open_as_its_passages(tmp_path):
    lines = [{"id": f"d{number}", "text": "spy owl", "genre": "x"} for number in range(3)]
    options = {"passages": {"words": 1, "overlap": 0}, "filter_fields": ["genre"]}
    build_index(write_jsonl(tmp_path / "c.jsonl", *lines), tmp_path / "index", **options)
    kept, passages = Filter({"genre": "x"}), ImpactReader(tmp_path / "index")
    with by_document(passages) as reader:
        assert (reader.document_count, reader.filtered(kept).allowed) == (3, 3)
        assert reader.filtered(kept) is reader.filtered(kept)  # translated once
        build_index(write_jsonl(tmp_path / "d.jsonl", *lines[:1]), tmp_path / "index", existing="overwrite", **options)
        assert reader.is_replaced() and passages.reopen() and not reader.is_replaced()
        assert (reader.document_count, reader.filtered(kept).allowed) == (1, 1)
        (found,) = reader.search([Linear({"owl": 1.0})], 9)
        assert found.docids == ["d0"]


def test_the_passages_of_deleted_documents_are_dropped_together(tmp_path, monkeypatch):
    lines = [{"id": f"d{number}", "text": "spy owl"} for number in range(9)]
    build_index(write_jsonl(tmp_path / "c.jsonl", *lines), tmp_path / "index", passages={"words": 1, "overlap": 0})
    calls, delete = [], ImpactWriter.delete
    monkeypatch.setattr(ImpactWriter, "delete", lambda *given, **more: calls.append(given) or delete(*given, **more))
    with ImpactUpdater(tmp_path / "index") as updater:
        updater.delete([f"d{number}" for number in range(7)])
        assert len(calls) == 1
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert [hit.docid for hit in searcher.search("owl", 9)] == ["d7", "d8"]
