"""The guard of the first page."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lookup_encoder import LookupEncoder
from pair_index import write

from pyserini_compneg.commands.search import main
from pyserini_compneg.compose import Operators
from pyserini_compneg.expression import Atom, parse, verbalise
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.index import build_index
from pyserini_compneg.reading import decompose
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.search.guard import GUARDED, PAGE, guarded, search_guarded

NAMES = [f"n{number:02}" for number in range(40)]


@given(
    ranking=st.lists(st.sampled_from(NAMES), unique=True, max_size=30),
    scores=st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 7.0]), min_size=30, max_size=30),
    kept=st.lists(st.sampled_from(NAMES), unique=True, max_size=PAGE),
)
def test_the_page_holds_what_is_kept_and_else_the_ranking(ranking, scores, kept):
    hits = [Hit(docid, score) for docid, score in zip(ranking, sorted(scores, reverse=True), strict=False)]
    result = guarded(hits, kept)
    names = [hit.docid for hit in result]
    assert set(kept) <= set(names[:PAGE])
    assert sorted(names) == sorted({*ranking, *kept})
    assert all(before.score >= after.score for before, after in zip(result, result[1:], strict=False))
    moved = [hit.docid for hit in result if hit.extra]
    assert moved == [docid for docid in kept if docid not in ranking[:PAGE]]
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


def test_what_finds_nothing_gets_what_the_wording_finds_the_least_excluded_first(index):
    with SignedImpactSearcher(index) as searcher:
        hits = search_guarded(searcher, [Topic("1", "x", parse("unicorn NOT sperm"))], 30)["1"]
        wording = searcher.search("sperm", 30)
    assert [(hit.docid, hit.score) for hit in hits] == [(hit.docid, 0.0) for hit in reversed(wording)]
    assert len({hit.score for hit in wording}) == len(wording) == 3


def test_only_what_finds_nothing_at_all_is_said_to(index, caplog):
    topics = [Topic(text, "x", parse(text)) for text in ("unicorn NOT sperm", "unicorn NOT dragon", "unicorn")]
    with SignedImpactSearcher(index) as searcher:
        hits = search_guarded(searcher, topics)
    assert [len(ranked) for ranked in hits.values()] == [3, 0, 0]
    assert caplog.messages == [
        "no result for query unicorn NOT dragon: no positive term is left that the encoder knows",
        "no result for query unicorn: no positive term is left that the encoder knows",
    ]


EXPRESSIONS = [
    "whale NOT sperm",
    "whale OR (sea NOT sperm)",
    "(whale NOT sperm) AND (sea NOT unicorn)",
    "sperm NOT (whale OR sea)",
    "whale NOT (sperm NOT sea)",
    "unicorn NOT sperm",
    "unicorn NOT dragon",
    "whale NOT whale",
    "whale AND sea",
]


@pytest.mark.parametrize("operators", [Operators(), Operators(difference="damped"), Operators(union="vanilla")])
def test_neither_hits_nor_threads_nor_what_else_is_asked_change_a_ranking(index, operators):
    topics = [Topic(str(number), text, parse(text)) for number, text in enumerate(EXPRESSIONS)]
    with SignedImpactSearcher(index, operators=operators) as searcher:
        rankings = search_guarded(searcher, topics, 1000)
        assert any(hit.extra for ranked in rankings.values() for hit in ranked)
        for k in (1, 2, GUARDED, PAGE - 1, PAGE, PAGE + 1, 20):
            expected = {qid: ranked[:k] for qid, ranked in rankings.items()}
            assert search_guarded(searcher, topics, k, threads=2) == expected
            assert search_guarded(searcher, topics[1:2], k) == {"1": expected["1"]}
        with pytest.raises(ValueError, match="k must be a whole number from 1, got 0"):
            search_guarded(searcher, topics, 0)


def test_what_is_wanted_is_found_without_the_exclusion_s_words(index):
    """Also where a union is searched by its wording, which has them."""
    operators = Operators(union="vanilla", difference="subtraction")
    with SignedImpactSearcher(index, operators=operators) as searcher:
        hits = search_guarded(searcher, [Topic("1", "x", parse("unicorn OR (whale NOT (sperm OR sea))"))], PAGE)["1"]
        wanted = first(searcher, "unicorn OR whale", operators)
        assert not set(wanted) <= set(first(searcher, "unicorn OR (whale NOT (sperm OR sea))", operators))
    assert set(wanted) <= {hit.docid for hit in hits}


def test_documents_of_negative_weights(tmp_path):
    vectors = {f"d{number:02}": {"whale": 20 - number, "sperm": 2 * number - 9} for number in range(20)}
    wording = verbalise(parse("whale NOT sperm"))
    atoms = {"whale": {"whale": 1.0}, "sperm": {"sperm": 5.0}, wording: {"sperm": 1.0, "unicorn": -1.0}}
    folder = write(tmp_path / "index", vectors, signed=True)
    with SignedImpactSearcher(folder, LookupEncoder(atoms)) as searcher:
        hits = search_guarded(searcher, [Topic("1", "x", parse("whale NOT sperm"))], 30)["1"]
        plain = searcher.search("whale NOT sperm", 30)
        kept = {*first(searcher, "whale"), *first(searcher, Atom(wording))}
    assert kept == {f"d{number:02}" for number in (0, 1, 2, 3, 4, 15, 16, 17, 18, 19)}
    assert {hit.docid for hit in hits[:PAGE]} == kept
    assert hits == guarded(plain, [hit.docid for hit in plain if hit.docid in kept])


def test_in_an_index_of_less_than_a_page_what_is_kept_follows_the_ranking(tmp_path):
    folder = write(tmp_path / "index", {"a": {"A": 1, "B": 3}, "b": {"A": 2}, "c": {"B": 2}})
    atoms = {"A": {"A": 1.0}, "B": {"B": 1.0}, verbalise(parse("A NOT B")): {"B": 1.0}}
    with SignedImpactSearcher(folder, LookupEncoder(atoms)) as searcher:
        hits = search_guarded(searcher, [Topic("1", "x", parse("A NOT B"))])["1"]
        plain = searcher.search("A NOT B")
    assert hits == [*plain, Hit("c", plain[-1].score, {"guarded": True})]


def test_the_command(index, tmp_path, capfd):
    topics = tmp_path / "topics.jsonl"
    topics.write_text(json.dumps({"id": "1", "text": PLAIN}) + "\n")
    options = ["--index", str(index), "--decompose", "model", "--guard"]
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
    assert main([*options[:2], "--topics", str(topics), "--decompose", "model", "--output-format", "json"]) == 0
    assert "guarded" not in capfd.readouterr().out
