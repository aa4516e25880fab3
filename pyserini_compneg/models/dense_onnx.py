"""Dense models as ONNX files, run by onnxruntime: without torch, and without sentence-transformers.

The file is the network. What comes before and after it is read from the model's folder, as sentence-transformers writes
it: the tokenizer, prompts, the longest text, and what becomes of the vectors of a text's tokens.
"""

from __future__ import annotations

import glob
import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models.batching import MOST_TOKENS, padded_batches
from pyserini_compneg.models.configuration import (
    NO_LIMIT,
    optional_json,
    part_folder,
    prompt_of,
    read_lengths,
    required_json,
)
from pyserini_compneg.models.model_sides import DENSE_FILES
from pyserini_compneg.models.onnx_model import open_session, run_session
from pyserini_compneg.models.options import BATCH_SIZE
from pyserini_compneg.models.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

POOLINGS = ("mean", "mean_sqrt_len_tokens", "weightedmean", "cls", "lasttoken", "max")
"""Of the vectors of a text's tokens; of one length, the first two are the same."""

_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""How sentence-transformers wrote poolings before its version 6."""

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUTS = ("last_hidden_state", "token_embeddings")
_CHAINS = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_DYNAMIC = b"DynamicQuantize"
_PADDING_CHANGES = 1e-3
"""What padding may change of a vector, relative to its largest number, as rounding does."""


class DenseCheckpoint(NamedTuple):
    """A dense model with an ONNX file.

    Attributes:
        name: As the user named it.
        file: The ONNX file.
        network: The folder of the tokenizer and of what says how long texts may be.
        files: All that its vectors depend on.
        pooling: One of ``POOLINGS``.
        width: The numbers of a token's vector; None where nothing says it.
        prompts: What is put before queries and documents, by ``query`` and ``document``.
    """

    name: str
    file: Path
    network: Path
    files: tuple[Path, ...]
    pooling: str
    width: int | None
    prompts: Mapping[str, str]


def read_dense_checkpoint(file: Path, name: str) -> DenseCheckpoint:
    """Reads what an ONNX file belongs to: the model in its own folder, or in the one above; it is not loaded.

    Where no ``modules.json`` says otherwise, the vectors of the tokens are averaged.

    Args:
        file: The ONNX file.
        name: How messages call it.

    Raises:
        EncodingError: No model, a damaged one, or one of other parts than a network and a pooling.
    """
    file = file.absolute()
    root = _root(file, name).resolve()  # as part_folder does, so that no file is listed twice
    modules = required_json(root / "modules.json", list, name) if (root / "modules.json").is_file() else []
    try:
        kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
        places = [part_folder(root, str(module["path"]), name) for module in modules]
        if modules and kinds not in _CHAINS:
            raise EncodingError(
                f"{name}: a model of {', '.join(kinds)} does more than its ONNX file and a pooling; name its folder, "
                "which sentence-transformers runs"
            )
        config = required_json(places[1] / "config.json", dict, name) if modules else {}
        pooling, width = _pooling(config), config.get("embedding_dimension", config.get("word_embedding_dimension"))
        prompts = {side: prompt_of(root, side, name) for side in ("query", "document")}
    except (KeyError, TypeError, AttributeError, IndexError) as cause:  # values of any wrong type
        raise EncodingError(f"{name}: modules.json, or what says how it pools, is damaged: {cause!r}") from None
    if pooling not in POOLINGS or (config.get("include_prompt") is False and any(prompts.values())):
        what = f"pooling {pooling!r}" if pooling not in POOLINGS else "a pooling without the prompt's tokens"
        raise EncodingError(f"{name}: {what} is not done here; name its folder, which sentence-transformers runs")
    network = places[0] if modules else root
    own = [place / part for place in dict.fromkeys([root, network]) for part in DENSE_FILES]
    files = [part for part in [*own, *(place / "config.json" for place in places[1:])] if part.is_file()]
    return DenseCheckpoint(name, file, network, (*files, *_weights(file)), pooling, width, prompts)


class DenseOnnxModel:
    """Encodes texts, on the processor.

    Args:
        checkpoint: The model.

    Raises:
        EncodingError: A file that cannot be run, or that is of another model than its tokenizer or pooling.
    """

    def __init__(self, checkpoint: DenseCheckpoint) -> None:
        self._checkpoint = checkpoint
        self._session, device = open_session(checkpoint.file)
        self._most_tokens = MOST_TOKENS[device]
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        outputs = [entry.name for entry in self._session.get_outputs()]
        self._output = next((name for name in _OUTPUTS if name in outputs), "")
        if not {*_INPUTS[:2]} <= {*self._inputs} <= {*_INPUTS} or not self._output:
            raise EncodingError(
                f"{checkpoint.name}: from {', '.join(self._inputs)} it makes {', '.join(outputs)}; expected "
                f"{' or '.join(_OUTPUTS)} from {', '.join(_INPUTS)}"
            )
        config = optional_json(checkpoint.network / "sentence_bert_config.json", checkpoint.name)
        length, _ = read_lengths(checkpoint.network, checkpoint.name, NO_LIMIT)
        self._tokenizer = TextTokenizer(checkpoint.network, length, lowercase=config.get("do_lower_case") is True)
        self._check_fit()
        # Where scales are found on the way, the texts of a batch share them, and change each other's vectors.
        alone = _holds(checkpoint.file, _DYNAMIC) or not self._heeds_mask()
        self._batch_size = 1 if alone else BATCH_SIZE

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, of any length, (texts, numbers)."""
        return self._encoded(texts, self._checkpoint.prompts["query"])

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of documents, likewise."""
        return self._encoded(texts, self._checkpoint.prompts["document"])

    def _encoded(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        ids = self._tokenizer([prompt + text for text in texts]).ids
        vectors: Any = None
        for batch, padded, mask in padded_batches(ids, self._batch_size, self._most_tokens):
            pooled = _pooled(self._tokens(padded, mask), mask, self._checkpoint.pooling)
            if vectors is None:
                vectors = np.zeros((len(texts), pooled.shape[1]), np.float32)
            vectors[batch] = pooled
        return np.zeros((len(texts), 1), np.float32) if vectors is None else vectors

    def _tokens(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of all tokens, (texts, tokens, numbers)."""
        values = dict(zip(_INPUTS, (ids, mask, ids * 0), strict=True))
        inputs = {name: values[name] for name in self._inputs}
        (tokens,) = run_session(self._session, [self._output], inputs)
        return np.asarray(tokens, np.float32)

    def _check_fit(self) -> None:
        """Makes sure that the file knows the last token, and has vectors of as many numbers as are pooled."""
        name, last = self._checkpoint.name, len(self._tokenizer.terms) - 1
        try:
            tokens = self._tokens(np.array([[last]]), np.array([[1]]))
        except EncodingError as cause:
            raise EncodingError(
                f"{name}: fails on token {last} of the tokenizer beside it; are they of one model? {cause}"
            ) from None
        width = self._checkpoint.width
        if width is not None and tokens.shape[2:] != (width,):
            raise EncodingError(
                f"{name}: makes vectors of {tokens.shape[-1]} numbers, and the pooling beside it is of {width}; they "
                "are not of one model"
            )

    def _heeds_mask(self) -> bool:
        """Whether padding changes nothing; it does in exports whose example had none."""
        alone = self._tokens(np.array([[1]]), np.array([[1]]))[0, 0]
        padded = self._tokens(np.array([[1, 0, 0]]), np.array([[1, 0, 0]]))[0, 0]
        return bool(np.abs(alone - padded).max() <= _PADDING_CHANGES * np.abs(alone).max())


