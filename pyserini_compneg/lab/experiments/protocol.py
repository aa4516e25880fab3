"""Protocols: the methods, queries and measures of a table of a paper. Each is a YAML file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from pyserini_compneg.eval import parse_measures
from pyserini_compneg.expression import Expression, parse
from pyserini_compneg.lab.experiments.datasets import KINDS
from pyserini_compneg.lab.experiments.inputs import (
    FOLDER,
    STATISTICS,
    SYNONYMS,
    TERM_MEASURES,
    WORD_SPACE,
    protocol_names,
)
from pyserini_compneg.lab.experiments.rows import DENSE_ENCODER, RERANKER, WORDNET_FILES, Line, Need, RowPlan
from pyserini_compneg.support.errors import InputError, QueryError
from pyserini_compneg.support.files import slug
from pyserini_compneg.support.settings_files import Settings, parse_settings, read_settings
from pyserini_compneg.support.terminal import shown, suggestion
from pyserini_compneg.topics import Topic


class SectionPlan(Settings):
    """The rows for queries of some templates, or for all queries. The first row that is run is the baseline.

    A section with a query has its heaviest terms in each row, and nothing is judged.
    """

    title: str
    rows: tuple[RowPlan, ...] = Field(min_length=1)
    templates: tuple[str, ...] = ()
    query: Line = ""
    is_drawn: bool = False  # whether its query, with its atoms, is drawn as in Figure 1

    @field_validator("rows")
    @classmethod
    def _checked_rows(cls, rows: tuple[RowPlan, ...]) -> tuple[RowPlan, ...]:
        rows = tuple(one for row in rows for one in (row.at_each_value(), [row])[row.tuned])
        _check_distinct("row", [row.title for row in rows])
        if not any(row.method for row in rows):
            raise ValueError("no row has a method")
        titles = {"", *(row.title for row in rows)}
        if unknown := next((row.relative_to for row in rows if row.relative_to not in titles), None):
            raise ValueError(f"relative_to names {unknown!r}, which is no row of the section")
        if len(symbols := list(dict.fromkeys(row.sweep.symbol for row in rows if row.sweep and not row.tuned))) > 1:
            raise ValueError(f"sweeps over {symbols[0]!r} and over {symbols[1]!r} need a section each")
        return rows

    @model_validator(mode="after")
    def _checked_query(self) -> SectionPlan:
        if self.query:
            _parsed(self.query)
        other = next((row.method for row in self.rows if row.method not in (None, "operators", WORD_SPACE)), None)
        if self.query and (other or self.templates):
            what = "no templates" if self.templates else f"the method operators or {WORD_SPACE}, not {other}"
            raise ValueError(f"section {shown(self.title)}: a section with a query takes {what}")
        return self

    def of(self, topics: Sequence[Topic]) -> list[Topic]:
        """The queries of the section among some topics, or its own query."""
        if self.query:
            return [Topic("query", self.query, parse(self.query))]
        return [topic for topic in topics if not self.templates or topic.group in self.templates]

    @property
    def sweep_symbol(self) -> str:
        """The symbol of the setting that the section's rows vary, or an empty text."""
        return next((row.sweep.symbol for row in self.rows if row.sweep and not row.tuned), "")


class Interference(Settings):
    """A curve over the similarity of the wanted and the excluded part, in bins of equal size, as in Figure 3."""

    section: str
    bins: int = Field(4, ge=1)


