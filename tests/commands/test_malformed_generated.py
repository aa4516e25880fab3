"""Generated malformed inputs: a random change of a good file of each kind, or a bad value of any flag.

``COMPNEG_MALFORMED_CASES`` says how many (1,000 by hand), ``COMPNEG_MALFORMED_SEED`` which. What they find is pinned
in ``test_malformed_input``.
"""

import argparse
import json
import logging
import os
import shlex
import shutil
import signal
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
from checkpoints import write_router
from film_index import FILMS, build
from json_lines import write_jsonl
from mutations import NUMBERS, TEXTS, mutated
from pair_index import write, write_atoms
from test_malformed_input import tree

import pyserini_compneg
from pyserini_compneg.commands.main import main
from pyserini_compneg.index import build_sharded_index

pytestmark = [pytest.mark.slow, pytest.mark.once]  # hundreds of commands

CASES = int(os.environ.get("COMPNEG_MALFORMED_CASES", "100"))
SEED = int(os.environ.get("COMPNEG_MALFORMED_SEED", "0"))
SECONDS = 120
"""Far more than any of the commands needs."""

# What may stand in any file.
ANYTHING = {
    "binary": b"\x89PNG\r\n\x1a\n\x00\xff\xfe\x00",
    "empty": b"",
    "blank": b"\n \n\t\n",
    "only a byte order mark": b"\xef\xbb\xbf",
    "nul": b"\0\0\0\n",
    "latin-1": '{"id": "é", "contents": "é"}\n'.encode("latin-1"),
    "utf-16": '{"id": "a", "contents": "b"}\n'.encode("utf-16"),
    "nested lists": b"[" * 10**5,
    "nested objects": b'{"a":' * 10**5,
    "half an object": b'{"id": "d1", "vector": {"a": 1',
    "a number": b"1\n",
    "a huge number": b"9" * 5000,
    "infinity": b"1e999\n",
    "a list": b'["id", "d1"]\n',
    "null": b"null\n",
    "a lone surrogate": b'{"id": "\\ud800", "contents": "\\udfff", "query": "\\ud800"}\n',
    "escape sequences": b'{"id": "\x1b[31mred", "\x1b]0;title\x07": "\x1b[2J"}\n',
    "escaped escapes": b'{"id": "\\u001b[31mred", "\\u001b]0;x\\u0007": "\\u009b2J", "query": 1}\n',
    "a key twice": b'{"id": "d1", "id": "d2", "contents": "a", "vector": {"a": 1, "a": 2}, "query": "a"}\n',
    "one long line": b"x" * 10**6,
}

NO_RUN = ("empty", "blank", "only a byte order mark")  # which are runs without lines

