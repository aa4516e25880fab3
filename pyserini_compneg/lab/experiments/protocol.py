"""Protocols: what a table of a paper compares, on which queries, by which measures; each is a YAML file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

from pyserini_compneg.baselines import METHODS, RERANKED, Makers, make_method
from pyserini_compneg.encode import checked_weight
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.eval import parse_measures
from pyserini_compneg.lab.experiments.datasets.opening import KINDS
from pyserini_compneg.lab.experiments.dense import DENSE_OPERATORS, DenseMethod
from pyserini_compneg.lab.experiments.provided import FOLDER, protocol_names
from pyserini_compneg.lab.experiments.results import TERM_MEASURES
from pyserini_compneg.lab.experiments.word_space import WordSpaceMethod
from pyserini_compneg.search.searcher import Method
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import slug
from pyserini_compneg.support.settings_files import Settings, parse_settings, read_settings
from pyserini_compneg.support.terminal import shown, suggestion
from pyserini_compneg.topics.topics import Topic

Reading: TypeAlias = Literal["expression", "plain", "model", "llm"]
Line = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
"""A text that YAML may break over several lines."""

DENSE, WORD_SPACE = "dense", "word-space"
ROW_METHODS: Makers[Method | DenseMethod | WordSpaceMethod] = {
    **METHODS,
    DENSE: (DenseMethod, tuple(DENSE_OPERATORS)),
    WORD_SPACE: (WordSpaceMethod, ("difference",)),
}
"""The methods of rows: those of ``search``, and those of dense vectors and of a space of words."""


class Sweep(Settings):
    """A setting that a row varies. The row stands for several rows, one for each value.

    Attributes:
        setting: Its name, a setting of the method or ``model_weight``.
        symbol: Its symbol in formulas and plots.
        values: Its values.
    """

    setting: str
    symbol: str
    values: tuple[int | float, ...] = Field(min_length=1)


class RowPlan(Settings):
    """A method, as a row of a table.

    Attributes:
        name: What the row is called.
        formula: What it computes, in mathematical notation.
        method: A name in ``ROW_METHODS``; None for a row that is only published.
        settings: The method's settings.
        ablation: What is left out of query vectors, one of ``ABLATIONS``; None for nothing.
        model_weight: The share of the model of ``bm25+MODEL``; None for what the command says. A sweep may vary it.
        reads: What is made of a query's text: ``expression``, what the dataset says that it means; ``plain``, one atom;
            ``model`` or ``llm``, what the small model of the package or a language model reads, as with ``--read``.
        published: The paper's figures, in the order of the protocol's measures; None where there is none.
        note: What the reader has to know.
        rerank: What a model reads to rank the first documents again, as ``--rerank-by``; None for no reranking.
        rerank_hits: How many documents it ranks again. The others are left out.
        rerank_judged: Whether it ranks the judged documents of each query, and no others.
        sweep: The setting that it varies. In a section that was read it has one value, which is in ``settings``, too.
        tuned: Whether the row is run at the best value of its sweep alone, which is chosen on another split.
        model: A name in the protocol's ``models``: the row is run with that trained model, not with the encoders of the
            command. Where there is none, the row is only published.
    """

    name: str = Field(min_length=1, max_length=100)
    formula: str = ""
    method: str | None = None
    settings: dict[str, Any] = {}
    ablation: str | None = None
    model_weight: float | None = Field(None, ge=0)
    reads: Reading = "expression"
    published: tuple[float | None, ...] = ()
    note: Line = ""
    rerank: Literal["text", "atoms", "both"] | None = None
    rerank_hits: int = Field(RERANKED, ge=1)
    rerank_judged: bool = False
    sweep: Sweep | None = None
    tuned: bool = False
    model: str | None = None

    @model_validator(mode="after")
    def _tuned_has_a_sweep(self) -> RowPlan:
        if self.tuned and self.sweep is None:
            raise ValueError(f"row {shown(self.name)} is tuned, but has no sweep that says of which values")
        if self.rerank_judged and self.rerank is None:
            raise ValueError(f"row {shown(self.name)} has rerank_judged, but no rerank that says what the model reads")
        return self

    @property
    def title(self) -> str:
        """The name, with the value that the row has of its sweep."""
        if self.tuned:
            return f"{self.name}, tuned"
        return f"{self.name}, {self.sweep.symbol} = {self.sweep.values[0]:g}" if self.sweep else self.name

    def at_each_value(self) -> list[RowPlan]:
        """The row at each value of its sweep; the row itself where it has none.

        Raises:
            ValueError: An unknown method, setting, operator or ablation; the message names the row.
        """
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
    """The rows for some of the queries.

    Attributes:
        title: The heading.
        rows: The methods; the first that is run is the baseline.
        templates: The templates of its queries; empty for all queries.
    """

    title: str
    rows: tuple[RowPlan, ...] = Field(min_length=1)
    templates: tuple[str, ...] = ()

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

    def of(self, topics: Sequence[Topic]) -> list[Topic]:
        """The section's queries among some topics."""
        return [topic for topic in topics if not self.templates or topic.group in self.templates]

    @property
    def sweep_symbol(self) -> str:
        """The symbol of the setting that its rows vary; empty for none."""
        return next((row.sweep.symbol for row in self.rows if row.sweep and not row.tuned), "")


