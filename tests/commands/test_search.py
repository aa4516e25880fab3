import json
import signal
import sys

import pytest
from film_index import build, start
from json_lines import write_jsonl
from pair_index import write, write_atoms

from pyserini_compneg.commands.compose import main as compose
from pyserini_compneg.commands.search import main
from pyserini_compneg.search import SignedImpactSearcher

TOPICS = "1\tspy AND comedy NOT animated\n2\twestern NOT comedy\n3\tspy OR western\n"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("films"), store_raw=True)


@pytest.fixture
def topics(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text(TOPICS)
    return path


def run(index, *arguments):
    return main(["--index", str(index), *map(str, arguments)])


def test_a_trec_run(index, topics, tmp_path, capfd):
    assert run(index, "--topics", topics, "--output", tmp_path / "run.txt", "--tag", "mine", "--hits", "2") == 0
    assert capfd.readouterr() == ("", "")
    with SignedImpactSearcher(index) as searcher:
        expected = {qid: searcher.search(text, 2) for qid, text in (line.split("\t") for line in TOPICS.splitlines())}
    lines = [
        f"{qid} Q0 {hit.docid} {rank} {hit.score:.6f} mine"
        for qid, hits in expected.items()
        for rank, hit in enumerate(hits, 1)
    ]
    assert (tmp_path / "run.txt").read_text().splitlines() == lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.txt", "topics.tsv"]


def test_the_other_formats_on_standard_output(index, topics, capfd):
    assert run(index, "--topics", topics, "--output-format", "msmarco", "--hits", "1") == 0
    out = capfd.readouterr().out
    assert [line.split("\t")[::2] for line in out.splitlines()] == [["1", "1"], ["2", "1"], ["3", "1"]]
    assert run(index, "--topics", topics, "--output-format", "json", "--hits", "1") == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [f"{record['id']}\t{record['hits'][0]['docid']}\t1" for record in records] == out.splitlines()


@pytest.mark.parametrize(
    "options", [["--threads", "3"], ["--batch-size", "1"], ["--threads", "2", "--batch-size", "2"]]
)
def test_threads_and_batches_change_nothing(index, topics, capfd, options):
    assert run(index, "--topics", topics) == 0
    expected = capfd.readouterr().out
    assert run(index, "--topics", topics, *options) == 0
    assert capfd.readouterr().out == expected != ""


@pytest.mark.parametrize("command", [main, compose])
def test_a_warning_holds_for_all_batches(index, tmp_path, caplog, command):
    (tmp_path / "topics.tsv").write_text("1\tspy AND suop\n2\tspy OR fisch\n3\tspy\n")
    arguments = ["--index", str(index), "--topics", str(tmp_path / "topics.tsv"), "--batch-size", "1"]
    assert command([*arguments, "--weight-scale", "0.1"]) == 0
    atoms = "2 of 3 atoms, such as 'suop' (query 'spy AND suop'): no term that the encoder knows, so it matches no"
    weights = "3 of 3 queries, such as 'spy AND suop': all weights round to 0 at weight scale 0.1, so the heaviest"
    assert caplog.messages == [f"{atoms} document", f"{weights} count 1; raise --weight-scale"]


def test_composed_queries(index, tmp_path, capfd):
    topics = write_jsonl(
        tmp_path / "composed.jsonl",
        {"id": "1", "contents": "for people", "vector": {"spy": 2, "comedi": -1}},
        {"id": "2", "score": {"product": [{"vector": {"spy": 1}}, {"vector": {"comedi": 1}}]}},
        {"id": "3", "score": {"max": [{"vector": {"western": 1}}, {"vector": {"hors": 0.5}}]}},
        {"id": "4", "expression": "western NOT comedy"},
        {"id": "5", "query": "western NOT comedy"},
    )
    assert run(index, "--topics", topics, "--hits", "1") == 0
    rows = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert [(row[0], row[2]) for row in rows] == [("1", "d2"), ("2", "d1"), ("3", "d4"), ("4", "d4"), ("5", "d5")]


def test_a_readable_list(index, capfd):
    assert run(index, "--query", "western NOT comedy", "--hits", "2") == 0
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0] == "western NOT comedy"
    assert lines[1].split(maxsplit=2)[0] == "1"
    assert lines[1].endswith("  Western  [d4]")
    assert lines[2].split()[:2] == ["+", "western"]
    assert any(line.endswith("  Western Comedy  [d5]") for line in lines)
    assert any(line.split()[:2] == ["-", "comedi"] for line in lines)
    with SignedImpactSearcher(index) as searcher:
        (first, _) = searcher.search("western NOT comedy", 2)
        assert lines[1].split()[1] == f"{first.score / searcher.unit('western NOT comedy'):.3f}"
    assert run(index, "--query", "zebra") == 0
    assert capfd.readouterr().out == "zebra\n  no document matches\n"


