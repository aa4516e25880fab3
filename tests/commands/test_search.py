"""The command search: its runs, its list for people, what it skips, and how it ends."""

import json
import signal
import sys

import pytest
from film_index import start
from json_lines import write_jsonl
from pair_index import write, write_atoms

from pyserini_compneg.search import SignedImpactSearcher

TOPICS = "1\tspy AND comedy NOT animated\n2\twestern NOT comedy\n3\tspy OR western\n"


@pytest.fixture
def topics(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text(TOPICS)
    return path


@pytest.fixture
def search(run):
    return lambda *more, **options: run("search --index {films}", *more, **options)


def test_a_trec_run(index, search, topics, tmp_path):
    output = tmp_path / "runs" / "today" / "run.txt"
    ran = search("--topics", topics, "--output", output, "--tag", "mine", "--hits", "2")
    assert (ran.out, ran.err, ran.told) == ("", "", [])
    with SignedImpactSearcher(index) as searcher:
        expected = {qid: searcher.search(text, 2) for qid, text in (line.split("\t") for line in TOPICS.splitlines())}
    lines = [
        f"{qid} Q0 {hit.docid} {rank} {hit.score:.6f} mine"
        for qid, hits in expected.items()
        for rank, hit in enumerate(hits, 1)
    ]
    assert output.read_text().splitlines() == lines
    assert [path.name for path in output.parent.iterdir()] == ["run.txt"]


def test_the_other_formats_on_standard_output(search, topics):
    lines = search("--topics", topics, "--output-format", "msmarco", "--hits", "1").lines
    assert [line.split("\t")[::2] for line in lines] == [["1", "1"], ["2", "1"], ["3", "1"]]
    records = map(json.loads, search("--topics", topics, "--output-format", "json", "--hits", "1").lines)
    assert [f"{record['id']}\t{record['hits'][0]['docid']}\t1" for record in records] == lines


@pytest.mark.parametrize("command", ["search", "compose"])
def test_a_warning_holds_for_all_batches(run, tmp_path, command):
    (tmp_path / "topics.tsv").write_text(
        "".join(f"{n}\tspy\n" for n in range(70)) + "a\tspy AND suop\nb\tspy OR fisch\n"
    )
    told = run(f"{command} --index {{films}} --weight-scale 0.1 --topics", tmp_path / "topics.tsv").told
    atoms = "2 of 3 atoms, such as 'suop' (query 'spy AND suop'): no term that the encoder knows, so it matches no"
    weights = "3 of 3 queries, such as 'spy': all weights round to 0 at weight scale 0.1, so the heaviest"
    assert told == [f"{atoms} document", f"{weights} count 1; raise --weight-scale"]


def test_a_readable_list(index, search):
    ran = search("--query", "western NOT comedy", "--hits", "2")
    assert ran.err == ""
    assert ran.lines[0] == "western NOT comedy"
    assert ran.lines[1].split(maxsplit=2)[0] == "1" and ran.lines[1].endswith("  Western  [d4]")
    assert ran.lines[2].split()[:2] == ["+", "western"]
    assert any(line.endswith("  Western Comedy  [d5]") for line in ran.lines)
    assert any(line.split()[:2] == ["-", "comedi"] for line in ran.lines)
    with SignedImpactSearcher(index) as searcher:
        (first, _) = searcher.search("western NOT comedy", 2)
        assert ran.lines[1].split()[1] == f"{first.score / searcher.unit('western NOT comedy'):.3f}"
    assert search("--query", "zebra").out == "zebra\n  no document matches\n"


@pytest.mark.parametrize("method", [[], ["--method", "two-step"]])
def test_a_list_has_a_warning_once(search, method):
    """Though the query is composed again for the reason why it finds nothing, and by a method."""
    atom, result = search("--query", "spy AND! zebra", *method).told
    assert atom == "atom 'zebra' (query 'spy AND! zebra'): no term that the encoder knows, so it matches no document"
    assert result.startswith("no result for query ")


def test_the_pages_of_a_list(search):
    """An offset gives the same ranking, and each page says how to get the next."""
    asked = ["--query", "spy OR western"]
    whole = search(*asked).lines
    pages = [search(*asked, "--hits", 3, *offset).lines for offset in ([], ["--offset", 3])]
    assert [page[0] for page in pages] == [whole[0]] * 2
    assert pages[0][1:-1] + pages[1][1:-1] == whole[1:-1]
    assert [page[-1] for page in pages] == ["  3 of 5 documents; --offset 3 shows the next", "  4 to 5 of 5 documents"]
    assert search(*asked, "--offset", 5).lines[1:] == ["  no document behind the first 5"]
    fused = [*asked, "--method", "score-fusion"]
    assert search(*fused, "--offset", 1).lines[1:] == search(*fused).lines[2:]
    said = "error: --offset has no place in a run: it is for the list of --query"
    assert said in search(*asked, "--offset", 1, "--output-format", "trec", code=2).err


def test_hits_of_and_say_what_they_lack(search):
    query = ["--query", "spy AND comedy AND zebra"]
    assert [line for line in search(*query).lines if "d2]" in line][0].endswith("[d2]  (lacks comedy, zebra)")
    (record,) = map(json.loads, search(*query, "--output-format", "json").lines)
    assert {hit["docid"]: hit["lacks"] for hit in record["hits"]}["d2"] == ["comedy", "zebra"]
    for unmarked in (["spy OR western"], ["spy AND comedy", "--method", "two-step"]):
        assert "lacks" not in search("--query", *unmarked).out
    assert "lacks" not in search(*query, "--output-format", "trec").out


def test_an_argument_that_is_no_text(search, topics):
    ran = search("--topics", topics, "--tag", "x\udcff", code=2)
    assert (ran.out, ran.err) == ("", "error: the argument 'x?' is not UTF-8 text\n")


def test_an_unwritable_output_is_known_before_the_search(search, topics, tmp_path, monkeypatch):
    monkeypatch.setattr(SignedImpactSearcher, "answers", None)
    ran = search("--topics", topics, "--output", tmp_path, code=1)
    assert (ran.out, ran.err) == ("", f"error: {tmp_path}: cannot be written: it is a folder; name a file in it\n")


def test_a_query_that_cannot_be_searched_is_named_or_skipped(run, search, tmp_path):
    """Two of the topics have an atom without a vector, one is no scoring tree, and one has * as a part."""
    known = ({"text": text, "vector": {"spy": 1}, "encoder": "bm25"} for text in ("spy", "agent"))
    expressions = {"a": "spy", "b": "spy NOT zebra", "c": "agent", "d": "western"}
    lines = [{"id": qid, "expression": text} for qid, text in expressions.items()]
    topics = write_jsonl(
        tmp_path / "topics.jsonl", *lines, {"id": "e", "vector": {"spy": "2"}}, {"id": "f", "expression": "spy OR *"}
    )
    atoms = write_jsonl(tmp_path / "atoms.jsonl", *known)
    given = ["--topics", topics, "--encoder", atoms]
    said = f"error: {topics}:2: query b: {atoms} has no vector for 'zebra'; encode it and add a line\n"
    assert search(*given, code=2).err == said
    skipped = search(*given, "--on-error", "skip")
    assert {line.split()[0] for line in skipped.lines} == {"a", "c"}
    assert skipped.told == [
        f"query b: {atoms} has no vector for 'zebra'; encode it and add a line; left out",
        f"query d: {atoms} has no vector for 'western'; encode it and add a line; left out",
        "query e: $.vector: the weight of 'spy' must be a finite number, got '2'; left out",
        "query f: * means all documents as a whole query, and is no part of 'spy OR *'; write the expression without "
        "it, or use a filter; left out",
        "4 of 6 queries are left out",
    ]
    composed = run("compose --on-error skip", *given)
    assert [json.loads(line)["id"] for line in composed.lines] == ["a", "c"]
    assert composed.told == skipped.told
    topics.write_text('{"id": "x", "expression": "zebra"}\n')
    none = search(*given, "--on-error", "skip", "--output", tmp_path / "run.txt", code=2)
    assert none.err.endswith("error: none of the 1 queries can be composed\n")
    assert not (tmp_path / "run.txt").exists()


def test_lines_that_are_no_topics_are_skipped_too(search, tmp_path):
    topics = tmp_path / "topics.tsv"
    topics.write_text("1\tspy\n2\tspy OR (film OR comedy\n3 no tab\n4\t \n5\tspy AND OR comedy\n6\tcomedy\n")
    search("--topics", topics, code=2)
    skipped = search("--topics", topics, "--on-error", "skip")
    assert {line.split()[0] for line in skipped.lines} == {"1", "6"}
    starts = [f"{topics}:{line}: " for line in (2, 3, 4, 5)]
    assert [said.startswith(start) for said, start in zip(skipped.told, starts, strict=True)] == [True] * 4
    assert all(said.endswith("; left out") and "\n" not in said for said in skipped.told)
    read = search("--topics", topics, "--on-error", "skip", "--read", "model")
    assert {line.split()[0] for line in read.lines} >= {"2"}
    topics.write_text("1\tspy AND (film\n")
    search("--topics", topics, "--on-error", "skip", "--output", tmp_path / "run.txt", code=2)
    assert not (tmp_path / "run.txt").exists()


def test_a_terminal_gets_escapes_and_a_pipe_the_bytes(run, tmp_path, monkeypatch):
    docid = "d\x1b[31m\u202e"
    index = write(tmp_path / "index", {docid: {"a": 1}})
    atoms = write_atoms(tmp_path / "atoms.jsonl", {"a": {"a": 1.0}})
    for is_terminal, shown in ((True, "d\\x1b[31m\\u202e"), (False, docid)):
        monkeypatch.setattr(sys.stdout, "isatty", lambda answer=is_terminal: answer)
        out = run(f"search --index {index} --query a --encoder {atoms} --output-format trec").out
        assert out.split(" ")[2] == shown


SLOW_COMMAND = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # below nohup it is ignored
from pyserini_compneg.topics import topic_runs
from pyserini_compneg.commands.search import main
original = topic_runs.write_run
def write_run(*arguments):
    original(*arguments)
    print("writing", file=sys.stderr, flush=True)
    for _ in range(1200):  # a signal that comes to a thread of Java wakes no sleeper
        time.sleep(0.1)
topic_runs.write_run = write_run
sys.exit(main())
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    ("name", "code", "old"),
    [("SIGINT", 130, None), ("SIGTERM", 143, "the old run"), ("SIGHUP", 129, None)],
)
def test_an_interrupted_search_leaves_no_run(index, topics, tmp_path, name, code, old):
    output = tmp_path / "runs" / "run.txt"
    output.parent.mkdir()
    if old:
        output.write_text(old)
    with start("--index", index, "--topics", topics, "--output", output, code=SLOW_COMMAND) as process:
        assert process.stderr.readline() == "writing\n"
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert [path.read_text() for path in output.parent.iterdir()] == ([old] if old else [])


@pytest.mark.parametrize("more", ["--hits 9", "--hits 1 --total exact"])
def test_totals_without_the_documents_that_topics_are(search, tmp_path, more):
    topics = write_jsonl(tmp_path / "topics.jsonl", *({"id": qid, "expression": "spy"} for qid in ("d1", "9")))
    lines = search("--topics", topics, "--output-format", "json", "--remove-query", *more.split()).lines
    assert [json.loads(line)["total"] for line in lines] == [{"value": n, "relation": "eq"} for n in (2, 3)]


def test_a_list_has_no_topics_to_remove(run):
    said = run("search --index {films} --query spy --remove-query", code=2).err
    assert "error: --remove-query is for runs; the list of --query has no topics\n" in said
