import math

import pytest
from refusals import refusal
from wordnet_files import write_wordnet

from pyserini_compneg.expression import parse
from pyserini_compneg.lab.experiments.inputs import SYNONYMS, TERM_MEASURES
from pyserini_compneg.lab.experiments.term_measures import TermMeasures, check_wordnet, synonyms_of
from pyserini_compneg.lab.experiments.word_space import WordNeighbours
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics import Topic

COUNTED = [name for name in TERM_MEASURES if name != SYNONYMS]  # which need WordNet
KINDS = ["a spy film", "a spy comedy film", "a comedy joke joke", "a joke comedy"]
TEXTS = {f"d{n}": text for n, text in enumerate(KINDS * 5)} | {f"e{n}": "a western" for n in range(200)}
WAR = ["war soldier gun", "war soldier", "war spy", "spy code gun", "spy", "the the war"] * 5 + ["film"] * 200


def measures(*queries):
    return TermMeasures(TEXTS, [Topic(f"q{n}", query, parse(query)) for n, query in enumerate(queries)])


def test_shares_of_words_in_the_first_documents():
    run = {"q0": {"d0": 3.0, "d1": 2.0, "d2": 1.0}}
    found = measures("a spy NOT (a comedy OR spy)").values(run, ["q0"], COUNTED)
    # 11 words. "a" is in all documents; comedy, which is a joke's neighbour, twice; spy twice.
    assert found == {"q0": {"positive_terms": 2 / 11, "negated_terms": 2 / 11, "negated_neighbours": 2 / 11}}


def test_the_documents_beyond_the_twentieth_are_left_out():
    texts = {f"d{n:02}": "spy" if n < 20 else "comedy joke" for n in range(30)} | {f"e{n}": "x" for n in range(300)}
    found = TermMeasures(texts, [Topic("q", "q", parse("spy NOT comedy"))])
    ranking = {docid: -float(number) for number, docid in enumerate(texts) if number < 30}
    turned = {docid: -score for docid, score in ranking.items()}
    for run, share in ((ranking, 0.0), (turned, 10 / 30)):
        assert found.values({"q": run}, ["q"], ["negated_terms"]) == {"q": {"negated_terms": share}}


def test_queries_that_cannot_be_measured():
    found = measures("spy", "spy NOT spy", "spy AND comedy", "spy NOT a", "a NOT comedy", "spy NOT comedy")
    assert [found.measured(f"q{n}") for n in range(6)] == [False] * 5 + [True]
    assert found.values({}, ["q5"], COUNTED) == {"q5": dict.fromkeys(COUNTED, 0.0)}


def cosine(a, b):
    holding = [[word in text.split() for text in WAR] for word in (a, b)]
    both = sum(x and y for x, y in zip(*holding, strict=True))
    return both / math.sqrt(sum(holding[0]) * sum(holding[1]))


@pytest.mark.parametrize(
    ("words", "others", "known"),
    [
        (["war"], [], ["soldier", "gun", "spy", "the"]),
        (["war"], ["spy"], ["soldier", "the"]),  # the gun is nearer to the spy
        (["soldier", "code"], [], ["war", "gun", "spy"]),
        (["unheard"], [], []),
    ],
)
def test_neighbours_are_words_of_the_same_documents(words, others, known):
    best = {word: max(cosine(one, word) for one in words) for word in known}
    assert all(best[word] > cosine(other, word) for word in known for other in others)
    assert WordNeighbours(WAR).of(words, others) == sorted(best, key=lambda word: (-best[word], word))


def test_rare_and_common_words_mean_nothing():
    for tanks, neighbours in ((4, []), (5, ["tank"])):
        assert WordNeighbours([*["tank turret"] * tanks, *WAR]).of(["turret"]) == neighbours
    assert WordNeighbours(["", "a"]).of(["a"], ["a"]) == []
    texts = [f"the film of {word}" for word in ("war soldier", "war soldier", "war", "spy code", "spy")] * 5
    space = WordNeighbours([*texts, *["the film"] * 200])
    assert space.of(["war"]) == ["soldier"]
    assert [word for word in ("the", "film", "war", "unheard") if space.is_common(word)] == ["the", "film"]


def test_synonyms_are_words_of_all_synsets_of_all_parts_of_speech(tmp_path):
    folder = write_wordnet(tmp_path / "wn")
    found = synonyms_of(["suit", "suited", "nowhere"], folder)
    assert found == {"suit": ["lawsuit", "case", "suit of clothes", "accommodate"], "suited": ["apt"], "nowhere": []}
    check_wordnet(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "index.noun",
            b"suit n x\n",
            "index.noun: is not a file of WordNet: invalid literal for int() with base 10: 'x'",
        ),
        ("data.noun", b"shorter\n", "data.noun: is not a file of WordNet: "),
        ("index.noun", b"\xff\xfe", "index.noun: is not a file of WordNet: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_files_of_another_release(tmp_path, name, content, message):
    folder = write_wordnet(tmp_path / "wn")
    (folder / name).write_bytes(content)
    assert refusal(synonyms_of, ["suit"], folder, error=InputError).startswith(f"{folder}/{message}")