def test_hits_of_and_say_what_they_lack(index, capfd):
    assert run(index, "--query", "spy AND western NOT comedy") == 0
    marked = {line.partition("[")[2] for line in capfd.readouterr().out.splitlines() if "[" in line}
    assert marked == {
        *("d1]  (lacks western)", "d2]  (lacks western)", "d3]  (lacks western)", "d4]  (lacks spy)"),
        "d5]  (lacks spy)",
    }
    for unmarked in (
        ["spy OR western"],
        ["spy AND western", "--intersection", "vanilla"],
        ["spy AND comedy OR western"],
    ):
        assert run(index, "--query", *unmarked) == 0
        assert "lacks" not in capfd.readouterr().out
    assert run(index, "--query", "spy AND comedy", "--method", "two-step") == 0
    assert "lacks" not in capfd.readouterr().out


def test_runs_in_json_say_what_hits_lack(index, tmp_path, capfd):
    (tmp_path / "topics.tsv").write_text("1\tspy AND comedy AND zebra\n2\tspy\n3\twestern AND comedy\n")
    assert run(index, "--topics", tmp_path / "topics.tsv", "--output-format", "json", "--batch-size", "2") == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    lacks = {record["id"]: {hit["docid"]: hit.get("lacks") for hit in record["hits"]} for record in records}
    assert lacks == {
        "1": {
            "d1": ["zebra"],
            "d2": ["comedy", "zebra"],
            "d3": ["zebra"],
            "d5": ["spy", "zebra"],
            "d6": ["spy", "zebra"],
        },
        "2": {"d1": None, "d2": None, "d3": None},
        "3": {"d1": ["western"], "d3": ["western"], "d4": ["comedy"], "d5": None, "d6": ["western"]},
    }
    for name in ("trec", "msmarco"):
        assert run(index, "--topics", tmp_path / "topics.tsv", "--output-format", name) == 0
        assert "lacks" not in capfd.readouterr().out


def test_plain_text_is_never_parsed(index, tmp_path, capfd):
    text = "western (NOT comedy"
    assert run(index, "--query", text, "--plain", "--hits", "1") == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == f'"{text}"'
    assert lines[1].endswith("[d5]")
    assert lines[2].split()[::2] == ["+", "0.724,", "0.309"]
    (tmp_path / "topics.tsv").write_text(f"1\t{text}\n2\tAND\n3\t\\)OR\n")
    assert run(index, "--topics", tmp_path / "topics.tsv", "--plain", "--hits", "1") == 0
    assert [line.split()[2] for line in capfd.readouterr().out.splitlines() if line.startswith("1 ")] == ["d5"]


def test_an_argument_that_is_no_text(index, topics, capfd):
    assert run(index, "--topics", topics, "--tag", "x\udcff") == 2
    assert capfd.readouterr() == ("", "error: the argument 'x?' is no UTF-8 text\n")


def test_the_folder_of_a_run_is_made(index, topics, tmp_path):
    path = tmp_path / "runs" / "today" / "run.txt"
    assert run(index, "--topics", topics, "--output", path) == 0
    assert path.read_text()


