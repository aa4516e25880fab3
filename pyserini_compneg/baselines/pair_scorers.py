"""Models that score a query's text with a document's text: bi-encoders and cross-encoders of sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.baselines.dense import (
    DOT,
    DenseEncoder,
    check_dense_model,
    check_network,
    dense_model_hash,
    sentence_model_folder,
)
from pyserini_compneg.encode.models.configuration import optional_json
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.support.errors import EncodingError, in_one_line

_BATCH_SIZE = 32
_ENTAILMENT = "entailment"

_KEPT_DOCUMENTS = 20_000
"""So many documents' vectors are kept. BM25's first 100 for 528 queries of ExcluIR are 52,717 hits, 1,976 documents."""


class PairScorer(Protocol):
    """Scores pairs of texts.

    Attributes:
        name: The model's name.
        model_hash: A hash of the model's files.
    """

    name: str
    model_hash: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """How well each query's text and document's text go together: higher is better."""
        ...


def pair_scorer(name: str) -> PairScorer:
    """The model of a folder or of the hub. Its own files say whether it is a bi-encoder or a cross-encoder.

    A folder of sentence-transformers names its kind. Any other is a cross-encoder if its network classifies sequences,
    and a bi-encoder, whose vector is the mean of the tokens' vectors, if its network has no head at all.

    Raises:
        EncodingError: No model, one of another kind, one without a score, or one that cannot be loaded.
        DownloadError: A model that cannot be had from the hub.
    """
    return CrossEncoderScorer(name) if _is_cross_encoder(name) else BiEncoderScorer(name)


def check_pair_scorer(name: str) -> None:
    """Makes sure, without loading it, that a model is there and is a bi-encoder or a cross-encoder.

    Raises:
        EncodingError: No model, or one of another kind.
        DownloadError: A model that cannot be had from the hub.
    """
    _is_cross_encoder(name)


def _is_cross_encoder(name: str) -> bool:
    check_dense_model(name)
    folder = sentence_model_folder(name)
    kind = optional_json(folder / "config_sentence_transformers.json", name).get("model_type")
    if kind is None and (folder / "modules.json").is_file():
        kind = "SentenceTransformer"
    listed = optional_json(folder / "config.json", name).get("architectures")
    network = str(listed[0]) if isinstance(listed, list) and listed else "no network"
    if kind == "CrossEncoder" or (kind is None and network.endswith("ForSequenceClassification")):
        return True
    if kind == "SentenceTransformer" or (kind is None and network.endswith("Model")):
        return False
    expected = "a cross-encoder, which classifies sequences, or a bi-encoder of sentence-transformers"
    raise EncodingError(f"{name}: has no head that scores ({kind or network}); rerank with {expected}")


class BiEncoderScorer:
    """Compares vectors of both texts: (1 + cosine) / 2, or the dot product where the model is for that.

    Args:
        name: A folder, or a model of the Hugging Face hub.
    """

    def __init__(self, name: str) -> None:
        self._encoder = DenseEncoder(name)
        self.name, self.model_hash = name, self._encoder.model_hash
        self._documents: dict[str, NDArray[np.float32]] = {}

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """As every pair scorer; the last documents' vectors are kept."""
        texts = list(dict.fromkeys(query for query, _ in pairs))
        queries = dict(zip(texts, self._encoder.encode_queries(texts), strict=True))
        new = [text for text in dict.fromkeys(document for _, document in pairs) if text not in self._documents]
        if new:
            self._documents |= zip(new, self._encoder.encode_documents(new), strict=True)
        products = [float(queries[query] @ self._documents[document]) for query, document in pairs]
        while len(self._documents) > _KEPT_DOCUMENTS:
            del self._documents[next(iter(self._documents))]
        found = np.asarray(products, np.float64)
        return found if self._encoder.similarity == DOT else (1 + found) / 2


class CrossEncoderScorer:
    """Reads both texts at once: the probability that the model gives to their label.

    That is the logistic function of the one logit. A model of inference, with several labels, gives the probability
    that the document entails the query.

    Args:
        name: A folder, or a model of the Hugging Face hub.
    """

    def __init__(self, name: str) -> None:
        from sentence_transformers import CrossEncoder

        self.name, self.model_hash = name, dense_model_hash(name)
        folder = sentence_model_folder(name)
        with quiet_transformers(), in_one_line(EncodingError, f"{name}: the model cannot be loaded"):
            self._model = CrossEncoder(
                str(folder), activation_fn=lambda logits: logits, local_files_only=True, trust_remote_code=False
            ).eval()
            check_network(self._model, folder, name)
        self._label = _label(self._model, name)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """As every pair scorer."""
        readable = [tuple(text.encode(errors="replace").decode() for text in pair) for pair in pairs]
        if self._label is not None:
            readable = [pair[::-1] for pair in readable]  # models of inference read first the text that entails
        with in_one_line(EncodingError, f"{self.name}: the model fails on these texts"):
            found = self._model.predict(readable, batch_size=_BATCH_SIZE, show_progress_bar=False)
        logits = np.asarray(found, np.float64).reshape(len(pairs), -1)
        logits[~np.isfinite(logits)] = np.nan
        with np.errstate(invalid="ignore"):  # the caller refuses NaN
            if self._label is None:
                return np.asarray(np.exp(-np.logaddexp(0, -logits[:, 0])))
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            return np.asarray(shares[:, self._label] / shares.sum(axis=1))


def _label(model: Any, name: str) -> int | None:
    """The place of the label that scores; None for a single one."""
    if model.num_labels == 1:
        return None
    labels = {str(label).lower(): int(place) for place, label in model.config.id2label.items()}
    if _ENTAILMENT not in labels:
        counted = f"its {model.num_labels} labels are {', '.join(labels)}"
        raise EncodingError(f"{name}: {counted}; rerank with a model of one label, or one called {_ENTAILMENT!r}")
    return labels[_ENTAILMENT]
