import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.topics.topics import Topic

DOCUMENTS = ".X\n.I 1\n.T \nEmus\n.A\nBird, B.\n.A\nBat, C.\n.W\n   An emu\nis a bird.\n.X\n1\t5\t1\n.I 2\n.W\nA bat.\n"
QUERIES = ".I 1\n.W\nWhat are emus?\nBirds?\n.I 2\n.T\nBats\n.A\nBat, C.\n.W\nOn bats.\n.B\n(JASIS)\n"


@pytest.fixture
def cisi(tmp_path):
    (tmp_path / "CISI.ALL").write_text(DOCUMENTS)
    (tmp_path / "CISI.QRY").write_text(QUERIES)
    (tmp_path / "CISI.REL").write_text("     1      1\t0\t0.000000\n     1      2\t0\t0.000000\n")
    return tmp_path


def test_documents_queries_and_judgements(cisi):
    dataset = open_dataset(cisi)
    assert (dataset.kind, dataset.splits, dataset.collection) == ("cisi", ("all",), None)
    documents = dataset.documents("all")
    assert [(document.docid, document.text) for document in documents] == [
        ("1", "Emus\nAn emu\nis a bird."),
        ("2", "A bat."),
    ]
    assert dataset.topics("all") == [
        Topic("1", "What are emus? Birds?", Atom("What are emus? Birds?")),
        Topic("2", "Bats On bats.", Atom("Bats On bats.")),
    ]
    assert dataset.qrels("all") == {"1": {"1": 1, "2": 1}}


def test_bad_records(cisi):
    path = cisi / "CISI.QRY"
    read = open_dataset(cisi).part("all").topics
    for content, message in [
        ("", ": no records; expected lines of `.I number`"),
        (".W\nbats\n", ":2: expected a line `.I number`, then `.W`, got 'bats'"),
        (".I 1\nbats\n", ":2: expected a line `.I number`, then `.W`, got 'bats'"),
        (".I 1\n.W\na\n.I 1\n", ":4: number 1 is given twice"),
        (".I 1\n.B\n(JASIS)\n", ":1: query 1 has no text, neither .T nor .W"),
    ]:
        path.write_text(content)
        assert refusal(read) == f"{path}{message}"


def test_bad_judgements(cisi):
    path = cisi / "CISI.REL"
    read = open_dataset(cisi).part("all").qrels
    for content, message in [
        ("\n", ": no judgements; expected lines of `query document 0 0.0`"),
        ("1 1 0 0.0\n\n1 x 0 0.0\n", ":3: expected `query document 0 0.0`, got '1 x 0 0.0'"),
        ("9 1 0 0.0\n", f": 1 of 1 queries are not in {cisi}/CISI.QRY, first '9'"),
    ]:
        path.write_text(content)
        assert refusal(read) == f"{path}{message}"
