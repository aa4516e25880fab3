"""What is read of the official files of each kind of dataset, and what is said of files that are wrong."""

import csv
import gzip
import io
import json

import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.config import SourceConfig
from pyserini_compneg.lab.training.examples import TrainingExample, read_examples
from pyserini_compneg.topics import Topic


def write(folder, files):
    """Writes texts as they are, records as JSON Lines, or as one JSON list; packed if the name says so."""
    for name, content in files.items():
        if not isinstance(content, str):
            lines = map(json.dumps, content)
            content = json.dumps(content, indent=1) if name.endswith(".json") else "".join(f"{one}\n" for one in lines)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return folder


def read(dataset, split):
    documents = [(document.docid, document.text) for document in dataset.documents(split)]
    return documents, dataset.topics(split), dataset.qrels(split)


def about(dataset):
    return dataset.kind, dataset.splits, dataset.collection and dataset.collection.name


def topic(qid, text, **more):
    return Topic(qid, text, Atom(text), **more)


# BEIR

QUERIES = [{"_id": "1", "text": "emus (not) bats", "metadata": {}}, {"_id": "2", "text": "bats"}]
TOPICS = [topic("1", "emus (not) bats"), topic("2", "bats")]
HEADER = "query-id\tcorpus-id\tscore\n"
CORPUS = {
    "corpus.jsonl.gz": [{"_id": "d1", "title": "Emu", "text": "A bird."}, {"_id": "d2", "title": "", "text": "A bat."}]
}
BEIR = {
    **CORPUS,
    "queries.jsonl": QUERIES,
    "qrels/test.tsv": f"{HEADER}2\td2\t1\n2\td1\t0\n",
    "qrels/train.tsv": f"{HEADER}1\td1\t2\n",
}
BIRDS = [("d1", "Emu\nA bird."), ("d2", "\nA bat.")]


def test_beir(tmp_path):
    dataset = open_dataset(write(tmp_path, BEIR))
    assert about(dataset) == ("beir", ("test", "train"), "corpus.jsonl.gz")
    assert read(dataset, "test") == (BIRDS, TOPICS[1:], {"2": {"d2": 1, "d1": 0}})
    assert dataset.topics("train") == TOPICS[:1]


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_files_of_their_own_for_a_split_are_taken_whole(tmp_path, packed):
    files = {f"queries.dev.jsonl{packed}": QUERIES, f"qrels.dev.tsv{packed}": f"{HEADER}2\td2\t1\n"}
    dataset = open_dataset(write(tmp_path, CORPUS | files))
    assert dataset.splits == ("dev",)
    assert read(dataset, "dev") == (BIRDS, TOPICS, {"2": {"d2": 1}})


def test_of_plain_and_packed_judgements_the_plain_ones_are_read(tmp_path):
    dataset = open_dataset(write(tmp_path, BEIR | {"qrels/test.tsv.gz": HEADER}))
    assert dataset.qrels("test") == {"2": {"d2": 1, "d1": 0}}


# CISI

CISI = {
    "CISI.ALL": ".X\n.I 1\n.T \nEmus\n.A\nBird, B.\n.A\nBat, C.\n.W\n   An emu\nis a bird.\n.X\n1\t5\t1\n"
    ".I 2\n.W\nA bat.\n",
    "CISI.QRY": ".I 1\n.W\nWhat are emus?\nBirds?\n.I 2\n.T\nBats\n.A\nBat, C.\n.W\nOn bats.\n.B\n(JASIS)\n",
    "CISI.REL": "     1      1\t0\t0.000000\n     1      2\t0\t0.000000\n",
}


def test_cisi(tmp_path):
    dataset = open_dataset(write(tmp_path, CISI))
    assert about(dataset) == ("cisi", ("all",), None)
    documents = [("1", "Emus\nAn emu\nis a bird."), ("2", "A bat.")]
    topics = [topic("1", "What are emus? Birds?"), topic("2", "Bats On bats.")]
    assert read(dataset, "all") == (documents, topics, {"1": {"1": 1, "2": 1}})


# ExcluIR

