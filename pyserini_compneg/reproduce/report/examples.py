"""Examples as cards: a query, what was composed for it, and what that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.reproduce.report.numbers import shown, shown_difference, shown_weight, unit
from pyserini_compneg.reproduce.report.tables import best_row
from pyserini_compneg.reproduce.results import Example, Results, Weight


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
        gain: How much better the method is, below 0 if it is worse.
        positive: The terms that raise a score.
        negative: Those that lower it.
    """

    example: Example
    measure: str
    value: str
    baseline_value: str
    difference: str
    gain: float
    positive: tuple[Chip, ...]
    negative: tuple[Chip, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The cards of one method in one section.

    Attributes:
        method: The method.
        cards: From the largest gain to the largest loss.
        is_open: Whether they are shown at once: those of the section's best method.
    """

    method: str
    cards: tuple[Card, ...]
    is_open: bool


def make_groups(results: Results) -> dict[str, tuple[Group, ...]]:
    """The examples by section and method, in the order in which they come."""
    found: dict[str, dict[str, list[Card]]] = {}
    for example in results.examples:
        card = _card(example, example.measure in results.lower_is_better)
        found.setdefault(example.section, {}).setdefault(example.method, []).append(card)
    return {title: _groups(title, cards, results) for title, cards in found.items()}


def _groups(title: str, cards: dict[str, list[Card]], results: Results) -> tuple[Group, ...]:
    section = next((section for section in results.sections if section.title == title), None)
    best = None if section is None else best_row(section, results, results.measures[0])
    shown_first = best.name if best is not None and best.name in cards else next(iter(cards))
    return tuple(
        Group(method, tuple(sorted(found, key=lambda card: -card.gain)), method == shown_first)
        for method, found in cards.items()
    )


def _card(example: Example, lower_is_better: bool) -> Card:
    heaviest = max((abs(weight) for _, weight in (*example.positive, *example.negative)), default=0.0)
    difference = example.value - example.baseline_value
    return Card(
        example=example,
        measure=f"{example.measure}{unit(example.measure)}",
        value=shown(example.value, example.measure),
        baseline_value=shown(example.baseline_value, example.measure),
        difference=shown_difference(difference, example.measure),
        gain=-difference if lower_is_better else difference,
        positive=_chips(example.positive, heaviest),
        negative=_chips(example.negative, heaviest),
    )


def _chips(weights: Sequence[Weight], heaviest: float) -> tuple[Chip, ...]:
    return tuple(
        Chip(term, shown_weight(weight), round(100 * abs(weight) / heaviest) if heaviest else 0)
        for term, weight in weights
    )
