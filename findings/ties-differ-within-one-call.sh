#!/usr/bin/env bash
# One call of ir_measures ranks the same tie in two ways, so RR@10 exceeds RR, and the first document is relevant
# (P@1 = 1) but not judged (Judged@1 = 0).
#
# Versions: ir-measures 0.4.3, pytrec-eval-terrier 0.5.11, Python 3.11.
#
# Guess: measures of one call see one ranking. So RR@10 is RR with 0 below rank 10, never more than RR, and a document
# that counts as relevant at rank 1 is a judged one.
#
# Behaviour: each measure goes to the first provider that has it. RR, P, AP and nDCG go to trec_eval's code, which puts
# equal scores in descending order of docid. RR@10 goes to the provider for MS MARCO and Judged@1 to that for judged
# documents, which put them in ascending order. Nothing warns.
#
# Output seen (two documents, a and b, with one score; one of them is judged, and relevant):
#   relevant: a  RR=0.5 RR@10=1.0 P@1=0.0 nDCG@10=0.6309 Judged@1=1.0
#   relevant: b  RR=1.0 RR@10=0.5 P@1=1.0 nDCG@10=1.0 Judged@1=0.0
#   no ties:     RR=1.0 RR@10=1.0 P@1=1.0 nDCG@10=1.0 Judged@1=1.0
#
# Why it matters: systems with whole scores (impacts, term overlap, counts of votes) have many ties. Their RR@10 beside
# nDCG@10 in one table are measures of two different rankings. Set ties apart in the run before it is judged.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q ir-measures==0.4.3 pytrec-eval-terrier==0.5.11

"$folder/venv/bin/python" - <<'PYTHON'
from ir_measures import RR, Judged, P, calc_aggregate, nDCG

MEASURES = [RR, RR @ 10, P @ 1, nDCG @ 10, Judged @ 1]


def measured(relevant, scores):
    found = calc_aggregate(MEASURES, {"q": {relevant: 1}}, {"q": scores})
    return {str(measure): round(found[measure], 4) for measure in MEASURES}


def show(label, values):
    print(f"{label:12}", *(f"{name}={value}" for name, value in values.items()))


first, last = (measured(relevant, {"a": 1.0, "b": 1.0}) for relevant in "ab")
show("relevant: a", first)
show("relevant: b", last)
apart = measured("a", {"a": 1.0, "b": 0.5})
show("no ties:", apart)

assert set(apart.values()) == {1.0}
assert (first["RR"], first["RR@10"]) == (0.5, 1.0), "RR@10 no longer exceeds RR"
assert (last["RR"], last["RR@10"]) == (1.0, 0.5)
assert (last["P@1"], last["Judged@1"]) == (1.0, 0.0), "a relevant first document now counts as judged"
PYTHON
