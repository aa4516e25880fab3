import io
import json
import sys

import pytest
from film_index import start
from pair_index import write, write_atoms

from pyserini_compneg.lucene import java_class

TOPICS = """1\tspy AND comedy NOT animated
2\twestern NOT comedy
3\tspy OR western
4\t(spy OR western) AND comedy NOT horses
5\tspy AND comedy OR western
6\tspy OR zebra
7\tzebra
"""
ATOMS = {"spies": {"p": 4.0, "q": 1.0}, "fun": {"q": 9.0, "r": 0.25}, "drawn": {"s": 1.0, "q": 1.0}, "none": {}}
DOCUMENTS = {
    "d1": {"p": 4, "q": 9, "s": 1},
    "d2": {"p": 16, "r": 4},
    "d3": {"q": 1, "r": 1, "s": 25},
    "d4": {"p": 1, "q": 4, "r": 9},
    "d5": {"s": 9},
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """An index with pairs, and beside it a file of encoded atoms."""
    folder = tmp_path_factory.mktemp("pairs")
    write_atoms(folder / "atoms.jsonl", ATOMS)
    return write(folder / "index", DOCUMENTS, pair_terms=4)


@pytest.fixture
def topics(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text(TOPICS)
    return path


@pytest.fixture
def same_run(run, tmp_path):
    """Makes sure that composed queries give the run of their topics; returns the composed lines."""

    def same_run(topics, common, options):
        composed, again, expected, found = (tmp_path / name for name in ("c.jsonl", "again.jsonl", "expected", "found"))
        run("search --tag t", *common, "--topics", topics, "--output", expected, *options)
        assert run("compose", *common, "--topics", topics, "--output", composed, *options).out == ""
        run("search --tag t", *common, "--topics", composed, "--output", found)
        assert found.read_bytes() == expected.read_bytes() != b""
        lines = composed.read_text()
        run("compose", *common, "--topics", composed, "--output", again)
        assert again.read_text() == lines
        return [json.loads(line) for line in lines.splitlines()]

    return same_run


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "--read plain", "--union addition --intersection cpt-l2 --weight-scale 2.5"])
def test_composed_queries_give_the_run_of_their_topics(index, topics, same_run, options):
    lines = same_run(topics, ["--index", index], options.split())
    assert [line["id"] for line in lines] == list("1234567")
    assert lines[-1] == {"id": "7", "contents": "zebra", "vector": {}}


PAIR_TOPICS = "1\tspies AND fun NOT drawn\n2\tspies AND fun\n3\tfun AND drawn OR spies\n4\tspies AND none\n5\tspies\n"


@pytest.mark.slow
@pytest.mark.usefixtures("anserini")
@pytest.mark.parametrize("options", [[], ["--union", "addition", "--intersection", "cpt"]])
def test_stock_anserini_gives_the_same_run(run, pairs, tmp_path, options):
    """What has no negative weight, by repeated tokens. With pairs, its scores are multiples of ours."""
    topics = tmp_path / "topics.tsv"
    topics.write_text("b\tspies AND fun\nc\tspies\na\tfun AND drawn\nd\tnone\n")
    common = ["--index", pairs, "--encoder", pairs.parent / "atoms.jsonl", "--topics", topics, *options]
    common += ["--cpt", "materialised"]
    run("search --tag Anserini", *common, "--output", tmp_path / "ours")
    run("compose --output-format tsv", *common, "--output", tmp_path / "composed.tsv")
    arguments = f"-index {pairs} -topics {tmp_path / 'composed.tsv'} -output {tmp_path / 'stock'}"
    arguments += " -topicReader TsvString -impact -pretokenized -hits 1000"
    java_class("io.anserini.search.SearchCollection").main(arguments.split())
    stock, ours = (
        {tuple(line[:4]): float(line[4]) for line in map(str.split, (tmp_path / name).read_text().splitlines())}
        for name in ("stock", "ours")
    )
    assert stock.keys() == ours.keys() != set()
    ratios = {(qid, round(stock[qid, *hit] / score, 5)) for (qid, *hit), score in ours.items()}
    assert len(ratios) == 3  # one for each query, however its scores are rounded
    assert all(ratio == 1 if qid == "c" else ratio in (4, 8) for qid, ratio in ratios)


