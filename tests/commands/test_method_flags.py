"""``search --method`` and ``search --rerank``, through the command, with a stand-in for a model."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from json_lines import write_jsonl

from pyserini_compneg.baselines import METHODS, Filtering, Reranked, Rocchio, ScoreFusion, TwoStep
from pyserini_compneg.commands import query_flags
from pyserini_compneg.compose import Operators
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.search import SearchSettings, SignedImpactSearcher
from pyserini_compneg.support import progress

QUERIES = {"1": "spy AND comedy", "2": "western NOT comedy", "3": "spy OR western"}
NOT_THIS = "western NOT comedy"


class StandIn:
    """Prefers short texts, and those that have the query's first word."""

    name = "a/model"

    def scores(self, pairs):
        return [(query.split()[0] in text.lower()) / 2 + 1 / (3 + len(text)) for query, text in pairs]


class Broken(StandIn):
    def scores(self, pairs):
        return [float("nan")] * len(pairs)


@pytest.fixture
def topics(tmp_path):
    return write_jsonl(tmp_path / "topics.jsonl", *({"id": qid, "expression": q} for qid, q in QUERIES.items()))


@pytest.fixture
def search(run, topics, monkeypatch):
    models = {"broken": Broken()}
    name = "pyserini_compneg.commands.query_flags.pair_scorer"
    monkeypatch.setattr(name, lambda model: models.get(model, StandIn()))
    return lambda line, **options: run(f"search --index {{films}} {line.replace('TOPICS', str(topics))}", **options)


@pytest.mark.parametrize(
    ("flags", "method"),
    [
        ("--method score-fusion", ScoreFusion()),
        ("--method score-fusion-scaled depth=2", ScoreFusion(scaled=True, depth=2)),
        ("--method filtering --cpt-weight 9", Filtering(Operators(cpt_weight=9, exclusion="any"))),
        ("--method two-step depth=3", TwoStep(depth=3)),
        ("--method rocchio judged=JUDGED gamma=1", Rocchio({"1": {"d1": 1, "d4": 0}}, gamma=1.0)),
        ("--rerank a/model", Reranked(StandIn())),
        ("--rerank a/model share=0.7 hits=2 --method two-step", Reranked(StandIn(), 0.7, 2, TwoStep())),
    ],
)
def test_a_run_is_that_of_the_searcher(index, search, flags, method, tmp_path):
    (tmp_path / "judged.txt").write_text("1 0 d1 1\n1 0 d4 0\n")
    flags = flags.replace("JUDGED", str(tmp_path / "judged.txt"))
    found = [(row.split()[0], row.split()[2]) for row in search(f"--topics TOPICS {flags}").lines]
    with SignedImpactSearcher(index) as searcher:
        expected = searcher.batch_search(list(QUERIES.values()), list(QUERIES), 1000, method=method)
    assert found == [(qid, hit.docid) for qid, hits in expected.items() for hit in hits] != []


def test_operators_are_a_method(search):
    flags = "--topics TOPICS --difference nrf"
    assert search(f"{flags} --method operators").out == search(flags).out


@pytest.mark.parametrize("flags", ["", "--cpt-weight 2", "--method two-step", "--method filtering"])
def test_the_former_name_of_cpt_maxpool(search, monkeypatch, flags):
    monkeypatch.setattr(progress, "_said_in_process", set())
    former = search(f"--topics TOPICS {flags} --intersection disentangled")
    assert former.told == ["intersection disentangled is now cpt-maxpool"]
    assert former.out == search(f"--topics TOPICS {flags} --intersection cpt-maxpool").out != ""


@pytest.mark.parametrize(
    ("flags", "tag"),
    [
        ("", "compneg-bm25"),
        ("--difference damped --read expression", "compneg-bm25"),
        ("--remove-query --difference nrf", "compneg-bm25-difference=nrf-remove-query"),
        ("--difference nrf --difference-weight 0.5", "compneg-bm25-difference=nrf-difference-weight=0.5"),
        ("--read model --difference disentangled", "compneg-bm25-difference=disentangled-read=model"),
        ("--method score-fusion depth=9", "compneg-bm25-score-fusion-depth=9"),
        ("--method filtering --rerank folder/m", "compneg-bm25-filtering-rerank=m"),
        ("--rerank 'a model' share=1", "compneg-bm25-rerank=a_model-rerank-share=1.0"),
        ("--min-idf -1 --filter here/ids.txt --filter id=d5", "compneg-bm25-filter=ids.txt,id=d5-min-idf=-1.0"),
        ("--method two-step --tag mine", "mine"),
    ],
)
def test_the_tag_says_what_made_the_run(search, monkeypatch, topics, flags, tag):
    monkeypatch.chdir(topics.parent)
    Path("here").mkdir()
    Path("here/ids.txt").write_text("d4\nd5\n")
    assert {row.split()[-1] for row in search(f"--topics TOPICS {flags}").lines} == {tag}


def test_no_setting_is_missing_in_tags():
    """Two runs that differ in a setting would have one tag."""
    told = {*query_flags._KINDS, *query_flags._STRENGTHS, "cpt", *query_flags._ENCODING}
    settings = {one.name for one in (*fields(Operators), *fields(SearchSettings))} - {"operators", "model_options"}
    assert told == settings
    same = {"device", "backend", "batch_size"}  # which change no vector, or the last bits of them
    assert {one.name for one in fields(ModelOptions)} - same == {*query_flags._PRUNING, "head", "max_length"}


