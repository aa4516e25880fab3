"""The options for running a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyserini_compneg.encode.models.checkpoint import NeuralSide, Side
from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.support.arguments import whole_number
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.options import COUNT, NOT_NEGATIVE, Number, check_options, option

PRECISIONS = ("fp32", "int8", "fp16")
BATCH_SIZE = 32

_LENGTH = Number("a whole number from 3", whole_number, lambda value: value >= 3)

ABLATIONS = ("none", "no-expansion", "no-weighting", "doc-only")
"""The ablations of query vectors, Krasakis et al., Table 3: keep everything; remove terms that are not tokens of the
query; set all weights to 1; or both, so that queries need no network."""


def checked_ablation(ablation: str | None) -> str:
    """The ablation, ``none`` for None."""
    if ablation not in (None, *ABLATIONS):
        raise EncodingError(f"ablation must be one of {', '.join(ABLATIONS)}, got {ablation!r}")
    return ablation or ABLATIONS[0]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options for running a model and for pruning its vectors. None leaves a choice to the model or the index."""

    backend: str = option(
        "onnx", "onnx exports the model once (default), torch runs the checkpoint itself", choices=("onnx", "torch")
    )
    precision: str | None = option(
        None,
        "fp32 (default; queries on an int8 index use int8), int8 for processors, or fp16 for GPUs",
        choices=PRECISIONS,
    )
    device: str = option("cpu", "cpu (default) or cuda", choices=("cpu", "cuda"))
    max_length: int | None = option(
        None,
        "longest text in tokens; the rest is not read (default: as the files of the model say, else 512)",
        _LENGTH,
    )
    batch_size: int = option(BATCH_SIZE, f"texts encoded at once (default {BATCH_SIZE})", COUNT)
    head: Head | None = option(
        None,
        "use this head instead of the one that the model names: relu or log1p_relu with max or sum, snrelu with "
        "absmax or sum",
        metavar="ACTIVATION:POOLING[:EPSILON]",
    )
    top_terms: int | None = option(
        None, "keep the N heaviest terms of each text (default: as the files of the model say, else all)", COUNT
    )
    threshold: float = option(0.0, "drop weights below X", NOT_NEGATIVE)

    def __post_init__(self) -> None:
        check_options(self, EncodingError)
        if self.precision == "int8" and (self.backend, self.device) != ("onnx", "cpu"):
            raise EncodingError("int8 is for the onnx backend on a processor", remedy="choose fp32, or fp16 on a GPU")
        if self.precision == "fp16" and self.device == "cpu":
            raise EncodingError("fp16 is for GPUs", remedy="choose --device cuda, or int8 on a processor")

    @property
    def runs_in(self) -> str:
        return self.precision or PRECISIONS[0]

    def for_index(self, settings: Mapping[str, object]) -> ModelOptions:
        """The options for queries of an index. They take its head and precision, unless these options set another.

        Args:
            settings: The settings of the index's manifest.
        """
        head = Head.parse(str(settings["head"])) if self.head is None and "head" in settings else self.head
        as_int8 = settings.get("precision") == "int8" and (self.backend, self.device) == ("onnx", "cpu")
        return replace(self, head=head, precision=self.precision or ("int8" if as_int8 else None))

    def for_side(self, side: Side) -> ModelOptions:
        """The options for one side, with the number of terms that its model keeps, unless these options set another.

        A side that comes as an export without weights has the export's precision.

        Raises:
            EncodingError: The options need weights, and the side has none; or its export is for GPUs.
        """
        has = side.exported_in if isinstance(side, NeuralSide) else None
        refused = {"--backend": self.backend != "onnx" and self.backend, "--head": self.head}
        refused["--device"] = has == "int8" and self.device != "cpu" and self.device
        refused["--precision"] = self.precision != has and self.precision
        if has and (chosen := next((f"{flag} {value}" for flag, value in refused.items() if value), None)):
            raise EncodingError(
                f"comes exported in {has}, without its weights", where=side.folder, remedy=f"leave out {chosen}"
            )
        if has == "fp16" and self.device == "cpu":
            remedy = "choose --device cuda, or export the model in fp32 or int8"
            raise EncodingError("comes exported in fp16, which is for GPUs", where=side.folder, remedy=remedy)
        return replace(self, precision=self.precision or has, top_terms=self.top_terms or side.top_terms)

    def pruned(self, vector: dict[str, float]) -> dict[str, float]:
        """The kept entries of a vector. Equal weights rank by the code points of their terms."""
        if self.threshold:
            vector = {term: weight for term, weight in vector.items() if abs(weight) >= self.threshold}
        if self.top_terms is None or len(vector) <= self.top_terms:
            return vector
        return dict(sorted(vector.items(), key=lambda item: (-abs(item[1]), item[0]))[: self.top_terms])
