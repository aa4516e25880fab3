from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.results import Point
from pyserini_compneg.lab.experiments.text_statistics import text_statistics
from pyserini_compneg.topics import Topic


def topics(*texts):
    return [Topic(f"q{number}", text, Atom(text)) for number, text in enumerate(texts)]


def test_pairs_by_their_lengths_and_different_words():
    questions = topics("Who was seen?", "Who was not seen?", "What is it, then?", "what IS it")
    passages = [SourceDocument(str(n), text, "") for n, text in enumerate(("a b c", "a b d d d", "e e", "e"))]
    values, curve = text_statistics("nevir", questions, passages)
    assert values == {
        "pairs": 2,
        "words of question 1": 3.5,
        "words of question 2": 3.5,
        "difference of the questions' lengths": 1.0,
        "words of passage 1": 2.5,
        "words of passage 2": 3.0,
        "difference of the passages' lengths": 1.5,
    }
    assert curve.counted == "pairs"
    assert curve.series == {
        "questions": (Point(1, 1.0, 1.0, 1.0, 2),),  # "not"; "then"
        "passages": (Point(0, 0.5, 0.5, 0.5, 2), Point(2, 0.5, 0.5, 0.5, 2)),  # none; "c" and "d"
    }


def test_queries_by_their_lengths():
    documents = [SourceDocument(docid, "", "") for docid in "ab"]
    values, curve = text_statistics("excluir", topics("a b c d", "a b c d e", "a b c d e f g h i"), documents)
    assert values == {"queries": 3, "words of a query": 6.0, "documents": 2}
    shares = {point.x: round(point.y, 3) for point in curve.series["all"]}
    assert shares == {0: 0.333, 5: 0.667}
