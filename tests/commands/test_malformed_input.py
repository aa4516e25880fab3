"""Malformed flags and paths: one line on standard error, the right exit code, and nothing left behind."""

import logging
import os
import re
import shlex
from ast import literal_eval

import pytest
from film_index import build
from impact_indexes import write_text_index
from json_lines import write_jsonl
from pair_index import write, write_atoms

from pyserini_compneg.commands.main import main
from pyserini_compneg.index import build_index

pytestmark = pytest.mark.slow  # a hundred commands

FILES = {
    "topics.tsv": "1\tspy\n",
    "later.tsv": "1\tzebra\n2\tspy NOT comedy\n",
    "half.jsonl": '{"id": "1", "query": "spy"}\n{"id": "2"\n',
    "twice.jsonl": '{"id": "1", "query": "spy", "filter": {"year": 1966}}\n',
    "filters.jsonl": '{"id": "1", "query": "spy", "filters": {"year": 1966}}\n',
    "run.txt": "1 Q0 d1 1 2.0 x\n",
    "qrels.txt": "1 0 d1 1\n",
    "other.txt": "7 0 d1 1\n",
    "judged.jsonl": '{"id": "1", "docs": ["d1"], "metadata": {"template": "_"}}\n',
    "documents.jsonl": '{"id": "d1", "contents": "spies"}\n',
    "ids.txt": "d1\n",
    "words.txt": "d1\nd2 d3\n",
    "empty.txt": "",
    "nothing/notes": "",
    "broken/config.json": "{",
    "no-manifest/compneg.json": "{}",
    "follower.yaml": "indexes: {a: {path: x, follows: {url: 'http://w/v1/a', key: long-enough}}}\n",
}


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with files of all kinds."""
    room = tmp_path_factory.mktemp("room")
    build(room).rename(room / "films")
    write(room / "vectors", {"d1": {"a": 3, "b": 1}, "d2": {"b": 2}})
    write_atoms(room / "atoms.jsonl", {"a": {"a": 1.0}, "b": {"b": 1.0}})
    dated = {"id": "d1", "contents": "a spy", "year": 1966, "genre": "War"}
    build_index(write_jsonl(room / "dated.jsonl", dated), room / "dated", filter_fields=["year", "genre"])
    for name, text in FILES.items():
        (room / name).parent.mkdir(exist_ok=True)
        (room / name).write_text(text)
    write_text_index(room / "stock")
    os.mkfifo(room / "pipe")
    return room


def tree(folder):
    """What is in a folder, and when it was written."""
    files = ((path, path.lstat()) for path in folder.rglob("*"))
    return {str(path): not path.is_dir() and (found.st_size, found.st_mtime_ns) for path, found in files}


# The exit code is 2, or 1 after a "!"; after "#" stands what is said, where … may be anything. Messages of other rooms
# are in the tests of these.
FLAGS = r"""
index  # --collection and --index are needed, or --verify
index --collection documents.jsonl --index new --passages words=5,words=6  # argument --passages: gives a size twice
index --collection documents.jsonl --index new --threads 0  # argument --threads: must be a whole number from 1, got 0
index --collection documents.jsonl --index new --impact-scale 0  # argument --impact-scale: must be…, got 0
index --collection documents.jsonl --index new --pair-terms 1  # argument --pair-terms: …2 to 256, got 1
index --collection documents.jsonl --index new --pairs-from missing.tsv  # missing.tsv: no such file
index --collection documents.jsonl --index new --pairs-from later.tsv  # later.tsv: bm25 weighs…makes with it
index --collection documents.jsonl --index new --encoder mini --pairs-from topics.tsv  # topics.tsv: no query has an…
index --collection documents.jsonl --index new --filter-fields id  # filter fields: 'id' has another use in the index…
index --collection missing.jsonl --index new  # missing.jsonl: no such file
index --collection pipe --index new
index --collection nothing --index new  # nothing: the folder holds no … file of documents, plain, .gz or .xz
index --collection documents.jsonl --index new --verify films
index --collection documents.jsonl --index new --b 2  # b must be a number from 0 to 1, got 2.0
index --collection documents.jsonl --index new --encoder m --k1 1.2  # m: k1, b and language are parameters of bm2…
index --collection documents.jsonl --index new --precision int8  # bm25: no model is run, so options of one…have no use
search --index films  # one of the arguments --topics --query is required
search --index films --query spy --topics topics.tsv  # argument --topics: not allowed with argument --query
search --index no/index --query spy  # no/index: no such index folder; build one with compneg index
search --index nothing --query spy  # nothing: not a Lucene index (it has no segments file)
! search --index no-manifest --query spy
search --index stock/index --encoder bm25 --query spy  # stock/index: has frequencies of terms, as texts have…BM25, too
search --index stock/index --encoder bm25 --topics topics.tsv --output new  # stock/index: has frequencies of terms, as…
compose --index stock/index --encoder bm25 --query spy  # stock/index: has frequencies of terms, as texts have…
explain --index stock/index --encoder bm25 --query spy  # stock/index: has frequencies of terms, as texts have…
serve --index stock/index --port 0  # …stock/index: has frequencies of terms, as texts have…
index --verify stock/index  # stock/index: has frequencies of terms, as texts have…
search --index films --topics missing.tsv  # missing.tsv: no such file
search --index films --query 'spy AND (\x1b[31m'
search --index films --query spy --hits 0  # argument --hits: must be a whole number from 1, got 0
search --index films --query spy --hits 1_000  # argument --hits: must be a whole number from 1, got 1_000
search --index films --query spy --cpt-weight 1e400  # argument --cpt-weight: must be a finite number above 0, got 1e400
search --index films --query spy --exclusion all  # argument --exclusion: must be…1, got all; words replaces it
search --index films --query spy --exclusion ٠.٥  # argument --exclusion: must be one of words, score, any, or…, got ٠.٥
index --collection documents.jsonl --index new --head snrelu:max:1_0  # head 'snrelu:max:1_0': epsilon must be…got '1_0'
encode --collection documents.jsonl --output new --encoder broken --shard-id ١  # argument --shard-id:…number, got ١
search --index films --query spy --union x  # argument --union: invalid choice: 'x'
compose --encoder atoms.jsonl --query a --min-idf 0  # --min-idf needs --index, …
search --index films --query spy --weight-scale 0  # argument --weight-scale: must be a finite number above 0, got 0
search --index films --query spy --read aloud  # argument --read: invalid choice: 'aloud' (choose from…reader)
read  # give texts, or a file of them as --topics
read spy --topics topics.tsv  # give texts, or a file of them as --topics
read spy --read plain  # --read: plain does not parse plain English; name model, llm, or the folder of a reader
read spy --read x  # no way to read texts is named 'x'…
read ' '
read ''  # an argument must not be empty
read --topics half.jsonl  # half.jsonl:2: …
search --index films --query spy --output-format pdf  # argument --output-format: invalid choice: 'pdf'
search --index films --topics topics.tsv --tag 'a\x1b[31m'  # the tag 'a…' has control characters; use printable ones
! search --index films --topics topics.tsv --output films
! search --index films --topics topics.tsv --output topics.tsv/run.txt
search --index films --query spy --plain  # there is no --plain; write --read plain
explain --index films --query spy --explain  # there is no --explain; the output says how --read model, FOLDER or llm
search --index films --query spy --k 5  # there is no --k; the number of hits is --hits
search --index films --query spy --depth 3  # there is no --depth; write --method NAME depth=N
search --index dated --query spy --filter empty.txt  # empty.txt: no document ids, so nothing…expected one a line
search --index dated --query spy --filter words.txt  # words.txt:2: expected one document id, got 'd2 d3'
search --index dated --query spy --filter missing.txt  # --filter 'missing.txt': no such file of ids; a condition is…
search --index dated --query spy --filter year  # --filter 'year': no such file of ids; a condition is…FIELD<VALUE
search --index dated --query spy --filter LONG  # --filter …: no such file of ids; a condition is…FIELD<VALUE
search --index LONG --query spy  # …LLL: file name too long
search --index films --topics topics.tsv --output LONG  # …LLL…: file name too long
index --collection documents.jsonl --index new/LONG/x  # …LLL/x: file name too long
search --index dated --query spy --filter year=  # a condition must be FIELD=VALUE, such as…excludes
search --index dated --query 'spy NOT! yaer=1'  # query spy NOT! yaer=1: dated: cannot be filtered: it has…genre, year
search --index dated --topics twice.jsonl --filter year=1975  # twice.jsonl:1: two filters name the field 'year'; give…
search --index dated --topics filters.jsonl  # filters.jsonl:1: `filters` is not a field; the key …`filter`
! search --index dated --query spy --filter ids.txt --output-format trec --output ids.txt  # ids.txt: would overwrite…
search --index films --query a --method filtering --difference nrf  # --difference has no use with --method filtering
search --index films --query a --method score-fusion --cpt materialised  # --cpt has no use with --method score-fusion
search --index films --query a --method filtering depth=3  # depth has no use with --method filtering; it is for…
search --index films --query a --method rocchio  # method rocchio has no judged documents; give judged=FILE, lines of…
search --index films --query a --method rocchio judged=none.txt  # none.txt: …
search --index films --query a --method two-step beta=1  # beta has no use with --method two-step; it is for…
search --index films --query a --method two-step depth=x  # argument --method: depth must be a whole number…, got x
search --index films --query a --method two-step deep=3  # argument --method: no setting is 'deep=3'; give…
search --index films --query a --method two-step depth=3 depth=4  # argument --method: depth is given twice
search --index films --query a --method two-step depth=  # argument --method: no setting is 'depth='; give depth=...…
search --index films --query a -k 5  # there is no -k; the number of hits is --hits
search --index films --query a --method fusion  # argument --method: invalid choice: 'fusion' (choose from operators,…
search --index films --query a --rerank m share=2  # argument --rerank: share must be a number above 0 and at m…
search --index films --query a --rerank m 7  # argument --rerank: no setting is '7'; give share=... and hits=...
serve --config follower.yaml --ray local  # --ray: index a follows another server, and its copy is on this machine…
search --index films --query spy --ray local replicas=0  # argument --ray: replicas must be a whole number from 1, got 0
search --index films --query spy --operators paper --method score-fusion  # --operators has no use with --method…
search --index films --query spy --ray local hedge=.5  # argument --ray: hedge must be a finite number from 1, got .5
search --index films --query spy --output new  # --output takes a run: name its --output-format, or…
search --index films --query a --difference nfr  # argument --difference: invalid choice: 'nfr'…did you mean nrf?
search --index films --q a  # there is no --q; the query is --query
search --index films --query a --operator cpt  # there is no --operator; the operators are --union, …
search --index films --query a --docid d1  # there is no --docid; the command explain has it
index --collection documents.jsonl --index new --filter-fields 'year, '  # a filter field must be named by a letter…
search --index films --qurey a  # there is no --qurey; did you mean --query?
search --index films --query a --hit=5  # there is no --hit; did you mean --hits?
search --index films --query spy --allow-partial --output-format msmarco  # --allow-partial needs --output-format trec
! search --index vectors --topics topics.tsv --output vectors/compneg.json  # vectors/compneg.json: would overwrite…
! search --index films --topics topics.tsv --output topics.tsv  # topics.tsv: would overwrite topics.tsv;…with --output
explain --index films --query 'spy AND! zzz'  # …no document has its words, so it finds nothing
compose --query spy  # name the --index, whose encoder is used, or an --encoder
compose --index films --topics later.tsv --output-format tsv --output new  # query 2: tsv cannot…
compose --index films --query spy --cpt materialised --output new  # films holds no pairs of terms;…which needs none
compose --encoder mini --latent-weight 1 --query spy  # mini: has no such part, so --latent-weight,…has no use
compose --encoder bm25 --query spy  # bm25 weighs a query's terms by the statistics of an index; name the --index
compose --encoder splade --query spy  # no model 'splade'; expected mini,…JSON Lines file of encoded texts)
! compose --index films --topics topics.tsv --output topics.tsv  # topics.tsv: would overwrite topics.tsv;…with --output
! compose --encoder atoms.jsonl --query a --output atoms.jsonl  # atoms.jsonl: would overwrite atoms.jsonl; choose…
encode --collection documents.jsonl --output new --encoder broken
encode --collection documents.jsonl --output new --encoder bm25  # bm25 is not a model;…or bm25+MODEL
encode --collection documents.jsonl --output new --encoder bm25 --shards 1  # bm25 is not a model;…or bm25+MODEL
encode --collection documents.jsonl --output new --encoder broken --shard-id 2 --shard-num 2  # --shard-id…to 1, got 2
encode --collection missing --output new --encoder broken  # missing: no such file
export --encoder nothing  # nothing: no model: neither config.json nor modules.json is here
export --encoder broken
export --encoder 'a\x1b[31m/b'
eval  # the following arguments are required: --qrels, --run
eval --qrels missing --run run.txt  # missing: no such file
eval --qrels qrels.txt --run run.txt -m nonsense
eval --qrels qrels.txt --run run.txt -m 'x\x1b[31m'
eval --qrels qrels.txt --run run.txt -m 'nDCG(dcg="x")@5'  # measure…nDCG@10, R@100, AP, RR
eval --qrels qrels.txt --run run.txt -m 'P(x=1)@5'  # measure 'P(x=1)@5' lacks a parameter…R@100, AP, RR
eval --qrels qrels.txt --run 'a\nerror: b'  # a error: b: no such file
eval --qrels 'a\u2028\x85\u202eb' --run run.txt  # a   b: no such file
search --index films --query spy --hits '1\nerror: x'  # argument --hits: must be a whole number from 1, got 1 error: x
'nothing\nerror: x'  # there is no command 'nothing\nerror: x'
eval --qrels qrels.txt --run run.txt --by template  # qrels.txt:1: no JSON, so no `metadata.template`…with --groups
eval --qrels other.txt --run run.txt --by template --groups judged.jsonl  # judged.jsonl: no template for query '7'
eval --qrels qrels.txt --run run.txt --groups judged.jsonl  # --groups needs --by
! eval --qrels qrels.txt --run run.txt --output qrels.txt  # qrels.txt: would overwrite qrels.txt;
! eval --qrels qrels.txt --run run.txt --by template --groups judged.jsonl --output judged.jsonl  # judged.jsonl: would
eval --qrels qrels.txt --run run.txt --per-query run.txt  # unrecognized arguments: run.txt
eval --qrels qrels.txt --run run.txt --by template --output-format csv  # --by makes a row for each class
explain --index films --query spy --docid missing  # films has no document 'missing'
explain --index films --topics topics.tsv  # --topics needs --qid, the topic to explain
explain --index films --topics later.tsv --qid 9  # later.tsv: no query '9' among its 2: 1, 2
explain --index films --query spy --qid 1  # --qid needs --topics
explain --index films --query a --docid  # argument --docid: expected at least one argument
search -index films -topics topics.tsv  # there is no '-index'; flags have two dashes: --index
search --index films --query spy --k1 1.2  # there is no --k1; k1 and b belong to index, which keeps them
index --input documents.jsonl --index new  # there is no --input; the documents are --collection
! explain --index films --query spy --output films/x  # films/x: would overwrite films;
train
train nothing --output new
train table5-sum
train table5-sum --output new --data missing
train table9 --show  # table9: neither a file nor a recipe; the recipes are: excluir-dense,…
reproduce table1 --dataset missing --report new
reproduce table1 --dataset topics.tsv --report new
reproduce table1 --dataset nothing --report topics.tsv
reproduce table9 --dataset nothing --report new  # no protocol 'table9'; expected one of…
reproduce table1 --dataset nothing --report new --encoder a b --index i  # --index must name one…, got 1 for 2
reproduce table1 --dataset nothing --report new --encoder bm25 bm25  # --encoder has 'bm25' twice for the same index
datasets
datasets convert --dataset nothing --output new  # the following arguments are required: --split
datasets likings --output new --split dev  # --split belongs to the action convert
datasets likings --output new --documents 5  # argument --documents: must be a whole number from 200 to 100000, got 5
datasets convert --dataset nothing --split dev --seed 1 --output new  # --seed belongs to the action likings
datasets convert --dataset missing --split dev --output new
datasets convert --dataset nothing --split dev --output topics.tsv
datasets convert --dataset nothing --split dev --output new --kind beir  # nothing: corpus.jsonl is missing, plain or…
demo --index topics.tsv
! demo --output films --index films
'\x1b[31m'
"""


_ESCAPE = re.compile(r"\\(?:n|x..|u....)")


@pytest.mark.parametrize("row", FLAGS.replace("LONG", 300 * "L").strip().splitlines())
def test_a_flag_or_a_path(room, monkeypatch, capfd, row):
    monkeypatch.chdir(room)
    monkeypatch.setattr(logging.root, "handlers", [])
    command, _, told = row.partition("  # ")
    arguments = shlex.split(_ESCAPE.sub(lambda found: literal_eval(f"'{found[0]}'"), command.removeprefix("! ")))
    before = tree(room)
    assert main(arguments) == (1 if row[0] == "!" else 2)
    assert tree(room) == before
    out, err = capfd.readouterr()
    assert all(line.replace("\t", "").isprintable() and len(line) < 700 for line in f"{out}\n{err}".split("\n"))
    said = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: ", "see ", "  "))]
    pattern = ".*".join(map(re.escape, f"error: {told}".split("…")))
    assert len(said) == 1 and re.match(f"{pattern}$" if "…" in told else pattern, said[0]), err
    assert not (told and out)
