"""Latents for people: each is shown by the name of its concept, the words that light it most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyserini_compneg.encode.models.latents import LATENT_SIGN
from pyserini_compneg.support.vectors import COMPLEMENT_SIGN, PAIR_SIGN

_LATENT = re.compile(
    rf"(?<![^\s{PAIR_SIGN}{COMPLEMENT_SIGN}]){LATENT_SIGN}(?P<number>0|[1-9][0-9]{{0,8}})(?![^\s,{PAIR_SIGN}])"
)


def named(text: str, concepts: Sequence[str]) -> str:
    """A term, or a reason that lists terms, with the name of its concept in the place of each latent.

    Latents without a name stay as they are.

    >>> named("spi∩~1", ["ship, sail", "monarch, king, queen"]), named("~1", [])
    ('spi∩concept: monarch, king, queen', '~1')
    """
    return _LATENT.sub(lambda found: f"concept: {name}" if (name := _name(found, concepts)) else found[0], text)


def names_of(terms: Iterable[str], concepts: Sequence[str]) -> dict[str, str]:
    """The latents among terms, also in pairs, with the names of their concepts, in the order of their numbers.

    >>> names_of(["spi∩~1", "~0", "~7"], ["ship, sail", "monarch, king, queen"])
    {'~0': 'ship, sail', '~1': 'monarch, king, queen'}
    """
    found = {int(latent["number"]): _name(latent, concepts) for term in terms for latent in _LATENT.finditer(term)}
    return {f"{LATENT_SIGN}{number}": name for number, name in sorted(found.items()) if name}


def _name(found: re.Match[str], concepts: Sequence[str]) -> str:
    """The name of a concept; empty if it has none, as a latent that no word of its training lit."""
    number = int(found["number"])
    return concepts[number] if number < len(concepts) else ""
