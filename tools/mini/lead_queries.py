"""Queries about films, with all their relevant documents: those of a split, and others that are made of the leads.

A lead says of which year a film is and of what kind: "$10 Raise is a 1935 American comedy film". So the documents of
`1930s comedy films` are known, and a model learns that 1935 means `1930s` from more decades and kinds than are judged.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pyserini_compneg.errors import TrainingError
from pyserini_compneg.expression import Atom, Difference, Expression, Intersection
from pyserini_compneg.expression.tree import leaves

_LEAST = 20
"""Documents of a kind or a decade that is asked for."""

_MOST = 400
"""Kinds are drawn by the root of their number of documents, of at most this number."""

_YEAR = re.compile(r"\b(18[89]\d|19\d\d|20[0-2]\d)\b")
_KIND = re.compile(r"\b(?:is|was) (?:an?|the) ([^.]{0,160}?)\b(?:film|movie|picture|serial|featurette)s?\b")
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_CLASS = re.compile(r"(?:(\d{4}s) )?([A-Za-z ]+) films")
_NO_KIND = frozenset(
    ("a", "also", "an", "and", "as", "at", "based", "by", "directed", "first", "for", "from", "her", "his", "in", "is")
    + ("its", "of", "on", "one", "or", "produced", "second", "starring", "that", "the", "third", "to", "was", "which")
    + ("with", "written")
)
_NOUNS = ("films", "films", "films", "films", "movies", "movies", "film")


class Lead(NamedTuple):
    """What a lead says first.

    Attributes:
        year: Its first year; empty if there is none.
        kinds: The words between "is a" and "film", and pairs of neighbours.
    """

    year: str
    kinds: frozenset[str]


def read_lead(text: str) -> Lead:
    r"""What the first 600 characters after the title say.

    >>> lead = read_lead("Ray\nRay is a 1935 spy comedy film of the 1930s.")
    >>> lead.year, sorted(lead.kinds)
    ('1935', ['comedy', 'spy', 'spy comedy'])
    """
    lead = text.partition("\n")[2][:600] or text[:600]
    year, kind = _YEAR.search(lead), _KIND.search(lead)
    words = _WORD.findall(kind[1].lower()) if kind else []
    pairs = (f"{a} {b}" for a, b in zip(words, words[1:], strict=False) if not {a, b} & _NO_KIND)
    return Lead(year[1] if year else "", frozenset({*words} - _NO_KIND | {*pairs}))


class Asked(NamedTuple):
    """A query.

    Attributes:
        text: Its text.
        relevant: The numbers of all its relevant documents.
        misleading: Sets of documents that share a part of it; the relevant ones may be among them.
    """

    text: str
    relevant: AbstractSet[int]
    misleading: tuple[AbstractSet[int], ...] = ()


class LeadQueries:
    """Draws queries.

    Args:
        texts: The documents, each a title, a line break and a lead.
        judged: Queries with the numbers of their relevant documents.
        name: The name of the collection, for messages.

    Attributes:
        classes: The judged atoms that name a decade and a kind.
        names: The judged atoms that name someone, such as `films starring Gal Gadot`; their documents have the name.

    Raises:
        TrainingError: There are no such atoms, or the leads say neither decades nor kinds.
    """

    def __init__(self, texts: Sequence[str], judged: Iterable[tuple[Expression, Iterable[int]]], name: str) -> None:
        years, kinds = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
        leads = [read_lead(text) for text in texts]
        for number, lead in enumerate(leads):
            years[lead.year].add(number)
            for kind in sorted(lead.kinds):  # so that the same queries are drawn in every process
                kinds[kind].add(number)
        years.pop("", None)
        decades = defaultdict[str, set[int]](set)
        for year, numbers in years.items():
            decades[f"{year[:3]}0s"] |= numbers
        self._years, self._decades, self._kinds = map(_common, (years, decades, kinds))
        if not self._decades or not self._kinds:
            raise TrainingError(f"{name}: no decade or no kind of film has {_LEAST} leads; name FilmSets")
        self._leads = leads
        frequencies = Counter(word for text in texts for word in {*_WORD.findall(text.lower())})
        self._words = {word for word, frequency in frequencies.items() if frequency >= _LEAST}
        self._weights = [min(len(numbers), _MOST) ** 0.5 for numbers in self._kinds.values()]
        self._judged = defaultdict[str, set[int]](set)
        self.classes, self.names = list[Asked](), list[Asked]()
        for expression, relevant in judged:
            self._add(expression, set(relevant), texts)
        if not self.classes or not self.names:
            raise TrainingError(
                f"{name}: no query such as `1990s spy films`, or none such as `films starring Gal Gadot`; name FilmSets"
            )

    def _add(self, expression: Expression, relevant: set[int], texts: Sequence[str]) -> None:
        """Takes a judged query; of a composed one, its documents belong to the kinds that all of them have."""
        match expression:
            case Atom(text):
                atoms = [text]
            case Intersection():
                atoms = [atom.text for atom in leaves(expression)]
            case Difference(left, _):
                atoms = [atom.text for atom in leaves(left)] if isinstance(left, Atom | Intersection) else []
            case _:
                atoms = []
        for text in atoms:
            named = _CLASS.fullmatch(text)
            if named:
                self._judged[named[2].lower()] |= relevant
            if not isinstance(expression, Atom):
                continue
            if named and named[1]:
                decade, kind = self._decades.get(named[1], set()), self._kinds.get(named[2].lower(), set())
                self.classes.append(Asked(text, relevant, (kind or relevant, decade, decade)))
            elif not named and (naming := _naming(text, relevant, texts)):
                self.names.append(Asked(text, naming))

    def made(self, draw: random.Random) -> Asked:
        """A query that is made of the leads."""
        while True:
            decade = draw.choice(list(self._decades))
            if draw.random() < 0.12:
                kind = draw.choice(list(self._judged))
                asked = self._phrased(draw, kind, self._judged[kind] | self._kinds.get(kind, set()), decade)
            else:
                kind = draw.choices(list(self._kinds), self._weights)[0]
                asked = self._phrased(draw, kind, self._kinds[kind], decade)
            if asked:
                return asked

    def made_of(self, number: int, draw: random.Random) -> Asked | None:
        """A query that is made of a document's lead; None if the lead has no common decade and kind.

        A year in it is a drawn one, so it asks for other documents of the kind.
        """
        lead = self._leads[number]
        kinds, decade = sorted(lead.kinds & self._kinds.keys()), f"{lead.year[:3]}0s"
        if not kinds or decade not in self._decades:
            return None
        kind = draw.choice(kinds)
        return self._phrased(draw, kind, self._kinds[kind], decade)

    def _phrased(self, draw: random.Random, kind: str, of_kind: set[int], decade: str) -> Asked | None:
        """A query for a kind, a decade or both; None if fewer than two documents are both."""
        noun, form = draw.choice(_NOUNS), draw.random()
        name = kind.replace("-", " ") if draw.random() < 0.5 else kind
        plural = _plural(name)
        things = plural if plural.split()[-1] in self._words and draw.random() < 0.3 else f"{name} {noun}"
        when = decade[2:] if "1920s" <= decade <= "1990s" and draw.random() < 0.15 else decade
        of_decade = self._decades[decade]
        if form < 0.2:
            return Asked(things, of_kind)
        if form < 0.28:
            return Asked(draw.choice((f"{when} {noun}", f"{noun} of the {when}")), of_decade)
        if form < 0.33 and self._years:
            year, of_year = draw.choice(list(self._years.items()))
            of_decade = self._decades.get(f"{year[:3]}0s", of_year)
            text = draw.choice((f"{year} {things}", f"{things} from {year}"))
            asked = Asked(text, of_year & of_kind, (of_decade & of_kind,))
        else:
            text = draw.choice(
                (f"{when} {things}", f"{when} {things}", f"{things} of the {when}", f"{things} from the {when}")
            )
            asked = Asked(text, of_decade & of_kind, (of_kind, of_decade, of_decade))
        return asked if len(asked.relevant) > 1 else None


def _plural(kind: str) -> str:
    """The plural of a kind, if it is a noun: it may be no word.

    >>> _plural("spy comedy"), _plural("thriller")
    ('spy comedies', 'thrillers')
    """
    return re.sub("(?<=[^aeiou])y$", "ie", kind) + "s"


def _naming(text: str, relevant: set[int], texts: Sequence[str]) -> set[int]:
    """The relevant documents that have all names of a query: its words with a capital, after the first."""
    names = [word for word in text.split()[1:] if word[0].isupper()]
    return {number for number in relevant if names and all(name in texts[number] for name in names)}


def _common(sets: Mapping[str, set[int]]) -> dict[str, set[int]]:
    return {name: numbers for name, numbers in sets.items() if len(numbers) >= _LEAST and len(name) > 1}


def hard_documents(asked: Asked, best: Sequence[int], draw: random.Random) -> Iterator[int]:
    """Documents that are not relevant: of BM25's best, and of those that share a part of the query.

    Args:
        asked: The query.
        best: BM25's best documents.
        draw: The draw.
    """
    wrong = [number for number in best if number not in asked.relevant]
    yield from draw.sample(wrong, min(1 if asked.misleading else 2, len(wrong)))
    for pool in draw.sample(asked.misleading, min(2, len(asked.misleading))):
        if others := sorted(pool - asked.relevant):
            yield draw.choice(others)
