"""Malformed flags, files and values: one line on standard error, the right exit code, and nothing left behind."""

import gzip
import logging
import os
import re
import shlex
from ast import literal_eval

import pytest
from film_index import build
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from pair_index import write, write_atoms

import pyserini_compneg
from pyserini_compneg.commands.main import main
from pyserini_compneg.index import build_index

pytestmark = pytest.mark.slow  # hundreds of commands

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

FILTERS = {
    "twice": '"filter": {"year": 1966}',
    "wrong": '"filter": ["d1"]',
    "filters": '"filters": {"year": 1966}',
    "no value": '"filter": {"year": null}',
}
"""Of topics, by the file's name; only the first is right."""

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
    "train {}.yaml --output new": 2,
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
    (room / "vectors.jsonl").write_text(VECTOR + "\n")
    (room / "later.tsv").write_text("1\tzebra\n2\tspy NOT comedy\n")
    (room / "judged.jsonl").write_text('{"id": "1", "docs": ["d1"], "metadata": {"template": "_"}}\n')
    (room / "other.txt").write_text("7 0 d1 1\n")
    (room / "packed.yaml").write_bytes(gzip.compress(b"x"))
    (room / "nothing").mkdir()
    (room / "broken").mkdir()
    (room / "broken" / "config.json").write_text("{")
    (room / "no-manifest").mkdir()
    (room / "no-manifest" / "compneg.json").write_bytes(b"{}")
    (room / "no.jsonl.gz").write_text(DOCUMENT)
    (room / "half.jsonl.gz").write_bytes(gzip.compress(DOCUMENT.encode() * 99)[:-20])
    (room / "half.jsonl").write_text('{"id": "1", "query": "spy"}\n{"id": "2"\n')
    (room / "ids.txt").write_text("d1\n")
    (room / "words.txt").write_text("d1\nd2 d3\n")
    for name, fields in FILTERS.items():
        (room / f"{name}.jsonl").write_text(f'{{"id": "1", "query": "spy", {fields}}}\n')
    dated = {"id": "d1", "contents": "a spy", "year": 1966, "genre": "War"}
    build_index(write_jsonl(room / "dated.jsonl", dated), room / "dated", filter_fields=["year", "genre"])
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

    def run(arguments, told=""):
        before = tree(room)
        code = main(arguments)
        out, err = capfd.readouterr()
        assert all(line.replace("\t", "").isprintable() for line in f"{out}\n{err}".split("\n"))
        assert "Traceback" not in err and max(map(len, err.split("\n"))) < 700
        if code:
            assert tree(room) == before, set(tree(room)) - set(before)
            said = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: ", "see ", "  "))]
            pattern = ".*".join(map(re.escape, f"error: {told}".split("…")))
            assert len(said) == 1 and re.match(f"{pattern}$" if "…" in told else pattern, said[0]), err
            assert not (told and out)
        return code

    return run


def tree(folder):
    """What is in a folder, and when it was written."""
    files = ((path, path.lstat()) for path in folder.rglob("*"))
    return {str(path): (found.st_size, not path.is_dir() and found.st_mtime_ns) for path, found in files}


NO_RUN = ("empty", "blank", "only a byte order mark")  # a run without lines is a run


@pytest.mark.parametrize("content", ANYTHING)
@pytest.mark.parametrize("command", READERS)
def test_a_file_of_anything(run, command, content):
    name, *arguments = shlex.split(command)
    code = run([name, *(argument.replace("{}", content) for argument in arguments)])
    assert code == (0 if "--run {}" in command and content in NO_RUN else READERS[command])


