"""``search --method`` and ``search --rerank``, through the command, with a stand-in for a model."""

import json
from pathlib import Path

import pytest
from film_index import build
from json_lines import write_jsonl

from pyserini_compneg.baselines import METHODS, Filtering, Reranked, ScoreFusion, TwoStep
from pyserini_compneg.commands.search import main
from pyserini_compneg.compose import Operators
from pyserini_compneg.search import SignedImpactSearcher

QUERIES = {"1": "spy AND comedy", "2": "western NOT comedy", "3": "spy OR western"}


class StandIn:
    """Prefers short texts, and those that have the query's first word."""

    name, model_hash = "a/model", "0"

    def scores(self, pairs):
        return [(query.split()[0] in text.lower()) / 2 + 1 / (3 + len(text)) for query, text in pairs]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("methods"), store_raw=True)


@pytest.fixture
def topics(tmp_path):
    return write_jsonl(tmp_path / "topics.jsonl", *({"id": qid, "expression": q} for qid, q in QUERIES.items()))


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr("pyserini_compneg.commands.method_flags.pair_scorer", lambda name: StandIn())


def run(index, *arguments):
    return main(["--index", str(index), *map(str, arguments)])


def lines(capfd):
    return [line.split() for line in capfd.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("flags", "method"),
    [
        (["--method", "score-fusion"], ScoreFusion()),
        (["--method", "score-fusion-scaled", "--depth", "2"], ScoreFusion(scaled=True, depth=2)),
        (["--method", "filtering", "--cpt-weight", "9"], Filtering(Operators(cpt_weight=9, exclusion="any"))),
        (["--method", "two-step", "--depth", "3"], TwoStep(depth=3)),
        (["--rerank", "a/model"], Reranked(StandIn())),
        (
            ["--rerank", "a/model", "--rerank-hits", "2", "--rerank-by", "both", "--method", "two-step"],
            Reranked(StandIn(), "both", 2, TwoStep()),
        ),
    ],
)
def test_a_run_is_that_of_the_searcher(index, topics, model, capfd, flags, method):
    assert run(index, "--topics", topics, "--batch-size", "2", *flags) == 0
    found = [(row[0], row[2]) for row in lines(capfd)]
    with SignedImpactSearcher(index) as searcher:
        expected = searcher.batch_search(list(QUERIES.values()), list(QUERIES), 1000, method=method)
    assert found == [(qid, hit.docid) for qid, hits in expected.items() for hit in hits] != []


def test_operators_are_a_method(index, topics, capfd):
    assert run(index, "--topics", topics, "--method", "operators", "--difference", "nrf") == 0
    chosen = lines(capfd)
    assert run(index, "--topics", topics, "--difference", "nrf") == 0
    assert lines(capfd) == chosen


@pytest.mark.parametrize(
    ("flags", "tag"),
    [
        ([], "compneg-bm25"),
        (["--difference", "damped", "--read", "expression"], "compneg-bm25"),
        (["--difference", "nrf", "--difference-weight", "0.5"], "compneg-bm25-difference=nrf-difference-weight=0.5"),
        (["--read", "model", "--difference", "disentangled"], "compneg-bm25-difference=disentangled-read=model"),
        (["--method", "score-fusion", "--depth", "9"], "compneg-bm25-score-fusion-depth=9"),
        (["--method", "filtering", "--rerank", "folder/m"], "compneg-bm25-filtering-rerank=m"),
        (["--rerank", "a model", "--rerank-by", "atoms"], "compneg-bm25-rerank=a_model-rerank-by=atoms"),
        (["--min-idf", "-1", "--filter", "ids.txt"], "compneg-bm25-filter=ids.txt-min-idf=-1.0"),
        (["--method", "two-step", "--tag", "mine"], "mine"),
    ],
)
def test_the_tag_says_what_made_the_run(index, topics, model, capfd, monkeypatch, flags, tag):
    monkeypatch.chdir(topics.parent)
    Path("ids.txt").write_text("d4\n")
    assert run(index, "--topics", topics, *flags) == 0
    assert {row[-1] for row in lines(capfd)} == {tag}


