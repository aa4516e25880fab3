"""How often the first results contain wanted and unwanted words, the measures of negation in Widdows 2003.

``positive_terms`` are the words of the wanted part. ``negated_terms`` are the words of the excluded part, without words
of the wanted part. ``negated_neighbours`` are the ten nearest neighbours of the negated terms, among words that are
closer to them than to the positive terms. ``negated_synonyms`` are synonyms of the excluded part that are not synonyms
of the wanted part. A measure is the share of these words among all words of the first 20 documents. Words of more than
a tenth of the documents, such as "of", are ignored. A query must have words of all kinds except synonyms, whose share
may be 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from pyserini_compneg.eval import Run, term_frequencies, words_of
from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Filter
from pyserini_compneg.lab.experiments.inputs import SYNONYMS
from pyserini_compneg.lab.experiments.word_space import WordNeighbours, WordSpace
from pyserini_compneg.support.errors import InputError, in_one_line
from pyserini_compneg.topics import Topic

WORDNET = Path("/usr/share/wordnet")
"""The folder in which Debian's package wordnet-base puts the files."""

_COUNTED_DOCUMENTS = 20
_PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")


class TermMeasures:
    """The values of ``TERM_MEASURES``. Without a folder of WordNet's files, synonyms are left out."""

    def __init__(
        self,
        texts: Mapping[str, str],
        topics: Sequence[Topic],
        neighbours: WordNeighbours | WordSpace | None = None,
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
            negated = [word for word in negated if not (word in wanted or neighbours.is_common(word))]
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
        return qid in self._words

    def values(self, run: Run, qids: Sequence[str], measures: Sequence[str]) -> dict[str, dict[str, float]]:
        """The values of some measures for some measured queries; 0 for a query without results."""
        return {qid: {name: self._value(run.get(qid, {}), self._words[qid][name]) for name in measures} for qid in qids}

    def _value(self, ranking: Mapping[str, float], words: Sequence[str]) -> float:
        if not words:
            return 0.0
        first = sorted(ranking, key=lambda docid: -ranking[docid])[:_COUNTED_DOCUMENTS]
        return term_frequencies([self._texts.get(docid, "") for docid in first], words).words


def _signed_atoms(expression: Expression | Filter | None, is_wanted: bool = True) -> Iterator[tuple[str, bool]]:
    """The texts of the atoms, and whether each is wanted."""
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


def synonyms_of(words: Collection[str], folder: Path = WORDNET) -> dict[str, list[str]]:
    """The synonyms of each lower-case word: all other words of its synsets, in the order of WordNet's files.

    Source: the manual page wndb(5WN) of WordNet 3 describes the formats.
    """
    found: dict[str, dict[str, None]] = {word: {} for word in words}
    for part in _PARTS_OF_SPEECH:
        for word, offsets in _wordnet_index(folder / f"index.{part}", found):
            for synonym in _synset_words(folder / f"data.{part}", offsets):
                found[word][synonym] = None
    return {word: [one for one in others if one != word] for word, others in found.items()}


def check_wordnet(folder: Path) -> None:
    """Raises an error if a folder lacks one of WordNet's files, before hours of runs."""
    for name in (f"{kind}.{part}" for part in _PARTS_OF_SPEECH for kind in ("index", "data")):
        if not (folder / name).is_file():
            remedy = "install Debian's package wordnet-base, or name the folder of WordNet's files with --wordnet"
            raise InputError(f"no file {name} of WordNet", where=folder, remedy=remedy)


def _wordnet_index(path: Path, words: Collection[str]) -> Iterator[tuple[str, list[int]]]:
    """The words found in an index file, with the places of their synsets in the data file."""
    with in_one_line(InputError, "is not a file of WordNet", where=path):
        for line in path.read_text(encoding="utf-8").splitlines():
            lemma = line.partition(" ")[0]
            if lemma in words:
                fields = line.split()
                yield lemma, [int(offset) for offset in fields[-int(fields[2]) :]]


def _synset_words(path: Path, offsets: Collection[int]) -> Iterator[str]:
    """The words of synsets: a hexadecimal count is the fourth field, followed by each word and a number."""
    with in_one_line(InputError, "is not a file of WordNet", where=path), path.open("rb") as data:
        for offset in offsets:
            data.seek(offset)
            fields = data.readline().decode().split()
            if int(fields[0]) != offset:
                raise ValueError(f"no synset at byte {offset}")
            for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
                yield word.partition("(")[0].replace("_", " ").casefold()