ATOM = {"vector": {"a": 2.0, "b": 0.5}}
SCORE = {
    "excluding": {
        "damped": {"max": [ATOM, {"product": [ATOM, ATOM], "power": 0.7, "root": 2, "weight": 0.5}]},
        "excluded": [ATOM],
        "best": [3.0],
        "weight": 0.9,
        "floor": 0.1,
    },
    "excluded": [ATOM, {"filter": {"year": "1990.."}}],
    "above": [1.5, 0],
    "required": [ATOM],
}
TREE = {
    "exclusion": [
        {"difference": [{"union": ["a", {"strict_intersection": ["a", "b"]}]}, "b"]},
        {"filter": {"year": 1990}},
    ]
}
TOPICS = [
    {"id": "1", "query": "spy", "filter": {"year": ["1990", 1991]}, "metadata": {"template": "_"}},
    {"qid": "2", "expression": "(spy OR western) NOT comedy"},
    {"_id": "3", "expression": TREE},
    {
        "id": 4,
        "original_query": "<mark>a</mark> that are not <mark>b</mark>",
        "metadata": {"template": "_ that are not _"},
    },
    {"id": "5", **ATOM},
    {"id": "6", "contents": "a", "score": SCORE},
]
DOCUMENTS = [
    {"id": "d1", "contents": "spies", "year": 1990},
    {"_id": "d2", "title": "Spy", "text": "western", "year": [1991, "x"]},
    {"docid": "d3", "contents": "a", "tags": ["x", True, 2.5]},
]
VECTORS = [{"id": "d1", "vector": {"a": 3, "b": 1.5}}, {"id": "d2", "contents": "b", "vector": {"b": 2}}]
JUDGED = [{"id": "1", "docs": ["d1", "A b"], "original_query": "<mark>a</mark>", "metadata": {"template": "_"}}]
EXCLUIR = [{"ExcluQ": "Which birds?", "index": [0, 1]}]
NEVIR = 'id,WorkerId,q1,q2,doc1,doc2\n8-2,W1,Who (not) flies?,Who flies?,"An ""emu"",",A bat.\n'
PROTOCOL = {
    **{"title": "Least", "about": "Nothing", "datasets": ["filmsets"], "splits": ["dev"], "measures": ["nDCG@10"]},
    "sections": [
        {
            "title": "One",
            "rows": [
                {"name": "a", "method": "operators", "settings": {"cpt_terms": 5}},
                {
                    "name": "b",
                    "method": "operators",
                    "sweep": {"setting": "cpt_terms", "symbol": "m", "values": [1, 2]},
                },
            ],
        }
    ],
}
RECIPE = {
    "about": "x",
    "model": {"base": "missing", "head": "snrelu:sum:0.1", "max_length": 128, "dropout": 0.1},
    "data": [{"dataset": "missing", "split": "train", "negatives": "judged", "positives": 1}],
    "dev": {"dataset": "missing", "split": "validation", "measures": ["paired_accuracy"]},
    "training": {"steps": 2, "batch_size": 2, "learning_rate": 2.0e-5, "evaluate_every": 1, "patience": 4},
}
READER = {"reader": {"base": "..", "requests": ["missing.txt"], "judged": ["missing.jsonl"], "max_tokens": 64}}
REQUEST = {"id": "1", "kind": "union", "query": "a or b", "wanted": ["a", "b"], "excluded": [], "wanted_op": "or"}
TAGGED = "[W pizza places] not [X dominos]\n[W a] or [W b]\n"
"""With the judged request, so that files that are right are refused, and nothing is trained."""
SERVER = {"indexes": {"films": "missing", "more": {"path": "missing", "encoder": "bm25"}}, "api_keys": ["a-long-key"]}

