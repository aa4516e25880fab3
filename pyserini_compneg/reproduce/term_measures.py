"""How often the first results hold what was asked for, and what was not, as Widdows 2003 measures negation.

``positive_terms`` are the words of what is wanted, ``negated_terms`` those of what is not, without words of what is
wanted, and ``negated_neighbours`` the ten nearest neighbours of the latter among words that are closer to them than to
what is wanted. Each is the share of these words among all words of the first 20 documents. Words of more than a tenth
of the documents, such as "of", are neither. Queries that have no words of one of the kinds cannot be measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.eval import term_frequencies
from pyserini_compneg.eval.neighbours import WordNeighbours
from pyserini_compneg.eval.runs import Run
from pyserini_compneg.eval.term_frequencies import words_of
from pyserini_compneg.expression import Atom, Difference, Expression

TERM_MEASURES = ("positive_terms", "negated_terms", "negated_neighbours")
LOWER_IS_BETTER = ("negated_terms", "negated_neighbours")

_DOCUMENTS = 20


class TermMeasures:
    """Computes these measures for runs.

    Args:
        texts: The texts of all documents by id.
        topics: The queries.
    """

    def __init__(self, texts: Mapping[str, str], topics: Sequence[Topic]) -> None:
        self._texts = texts
        neighbours = WordNeighbours(texts.values())
        self._words: dict[str, dict[str, list[str]]] = {}
        for topic in topics:
            wanted, unwanted = (
                [word for word in side if not neighbours.is_common(word)] for side in _sides(topic.expression)
            )
            words = {
                "positive_terms": wanted,
                "negated_terms": unwanted,
                "negated_neighbours": neighbours.of(unwanted, wanted) if unwanted else [],
            }
            if all(words.values()):
                self._words[topic.qid] = words

    def measured(self, qid: str) -> bool:
        """Whether a query has words of all kinds."""
        return qid in self._words

    def values(self, run: Run, qids: Sequence[str], measures: Sequence[str]) -> dict[str, dict[str, float]]:
        """The values of some of the measures for some queries that are measured; 0 where a query has no results."""
        return {qid: {name: self._value(run.get(qid, {}), self._words[qid][name]) for name in measures} for qid in qids}

    def _value(self, ranking: Mapping[str, float], words: Sequence[str]) -> float:
        first = sorted(ranking, key=lambda docid: -ranking[docid])[:_DOCUMENTS]
        return term_frequencies([self._texts.get(docid, "") for docid in first], words).words


def _sides(expression: Expression | None) -> tuple[list[str], list[str]]:
    """The words of what is wanted, and those of only what is not."""
    sides: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for text, is_wanted in _atoms(expression):
        sides[is_wanted] |= dict.fromkeys(words_of(text))
    return list(sides[True]), [word for word in sides[False] if word not in sides[True]]


def _atoms(expression: Expression | None, is_wanted: bool = True) -> Iterator[tuple[str, bool]]:
    match expression:
        case None:
            return
        case Atom(text):
            yield text, is_wanted
        case Difference(left, right):
            yield from _atoms(left, is_wanted)
            yield from _atoms(right, not is_wanted)
        case _:
            for operand in expression.operands:
                yield from _atoms(operand, is_wanted)
