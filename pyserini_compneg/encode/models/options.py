"""How a model is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyserini_compneg.encode.models.checkpoint import NeuralSide, Side
from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.support.errors import EncodingError

BACKENDS = ("onnx", "torch")
PRECISIONS = ("fp32", "int8", "fp16")
DEVICES = ("cpu", "cuda")
BATCH_SIZE = 32

ABLATIONS = ("none", "no-expansion", "no-weighting", "doc-only")
"""What is left out of query vectors, Krasakis et al., Table 3: nothing; terms that are no tokens of the query; the
weights, which are all 1 then; or both, so that no network is needed for queries."""


def checked_ablation(ablation: str | None) -> str:
    """The ablation, ``none`` for None.

    Raises:
        EncodingError: It is unknown.
    """
    if ablation not in (None, *ABLATIONS):
        raise EncodingError(f"ablation must be one of {', '.join(ABLATIONS)}, got {ablation!r}")
    return ablation or ABLATIONS[0]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is run, and which entries of its vectors are kept.

    Attributes:
        backend: ``onnx``, which exports the model once, or ``torch``.
        precision: ``fp32``; ``int8``, for processors, with onnx; ``fp16``, for GPUs. None is ``fp32``; for queries
            of an index in int8 it is ``int8`` where that can be run.
        device: ``cpu`` or ``cuda``; without CUDA the processor is used, with a warning.
        max_length: Tokens that are read of a text; None for what the model takes, and at most 512.
        batch_size: Texts in a batch, fewer where they are long; in int8 always one.
        head: Activation and pooling; None for what the checkpoint says.
        top_terms: Entries of a vector that are kept, those with the largest absolute weights; None for all.
        threshold: The least absolute weight that is kept.
    """

    backend: str = "onnx"
    precision: str | None = None
    device: str = "cpu"
    max_length: int | None = None
    batch_size: int = BATCH_SIZE
    head: Head | None = None
    top_terms: int | None = None
    threshold: float = 0.0

    def __post_init__(self) -> None:
        """Checks the values, and whether they go together."""
        chosen = (("backend", BACKENDS), ("precision", (*PRECISIONS, None)), ("device", DEVICES))
        for name, known in chosen:
            if getattr(self, name) not in known:
                listed = ", ".join(filter(None, known))
                raise EncodingError(f"{name} must be one of {listed}, got {getattr(self, name)!r}")
        for name, least in (("max_length", 3), ("batch_size", 1), ("top_terms", 1), ("threshold", 0)):
            value = getattr(self, name)
            if value is not None and not least <= value < float("inf"):
                raise EncodingError(f"{name} must be at least {least}, got {value}")
        if self.precision == "int8" and (self.backend, self.device) != ("onnx", "cpu"):
            raise EncodingError("int8 is for the onnx backend on a processor; choose fp32, or fp16 on a GPU")
        if self.precision == "fp16" and self.device == "cpu":
            raise EncodingError("fp16 is for GPUs; choose --device cuda, or int8 on a processor")

    @property
    def runs_in(self) -> str:
        """The precision in which the model runs."""
        return self.precision or PRECISIONS[0]

    def for_index(self, settings: Mapping[str, object]) -> ModelOptions:
        """The same with the head and the precision of an index, where none is chosen here, for its queries.

        Args:
            settings: Those of the index's manifest.
        """
        head = Head.parse(str(settings["head"])) if self.head is None and "head" in settings else self.head
        as_int8 = settings.get("precision") == "int8" and (self.backend, self.device) == ("onnx", "cpu")
        return replace(self, head=head, precision=self.precision or ("int8" if as_int8 else None))

    def for_side(self, side: Side) -> ModelOptions:
        """The same with the precision of a side that comes exported, where none is chosen here.

        Raises:
            EncodingError: What is chosen here needs weights, which it does not have.
        """
        has = side.exported_in if isinstance(side, NeuralSide) else None
        refused = {"--backend": self.backend != "onnx" and self.backend, "--head": self.head}
        refused["--device"] = has == "int8" and self.device != "cpu" and self.device
        refused["--precision"] = self.precision != has and self.precision
        if has and (chosen := next((f"{flag} {value}" for flag, value in refused.items() if value), None)):
            raise EncodingError(f"{side.folder}: comes exported in {has}, without its weights; leave out {chosen}")
        return replace(self, precision=self.precision or has)

    def pruned(self, vector: dict[str, float]) -> dict[str, float]:
        """The entries of a vector that are kept; among equal weights, terms by code point."""
        if self.threshold:
            vector = {term: weight for term, weight in vector.items() if abs(weight) >= self.threshold}
        if self.top_terms is None or len(vector) <= self.top_terms:
            return vector
        return dict(sorted(vector.items(), key=lambda item: (-abs(item[1]), item[0]))[: self.top_terms])
