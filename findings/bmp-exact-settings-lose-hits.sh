#!/usr/bin/env bash
# BMP loses hits with the settings that prune nothing (alpha=1, beta=1).
#
# Versions:  bmp 0.2.8.
# Guess:     with alpha=1 and beta=1 the search is exact: it gives the k documents with the largest inner products. The
#            weights of a query are floats, and count as they are.
# Behaviour: the largest weight of a query becomes 32, the others in proportion, each rounded up to a whole number; a
#            weight below 0 becomes 0, without an error. The search takes blocks of documents by their largest possible
#            score, and does not score the last of the blocks that may have a hit.
# Seen:      {'a': 100.0, 'b': 1.0}: first is wide 3272, then narrow 3265; inner products 10140 and 10201
#            {'a': 1.0, 'b': -1.0}: first is both 3200, then alone 2880; inner products 0 and 90
#            {'a': 1.0}, k=10: 4 hits: d99 d98 d97 d96 (of 100 documents with impacts from 1 to 100)
# Why it matters: in a comparison of engines, a recall below 1 looks like the price of pruning. For vectors of SPLADE,
#            the rounding alone costs 2 % of the 10 best documents. A query with negative weights gets the ranking
#            without them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q bmp==0.2.8
cd "$folder"
cat > run.py <<'PYTHON'
from bmp import Indexer, Searcher


def searched(name, documents, query):
    """The hits and scores of the 10 best documents."""
    indexer = Indexer(name, bsize=32, compress_range=False)  # its defaults
    for docid, vector in documents.items():
        indexer.add_document(docid, vector)
    indexer.finish()
    docids, scores = Searcher(name).search(query, k=10, alpha=1.0, beta=1.0)
    return docids, [round(score) for score in scores]


def product(query, document):
    return sum(weight * document.get(term, 0) for term, weight in query.items())


def show(name, pair, query):
    others = {f"d{i}": {"a": 10 + i // 2} for i in range(126)}
    docids, scores = searched(name, pair | others, query)
    (one, other), whole = docids[:2], [round(product(query, pair[docid])) for docid in docids[:2]]
    print(f"{query}: first is {one} {scores[0]}, then {other} {scores[1]}; inner products {whole[0]} and {whole[1]}")
    return one, other, *scores[:2], *whole


rounded = show("a.bmp", {"narrow": {"a": 102, "b": 1}, "wide": {"a": 101, "b": 40}}, {"a": 100.0, "b": 1.0})
negative = show("b.bmp", {"alone": {"a": 90}, "both": {"a": 100, "b": 100}}, {"a": 1.0, "b": -1.0})
hits, _ = searched("c.bmp", {f"d{i}": {"a": 1 + i} for i in range(100)}, {"a": 1.0})
print("{'a': 1.0}, k=10:", len(hits), "hits:", *hits)
assert rounded == ("wide", "narrow", 3272, 3265, 10140, 10201)
assert negative == ("both", "alone", 3200, 2880, 0, 90)
assert hits == ["d99", "d98", "d97", "d96"]
PYTHON
"$folder/venv/bin/python" run.py