FILES = {
    "topics.tsv": "1\tspy AND comedy\n2\t(spy OR western) NOT comedy\n",
    "topics.jsonl": TOPICS,
    "ids.txt": "d1\nd2\n",
    "documents.jsonl": DOCUMENTS,
    "vectors.jsonl": VECTORS,
    "qrels.txt": "1 0 d1 1\n1 0 d2 0\n2 0 d2 2\n",
    "qrels.tsv": "query-id\tcorpus-id\tscore\n1\td1\t1\n2\td2\t0\n",
    "qrels.jsonl": JUDGED,
    "run.txt": "1 Q0 d1 1 2.5 x\n1 Q0 d2 2 1e-1 x\n",
    "msmarco.tsv": "1\td1\t1\n1\td2\t2\n",
    "run.jsonl": [{"id": "1", "hits": [{"docid": "d1", "score": 2.5}, {"docid": "d2", "score": 1}]}],
    "protocol.yaml": PROTOCOL,
    "recipe.yaml": RECIPE,
    "reading.yaml": READER,
    "server.yaml": SERVER,
    "requests.txt": TAGGED,
    "judged.jsonl": [REQUEST],
    "requests.yaml": {"reader": {"base": "..", "requests": ["requests.txt"], "judged": ["../judged.jsonl"]}},
    "judged.yaml": {"reader": {"base": "..", "requests": ["../requests.txt"], "judged": ["judged.jsonl"]}},
    "beir/corpus.jsonl": [{"_id": "d1", "title": "Emu", "text": "A bird."}],
    "beir/queries.jsonl": [{"_id": "1", "text": "emus", "metadata": {}}],
    "beir/qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\td1\t1\n",
    "quest/documents.jsonl": [{"title": "Emu", "text": "About emus."}, {"title": "A b", "text": "c"}],
    "quest/test.jsonl": [{"query": "q?", "scores": None, **JUDGED[0]}],
    "nevir/test.csv": NEVIR,
    "excluir/corpus.json": ["An emu.", "A bat."],
    "excluir/test_manual_final.json": EXCLUIR,
    "nq/nq-dev-all.jsonl": [
        {"example_id": 1, "question_text": "q", "document_url": "https://a.b/?title=Emu", "document_text": "An emu."}
    ],
    "cisi/CISI.ALL": ".I 1\n.T\nEmus\n.A\nBird, B.\n.W\nAn emu\n.X\n1\t5\t1\n.I 2\n.W\nA bat.\n",
    "cisi/CISI.QRY": ".I 1\n.W\nWhat are emus?\n.I 2\n.T\nBats\n.W\nOn bats.\n",
    "cisi/CISI.REL": "     1      1\t0\t0.000000\n     2      2\t0\t0.000000\n",
    "encoded/vectors-00000-of-00001.jsonl": VECTORS,
    "encoded/vectors.about": {"encoder": "letters", "settings": {}, "signed": False, "impact_scale": 2.0},
    "broken/config.json": {},
}
CONVERT = "datasets convert --dataset ../{} --split {} --output new"
CONVERTED = {
    name: [CONVERT.format(folder, {"cisi": "all", "nq": "dev"}.get(folder, "test"))]
    for name in FILES
    if (folder := name.split("/")[0]) in ("beir", "quest", "nevir", "excluir", "nq", "cisi")
}
ENCODE = "encode --collection ../documents.jsonl --output new --encoder ../model"
QUERIES = "compose --encoder ../model --query spy"