class Interference(Settings):
    """A curve over the similarity of what is wanted and what is not, as the paper's Figure 3.

    Attributes:
        section: The title of the section whose queries are binned.
        bins: How many bins; all have the same number of queries, as far as it divides.
    """

    section: str
    bins: int = Field(4, ge=1)


class Protocol(Settings):
    """A table or figure.

    Attributes:
        name: Its name; that of its file, if it does not say.
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
        queries: ``dataset``, or ``words``: those that Widdows made of the words of the documents.
        tuned_on: The splits by preference on which rows are tuned; the first that the dataset has, and that is not the
            split of the report.
        models: The trained models that rows name, and for each the recipes or settings files of ``train`` that make it;
            the first whose splits the dataset has.
    """

    name: str = ""
    title: str
    about: Line
    datasets: tuple[str, ...]
    papers: dict[str, tuple[str, ...]] = {}
    splits: tuple[str, ...]
    measures: tuple[str, ...] = Field(min_length=1)
    sections: tuple[SectionPlan, ...] = Field(min_length=1)
    hits: int = Field(1000, ge=1, le=10**9)
    examples: int = Field(0, ge=0, le=10**9)
    interference: Interference | None = None
    queries: Literal["dataset", "words"] = "dataset"
    tuned_on: tuple[str, ...] = ()
    models: dict[str, tuple[str, ...]] = {}

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
    def _checked(self) -> Protocol:
        _check_distinct("section", [slug(section.title) for section in self.sections])
        if unknown := self.papers.keys() - {*self.datasets}:
            raise ValueError(f"papers: {min(unknown)!r} is none of the datasets: {', '.join(map(repr, self.datasets))}")
        if self.queries == "words" and (judged := [name for name in self.measures if name not in TERM_MEASURES]):
            listed = ", ".join(TERM_MEASURES)
            raise ValueError(f"queries of words are not judged, so there is no {judged[0]}; choose of {listed}")
        for row in (row for section in self.sections for row in section.rows):
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
    def methods(self) -> set[str]:
        """The names of all methods of its rows."""
        return {row.method for section in self.sections for row in section.rows if row.method}

    @property
    def runs_encoders(self) -> bool:
        """Whether any row is run with the encoders of the command, rather than with a model of its own."""
        methods = {row.method for section in self.sections for row in section.rows if row.method and not row.model}
        return bool(methods - {DENSE, WORD_SPACE})

    @property
    def weighs_model(self) -> bool:
        """Whether any row says the share of the model of ``bm25+MODEL``."""
        return any(row.model_weight is not None for section in self.sections for row in section.rows)

    def reading(self, reads: Reading) -> Protocol:
        """The protocol with plain texts, read so, where its rows take the dataset's expressions."""
        return self._changed(lambda row: {"reads": reads} if row.reads == "expression" else {})

    def only(self, names: Sequence[str]) -> Protocol:
        """The protocol with some of its rows, and the sections that have any of them.

        Args:
            names: Names of rows, with a value of a sweep or without. ``*`` stands for any letters.

        Raises:
            InputError: There is no such row that is run, or the curve's section is left without rows.
        """

        def is_one(row: RowPlan, name: str) -> bool:
            return fnmatchcase(row.title, name) or fnmatchcase(row.name, name)

        there = {row.title: row for section in self.sections for row in section.rows if row.method}
        for name in names:
            if not any(is_one(row, name) for row in there.values()):
                close = suggestion(name, there)
                known = f"{close} There are" if close else "; there are"
                listed = ", ".join(map(repr, there))
                raise InputError(f"protocol {self.name}: no row {name!r}{known}: {listed}")
        return self._changed(lambda row: {} if any(is_one(row, name) for name in names) else None)

    @property
    def reranks(self) -> bool:
        """Whether a model ranks documents again in any row."""
        return any(row.rerank for section in self.sections for row in section.rows)

    def quick(self) -> Protocol:
        """The protocol for few queries: its curve over similarities has two bins."""
        curve = self.interference and self.interference.model_copy(update={"bins": min(2, self.interference.bins)})
        return self.model_copy(update={"interference": curve})

    def without(self, left_out: Callable[[RowPlan], object]) -> Protocol:
        """The protocol without some rows, and without sections in which nothing else is run."""
        return self._changed(lambda row: None if left_out(row) else {}, some_run=True)

    def with_models(self, names: Collection[str]) -> Protocol:
        """The protocol with the rows of other models only published; sections in which nothing is run are left out."""

        def change(row: RowPlan) -> dict[str, Any] | None:
            there = row.method is not None and (row.model is None or row.model in names)
            return {} if there else {"method": None} if row.published else None

        return self._changed(change, some_run=True)

    def without_measure(self, name: str) -> Protocol:
        """The protocol without a measure, and without the published figures of it."""
        at = self.measures.index(name)
        changed = self._changed(lambda row: {"published": row.published[:at] + row.published[at + 1 :]})
        return changed.model_copy(update={"measures": self.measures[:at] + self.measures[at + 1 :]})

    def noting(self, note: str) -> Protocol:
        """The protocol with a note on its tuned rows, behind their own."""
        return self._changed(lambda row: {"note": f"{row.note} {note}".strip()} if row.tuned else {})

    def _changed(self, change: Callable[[RowPlan], dict[str, Any] | None], some_run: bool = False) -> Protocol:
        """The protocol with changed rows, None for none; with ``some_run`` only of sections in which any is run."""
        changed = []
        for section in self.sections:
            updates = [(row, change(row)) for row in section.rows]
            rows = tuple(row.model_copy(update=update) for row, update in updates if update is not None)
            changed.append((section, rows if not some_run or any(row.method for row in rows) else ()))
        kept = tuple(section.model_copy(update={"rows": rows}) for section, rows in changed if rows)
        titles = {section.title for section in kept}
        curve = self.interference if self.interference and self.interference.section in titles else None
        return self.model_copy(update={"sections": kept, "interference": curve})


def read_protocol(name: str) -> Protocol:
    """Reads a protocol.

    Args:
        name: One that comes with the package, or the path of a YAML file.

    Raises:
        InputError: No such protocol, or a file that is none; the message names file and key.
    """
    if name in protocol_names():
        text = FOLDER.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
        protocol = parse_settings(text, name, Protocol, InputError)
    elif Path(name).suffix in (".yaml", ".yml"):
        protocol = read_settings(name, Protocol, InputError)
    else:
        known = ", ".join(protocol_names())
        raise InputError(f"no protocol {name!r}; expected one of {known}, or the path of a .yaml file")
    return protocol if protocol.name else protocol.model_copy(update={"name": Path(name).stem})


def _check_distinct(kind: str, names: Sequence[str]) -> None:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the {kind} {repeated[0]!r} is there twice")
