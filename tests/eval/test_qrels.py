from functools import partial

import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.eval.qrels import RUN_AS_QRELS, read_groups, read_qrels
from pyserini_compneg.support.errors import InputError

BEIR = "query-id\tcorpus-id\tscore"
NO_DOCS = "`docs` must be a list of the relevant documents' names, got None"


@pytest.fixture
def write(tmp_path):
    return partial(write_jsonl, tmp_path / "qrels")


def test_trec(write):
    assert read_qrels(write("1 0 a 2", "1\t0\tb\t-1", "2 0 a 0", "2 0 a 0")) == {"1": {"a": 2, "b": -1}, "2": {"a": 0}}


def test_beir(write):
    assert read_qrels(write(BEIR, "1\ta\t1", "1\tb\t0")) == {"1": {"a": 1, "b": 0}}


def test_quest_with_and_without_ids(write):
    path = write({"query": "q", "docs": ["Emu", "Drive (2007 film)"]}, {"qid": "x", "docs": ["Emu"]})
    assert read_qrels(path) == {"1": {"Emu": 1, "Drive_(2007_film)": 1}, "x": {"Emu": 1}}


def test_groups(write):
    path = write(
        {"docs": ["a"], "metadata": {"template": "_", "domain": "films"}},
        {"id": "b", "metadata": {"template": "_ or _"}},
    )
    assert read_groups(path, "template") == {"1": "_", "b": "_ or _"}
    said = f"{path}:2: no text `metadata.domain` to group by; there are: template"
    assert refusal(read_groups, path, "domain", error=InputError) == said


def test_groups_twice(write):
    path = write({"id": "1", "metadata": {"t": "a"}}, {"id": "1", "metadata": {"t": "b"}})
    assert refusal(read_groups, path, "t", error=InputError) == f"{path}:2: the query id '1' is given twice"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["1 0 a"], ":1: expected the 4 columns `qid 0 docid relevance`, found 3"),
        (["1 Q0 a 1 2.5 t"], f":1: expected the 4 columns `qid 0 docid relevance`, found 6; {RUN_AS_QRELS}"),
        ([{"id": "1", "hits": []}], f":1: {NO_DOCS}; {RUN_AS_QRELS}"),
        (["1 0 a 1", "1 0 b 0.5"], ":2: the relevance must be a whole number, got '0.5'"),
        (["1 0 a ١"], ":1: the relevance must be a whole number, got '١'"),
        (["1 0 a 99999999999999999999"], ":1: the relevance must be at most 1000000, got 99999999999999999999"),
        (["1 0 a 1_0"], ":1: the relevance must be a whole number, got '1_0'"),
        (["1 0 a 1", "1 0 a 2"], ":2: document 'a' of query '1' has relevance 2 here, 1 above"),
        ([BEIR, "1\t0\ta\t1"], ":2: expected the 3 columns `query-id corpus-id score`, found 4"),
        ([BEIR, "q1\ta b\t1"], ":2: the document id 'a b' has white space, which a TREC run cannot hold"),
        ([{"id": 1, "query": "q"}], f":1: {NO_DOCS}"),
        ([], ": no judgements; expected lines of `qid 0 docid relevance`, or QUEST's JSON Lines"),
    ],
)
def test_errors(write, lines, expected):
    path = write(*lines)
    assert refusal(read_qrels, path, error=InputError) == f"{path}{expected}"
