"""Protocols: what a table of a paper compares, on which queries, by which measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

READINGS = ("expression", "text", "cues", "llm")

ALL_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""The dense encoder by which the paper compares texts."""

REMEDY = "choose another place with --report"
"""What to do where something of a report cannot be written."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A method, as a row of a table.

    Attributes:
        name: What the row is called.
        formula: What it computes, in mathematical notation.
        method: A name in ``reproduce.methods``; None for a row that is only published.
        settings: The method's settings.
        ablation: What is left out of query vectors, one of ``ABLATIONS``; None for nothing.
        reads: What is made of a query's text: ``expression``, what the dataset says that it means; ``text``, one atom;
            ``cues`` or ``llm``, what its cue phrases or a language model say that it means, as with ``--decompose``.
        published: The paper's figures by measure.
        note: What the reader has to know.
        swept: Where the row is a part of a sweep, the sweep's name, and the value of the setting that it varies.
    """

    name: str
    formula: str = ""
    method: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ablation: str | None = None
    reads: str = "expression"
    published: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    swept: tuple[str, float] | None = None


@dataclass(frozen=True, slots=True)
class SectionPlan:
    """The rows for some of the queries.

    Attributes:
        title: The heading.
        rows: The methods.
        templates: The templates of its queries; empty for all queries.
        sweep: The symbol of the setting that sweeps among its rows vary.
    """

    title: str
    rows: tuple[RowPlan, ...]
    templates: tuple[str, ...] = ()
    sweep: str = ""

    @property
    def baseline(self) -> str:
        """The row that differences are shown against: the first that is run."""
        return next(row.name for row in self.rows if row.method)


@dataclass(frozen=True, slots=True)
class Interference:
    """A curve over the similarity of what is wanted and what is not, as the paper's Figure 3.

    Attributes:
        section: The title of the section whose queries are binned.
        bins: How many bins of as many queries each.
        rows: The rows that are shown; empty for all.
    """

    section: str
    bins: int
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Protocol:
    """A table or figure.

    Attributes:
        name: The name of its file.
        title: The heading.
        about: What it is, for the reader of the report.
        datasets: The kinds of datasets that it can be run on.
        papers: The splits, by kind of dataset, that the published figures are of.
        splits: The splits by preference; the first that the dataset has is taken.
        measures: The measures, the main one first.
        sections: The tables.
        hits: Documents a query.
        examples: How many of the best and of the worst queries are shown for each row.
        interference: The curve over similarities, if there is one.
    """

    name: str
    title: str
    about: str
    datasets: tuple[str, ...]
    papers: Mapping[str, tuple[str, ...]]
    splits: tuple[str, ...]
    measures: tuple[str, ...]
    sections: tuple[SectionPlan, ...]
    hits: int = 1000
    examples: int = 0
    interference: Interference | None = None
