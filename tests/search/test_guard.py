"""The guard of the first page."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.compose import Operators
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.decompose import decompose
from pyserini_compneg.expression import parse
from pyserini_compneg.index import build_index
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.search.__main__ import main
from pyserini_compneg.search.guard import GUARDED, PAGE, guarded, search_guarded

NAMES = [f"n{number:02}" for number in range(40)]


@given(
    ranking=st.lists(st.sampled_from(NAMES), unique=True, max_size=30),
    scores=st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 7.0]), min_size=30, max_size=30),
    kept=st.lists(st.sampled_from(NAMES), max_size=PAGE),
)
def test_the_page_holds_what_is_kept_and_else_the_ranking(ranking, scores, kept):
    hits = [Hit(docid, score) for docid, score in zip(ranking, sorted(scores, reverse=True), strict=False)]
    result = guarded(hits, kept)
    names = [hit.docid for hit in result]
    assert set(kept) <= set(names[:PAGE])
    assert sorted(names) == sorted({*ranking, *kept})
    assert all(before.score >= after.score for before, after in zip(result, result[1:], strict=False))
    moved = [hit.docid for hit in result if hit.extra]
    assert set(moved) == set(kept) - set(ranking[:PAGE])
    stayed = [docid for docid in names if docid not in moved]
    if moved:
        on_page = [docid for docid in names[:PAGE] if docid not in moved]
        assert on_page == [docid for docid in ranking if docid in on_page]
        lost = [docid for docid in ranking[:PAGE] if docid not in on_page]
        assert stayed == [*on_page, *lost, *(docid for docid in ranking[PAGE:] if docid not in moved)]
        others = [docid for docid in ranking[:PAGE] if docid not in kept]
        assert lost == others[len(others) - len(lost) :]
    else:
        assert result == hits


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Many documents about whales; those that are also about sperm whales are the best for the whole wording."""
    folder = tmp_path_factory.mktemp("whales")
    texts = {f"w{number:02}": "whale " * 3 + "sea " * number for number in range(20)}
    texts |= {f"s{number}": "whale sea " + "sperm " * (number + 2) for number in range(3)}
    lines = [json.dumps({"id": docid, "text": text}) + "\n" for docid, text in texts.items()]
    (folder / "documents.jsonl").write_text("".join(lines))
    build_index(folder / "documents.jsonl", folder / "index")
    return folder / "index"


PLAIN = "whale other than sperm"


def first(searcher, query, operators=None):
    return [hit.docid for hit in searcher.batch_search(searcher.compose([query], operators), ["1"], GUARDED)["1"]]


def test_what_comes_first_without_the_exclusion_stays_on_the_page(index):
    reading = decompose(PLAIN)
    topic = Topic("1", PLAIN, reading.expression, decomposition=reading)
    with SignedImpactSearcher(index, operators=Operators(difference="damped")) as searcher:
        kept = {*first(searcher, PLAIN.replace("other", "").replace("than", "")), *first(searcher, "whale")}
        plain = searcher.search(reading.expression, 30)
        assert not kept <= {hit.docid for hit in plain[:PAGE]}
        for k in (3, PAGE, 30):
            hits = search_guarded(searcher, [topic], k)["1"]
            assert hits == guarded(plain, [hit.docid for hit in plain if hit.docid in kept])[:k]
            assert len(hits) == min(k, len(plain))


def test_queries_without_an_exclusion_are_left_alone(index):
    topics = [Topic("1", "whale", parse("whale")), Topic("2", "x", composed={"vector": {"whale": 1, "sperm": -1}})]
    with SignedImpactSearcher(index) as searcher:
        hits = search_guarded(searcher, topics, 30)
        assert hits["1"] == searcher.search("whale", 30)
        assert not any(hit.extra for ranked in hits.values() for hit in ranked)


def test_what_finds_nothing_gets_what_the_whole_wording_finds(index):
    with SignedImpactSearcher(index) as searcher:
        hits = search_guarded(searcher, [Topic("1", "x", parse("unicorn NOT sperm"))], 30)["1"]
    assert {hit.docid for hit in hits} == {"s0", "s1", "s2"}
    assert {hit.score for hit in hits} == {0.0}


def test_the_command(index, tmp_path, capfd):
    topics = tmp_path / "topics.jsonl"
    topics.write_text(json.dumps({"id": "1", "text": PLAIN}) + "\n")
    options = ["--index", str(index), "--decompose", "cues", "--guard"]
    assert main([*options, "--topics", str(topics), "--hits", "12", "--output-format", "json"]) == 0
    hits = json.loads(capfd.readouterr().out)["hits"]
    assert {hit["docid"] for hit in hits if hit.get("guarded")} == {"s0", "s1", "s2"} & {
        h["docid"] for h in hits[:PAGE]
    }
    assert main([*options, "--query", PLAIN]) == 0
    shown = capfd.readouterr().out
    assert [line.split()[2] for line in shown.splitlines() if line.endswith("(guarded)")] == [
        hit["docid"] for hit in hits if hit.get("guarded")
    ]
    assert main([*options[:2], "--topics", str(topics), "--decompose", "cues", "--output-format", "json"]) == 0
    assert "guarded" not in capfd.readouterr().out