def test_a_readable_list(search):
    out = search(f"--query '{NOT_THIS}' --method two-step --hits 1").lines
    assert out[0] == NOT_THIS and out[1].endswith("Western  [d4]")
    assert out[2].split()[:2] == ["+", "western"]
    out = search(f"--query '{NOT_THIS}' --method score-fusion --hits 2").lines
    assert [line.split()[-1] for line in out[1:]] == ["[d4]", "[d5]"]
    out = search(f"--query '{NOT_THIS}' --rerank m share=1 --hits 1").out
    assert out == f"{NOT_THIS}\n  1      1.000  Western  [d4]\n"


def test_judged_documents_of_one_query(search, tmp_path):
    (tmp_path / "judged.txt").write_text("1 0 d5 1\n")
    flags = f"--query western --method rocchio judged={tmp_path / 'judged.txt'}"
    assert [line.split()[-1] for line in search(flags).lines[1:3]] == ["[d5]", "[d4]"]
    assert search(f"{flags} --output-format trec --hits 1").lines[0].endswith("-rocchio-judged=judged.txt")
    (tmp_path / "run.txt").symlink_to(tmp_path / "judged.txt")
    told = search(f"{flags} --output-format trec --output {tmp_path / 'run.txt'}", code=1).err
    assert "would overwrite" in told


@pytest.mark.parametrize("name", [name for name in METHODS if name != "rocchio"])
def test_plain_texts_are_read_for_a_method(search, name):
    flags = "--query 'western films but no comedy' --read model --output-format json"
    (record,) = map(json.loads, search(f"{flags} --method {name}").lines)
    assert record["hits"][0]["docid"] == "d4"


def test_a_query_that_a_method_cannot_answer(search, topics, tmp_path):
    others = {"2": {"expression": "spy NOT! comedy"}, "3": {"vector": {"spy": 1}}}
    write_jsonl(topics, {"id": "1", "expression": "spy"}, *({"id": qid, **one} for qid, one in others.items()))
    output = tmp_path / "run.txt"
    flags = f"--topics TOPICS --output {output} --method score-fusion"
    said = "score fusion cannot leave documents out, as NOT! does; use operators"
    assert search(flags, code=2).err == f"error: {topics}:2: query 2: {said}\n"
    assert not output.exists()
    told = search(f"{flags} --on-error skip").told
    assert {line.split()[0] for line in output.read_text().splitlines()} == {"1"}
    assert told[-3] == f"query 2: {said}; left out" and told[-2].startswith("query 3: a composed query has no atoms")
    assert told[-1] == "2 of 3 queries are left out"


def test_a_model_that_fails_leaves_no_run(search, tmp_path):
    (line,) = search(f"--topics TOPICS --output {tmp_path}/run.txt --rerank broken", code=2).err.splitlines()
    assert line.endswith("its weights are damaged") and "a/model: scores document 'd" in line
    assert list(tmp_path.glob("run*")) == []


def test_an_unknown_model(run, topics):
    pytest.importorskip("sentence_transformers", reason="rerankers are models of it")
    said = "no model of sentence-transformers 'no such'; expected a folder, or owner/name on the Hugging Face hub"
    assert run(f"search --index {{films}} --topics {topics} --rerank 'no such'", code=2).err == f"error: {said}\n"


@pytest.mark.parametrize(
    ("flags", "deep", "first"),
    [
        ("", "", ""),
        ("--method operators --difference nrf", "", ""),
        ("--method score-fusion", "", ""),
        ("--method score-fusion depth=9", "", ""),
        ("--method filtering", "", ""),
        ("--method rocchio judged=JUDGED", "", ""),
        ("--method two-step depth=1", "--method two-step depth=9", "--intersection maxpool"),
        ("--method two-step depth=2", "--method two-step depth=9", "--intersection maxpool"),
        ("--rerank a/model hits=2", "--rerank a/model hits=9", ""),
        (
            "--rerank a/model hits=2 --method score-fusion",
            "--rerank a/model hits=9 --method score-fusion",
            "--method score-fusion",
        ),
    ],
)
def test_runs_without_the_documents_that_topics_are(search, flags, deep, first, tmp_path):
    """If only the first documents of a step count, the topic's is not among them. In full: 2 hits, if there are 2."""
    write_jsonl(tmp_path / "topics.jsonl", *({"id": f"d{qid}", "expression": q} for qid, q in QUERIES.items()))
    (tmp_path / "judged.txt").write_text("d1 0 d1 1\nd1 0 d4 0\n")

    def ranked(more):
        found = {f"d{qid}": [] for qid in QUERIES}
        for row in search(f"--topics TOPICS {more.replace('JUDGED', str(tmp_path / 'judged.txt'))}").lines:
            found[row.split()[0]].append(row.split()[2])
        return found

    whole, pool = ranked(deep or flags), ranked(first)
    assert any(qid in docids for qid, docids in whole.items())
    if deep:
        depth = int(re.search(r"(?:depth|hits)=(\d)", flags)[1])
        pool = {qid: [docid for docid in docids if docid != qid][:depth] for qid, docids in pool.items()}
        whole = {qid: [docid for docid in docids if docid in pool[qid]] for qid, docids in whole.items()}
    expected = {qid: [docid for docid in docids if docid != qid][:2] for qid, docids in whole.items()}
    assert ranked(f"{flags} --hits 2 --remove-query") == expected
