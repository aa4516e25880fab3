"""Real questions, claims and queries: what excludes nothing stays whole, and templates are read as what they mean."""

import re
from collections import Counter
from pathlib import Path

import pytest

from pyserini_compneg.expression import Atom, Difference, from_marks
from pyserini_compneg.expression.topics import read_topics
from pyserini_compneg.files import iter_jsonl
from pyserini_compneg.reading import decompose

READINGS = [record for _, record in iter_jsonl(Path(__file__).parent / "data" / "readings.jsonl")]


def scifact(folder):
    return {record["_id"]: record["text"] for _, record in iter_jsonl(folder / "scifact" / "queries.jsonl")}


def pairs(folder):
    return {str(number): record["query"] for number, record in iter_jsonl(folder / "pairs" / "train.jsonl.gz")}


def nevir(folder):
    records = [record for _, record in iter_jsonl(folder / "nevir" / "dev.jsonl")]
    return {f"{record['id']}:{question}": record[question] for record in records for question in ("q1", "q2")}


def cisi(folder):
    texts = re.split(r"\.I (?=\d+\n)", (folder / "cisi" / "CISI.QRY").read_text())[1:]
    numbered = (text.partition("\n")[::2] for text in texts)
    return {number: " ".join(text.split(".W\n")[-1].split()) for number, text in numbered}


LOADERS = {"scifact": scifact, "pairs": pairs, "nevir": nevir, "cisi": cisi}


@pytest.fixture(scope="module")
def texts(shared_data):
    return {name: load(shared_data) for name, load in LOADERS.items()}


def test_the_sample_is_read_as_judged(texts):
    changed = [
        reading
        for reading in READINGS
        if bool(decompose(texts[reading["dataset"]][reading["id"]]).reasons) != reading["split"]
    ]
    assert len(READINGS) == 200
    assert changed == []


@pytest.mark.parametrize("dataset", LOADERS)
def test_all_texts_that_are_split_were_judged_and_few_are_split_wrongly(texts, dataset):
    judged = {reading["id"]: reading["right"] for reading in READINGS if reading["dataset"] == dataset}
    split = [key for key, text in texts[dataset].items() if decompose(text).reasons]
    assert [key for key in split if key not in judged] == []
    assert sum(not judged[key] for key in split) <= 0.012 * len(texts[dataset])


def operands(expression):
    """The expression with the operands of unions and intersections in a fixed order."""
    match expression:
        case Atom(text):
            return text
        case Difference(left, right):
            return "NOT", operands(left), operands(right)
    return type(expression).__name__, *sorted(map(repr, map(operands, expression.operands)))


@pytest.mark.parametrize("split", ["dev", "train"])
def test_plain_filmsets_queries_mean_what_their_marks_say(shared_data, split):
    right, total = Counter(), Counter()
    for _, record in iter_jsonl(shared_data / "filmsets" / f"{split}.jsonl"):
        template = record["metadata"]["template"]
        total[template] += 1
        marked = from_marks(record["original_query"])
        right[template] += operands(decompose(record["query"]).expression) == operands(marked)
    assert len(total) == 7
    assert {template: count for template, count in right.items() if count < 0.97 * total[template]} == {}


def test_exclusions_are_found(shared_data):
    """Not how well: that is measured by benchmarks/decomposition.py."""
    for dataset, least in (("excluir", 0.95), ("negconstraint", 0.98)):
        topics = read_topics(shared_data / dataset / "queries.dev.jsonl")
        found = [isinstance(decompose(topic.text).expression, Difference) for topic in topics]
        assert sum(found) >= least * len(topics)
