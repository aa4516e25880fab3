from pyserini_compneg.expression import parse
from pyserini_compneg.lab.experiments.results import SYNONYMS, TERM_MEASURES
from pyserini_compneg.lab.experiments.term_measures import TermMeasures
from pyserini_compneg.topics.topics import Topic

COUNTED = [name for name in TERM_MEASURES if name != SYNONYMS]  # which need WordNet
KINDS = ["a spy film", "a spy comedy film", "a comedy joke joke", "a joke comedy"]
TEXTS = {f"d{n}": text for n, text in enumerate(KINDS * 5)} | {f"e{n}": "a western" for n in range(200)}


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
    assert found.values({"q": ranking}, ["q"], ["negated_terms"]) == {"q": {"negated_terms": 0.0}}
    turned = {docid: -score for docid, score in ranking.items()}
    assert found.values({"q": turned}, ["q"], ["negated_terms"]) == {"q": {"negated_terms": 10 / 30}}


def test_queries_that_cannot_be_measured():
    found = measures("spy", "spy NOT spy", "spy AND comedy", "spy NOT a", "a NOT comedy", "spy NOT comedy")
    assert [found.measured(f"q{n}") for n in range(6)] == [False] * 5 + [True]
    assert found.values({}, ["q5"], COUNTED) == {"q5": dict.fromkeys(COUNTED, 0.0)}
