"""Atoms, expressions and requests by a language model: what it is asked, and which answers are used.

A group is some similar documents. The model says of each atom which documents of the group it matches, so of an
expression of the group's atoms all matching documents of the group are known, by the algebra of sets.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

from pyserini_compneg.expression import (
    TEMPLATES,
    Atom,
    Difference,
    Expression,
    Intersection,
    Union,
    format_expression,
    from_marks,
    leaves,
    parse,
    verbalise,
)
from pyserini_compneg.lab.training.tagged_requests import FUNCTION_WORDS, TaggedRequest, parse_request
from pyserini_compneg.reading import TAGS, Span, answered_object, tagged_reading, words_of
from pyserini_compneg.support.errors import InputError, QueryError

ATOM_INSTRUCTIONS = """\
You get numbered documents. Name up to eight categories of them: noun phrases of two to six words, in words of the
documents. Name kinds of things, places, times, persons and subjects. Choose categories that overlap, and that some but
not all of the documents belong to. Give the numbers of all documents that belong to each.
For the documents
1. Ossan is a 1931 French war film set in Paris.
2. Dulce is a 1994 comedy film set in Paris.
3. Merle is a 1938 French comedy film by Ada Hall.
a good answer is the JSON object
{"categories": [{"name": "films set in Paris", "documents": [1, 2]}, {"name": "comedy films", "documents": [2, 3]},
{"name": "French films", "documents": [1, 3]}, {"name": "films of the 1930s", "documents": [1, 3]}]}
Answer with such an object.
"""
REQUEST_INSTRUCTIONS = """\
You write requests as people type them into a search box. You get the meaning of a request, its phrases, and a manner.
Write one request in English with exactly this meaning, in this manner. Use each phrase once, word for word. Say "or"
only where the meaning has it, and an exclusion ("but not", "without", "except") only where the meaning has "not".
For the meaning "comedy films that are not French films" a good answer is the JSON object
{"request": "Do you know any comedy films, but please no French films?"}
Answer with such an object.
"""

_MANNERS = ("a few words", "a whole sentence", "a question", "chat")
SHOWN = 600
"""How many characters of a document the model gets."""

_MOST_WORDS = 8
_LEAST_SHARE = 0.5
"""The least share of an atom's content words that each of its documents has, words that the whole group has apart."""

_JOINING = FUNCTION_WORDS | {"plus", "well"}
"""The words that may stand between two wanted atoms. Any other word would belong to one of them."""

_OR = re.compile(r"\bor\b|[/|]", re.IGNORECASE)
_NOT = re.compile(
    r"\b(?:not|no|nor|non|never|none|nothing|without|except\w*|exclud\w+|but|minus|besides|barring|avoid\w*|skip\w*|"
    r"(?:other|rather) than|(?:apart|aside) from|instead of|leav(?:e|ing) out|left out)\b|n['’]t\b",
    re.IGNORECASE,
)

Documents: TypeAlias = frozenset[str]
Stems: TypeAlias = Callable[[Sequence[str]], list[list[str]]]


class ComposedQuery(NamedTuple):
    """An expression of a group's atoms, and the documents of the group that match it."""

    template: str
    atoms: tuple[Atom, ...]
    documents: Documents

    @property
    def expression(self) -> Expression:
        return TEMPLATES[self.template](self.atoms)

    @property
    def marked(self) -> str:
        """The query as QUEST writes it."""
        return self.template.replace("_", "{}").format(*(f"<mark>{atom.text}</mark>" for atom in self.atoms))

    def is_read_again(self) -> bool:
        """Whether the expression is the same after it was written and read, as text and with marks."""
        try:
            return self.expression == parse(format_expression(self.expression)) == from_marks(self.marked)
        except QueryError:
            return False