class ProtocolPlan(Settings):
    """A table or figure."""

    name: str = ""
    title: str
    about: Line  # a description for the reader of the report
    datasets: tuple[str, ...]
    papers: dict[str, tuple[str, ...]] = {}  # the splits of the published figures, by kind of dataset
    splits: tuple[str, ...]  # by preference; the first in the dataset is used
    measures: tuple[str, ...] = ()  # the main one first; none if all sections have a query of their own
    sections: tuple[SectionPlan, ...] = Field(min_length=1)
    hits: int = Field(1000, ge=1, le=10**9)
    examples: int = Field(0, ge=0, le=10**9)  # how many of the best and of the worst queries are shown for each row
    interference: Interference | None = None
    statistics: dict[str, int | float | None] = {}  # of the dataset's texts, with the paper's figures
    queries: Literal["dataset", "words"] = "dataset"  # "words" are Widdows' queries, made of words of the documents
    tuned_on: tuple[str, ...] = ()  # by preference; the first without queries of the report's split is used
    models: dict[str, tuple[str, ...]] = {}  # recipes for each; the first whose splits the dataset has is used
    published_with: str | None = None  # the model of published figures; all rows without a model run with it, too

    @field_validator("datasets")
    @classmethod
    def _checked_datasets(cls, datasets: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [kind for kind in datasets if kind not in KINDS]:
            raise ValueError(f"no kind of dataset {shown(unknown[0])}; there are: {', '.join(KINDS)}")
        return datasets

    @field_validator("measures")
    @classmethod
    def _checked_measures(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        usual = []
        for name in names:
            found = [name] if name in TERM_MEASURES else [measure.name for measure in parse_measures([name])]
            if len(found) > 1:
                raise ValueError(f"measure {name!r} is several; name them one by one")
            usual += found
        _check_distinct("measure", usual)
        return tuple(usual)

    @model_validator(mode="after")
    def _checked(self) -> ProtocolPlan:
        _check_distinct("section", [slug(section.title) for section in self.sections])
        if unknown := self.papers.keys() - {*self.datasets}:
            raise ValueError(
                f"papers: {min(unknown)!r} is not one of the datasets: {', '.join(map(repr, self.datasets))}"
            )
        for kind in self.datasets if self.statistics else ():
            if unknown_names := [name for name in self.statistics if name not in STATISTICS.get(kind, ())]:
                known = ", ".join(map(repr, STATISTICS.get(kind, ()))) or "none"
                raise ValueError(f"statistics: no {unknown_names[0]!r} of {kind}; there are: {known}")
        if self.queries == "words" and (judged := [name for name in self.measures if name not in TERM_MEASURES]):
            listed = ", ".join(TERM_MEASURES)
            raise ValueError(f"queries of words are not judged, so there is no {judged[0]}; choose of {listed}")
        if any(bool(section.query) == bool(self.measures) for section in self.sections):
            what = "sections with a query have no measures" if self.measures else "measures: expected at least one"
            raise ValueError(what)
        if self.published_with is not None and self.published_with not in self.models:
            raise ValueError(f"published_with names the model {self.published_with!r}, which is not in models")
        for row in self.rows:
            if len(row.published) > len(self.measures):
                raise ValueError(f"the row {row.name!r} has more published figures than there are measures")
            if row.model is not None and row.model not in self.models:
                known = ", ".join(map(repr, self.models)) or "none"
                raise ValueError(f"the row {row.name!r} names the model {row.model!r}; models has: {known}")
            if row.tuned and not self.tuned_on:
                raise ValueError(f"the row {row.name!r} is tuned, but tuned_on names no split")
        plan = self.interference
        if plan is not None and plan.section not in {section.title for section in self.sections}:
            raise ValueError(f"interference: no section {plan.section!r}")
        return self

    @property
    def with_published_model(self) -> ProtocolPlan:
        """The protocol with each row of ``published_with`` beside the row of the encoders.

        Only rows of this model keep published figures, since they are the model's.
        """
        model, sections = self.published_with, []
        for section in self.sections:
            rows = []
            for row in section.rows:
                if model is None or row.method is None or row.model or row.encoder:
                    rows.append(row)
                    continue
                rows.append(row.model_copy(update={"published": (), "published_terms": ""}))
                rows.append(row.model_copy(update={"name": f"{row.name}, {model}", "model": model}))
            sections.append(section.model_copy(update={"rows": tuple(rows)}))
        return self.model_copy(update={"sections": tuple(sections)})

    @property
    def only_models(self) -> ProtocolPlan:
        """The protocol without the rows of the command's encoders."""
        return self.changed(lambda row: None if row.takes_encoders else {})

    def without(self, absent: Collection[Need]) -> ProtocolPlan:
        """The protocol without the parts that need an absent model or folder; see :meth:`RowPlan.without`."""
        at = self.measures.index(SYNONYMS) if WORDNET_FILES in absent else len(self.measures)

        def change(row: RowPlan) -> dict[str, Any] | None:
            update = row.without(absent)
            return update if update is None else {"published": row.published[:at] + row.published[at + 1 :]} | update

        protocol = self.changed(change, some_run=True)
        curve = None if DENSE_ENCODER in absent else protocol.interference
        return protocol.model_copy(
            update={"measures": self.measures[:at] + self.measures[at + 1 :], "interference": curve}
        )

    def asking(self, query: str) -> ProtocolPlan:
        """The protocol with another query, in the first section whose own query has the same last operator."""
        expression = parse(query)
        kinds = {section.title: type(parse(section.query)) for section in self.sections if section.query}
        titles = [title for title, kind in kinds.items() if isinstance(expression, kind)][:1]
        if not titles:
            remedy = f"its sections with a query are: {', '.join(map(repr, kinds))}"
            if not kinds:
                takers = [name for name in protocol_names() if any(one.query for one in read_protocol(name).sections)]
                remedy = f"protocols with a query of their own are: {', '.join(takers)}"
            raise InputError(f"protocol {self.name}: no section is for {query!r}", remedy=remedy)
        kept = self.changed(lambda row: {"published_terms": ""}).sections
        sections = tuple(one.model_copy(update={"query": query}) for one in kept if one.title in titles)
        return self.model_copy(update={"sections": sections})

    @property
    def rows(self) -> list[RowPlan]:
        return [row for section in self.sections for row in section.rows]

    @property
    def needs(self) -> list[Need]:
        """The models and the folder that its parts need, in the order in which they are checked."""
        found = dict.fromkeys(need for row in self.rows for need in row.needs)
        chosen = [DENSE_ENCODER] if DENSE_ENCODER in found or self.interference else []
        chosen += [RERANKER] if RERANKER in found else []
        return [*chosen, *(need for need in found if need.model), *[WORDNET_FILES] * (SYNONYMS in self.measures)]

    def parts(self, need: Need) -> str:
        """The parts that need a model or folder, in words."""
        if need != DENSE_ENCODER or self.interference is None:
            return need.parts
        return " and ".join([need.parts] * any(need in row.needs for row in self.rows) + ["the curve by similarity"])

    def is_only(self, need: Need) -> bool:
        """Whether nothing is left without a model or folder."""
        if need == WORDNET_FILES:
            return len(self.measures) == 1
        return all(need in row.needs for row in self.rows if row.method)

    @property
    def weighs_model(self) -> bool:
        """Whether a row sets the share of the model in ``bm25+MODEL``."""
        return any(row.model_weight is not None for row in self.rows)

    def only(self, names: Sequence[str]) -> ProtocolPlan:
        """The protocol with some of its rows, and the sections that contain them.

        A row may be named with or without a value of its sweep. ``*`` stands for any letters.
        """

        def is_one(row: RowPlan, name: str) -> bool:
            return fnmatchcase(row.title, name) or fnmatchcase(row.name, name)

        there = {row.title: row for row in self.rows if row.method}
        for name in names:
            if not any(is_one(row, name) for row in there.values()):
                close = suggestion(name, there)
                known = f"{close} There are" if close else "; there are"
                listed = ", ".join(map(repr, there))
                raise InputError(f"protocol {self.name}: no row {name!r}{known}: {listed}")
        return self.changed(lambda row: {} if any(is_one(row, name) for name in names) else None)

    def changed(self, change: Callable[[RowPlan], dict[str, Any] | None], some_run: bool = False) -> ProtocolPlan:
        """The protocol with changed rows: ``change`` gives the new values of a row, or None to leave it out.

        Sections without rows are left out; with ``some_run``, also sections in which nothing is run.
        """
        kept = []
        for section in self.sections:
            updates = [(row, change(row)) for row in section.rows]
            rows = tuple(row.model_copy(update=update) for row, update in updates if update is not None)
            if any(row.method or not some_run for row in rows):
                kept.append(section.model_copy(update={"rows": rows}))
        titles = {section.title for section in kept}
        curve = self.interference if self.interference and self.interference.section in titles else None
        return self.model_copy(update={"sections": tuple(kept), "interference": curve})


def read_protocol(name: str) -> ProtocolPlan:
    """Reads a protocol of this package by its name, or a YAML file by its path."""
    if name in protocol_names():
        text = FOLDER.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
        protocol = parse_settings(text, name, ProtocolPlan, InputError)
    elif Path(name).suffix in (".yaml", ".yml"):
        protocol = read_settings(name, ProtocolPlan, InputError)
    else:
        known = ", ".join(protocol_names())
        remedy = f"expected one of {known}, or the path of a .yaml file"
        raise InputError(f"no protocol {name!r}", remedy=remedy)
    protocol = protocol if protocol.name else protocol.model_copy(update={"name": Path(name).stem})
    return protocol.with_published_model


def _parsed(query: str) -> Expression:
    """The expression of a section's query. Raises a ValueError of one line."""
    try:
        return parse(query)
    except QueryError as error:
        raise ValueError(error.message) from None


def _check_distinct(kind: str, names: Sequence[str]) -> None:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the {kind} {repeated[0]!r} is there twice")
