"""Real questions, claims and queries: what excludes nothing stays whole, and templates are read as what they mean."""

import re
from collections import Counter
from pathlib import Path

import pytest

from pyserini_compneg.expression import Atom, Difference, from_marks
from pyserini_compneg.reading.model_reader import packaged_reader
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.topics.topics import read_topics

pytestmark = [pytest.mark.slow, pytest.mark.once]

JUDGED = {
    (record["dataset"], record["id"]): record["right"]
    for _, record in iter_jsonl(Path(__file__).parent / "data" / "readings.jsonl")
}
"""Texts that are decomposed, and whether that is right."""


def scifact(folder):
    return {record["_id"]: record["text"] for _, record in iter_jsonl(folder / "scifact" / "queries.jsonl")}


def pairs(folder):
    """Every third: they are many, and of one kind."""
    records = list(iter_jsonl(folder / "pairs" / "train.jsonl.gz"))
    return {str(number): record["query"] for number, record in records[::3]}


def nevir(folder):
    records = [record for _, record in iter_jsonl(folder / "nevir" / "dev.jsonl")]
    return {f"{record['id']}:{question}": record[question] for record in records for question in ("q1", "q2")}


def cisi(folder):
    texts = re.split(r"\.I (?=\d+\n)", (folder / "cisi" / "CISI.QRY").read_text())[1:]
    numbered = (text.partition("\n")[::2] for text in texts)
    return {number: " ".join(text.split(".W\n")[-1].split()) for number, text in numbered}


@pytest.mark.parametrize(("load", "most"), [(scifact, 0.006), (pairs, 0.02), (nevir, 0.05), (cisi, 0.05)])
def test_few_texts_are_decomposed_wrongly(shared_data, load, most):
    texts = load(shared_data)
    readings = zip(texts, packaged_reader().read(list(texts.values())), strict=True)
    decomposed = [key for key, reading in readings if not isinstance(reading.expression, Atom)]
    wrong = [key for key in decomposed if not JUDGED.get((load.__name__, key), False)]
    assert len(wrong) <= most * len(texts)


def operators(expression):
    match expression:
        case Atom():
            return set()
        case Difference(left, _):
            return {Difference} | operators(left)
    return {type(expression)}.union(*map(operators, expression.operands))


def test_plain_filmsets_queries_join_and_exclude_as_their_marks_do(shared_data):
    """The atoms may differ: in "1990s spy films that are also comedies" the decade may hold for both."""
    records = [record for _, record in iter_jsonl(shared_data / "filmsets" / "dev.jsonl")]
    readings = packaged_reader().read([record["query"] for record in records])
    right, total = Counter(), Counter()
    for record, reading in zip(records, readings, strict=True):
        template = record["metadata"]["template"]
        total[template] += 1
        right[template] += operators(reading.expression) == operators(from_marks(record["original_query"]))
    assert len(total) == 7
    assert {template: count for template, count in right.items() if count < 0.95 * total[template]} == {}


def test_exclusions_are_found(shared_data):
    """Not how well: that is measured by benchmarks/reading.py."""
    for dataset, least in (("excluir", 0.92), ("negconstraint", 0.98)):
        topics = read_topics(shared_data / dataset / "queries.dev.jsonl")
        readings = packaged_reader().read([topic.text for topic in topics])
        assert sum(isinstance(reading.expression, Difference) for reading in readings) >= least * len(topics)
