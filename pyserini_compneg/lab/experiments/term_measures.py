"""How often the first results hold what was asked for, and what was not, as Widdows 2003 measures negation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pyserini_compneg.eval import term_frequencies
from pyserini_compneg.eval.runs import Run
from pyserini_compneg.eval.term_frequencies import words_of
from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Filter
from pyserini_compneg.lab.experiments.neighbours import WordNeighbours
from pyserini_compneg.lab.experiments.results import SYNONYMS
from pyserini_compneg.lab.experiments.synonyms import synonyms_of
from pyserini_compneg.topics.topics import Topic

_COUNTED_DOCUMENTS = 20


class Neighbours(Protocol):
    """A space of words, such as :class:`WordNeighbours`."""

    def is_common(self, word: str) -> bool:
        """Whether a word says nothing about a meaning."""
        ...

    def of(self, words: Collection[str], other_than: Collection[str] = ()) -> list[str]:
        """The words that are nearest to one of some words, and nearer to it than to any of other words."""
        ...


class TermMeasures:
    """The values of ``TERM_MEASURES``.

    ``positive_terms`` are the words of what is wanted, ``negated_terms`` those of what is not, without words of what is
    wanted, and ``negated_neighbours`` the ten nearest neighbours of the latter among words that are closer to them than
    to what is wanted. ``negated_synonyms`` are the synonyms of what is not wanted that are none of what is. Each
    measure is the share of these words among all words of the first 20 documents. Words of more than a tenth of the
    documents, such as "of", do not count. A query must have words of all kinds but the last; without synonyms their
    share is 0.

    Args:
        texts: The texts of all documents by id.
        topics: The queries.
        neighbours: The space that says which words are common, and which are near; by default that of the documents.
        wordnet: The folder of WordNet's files; None where synonyms are not asked for.

    Raises:
        InputError: Files that are missing, or none of WordNet's.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        topics: Sequence[Topic],
        neighbours: Neighbours | None = None,
        wordnet: Path | None = None,
    ) -> None:
        self._texts = texts
        neighbours = neighbours or WordNeighbours(texts.values())
        self._words: dict[str, dict[str, list[str]]] = {}
        for topic in topics:
            atoms = list(_signed_atoms(topic.expression))
            wanted, negated = (
                list(dict.fromkeys(word for text, is_wanted in atoms if is_wanted == side for word in words_of(text)))
                for side in (True, False)
            )
            negated = [word for word in negated if word not in wanted and not neighbours.is_common(word)]
            wanted = [word for word in wanted if not neighbours.is_common(word)]
            words = {
                "positive_terms": wanted,
                "negated_terms": negated,
                "negated_neighbours": neighbours.of(negated, wanted) if negated else [],
            }
            if all(words.values()):
                self._words[topic.qid] = words
        if wordnet is not None:
            self._add_synonyms(wordnet)

    def _add_synonyms(self, wordnet: Path) -> None:
        sides = [(words["positive_terms"], words["negated_terms"]) for words in self._words.values()]
        synonyms = synonyms_of({word for pair in sides for side in pair for word in side}, wordnet)
        for words, (wanted, negated) in zip(self._words.values(), sides, strict=True):
            known = {*negated, *wanted, *(synonym for word in wanted for synonym in synonyms[word])}
            found = dict.fromkeys(synonym for word in negated for synonym in synonyms[word])
            words[SYNONYMS] = [synonym for synonym in found if synonym not in known]

    def measured(self, qid: str) -> bool:
        """Whether a query has words of all kinds."""
        return qid in self._words

    def values(self, run: Run, qids: Sequence[str], measures: Sequence[str]) -> dict[str, dict[str, float]]:
        """The values of some of the measures for some queries that are measured; 0 where a query has no results."""
        return {qid: {name: self._value(run.get(qid, {}), self._words[qid][name]) for name in measures} for qid in qids}

    def _value(self, ranking: Mapping[str, float], words: Sequence[str]) -> float:
        if not words:
            return 0.0
        first = sorted(ranking, key=lambda docid: -ranking[docid])[:_COUNTED_DOCUMENTS]
        return term_frequencies([self._texts.get(docid, "") for docid in first], words).words


def _signed_atoms(expression: Expression | Filter | None, is_wanted: bool = True) -> Iterator[tuple[str, bool]]:
    """The texts of the atoms, each with whether it is wanted."""
    match expression:
        case None | Filter():
            return
        case Atom(text):
            yield text, is_wanted
        case Difference(left, right) | Exclusion(left, right):
            yield from _signed_atoms(left, is_wanted)
            yield from _signed_atoms(right, not is_wanted)
        case _:
            for operand in expression.operands:
                yield from _signed_atoms(operand, is_wanted)
