"""Plain texts through every door: none fails, and one without operators ranks as with read="plain", to the bit."""

import json
import random
import re
from collections import Counter

import pytest
from hosts import adapter
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import SignedImpactSearcher, build_index
from pyserini_compneg.expression import Atom, parse

SETS = {
    "scifact": ["scifact/queries.jsonl"],
    "negconstraint": ["negconstraint/queries.dev.jsonl"],
    "comlq": ["comlq/queries.dev.jsonl"],
    "nevir": ["nevir/train.jsonl", "nevir/dev.jsonl"],
    "excluir": ["excluir/queries.dev.jsonl"],
}
FIELDS = ("text", "q1", "q2")
SAMPLE = 25
HARD = re.compile(r'[()"\[\]{}\\]| [-+|&!] |(?i:\b(?:and|or|not|but|without|except)\b) \(')


def texts_of(folder, name):
    """The queries of a set of benchmark data; ``made`` are questions as people type them."""
    if name == "made":
        return made_questions()
    if name == "cisi":
        queries = (folder / "cisi" / "CISI.QRY").read_text(encoding="utf-8")
        return [" ".join(text.split()) for text in re.findall(r"^\.W\n(.*?)(?=^\.I|\Z)", queries, re.M | re.S)]
    lines = [line for path in SETS[name] for line in (folder / path).read_text(encoding="utf-8").splitlines()]
    return [record[field] for record in map(json.loads, lines) for field in FIELDS if field in record]


def made_questions(count=400):
    """Questions with abbreviations in brackets, quoted titles, inches, signs, and operators that join nothing."""
    chance = random.Random(58)
    asked = [
        "what is",
        "how long does",
        "define:",
        "cost of",
        "difference between",
        "NOT",
        "AND",
        "is",
        "OR",
        "where's",
    ]
    things = ["IL-6 (interleukin 6)", '5" pipe', "AND gate", "C++", '"war and peace"', "a 6'2\" man", "[MASK]"]
    things += [
        "f(x) = y",
        r"C:\dir",
        r"\alpha decay",
        "aspirin and (or) ibuprofen",
        "AT&T",
        ":-)",
        "rock 'n' roll",
        "()",
    ]
    things += [
        "TNF-\u03b1",
        "the NOT gate",
        'films named "It',
        "x - (y)",
        "salt & (pepper)",
        "genre=war",
        "title:brie",
        "brie)",
    ]
    ends = ["", "?", " (2019)", " in the u.s.", ' "quotes"', " or not", " AND", " \u2229", " ..."]
    made = (" ".join([chance.choice(asked), *chance.sample(things, 2)]) + chance.choice(ends) for _ in range(count))
    joined = re.compile(r"\S.*\s(?:AND|OR|NOT)\s+\S|[\u2229\u222a]\s*\S")
    return [text for text in made if not joined.search(text)]


NAMES = [*SETS, "cisi", "made"]


@pytest.fixture(scope="module")
def sample(shared_data):
    """Some texts of each set, half of them with signs that have a meaning in expressions."""
    chance, some = random.Random(7), []
    for name in NAMES:
        texts = texts_of(shared_data, name)
        hard = [text for text in texts if HARD.search(text)]
        some += chance.sample(hard, min(SAMPLE, len(hard))) + chance.sample(texts, SAMPLE)
    return list(dict.fromkeys(text.strip() for text in some))


@pytest.fixture(scope="module")
def folder(sample, tmp_path_factory):
    """An index of the texts, so that each finds itself."""
    folder = tmp_path_factory.mktemp("texts")
    documents = ({"id": f"d{at}", "contents": text} for at, text in enumerate(sample))
    build_index(write_jsonl(folder / "texts.jsonl", *documents), folder / "index")
    return folder / "index"


class Characters:
    """An encoder that sees every character, blanks and signs included."""

    def encode_batch(self, texts):
        return [{f"u{ord(character)}": float(n) for character, n in Counter(text).items()} for text in texts]


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_the_atom(shared_data, name):
    texts = texts_of(shared_data, name)
    assert len(texts) > 100
    assert [text for text in texts if parse(text) != Atom(text)] == []


def test_an_encoder_that_sees_every_character(sample, tmp_path):
    documents = ({"id": str(at), "vector": vector} for at, vector in enumerate(Characters().encode_batch(sample)))
    write_jsonl(tmp_path / "documents.jsonl", *documents)
    build_index(tmp_path / "documents.jsonl", tmp_path / "index", "characters")
    with SignedImpactSearcher(tmp_path / "index", Characters()) as searcher:
        assert searcher.batch_search(sample, sample) == searcher.batch_search(sample, sample, read="plain")


@pytest.mark.slow
def test_pyserini(sample, folder, pyserini_host):
    searcher = pyserini_host.SignedLuceneImpactSearcher(folder, pyserini_host.ComposedQueryEncoder(folder))
    asked, plain = (searcher.batch_search(sample, sample, **how) for how in ({}, {"read": "plain"}))
    assert list(map(repr, asked.items())) == list(map(repr, plain.items()))
    assert all(asked.values())
    searcher.close()


@pytest.mark.slow
def test_pyterrier(sample, folder):
    host, pandas = adapter("pyterrier"), pytest.importorskip("pandas")
    frame = pandas.DataFrame([{"qid": str(at), "query": text} for at, text in enumerate(sample)])
    index = host.CompNegIndex(folder)
    found = index.retriever()(frame)
    assert found.equals(index.retriever(read="plain")(frame))
    assert set(found["qid"]) == set(frame["qid"])


def test_rest(sample, folder):
    client = make_client(folder)
    for text in sample:
        asked, plain = (
            client.get("/v1/films/search", params={"query": text, "read": read}) for read in ("expression", "plain")
        )
        assert asked.status_code == plain.status_code == 200, asked.text
        assert asked.json()["candidates"] == plain.json()["candidates"], text
