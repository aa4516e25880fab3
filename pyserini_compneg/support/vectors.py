"""Sparse vectors as plain mappings ``{term: weight}``, their basic operations, and pseudo-terms.

A vector contains no zero weights. Weights are finite. They are positive for ordinary learned sparse retrieval, and may
be negative in composed queries and for signed models. All functions are pure and keep the order of the left operand's
terms.

A pseudo-term is a term outside the vocabulary: the pair ``a∩b`` of two terms, or the complement ``¬t`` of a term.
Indexes contain pseudo-terms on request. The impact of a pair represents the joint occurrence of both terms (Krasakis et
al., Eq. 7). The impact of a complement is the magnitude of a negative weight, which Lucene cannot store under the term
itself.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from numbers import Real
from typing import NamedTuple, TypeGuard
from urllib.parse import quote

from pyserini_compneg.support.errors import EncodingError

SparseVector = Mapping[str, float]

PAIR_SIGN = "∩"
COMPLEMENT_SIGN = "¬"

PAIR_SCALE = 8
"""What the impacts of pairs in a new index are multiplied by, so that their rounding changes few rankings. They are at
most 8 * 2^20 then, and floats, in which stock Anserini scores, hold all whole numbers up to 2^24."""

_WHITE_SPACE = re.compile(r"[^\S\x85\xa0\u2007\u202f]")  # Lucene ends tokens at these, but not at no-break spaces
_ROUNDING = 2.0**-48  # sixteen units in the last place: the rounding error of a few additions


class TermSpan(NamedTuple):
    """A term of a text, and the place of its token, from ``start`` to before ``end``, in code points."""

    term: str
    start: int
    end: int


def checked(vector: Mapping[str, float], source: str) -> dict[str, float]:
    """Checks a vector and drops its zeros. Weights may be numbers of numpy.

    >>> checked({"bird": 1, "fly": 0}, "query 1")
    {'bird': 1.0}
    """
    result: dict[str, float] = {}
    for term, weight in vector.items():
        if not isinstance(term, str) or not term:
            raise EncodingError(f"a term must be a non-empty text, got {term!r}", where=source)
        if _WHITE_SPACE.search(term):
            what = f"the term {term!r} has white space, so no index holds it"
            raise EncodingError(what, where=source, remedy="weigh its words one by one")
        number = finite_number(weight)
        if number is None:
            raise EncodingError(f"the weight of {term!r} must be a finite number, got {weight!r}", where=source)
        if number:
            result[term] = number
    return result


def finite_number(value: object) -> float | None:
    """A finite real number as a float, or None. numpy compares its short floats in their own, smaller range."""
    if isinstance(value, bool) or not isinstance(value, (float, Real)):  # the test for float is fast
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError):  # a whole number of many digits, or numpy's timedelta64
        return None
    return number if math.isfinite(number) else None


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number. Unlike in Python, True and False are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def add(a: SparseVector, b: SparseVector, factor: float = 1.0) -> dict[str, float]:
    """a + factor * b. Terms that cancel, up to rounding, are dropped.

    >>> add({"a": 1.0, "b": 2.0}, {"b": 2.0, "c": 1.0}, -1.0)
    {'a': 1.0, 'c': -1.0}
    >>> add({"a": 0.1 + 0.2}, {"a": 0.3}, -1.0)
    {}
    """
    result = dict(a)
    for term, weight in b.items():
        own, other = result.get(term, 0.0), factor * weight
        total = own + other
        if abs(total) > _ROUNDING * max(abs(own), abs(other)):
            result[term] = total
        else:
            result.pop(term, None)
    return result


def scale(vector: SparseVector, factor: float) -> dict[str, float]:
    """factor * vector."""
    return {term: factor * weight for term, weight in vector.items() if factor * weight}


def dot(a: SparseVector, b: SparseVector) -> float:
    """The inner product, Krasakis et al., Eq. 4.

    >>> dot({"a": 2.0, "b": 1.0}, {"a": 3.0, "c": 5.0})
    6.0
    """
    if len(b) < len(a):
        a, b = b, a
    return math.fsum(weight * b[term] for term, weight in a.items() if term in b)


def norm(vector: SparseVector) -> float:
    """The Euclidean length.

    >>> norm({"a": 3.0, "b": -4.0})
    5.0
    """
    return math.hypot(*vector.values())


def max_pool(vectors: Iterable[SparseVector]) -> dict[str, float]:
    """The elementwise maximum, Krasakis et al., Eq. 10. A missing term counts as 0.

    >>> max_pool([{"a": 1.0, "b": -1.0}, {"a": 2.0}])
    {'a': 2.0}
    """
    pooled: dict[str, float] = {}
    holders: Counter[str] = Counter()
    count = 0
    for count, vector in enumerate(vectors, start=1):  # noqa: B007  # counts an iterator
        holders.update(vector.keys())
        for term, weight in vector.items():
            pooled[term] = max(pooled.get(term, weight), weight)
    return {term: weight for term, weight in pooled.items() if weight > 0 or (weight < 0 and holders[term] == count)}


def positive_part(vector: SparseVector) -> dict[str, float]:
    """The terms with a weight above 0."""
    return {term: weight for term, weight in vector.items() if weight > 0}


def without_terms(vector: SparseVector, others: Container[str]) -> dict[str, float]:
    """The vector without some terms.

    >>> without_terms({"birds": 1.0, "parrots": 2.0}, {"birds"})
    {'parrots': 2.0}
    """
    return {term: weight for term, weight in vector.items() if term not in others}


def top_terms(vector: SparseVector, count: int) -> dict[str, float]:
    """The ``count`` heaviest terms. Equal weights rank by the code points of their terms, for a reproducible choice.

    >>> top_terms({"b": 1.0, "a": 1.0, "c": 2.0}, 2)
    {'c': 2.0, 'a': 1.0}
    """
    return dict(sorted(vector.items(), key=lambda item: (-item[1], item[0]))[:count])


def pair_term(*terms: str) -> str:
    """The pseudo-term of two or more terms, in any order. The pair of a term with itself is the term.

    >>> pair_term("venezuela", "colombia"), pair_term("birds", "birds"), pair_term("c", "a", "b", "a")
    ('colombia∩venezuela', 'birds', 'a∩b∩c')
    """
    return PAIR_SIGN.join(sorted(set(terms)))


def complement_term(term: str) -> str:
    """The pseudo-term for the negative weights of a term.

    >>> complement_term("parrots")
    '¬parrots'
    """
    return COMPLEMENT_SIGN + term


def is_complement(term: str) -> bool:
    """Whether a term holds the negative weights of another term."""
    return term.startswith(COMPLEMENT_SIGN) and len(term) > 1


def is_pseudo_term(term: str) -> bool:
    """Whether a term is a pair or a complement. A sign alone is neither: BERT's vocabulary has both signs as words.

    >>> [is_pseudo_term(term) for term in ("birds", "¬", "∩", "¬birds", "birds∩colombia")]
    [False, False, False, True, True]
    """
    return is_complement(term) or PAIR_SIGN in term[1:-1]


def is_pair(term: str) -> bool:
    """Whether a term is the pair of two terms.

    >>> is_pair("birds∩colombia"), is_pair("∩"), is_pair("¬birds")
    (True, False, False)
    """
    return is_pseudo_term(term) and not is_complement(term)


def index_term(token: str) -> str:
    r"""The term for a token. White space, and the signs of pairs and complements, are percent-encoded.

    >>> index_term("##ing"), index_term("a b"), index_term("\u00ac"), index_term("\u00acx")
    ('##ing', 'a%20b', '¬', '%C2%ACx')
    """
    reserved = "¬∩" if is_pseudo_term(token) else ""
    return "".join(quote(char) if char.isspace() or char in reserved else char for char in token)
