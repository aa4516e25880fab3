"""Synonyms from the files of WordNet: words that share a sense."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from pyserini_compneg.support.errors import InputError, in_one_line

WORDNET = Path("/usr/share/wordnet")
"""Where Debian's package wordnet-base has the files."""

_PARTS = ("noun", "verb", "adj", "adv")


def synonyms_of(words: Collection[str], folder: Path = WORDNET) -> dict[str, list[str]]:
    """The synonyms of each word: all other words of its synsets, in the order of the files.

    Args:
        words: Words in lower case; one that WordNet lacks has no synonyms.
        folder: Has ``index.noun``, ``data.noun``, and the same of verbs, adjectives and adverbs.

    Raises:
        InputError: A file is missing, or is none of WordNet's.

    Source: the formats are those of the manual page wndb(5WN) of WordNet 3.
    """
    found: dict[str, dict[str, None]] = {word: {} for word in words}
    for part in _PARTS:
        for word, offsets in _index(folder / f"index.{part}", found):
            for synonym in _synset_words(folder / f"data.{part}", offsets):
                found[word][synonym] = None
    return {word: [one for one in others if one != word] for word, others in found.items()}


def check_wordnet(folder: Path) -> None:
    """Makes sure that all files are there, before hours of runs.

    Raises:
        InputError: A file is missing.
    """
    names = [f"{kind}.{part}" for part in _PARTS for kind in ("index", "data")]
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise InputError(
            f"{folder}: no file {missing[0]} of WordNet; install Debian's package wordnet-base, or name the folder of "
            "WordNet's files with --wordnet"
        )


def _index(path: Path, words: Collection[str]) -> Iterator[tuple[str, list[int]]]:
    """The words that an index file has, with the places of their synsets in the data file."""
    with in_one_line(InputError, f"{path}: is no file of WordNet"):
        for line in path.read_text(encoding="utf-8").splitlines():
            lemma = line.partition(" ")[0]
            if lemma in words:
                fields = line.split()
                yield lemma, [int(offset) for offset in fields[-int(fields[2]) :]]


def _synset_words(path: Path, offsets: Collection[int]) -> Iterator[str]:
    """The words of synsets: a hexadecimal count at the fourth place, then each word and a number."""
    with in_one_line(InputError, f"{path}: is no file of WordNet"), path.open("rb") as data:
        for offset in offsets:
            data.seek(offset)
            fields = data.readline().decode().split()
            if int(fields[0]) != offset:
                raise ValueError(f"no synset at byte {offset}")
            for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
                yield word.partition("(")[0].replace("_", " ").casefold()
