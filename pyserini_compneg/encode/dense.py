"""Texts in, dense vectors out, with a model of sentence-transformers: what sparse rankings are compared with.

sentence-transformers itself runs the folder of a model, onnxruntime the ONNX file of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models import model_folder
from pyserini_compneg.models.cache import content_hash
from pyserini_compneg.models.hub import onnx_file
from pyserini_compneg.models.model_sides import DENSE_FILES, WEIGHT_FILES

MOST_DIMENSIONS = 4096
"""Of a vector in Anserini's dense indexes."""

_NEEDED = (
    "dense models need sentence-transformers; pip install 'pyserini_compneg[dense]', or name an ONNX file of the model"
)
_NEEDED_FOR_ONNX = "dense models as ONNX files need onnxruntime and tokenizers; pip install 'pyserini_compneg[onnx]'"
_BATCH_SIZE = 32
_FORMAT = 1
"""Counted up when a change here makes other vectors of the same model."""
_TORCH = (".safetensors", ".bin")

_Encode = Callable[[Sequence[str]], Any]


class DenseEncoder:
    """Encodes queries and documents as vectors of length 1, by the model's own pooling, prompts and longest text.

    What is longer is cut off, as everywhere with these models. A folder without ``modules.json`` is taken for a network
    whose tokens' vectors are averaged. Where there is a GPU, sentence-transformers uses it.

    Args:
        name: A folder, or a model of the Hugging Face hub; or an ONNX file, on the hub ``owner/name/onnx/model.onnx``.

    Attributes:
        name: The same.
        model_hash: A hash of all files that its vectors depend on.
        dimensions: The numbers of a vector.

    Raises:
        EncodingError: No model, one that cannot be loaded, or one whose vectors no dense index holds.
        DownloadError: A model that cannot be had from the hub.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._encode_query, self._encode_document = _onnx(name) if _is_onnx(name) else _torch(_folder(name))
        self.model_hash = dense_model_hash(name)
        self.dimensions = self._encoded(self._encode_query, ["a"]).shape[1]
        if self.dimensions > MOST_DIMENSIONS:
            raise EncodingError(
                f"{name}: gives vectors of {self.dimensions:,} numbers, and dense indexes hold {MOST_DIMENSIONS:,}; if "
                "it is a sparse model, name it as such"
            )

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, (texts, dimensions); every distinct text is encoded once."""
        distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        vectors = self._encoded(self._encode_query, list(distinct))
        return vectors[[distinct[text] for text in texts]]

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of documents, (texts, dimensions); some hundreds are sorted by length among themselves."""
        return self._encoded(self._encode_document, texts)

    def _encoded(self, encode: _Encode, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        readable = [text.encode(errors="replace").decode() for text in texts]  # half a surrogate pair is no text
        vectors = np.asarray(encode(readable), np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise EncodingError(f"{self.name}: gives vectors that are 0 or no finite numbers; its weights are damaged")
        return np.asarray(vectors / lengths, np.float32)


def dense_model_hash(name: str) -> str:
    """What tells models apart whatever their names, and what runs them: a hash of the files; no model is loaded.

    Raises:
        EncodingError: No model.
        DownloadError: A model that cannot be had from the hub.
    """
    if _is_onnx(name):
        from pyserini_compneg.models.dense_onnx import read_dense_checkpoint

        return content_hash(read_dense_checkpoint(onnx_file(name), name).files, {"format": _FORMAT, "backend": "onnx"})
    return content_hash(_files(_folder(name)), {"format": _FORMAT})


def check_dense_model(name: str) -> None:
    """Makes sure, without loading it, that a model is there and what it runs on is installed.

    Raises:
        EncodingError: No model, or nothing to run it on.
        DownloadError: A model that cannot be had from the hub.
    """
    _check_packages(_is_onnx(name))
    dense_model_hash(name)


def similarities(name: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """How alike a model finds the two texts of each pair, as queries: their cosine, from -1 to 1.

    Between what a query wants and what it excludes, this is the interference of Krasakis et al., Section 5.1.1 and
    Figure 3, which they measure with all-MiniLM-L6-v2.

    Args:
        name: The model, as :class:`DenseEncoder` takes it.
        pairs: The texts.

    Raises:
        EncodingError: As there.
        DownloadError: As there.
    """
    vectors = DenseEncoder(name).encode_queries([text for pair in pairs for text in pair]).astype(np.float64)
    cosines = np.einsum("ij,ij->i", vectors[0::2], vectors[1::2])
    return [float(cosine) for cosine in np.clip(cosines, -1.0, 1.0)]


def _folder(name: str) -> Path:
    try:
        return model_folder(name)
    except EncodingError:
        known = "a folder, owner/name on the Hugging Face hub, or an ONNX file of either"
        raise EncodingError(f"no dense model {name!r}; expected {known}") from None


def _is_onnx(name: str) -> bool:
    return name.endswith(".onnx")


def _check_packages(for_onnx: bool) -> None:
    packages = ("onnxruntime", "tokenizers") if for_onnx else ("sentence_transformers",)
    if not all(map(find_spec, packages)):
        raise EncodingError(_NEEDED_FOR_ONNX if for_onnx else _NEEDED)


def _files(folder: Path) -> list[Path]:
    """What the model is made of: the configuration, tokenizer and weights of the folder and of its modules."""
    files = []
    for place in [folder, *(folder / path for path in _module_paths(folder) if path)]:
        files += [place / name for name in DENSE_FILES if (place / name).is_file()]
        files += next(filter(None, (sorted(place.glob(pattern)) for pattern in WEIGHT_FILES)), [])
    return files


def _module_paths(folder: Path) -> list[str]:
    file = folder / "modules.json"
    try:
        return [module["path"] for module in json.loads(file.read_text(encoding="utf-8"))] if file.is_file() else []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise EncodingError(f"{file}: no list of modules with a `path` each") from None


def _onnx(name: str) -> tuple[_Encode, _Encode]:
    """What encodes queries, and documents, with an ONNX file."""
    _check_packages(for_onnx=True)
    from pyserini_compneg.models.dense_onnx import DenseOnnxModel, read_dense_checkpoint

    model = DenseOnnxModel(read_dense_checkpoint(onnx_file(name), name))
    return model.encode_query, model.encode_document


def _torch(folder: Path) -> tuple[_Encode, _Encode]:
    """What encodes queries, and documents, with sentence-transformers."""
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as reports
    except ImportError:
        raise EncodingError(_NEEDED) from None
    exports = sorted(folder.rglob("*.onnx"))
    if exports and not any(path.suffix in _TORCH for path in _files(folder)):
        raise EncodingError(f"{folder}: no weights for torch; name the ONNX file, such as {exports[0]}")
    reports.disable_progress_bar()
    try:
        model = SentenceTransformer(str(folder), local_files_only=True).eval()
    except Exception as cause:  # of torch, safetensors, transformers: without a common class
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise EncodingError(f"{folder}: the model cannot be loaded: {lines[0][:200]}") from None
    encode = {"batch_size": _BATCH_SIZE, "show_progress_bar": False}
    return partial(model.encode_query, **encode), partial(model.encode_document, **encode)
