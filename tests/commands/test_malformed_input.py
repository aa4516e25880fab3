"""Malformed flags, files and values: one line on standard error, the right exit code, and nothing left behind."""

import gzip
import logging
import os
import shlex

import pytest
from film_index import build
from lookup_encoder import LookupEncoder
from pair_index import write, write_atoms

import pyserini_compneg
from pyserini_compneg.commands.main import main

DOCUMENT, VECTOR = '{"id": "d1", "contents": "spies"}', '{"id": "d1", "vector": {"a": 1}}'
DEEP, HUGE = 10**5, "9" * 5000

# What stands in a file, whatever it is for; the suffix is .jsonl where none is given.
ANYTHING = {
    "binary": b"\x89PNG\r\n\x1a\n\x00\xff\xfe\x00",
    "empty": b"",
    "blank": b"\n \n\t\n",
    "only a byte order mark": b"\xef\xbb\xbf",
    "nul": b"\0\0\0\n",
    "latin-1": '{"id": "é", "contents": "é"}\n'.encode("latin-1"),
    "utf-16": '{"id": "a", "contents": "b"}\n'.encode("utf-16"),
    "nested lists": b"[" * DEEP,
    "nested objects": b'{"a":' * DEEP,
    "half an object": b'{"id": "d1", "vector": {"a": 1',
    "a number": b"1\n",
    "a huge number": HUGE.encode(),
    "infinity": b"1e999\n",
    "a list": b'["id", "d1"]\n',
    "null": b"null\n",
    "a lone surrogate": b'{"id": "\\ud800", "contents": "\\udfff", "query": "\\ud800"}\n',
    "escape sequences": b'{"id": "\x1b[31mred", "\x1b]0;title\x07": "\x1b[2J"}\n',
    "escaped escapes": b'{"id": "\\u001b[31mred", "\\u001b]0;x\\u0007": "\\u009b2J", "query": 1}\n',
    "a key twice": b'{"id": "d1", "id": "d2", "contents": "a", "vector": {"a": 1, "a": 2}, "query": "a"}\n',
    "one long line": b"x" * 10**6,
}