def test_an_unwritable_output_is_known_before_the_search(index, topics, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(SignedImpactSearcher, "batch_search", None)
    assert run(index, "--topics", topics, "--output", tmp_path) == 1
    assert capfd.readouterr() == ("", f"error: {tmp_path}: cannot be written: it is a folder; name a file in it\n")


@pytest.fixture
def with_gaps(tmp_path):
    """Topics and atoms; two of the topics have an atom without a vector, and one is no scoring tree."""
    known = ({"text": text, "vector": {"spy": 1}, "encoder": "bm25"} for text in ("spy", "agent"))
    expressions = {"a": "spy", "b": "spy NOT zebra", "c": "agent", "d": "western"}
    lines = [{"id": qid, "expression": text} for qid, text in expressions.items()]
    topics = write_jsonl(tmp_path / "topics.jsonl", *lines, {"id": "e", "vector": {"spy": "2"}})
    return ["--topics", topics, "--encoder", write_jsonl(tmp_path / "atoms.jsonl", *known)]


@pytest.mark.parametrize("options", [[], ["--batch-size", "1"]])
def test_a_query_that_cannot_be_searched_is_named_or_skipped(index, with_gaps, capfd, caplog, options):
    topics, atoms = with_gaps[1::2]
    assert run(index, *with_gaps, *options) == 2
    out, err = capfd.readouterr()
    assert err == f"error: {topics}:2: query b: {atoms} has no vector for 'zebra'; encode it and add a line\n"
    assert run(index, *with_gaps, *options, "--on-error", "skip") == 0
    assert {line.split()[0] for line in capfd.readouterr().out.splitlines()} == {"a", "c"}
    assert caplog.messages == [
        f"query b: {atoms} has no vector for 'zebra'; encode it and add a line; left out",
        f"query d: {atoms} has no vector for 'western'; encode it and add a line; left out",
        "query e: $.vector: the weight of 'spy' must be a finite number, got '2'; left out",
        "3 of 5 queries are left out",
    ]
    assert compose([*map(str, with_gaps), *options, "--on-error", "skip"]) == 0
    assert [json.loads(line)["id"] for line in capfd.readouterr().out.splitlines()] == ["a", "c"]
    assert caplog.messages[:4] == caplog.messages[4:]


def test_lines_that_are_no_topics_are_skipped_too(index, tmp_path, capfd, caplog):
    topics = tmp_path / "topics.tsv"
    topics.write_text("1\tspy\n2\t(spy OR\n3 no tab\n4\t \n5\tNOT comedy\n6\tcomedy\n")
    assert run(index, "--topics", topics) == 2
    capfd.readouterr()
    assert run(index, "--topics", topics, "--on-error", "skip") == 0
    assert {line.split()[0] for line in capfd.readouterr().out.splitlines()} == {"1", "6"}
    starts = [f"{topics}:{line}: " for line in (2, 3, 4, 5)]
    assert [said.startswith(start) for said, start in zip(caplog.messages, starts, strict=True)] == [True] * 4
    assert all(said.endswith("; left out") and "\n" not in said for said in caplog.messages)
    assert run(index, "--topics", topics, "--on-error", "skip", "--read", "model") == 0
    assert {line.split()[0] for line in capfd.readouterr().out.splitlines()} >= {"2"}
    topics.write_text("1\t(spy\n")
    assert run(index, "--topics", topics, "--on-error", "skip", "--output", tmp_path / "run.txt") == 2
    assert not (tmp_path / "run.txt").exists()


def test_a_terminal_gets_escapes_and_a_pipe_the_bytes(tmp_path, capfd, monkeypatch):
    docid = "d\x1b[31m\u202e"
    index = write(tmp_path / "index", {docid: {"a": 1}})
    flags = ["--query", "a", "--encoder", write_atoms(tmp_path / "atoms.jsonl", {"a": {"a": 1.0}})]
    for is_terminal, shown in ((True, "d\\x1b[31m\\u202e"), (False, docid)):
        monkeypatch.setattr(sys.stdout, "isatty", lambda answer=is_terminal: answer)
        assert run(index, *flags, "--output-format", "trec") == 0
        assert capfd.readouterr().out.split(" ")[2] == shown


def test_a_run_of_skipped_queries_alone_is_none(index, with_gaps, tmp_path, capfd):
    with_gaps[1].write_text('{"id": "x", "expression": "zebra"}\n')
    assert run(index, *with_gaps, "--on-error", "skip", "--output", tmp_path / "run.txt") == 2
    assert capfd.readouterr().err.endswith("error: none of the 1 queries can be composed\n")
    assert not (tmp_path / "run.txt").exists()


def test_one_query_as_a_run(index, tmp_path, capfd):
    assert run(index, "--query", "spy NOT comedy", "--output-format", "json", "--hits", "2") == 0
    (record,) = map(json.loads, capfd.readouterr().out.splitlines())
    assert (record["id"], len(record["hits"])) == ("1", 2)
    assert run(index, "--query", "spy", "--output-format", "trec", "--k", "1", "--output", tmp_path / "run.txt") == 0
    assert len((tmp_path / "run.txt").read_text().splitlines()) == 1


SLOW_COMMAND = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # below nohup it is ignored
from pyserini_compneg.topics import topic_runs
from pyserini_compneg.commands.compose import main as compose
from pyserini_compneg.commands.search import main
original = topic_runs.write_run
def write_run(*arguments):
    original(*arguments)
    print("writing", file=sys.stderr, flush=True)
    for _ in range(300):  # a signal that comes to a thread of Java wakes no sleeper
        time.sleep(0.1)
topic_runs.write_run = write_run
sys.exit(main())
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    ("number", "code", "old"),
    [(signal.SIGINT, 130, None), (signal.SIGTERM, 143, "the old run"), (signal.SIGHUP, 129, None)],
)
def test_an_interrupted_search_leaves_no_run(index, topics, tmp_path, number, code, old):
    output = tmp_path / "runs" / "run.txt"
    output.parent.mkdir()
    if old:
        output.write_text(old)
    with start("--index", index, "--topics", topics, "--output", output, code=SLOW_COMMAND) as process:
        assert process.stderr.readline() == "writing\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert [path.read_text() for path in output.parent.iterdir()] == ([old] if old else [])