QUERY = "Which birds, except (all) emus?"
EXCLUIR = {"corpus.json": ["An emu.", "A bat."], "test_manual_final.json": [{"ExcluQ": QUERY, "index": [0, 1]}]}


@pytest.mark.parametrize("text", ["RQ_rewrite", "ExcluQ"])
@pytest.mark.parametrize("index", ["corpus_sub_index", "index"])
def test_excluir(tmp_path, text, index):
    queries = [{"question0": "Which birds?", text: QUERY, index: [0, 1]}]
    dataset = open_dataset(write(tmp_path, EXCLUIR | {"test_manual_final.json": queries}))
    assert about(dataset) == ("excluir", ("test", "hotpotqa-test"), None)
    documents, topics = [("0", "An emu."), ("1", "A bat.")], [topic("excluir_0", QUERY)]
    assert read(dataset, "test") == (documents, topics, {"excluir_0": {"1": 1, "0": 0}})
    asked, answered = [topic("excluir_0", "Which birds?")], {"excluir_0": {"1": 1, "0": 1}}
    assert read(dataset, "hotpotqa-test") == (documents, asked, answered)
    dataset = open_dataset(write(tmp_path, EXCLUIR))
    message = f"{tmp_path}/test_manual_final.json: query 0: no query; expected a text as question0"
    assert refusal(dataset.topics, "hotpotqa-test") == message


def test_a_training_file_of_excluir_has_the_same_records(tmp_path):
    (record,) = EXCLUIR["test_manual_final.json"]
    dataset = open_dataset(write(tmp_path, EXCLUIR | {"train_final.json": [{"question0": "Which?", **record}]}))
    assert dataset.splits == ("test", "train", "hotpotqa-test", "hotpotqa-train")
    assert read(dataset, "train") == read(dataset, "test")
    examples = read_examples(SourceConfig(dataset=str(tmp_path), split="train", negatives="judged"), 0)
    assert examples == [TrainingExample(QUERY, "A bat.", ("An emu.",))]
    examples = read_examples(SourceConfig(dataset=str(tmp_path), split="hotpotqa-train", positives=2), 0)
    assert {*examples} == {TrainingExample("Which?", "A bat."), TrainingExample("Which?", "An emu.")}
    write(tmp_path, {"train2.json": "[]"})
    message = f"{tmp_path}: train2.json, train_final.json: several files of training queries; leave one"
    assert refusal(open_dataset, tmp_path) == message


def test_a_sample_of_excluir(tmp_path):
    query = {"_id": "excluir_7", "text": QUERY, "positive": "9", "negative": "0"}
    corpus = {"corpus.jsonl": [{"_id": "0", "title": "Emu", "text": "A bird."}]}
    dataset = open_dataset(write(tmp_path, corpus | {"queries.dev.jsonl": [query]}))
    assert about(dataset) == ("excluir", ("dev",), "corpus.jsonl")
    topics, qrels = [topic("excluir_7", QUERY)], {"excluir_7": {"9": 1, "0": 0}}
    assert read(dataset, "dev") == ([("0", "Emu\nA bird.")], topics, qrels)
    del query["negative"]
    dataset = open_dataset(write(tmp_path, {"queries.dev.jsonl": [query]}), "excluir")
    assert refusal(dataset.qrels, "dev") == f"{tmp_path}/queries.dev.jsonl:1: no `negative` document"


# Natural Questions

PAGE = "https://en.wikipedia.org//w/index.php?title={}&amp;oldid=8"
TRAIN = [
    {"example_id": 7, "question_text": "who (not) flies", "document_url": PAGE.format("Emu_(bird)")},
    {"example_id": -8, "question_text": "what is an emu", "document_url": PAGE.format("Emu_(bird)")},
]
TRAIN = [{**record, "document_text": f"<P> An emu : {record['example_id']} . </P>"} for record in TRAIN]
TOKENS = [{"token": token, "html_token": token[0] == "<"} for token in ("<H1>", "A", "bat", ".", "</H1>")]
DEV = [{"example_id": 9, "question_text": "bats?", "document_url": PAGE.format("B%C3%A4t"), "document_tokens": TOKENS}]
DEV[0]["document_title"] = "Bat"


