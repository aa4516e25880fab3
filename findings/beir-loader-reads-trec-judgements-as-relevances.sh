#!/usr/bin/env bash
# beir 2.2.0: GenericDataLoader reads judgements of four columns without an error, and takes document ids for relevances.
#
# Guess: the loader expects the header `query-id, corpus-id, score`, and refuses another file: a header that is missing, or
# lines with another number of columns.
#
# Behaviour: it drops the first line whatever it holds, and takes the second column for the document and the third for the
# relevance. In TREC's four columns (as in MS MARCO's qrels.dev.tsv, whose separators are tabs) the second is the
# constant 0, and the third is the document's id, which is a whole number there. So each query keeps one judgement: a
# document "0" whose relevance is the id of the last relevant document. The first judgement is lost, and with it, if the
# query has no other, the query.
#
# Why it matters: MS MARCO's own file, renamed to qrels/dev.tsv beside a corpus in BEIR's form, loads without a warning.
# All measures are then 0, unless a document has the id "0", and the set of queries is smaller.
#
# Seen:
#   {'2': {'0': 4339068}, '3': {'0': 101}}
#   queries: ['2', '3']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
# Of what beir asks for, the loader needs tqdm alone.
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check tqdm==4.67.1
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps beir==2.2.0
mkdir "$folder/qrels"
for docid in 7067032 4339068 55 101; do
  printf '{"_id": "%s", "title": "", "text": "a passage"}\n' "$docid"
done > "$folder/corpus.jsonl"
for qid in 1 2 3; do
  printf '{"_id": "%s", "text": "a query"}\n' "$qid"
done > "$folder/queries.jsonl"
printf '1\t0\t7067032\t1\n2\t0\t4339068\t1\n3\t0\t55\t1\n3\t0\t101\t1\n' > "$folder/qrels/dev.tsv"
cat > "$folder/try.py" << 'END'
import sys

from beir.datasets.data_loader import GenericDataLoader

_, queries, qrels = GenericDataLoader(sys.argv[1]).load(split="dev")
print(qrels)
print("queries:", list(queries))
assert qrels == {"2": {"0": 4339068}, "3": {"0": 101}}
assert list(queries) == ["2", "3"]
END
"$folder/venv/bin/python" "$folder/try.py" "$folder" 2> "$folder/errors" || { cat "$folder/errors"; exit 1; }
