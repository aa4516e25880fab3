#!/usr/bin/env bash
# pandas 2.3.3 and pyarrow 20.0.0: a column of sparse vectors {term: weight} becomes a struct of the whole vocabulary.
#
# Guess: DataFrame.to_parquet stores a column of dictionaries as they are, and read_parquet gives them back.
#
# Behaviour: pyarrow infers one struct type with a field for each term of any document. Each document gets all of these
# terms, the absent ones as null, in the order of the alphabet. Parquet stores one column for each term, so the file and
# the time grow with the vocabulary: here 400 vectors of 50 terms take over 10 times their JSON Lines. A column whose
# vectors are all empty cannot be written at all. An explicit map type keeps the terms of each document, and is smaller
# than the JSON.
#
# Why it matters: learned sparse vectors are dictionaries with a vocabulary of 30,000. A reader that takes the keys of
# the struct for the terms of a document sees every term in every document, and one that takes null for 0 writes postings
# for all. Vectors should be written as map<string, float>.
#
# Seen:
#   {'bird': 1.5, 'fish': None, 'owl': 0.25}
#   {'bird': None, 'fish': 2.0, 'owl': None}
#   {'bird': None, 'fish': None, 'owl': None}
#   only empty vectors: ArrowNotImplementedError
#   400 vectors: struct of 14541 columns, 13 times the JSON; as a map 0.4 times
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check pandas==2.3.3 pyarrow==20.0.0
cat > "$folder/try.py" << 'END'
import json
import os
import random
import sys

import pandas
import pyarrow
from pyarrow import parquet

os.chdir(sys.argv[1])
vectors = [{"owl": 0.25, "bird": 1.5}, {"fish": 2.0}, {}]
pandas.DataFrame({"id": ["d1", "d2", "d3"], "vector": vectors}).to_parquet("a.parquet")
read = list(pandas.read_parquet("a.parquet")["vector"])
print(*read, sep="\n")
assert [list(vector.items()) for vector in read] == [
    [("bird", 1.5), ("fish", None), ("owl", 0.25)],
    [("bird", None), ("fish", 2.0), ("owl", None)],
    [("bird", None), ("fish", None), ("owl", None)],
]
try:
    pandas.DataFrame({"id": ["d1"], "vector": [{}]}).to_parquet("b.parquet")
    raise SystemExit("only empty vectors: written")
except pyarrow.ArrowNotImplementedError as error:
    print("only empty vectors:", type(error).__name__)

draw = random.Random(0)
many = [{f"t{draw.randrange(30_000)}": round(draw.random(), 3) for _ in range(50)} for _ in range(400)]
ids = [f"d{number}" for number in range(len(many))]
pandas.DataFrame({"id": ids, "vector": many}).to_parquet("struct.parquet")
kind = pyarrow.map_(pyarrow.string(), pyarrow.float32())
pairs = pyarrow.array([list(vector.items()) for vector in many], kind)
parquet.write_table(pyarrow.table({"id": ids, "vector": pairs}), "map.parquet")
as_json = sum(len(json.dumps({"id": docid, "vector": vector})) + 1 for docid, vector in zip(ids, many))
struct, mapped = (os.path.getsize(f"{name}.parquet") / as_json for name in ("struct", "map"))
columns = parquet.ParquetFile("struct.parquet").metadata.num_columns - 1
print(f"400 vectors: struct of {columns} columns, {struct:.0f} times the JSON; as a map {mapped:.1f} times")
assert columns == len({term for vector in many for term in vector})
assert struct > 10 and mapped < 1
END
"$folder/venv/bin/python" "$folder/try.py" "$folder"
