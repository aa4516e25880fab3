"""Dense encoders: models of sentence-transformers that make one vector of a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.encode.models import model_folder
from pyserini_compneg.encode.models.cache import content_hash
from pyserini_compneg.encode.models.configuration import optional_json
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import EncodingError, in_one_line, install_hint

_MODEL_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")
_FORMAT = 2
"""Counted up when a change makes other vectors of the same model, or other files of them."""

_BATCH_SIZE = 32
COSINE, DOT = "cosine", "dot"


class DenseEncoder:
    """Runs a model of sentence-transformers, with its own pooling, prompts and longest text.

    Vectors have length 1, but for models whose configuration says that they are compared by the dot product. Longer
    texts are cut off. sentence-transformers averages the vectors of the tokens where the model's folder has no
    ``modules.json``, and uses a GPU where there is one.

    Args:
        name: A folder, or a model of the Hugging Face hub.

    Attributes:
        name: As given.
        model_hash: A hash of the model's files.
        similarity: How vectors are compared: ``dot`` if ``similarity_fn_name`` says so, else ``cosine``.

    Raises:
        EncodingError: No model, or one that cannot be loaded.
        DownloadError: A model that cannot be had from the hub.
    """

    def __init__(self, name: str) -> None:
        check_dense_model(name)
        from sentence_transformers import SentenceTransformer

        self.name, self.model_hash = name, dense_model_hash(name)
        self.similarity = _similarity(name)
        folder = sentence_model_folder(name)
        with quiet_transformers(), in_one_line(EncodingError, f"{name}: the model cannot be loaded"):
            self._model = SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False).eval()
            check_network(self._model, folder, name, unused="pooler")

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, (texts, dimensions)."""
        return self._encoded(self._model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of documents, (texts, dimensions)."""
        return self._encoded(self._model.encode_document, texts)

    def _encoded(self, encode: Callable[..., Any], texts: Sequence[str]) -> NDArray[np.float32]:
        texts = checked_list("texts", texts)
        readable = [text.encode(errors="replace").decode() for text in texts]  # half a surrogate pair is no text
        with in_one_line(EncodingError, f"{self.name}: the model fails on these texts"):
            vectors = np.asarray(encode(readable, batch_size=_BATCH_SIZE, show_progress_bar=False), np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise EncodingError(f"{self.name}: gives vectors that are 0 or no finite numbers; its weights are damaged")
        return np.asarray(vectors if self.similarity == DOT else vectors / lengths, np.float32)


def check_network(model: Any, folder: Path, name: str, unused: str = "") -> None:
    """Makes sure that a model of sentence-transformers is whole.

    transformers draws weights that the files lack at random, and makes a tokenizer of almost no words where there is
    none.

    Args:
        model: The model, which was loaded.
        folder: Where it was loaded from.
        name: What it is called.
        unused: Part of the names of weights that may be missing, because no result comes from them.

    Raises:
        EncodingError: Weights or words are missing.
    """
    network = model.transformers_model
    modules = json.loads((folder / "modules.json").read_bytes()) if (folder / "modules.json").is_file() else []
    place = folder / modules[0]["path"] if modules else folder
    if network is None or not (place / "config.json").is_file():  # several networks, each in a folder of its own
        return
    _, found = type(network).from_pretrained(
        str(place), local_files_only=True, trust_remote_code=False, output_loading_info=True
    )
    if lacking := sorted(key for key in found["missing_keys"] if not unused or unused not in key):
        raise EncodingError(f"{name}: its weights lack {lacking[0]!r}, which would be random; get a whole model")
    words, embedded = model.tokenizer.vocab_size, network.get_input_embeddings().num_embeddings
    if words > embedded:
        raise EncodingError(f"{name}: its tokenizer has {words} tokens, and its weights {embedded}; get a whole model")
    files = sorted({"tokenizer.json", *type(model.tokenizer).vocab_files_names.values()})
    if not any((place / file).is_file() for file in files):
        raise EncodingError(f"{name}: has no tokenizer, none of {', '.join(files)}; get a whole model")


def check_dense_model(name: str) -> None:
    """Makes sure, without loading it, that a model is there and that sentence-transformers can run it.

    Raises:
        EncodingError: No model, or no sentence-transformers.
        DownloadError: A model that cannot be had from the hub.
    """
    if not find_spec("sentence_transformers"):
        raise EncodingError(f"dense models need sentence-transformers; {install_hint('dense')}")
    sentence_model_folder(name)


def dense_model_hash(name: str) -> str:
    """A hash of the files of a model, which is not loaded.

    Raises:
        EncodingError: No model.
        DownloadError: A model that cannot be had from the hub.
    """
    folder = sentence_model_folder(name)
    settings = {"format": _FORMAT} | ({"similarity": DOT} if _similarity(name) == DOT else {})
    return content_hash(sorted(file for kind in _MODEL_FILES for file in folder.rglob(kind)), settings)


def _similarity(name: str) -> str:
    config = optional_json(sentence_model_folder(name) / "config_sentence_transformers.json", name)
    return DOT if config.get("similarity_fn_name") == DOT else COSINE


def sentence_model_folder(name: str) -> Path:
    """The folder of a model, which is downloaded if it has to be.

    Raises:
        EncodingError: No model.
        DownloadError: A model that cannot be had from the hub.
    """
    try:
        return model_folder(name)
    except EncodingError:
        if Path(name).is_dir():
            raise
        expected = "a folder, or owner/name on the Hugging Face hub"
        raise EncodingError(f"no model of sentence-transformers {name!r}; expected {expected}") from None