def question_of_atoms(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {' '.join(text.split())[:SHOWN]}" for number, text in enumerate(texts, 1))


def question_of_request(query: ComposedQuery, draw: random.Random) -> str:
    phrases = "\n".join(f"Phrase: {atom.text}" for atom in leaves(query.expression))
    return f"Meaning: {verbalise(query.expression)}\n{phrases}\nManner: {draw.choice(_MANNERS)}"


def named_atoms(
    answer: str, group: Mapping[str, str], stems: Stems, known: set[str], rejected: Counter[str]
) -> dict[str, tuple[Documents, float]]:
    """The atoms of an answer, each with its documents and the share of its telling words that they have.

    Telling are content words that not all documents have. ``group`` has the texts of the documents. An atom in
    ``known`` is rejected, so an atom has all its documents in one group; new ones are added.
    """
    entries = _field(answer, "categories")
    if not isinstance(entries, list) or not entries:
        rejected["atoms: not as asked"] += 1
        return {}
    atoms: dict[str, tuple[Documents, float]] = {}
    docids = list(group)
    terms = dict(zip(docids, map(set, stems(list(group.values()))), strict=True))
    for entry in entries:
        try:
            text, matched = _atom(entry, docids)
        except InputError as error:
            rejected[error.what] += 1
            continue
        if plain(text) in known:
            rejected["atom: given already"] += 1
            continue
        (words,) = stems([" ".join(word for word in re.findall(r"\w+", text) if word.lower() not in FUNCTION_WORDS)])
        telling = [word for word in words if not all(word in one for one in terms.values())]
        shares = [sum(word in terms[docid] for word in telling) / max(len(telling), 1) for docid in matched]
        if min(shares) < _LEAST_SHARE:
            rejected["atom: its words are not in its documents"] += 1
            continue
        known.add(plain(text))
        atoms[text] = frozenset(matched), sum(shares) / len(shares)
    return atoms


def composed_queries(
    atoms: Mapping[str, Documents], everything: Documents, draw: random.Random, rejected: Counter[str]
) -> Iterator[ComposedQuery]:
    """An expression for each template that some atoms fit.

    Atoms fit if each of them matters: if it matched no document of the group, or all, others would match the whole.
    """
    for template, make in TEMPLATES.items():
        fitting = []
        for names in permutations(atoms, template.count("_")):
            operands = tuple(map(Atom, names))
            expression = make(operands)
            found = matching(expression, atoms)
            others = ({**atoms, name: all_or_none} for name in names for all_or_none in (frozenset[str](), everything))
            if all(matching(expression, other) != found for other in others):
                fitting.append(ComposedQuery(template, operands, found))
        if not fitting:
            continue
        query = draw.choice(fitting)
        if query.is_read_again():
            yield query
        else:
            rejected["expression: read otherwise"] += 1


def matching(expression: Expression, atoms: Mapping[str, Documents]) -> Documents:
    """The documents that match an expression.

    >>> sorted(matching(parse("a OR b NOT c"), {"a": frozenset("12"), "b": frozenset("34"), "c": frozenset("4")}))
    ['1', '2', '3']
    """
    match expression:
        case Atom(text):
            return atoms[text]
        case Difference(left, right):
            return matching(left, atoms) - matching(right, atoms)
        case Union(operands) | Intersection(operands):
            sets = [matching(operand, atoms) for operand in operands]
            return frozenset.union(*sets) if isinstance(expression, Union) else frozenset.intersection(*sets)
    raise AssertionError(f"no expression of a template: {expression!r}")


def tagged_request(answer: str, expression: Expression) -> tuple[str, TaggedRequest]:
    """The request of an answer, as a line of tags and parsed. Raises an InputError whose ``what`` is the reason.

    >>> tagged_request('{"request": "Spy films, but no comedies"}', parse("spy films NOT comedies"))[0]
    '[W Spy films], but no [X comedies]'
    """
    text = _field(answer, "request")
    if not isinstance(text, str) or not text.strip():
        raise InputError("request: not as asked")
    text = " ".join(text.split())
    line = _tagged(text, _spans(text, expression), expression)
    try:
        request = parse_request(line, "")
    except InputError:  # a bracket in the text
        raise InputError("request: read otherwise") from None
    tags = [TAGS[tag] for tag in request.tags(words_of(request.text))]
    expected = Atom(text) if isinstance(expression, Atom) else expression  # without an operator the text stays whole
    if _unordered(tagged_reading(request.text, tags).expression) != _unordered(expected):
        raise InputError("request: read otherwise")
    return line, request


def plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _field(answer: str, key: str) -> Any:
    """A field of the JSON object of an answer; None if there is no such field or object."""
    with suppress(InputError):
        return answered_object(answer).get(key)
    return None


def _atom(entry: object, docids: Sequence[str]) -> tuple[str, list[str]]:
    match entry:
        case {"name": str(name), "documents": [_, *_] as numbers} if name.strip():
            pass
        case _:
            raise InputError("atom: not as asked")
    if any(type(number) is not int or not 0 < number <= len(docids) for number in numbers):
        raise InputError("atom: a document that was not shown")
    text = " ".join(name.split())
    if len(text.split()) > _MOST_WORDS:
        raise InputError("atom: too long")
    return text, [docids[number - 1] for number in dict.fromkeys(numbers)]


def _spans(text: str, expression: Expression) -> dict[Atom, Span]:
    """The place of each atom in a request. Longer atoms are placed first, as they may have shorter ones in them."""
    spans: dict[Atom, Span] = {}
    for atom in sorted(leaves(expression), key=lambda one: -len(one.text)):
        phrase = r"\s".join(map(re.escape, atom.text.split()))
        places = (match.span() for match in re.finditer(rf"(?<!\w){phrase}(?!\w)", text, re.IGNORECASE))
        free = (span for span in places if all(span[1] <= start or end <= span[0] for start, end in spans.values()))
        if (place := next(free, None)) is None:
            raise InputError("request: an atom is not in it")
        spans[atom] = place
    return spans


def _tagged(text: str, spans: Mapping[Atom, Span], expression: Expression) -> str:
    """The request with tags. Its other words must say the operators of the expression."""
    is_difference, wanted = isinstance(expression, Difference), expression
    if isinstance(expression, Difference):
        wanted = expression.left
    excluded = {*leaves(expression)} - {*leaves(wanted)}
    placed = sorted((span, "X" if atom in excluded else "W") for atom, span in spans.items())
    joiner = "OR" if isinstance(wanted, Union) else "AND"
    pieces: list[str] = []
    other, done = "", 0
    for (span, tag), before in zip(placed, [None, *placed], strict=False):
        between = text[done : span[0]]
        other += f"{between}\n"
        words = between.strip()
        if before and before[1] == tag == "W" and words:
            if {*re.findall(r"\w+", words.lower())} - _JOINING:
                raise InputError("request: other words join its atoms")
            between = between.replace(words, f"[{joiner} {words}]")
        pieces += [between, f"[{tag} {text[slice(*span)]}]"]
        done = span[1]
    other += text[done:]
    if (bool(_OR.search(other)), bool(_NOT.search(other))) != (isinstance(wanted, Union), is_difference):
        raise InputError("request: its words say another operator")
    return "".join([*pieces, text[done:]])


def _unordered(expression: Expression) -> object:
    """Equal for expressions that differ only in the order of operands and in upper and lower case."""
    match expression:
        case Atom(text):
            return plain(text)
        case Difference(left, right):
            return _unordered(left), _unordered(right)
    return type(expression).__name__, frozenset(map(_unordered, expression.children))
