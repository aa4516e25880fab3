import asyncio

import pytest
from film_index import FILMS, build
from hosts import adapter
from refusals import refusal

from pyserini_compneg import SignedImpactSearcher, build_index, decompose
from pyserini_compneg.support.errors import ArgumentError, QueryError

host = adapter("langchain")


@pytest.fixture(params=[True, False], ids=["texts", "no texts"])
def searcher(request, tmp_path):
    with SignedImpactSearcher(build(tmp_path, store_raw=request.param)) as searcher:
        searcher.has_texts = request.param
        yield searcher


def test_retriever(searcher):
    retriever = host.CompNegRetriever(searcher=searcher, k=2)
    if not searcher.has_texts:
        said = f"{searcher.reader.folder} stores no texts; build it with store_raw=True, or index --store-raw"
        assert refusal(retriever.invoke, "spy", error=ValueError) == said
        return
    found = retriever.invoke("spy NOT comedy")
    assert [(one.id, one.metadata["score"]) for one in found] == searcher.search("spy NOT comedy", 2)
    assert (found[0].id, found[0].metadata["title"], found[0].page_content) == ("d2", *FILMS["d2"])
    assert asyncio.run(retriever.ainvoke("spy NOT comedy")) == found
    only = host.CompNegRetriever(searcher=searcher, filter={"id": ["d1", "d3"]})
    assert {one.id for one in only.invoke("spy")} == {"d1", "d3"}
    for asked, both in (("d2", []), (["d1", "d2"], ["d1"])):
        assert [one.id for one in only.invoke("spy", filter={"id": asked})] == both
        assert [one.id for one in asyncio.run(only.ainvoke("spy", filter={"id": asked}))] == both
    assert "a filter must name fields" in refusal(only.invoke, "spy", filter={}, error=ArgumentError)
    with pytest.raises(ValueError, match="filters"):
        host.CompNegRetriever(searcher=searcher, filters={"id": "d1"})
    plain = host.CompNegRetriever(searcher=searcher, k=2, read=decompose)
    assert plain.invoke("spy dramas other than comedies (and so on")[0].id == "d2"
    assert "expected" in refusal(retriever.invoke, "spy AND (film", error=QueryError)


SOURCES = {
    "text": ({"text": "A western."}, "A western.", {}),
    "contents": ({"contents": "A western.", "year": 1999}, "A western.", {"year": 1999}),
    "no text but a title": ({"title": "Western", "text": None}, "Western", {"title": "Western"}),
    "an empty text": ({"title": "Western", "text": ""}, "Western", {"title": "Western"}),
    "a score": ({"text": "A western.", "score": 0.5}, "A western.", {"score": 0.5}),
}


@pytest.mark.parametrize(("source", "text", "fields"), SOURCES.values(), ids=SOURCES)
def test_sources(tmp_path, source, text, fields):
    build_index([{"id": "d1", **source}], tmp_path / "index", store_raw=True)
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        (found,) = host.CompNegRetriever(searcher=searcher).invoke("western")
        (hit,) = searcher.search("western")
    assert found.page_content == text
    assert found.metadata == {"id": "d1", "relevance_score": hit.score, "score": hit.score, **fields}