def test_a_readable_list(index, model, capfd):
    assert run(index, "--query", "western NOT comedy", "--method", "two-step", "--hits", "1") == 0
    out = capfd.readouterr().out.splitlines()
    assert out[0] == "western NOT comedy" and out[1].endswith("Western  [d4]")
    assert out[2].split()[:2] == ["+", "western"]
    assert run(index, "--query", "western NOT comedy", "--method", "score-fusion", "--hits", "2") == 0
    assert [line.split()[-1] for line in capfd.readouterr().out.splitlines()[1:]] == ["[d4]", "[d5]"]
    assert run(index, "--query", "western NOT comedy", "--rerank", "m", "--hits", "1", "--rerank-by", "text") == 0
    assert capfd.readouterr().out == f"western NOT comedy\n  1      {1 / 2 + 1 / 33:.3f}  Western  [d4]\n"


def test_plain_texts_are_read_for_a_method(index, capfd):
    flags = ["--query", "western films but no comedy", "--read", "model", "--output-format", "json"]
    for name in METHODS:
        assert run(index, *flags, "--method", name) == 0
        (record,) = map(json.loads, capfd.readouterr().out.splitlines())
        assert record["hits"][0]["docid"] == "d4"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--method", "filtering", "--difference", "nrf"], "--difference has no use with --method filtering"),
        (["--method", "score-fusion", "--cpt-terms", "3"], "--cpt-terms has no use with --method score-fusion"),
        (["--method", "score-fusion", "--cpt", "materialised"], "--cpt has no use with --method score-fusion"),
        (["--method", "filtering", "--depth", "3"], "--depth has no use with --method filtering"),
        (["--depth", "3"], "--depth has no use with operators; it is for --method score-fusion or two-step"),
        (["--rerank-hits", "3"], "--rerank-hits has no use without --rerank MODEL"),
        (["--rerank-by", "text", "--rerank-hits", "3"], "--rerank-by has no use without --rerank MODEL"),
        (
            ["--rerank", "no such"],
            "no model of sentence-transformers 'no such'; expected a folder, or owner/name on the Hugging Face hub",
        ),
        (["--method", "two-step", "--union", "vanilla", "--cpt-weight", "-1"], "argument --cpt-weight: must be a "),
        (["--method", "fusion"], "argument --method: invalid choice: 'fusion' (choose from"),
    ],
)
def test_flags_without_a_use(index, topics, tmp_path, capfd, flags, message):
    if "--rerank" in flags:
        pytest.importorskip("sentence_transformers", reason="rerankers are models of it")
    output = tmp_path / "run.txt"
    assert run(index, "--topics", topics, "--output", output, *flags) == 2
    out, err = capfd.readouterr()
    assert (out, err.splitlines()[0].startswith(f"error: {message}")) == ("", True), err
    assert not output.exists()


def test_a_query_that_a_method_cannot_answer(index, tmp_path, capfd, caplog):
    topics = write_jsonl(
        tmp_path / "topics.jsonl",
        {"id": "1", "expression": "spy"},
        {"id": "2", "expression": "spy NOT! comedy"},
        {"id": "3", "vector": {"spy": 1}},
    )
    output = tmp_path / "run.txt"
    flags = ["--topics", topics, "--output", output, "--method", "score-fusion"]
    assert run(index, *flags) == 2
    said = "score fusion cannot leave documents out, as NOT! does; use operators"
    assert capfd.readouterr().err == f"error: {topics}:2: query 2: {said}\n"
    assert not output.exists()
    assert run(index, *flags, "--on-error", "skip") == 0
    assert {line.split()[0] for line in output.read_text().splitlines()} == {"1"}
    composed = "a composed query has no atoms any more, so only operators run it; leave out the method"
    left_out = [f"query 2: {said}; left out", f"query 3: {composed}; left out"]
    assert caplog.messages[-3:] == [*left_out, "2 of 3 queries are left out"]


def test_a_model_that_fails_leaves_no_run(index, topics, tmp_path, monkeypatch, capfd):
    class Broken(StandIn):
        def scores(self, pairs):
            return [float("nan")] * len(pairs)

    monkeypatch.setattr("pyserini_compneg.commands.method_flags.pair_scorer", lambda name: Broken())
    output = tmp_path / "run.txt"
    assert run(index, "--topics", topics, "--output", output, "--rerank", "m") == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith("its weights are damaged") and "a/model: scores document 'd" in line
    assert list(tmp_path.glob("run*")) == []