# A line of a file that is nearly right, by the command that reads it; the readers' own tests have many more.
LINES = {
    "index --index new --collection {}": [
        f"{DOCUMENT}\n{DOCUMENT}",
        f"{DOCUMENT}\n{{",
        '{"id": "' + "x" * 40000 + '", "contents": "spies"}',
    ],
    "index --index new --encoder letters --collection {}": [
        '{"id": "d1", "vector": {"\\u001b[31m b": 1}}',
        '{"id": "d1", "vector": {"' + "x" * 40000 + '": 1}}',
        '{"id": "d1", "vector": {"a": 0}}',
    ],
    "search --index films --topics {}": [
        "1\tspy\n\ufeff2\tspy",
        '{"id": "1", "query": "spy", "filter": null}',
        '{"id": "1", "score": {"product": [{"vector": {"a": 1}}, {"vector": {"b": 1}}], "power": null}}',
        "1\tspy AND",
        "1\tspy\x1b[31m AND",
        "\x1b[31m\tspy AND",
        '{"id": "1", "expression": ' + '{"union": ["a", ' * 400 + '"b"' + "]}" * 400 + "}",
        '{"id": "1", "original_query": "<mark>a"}',
        '{"id": "1", "vector": {"a": "x"}}',
        '{"id": "1", "score": {"product": [{"a": 1}]}}',
        '{"id": "1", "score": ' + '{"sum": [' * 5000 + "]}" * 5000 + "}",
    ],
    "search --index vectors --query a --encoder {}": [
        '{"text": "a", "vector": {"a": Infinity}}',
        '{"text": "a", "vector": {"a b": 1}}',
        '{"text": "a", "vector": {"¬a": 1}}',
        '{"text": "b", "vector": {"b": 1}}',
        '{"text": "a", "vector": {"a": 1e30}}',
        '{"text": "a", "vector": {"a": 1}, "encoder": null}',
    ],
    "eval --run run.txt --qrels {}": [
        "1 0 d1 99999999999999999999",
        "1 0 d1 1 2",
        "2 0 d1 1\x1b[31m",
        "1 0 d1 ١",
        "1 0 d1 1_0",
    ],
    "eval --qrels qrels.txt --run {}": [
        "1 Q0 d1 1 nan tag",
        "1 Q0 d1 1 ١ tag",
        "1 Q0 d1 1 1_0 tag",
        "1\td1\t١",
        '{"id": "1", "hits": [{"docid": "d1", "score": "1"}]}',
        '{"id": "1", "hits": [{"docid": "d1", "score": null}]}',
        "1\td1\tfirst",
        '{"id": "1", "hits": 7}',
    ],
    "train {} --output new": [
        '{"reader": {"base": ".", "requests": ["a\\u0000b"], "judged": ["c"]}}',
        "model: 7",
        "data: []",
        "a: &a [*a]",
        "!!python/object:os.system {}",
    ],
    "reproduce {} --dataset dataset --report new": ["title: 7", "sections: x", "a: *b", "title: a\ntitle: b"],
}


@pytest.mark.parametrize(("command", "line"), [(command, line) for command in LINES for line in LINES[command]])
def test_a_line_that_is_nearly_right(run, room, command, line):
    suffix = ".tsv" if "--topics" in command and line[0] != "{" else ".yaml" if "{} --" in command else ".txt"
    path = room / f"nearly{suffix if '--collection' not in command and '--encoder' not in command else '.jsonl'}"
    path.write_text(line + "\n", encoding="utf-8")
    assert run(shlex.split(command.replace("{}", path.name))) == 2


