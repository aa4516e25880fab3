#!/usr/bin/env bash
# In tantivy's query language, `films AND NOT comedies` finds nothing.
#
# Versions:  tantivy 0.27.0 (Python).
# Guess:     as in Lucene's query language, `films AND NOT comedies`, `films NOT comedies` and `films -comedies` find
#            the same documents.
# Behaviour: NOT after AND becomes a query of its own, a Boolean query with nothing but an excluded clause. It matches
#            no document, so its AND with `films` finds none, and says nothing; `NOT comedies` alone is refused. After
#            OR, NOT excludes nothing. `AND -comedies` excludes, although `OR -comedies` does not.
# Seen:      films NOT comedies          ['war']
#            films -comedies             ['war']
#            films AND -comedies         ['war']
#            films AND NOT comedies      []
#            films OR NOT comedies       ['both', 'war']
#            NOT comedies                Invalid query: Only excluding terms given
# Why it matters: queries are written for Lucene, or by a program that joins its clauses with AND. An empty answer looks
#            like an index without such documents. Write `-`, or NOT without AND.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tantivy==0.27.0
cat > "$folder/run.py" <<'PYTHON'
import tantivy

DOCUMENTS = {"war": "films about war", "both": "films comedies", "comedies": "comedies alone", "none": "nothing here"}
EXPECTED = {
    "films NOT comedies": ["war"],
    "films -comedies": ["war"],
    "films AND -comedies": ["war"],
    "films AND NOT comedies": [],
    "films OR NOT comedies": ["both", "war"],
    "NOT comedies": "Invalid query: Only excluding terms given",
}
fields = tantivy.SchemaBuilder()
fields.add_text_field("id", stored=True, tokenizer_name="raw")
fields.add_text_field("text")
index = tantivy.Index(fields.build())
writer = index.writer(heap_size=15_000_000, num_threads=1)
for docid, text in DOCUMENTS.items():
    writer.add_document(tantivy.Document(id=docid, text=text))
writer.commit()
index.reload()
searcher = index.searcher()


def found(query):
    try:
        parsed = index.parse_query(query, ["text"])
    except ValueError as error:
        return str(error)
    return sorted(searcher.doc(address)["id"][0] for _, address in searcher.search(parsed, 10).hits)


for query in EXPECTED:
    print(f"{query:27} {found(query)}")
assert {query: found(query) for query in EXPECTED} == EXPECTED
PYTHON
"$folder/venv/bin/python" "$folder/run.py"
