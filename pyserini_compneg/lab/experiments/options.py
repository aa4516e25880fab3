"""What the rows of a protocol are run with: the encoders and models that the command chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyserini_compneg.baselines import check_dense_model, check_pair_scorer
from pyserini_compneg.encode import BM25, split_name
from pyserini_compneg.encode.models import ModelOptions, load_checkpoint
from pyserini_compneg.lab.experiments.inputs import ALL_MINILM, DENSE, MS_MARCO_MINILM
from pyserini_compneg.lab.experiments.rows import Need, Reading, RowPlan
from pyserini_compneg.lab.experiments.term_measures import WORDNET, check_wordnet
from pyserini_compneg.support.errors import DownloadError, EncodingError, InputError


@dataclass(frozen=True, slots=True)
class Engine:
    """An encoder, named as in ``--encoder``, and the index of its documents."""

    encoder: str
    index: Path | None = None  # an existing index; None to build one
    label: str = ""  # distinguishes its rows; empty for a single engine

    @property
    def is_hybrid(self) -> bool:
        """Whether its vectors combine BM25 and a model."""
        return split_name(self.encoder)[0]

    @property
    def is_lexical(self) -> bool:
        """Whether no model makes its vectors: BM25, or a file of vectors."""
        return self.encoder == BM25 or Path(self.encoder).is_file() or self.is_hybrid


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What rows are run with, where they do not say.

    ``dense_encoder``, ``reranker`` and ``wordnet`` default to all-MiniLM-L6-v2, a cross-encoder of MS MARCO and
    Debian's folder. If a default is missing, the parts that need it are left out.
    """

    engines: Sequence[Engine]
    dense_encoder: str | None = None
    reranker: str | None = None
    wordnet: Path | None = None
    models: Mapping[str, Path] = field(default_factory=dict)  # trained models, by their names in the protocol
    model_options: ModelOptions | None = None
    model_weight: float | None = None  # the share of the model in bm25+MODEL
    read: Reading = "expression"  # how texts are read in rows that take the dataset's expressions
    threads: int = 1

    @property
    def dense_name(self) -> str:
        return self.dense_encoder or ALL_MINILM

    @property
    def reranker_name(self) -> str:
        return self.reranker or MS_MARCO_MINILM

    @property
    def wordnet_folder(self) -> Path:
        return self.wordnet or WORDNET

    def encoders(self, row: RowPlan) -> Sequence[Engine]:
        """The encoders with which a row is run, each once: none for a row that is only published."""
        if row.method is None:
            return []
        if row.takes_encoders:
            return self.engines
        model = str(self.models[row.model]) if row.model else self.dense_name if row.method == DENSE else ""
        return [Engine(row.encoder or model)]

    def reading(self, row: RowPlan) -> Reading:
        return self.read if row.reads == "expression" else row.reads

    def weight(self, row: RowPlan) -> float | None:
        return self.model_weight if row.model_weight is None else row.model_weight

    def absence(self, need: Need, is_required: bool) -> str:
        """The reason why a model or folder is unavailable, or an empty text.

        Raises an error if the user named it, or if it is required.
        """
        named, check = self._check(need)
        try:
            check()
        except (DownloadError, EncodingError, InputError) as error:
            if named is not None or is_required:
                raise
            return str(error)
        return ""

    def _check(self, need: Need) -> tuple[str | Path | None, Callable[[], object]]:
        """The user's choice, and a function that raises an error if it, or the default, is unavailable."""
        match need.kind:
            case "dense encoder":
                return self.dense_encoder, partial(check_dense_model, self.dense_name)
            case "reranker":
                return self.reranker, partial(check_pair_scorer, self.reranker_name)
            case "wordnet":
                return self.wordnet, partial(check_wordnet, self.wordnet_folder)
            case "hub" if need.is_dense:
                return None, partial(check_dense_model, need.name, similarity=need.similarity)
        return None, partial(load_checkpoint, need.name)
