"""Protocols: the methods, queries and measures of a table of a paper. Each is a YAML file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

from pyserini_compneg.baselines import METHODS, Makers, Similarity, make_method
from pyserini_compneg.encode import checked_weight
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.eval import parse_measures
from pyserini_compneg.expression import Expression, parse
from pyserini_compneg.lab.experiments.datasets import KINDS
from pyserini_compneg.lab.experiments.dense import DENSE_OPERATORS, DenseMethod
from pyserini_compneg.lab.experiments.inputs import (
    DENSE,
    FOLDER,
    STATISTICS,
    TERM_MEASURES,
    WORD_SPACE,
    protocol_names,
)
from pyserini_compneg.lab.experiments.word_space import WordSpaceMethod
from pyserini_compneg.search import Method
from pyserini_compneg.support.errors import InputError, QueryError
from pyserini_compneg.support.files import slug
from pyserini_compneg.support.settings_files import Settings, parse_settings, read_settings
from pyserini_compneg.support.terminal import shown, suggestion
from pyserini_compneg.topics import Topic

Read: TypeAlias = Literal["expression", "plain", "model", "llm"]
Line = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
"""A text that YAML may break into several lines."""

ROW_METHODS: Makers[Method | DenseMethod | WordSpaceMethod] = {
    **{name: made for name, made in METHODS.items() if "judged" not in made[1]},
    DENSE: (DenseMethod, tuple(DENSE_OPERATORS)),
    WORD_SPACE: (WordSpaceMethod, ("difference",)),
}
"""The methods of rows: the methods of ``search`` but for feedback, of dense vectors and of word spaces."""


class Sweep(Settings):
    """A setting of the method, or ``model_weight``, that a row varies. The row is expanded to a row for each value."""

    setting: str
    symbol: str  # in formulas and plots
    values: tuple[int | float, ...] = Field(min_length=1)


class RowPlan(Settings):
    """A method, as a row of a table."""

    name: str = Field(min_length=1, max_length=100)
    formula: str = ""
    method: str | None = None  # a name in ROW_METHODS; None for a row that is only published
    settings: dict[str, Any] = {}
    ablation: str | None = None  # the part of query vectors that is left out, one of ABLATIONS
    model_weight: float | None = Field(None, ge=0)  # of bm25+MODEL; None for the command's value, or for a sweep
    reads: Read = "expression"  # the dataset's expression, one atom, or a model's reading
    published: tuple[float | None, ...] = ()  # the paper's figures, in the order of the protocol's measures
    published_terms: Line = ""  # the paper's terms, in sections with a query
    note: Line = ""
    rerank: Literal["text", "atoms", "both"] | None = None  # the part of a query that the reranking model reads
    rerank_judged: bool = False  # whether the judged documents of each query are ranked again, instead of the first
    sweep: Sweep | None = None  # after reading it has one value, which is also in the settings
    tuned: bool = False  # whether only the best value of its sweep is run, chosen on another split
    model: str | None = None  # a trained model in the protocol's models, instead of the encoders of the command
    encoder: str | None = None  # a model of the hub, instead of the encoders of the command
    similarity: Similarity | None = None  # of a dense encoder whose files do not say how its vectors are compared

    @model_validator(mode="after")
    def _tuned_has_a_sweep(self) -> RowPlan:
        if self.tuned and self.sweep is None:
            raise ValueError(f"row {shown(self.name)} is tuned, but has no sweep that says of which values")
        if self.rerank_judged and self.rerank is None:
            raise ValueError(f"row {shown(self.name)} has rerank_judged, but no rerank that says what the model reads")
        if self.similarity and (self.method != DENSE or self.encoder is None):
            raise ValueError(f"row {shown(self.name)} has a similarity, but no encoder of the method {DENSE}")
        return self

    @property
    def title(self) -> str:
        """The name, with the row's value of its sweep."""
        if self.tuned:
            return f"{self.name}, tuned"
        return f"{self.name}, {self.sweep.symbol} = {self.sweep.values[0]:g}" if self.sweep else self.name

    def at_each_value(self) -> list[RowPlan]:
        """The row at each value of its sweep, checked. A row without a sweep gives itself."""
        rows, sweep = [self], self.sweep
        if sweep is not None:
            is_weight = sweep.setting == "model_weight"
            changes: list[dict[str, Any]] = [
                {
                    **({"model_weight": value} if is_weight else {"settings": {**self.settings, sweep.setting: value}}),
                    "sweep": sweep.model_copy(update={"values": (value,)}),
                    "tuned": False,
                }
                for value in sweep.values
            ]
            rows = [self.model_copy(update={**change, "published": ()}) for change in changes]
        for row in rows:
            try:
                if row.method is not None:
                    make_method(ROW_METHODS, row.method, row.settings)
                checked_weight(row.model_weight)
                if row.rerank and row.method in (None, DENSE):
                    raise ValueError(f"rerank: ranks documents of a method of search again, not of {row.method}")
                if row.ablation not in (None, *ABLATIONS):
                    raise ValueError(f"no ablation {shown(row.ablation)}; expected one of {', '.join(ABLATIONS)}")
            except ValueError as error:
                raise ValueError(f"row {shown(row.title)}: {error}") from None
        return rows


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

        def change(row: RowPlan) -> dict[str, Any] | None:
            is_own = row.model or row.encoder or row.method in (None, DENSE, WORD_SPACE)
            return {} if is_own else None

        return self.changed(change)

    def without_encoders(self, names: Collection[str] | None = None) -> ProtocolPlan:
        """The protocol without runs of rows that name some encoders, or any; their published figures stay."""

        def change(row: RowPlan) -> dict[str, Any] | None:
            is_one = row.encoder is not None and (names is None or row.encoder in names)
            return ({"method": None} if row.published or row.published_terms else None) if is_one else {}

        return self.changed(change, some_run=True)

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
    def methods(self) -> set[str]:
        return {row.method for row in self.rows if row.method}

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
