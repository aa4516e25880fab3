import json
import random
from collections import Counter

import pytest
from refusals import refusal

from pyserini_compneg.expression import (
    TEMPLATES,
    Atom,
    Intersection,
    Union,
    from_marks,
    leaves,
    parse,
)
from pyserini_compneg.lab.training.composed_requests import composed_queries, named_atoms, tagged_request
from pyserini_compneg.support.errors import InputError


def split_stems(texts):
    return [text.lower().rstrip(".").split() for text in texts]


GROUP = {"a": "a red cup", "b": "a blue cup", "c": "a red hat"}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("cups", "atom: not as asked"),
        ({"name": " ", "documents": [1]}, "atom: not as asked"),
        ({"name": "cup", "documents": []}, "atom: not as asked"),
        ({"name": "cup", "documents": [4]}, "atom: a document that was not shown"),
        ({"name": "cup", "documents": [0]}, "atom: a document that was not shown"),
        ({"name": "cup", "documents": ["1"]}, "atom: a document that was not shown"),
        ({"name": "cup", "documents": [True]}, "atom: a document that was not shown"),
        ({"name": "a " * 9, "documents": [1]}, "atom: too long"),
        ({"name": "the", "documents": [1]}, "atom: its words are not in its documents"),
        ({"name": "cup", "documents": [1, 3]}, "atom: its words are not in its documents"),
        ({"name": " Known  ATOM", "documents": [1]}, "atom: given already"),
    ],
)
def test_atoms_that_are_not_used(entry, reason):
    rejected = Counter()
    entries = [entry, {"name": "the red cup", "documents": [1, 2, 1]}]
    atoms = named_atoms(json.dumps({"categories": entries}), GROUP, split_stems, {"known atom"}, rejected)
    assert atoms == {"the red cup": (frozenset("ab"), 0.75)}
    assert rejected == {reason: 1}


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"categories": {}}', '{"categories": []}', '{"categories": NaN}'])
def test_an_answer_without_atoms(answer):
    rejected = Counter()
    assert named_atoms(answer, GROUP, split_stems, set(), rejected) == {}
    assert rejected == {"atoms: not as asked": 1}


def test_a_word_of_all_documents_does_not_tell_them_apart():
    group = {"a": "a french film", "b": "a war film", "c": "a film"}
    entries = [{"name": "french film", "documents": [1]}, {"name": "film", "documents": [1, 2]}]
    entries += [{"name": "war film", "documents": [2, 3]}]
    rejected = Counter()
    atoms = named_atoms(json.dumps({"categories": entries}), group, split_stems, set(), rejected)
    assert atoms == {"french film": (frozenset("a"), 1.0)}
    assert rejected == {"atom: its words are not in its documents": 2}


def test_equal_atoms_of_an_answer_are_one():
    rejected = Counter()
    entries = [{"name": name, "documents": [number]} for number, name in enumerate(("red", " RED", "Red "), 1)]
    atoms = named_atoms(json.dumps({"categories": entries}), GROUP, split_stems, set(), rejected)
    assert atoms == {"red": (frozenset("a"), 1.0)}
    assert rejected == {"atom: given already": 2}


@pytest.mark.parametrize(
    ("expression", "text", "line"),
    [
        ("spy films", "Any  SPY films?", "Any [W SPY films]?"),
        ("spy films NOT comedies", "spy films, but no comedies", "[W spy films], but no [X comedies]"),
        ("spy films NOT comedies", "no comedies: spy films", "no [X comedies]: [W spy films]"),
        ("spy films AND comedies", "spy films that are comedies", "[W spy films] [AND that are] [W comedies]"),
        ("a OR b OR c", "c, b or a", "[W c][OR ,] [W b] [OR or] [W a]"),
        ("a AND b NOT c", "b and also a without c", "[W b] [AND and also] [W a] without [X c]"),
        ("films NOT spy films", "films, not spy films", "[W films], not [X spy films]"),
    ],
)
def test_a_request_is_tagged(expression, text, line):
    tagged, request = tagged_request(json.dumps({"request": text}), parse(expression))
    assert (tagged, request.text) == (line, " ".join(text.split()))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "request: not as asked"),
        (" ", "request: not as asked"),
        ("spy films, no comedy", "request: an atom is not in it"),
        ("spy films, no tragicomedies", "request: an atom is not in it"),
        ("spy films and comedies", "request: its words say another operator"),
        ("spy films or not comedies", "request: its words say another operator"),
        ("spy films, [no] comedies", "request: read otherwise"),
    ],
)
def test_requests_that_are_not_used(text, reason):
    told = refusal(tagged_request, json.dumps({"request": text}), parse("spy films NOT comedies"), error=InputError)
    assert told == reason


def test_a_bracket_in_a_request_of_one_atom():
    assert refusal(tagged_request, '{"request": "spy films [now]"}', Atom("spy films")) == "request: read otherwise"


def test_words_that_join_two_atoms_belong_to_neither():
    told = refusal(tagged_request, '{"request": "spy films or spy novels"}', parse("spy OR spy novels"))
    assert told == "request: other words join its atoms"
    assert refusal(tagged_request, '{"request": "spies thrillers"}', parse("spies AND thrillers")) == (
        "request: read otherwise"
    )


@pytest.mark.parametrize("seed", range(20))
def test_expressions_find_what_they_say_and_each_atom_matters(seed):
    draw, everything = random.Random(seed), frozenset("12345678")
    atoms = {name: frozenset(draw.sample(sorted(everything), draw.randint(1, 8))) for name in "abcd"}
    queries = list(composed_queries(atoms, everything, draw, Counter()))
    assert len({query.template for query in queries}) == len(queries)

    def found(expression, atoms):
        match expression:
            case Atom(text):
                return {one for one in everything if one in atoms[text]}
            case Union(operands):
                return {one for one in everything if any(one in found(other, atoms) for other in operands)}
            case Intersection(operands):
                return {one for one in everything if all(one in found(other, atoms) for other in operands)}
        return found(expression.left, atoms) - found(expression.right, atoms)

    for query in queries:
        names = [atom.text for atom in leaves(query.expression)]
        assert query.expression == TEMPLATES[query.template](tuple(map(Atom, names))) == from_marks(query.marked)
        assert query.documents == found(query.expression, atoms) != set()
        for name in names:
            assert found(query.expression, {**atoms, name: frozenset()}) != query.documents
            assert found(query.expression, {**atoms, name: everything}) != query.documents


def test_an_atom_that_is_read_otherwise_is_in_no_expression():
    rejected, everything = Counter(), frozenset("123")
    queries = composed_queries({"a</mark>": frozenset("1")}, everything, random.Random(1), rejected)
    assert [list(queries), rejected] == [[], {"expression: read otherwise": 1}]
    queries = composed_queries({"black AND white": frozenset("1")}, everything, random.Random(1), rejected)
    assert [query.expression for query in queries] == [Atom("black AND white")]
