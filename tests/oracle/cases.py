"""Random collections and queries, the engine's ranking of them, and its comparison with the oracle's."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random

from oracle import Oracle, UndeterminedError

from pyserini_compneg import ImpactIndexer, Operators, SignedImpactSearcher
from pyserini_compneg.expression import Atom, Difference, Exclusion, Intersection, Union
from pyserini_compneg.support.errors import CompNegError

UNIT = 192  # settings and means take whole parts of it
UNIONS = ["dismax", "maxpool", "addition"]
INTERSECTIONS = ["cpt-maxpool", "cpt", "cpt-l2", "cpt-pairs", "maxpool", "addition"]
DIFFERENCES = ["disentangled", "damped", "subtraction", "nrf", "constant", "orthogonal", "elementwise", "ignore"]
EXCLUSIONS = ["words", "words", "words", "score", 0.2, 0.8, "any"]
PLAIN = ["and", "and", "or", "or", "not", "not"]  # may stand anywhere
KINDS = [*PLAIN, "and!", "not!"]
WHOLE, COARSE = 1.0, 1 / 512  # the first rounds nothing, the second almost everything
COLLECTIONS, QUERIES = 40, 25  # in an index, and of a collection


def draw_vector(random, terms, signed):
    """A vector of an atom; one in eight has no term."""
    size = 0 if random.random() < 0.12 else random.randint(1, min(7, len(terms)))
    signs = [1, 1, -1] if signed else [1]
    return {term: UNIT * random.choice([1, 1, 2, 3, 5]) * random.choice(signs) for term in random.sample(terms, size)}


def draw_document(random, terms, signed, flat):
    """The impacts of a document; few values, so that many tie, or a single one, so that documents form a class."""
    signs = [1, 1, 1, -1] if signed else [1]
    size, values = random.randint(1, len(terms)), [1] if flat else [1, 1, 2, 3, 7]
    return {term: random.choice(values) * random.choice(signs) for term in random.sample(terms, size)}


def draw_expression(random, names, depth, kinds=KINDS, joined=False):
    """An expression of up to so many levels, of some kinds; an OR in an AND has neither NOT! nor AND!."""
    if depth == 0 or random.random() < 0.15:
        return random.choice(names)
    kind = random.choice(kinds)
    if kind in ("not", "not!"):
        right = [other for other in PLAIN if other in kinds and (kind == "not" or other != "not")]
        left = draw_expression(random, names, depth - 1, kinds, joined)
        return (kind, left, draw_expression(random, names, depth - 1, right, True))
    if kind == "or" and joined:
        kinds = [other for other in PLAIN if other in kinds]
    joined = joined or kind != "or"
    count = random.choice([2, 2, 2, 3, 3, 4, 5])
    return (kind, *(draw_expression(random, names, depth - 1, kinds, joined) for _ in range(count)))


def draw_words(random, vectors):
    """Which terms the encoder calls words of each atom, among them terms that its vector lacks; None if it does not."""
    every = sorted({term for vector in vectors.values() for term in vector})

    def drawn(vector):
        own, others = random.randint(0, min(3, len(vector))), random.sample(every, random.choice([0, 0, 0, 1]))
        return None if random.random() < 0.2 else [*random.sample(sorted(vector), own), *others]

    return {name: drawn(vector) for name, vector in vectors.items()}


def draw_case(random, documents, atoms, words, signed):
    """A query of a collection and how it is run."""
    settings = {
        "union": random.choice(UNIONS),
        "intersection": random.choice(INTERSECTIONS),
        "difference": random.choice(DIFFERENCES),
        "difference_weight": random.choice([None, None, None, 0.0, 0.25, 0.5, 1.0, 2.0]),
        "cpt_terms": random.choice([5, 5, 1, 2, 50]),
        "cpt_weight": random.choice([None, None, 0.25, 1.0, 2.0]),
        "exclusion": random.choice(EXCLUSIONS),
    }
    if settings["intersection"] != "cpt-maxpool":
        settings["cpt_weight"] = None
    if settings["difference"] == "ignore" or (
        settings["difference"] == "damped" and settings["difference_weight"] == 2
    ):
        settings["difference_weight"] = None
    expression = draw_expression(random, sorted(atoms), random.randint(0, 4))
    scale = random.choice([WHOLE] * 4 + [COARSE])
    k = random.choice([1, 3, 10, 1000])
    return dict(
        documents=documents,
        atoms=atoms,
        words=words,
        signed=signed,
        expression=expression,
        settings=settings,
        scale=scale,
        k=k,
    )


def draw_collection(random, name):
    """Documents and atoms whose terms are no other collection's, signed or not."""
    signed, flat, terms = random.random() < 0.4, random.random() < 0.3, [f"{name}{letter}" for letter in "abcdefgh"]
    documents = {
        f"{name}d{number:02}": draw_document(random, terms, signed, flat)
        for number in range(random.choice([3, 5, 8, 12, 20, 30]))
    }
    unknown = [*terms, f"{name}unknown"]
    negative = signed or random.random() < 0.2
    atoms = {f"{name}{letter}": draw_vector(random, unknown, negative) for letter in [*"ABCD", "E of two words"]}
    atoms[f"{name}Z"] = draw_vector(random, [f"{name}absent"], False)
    return documents, atoms, draw_words(random, atoms), signed


def draw_cases(seed):
    """The queries of one pair of indexes."""
    random, cases = Random(seed), []
    for number in range(COLLECTIONS):
        collection = draw_collection(random, f"c{number}")
        cases += [draw_case(random, *collection) for _ in range(QUERIES)]
    return cases


