"""Dense encoders of sentence-transformers, and models that score a query's text with a document's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pyserini_compneg.baselines.exported_dense import ExportedDense, dense_export
from pyserini_compneg.baselines.late_interaction import (
    LateInteraction,
    check_late_interaction,
    is_late_interaction,
)
from pyserini_compneg.baselines.model_files import (
    DOT,
    WHOLE,
    Similarity,
    check_dense_model,
    check_tokenizer,
    dense_model_hash,
    folder_of,
    load_model,
    similarity_of,
)
from pyserini_compneg.encode.models.configuration import optional_json
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.support.arguments import checked_list, whole_number
from pyserini_compneg.support.errors import EncodingError, in_one_line
from pyserini_compneg.support.surrogates import without_halves
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH_SIZE = 32
_KEPT_DOCUMENTS = 20_000
"""The number of documents' vectors to keep. BM25's first 100 hits for 528 queries of ExcluIR have 1,976 documents."""

_T5_TOKENS = 512
"""The tokens that MonoT5 reads, of the query and of the document together."""

_ENTAILMENT = "entailment"


class PairScorer(Protocol):
    """Scores pairs of texts.

    Attributes:
        name: The model's name.
    """

    name: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """How well each query's text and document's text match: higher is better."""
        ...


def pair_scorer(name: str) -> PairScorer:
    """Loads a model from a folder or from the hub. Its files say what kind of model it is.

    A folder of sentence-transformers names the kind of the model. Another model is a cross-encoder if its network
    classifies sequences, is run as MonoT5 if its network is a T5 that writes text, and is a :class:`LateInteraction` in
    the layout of Stanford's ColBERT. It is a bi-encoder, whose vector is the mean of the tokens' vectors, if its
    network has no head.

    Raises:
        EncodingError: There is no model, it is of another kind, it gives no score, or it cannot be loaded.
        DownloadError: The model cannot be downloaded from the hub.
    """
    match check_pair_scorer(name):
        case "cross-encoder":
            return _CrossEncoder(name)
        case "t5":
            return MonoT5(name)
        case "late-interaction":
            return LateInteraction(name)
    return DenseEncoder(name)


def check_pair_scorer(name: str) -> Literal["cross-encoder", "bi-encoder", "t5", "late-interaction"]:
    """Checks, without loading its weights, that a model exists and scores pairs of texts; returns its kind.

    Raises:
        EncodingError: There is no model, it is of another kind, or it gives no score.
        DownloadError: The model cannot be downloaded from the hub.
    """
    check_dense_model(name)
    if is_late_interaction(name):
        check_late_interaction(name)
        return "late-interaction"
    folder = folder_of(name)
    kind = optional_json(folder / "config_sentence_transformers.json", name).get("model_type")
    if kind is None and (folder / "modules.json").is_file():
        kind = "SentenceTransformer"
    config = optional_json(folder / "config.json", name)
    listed = config.get("architectures")
    network = str(listed[0]) if isinstance(listed, list) and listed else "no network"
    if kind == "CrossEncoder" or (kind is None and network.endswith("ForSequenceClassification")):
        _entailment(config.get("id2label") or {}, name)
        return "cross-encoder"
    if kind is None and network.endswith("T5ForConditionalGeneration"):
        if not isinstance(config.get("decoder_start_token_id"), int):
            what = "its config.json has no decoder_start_token_id, with which an answer begins"
            raise EncodingError(what, where=name, remedy=WHOLE)
        _answers(_t5_tokenizer(folder, name), name)
        return "t5"
    if kind == "SentenceTransformer" or (kind is None and network.endswith("Model")):
        return "bi-encoder"
    expected = "a cross-encoder, which classifies sequences, a MonoT5, a ColBERT, or a bi-encoder"
    expected += " of sentence-transformers"
    raise EncodingError(f"has no head that scores ({kind or network})", where=name, remedy=f"rerank with {expected}")


def dense_encoder(name: str, similarity: Similarity | None = None) -> DenseEncoder | LateInteraction:
    """Loads a model that gives vectors, of texts or of their tokens. For ``similarity`` see :class:`DenseEncoder`.

    Raises:
        EncodingError: There is no model, it cannot be loaded, or its files name another similarity.
        DownloadError: The model cannot be downloaded from the hub.
    """
    check_dense_model(name, similarity)
    return LateInteraction(name) if is_late_interaction(name) else DenseEncoder(name, similarity)


class DenseEncoder:
    """Runs a model of sentence-transformers that makes one vector for each text. It is also a :class:`PairScorer`.

    The model's files give its pooling, prompts and longest text; longer texts are truncated. Vectors have length 1,
    unless the model's configuration compares vectors by the dot product. If the folder has no ``modules.json``,
    sentence-transformers averages the vectors of the tokens. If the folder has ``onnx/model.onnx``, as
    sentence-transformers exports it, onnxruntime runs the model. A GPU is used if what runs the model can.

    Args:
        name: A folder, or a model of the Hugging Face hub.
        similarity: How the vectors are compared, for a model whose files do not say it.

    Attributes:
        name: The name that was given.
        model_hash: A hash of the model's files and of the similarity.
        similarity: How vectors are compared: by ``similarity_fn_name`` of the model's files, else as given, else by the
            cosine.

    Raises:
        EncodingError: There is no model, it cannot be loaded, or its files name another similarity.
        DownloadError: The model cannot be downloaded from the hub.
    """

    def __init__(self, name: str, similarity: Similarity | None = None) -> None:
        check_dense_model(name, similarity)
        if is_late_interaction(name):
            raise EncodingError("gives a vector for each token, and none for a whole text", where=name)
        self.name, self.model_hash = name, dense_model_hash(name, similarity)
        self.similarity = similarity_of(name, similarity)
        folder = folder_of(name)
        export = dense_export(folder)
        self._model = ExportedDense(export, folder, name) if export else load_model(_dense, name, unused="pooler")
        self._documents: dict[str, NDArray[np.float32]] = {}

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, (texts, dimensions)."""
        return self._encoded(self._model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of documents, (texts, dimensions)."""
        return self._encoded(self._model.encode_document, texts)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """(1 + cosine) / 2, or the dot product for models that use it. The last documents' vectors are kept."""
        import numpy as np

        texts = list(dict.fromkeys(query for query, _ in pairs))
        queries = dict(zip(texts, self.encode_queries(texts), strict=True))
        new = [text for text in dict.fromkeys(document for _, document in pairs) if text not in self._documents]
        if new:
            self._documents |= zip(new, self.encode_documents(new), strict=True)
        products = [float(queries[query] @ self._documents[document]) for query, document in pairs]
        while len(self._documents) > _KEPT_DOCUMENTS:
            del self._documents[next(iter(self._documents))]
        found = np.asarray(products, np.float64)
        return found if self.similarity == DOT else (1 + found) / 2

    def _encoded(self, encode: Callable[..., Any], texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        readable = list(map(without_halves, checked_list("texts", texts)))
        with in_one_line(EncodingError, "the model fails on these texts", where=self.name):
            vectors = np.asarray(encode(readable, batch_size=_BATCH_SIZE, show_progress_bar=False), np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            what = "gives vectors that are 0 or not finite numbers"
            raise EncodingError(what, where=self.name, remedy="its weights are damaged")
        return np.asarray(vectors if self.similarity == DOT else vectors / lengths, np.float32)


def _dense(folder: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder, local_files_only=True, trust_remote_code=False)


class _CrossEncoder:
    """A model that reads both texts at once. Its score is the probability of their label.

    With one label, this is the logistic function of the logit. A model of inference, with several labels, gives the
    probability that the document entails the query.
    """

    def __init__(self, name: str) -> None:
        from sentence_transformers import CrossEncoder

        self.name = name
        self._model = load_model(
            lambda folder: CrossEncoder(
                folder, local_files_only=True, trust_remote_code=False, activation_fn=lambda logits: logits
            ),
            name,
        )
        self._label = _entailment(self._model.config.id2label, name)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        import numpy as np

        readable = [tuple(map(without_halves, pair)) for pair in pairs]
        if self._label is not None:
            readable = [pair[::-1] for pair in readable]  # models of inference expect the entailing text first
        with in_one_line(EncodingError, "the model fails on these texts", where=self.name):
            found = self._model.predict(readable, batch_size=_BATCH_SIZE, show_progress_bar=False)
        logits = np.asarray(found, np.float64).reshape(len(pairs), -1)
        logits[~np.isfinite(logits)] = np.nan
        with np.errstate(invalid="ignore"):  # the caller refuses NaN
            if self._label is None:
                return np.asarray(np.exp(-np.logaddexp(0, -logits[:, 0])))
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            return np.asarray(shares[:, self._label] / shares.sum(axis=1))


class MonoT5:
    """A T5 that answers "true" or "false" to the text ``Query: … Document: … Relevant:``.

    A document that is too long is cut, so that the question stays whole. A GPU is used if there is one.

    Source: Nogueira et al. 2020, Document Ranking with a Pretrained Sequence-to-Sequence Model, Section 3.

    Args:
        name: A folder, or a model of the Hugging Face hub.

    Raises:
        EncodingError: There is no model, it cannot be loaded, or an answer is not one token.
        DownloadError: The model cannot be downloaded from the hub.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        loaded = load_model(_T5, name)
        self._network, self._tokenizer = loaded.transformers_model, loaded.tokenizer
        self._limit = min(self._tokenizer.model_max_length, _T5_TOKENS)
        self._answers = _answers(self._tokenizer, name)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """The probability of "true", beside "false"."""
        import numpy as np

        return np.asarray(np.exp(self.log_probabilities(pairs)))

    def log_probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """The logarithm of the probability of "true": the log-softmax of the logits of both answers."""
        import numpy as np

        found = []
        with in_one_line(EncodingError, "the model fails on these texts", where=self.name):
            for start in range(0, len(pairs), _BATCH_SIZE):
                texts = [self._question(*map(without_halves, pair)) for pair in pairs[start : start + _BATCH_SIZE]]
                tokens = self._tokenizer(texts, padding=True, return_tensors="pt").to(self._network.device)
                begin = tokens["input_ids"].new_full((len(texts), 1), self._network.config.decoder_start_token_id)
                logits = self._network(
                    input_ids=tokens["input_ids"],
                    attention_mask=tokens["attention_mask"],
                    decoder_input_ids=begin,
                ).logits
                found.append(logits[:, 0, self._answers].double().log_softmax(1)[:, 1].cpu().numpy())
        return np.concatenate(found) if found else np.zeros(0)

    def _question(self, query: str, document: str) -> str:
        """The text to be answered, within the limit of the model."""
        text = f"Query: {query} Document: {document} Relevant:"
        excess = len(self._tokenizer(text)["input_ids"]) - self._limit
        if excess <= 0:
            return text
        places = self._tokenizer(document, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        kept = places[: max(0, len(places) - excess)]
        return f"Query: {query} Document: {document[: kept[-1][1] if kept else 0]} Relevant:"


class _T5:
    """A network and its tokenizer, under the names that they have in models of sentence-transformers."""

    def __init__(self, folder: str) -> None:
        from sentence_transformers.util import get_device_name
        from transformers import AutoModelForSeq2SeqLM

        network = AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        self.transformers_model = network.to(get_device_name()).requires_grad_(False)
        self.tokenizer = _t5_tokenizer(Path(folder), folder)

    def eval(self) -> _T5:
        self.transformers_model.eval()
        return self


def _t5_tokenizer(folder: Path, name: str) -> Any:
    from transformers import AutoTokenizer

    with quiet_transformers(), in_one_line(EncodingError, "its tokenizer cannot be loaded", where=name):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    check_tokenizer(tokenizer, folder, name)
    return tokenizer


def _answers(tokenizer: Any, name: str) -> list[int]:
    """The tokens of "false" and of "true"."""
    found = []
    for answer in ("false", "true"):
        tokens = tokenizer(answer, add_special_tokens=False)["input_ids"]
        if len(tokens) != 1 or tokens[0] == tokenizer.unk_token_id:
            what = f"its tokenizer has no token for {answer!r}, so it is not a MonoT5"
            raise EncodingError(what, where=name, remedy="rerank with a T5 that was trained to rank")
        found.append(int(tokens[0]))
    return found


def _entailment(id2label: Any, name: str) -> int | None:
    """The label of entailment among several. None for a model of one label."""
    if not isinstance(id2label, Mapping) or any(whole_number(str(place)) is None for place in id2label):
        raise EncodingError(f"its id2label must name a label for each number, got {shown(id2label)}", where=name)
    if len(id2label) < 2:
        return None
    labels = {str(label).lower(): int(place) for place, label in id2label.items()}
    if _ENTAILMENT not in labels:
        remedy = f"rerank with a model of one label, or one called {_ENTAILMENT!r}"
        raise EncodingError(f"its {len(labels)} labels are {', '.join(labels)}", where=name, remedy=remedy)
    return labels[_ENTAILMENT]