# The commands that read a file, and their exit code when it is wrong.
READERS = {
    "index --index new --collection {}.jsonl": 2,
    "index --index new --encoder letters --collection {}.jsonl": 2,
    "search --index films --topics {}.jsonl": 2,
    "search --index films --topics {}.tsv": 2,
    "search --index vectors --query a --encoder {}.jsonl": 2,
    "compose --encoder atoms.jsonl --topics {}.jsonl": 2,
    "compose --encoder {}.jsonl --query a": 2,
    "explain --index films --qid 1 --topics {}.jsonl": 2,
    "eval --run run.txt --qrels {}.txt": 2,
    "eval --run run.txt --qrels {}.jsonl": 2,
    "eval --qrels qrels.txt --run {}.txt": 2,
    "eval --qrels qrels.txt --run run.txt --by k --groups {}.jsonl": 2,
    "train {}.yaml --output new": 1,
    "reproduce {}.yaml --dataset dataset --report new": 2,
}


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with a good file of each kind, and all the bad ones."""
    room = tmp_path_factory.mktemp("room")
    build(room).rename(room / "films")
    write(room / "vectors", {"d1": {"a": 3, "b": 1}, "d2": {"b": 2}})
    write_atoms(room / "atoms.jsonl", {"a": {"a": 1.0}, "b": {"b": 1.0}})
    (room / "topics.tsv").write_text("1\tspy\n")
    (room / "run.txt").write_text("1 Q0 d1 1 2.0 x\n")
    (room / "qrels.txt").write_text("1 0 d1 1\n")
    (room / "documents.jsonl").write_text(DOCUMENT + "\n")
    (room / "nothing").mkdir()
    (room / "broken").mkdir()
    (room / "broken" / "config.json").write_text("{")
    (room / "no-manifest").mkdir()
    (room / "no-manifest" / "compneg.json").write_bytes(b"{}")
    (room / "no.jsonl.gz").write_text(DOCUMENT)
    (room / "half.jsonl.gz").write_bytes(gzip.compress(DOCUMENT.encode() * 99)[:-20])
    os.mkfifo(room / "pipe")
    for name, content in ANYTHING.items():
        for suffix in ("jsonl", "tsv", "txt", "yaml"):
            (room / f"{name}.{suffix}").write_bytes(content)
    return room


@pytest.fixture
def run(room, monkeypatch, capfd):
    """Runs a command in the room; checks what every command keeps to, and returns its exit code."""
    monkeypatch.chdir(room)
    monkeypatch.setattr(logging.root, "handlers", [])

    def run(arguments):
        before = tree(room)
        code = main(arguments)
        out, err = capfd.readouterr()
        assert all(line.replace("\t", "").isprintable() for line in f"{out}\n{err}".split("\n"))
        assert "Traceback" not in err and max(map(len, err.split("\n"))) < 700
        if code:
            assert tree(room) == before, set(tree(room)) - set(before)
            said = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: ", "see ", "  "))]
            assert len(said) == 1 and said[0].startswith("error: "), err
        return code

    return run


def tree(folder):
    """What is in a folder."""
    return {str(path): path.lstat().st_size for path in folder.rglob("*")}


NO_RUN = ("empty", "blank", "only a byte order mark")  # a run without lines is a run


@pytest.mark.parametrize("content", ANYTHING)
@pytest.mark.parametrize("command", READERS)
def test_a_file_of_anything(run, command, content):
    name, *arguments = shlex.split(command)
    code = run([name, *(argument.replace("{}", content) for argument in arguments)])
    assert code == (0 if "--run {}" in command and content in NO_RUN else READERS[command])


# A line of a file that is nearly right, by the command that reads it.
LINES = {
    "index --index new --collection {}": [
        '{"contents": "a"}',
        '{"id": "", "contents": "spies"}',
        '{"id": " ", "contents": "spies"}',
        '{"id": "a b", "contents": "spies"}',
        '{"id": "a\\tb", "contents": "spies"}',
        '{"id": "\\u0000", "contents": "spies"}',
        '{"id": true, "contents": "spies"}',
        '{"id": 1.5, "contents": "spies"}',
        '{"id": null, "contents": "spies"}',
        '{"id": ["x"], "contents": "spies"}',
        '{"id": "d1", "contents": 7}',
        '{"id": "d1", "contents": null}',
        '{"id": "d1", "contents": {"a": "b"}}',
        f"{DOCUMENT}\n{DOCUMENT}",
        f"{DOCUMENT}\n{{",
        '{"id": "' + "x" * 40000 + '", "contents": "spies"}',
    ],
    "index --index new --encoder letters --collection {}": [
        '{"id": "d1", "vector": []}',
        '{"id": "d1", "vector": {"": 1}}',
        '{"id": "d1", "vector": {"a b": 1}}',
        '{"id": "d1", "vector": {"\\u001b[31m b": 1}}',
        '{"id": "d1", "vector": {"a": -1}}',
        '{"id": "d1", "vector": {"a": 1.5}}',
        '{"id": "d1", "vector": {"a": "1"}}',
        '{"id": "d1", "vector": {"a": true}}',
        '{"id": "d1", "vector": {"a": null}}',
        '{"id": "d1", "vector": {"a": NaN}}',
        '{"id": "d1", "vector": {"a": 1e400}}',
        '{"id": "d1", "vector": {"a": 1048577}}',
        '{"id": "d1", "vector": {"a∩b": 1}}',
        '{"id": "d1", "vector": {"¬a": 1}}',
        '{"id": "d1", "vector": {"' + "x" * 40000 + '": 1}}',
        '{"id": "d1", "vector": {"a": 0}}',
        f"{VECTOR}\n{VECTOR}",
        f"{DOCUMENT}\n{VECTOR}",
    ],
    "search --index films --topics {}": [
        "1 spy",
        "1\tspy\n1\twestern",
        "\tspy",
        "1\t",
        "1\tNOT spy",
        "1\tspy AND",
        "1\t(spy",
        "a b\tspy",
        '1\t"spy',
        "1\tspy\x1b[31m AND",
        "\x1b[31m\tspy AND",
        '{"id": "1"}',
        '{"query": "spy"}',
        '{"id": "1", "query": ["spy"]}',
        '{"id": "1", "query": ""}',
        '{"id": "1", "expression": {"and": ["a", "b"]}}',
        '{"id": "1", "expression": {"union": ["a"]}}',
        '{"id": "1", "expression": {"difference": ["a", "b", "c"]}}',
        '{"id": "1", "expression": ' + '{"union": ["a", ' * 400 + '"b"' + "]}" * 400 + "}",
        '{"id": "1", "original_query": "<mark>a"}',
        '{"id": "1", "vector": {"a": "x"}}',
        '{"id": "1", "vector": {"a": 1e300}}',
        '{"id": "1", "score": {"max": []}}',
        '{"id": "1", "score": {"product": [{"a": 1}]}}',
        '{"id": "1", "score": {"product": [{"vector": {"a": 1}}, {"vector": {"b": -1}}]}}',
        '{"id": "1", "score": {"product": [{"vector": {"a": 1}}, {"vector": {"b": 1}}], "power": 0}}',
        '{"id": "1", "score": ' + '{"sum": [' * 5000 + "]}" * 5000 + "}",
    ],
    "search --index vectors --query a --encoder {}": [
        '{"text": "a"}',
        '{"text": 1, "vector": {"a": 1}}',
        '{"text": "", "vector": {"a": 1}}',
        '{"text": "a", "vector": {"a": "1"}}',
        '{"text": "a", "vector": {"a": Infinity}}',
        '{"text": "a", "vector": {"a b": 1}}',
        '{"text": "a", "vector": {"¬a": 1}}',
        '{"text": "b", "vector": {"b": 1}}',
        '{"text": "a", "vector": {"a": 1}}\n{"text": "a", "vector": {"a": 2}}',
        '{"text": "a", "vector": {"a": 1e30}}',
    ],
    "eval --run run.txt --qrels {}": [
        "1 0 d1",
        "1 0 d1 x",
        "1 0 d1 1.5",
        "1 0 d1 1\n1 0 d1 0",
        "1 0 d1 99999999999999999999",
        "1 0 d1 1 2",
        "2 0 d1 1\x1b[31m",
        "query-id\tcorpus-id\tscore\n1\td1",
    ],
    "eval --qrels qrels.txt --run {}": [
        "1 Q0 d1 1 x tag",
        "1 Q0 d1 1 nan tag",
        "1 Q0 d1 1 2.0",
        "1 Q0 d1 1 2.0 t\n1 Q0 d1 2 1.0 t",
        "1\td1\tfirst",
        '{"id": "1", "hits": 7}',
        '{"id": "1", "hits": [{"docid": "d1"}]}',
    ],
    "train {} --output new": [
        "steps: 1",
        "model: 7",
        "data: []",
        "a: &a [*a]",
        "!!python/object:os.system {}",
        "- a\n- b",
    ],
    "reproduce {} --dataset dataset --report new": ["title: 7", "sections: x", "a: *b", "title: a\ntitle: b"],
}


@pytest.mark.parametrize(("command", "line"), [(command, line) for command in LINES for line in LINES[command]])
def test_a_line_that_is_nearly_right(run, room, command, line):
    suffix = ".tsv" if "--topics" in command and line[0] != "{" else ".yaml" if "{} --" in command else ".txt"
    path = room / f"nearly{suffix if '--collection' not in command and '--encoder' not in command else '.jsonl'}"
    path.write_text(line + "\n", encoding="utf-8")
    assert run(shlex.split(command.replace("{}", path.name))) == (1 if command.startswith("train") else 2)


FAILURES = r"""
index --collection documents.jsonl --index topics.tsv
search --index films --query spy --cpt materialised
search --index films --query spy --encoder missing.jsonl
search --index films --query spy --encoder nothing
search --index films --query spy --encoder atoms.jsonl
search --index missing --query spy
search --index nothing --query spy
search --index topics.tsv --query spy
search --index pipe --query spy
search --index no-manifest --query spy
search --index films --topics topics.tsv --output films
search --index films --topics topics.tsv --output topics.tsv/run.txt
search --index films --topics topics.tsv --output /dev/full
compose --index films --query spy --output films
compose --index films --query spy --output /dev/full
eval --qrels qrels.txt --run run.txt --output films
eval --qrels qrels.txt --run run.txt --output /dev/full
explain --index films --query spy --output films
explain --index films --query spy --output /dev/full
train missing.yaml --output new
train nothing --output new
train table5-sum --output new --data missing
train table5-sum --output films --data nothing
train 'x\x1b[31m' --output new
demo --index topics.tsv
demo --output films --index films
""".strip().splitlines()

# Flags, and paths that are no files.
FLAGS = r"""
index
index --collection documents.jsonl
index --collection documents.jsonl --index new --threads 0
index --collection documents.jsonl --index new --threads -1
index --collection documents.jsonl --index new --threads many
index --collection documents.jsonl --index new --impact-scale 0
index --collection documents.jsonl --index new --impact-scale -1
index --collection documents.jsonl --index new --impact-scale nan
index --collection documents.jsonl --index new --impact-scale inf
index --collection documents.jsonl --index new --impact-scale 1e300
index --collection documents.jsonl --index new --pair-terms 1
index --collection documents.jsonl --index new --pair-terms 100000
index --collection documents.jsonl --index new --on-error never
index --collection documents.jsonl --index new --max-length 0
index --collection documents.jsonl --index new --head what:ever
index --collection documents.jsonl --index new --encoder ''
index --collection documents.jsonl --index new --encoder ' '
index --collection missing.jsonl --index new
index --collection '' --index new
index --collection pipe --index new
index --collection nothing --index new
index --collection documents.jsonl --index topics.tsv
index --collection documents.jsonl --index ''
index --collection half.jsonl.gz --index new
index --collection documents.jsonl --index new --verify films
search
search --index films
search --index films --query spy --topics topics.tsv
search --index missing --query spy
search --index '' --query spy
search --index nothing --query spy
search --index topics.tsv --query spy
search --index pipe --query spy
search --index no-manifest --query spy
search --index films --topics missing.tsv
search --index films --topics nothing
search --index films --query ''
search --index films --query ' '
search --index films --query '('
search --index films --query ')'
search --index films --query 'spy AND'
search --index films --query 'AND spy'
search --index films --query 'NOT spy'
search --index films --query 'spy OR NOT spy'
search --index films --query '"spy'
search --index films --query 'spy \x1b[31m AND'
search --index films --query spy --hits 0
search --index films --query spy --hits -1
search --index films --query spy --hits 1.5
search --index films --query spy --hits ten
search --index films --query spy --hits 1_000
search --index films --query spy --threads 0
search --index films --query spy --union x
search --index films --query spy --intersection x
search --index films --query spy --difference 'x\x1b[31m'
search --index films --query spy --difference-weight -1
search --index films --query spy --difference-weight nan
search --index films --query spy --difference-weight much
search --index films --query spy --cpt-terms 0
search --index films --query spy --cpt-terms 1.5
search --index films --query spy --maxpool-weight -1
search --index films --query spy --maxpool-weight inf
search --index films --query spy --weight-scale 0
search --index films --query spy --weight-scale nan
search --index films --query spy --weight-scale 1e300
search --index films --query spy --batch-size 0
search --index films --query spy --cpt materialised
search --index films --query spy --read aloud
search --index films --query spy --output-format pdf
search --index films --query spy --encoder missing.jsonl
search --index films --query spy --encoder nothing
search --index films --query spy --encoder ''
search --index films --query spy --encoder atoms.jsonl
search --index films --topics topics.tsv --tag 'a b'
search --index films --topics topics.tsv --tag ''
search --index films --topics topics.tsv --output films
search --index films --topics topics.tsv --output topics.tsv/run.txt
search --index films --topics topics.tsv --output /dev/full
compose
compose --index films
compose --query spy
compose --index films --query spy --output-format trec
compose --index films --query spy --output films
compose --index films --query spy --output /dev/full
compose --encoder atoms.jsonl --query c
compose --encoder missing.jsonl --query a
compose --encoder atoms.jsonl --query 'a NOT b' --output-format tsv
compose --encoder atoms.jsonl --query 'a NOT b' --difference damped
encode
encode --collection documents.jsonl --output new
encode --collection documents.jsonl --output new --encoder missing
encode --collection documents.jsonl --output new --encoder nothing
encode --collection documents.jsonl --output new --encoder broken
encode --collection documents.jsonl --output new --encoder ../../x
encode --collection documents.jsonl --output new --encoder bm25
encode --collection documents.jsonl --output new --encoder broken --shard-num 0
encode --collection documents.jsonl --output new --encoder broken --shard-id 3 --shard-num 2
encode --collection documents.jsonl --output new --encoder broken --batch-size 0
encode --collection documents.jsonl --output new --encoder broken --precision int4
export
export --encoder missing
export --encoder broken
export --encoder 'a\x1b[31m/b'
eval
eval --qrels qrels.txt
eval --run run.txt
eval --qrels missing --run run.txt
eval --qrels nothing --run run.txt
eval --qrels qrels.txt --run missing
eval --qrels qrels.txt --run nothing
eval --qrels qrels.txt --run run.txt -m nonsense
eval --qrels qrels.txt --run run.txt -m ''
eval --qrels qrels.txt --run run.txt -m ndcg_cut.0
eval --qrels qrels.txt --run run.txt -m ndcg_cut.-1
eval --qrels qrels.txt --run run.txt -m 'x\x1b[31m'
eval --qrels qrels.txt --run run.txt --by ''
eval --qrels qrels.txt --run run.txt --by template
eval --qrels qrels.txt --run run.txt --output films
eval --qrels qrels.txt --run run.txt --output /dev/full
eval --qrels qrels.txt --run run.txt --output-format pdf
explain
explain --index films
explain --index films --query spy --docid missing
explain --index films --query spy --docid '\x1b[31m'
explain --index films --query spy --terms 0
explain --index films --query spy --terms -1
explain --index films --topics topics.tsv
explain --index films --topics topics.tsv --qid 9
explain --index films --query spy --qid 1
explain --index films --query spy --output films
explain --index films --query spy --output /dev/full
train
train missing.yaml --output new
train nothing --output new
train table5-sum
train table5-sum --output new --data missing
train table5-sum --output films --data nothing
train 'x\x1b[31m' --output new
reproduce
reproduce nothing-like-it --dataset nothing --report new
reproduce table1 --dataset missing --report new
reproduce table1 --dataset nothing --report new
reproduce table1 --dataset topics.tsv --report new
reproduce table1 --dataset nothing --report topics.tsv
reproduce table1 --dataset nothing --report new --threads 0
reproduce table1 --dataset nothing --report new --split nothing
datasets
datasets convert
datasets convert --dataset missing --split dev --output new
datasets convert --dataset nothing --split dev --output new
datasets convert --dataset topics.tsv --split dev --output new
datasets convert --dataset nothing --split dev --output topics.tsv
datasets convert --dataset nothing --split dev --output new --kind pdf
demo --index topics.tsv
demo --output films --index films
demo --nothing
lucene --nothing
nothing
'\x1b[31m'
"""


@pytest.mark.parametrize("command", FLAGS.strip().splitlines())
def test_a_flag_or_a_path(run, command):
    assert run(shlex.split(command.replace("\\x1b", "\x1b"))) == (1 if command in FAILURES else 2)


# The Python API: what is called, with what, and the error.
WRONG_QUERIES = [None, 7, 1.5, b"spy", ["spy"], {"query": "spy"}, "", " ", "(", "NOT a", "a AND", "\ud800 AND"]
WRONG_K = [0, -1, 1.5, "5", None, True, float("nan"), [10]]
WRONG_OPERATORS = [
    *({"union": name} for name in ("x", None, 7, "")),
    *({"intersection": name} for name in ("x", None, b"cpt")),
    *({"difference": name} for name in ("x", None, ["nrf"])),
    *({"difference_weight": weight} for weight in (-1, "1", float("nan"), float("inf"), True, [1])),
    *({"maxpool_weight": weight} for weight in (-1, None, "1", float("nan"), True)),
    *({"cpt_terms": count} for count in (0, -1, 1.5, "5", None, True)),
]
WRONG_VECTORS = [
    {"": 1.0},
    {"a b": 1.0},
    {"a": "1"},
    {"a": float("nan")},
    {"a∩b": 1.0},
    {1: 1.0},
    {"a": None},
]
WRONG_INDEXERS = [{"impact_scale": scale} for scale in (0, -1, float("nan"), float("inf"), 1e300)] + [
    {"threads": 0},
    {"pair_terms": 1},
    {"pair_terms": -5},
    {"on_error": "x"},
    {"encoder": ""},
    {"encoder": " "},
]


@pytest.fixture(scope="module")
def searcher(room):
    with pyserini_compneg.SignedImpactSearcher(room / "vectors", room / "atoms.jsonl") as searcher:
        yield searcher


def refuses(call, *arguments, **options):
    """A call raises an error of the package whose first line is for people."""
    with pytest.raises(pyserini_compneg.CompNegError) as caught:
        call(*arguments, **options)
    first = str(caught.value).split("\n")[0]
    assert 0 < len(first) < 700


@pytest.mark.parametrize("query", WRONG_QUERIES, ids=ascii)
def test_no_query(searcher, query):
    refuses(searcher.search, query)
    refuses(searcher.batch_search, [query], ["1"])
    refuses(searcher.score, query, ["d1"])


@pytest.mark.parametrize("k", WRONG_K, ids=ascii)
def test_no_k(searcher, k):
    refuses(searcher.search, "a", k)
    refuses(searcher.batch_search, ["a"], ["1"], k)
    refuses(searcher.batch_search, ["a"], ["1"], 10, threads=k)


@pytest.mark.parametrize("settings", WRONG_OPERATORS, ids=ascii)
def test_no_operators(settings):
    refuses(pyserini_compneg.Operators, **settings)


@pytest.mark.parametrize("vector", WRONG_VECTORS, ids=ascii)
def test_no_vector(tmp_path, vector):
    encoder = LookupEncoder({"a": vector})
    encoder.encode = encoder.vectors.get
    refuses(pyserini_compneg.compose_query, "a", encoder)


@pytest.mark.parametrize("settings", WRONG_INDEXERS, ids=ascii)
def test_no_indexer(tmp_path, settings):
    refuses(lambda: pyserini_compneg.ImpactIndexer(tmp_path / "new", **{"encoder": "letters", **settings}))
    assert not any(tmp_path.iterdir())