@pytest.mark.parametrize("downloaded", ["", "v1.0-simplified_"])
def test_natural_questions(tmp_path, downloaded):
    """The pages of both files, each once; the files of the training set have another form than those of dev."""
    files = {f"{downloaded}simplified-nq-train.jsonl.gz": TRAIN, f"{downloaded}nq-dev-all.jsonl": DEV}
    dataset = open_dataset(write(tmp_path, files))
    assert about(dataset) == ("nq", ("dev", "train"), None)
    pages = [("Bät", "Bät A bat ."), ("Emu_(bird)", "Emu (bird) An emu : 7 .")]
    assert read(dataset, "dev") == (pages, [topic("9", "bats?")], {"9": {"Bät": 1}})
    asked = [topic("7", "who (not) flies"), topic("-8", "what is an emu")]
    assert read(dataset, "train") == (pages, asked, {"7": {"Emu_(bird)": 1}, "-8": {"Emu_(bird)": 1}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"example_id": None}, "the query id must be a text or a whole number, got None"),
        ({"question_text": " "}, "`question_text` must be a text that is not blank, got ' '"),
        ({"document_url": "Emu"}, "`document_url` must be an address with a title, got 'Emu'"),
        ({"document_text": 1}, "no text of the page; expected `document_text` or `document_tokens`"),
    ],
)
def test_what_is_no_natural_question(tmp_path, change, message):
    dataset = open_dataset(write(tmp_path, {"simplified-nq-train.jsonl": [TRAIN[0] | change]}))
    assert refusal(read, dataset, "train") == f"{tmp_path}/simplified-nq-train.jsonl:1: {message}"


# NevIR

COLUMNS = ["id", "WorkerId", "q1", "q2", "doc1", "doc2"]
PAIR = {"id": "8-2", "q1": "Who (not) flies?", "q2": "Who flies?", "doc1": 'An "emu",\nsay.', "doc2": "A bat."}


def as_csv(*pairs):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="W1", lineterminator="\n")
    writer.writeheader()
    writer.writerows(pairs)
    return text.getvalue()


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        ({"test.csv": as_csv(PAIR), "train.csv": as_csv({**PAIR, "id": "1-1"})}, ("train", "test")),
        ({"test.jsonl": [{**PAIR, "source": "flip"}]}, ("test",)),
    ],
)
def test_nevir(tmp_path, files, splits):
    dataset = open_dataset(write(tmp_path, files))
    assert about(dataset) == ("nevir", splits, None)
    documents = [("8-2-doc1", 'An "emu",\nsay.'), ("8-2-doc2", "A bat.")]
    topics = [topic(f"8-2-{name}", PAIR[name], group="scope edit", metadata={"pair": "8-2"}) for name in ("q1", "q2")]
    qrels = {"8-2-q1": {"8-2-doc1": 1, "8-2-doc2": 0}, "8-2-q2": {"8-2-doc1": 0, "8-2-doc2": 1}}
    assert read(dataset, "test") == (documents, topics, qrels)


# Files that are wrong

