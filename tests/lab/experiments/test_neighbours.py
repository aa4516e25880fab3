import math

from pyserini_compneg.lab.experiments.neighbours import WordNeighbours
from pyserini_compneg.support.files import iter_jsonl

TEXTS = ["war soldier gun", "war soldier", "war spy", "spy code gun", "spy", "the the war"] * 5 + ["film"] * 200


def cosine(a, b):
    holding = [[word in text.split() for text in TEXTS] for word in (a, b)]
    both = sum(x and y for x, y in zip(*holding, strict=True))
    return both / math.sqrt(sum(holding[0]) * sum(holding[1]))


def test_words_that_occur_in_the_same_documents():
    ranked = sorted(("soldier", "gun", "spy", "the"), key=lambda word: (-cosine("war", word), word))
    assert WordNeighbours(TEXTS).of(["war"]) == ranked


def test_only_what_is_closer_than_to_the_others():
    closer = [word for word in ("soldier", "gun", "the") if cosine("war", word) > cosine("spy", word)]
    assert cosine("war", "gun") < cosine("spy", "gun")
    assert sorted(WordNeighbours(TEXTS).of(["war"], other_than=["spy"])) == sorted(closer)


def test_neighbours_of_several_words():
    neighbours = WordNeighbours(TEXTS).of(["soldier", "code"])
    best = {word: max(cosine("soldier", word), cosine("code", word)) for word in ("war", "gun", "spy")}
    assert neighbours == sorted(best, key=lambda word: (-best[word], word))


def test_rare_and_unknown_words():
    for tanks, neighbours in ((4, []), (5, ["tank"])):
        assert WordNeighbours([*["tank turret"] * tanks, *TEXTS]).of(["turret"]) == neighbours
    assert WordNeighbours(TEXTS).of(["unheard"]) == []
    assert WordNeighbours(["", "a"]).of(["a"], ["a"]) == []


def test_words_of_many_documents_mean_nothing():
    texts = [f"the film of {word}" for word in ("war soldier", "war soldier", "war", "spy code", "spy")] * 5
    texts += ["the film"] * 200
    space = WordNeighbours(texts)
    assert space.of(["war"]) == ["soldier"]
    assert [word for word in ("the", "film", "war", "unheard") if space.is_common(word)] == ["the", "film"]


def test_neighbours_in_real_text(shared_data):
    films = [record for _, record in iter_jsonl(shared_data / "filmsets" / "documents.jsonl.gz")][:8000]
    space = WordNeighbours(f"{film['title']} {film['text']}" for film in films)
    assert {"army", "soldier"} & {*space.of(["war"])}
    assert {"is", "the", "film", "starring"}.isdisjoint(space.of(["comedy"], ["western"]))
