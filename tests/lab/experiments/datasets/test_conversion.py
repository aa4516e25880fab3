import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.expression import Atom, Difference
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.datasets.conversion import convert
from pyserini_compneg.support.errors import InputError, OutputError
from pyserini_compneg.topics.topics import read_topics

DOCUMENTS = [
    {"docid": "Emu", "title": "Emu", "text": "A bird."},
    {"docid": "Bat", "title": "Bat", "text": "A\tmammal.\n"},
]
QUERIES = [
    {
        "qid": "q1",
        "query": "birds\tthat aren't bats",
        "original_query": "<mark>birds (all)</mark> that are not <mark>bats</mark>",
        "docs": ["Emu"],
    },
    {"qid": "q2", "query": "", "original_query": "<mark>bats</mark>", "docs": ["Bat"]},
]
HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def films(tmp_path):
    write_jsonl(tmp_path / "films" / "documents.jsonl", *DOCUMENTS)
    return write_jsonl(tmp_path / "films" / "dev.jsonl", *QUERIES).parent


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "beir"
    write_jsonl(folder / "corpus.jsonl", {"_id": "d1", "text": "An emu."}, {"_id": "d2", "text": "A bat."})
    write_jsonl(folder / "queries.dev.jsonl", {"_id": "1", "text": "emus AND\n(bats"})
    (folder / "qrels.dev.tsv").write_text(f"{HEADER}1\td1\t1\n1\td2\t0\n")
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_expressions(films, tmp_path):
    output = tmp_path / "out"
    assert convert(open_dataset(films), "dev", output) == (2, 2, 2)
    assert contents(output) == {
        "collection/documents.jsonl": (
            '{"id": "Emu", "contents": "Emu\\nA bird."}\n{"id": "Bat", "contents": "Bat\\nA\\tmammal.\\n"}\n'
        ),
        "topics.tsv": 'q1\t"birds (all)" NOT bats\nq2\tbats\n',
        "topics.plain.tsv": "q1\tbirds that aren't bats\nq2\tbats\n",
        "qrels.txt": "q1 0 Emu 1\nq2 0 Bat 1\n",
    }
    expressions = [topic.expression for topic in read_topics(output / "topics.tsv")]
    assert expressions == [Difference(Atom("birds (all)"), Atom("bats")), Atom("bats")]


def test_texts_and_judgements_of_0(beir, tmp_path):
    output = tmp_path / "out"
    assert convert(open_dataset(beir), "dev", output) == (2, 1, 2)
    assert contents(output) == {
        "collection/documents.jsonl": '{"id": "d1", "contents": "An emu."}\n{"id": "d2", "contents": "A bat."}\n',
        "topics.jsonl": '{"id": "1", "text": "emus AND\\n(bats"}\n',
        "topics.plain.tsv": "1\temus AND (bats\n",
        "qrels.txt": "1 0 d1 1\n1 0 d2 0\n",
    }
    assert read_topics(output / "topics.jsonl") == open_dataset(beir).topics("dev")
    assert read_qrels(output / "qrels.txt") == open_dataset(beir).qrels("dev")


def refused(folder, output, error=InputError):
    """The message, where nothing is left but what was there."""
    before = sorted(output.parent.iterdir()) if output.parent.is_dir() else None
    message = refusal(convert, open_dataset(folder), "dev", output, error=error)
    assert before is None or sorted(output.parent.iterdir()) == before
    return message


@pytest.mark.parametrize(
    ("name", "records", "message"),
    [
        ("dev.jsonl", [{**QUERIES[0], "docs": ["Owl"]}], ": split dev: document 'Owl' is judged, but there is no su"),
        ("documents.jsonl", [*DOCUMENTS, DOCUMENTS[0]], "/documents.jsonl:3: the document id 'Emu' was given already"),
        ("documents.jsonl", [{"docid": "Emu", "vector": {"a": 1}}], "/documents.jsonl:1: only a `vector`; only "),
        (
            "dev.jsonl",
            [{"qid": "q1", "vector": {"a": 1}, "docs": ["Emu"]}],
            "/dev.jsonl:1: query 'q1' is composed already; only texts can be converted",
        ),
    ],
)
def test_what_cannot_be_converted(films, tmp_path, name, records, message):
    write_jsonl(films / name, *records)
    assert refused(films, tmp_path / "out").startswith(f"{films}{message}")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("there", "exists already; choose another place with --output"),
        ("x/out", "cannot be written: there is no folder {tmp_path}/x; create it first"),
        ("films/out", "would overwrite {tmp_path}/films; choose another place with --output"),
    ],
)
def test_folders_that_cannot_be_written(films, tmp_path, output, message):
    (tmp_path / "there").mkdir()
    expected = f"{tmp_path / output}: {message.replace('{tmp_path}', str(tmp_path))}"
    assert refused(films, tmp_path / output, OutputError) == expected