ROW, PLACE = '8-2,W1,a,b,"c\nc",d', "test_manual_final.json"
NEVIR_HEADER = ",".join(COLUMNS)
OUTSIDE = ": 1 of 2 queries are not in …/queries.jsonl, first '7'"
TWICE = "the pair '8-2' is given twice, first at …/test.csv:2"
WHITE = "'a b' has white space, which a TREC run cannot hold"
FIELDS = "expected the fields id, q1, q2, doc1, doc2"
POSITIONS = f"{PLACE}: query 0: expected [negative, positive], two positions in corpus.json from 0, as corpus_sub_index"
WRONG = [
    # good files, the wrong one, its content, what is read of it, and the message
    (BEIR, "qrels/test.tsv", f"{HEADER}2\td2\t1\n7\td2\t1\n", "topics", OUTSIDE),
    (BEIR, "qrels/test.tsv", f"{HEADER}2\td2\t1\n7\td2\t1\n", "qrels", OUTSIDE),
    (CISI, "CISI.QRY", "", "topics", ": no records; expected lines of `.I number`"),
    (CISI, "CISI.QRY", ".W\nbats\n", "topics", ":2: expected a line `.I number`, then `.W`, got 'bats'"),
    (CISI, "CISI.QRY", ".I 1\nbats\n", "topics", ":2: expected a line `.I number`, then `.W`, got 'bats'"),
    (CISI, "CISI.QRY", ".I 1\n.W\na\n.I 1\n", "topics", ":4: number 1 is given twice"),
    (CISI, "CISI.QRY", ".I 1\n.B\n(JASIS)\n", "topics", ":1: query 1 has no text, neither .T nor .W"),
    (CISI, "CISI.REL", "\n", "qrels", ": no judgements; expected lines of `query document 0 0.0`"),
    (CISI, "CISI.REL", "1 1 0 0.0\n\n1 x 0 0.0\n", "qrels", ":3: expected `query document 0 0.0`, got '1 x 0 0.0'"),
    (CISI, "CISI.REL", "9 1 0 0.0\n", "qrels", ": 1 of 1 queries are not in …/CISI.QRY, first '9'"),
    (EXCLUIR, PLACE, [7], "qrels", ": query 0: expected a JSON object, got a whole number"),
    (EXCLUIR, PLACE, [{"index": [0, 0]}], "qrels", ": query 0: document '0' is both the positive and the negative one"),
    *(
        (EXCLUIR, PLACE, [record], "qrels", f"{POSITIONS.removeprefix(PLACE)} or index, got {shown}")
        for record, shown in [
            ({"index": [0, True]}, "[0, True]"),
            ({"index": [0, -1]}, "[0, -1]"),
            ({"index": [0]}, "[0]"),
            ({}, "None"),
        ]
    ),
    (EXCLUIR, PLACE, [{"ExcluQ": " "}], "topics", ": query 0: no query; expected a text as RQ_rewrite or ExcluQ"),
    (EXCLUIR, PLACE, [], "topics", ": no queries"),
    (EXCLUIR, "corpus.json", '["a", 1]', "documents", ": document 1: expected a text, got a whole number"),
    (EXCLUIR, "corpus.json", '[\n"a",\nb]', "documents", ":3: not valid JSON: Expecting value at column 1"),
    (EXCLUIR, "corpus.json", "{}", "documents", ": expected a JSON list, got an object"),
    ({}, "test.csv", f"{NEVIR_HEADER}\n{ROW}\n{ROW}", "topics", f":4: {TWICE}"),
    ({}, "test.csv", f"{NEVIR_HEADER}\n9-1,W1,a, ,c,d", "topics", ":2: `q2` must be a text that is not blank, got ' '"),
    ({}, "test.csv", "id,q1,doc1\n8-2,a,c", "topics", f":2: no `q2`, `doc2`; {FIELDS}"),
    ({}, "test.csv", f"{NEVIR_HEADER}\n1,2", "topics", ":2: expected the 6 columns of the first line, found 2"),
    ({}, "test.csv", f'{NEVIR_HEADER}\n1,w,"a', "topics", ":2: broken CSV: unexpected end of data"),
    ({}, "test.csv", NEVIR_HEADER, "topics", ": no pairs"),
    ({}, "test.jsonl", [{"q1": "a"}], "topics", f":1: no `id`, `q2`, `doc1`, `doc2`; {FIELDS}"),
    ({}, "test.jsonl", [{**PAIR, "id": "a b"}], "topics", f":1: the pair id {WHITE}"),
]


@pytest.mark.parametrize(("good", "name", "content", "part", "message"), WRONG)
def test_a_wrong_file_is_named_with_the_line_where_its_fault_begins(tmp_path, good, name, content, part, message):
    dataset = open_dataset(write(tmp_path, good | {name: content}))
    found = refusal(lambda: list(getattr(dataset, part)(dataset.splits[-1] if dataset.kind == "cisi" else "test")))
    assert found == f"{tmp_path}/{name}{message}".replace("…", str(tmp_path))
