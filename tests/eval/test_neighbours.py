import math

from pyserini_compneg.eval.neighbours import WordNeighbours

TEXTS = ["war soldier gun", "war soldier", "war spy", "spy code gun", "spy", "the the war"] * 5


def cosine(a, b):
    holding = [[word in text.split() for text in TEXTS] for word in (a, b)]
    both = sum(x and y for x, y in zip(*holding, strict=True))
    return both / math.sqrt(sum(holding[0]) * sum(holding[1]))


def test_words_that_occur_in_the_same_documents():
    ranked = sorted(("soldier", "gun", "spy", "the"), key=lambda word: (-cosine("war", word), word))
    assert WordNeighbours(TEXTS).of(["war"]) == ranked
    assert WordNeighbours(TEXTS).of(["war"], count=2) == ranked[:2]


def test_only_what_is_closer_than_to_the_others():
    closer = [word for word in ("soldier", "gun", "the") if cosine("war", word) > cosine("spy", word)]
    assert cosine("war", "gun") < cosine("spy", "gun")
    assert sorted(WordNeighbours(TEXTS).of(["war"], other_than=["spy"])) == sorted(closer)


def test_neighbours_of_several_words():
    found = WordNeighbours(TEXTS).of(["soldier", "code"])
    best = {word: max(cosine("soldier", word), cosine("code", word)) for word in ("war", "gun", "spy")}
    assert found == sorted(best, key=lambda word: (-best[word], word))


def test_rare_and_unknown_words():
    texts = [*TEXTS, "war tank"]
    assert "tank" not in WordNeighbours(texts).of(["war"])
    assert "tank" in WordNeighbours(texts, least_documents=1).of(["war"])
    assert WordNeighbours(texts).of(["unheard"]) == []
    assert WordNeighbours(["", "a"], least_documents=1).of(["a"], ["a"]) == []
