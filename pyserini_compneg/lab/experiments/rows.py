"""Rows of protocols: how a method is run, and the models that it needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from pyserini_compneg.baselines import METHODS, Makers, Similarity, make_method
from pyserini_compneg.encode import checked_weight
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.lab.experiments.dense import DENSE_OPERATORS, OF_SCORES, DenseMethod
from pyserini_compneg.lab.experiments.inputs import DENSE, SYNONYMS, WORD_SPACE
from pyserini_compneg.lab.experiments.word_space import WordSpaceMethod
from pyserini_compneg.search import Method
from pyserini_compneg.support.settings_files import Settings
from pyserini_compneg.support.terminal import shown

Read: TypeAlias = Literal["expression", "plain", "model", "llm"]
Line = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
"""A text that YAML may break into several lines."""

ROW_METHODS: Makers[Method | DenseMethod | WordSpaceMethod] = {
    **{name: made for name, made in METHODS.items() if "judged" not in made[1]},
    DENSE: (DenseMethod, tuple(DENSE_OPERATORS)),
    WORD_SPACE: (WordSpaceMethod, ("difference",)),
}
"""The methods of rows: the methods of ``search`` but for feedback, of dense vectors and of word spaces."""


@dataclass(frozen=True, slots=True)
class Need:
    """A model or folder that may be absent. Equal needs are of the same model, whatever rows say about it."""

    parts: str  # what is not run without it, in words
    model: str = ""  # its name in rows: of a model that a recipe trains, or of a model of the hub
    is_trained: bool = False
    is_dense: bool = field(default=False, compare=False)
    similarity: Similarity | None = field(default=None, compare=False)


DENSE_ENCODER, RERANKER = Need("rows of dense vectors"), Need("rows that are reranked")
OF_TEXTS, OF_TOKENS = Need("rows of vectors of texts"), Need("rows of late interaction")
"""The kinds of model that operators of dense rows are for."""

WORDNET_FILES = Need(SYNONYMS)
"""What the command chooses for all rows, and the folder for a measure."""


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
    published_as: str = ""  # the name of the paper's row, if its model is not the one that the name says
    relative_to: str = ""  # the row of the section to which the change of the first measure is given
    note: Line = ""
    rerank: float | None = Field(None, gt=0, le=1)  # the share that a reranking model has in the scores
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
            raise ValueError(f"row {shown(self.name)} has rerank_judged, but no rerank, the model's share")
        if self.similarity and (self.method != DENSE or self.encoder is None):
            raise ValueError(f"row {shown(self.name)} has a similarity, but no encoder of the method {DENSE}")
        return self

    @property
    def is_sparse(self) -> bool:
        """Whether an index of sparse vectors is searched."""
        return self.method not in (None, DENSE, WORD_SPACE)

    @property
    def takes_encoders(self) -> bool:
        """Whether the row is run with each encoder of the command."""
        return self.is_sparse and not self.model and not self.encoder

    @property
    def needs(self) -> list[Need]:
        """The models with which the row is run, other than encoders of the command."""
        if self.method is None:
            return []
        is_dense, needs = self.method == DENSE, []
        if self.model is not None:
            needs.append(Need(f"rows of {self.model}", self.model, is_trained=True))
        if self.encoder is not None:
            needs.append(Need(f"rows of {self.encoder}", self.encoder, False, is_dense, self.similarity))
        if is_dense and not needs:
            names = {*self.settings.values()} - {"vanilla", "ignore"}
            of_kind = OF_TOKENS if names & {*OF_SCORES.values()} else OF_TEXTS
            needs += [DENSE_ENCODER, of_kind] if names else [DENSE_ENCODER]
        return needs + [RERANKER] if self.rerank else needs

    def without(self, absent: Collection[Need]) -> dict[str, Any] | None:
        """What changes in the row if some models are absent. None leaves it out.

        A row that names an absent model itself is still shown if it has published figures.
        """
        lacking = [need for need in self.needs if need in absent]
        if not lacking and self.method:
            return {}
        if not (self.published or self.published_terms) or not all(need.model for need in lacking):
            return None
        trained = [need for need in lacking if need.is_trained]
        missing = f"Published for {self.model}, which is not run here; --train trains it." if trained else ""
        return {"method": None, "note": f"{self.note} {missing}".strip()}

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
