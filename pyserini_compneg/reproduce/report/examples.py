"""Examples as cards: a query, what was composed for it, and what that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.reproduce.report.numbers import shown, shown_difference, shown_weight, unit
from pyserini_compneg.reproduce.results import Example, Weight


@dataclass(frozen=True, slots=True)
class Chip:
    """A term with its weight.

    Attributes:
        term: The term, pairs as ``a∩b``.
        weight: As text.
        share: Its size in percent of the heaviest term's of the card, from 0 to 100.
    """

    term: str
    weight: str
    share: int


@dataclass(frozen=True, slots=True)
class Card:
    """An example as texts.

    Attributes:
        example: What it is made from.
        measure: The measure and its unit.
        value: The method's value.
        baseline_value: The baseline's.
        difference: The one minus the other, with its sign.
        is_gain: Whether the method is better.
        positive: The terms that raise a score.
        negative: Those that lower it.
    """

    example: Example
    measure: str
    value: str
    baseline_value: str
    difference: str
    is_gain: bool
    positive: tuple[Chip, ...]
    negative: tuple[Chip, ...]


def make_cards(examples: Sequence[Example]) -> dict[str, tuple[Card, ...]]:
    """Cards by section, and there from the largest gain to the largest loss."""
    sections: dict[str, list[Example]] = {}
    for example in examples:
        sections.setdefault(example.section, []).append(example)
    return {
        title: tuple(_card(example) for example in sorted(found, key=lambda one: one.baseline_value - one.value))
        for title, found in sections.items()
    }


def _card(example: Example) -> Card:
    heaviest = max((abs(weight) for _, weight in (*example.positive, *example.negative)), default=0.0)
    return Card(
        example=example,
        measure=f"{example.measure}{unit(example.measure)}",
        value=shown(example.value, example.measure),
        baseline_value=shown(example.baseline_value, example.measure),
        difference=shown_difference(example.value - example.baseline_value, example.measure),
        is_gain=example.value >= example.baseline_value,
        positive=_chips(example.positive, heaviest),
        negative=_chips(example.negative, heaviest),
    )


def _chips(weights: Sequence[Weight], heaviest: float) -> tuple[Chip, ...]:
    return tuple(
        Chip(term, shown_weight(weight), round(100 * abs(weight) / heaviest) if heaviest else 0)
        for term, weight in weights
    )
