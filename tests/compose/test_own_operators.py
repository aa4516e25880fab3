"""Operators of users: functions, and entry points of other packages."""

import json
import sys

import film_index
import pytest
from lookup_encoder import LookupEncoder
from refusals import refusal
from served import make_client

from pyserini_compneg import Operators, SignedImpactSearcher, compose_query, parse
from pyserini_compneg.compose import Linear, operator_names
from pyserini_compneg.display import explain_query
from pyserini_compneg.support.errors import EncodingError, QueryError

ENCODER = LookupEncoder({"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0, "z": 1.0}, "c": {"z": 3.0}})

MODULE = """
def halved(a, negatives, weight=0.5):
    b = {term for vector in negatives for term in vector}
    return {term: own * (1 - weight) if term in b else own for term, own in a.items()}

def smallest(vectors):
    vectors = list(vectors)
    return {term: min(one[term] for one in vectors) for term in vectors[0] if all(term in one for one in vectors)}

def broken(vectors):
    raise AssertionError

number = 1
"""
ENTRY_POINTS = """[pyserini_compneg.operators]
difference.halved = own_operators_of_a_user:halved
difference.subtraction = own_operators_of_a_user:broken
intersection.smallest = own_operators_of_a_user:smallest
union.smallest = own_operators_of_a_user:smallest
union.number = own_operators_of_a_user:number
union.absent = own_operators_of_nobody:absent
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder with a package of a user, as pip installs one."""
    (tmp_path / "own_operators_of_a_user.py").write_text(MODULE)
    about = tmp_path / "own_operators-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-operators\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    operator_names._installed.cache_clear()
    yield tmp_path
    operator_names._installed.cache_clear()
    sys.modules.pop("own_operators_of_a_user", None)


def composed(text, encoder=ENCODER, **operators):
    return compose_query(parse(text), encoder, Operators(**operators))


def scaled(**weights):
    return Linear({term: 100 * weight for term, weight in weights.items()})


def without_shared(a, negatives, weight=0.25):
    assert weight in (0.25, 2)
    return {term: own for term, own in a.items() if not any(term in b for b in negatives)} | {"λ": weight}


def test_functions_are_operators():
    assert composed("a NOT b", difference=without_shared).weights == {"y": 100.0, "λ": 25.0}
    assert composed("a NOT b", difference=without_shared, difference_weight=2).weights == {"y": 100.0, "λ": 200.0}
    assert composed("a AND b", intersection=lambda vectors: next(iter(vectors))).weights == {"x": 200.0, "y": 100.0}
    assert composed("a OR b", union=lambda vectors: [*vectors][1]).weights == {"x": 100.0, "z": 100.0}


def test_names_of_installed_packages_are_operators(installed):
    assert composed("a NOT b", difference="halved").weights == {"x": 100.0, "y": 100.0}
    assert composed("a AND b", intersection="smallest").weights == {"x": 100.0}
    assert composed("a OR b", union="smallest").weights == {"x": 100.0}
    assert composed("a NOT b", difference="subtraction").weights == {"x": 100.0, "y": 100.0, "z": -100.0}  # ours
    assert "cpt, cpt-l2, cpt-pairs, cpt-maxpool, addition, maxpool, vanilla, smallest, got 'x'" in refusal(
        Operators, intersection="x", error=QueryError
    )


def test_a_tree_is_lowered_by_the_change_of_its_vector():
    """As other operators of vectors do where A is an AND."""
    by_function = composed("(a AND c) NOT b", difference=lambda a, negatives, weight: {**a, "x": a["x"] - 1})
    assert by_function.children[-1].weights["x"] == -100.0


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ({"union": lambda: {}}, "union <lambda>: cannot be called with 1 argument: too many positional arguments"),
        ({"intersection": max}, "intersection max: cannot be called with 1 argument: no signature found for builtin"),
        (
            {"difference": lambda a, negatives: a},
            "difference <lambda>: cannot be called with 3 arguments: too many positional arguments",
        ),
        *(
            (
                {"difference": lambda a, negatives, weight=default: a},
                f"difference <lambda>: the default of its third argument must be a finite number, got {default!r}",
            )
            for default in (float("nan"), float("inf"), None, "0.5", True)
        ),
        ({"union": lambda vectors: None}, "union <lambda>: must give a dictionary of terms and weights, got None"),
        ({"union": "number"}, "union number: own_operators_of_a_user:number must be a function, got 1"),
        (
            {"union": "absent"},
            "union absent: cannot be loaded from own_operators_of_nobody:absent: No module named "
            "'own_operators_of_nobody'",
        ),
        ({"union": 3}, "union must be one of maxpool, addition, dismax, vanilla, smallest, number, absent, got 3"),
    ],
)
def test_bad_operators_are_refused(installed, operators, message):
    assert refusal(composed, "a OR b", **operators, error=QueryError).startswith(message)


def test_weights_of_own_operators_are_finite():
    assert refusal(composed, "a OR b", union=lambda _: {"x": float("nan")}, error=EncodingError).startswith("union")


def test_they_search_and_are_named(tmp_path, installed, capsys):
    folder = film_index.build(tmp_path, store_raw=True)
    with SignedImpactSearcher(folder, operators=Operators(difference=without_shared)) as searcher:
        assert searcher.search("spy NOT comedy")
        assert explain_query(searcher, parse("spy NOT comedy")).operators.names["difference"] == "without_shared"
    with film_index.start(
        *("--index", folder, "--query", "western NOT comedy", "--difference", "halved"),
        env={"PYTHONPATH": f"{installed}:{':'.join(filter(None, sys.path))}"},
    ) as command:
        out, err = command.communicate()
    assert command.returncode == 0, err
    with make_client(folder) as client:
        answer = client.get("/v1/films/search?query=western NOT comedy&difference=halved").json()
        assert answer["query"]["operators"]["difference"] == "halved"
        assert answer["query"]["operators"]["difference_weight"] == 0.5
        listed = json.dumps(client.get("/openapi.json").json())
        assert '"halved"' in listed
        assert client.get("/v1/films/search?query=a NOT b&difference=own_operators_of_a_user:halved").status_code == 400