# Flags, and paths that are no files: the exit code is 2, or 1 after a "!"; what is said, where … may be anything.
FLAGS = r"""
index  # --collection and --index are needed, or --verify
index --collection documents.jsonl
index --collection documents.jsonl --index new --threads 0  # argument --threads: must be a whole number from 1, got 0
index --collection documents.jsonl --index new --impact-scale 0  # argument --impact-scale: must be…, got 0
index --collection documents.jsonl --index new --impact-scale nan  # argument --impact-scale: must be…, got nan
index --collection documents.jsonl --index new --impact-scale 1e300  # argument --impact-scale: …, got 1e300
index --collection documents.jsonl --index new --pair-terms 1  # argument --pair-terms: …2 to 256, got 1
index --collection documents.jsonl --index new --on-error never
index --collection documents.jsonl --index new --max-length 0
index --collection documents.jsonl --index new --head what:ever
index --collection documents.jsonl --index new --encoder ' '
index --collection missing.jsonl --index new  # missing.jsonl: no such file
index --collection pipe --index new
index --collection nothing --index new  # nothing: the folder holds no .jsonl, .json, .csv, .tsv file, plain or .gz
! index --collection documents.jsonl --index topics.tsv
index --collection half.jsonl.gz --index new
index --collection documents.jsonl --index new --verify films
index --collection documents.jsonl --index new --threads x  # argument --threads: must be a whole number from 1, got x
index --collection documents.jsonl --index new --colour x  # there is no --colour; did you mean --collection?
index --collection documents.jsonl --index new --pair-terms 257  # argument --pair-terms: …2 to 256, got 257
index --collection documents.jsonl --index new --b 2  # b must be a number from 0 to 1, got 2.0
index --collection documents.jsonl --index new --encoder m --k1 1.2  # m: k1 and b are parameters of bm25, not of…
index --collection documents.jsonl --index new --precision int8  # bm25: no model is run, so options of one…have no use
index --collection vectors.jsonl --index new --encoder m --precision int8  # m: no model is run, so…have no use
search
search --index films  # one of the arguments --topics --query is required
search --index films --query spy --topics topics.tsv  # argument --topics: not allowed with argument --query
search --index missing --query spy
search --index no/index --query spy  # no/index: no such index folder; build one with python -m pyserini_compneg.index
search --index nothing --query spy  # nothing: not a Lucene index (it has no segments file)
search --index topics.tsv --query spy  # topics.tsv: no such index folder; build one with python -m
search --index pipe --query spy
! search --index no-manifest --query spy
search --index films --topics missing.tsv  # missing.tsv: no such file
search --index films --topics nothing
search --index films --query ' '
search --index films --query '('
search --index films --query ')'
search --index films --query 'spy AND'
search --index films --query 'AND spy'
search --index films --query 'NOT spy'
search --index films --query 'spy OR NOT spy'
search --index films --query '"spy'
search --index films --query 'spy \x1b[31m AND'
search --index films --query spy --hits 0  # argument --hits: must be a whole number from 1, got 0
search --index films --query spy --hits 1.5
search --index films --query spy --hits 1_000  # argument --hits: must be a whole number from 1, got 1_000
search --index films --query spy --hits ١  # argument --hits: must be a whole number from 1, got ١
search --index films --query spy --cpt-weight 1_000  # argument --cpt-weight: must be a finite number above 0, got 1_000
search --index films --query spy --cpt-weight 1e400  # argument --cpt-weight: must be a finite number above 0, got 1e400
search --index films --query spy --exclusion ٠.٥  # argument --exclusion: must be one of any, all, or…, got ٠.٥
search --index films --query spy --model-weight 1_0  # argument --model-weight: must be a finite…from 0, got 1_0
index --collection documents.jsonl --index new --pair-terms ٤  # argument --pair-terms: …2 to 256, got ٤
index --collection documents.jsonl --index new --k1 1_0  # argument --k1: must be a finite number, got 1_0
index --collection documents.jsonl --index new --head snrelu:max:1_0  # head 'snrelu:max:1_0': epsilon must be…got '1_0'
encode --collection documents.jsonl --output new --encoder broken --shard-id ١  # argument --shard-id:…number, got ١
serve --index films --port ٨٠  # argument --port: must be a whole number from 0 to 65535, got ٨٠
search --index films --query spy --threads 0  # argument --threads: must be a whole number from 1, got 0
search --index films --query spy --union x  # argument --union: invalid choice: 'x'
search --index films --query spy --intersection x
search --index films --query spy --difference 'x\x1b[31m'
search --index films --query spy --difference-weight -1
search --index films --query spy --difference-weight nan
search --index films --query spy --cpt-terms 0
search --index films --query spy --cpt-weight -1
search --index films --query spy --min-idf nan  # argument --min-idf: must be a finite number, got nan
compose --encoder atoms.jsonl --query a --min-idf 0  # --min-idf needs --index, …
search --index films --query spy --weight-scale 0  # argument --weight-scale: must be a finite number above 0, got 0
search --index films --query spy --weight-scale nan  # argument --weight-scale: must be a finite number above 0, got nan
search --index films --query spy --weight-scale 1e300
search --index films --query spy --cpt materialised
search --index films --query spy --read aloud  # argument --read: invalid choice: 'aloud' (choose from…reader)
search --index films --query spy --read no/such  # argument --read: invalid choice: 'no/such' (choose from…
read  # give texts, or a file of them as --topics
read spy --topics topics.tsv  # give texts, or a file of them as --topics
read spy --read plain  # --read: plain does not parse plain English; name model, llm, or the folder of a reader
read spy --read x  # no way to read texts is named 'x'…
read ' '
read ''  # an argument must not be empty
read --topics half.jsonl  # half.jsonl:2: …
search --index films --query spy --output-format pdf  # argument --output-format: invalid choice: 'pdf'
search --index films --query spy --encoder missing.jsonl
search --index films --query spy --encoder nothing
search --index films --query spy --encoder ''
search --index films --query spy --encoder atoms.jsonl  # films was encoded with 'bm25', the queries with 'letters';…
search --index films --topics topics.tsv --tag 'a b'
search --index films --topics topics.tsv --tag 'a\x1b[31m'  # the tag 'a…' has control characters; use printable ones
! search --index films --topics topics.tsv --output films
! search --index films --topics topics.tsv --output topics.tsv/run.txt
! search --index films --topics topics.tsv --output /dev/full
search --index films --query ' ' --read plain
search --index films --query spy --plain  # there is no --plain; write --read plain
compose --index films --query spy --decompose model  # there is no --decompose; write --read model, or --read llm
explain --index films --query spy --explain  # there is no --explain; the output says how --read model, FOLDER or llm
search --index films --query spy --k 5  # there is no --k; the number of hits is --hits
search --index films --query spy --depth 3  # there is no --depth; write --method NAME depth=N
search --index films --query spy --rerank-hits 3  # there is no --rerank-hits; write --rerank MODEL hits=N
search --index films --query spy --rerank-by text  # there is no --rerank-by; write --rerank MODEL by=text, by=atoms…
search --index films --query spy --filter-field a=b  # there is no --filter-field; write --filter FIELD=VALUE
search --index films --query spy --batch-size 5  # there is no --batch-size; 64 queries are encoded together
search --index films --query spy --max-length 5  # there is no --max-length; queries are read up to the limit of the…
search --index dated --query spy --filter empty.txt  # empty.txt: no document ids, so nothing…expected one a line
search --index dated --query spy --filter words.txt  # words.txt:2: expected one document id, got 'd2 d3'
search --index dated --query spy --filter missing.txt  # --filter 'missing.txt': no such file of ids; a condition is…
search --index dated --query spy --filter year  # --filter 'year': no such file of ids; a condition is FIELD=VALUE
search --index dated --query spy --filter year=  # a condition must be FIELD=VALUE, such as…excludes
search --index dated --query spy --filter 'year>=1990'  # a condition must be FIELD=VALUE, such as…excludes
search --index dated --query spy --filter 'genre!=War'  # a condition must be FIELD=VALUE, such as…excludes
search --index dated --query spy --filter year=2..1  # the range 2..1 of 'year' ends before it begins; write 1..2
search --index dated --query spy --filter yaer=1  # query spy: dated: cannot be filtered: it has no…only genre, year
search --index dated --query spy --filter genre=1..2  # query spy: dated: cannot be filtered: the filter…no range 1..2
search --index dated --query 'spy NOT! yaer=1'  # query spy NOT! yaer=1: dated: cannot be filtered: it has…genre, year
search --index films --query spy --filter year=1  # query spy: films: cannot be filtered: it has no filter fields, so…
search --index dated --topics twice.jsonl --filter year=1975  # twice.jsonl:1: two filters name the field 'year'; give…
search --index dated --topics wrong.jsonl  # wrong.jsonl:1: a filter must name fields, such as…, got ['d1']
search --index dated --topics 'no value.jsonl'  # no value.jsonl:1: a value of the filter field…got None
search --index dated --topics filters.jsonl  # filters.jsonl:1: `filters` is not a field; the key …`filter`
! search --index dated --query spy --filter ids.txt --output-format trec --output ids.txt  # ids.txt: would overwrite…
search --index films --query a --method filtering --difference nrf  # --difference has no use with --method filtering
search --index films --query a --method score-fusion --cpt-terms 3  # --cpt-terms has no use with --method score-fusion
search --index films --query a --method score-fusion --cpt materialised  # --cpt has no use with --method score-fusion
search --index films --query a --method filtering depth=3  # depth has no use with --method filtering; it is for…
search --index films --query a --method operators depth=3  # depth has no use with --method operators; it is for…
search --index films --query a --method two-step depth=x  # argument --method: depth must be a whole number…, got x
search --index films --query a --method two-step deep=3  # argument --method: no setting is 'deep=3'; give depth=...
search --index films --query a --method two-step depth=3 depth=4  # argument --method: depth is given twice
search --index films --query a --method two-step depth=  # argument --method: no setting is 'depth='; give depth=...
search --index films --query a -k 5  # there is no -k; the number of hits is --hits
search --index films --query a --method fusion  # argument --method: invalid choice: 'fusion' (choose from operators,…
search --index films --query a --rerank m by=x  # argument --rerank: by must be one of both, text, atoms, got x
search --index films --query a --rerank m hits=0  # argument --rerank: hits must be a whole number from 1, got 0
search --index films --query a --rerank m 7  # argument --rerank: no setting is '7'; give hits=... and by=...
search --index films --query spy --ray local replicas=0  # argument --ray: replicas must be a whole number from 1, got 0
search --index films --query spy --output new  # --output takes a run: name its --output-format, or…
search --index films --query a --difference nfr  # argument --difference: invalid choice: 'nfr'…did you mean nrf?
search --index films --q a  # there is no --q; the query is --query
search --index films --query a --operator cpt  # there is no --operator; the operators are --union, …
search --index films --query a --docid d1  # there is no --docid; the command explain has it
index --collection documents.jsonl --index new --filter-fields 'year, '  # a filter field must be named by a letter…
search --index films --qurey a  # there is no --qurey; did you mean --query?
search --index films --query a --hit=5  # there is no --hit; did you mean --hits?
search --index films --query spy --replicas 2  # there is no --replicas; write --ray ADDRESS replicas=N
search --index films --query spy --allow-partial --output-format msmarco  # --allow-partial needs --output-format trec
search --index films --query a --encoder splade  # films was encoded with 'bm25', the queries with 'splade'; use…
! search --index vectors --topics topics.tsv --output vectors/compneg.json  # vectors/compneg.json: would overwrite…
! search --index films --topics topics.tsv --output topics.tsv  # topics.tsv: would overwrite topics.tsv;…with --output
! search --index vectors --encoder atoms.jsonl --topics topics.tsv --output atoms.jsonl  # atoms.jsonl: would overwrite
search --index films --query 'AND! spy'  # unexpected AND! at the start; expected a phrase or "("
search --index films --query 'spy AND!'  # the expression ends after AND!; expected a phrase or "("
search --index films --query 'spy AND! NOT comedy'  # an operand of AND! needs a positive part; write A NOT B to lower…
search --index films --query 'spy NOT (war AND! goat)'  # …cannot stand in what NOT takes away; write AND there…
search --index films --query 'spy AND! comedy' --intersection vanilla  # …as vanilla does; choose other…or AND
search --index films --query 'spy AND! comedy' --method score-fusion  # …cannot require every operand, as AND! does…
explain --index films --query 'spy AND! zzz'  # …no positive term is left to search for, so it finds nothing
compose --index films --query 'spy AND! comedy' --output-format tsv  # …tsv cannot hold AND!; use --output-format jsonl…
compose
compose --index films
compose --query spy  # name the --index, whose encoder is used, or an --encoder
compose --index films --query spy --output-format trec
! compose --index films --query spy --output films
! compose --index films --query spy --output /dev/full
compose --encoder atoms.jsonl --query c
compose --encoder missing.jsonl --query a
compose --encoder atoms.jsonl --query 'a NOT b' --output-format tsv
compose --encoder atoms.jsonl --query 'a NOT b' --difference damped
compose --index films --topics later.tsv --output-format tsv --output new  # query 2: tsv cannot…
compose --index films --query 'spy AND comedy' --output-format tsv  # query 1: tsv cannot hold a product; use --cpt…
compose --index films --query 'spy OR comedy' --output-format tsv  # query 1: tsv cannot hold a maximum; use --union…
compose --index films --query spy --weight-scale 1e10 --output new  # query 1: the weight of…; lower the weight scale
compose --index films --query spy --cpt materialised --output new  # films holds no pairs of terms;…which needs none
compose --encoder bm25 --query spy  # bm25 weighs a query's terms by the statistics of an index; name the --index
compose --encoder splade --query spy  # no model 'splade'; expected mini, a folder, or…JSON Lines file of encoded texts)
compose --index no/index --query spy  # no/index: no such index folder; build one…pyserini_compneg.index
! compose --encoder atoms.jsonl --query a --output atoms.jsonl  # atoms.jsonl: would overwrite atoms.jsonl; choose…
encode
encode --collection documents.jsonl --output new
encode --collection documents.jsonl --output new --encoder missing
encode --collection documents.jsonl --output new --encoder nothing
encode --collection documents.jsonl --output new --encoder broken
encode --collection documents.jsonl --output new --encoder ../../x
encode --collection documents.jsonl --output new --encoder bm25  # bm25 is not a model;…or bm25+MODEL
encode --collection documents.jsonl --output new --encoder broken --shard-num 0  # argument --shard-num:…from 1, got 0
encode --collection documents.jsonl --output new --encoder broken --batch-size 0  # argument --batch-size:…from 1, got 0
encode --collection documents.jsonl --output new --encoder broken --precision int4
encode --collection documents.jsonl --output new --encoder broken --shard-id 2 --shard-num 2  # --shard-id…to 1, got 2
encode --collection documents.jsonl --output new --encoder broken --shard-id -1  # --shard-id goes from 0…to 0, got -1
encode --collection documents.jsonl --output new --encoder broken --threshold=-1  # argument --threshold:…from 0, got -1
encode --collection missing --output new --encoder broken  # missing: no such file
export
export --encoder missing
export --encoder nothing  # nothing: no model: neither config.json nor modules.json in nothing
export --encoder broken --precision fp8
export --encoder broken
export --encoder 'a\x1b[31m/b'
export --encoder bm25  # bm25 is not a model; index…or bm25+MODEL
eval  # the following arguments are required: --qrels, --run
eval --qrels qrels.txt
eval --run run.txt
eval --qrels missing --run run.txt  # missing: no such file
eval --qrels nothing --run run.txt
eval --qrels qrels.txt --run missing
eval --qrels qrels.txt --run nothing
eval --qrels qrels.txt --run run.txt -m nonsense
eval --qrels qrels.txt --run run.txt -m ''
eval --qrels qrels.txt --run run.txt -m ndcg_cut.0
eval --qrels qrels.txt --run run.txt -m recall.1_0
eval --qrels qrels.txt --run run.txt -m 'x\x1b[31m'
eval --qrels qrels.txt --run run.txt -m 'nDCG(dcg="x")@5'  # measure…nDCG@10, R@100, AP, RR
eval --qrels qrels.txt --run run.txt -m 'P(x=1)@5'  # measure 'P(x=1)@5' lacks a parameter…R@100, AP, RR
eval --qrels qrels.txt --run 'a\nerror: b'  # a error: b: no such file
eval --qrels 'a\u2028\x85\u202eb' --run run.txt  # a   b: no such file
search --index films --query 'spy AND\nerror: x ('  # the expression ends after "("; expected a phrase or "("
search --index films --query spy --hits '1\nerror: x'  # argument --hits: must be a whole number from 1, got 1 error: x
'nothing\nerror: x'  # there is no command 'nothing\nerror: x'
eval --qrels qrels.txt --run run.txt --by ''
eval --qrels qrels.txt --run run.txt --by template  # qrels.txt:1: no JSON, so no `metadata.template`…with --groups
! eval --qrels qrels.txt --run run.txt --output films
! eval --qrels qrels.txt --run run.txt --output /dev/full
eval --qrels qrels.txt --run run.txt --output-format pdf
eval --qrels other.txt --run run.txt --by template --groups judged.jsonl  # judged.jsonl: no template for query '7'
eval --qrels qrels.txt --run run.txt --groups judged.jsonl  # --groups needs --by
! eval --qrels qrels.txt --run run.txt --output qrels.txt  # qrels.txt: would overwrite qrels.txt;
! eval --qrels qrels.txt --run run.txt --output run.txt  # run.txt: would overwrite run.txt;
! eval --qrels qrels.txt --run run.txt --by template --groups judged.jsonl --output judged.jsonl  # judged.jsonl: would
eval --qrels qrels.txt --run run.txt --per-query run.txt  # unrecognized arguments: run.txt
eval --qrels qrels.txt --run run.txt --by template --output-format csv  # --by makes a row for each class
explain
explain --index films  # one of the arguments --topics --query is required
explain --index films --query spy --docid missing  # films has no document 'missing'
explain --index films --query spy --docid '\x1b[31m'
explain --index films --query spy --terms 0  # argument --terms: must be a whole number from 1, got 0
explain --index films --topics topics.tsv  # --topics needs --qid, the topic to explain
explain --index films --topics later.tsv --qid 9  # later.tsv: no query '9' among its 2: 1, 2
explain --index films --query spy --qid 1  # --qid needs --topics
! explain --index films --query spy --output films
! explain --index films --query spy --output /dev/full
explain --index films --query a --docid  # argument --docid: expected at least one argument
search -index films -topics topics.tsv  # there is no '-index'; flags have two dashes: --index
search --index films --query spy -hits 5  # there is no '-hits'; flags have two dashes: --hits
search --index films --query spy --k1 1.2  # there is no --k1; k1 and b belong to index, which keeps them
index --input documents.jsonl --index new  # there is no --input; the documents are --collection
explain --index films --topics missing.tsv --qid 9  # missing.tsv: no such file
explain --index films --query 'zebra AND zebra'  # query 'zebra AND zebra': no positive term is left…so it finds nothing
explain --index vectors --encoder atoms.jsonl --query c  # atoms.jsonl has no vector for 'c'; encode it and add a line
explain --index no/index --query spy  # no/index: no such index folder; build one…pyserini_compneg.index
! explain --index films --query spy --output films/x  # films/x: would overwrite films;
! explain --index films --topics topics.tsv --qid 1 --output topics.tsv  # topics.tsv: would overwrite topics.tsv;
train
train missing.yaml --output new
train nothing --output new
train table5-sum
train table5-sum --output new --data missing
train 'x\x1b[31m' --output new
train latin-1.yaml --show  # latin-1.yaml: cannot be read: not UTF-8 text
train 'escape sequences.yaml' --show  # escape sequences.yaml: not valid YAML: unacceptable character #x001b:…
train nul.yaml --show  # nul.yaml: not valid YAML: unacceptable character #x0000: special characters are not
train 'nested lists.yaml' --show  # nested lists.yaml: not valid YAML:…
train empty.yaml --show  # empty.yaml: expected keys and values, got nothing
train packed.yaml --show  # packed.yaml: cannot be read: not UTF-8 text
train table9 --show  # table9: neither a file nor a recipe; the recipes are: excluir-dense,…
reproduce
reproduce nothing-like-it --dataset nothing --report new
reproduce table1 --dataset missing --report new
reproduce table1 --dataset nothing --report new
reproduce table1 --dataset topics.tsv --report new
reproduce table1 --dataset nothing --report topics.tsv
reproduce table1 --dataset nothing --report new --threads 0
reproduce table1 --dataset nothing --report new --split nothing
reproduce table9 --dataset nothing --report new  # no protocol 'table9'; expected one of…
reproduce table1 --dataset nothing --report new --encoder a b --index i  # --index must name one…, got 1 for 2
reproduce table1 --dataset nothing --report new --encoder bm25 bm25  # --encoder has 'bm25' twice for the same index
datasets
datasets convert --dataset nothing --output new  # the following arguments are required: --split
datasets convert --dataset missing --split dev --output new
datasets convert --dataset nothing --split dev --output new
datasets convert --dataset topics.tsv --split dev --output new
datasets convert --dataset nothing --split dev --output topics.tsv
datasets convert --dataset nothing --split dev --output new --kind pdf
datasets convert --dataset nothing --split dev --output new --kind beir  # nothing: corpus.jsonl is missing, plain or…
demo --index topics.tsv
! demo --output films --index films
demo --nothing
lucene --nothing
nothing
'\x1b[31m'
"""


