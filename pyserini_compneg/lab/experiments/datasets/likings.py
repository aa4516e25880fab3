"""Likings, a synthetic dataset: documents that list what a person likes, and queries of QUEST's seven templates.

Source: after LIMIT (Weller et al. 2025) and LIMIT+ (arXiv 2605.03824), whose files are not used; words and names are
this package's. A share of all persons likes a thing: 0.3 of them the first, and exponentially fewer the following
ones. What a query excludes is planted: half of those who satisfy the rest of the query are made to like it, too.
Judgements are read off the finished lists, so they are complete.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import yaml

from pyserini_compneg.eval import read_qrels
from pyserini_compneg.lab.experiments.datasets.conversion import new_folder, write_lines
from pyserini_compneg.lab.experiments.datasets.dataset import (
    Dataset,
    Split,
    collection_documents,
    find_splits,
    require_file,
)
from pyserini_compneg.support.options import COUNT, WHOLE, Number, check_options, option
from pyserini_compneg.topics import read_topics

SPLITS = ("words", "phrases")
"""Queries for things of one word, which no other thing has, and for things of two words, which others share."""

_PROVENANCE = "Likings, synthetic: made by the command datasets of this package; half of what NOT finds is planted"
_PHRASES = 500  # 38 % of all things
_MOST, _FALL = 0.3, 9  # of all persons a share of _MOST · e^(−_FALL · rank / things) likes a thing; ranks start at 0
_FEWEST, _ANSWERS = 2, 50  # how many answers a query has
_SMALLEST, _LARGEST = 200, 100_000
_DOCUMENTS = Number(
    f"a whole number from {_SMALLEST} to {_LARGEST}", COUNT.parse, lambda value: _SMALLEST <= value <= _LARGEST
)
People: TypeAlias = set[int]


class _Template(NamedTuple):
    wording: str
    answers: Callable[..., People]
    joined: int  # how many of its atoms must hold together


_TEMPLATES = {  # differences come first, because planting changes who likes what
    "_ that are not _": _Template("Who likes {} but not {}?", lambda a, b: a - b, 1),
    "_ that are also _ but not _": _Template(
        "Who likes {} and also likes {} but not {}?", lambda a, b, c: (a & b) - c, 2
    ),
    "_": _Template("Who likes {}?", lambda a: a, 1),
    "_ or _": _Template("Who likes {} or {}?", lambda a, b: a | b, 1),
    "_ or _ or _": _Template("Who likes {} or {} or {}?", lambda a, b, c: a | b | c, 1),
    "_ that are also _": _Template("Who likes {} and also likes {}?", lambda a, b: a & b, 2),
    "_ that are also both _ and _": _Template(
        "Who likes {} and also likes both {} and {}?", lambda a, b, c: a & b & c, 3
    ),
}


@dataclass(frozen=True, slots=True)
class LikingsSettings:
    """What a generated dataset depends on. Equal settings make equal files."""

    documents: int = option(
        50_000, f"likings: the number of documents, {_SMALLEST} to {_LARGEST} (default 50000)", _DOCUMENTS
    )
    queries: int = option(100, "likings: the most queries of a template and a split (default 100)", COUNT)
    seed: int = option(1, "likings: the seed of all draws (default 1)", WHOLE)

    def __post_init__(self) -> None:
        check_options(self)


def likings_files(settings: LikingsSettings) -> dict[str, Iterator[dict[str, Any]]]:
    """The lines of the dataset's files by their names: the documents, and the queries of each split."""
    draw = Random(settings.seed)
    names, things = _drawn_words(draw, settings.documents)
    everything = [thing for split in SPLITS for thing in things[split]]
    draw.shuffle(everything)
    likers: dict[str, People] = {}
    for rank, thing in enumerate(everything):
        share = _MOST * math.exp(-_FALL * rank / len(everything))
        likers[thing] = {*draw.sample(range(settings.documents), max(_FEWEST, round(share * settings.documents)))}
    drawn = {
        (template, split): _drawn_queries(draw, template, things[split], likers, settings)
        for template in _TEMPLATES
        for split in SPLITS
    }
    docids = [name.replace(" ", "_") for name in names]
    queries: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    for (template, split), chosen in drawn.items():
        kept = ((atoms, _answers(template, atoms, likers)) for atoms in chosen)
        usable = [(atoms, people) for atoms, people in kept if _FEWEST <= len(people) <= _ANSWERS]
        queries[split] += (_query(template, atoms, people, docids) for atoms, people in usable[: settings.queries])
    for records in queries.values():
        for number, record in enumerate(records, 1):
            record["qid"] = str(number)
    documents = _documents(draw, names, docids, everything, likers)
    return {"documents.jsonl": documents, **{f"{split}.jsonl": iter(records) for split, records in queries.items()}}


