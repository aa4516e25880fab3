from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.expression import parse
from pyserini_compneg.reproduce.term_measures import TERM_MEASURES, TermMeasures

TEXTS = {f"d{n}": text for n, text in enumerate(["spy film", "spy comedy film", "comedy joke joke", "joke comedy"] * 5)}


def measures(*queries):
    return TermMeasures(TEXTS, [Topic(f"q{n}", query, parse(query)) for n, query in enumerate(queries)])


def test_shares_of_words_in_the_first_documents():
    run = {"q0": {"d0": 3.0, "d1": 2.0, "d2": 1.0}}
    found = measures("spy films NOT (comedy films OR spy)").values(run, ["q0"], TERM_MEASURES)
    # 8 words; spy twice (films is another word than film); comedy twice; jokes are closer to comedies than to spies.
    assert found == {"q0": {"positive_terms": 2 / 8, "negated_terms": 2 / 8, "negated_neighbours": 2 / 8}}


def test_the_documents_beyond_the_twentieth_are_left_out():
    texts = {f"d{n:02}": "spy" if n < 20 else "comedy" for n in range(30)}
    found = TermMeasures(texts, [Topic("q", "q", parse("spy NOT comedy"))])
    ranking = {docid: -float(number) for number, docid in enumerate(texts)}
    assert found.values({"q": ranking}, ["q"], ["negated_terms"]) == {"q": {"negated_terms": 0.0}}
    assert found.values({"q": {docid: -score for docid, score in ranking.items()}}, ["q"], ["negated_terms"]) == {
        "q": {"negated_terms": 0.5}
    }


def test_queries_without_such_words_or_results():
    found = measures("spy", "spy NOT spy", "spy AND comedy").values(
        {"q0": {"d0": 1.0}}, ["q0", "q1", "q2"], TERM_MEASURES
    )
    assert found["q0"] == {"positive_terms": 0.5, "negated_terms": 0.0, "negated_neighbours": 0.0}
    assert found["q1"] == found["q2"] == dict.fromkeys(TERM_MEASURES, 0.0)