@pytest.mark.slow
@pytest.mark.parametrize("cpt", ["factored", "materialised"])
def test_both_forms_give_the_run_of_their_topics(pairs, tmp_path, same_run, cpt):
    topics = tmp_path / "topics.tsv"
    topics.write_text(PAIR_TOPICS)
    common = ["--index", pairs, "--encoder", pairs.parent / "atoms.jsonl"]
    lines = same_run(topics, common, ["--intersection", "cpt", "--cpt", cpt])
    assert ("vector" in lines[1]) == (cpt == "materialised")


@pytest.mark.parametrize(
    "flags",
    [
        "--operators paper --union addition",
        "--union addition --operators paper",
        "--operators vanilla --union addition --operators paper",
    ],
)
def test_flags_of_one_operator_replace_that_of_a_set(run, flags):
    query = "compose --index {films} --query 'spy AND comedy NOT animated'"
    same = run(f"{query} --union addition --intersection cpt --difference disentangled").out
    assert run(f"{query} {flags}").out == same != run(query).out


def test_one_query(run):
    shown = run("compose --index {films} --difference disentangled --query 'spy NOT (comedy OR spy)'").out
    weights = {"spy": 69, "comedi": -44}
    assert json.loads(shown) == {"id": "1", "contents": "spy NOT (comedy OR spy)", "vector": weights}
    assert run("compose --index {films} --query 'NOT AND' --read plain --output-format tsv").out == ""


@pytest.mark.slow
def test_encoded_atoms_need_no_index_and_no_java(tmp_path):
    atoms = write_atoms(tmp_path / "atoms.jsonl", ATOMS)
    code = "import sys; from pyserini_compneg.commands.compose import main; assert not main(); "
    code += "assert 'jnius' not in sys.modules"
    with start("--encoder", atoms, "--query", "spies AND fun", "--cpt", "materialised", code=code) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["vector"] == {"p": 400, "q": 900, "r": 25, "p∩r": 6.25}


def test_mixed_topics(run, monkeypatch):
    lines = [
        {"id": "1", "contents": "for people", "vector": {"spy": 0.25, "a∩b": -1, "¬t": 3}},
        {"id": "2", "score": {"product": [{"vector": {"spy": 0.5}}, {"vector": {"comedi": 1}}]}},
        {"id": "3", "expression": "western NOT comedy"},
        {"id": "4", "query": "western (NOT comedy"},
        {"id": "5", "original_query": "<mark>spy</mark> that are not <mark>comedy</mark>"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    out = [json.loads(line) for line in run("compose --index {films} --topics - --difference subtraction").lines]
    assert out[0] == lines[0]
    assert out[1] == {**lines[1], "contents": ""}
    assert [line["contents"] for line in out[2:]] == ["western NOT comedy", '"western (NOT comedy"', "spy NOT comedy"]
    assert out[2]["vector"].keys() == out[3]["vector"].keys() == {"western", "comedi"}
    assert out[2]["vector"]["comedi"] == -out[3]["vector"]["comedi"] < 0


def test_composed_topics_need_no_encoder_of_the_index(run, pairs, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"id": "1", "vector": {"p": 2}}\n')
    composed = run("compose", "--index", pairs, "--topics", tmp_path / "t.jsonl")
    assert composed.out == '{"id": "1", "contents": "", "vector": {"p": 2}}\n'


def test_queries_without_terms_are_left_out_of_tsv(run, topics):
    operators = "--union maxpool --intersection maxpool --difference ignore"
    composed = run(f"compose --index {{films}} --output-format tsv {operators} --topics {topics}")
    assert [line.split("\t")[0] for line in composed.lines] == list("123456")
    assert composed.told[0] == "query 7 finds nothing: no document has its words"
