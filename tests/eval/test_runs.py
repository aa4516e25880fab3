import gzip
import io

import pytest
from refusals import refusal

from pyserini_compneg.eval import read_run
from pyserini_compneg.search.run_writer import OUTPUT_FORMATS, Hit, write_run
from pyserini_compneg.support.errors import InputError


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "run"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_formats(write):
    assert read_run(write("1 Q0 a 1 2.5 t\n1 Q0 b 2 -1e0 t\n2\tQ0\ta\t1\t0\tt\n")) == {
        "1": {"a": 2.5, "b": -1.0},
        "2": {"a": 0.0},
    }
    assert read_run(write(gzip.compress(b"1\ta\t1\n1\tb\t2\n"))) == {"1": {"a": -1.0, "b": -2.0}}
    assert read_run(write('{"id": "1", "hits": [{"docid": "a b", "rank": 1, "score": 3}]}\n')) == {"1": {"a b": 3.0}}


@pytest.mark.parametrize("output_format", OUTPUT_FORMATS)
def test_what_is_written_is_read_in_the_same_order(write, output_format):
    handle = io.StringIO()
    write_run(handle, "1", [Hit("a", 1.0), Hit("b", 1.0), Hit("c", -2.0)], output_format)
    scores = read_run(write(handle.getvalue()))["1"]
    assert sorted(scores, key=scores.__getitem__, reverse=True) == ["a", "b", "c"]


@pytest.mark.parametrize("text", ["", "\n\n", '{"id": "1", "hits": []}\n'])
def test_an_empty_run_is_worth_a_warning(write, caplog, text):
    path = write(text)
    assert read_run(path) == {}
    assert caplog.messages == [f"{path}: the run is empty, so every query scores 0"]


@pytest.mark.parametrize(
    "ranked",
    [
        "1 Q0 a 1 2 t\n1 Q0 b 1 1 t\n",
        "1 Q0 a 1 1 t\n1 Q0 b 2 2 t\n",
        "1 Q0 a x 2 t\n1 Q0 b 2 1 t\n",
        "1 Q0 a 1 2 t\n1 Q0 b 3 1 t\n1 Q0 c 2 0 t\n",
        "1 Q0 a 1 2 t\n1 Q0 b 1 2 t\n",
    ],
)
def test_ranks_that_do_not_follow_the_scores_are_worth_a_warning(write, caplog, ranked):
    path = write(f"0 Q0 a 1 2 t\n0 Q0 b 2 1 t\n{ranked}2 Q0 a 0 1 t\n")
    scores = [float(line.split()[4]) for line in ranked.splitlines()]
    assert list(read_run(path)["1"].values()) == scores
    assert caplog.messages == [f"{path}: the ranks do not follow the scores, which count, in 1 of 3 queries, first '1'"]


@pytest.mark.parametrize("ranked", ["1 Q0 b 2 1 t\n1 Q0 a 1 1 t\n2 Q0 c 1 1 t\n1 Q0 c 7 0 t\n", "1\tb\t2\n1\ta\t1\n"])
def test_lines_may_stand_in_any_order(write, caplog, ranked):
    read_run(write(ranked))
    assert caplog.messages == []


def test_two_documents_of_a_rank_have_no_order(write):
    path = write("1\ta\t1\n2\ta\t1\n2\tb\t2\n2\tc\t2\n")
    assert refusal(read_run, path, error=InputError) == f"{path}: query '2' has two documents of the same rank"


EXPECTED = "expected `qid Q0 docid rank score tag`, `qid docid rank` or a JSON object"
JUDGED = "these look like judgements: are --qrels and --run exchanged?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 Q0\n", f"1: {EXPECTED}, found 2 columns"),
        ("1 0 a 1\n", f"1: {EXPECTED}, found 4 columns; {JUDGED}"),
        ('{"qid": "1", "docs": []}', '1: expected {"id": text, "hits": [...]}, found the fields qid, docs; ' + JUDGED),
        ("1 Q0 a 1 2 t\n\n1 a 2\n", "3: expected the 6 columns `qid Q0 docid rank score tag`, found 3"),
        ("1 a 1\n1 Q0 a 1 2 t\n", "2: expected the 3 columns `qid docid rank`, found 6"),
        ("1 a 0\n", "1: the rank must be a whole number from 1, got '0'"),
        ("1 a ١\n", "1: the rank must be a whole number from 1, got '١'"),
        ("1 Q0 a 1 1_0 t\n", "1: the score must be a finite number, got '1_0'"),
        ("1 Q0 a 1 nan t\n", "1: the score must be a finite number, got 'nan'"),
        ("1 Q0 a 1 1e999 t\n", "1: the score must be a finite number, got '1e999'"),
        ("1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n", "2: document 'a' is ranked twice for query '1'"),
        ('{"id": "1", "hits": ["a"]}', '1: a hit must be {"docid": text, "score": number}, got \'a\''),
        ('{"id": "1", "hits": [{"docid": "a"}]}', "1: the score must be a finite number, got None"),
    ],
)
def test_errors(write, text, expected):
    path = write(text)
    assert refusal(read_run, path, error=InputError) == f"{path}:{expected}"