def write_likings(settings: LikingsSettings, target: Path) -> int:
    """Writes the files into a new folder, atomically. Returns the number of queries."""
    queries = 0
    with new_folder(target) as folder:
        for name, records in likings_files(settings).items():
            lines = [json.dumps(record) for record in records]
            write_lines(folder / name, lines)
            queries += len(lines) if name != "documents.jsonl" else 0
    return queries


def is_likings(folder: Path) -> bool:
    return bool(find_splits(folder, SPLITS, ".jsonl"))


def open_likings(folder: Path) -> Dataset:
    """Generated files, with the splits ``words`` and ``phrases``."""
    collection = require_file(folder, "documents.jsonl", "likings")
    documents = partial(collection_documents, collection)
    parts = {
        name: Split(documents, partial(read_topics, path), partial(read_qrels, path))
        for name in SPLITS
        for path in [require_file(folder, f"{name}.jsonl", "likings")]
    }
    return Dataset("likings", _PROVENANCE, folder, collection, parts)


def _drawn_words(draw: Random, documents: int) -> tuple[list[str], dict[str, list[str]]]:
    """The names of persons, and the things of each split."""
    lists = yaml.safe_load(files(__package__).joinpath("likings.yaml").read_text(encoding="utf-8"))
    initials = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    parts = lists["first_names"].split(), initials, lists["last_names"].split()
    names = [f"{first} {initial}. {last}" for first, initial, last in draw.sample([*product(*parts)], documents)]
    pairs = [pair for table in lists["phrases"] for pair in product(table["first"].split(), table["second"].split())]
    words = [word for words in lists["words"].values() for word in words.split()]
    return names, {"words": words, "phrases": [" ".join(pair) for pair in draw.sample(pairs, _PHRASES)]}


def _drawn_queries(
    draw: Random, template: str, things: Sequence[str], likers: dict[str, People], settings: LikingsSettings
) -> list[tuple[str, ...]]:
    """Different atoms for a template. Differences are drawn twice as often, because planting may spoil others."""
    size, excludes = template.count("_"), "not" in template
    joined = _TEMPLATES[template].joined
    doubled = 2 if excludes else 1  # a planted exclusion takes away half of the answers
    united = 1 if excludes or joined > 1 else size  # a union adds up the answers of its operands

    def likers_for(answers: float) -> float:
        """How many like each thing if so many like all of ``joined`` independent things."""
        return settings.documents * math.pow(answers / settings.documents, 1 / joined)

    least, most = likers_for(_FEWEST * doubled), likers_for(_ANSWERS / united * doubled)
    pool = [thing for thing in things if least <= len(likers[thing]) <= most]
    chosen: dict[tuple[str, ...], None] = {}
    for _ in range(4 * settings.queries if len(pool) >= size else 0):
        atoms = tuple(draw.sample(pool, size))
        if atoms in chosen or len(chosen) == settings.queries * doubled:
            continue
        if excludes:
            rest = sorted(set.intersection(*(likers[thing] for thing in atoms[:-1])))
            likers[atoms[-1]].update(draw.sample(rest, len(rest) // 2))
        if _FEWEST <= len(_answers(template, atoms, likers)) <= _ANSWERS:
            chosen[atoms] = None
    return [*chosen]


def _answers(template: str, atoms: Iterable[str], likers: dict[str, People]) -> People:
    return _TEMPLATES[template].answers(*(likers[thing] for thing in atoms))


def _query(template: str, atoms: tuple[str, ...], people: People, docids: Sequence[str]) -> dict[str, Any]:
    pieces = template.split("_")
    marks = (f"<mark>people who like {thing}</mark>{piece}" for thing, piece in zip(atoms, pieces[1:], strict=True))
    return {
        "qid": "",
        "query": _TEMPLATES[template].wording.format(*atoms),
        "docs": [docids[person] for person in sorted(people)],
        "original_query": "".join([pieces[0], *marks]),
        "metadata": {"template": template},
    }


def _documents(
    draw: Random, names: Sequence[str], docids: Sequence[str], things: Sequence[str], likers: dict[str, People]
) -> Iterator[dict[str, Any]]:
    liked: list[list[str]] = [[] for _ in names]
    for thing in things:
        for person in likers[thing]:
            liked[person].append(thing)
    for name, docid, mine in zip(names, docids, liked, strict=True):
        draw.shuffle(mine)
        *others, last = mine or ["nothing"]
        yield {"id": docid, "contents": f"{name} likes {', '.join(others)}{' and ' if others else ''}{last}."}