def engine_rankings(cases):
    """The hits that the engine finds for each case, all signed collections in one index and the others in another."""
    found = [[] for _ in cases]
    vectors, words = ({name: one for case in cases for name, one in case[kind].items()} for kind in ("atoms", "words"))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for signed, scale in [(signed, scale) for signed in (False, True) for scale in (WHOLE, COARSE)]:
            mine = [place for place, case in enumerate(cases) if case["signed"] == signed]
            if not mine:
                continue
            if not (folder / str(signed)).exists():
                with ImpactIndexer(folder / str(signed), "atoms", signed=signed, threads=1) as indexer:
                    for docid, impacts in {d: v for i in mine for d, v in cases[i]["documents"].items()}.items():
                        indexer.add(docid, impacts)
            searcher = SignedImpactSearcher(folder / str(signed), Lookup(vectors, words), weight_scale=scale)
            stack.enter_context(searcher)
            mine = [place for place in mine if cases[place]["scale"] == scale]
            nodes = {i: compose(searcher, cases[i]) for i in mine}
            for k in {cases[i]["k"] for i in mine}:
                same = [i for i in mine if cases[i]["k"] == k]
                hits = searcher.batch_search([nodes[i] for i in same], [str(i) for i in same], k)
                for place in same:
                    found[place] = [(hit.docid, hit.score) for hit in hits[str(place)]]
    return found


def compose(searcher, case):
    """The engine's scoring tree."""
    return searcher.compose([tree(case["expression"])], Operators(**case["settings"]))[0]


class Lookup:
    """The encoder of the atoms."""

    def __init__(self, vectors, words):
        self.vectors, self.told = vectors, words

    def encode_batch(self, texts):
        return [self.vectors[text] for text in texts]

    def words(self, texts):
        return [self.told[text] for text in texts]


def tree(expression):
    """The package's expression of an oracle's."""
    if isinstance(expression, str):
        return Atom(expression)
    kind, *operands = expression
    operands = [*map(tree, operands)]
    if kind.startswith("not"):
        return (Difference if kind == "not" else Exclusion)(*operands)
    return Union(tuple(operands)) if kind == "or" else Intersection(tuple(operands), strict=kind == "and!")


def fault(case, hits):
    """What is wrong with the engine's hits, or None; ties within the tolerance may swap."""
    collection = case["documents"], case["atoms"], case["words"]
    expected = Oracle(*collection, case["scale"], **case["settings"]).ranking(case["expression"])
    scores = {docid: (score, 1e-6 * size + 1e-9) for docid, score, size in expected}
    if len(hits) != min(case["k"], len(expected)) or not {docid for docid, _ in hits} <= set(scores):
        return f"expected {expected[: case['k']]}"
    if hits != sorted(hits, key=lambda hit: (-hit[1], hit[0])):
        return "not in order"
    for docid, score in hits:
        if abs(score - scores[docid][0]) > scores[docid][1]:
            return f"{docid} should score {scores[docid][0]}; expected {expected}"
    left_out = set(scores) - {docid for docid, _ in hits}
    if any(scores[docid][0] - scores[docid][1] > hits[-1][1] + scores[hits[-1][0]][1] for docid in left_out):
        return f"a better document is missing; expected {expected}"
    return None


def failures(cases, counts=None):
    """The cases that the engine answers wrongly, each with its fault; those that are not determined are counted."""
    counts = Counter() if counts is None else counts
    for case, hits in zip(cases, engine_rankings(cases), strict=True):
        try:
            wrong = fault(case, hits)
        except UndeterminedError:
            counts["undetermined"] += 1
            continue
        counts["compared"] += 1
        counts["with hits"] += bool(hits)
        if wrong:
            yield case, hits, wrong


def fails(case):
    """Whether a case fails alone."""
    try:
        return any(True for _ in failures([case]))
    except CompNegError:  # a part that was taken away was needed
        return False


def smaller(case):
    """Cases with less in them."""
    expression = case["expression"]
    yield from ({**case, "expression": other} for other in simplified(expression))
    for part in ("documents", "atoms"):
        for name, vector in case[part].items():
            rest = {other: value for other, value in case[part].items() if other != name}
            if part == "documents" and rest:
                yield {**case, part: rest}
            for term in vector if len(vector) > (part == "documents") else ():
                yield {**case, part: {**case[part], name: {t: w for t, w in vector.items() if t != term}}}
    for name, chosen in case["settings"].items():
        value = getattr(Operators(), name)
        if chosen != value and name != "difference":
            yield {**case, "settings": {**case["settings"], name: value}}
    if case["k"] < 1000:
        yield {**case, "k": 1000}


def simplified(expression):
    """Expressions with one part less."""
    if isinstance(expression, str):
        return
    kind, *operands = expression
    yield from operands
    for place, operand in enumerate(operands):
        if len(operands) > 2:
            yield (kind, *operands[:place], *operands[place + 1 :])
        yield from ((kind, *operands[:place], other, *operands[place + 1 :]) for other in simplified(operand))


def shrunk(case):
    """A smallest case that still fails."""
    while found := next((other for other in smaller(case) if fails(other)), None):
        case = found
    used = json.dumps(case["expression"])
    return {**case, "atoms": {name: vector for name, vector in case["atoms"].items() if f'"{name}"' in used}}


def report(case, hits, wrong):
    """A failing case for people, with the command that repeats it."""
    return f"{wrong}\n  found {hits}\n  python tests/oracle/run.py --case '{json.dumps(case)}'"
