"""Texts in, dense vectors out, with a model of sentence-transformers: what sparse rankings are compared with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models import model_folder
from pyserini_compneg.models.cache import content_hash
from pyserini_compneg.models.model_sides import TEXT_FILES, WEIGHT_FILES

MOST_DIMENSIONS = 4096
"""Of a vector in Anserini's dense indexes."""

_NEEDED = "dense models need sentence-transformers; pip install 'pyserini_compneg[dense]'"
_BATCH_SIZE = 32
_FORMAT = 1
"""Counted up when a change here makes other vectors of the same model."""

_PARTS = ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", *TEXT_FILES)


class DenseEncoder:
    """Encodes queries and documents as vectors of length 1, by the model's own pooling, prompts and longest text.

    What is longer is cut off, as everywhere with these models. A folder without ``modules.json`` is taken for a network
    whose tokens' vectors are averaged. Where there is a GPU, sentence-transformers uses it.

    Args:
        name: A folder, or a model of the Hugging Face hub.

    Attributes:
        name: The same.
        model_hash: A hash of all files that its vectors depend on.
        dimensions: The numbers of a vector.

    Raises:
        EncodingError: No model, one that cannot be loaded, or one whose vectors no dense index holds.
        DownloadError: A model that cannot be had from the hub.
    """

    def __init__(self, name: str) -> None:
        folder = model_folder(name)
        self.name = name
        self._model = _load(folder)
        self.model_hash = dense_model_hash(name)
        self.dimensions = self._encoded(self._model.encode_query, ["a"]).shape[1]
        if self.dimensions > MOST_DIMENSIONS:
            raise EncodingError(
                f"{name}: gives vectors of {self.dimensions:,} numbers, and dense indexes hold {MOST_DIMENSIONS:,}; if "
                "it is a sparse model, name it as such"
            )

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, (texts, dimensions); every distinct text is encoded once."""
        distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        vectors = self._encoded(self._model.encode_query, list(distinct))
        return vectors[[distinct[text] for text in texts]]

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of documents, (texts, dimensions); some hundreds are sorted by length among themselves."""
        return self._encoded(self._model.encode_document, texts)

    def _encoded(self, encode: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        readable = [text.encode(errors="replace").decode() for text in texts]  # half a surrogate pair is no text
        vectors = np.asarray(encode(readable, batch_size=_BATCH_SIZE, show_progress_bar=False), np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise EncodingError(f"{self.name}: gives vectors that are 0 or no finite numbers; its weights are damaged")
        return np.asarray(vectors / lengths, np.float32)


def dense_model_hash(name: str) -> str:
    """What tells models apart whatever their names: a hash of the files; the model is not loaded.

    Raises:
        EncodingError: No model.
        DownloadError: A model that cannot be had from the hub.
    """
    return content_hash(_files(model_folder(name)), {"format": _FORMAT})


def check_dense_model(name: str) -> None:
    """Makes sure, without loading it, that a model is there and what it runs on is installed.

    Raises:
        EncodingError: No model, or no sentence-transformers.
        DownloadError: A model that cannot be had from the hub.
    """
    if find_spec("sentence_transformers") is None:
        raise EncodingError(_NEEDED)
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


def _files(folder: Path) -> list[Path]:
    """What the model is made of: the configuration, tokenizer and weights of the folder and of its modules."""
    files = []
    for place in [folder, *(folder / path for path in _module_paths(folder) if path)]:
        files += [place / name for name in _PARTS if (place / name).is_file()]
        files += next(filter(None, (sorted(place.glob(pattern)) for pattern in WEIGHT_FILES)), [])
    return files


def _module_paths(folder: Path) -> list[str]:
    file = folder / "modules.json"
    try:
        return [module["path"] for module in json.loads(file.read_text(encoding="utf-8"))] if file.is_file() else []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise EncodingError(f"{file}: no list of modules with a `path` each") from None


def _load(folder: Path) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as reports
    except ImportError:
        raise EncodingError(_NEEDED) from None
    reports.disable_progress_bar()
    try:
        return SentenceTransformer(str(folder), local_files_only=True).eval()
    except Exception as cause:  # of torch, safetensors, transformers: without a common class
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise EncodingError(f"{folder}: the model cannot be loaded: {lines[0][:200]}") from None