# Each kind of file, and commands that read it; "../NAME" is replaced by the file or folder with the change.
READERS = {
    "topics.tsv": ["search --index ../films --topics ../topics.tsv", "compose --index ../films --topics ../topics.tsv"],
    "topics.jsonl": [
        "search --index ../vectors --encoder ../atoms.jsonl --topics ../topics.jsonl --output new",
        "search --index ../films --topics ../topics.jsonl --output new --on-error skip",
        "compose --encoder ../atoms.jsonl --topics ../topics.jsonl --output new",
        "explain --index ../vectors --encoder ../atoms.jsonl --topics ../topics.jsonl --qid 6 --output-format json",
    ],
    "ids.txt": ["search --index ../films --query spy --filter ../ids.txt"],
    "atoms.jsonl": ["search --index ../vectors --query 'a NOT b' --encoder ../atoms.jsonl"],
    "documents.jsonl": [
        "index --collection ../documents.jsonl --index new --filter-fields year,tags --store-raw",
        "index --collection ../documents.jsonl --index new --on-error skip",
    ],
    "vectors.jsonl": [
        "index --collection ../vectors.jsonl --index new --encoder letters --pair-terms 4 --impact-scale 2",
        "index --collection ../vectors.jsonl --index new --encoder letters --signed --store-docvectors --shards 2",
    ],
    "encoded/vectors.about": ["index --collection ../encoded --index new --encoder letters"],
    "films/compneg.json": ["search --index ../films --query spy", "index --verify ../films"],
    "sharded/compneg-shards.json": ["search --index ../sharded --query spy"],
    **{f"qrels.{kind}": [f"eval --run ../run.txt --qrels ../qrels.{kind}"] for kind in ("txt", "tsv", "jsonl")},
    "qrels.jsonl ": ["eval --run ../run.txt --qrels ../qrels.txt --by template --groups ../qrels.jsonl"],
    "run.txt": ["eval --qrels ../qrels.txt --run ../run.txt -m RR@5 -m map"],
    "run.jsonl": ["eval --qrels ../qrels.txt --run ../run.jsonl"],
    "msmarco.tsv": ["eval --qrels ../qrels.txt --run ../msmarco.tsv"],
    "protocol.yaml": ["reproduce ../protocol.yaml --dataset missing --report new"],
    "recipe.yaml": ["train ../recipe.yaml --show", "train ../recipe.yaml --output new"],
    "reading.yaml": ["train ../reading.yaml --show", "train ../reading.yaml --output new"],
    "requests.txt": ["train ../requests.yaml --output new"],
    "judged.jsonl": ["train ../judged.yaml --output new"],
    "server.yaml": ["serve --config ../server.yaml"],
    **CONVERTED,
    "model/modules.json": [QUERIES],
    "model/router_config.json": [QUERIES, ENCODE],
    "model/config_sentence_transformers.json": [QUERIES],
    **{f"model/query_0_SparseStaticEmbedding/{name}": [QUERIES]
       for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")},
    **{f"model/document_0_Transformer/{name}": [ENCODE]
       for name in ("config.json", "export.json", "sentence_bert_config.json", "tokenizer.json", "model.onnx")},
    "model/document_1_SpladePooling/config.json": [ENCODE],
    **{f"reader/{name}.json": ["search --index ../films --query 'spy films without comedy' --read ../reader"]
       for name in ("reader", "tokenizer")},
}  # fmt: skip
ANY = [
    "topics.tsv",
    "topics.jsonl",
    "atoms.jsonl",
    "documents.jsonl",
    "vectors.jsonl",
    "qrels.txt",
    "qrels.jsonl ",
    "run.txt",
    "protocol.yaml",
    "recipe.yaml",
]
BINARY = (".onnx", ".safetensors")

# A command that is right, for each whose flags get wrong values. Of demo, any place for its sample is right.
ARGUMENTS = {
    "search": "--index ../films --query spy",
    "explain": "--index ../films --query spy",
    "compose": "--index ../films --query spy",
    "index": "--collection ../documents.jsonl --index new",
    "encode": "--collection ../documents.jsonl --output new --encoder ../broken",
    "eval": "--qrels ../qrels.txt --run ../run.txt",
    "datasets": "convert --dataset ../beir --split test --output new",
    "reproduce": "../protocol.yaml --dataset missing --report new",
    "train": "../recipe.yaml --output new",
    "export": "--encoder ../broken",
    "paths": "java",
    "serve": "--index ../films --port 0",
}
VALUES = [
    *(value for value in NUMBERS + TEXTS if "\0" not in value),
    "2",
    "0.5",
    "../films",
    "../topics.tsv",
    "missing",
]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with a good file of each kind."""
    room = tmp_path_factory.mktemp("room")
    build(room).rename(room / "films")
    films = ({"id": docid, "contents": text} for docid, (_, text) in FILMS.items())
    build_sharded_index(write_jsonl(room / "films.jsonl", *films), room / "sharded", 2)
    write(room / "vectors", {"d1": {"a": 3, "b": 1}, "d2": {"b": 2}})
    write_atoms(room / "atoms.jsonl", {"a": {"a": 1.0}, "b": {"b": 1.0}, "a that are not b": {"a": 1.0}})
    for name, content in FILES.items():
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_bytes(packed(content, name))
    resources = Path(pyserini_compneg.__file__).parent / "resources"
    write_router(room / "model", resources / "mini", tokenizer=resources / "mini")
    shutil.copytree(resources / "reader", room / "reader")
    return room


def packed(content, name):
    if isinstance(content, str):
        return content.encode()
    if name.endswith(".jsonl"):
        return "".join(f"{json.dumps(record)}\n" for record in content).encode()
    return json.dumps(content).encode()


def kind_of(name):
    suffix = Path(name).suffix
    if suffix == ".jsonl" or suffix == ".yaml":
        return suffix[1:]
    return "json" if suffix in (".json", ".about") else "columns"


def changed_file(random, room, case):
    """A command that reads a changed file."""
    name = random.choice(list(READERS))
    command, name = random.choice(READERS[name]), name.strip()
    if random.random() < 0.1:
        return reading(room, case, name, command, random.choice(list(ANYTHING.values())))
    content = mutated(random, (room / name).read_bytes(), "bytes" if name.endswith(BINARY) else kind_of(name))
    return reading(room, case, name, command, content)


def reading(room, case, name, command, content):
    """Makes a file, beside the rest of its folder; returns the command that reads it."""
    top, *below = Path(name).parts
    if below:
        shutil.copytree(room / top, case / top, copy_function=os.link)
        (case / name).unlink()
    (case / name).write_bytes(content)
    return [argument if argument != f"../{top}" else top for argument in shlex.split(command)]


def changed_flag(random):
    """A command with a wrong value of a flag, or of an argument."""
    command = random.choice(list(ARGUMENTS))
    given = shlex.split(ARGUMENTS[command])
    parser = import_module(f"pyserini_compneg.commands.{command}")._parser()
    action = random.choice([one for one in parser._actions if not isinstance(one, argparse._HelpAction)])
    value = random.choice(VALUES)
    if not action.option_strings:
        return [command, value, *given[1:]]
    flag = random.choice(action.option_strings)
    wrong = [f"{flag}={value}"] if action.nargs == 0 or random.random() < 0.5 else [flag, value]
    return [command, *given, *wrong]


@pytest.fixture
def case(room, tmp_path, monkeypatch):
    """A folder beside the good files."""
    case = room / tmp_path.name
    case.mkdir()
    monkeypatch.chdir(case)
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr("pyserini_compneg.serve.server.serve", lambda *_, **__: None)
    yield case
    shutil.rmtree(case)


@pytest.fixture
def run(room, case, capfd):
    """One line on standard error, an exit code of the documented ones, inputs as they were, and nothing left behind."""

    def run(arguments, as_json=False):
        before = tree(room)
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(SECONDS)
        try:
            code = main(arguments + ["--log-format", "json"] * as_json)
        finally:
            signal.alarm(0)
        out, err = capfd.readouterr()
        told = f"seed {SEED}, {case.name}: {shlex.join(arguments)[:500]}\n{err[:2000]}"
        assert before.items() <= tree(room).items(), told
        if as_json and code:
            messages = [json.loads(line) for line in err.splitlines()]
            assert [one["level"] for one in messages].count("error") == 1, told
            assert all(message_is_right(one["message"].split("\n")) for one in messages), told
        elif code:
            lines = err.removesuffix("\n").split("\n")
            errors = [place for place, line in enumerate(lines) if line.startswith("error: ")]
            assert len(errors) == 1 and message_is_right(lines[errors[0] :]), told
            assert all(line.isprintable() for line in lines), told
        else:
            assert "error: " not in err or as_json, told
        if code:
            assert tree(room) == before, told
        return code

    return run


@pytest.mark.parametrize("number", range(CASES))
def test_a_malformed_input(room, case, run, number):
    random = Random(f"{SEED} {number}")
    is_flag = random.random() < 0.3
    arguments = changed_flag(random) if is_flag else changed_file(random, room, case)
    as_json = arguments[0] in ("index", "encode", "search", "compose", "explain", "serve") and random.random() < 0.1
    damaged = is_flag or case.joinpath("films").exists() or case.joinpath("sharded").exists()
    assert run(arguments, as_json) in ((0, 1, 2) if damaged else (0, 2)), arguments


@pytest.mark.parametrize("content", ANYTHING)
def test_a_file_of_anything(room, case, run, content):
    for name in ANY:
        code = run(reading(room, case, name.strip(), READERS[name][0], ANYTHING[content]))
        assert code == (0 if name == "run.txt" and content in NO_RUN else 2), name
        (case / name.strip()).unlink()


def message_is_right(lines):
    """A line, and below it only where the help is, or a text and a caret."""
    first, *below = lines
    fits = not below or below[0].startswith("see ") if len(below) < 2 else len(below) == 2 and below[1].strip() == "^"
    return fits and all(line.isprintable() and len(line) < 700 for line in lines)


def too_long(*_):
    raise SystemExit(f"longer than {SECONDS} s")