def _root(file: Path, name: str) -> Path:
    """The folder of the whole model."""
    for marks in (("modules.json",), ("tokenizer.json", "tokenizer_config.json")):
        for place in (file.parent, file.parent.parent):
            if any((place / mark).is_file() for mark in marks):
                return place
    raise EncodingError(f"{name}: neither in its folder nor in the one above is there a modules.json or tokenizer.json")


def _weights(file: Path) -> list[Path]:
    """The file, and those that hold its large weights, such as ``model.onnx_data``."""
    return [file, *sorted(file.parent.glob(f"{glob.escape(file.name)}[._]*"))]


def _pooling(config: Mapping[str, Any]) -> str:
    """The one pooling of a configuration, in words where it has several."""
    found = config.get("pooling_mode") or [kind for flag, kind in _FLAGS.items() if config.get(flag)] or ["mean"]
    return found if isinstance(found, str) else " and ".join(found)


def _pooled(tokens: NDArray[np.float32], mask: NDArray[np.int64], pooling: str) -> NDArray[np.float32]:
    """One vector a text, (texts, numbers); only its direction means anything, so no sum is divided."""
    if pooling == "max":
        return np.asarray(np.where(mask[:, :, None] == 1, tokens, -np.inf).max(axis=1), np.float32)
    places = np.arange(mask.shape[1])
    shares = {
        "weightedmean": mask * (places + 1),
        "cls": np.broadcast_to(places == 0, mask.shape),
        "lasttoken": places == mask.sum(axis=1, keepdims=True) - 1,
    }.get(pooling, mask)
    return np.asarray(np.einsum("bt,btd->bd", shares.astype(np.float32), tokens), np.float32)


def _holds(file: Path, sign: bytes) -> bool:
    with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(sign) >= 0
