#!/usr/bin/env bash
# The grade of spam in judgements of TREC's Web tracks, -2, lifts Bpref from 0 to 1 and doubles infAP; in ranx it does
# not.
#
# Versions: pytrec-eval-terrier 0.5.11 (trec_eval's code), ranx 0.3.21, Python 3.11.
#
# Guess: a document judged -2 is worse than one judged 0, or as bad. So replacing 0 by -2 changes no measure of binary
# relevance, as it changes neither AP nor nDCG.
#
# Behaviour: for Bpref, trec_eval's code takes any grade below 0 for "not judged", so spam above all relevant documents
# costs nothing. For infAP a grade below 0 is "pooled, but not judged": its relevance is estimated from the others, so
# it is better to rank such a document than one that the judgements lack. ranx's bpref counts it as judged, and not
# relevant.
#
# Output seen (ranking: two pages of spam, two relevant documents, one that is not relevant):
#   spam is judged 0   AP=0.4167 nDCG=0.5706 Bpref=0.0 infAP=0.4167  ranx: bpref=0.0
#   spam is judged -2  AP=0.4167 nDCG=0.5706 Bpref=1.0 infAP=0.8333  ranx: bpref=0.0
#   spam has no line   AP=0.4167 nDCG=0.5706 Bpref=1.0 infAP=0.4167  ranx: bpref=1.0
#
# Why it matters: Bpref is chosen where judgements are incomplete, as in the large Web collections, and just there
# assessors marked spam with -2. A system that ranks spam first has a perfect Bpref, two evaluators disagree by 1, and
# a file whose negative grades were "cleaned" to 0 gives other figures than the original.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pytrec-eval-terrier==0.5.11 ranx==0.3.21

"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from pytrec_eval import RelevanceEvaluator
from ranx import Qrels, Run, evaluate

RUN = {"q": {"spam1": 5.0, "spam2": 4.0, "good1": 3.0, "good2": 2.0, "off": 1.0}}
GRADES = {"is judged 0": 0, "is judged -2": -2, "has no line": None}
NAMES = {"map": "AP", "ndcg": "nDCG", "bpref": "Bpref", "infAP": "infAP"}


def measured(grade):
    spam = {} if grade is None else {"spam1": grade, "spam2": grade}
    qrels = {"q": {"good1": 1, "good2": 1, "off": 0, **spam}}
    values = RelevanceEvaluator(qrels, set(NAMES)).evaluate(RUN)["q"]
    trec = {shown: round(values[name], 4) for name, shown in NAMES.items()}
    return trec, round(float(evaluate(Qrels(qrels), Run(RUN), "bpref")), 4)


found = {}
for label, grade in GRADES.items():
    trec, ranx = found[grade] = measured(grade)
    print(f"spam {label:13}", *(f"{name}={value}" for name, value in trec.items()), f" ranx: bpref={ranx}")

for name in ("AP", "nDCG"):
    assert len({trec[name] for trec, _ in found.values()}) == 1
assert [found[grade][0]["Bpref"] for grade in (0, -2, None)] == [0.0, 1.0, 1.0], "trec_eval's Bpref counts -2 differently"
assert found[-2][0]["infAP"] > found[None][0]["infAP"] == found[0][0]["infAP"], "infAP counts -2 differently"
assert [found[grade][1] for grade in (0, -2, None)] == [0.0, 0.0, 1.0], "ranx counts -2 differently"
PYTHON