_ESCAPE = re.compile(r"\\(?:n|x..|u....)")


@pytest.mark.parametrize("row", FLAGS.strip().splitlines())
def test_a_flag_or_a_path(run, row):
    command, _, said = row.partition("  # ")
    arguments = shlex.split(_ESCAPE.sub(lambda found: literal_eval(f"'{found[0]}'"), command.removeprefix("! ")))
    assert run(arguments, said) == (1 if row[0] == "!" else 2)


# The Python API: what is called, with what, and the error.
WRONG_QUERIES = [None, 7, 1.5, b"spy", ["spy"], {"query": "spy"}, "", " ", "(", "NOT a", "a AND", "\ud800 AND"]
WRONG_K = [0, -1, 1.5, "5", None, True, float("nan"), [10]]
WRONG_OPERATORS = [
    *({"union": name} for name in ("x", None, 7, "")),
    *({"intersection": name} for name in ("x", None, b"cpt")),
    *({"difference": name} for name in ("x", None, ["nrf"])),
    *({"difference_weight": weight} for weight in (-1, "1", float("nan"), float("inf"), True, [1])),
    *({"cpt_weight": weight} for weight in (-1, 0, [1], "1", float("nan"), True)),
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


@pytest.mark.parametrize(
    "vectors",
    [None, 7, {}, [], [None], [[1.0]], [{"a": 1.0}] * 2, pytest.param(iter([{}]), id="an iterator")],
    ids=ascii,
)
def test_no_vectors(monkeypatch, vectors):
    encoder = LookupEncoder({})
    monkeypatch.setattr(encoder, "encode_batch", lambda texts: vectors)
    refuses(pyserini_compneg.compose_query, "a", encoder)


@pytest.mark.parametrize("settings", WRONG_INDEXERS, ids=ascii)
def test_no_indexer(tmp_path, settings):
    refuses(lambda: pyserini_compneg.ImpactIndexer(tmp_path / "new", **{"encoder": "letters", **settings}))
    assert not any(tmp_path.iterdir())
