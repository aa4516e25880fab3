"""Models of late interaction, such as ColBERT: a vector for each token, and scores by the best match of each token.

Source: Khattab and Zaharia 2020, ColBERT, Section 3. sentence-transformers runs the models. It knows three layouts of
folders: its own, that of PyLate and that of Stanford's ColBERT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyserini_compneg.baselines.model_files import PYLATE_LAYER, WHOLE, dense_model_hash, folder_of, load_model
from pyserini_compneg.encode.models.configuration import (
    MODULES_FILE,
    SETTINGS_FILE,
    damaged,
    optional_json,
    part_folder,
    required_json,
)
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import EncodingError, in_one_line
from pyserini_compneg.support.surrogates import without_halves
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KINDS = ("MultiVectorEncoder", "ColBERT")
"""The ``model_type`` of sentence-transformers and of PyLate."""

_STANFORD = "HF_ColBERT"
_MODULES = ("Transformer", "Dense", "MultiVectorMask", "Normalize", "Pooling")
"""The modules that keep a vector for each token. Former models of PyLate have a Pooling, which is left out."""

_SIMILARITIES = ("maxsim", "meanmaxsim")
_BATCH_SIZE = 32
_KEPT_DOCUMENTS = 2_000
"""The number of documents whose vectors are kept: 180 tokens of 128 numbers are 92 kB a document."""


class TokenVectors(NamedTuple):
    """The tokens of a text that count for scores, and their vectors, (tokens, dimensions)."""

    tokens: list[str]
    vectors: NDArray[np.float32]


class TokenMatch(NamedTuple):
    """A token of a query, the token of a document that is most similar to it, and their similarity."""

    token: str
    met: str
    similarity: float


def is_late_interaction(name: str) -> bool:
    """Whether the files of a model say that it gives a vector for each token."""
    folder = folder_of(name)
    settings = optional_json(folder / SETTINGS_FILE, name)
    kind, similarity = settings.get("model_type"), str(settings.get("similarity_fn_name")).lower()
    if kind is not None:
        return kind in _KINDS
    types = _types(folder, name)
    return similarity in _SIMILARITIES or PYLATE_LAYER in types or (not types and _is_stanford(folder, name))


def check_late_interaction(name: str) -> None:
    """Refuses, without loading the weights, a folder whose modules or similarity are not those of late interaction."""
    folder = folder_of(name)
    said = optional_json(folder / SETTINGS_FILE, name).get("similarity_fn_name")
    if said is not None and str(said).lower() not in (*_SIMILARITIES, "cosine"):  # former models of PyLate say cosine
        what = f"its similarity_fn_name must be one of {', '.join(_SIMILARITIES)}, got {shown(said)}"
        raise EncodingError(what, where=name)
    types = _types(folder, name)
    kinds = [kind.rsplit(".", 1)[-1] for kind in types]
    if not kinds and _is_stanford(folder, name):
        return
    if not kinds or kinds[0] != "Transformer" or "Dense" not in kinds:
        what = f"has no Dense after a Transformer, only {', '.join(kinds) or f'no {MODULES_FILE}'}"
        raise EncodingError(what, where=name, remedy=WHOLE)
    if other := next((kind for kind in kinds if kind not in _MODULES), None):
        what = f"{other} is no module of late interaction that is supported here"
        raise EncodingError(what, where=name, remedy=f"expected {', '.join(_MODULES[:-1])}")


def _types(folder: Path, name: str) -> list[str]:
    """The classes of the modules; none without a list of modules."""
    if not (folder / MODULES_FILE).is_file():
        return []
    with damaged(folder / MODULES_FILE):
        modules = required_json(folder / MODULES_FILE, list, name)
        for module in modules:
            part_folder(folder, str(module["path"]))
        return [str(module["type"]) for module in modules]


def _is_stanford(folder: Path, name: str) -> bool:
    listed = optional_json(folder / "config.json", name).get("architectures")
    return isinstance(listed, list) and _STANFORD in listed


class LateInteraction:
    """Runs a model of late interaction. It is also a :class:`~pyserini_compneg.baselines.PairScorer`.

    The model's files give its markers and prompts, longest texts, query expansion with ``[MASK]``, skipped words and
    normalisation. A query that is longer than its expansion is cut. A GPU is used if there is one.

    Args:
        name: A folder of sentence-transformers (``MultiVectorEncoder``), of PyLate or of Stanford's ColBERT, or a model
            of the Hugging Face hub.

    Attributes:
        name: The name that was given.
        model_hash: A hash of the model's files.

    Raises:
        EncodingError: There is no model, it has no vectors of tokens, or it cannot be loaded.
        DownloadError: The model cannot be downloaded from the hub.
    """

    def __init__(self, name: str) -> None:
        check_late_interaction(name)
        from sentence_transformers import MultiVectorEncoder

        self.name, self.model_hash = name, dense_model_hash(name)
        self._model = load_model(
            lambda folder: MultiVectorEncoder(folder, local_files_only=True, trust_remote_code=False),
            name,
            unused="pooler",
        )
        width = self._model[0].get_embedding_dimension()
        for layer in (module for module in self._model if hasattr(module, "in_features")):
            if layer.in_features != width:
                what = f"its Dense takes vectors of {layer.in_features} numbers, and gets {width}"
                raise EncodingError(what, where=name, remedy=WHOLE)
            width = layer.out_features
        self._documents: dict[str, TokenVectors] = {}

    def encode_queries(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The vectors of the tokens of queries, expansion included."""
        return self._encoded(self._model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The vectors of the tokens of documents, without skipped words."""
        return self._encoded(self._model.encode_document, texts)

    def scores(
        self, pairs: Sequence[tuple[str, str]], without: Sequence[Sequence[str]] | None = None
    ) -> NDArray[np.float64]:
        """MaxSim: the sum, over the tokens of a query, of the largest similarity to a token of the document.

        If the model's files say ``meanmaxsim``, it is the mean. ``without`` has texts for each pair, whose tokens do
        not count in its query; a query without tokens scores 0. The last documents' vectors are kept.
        """
        import numpy as np

        best = (_best(query, document)[1] for query, document in self._read(pairs, without))
        return np.asarray([float(self.total(similarities)) for similarities in best])

    def total(self, similarities: NDArray[Any]) -> NDArray[np.float64]:
        """The scores of largest similarities, (tokens, documents) or (tokens,), as the model's files add them."""
        import numpy as np

        count = len(similarities) if self._model.similarity_fn_name == "meanmaxsim" else 1
        return np.asarray(similarities.sum(axis=0, dtype=np.float64) / max(1, count))

    def matches(
        self, pairs: Sequence[tuple[str, str]], without: Sequence[Sequence[str]] | None = None
    ) -> list[list[TokenMatch]]:
        """What :meth:`scores` adds: for each token of a query, the document's token that it met."""
        found = []
        for query, document in self._read(pairs, without):
            places, similarities = _best(query, document)
            met = [document.tokens[place] for place in places]
            found.append([*map(TokenMatch, query.tokens, met, map(float, similarities))])
        return found

    def _read(
        self, pairs: Sequence[tuple[str, str]], without: Sequence[Sequence[str]] | None
    ) -> list[tuple[TokenVectors, TokenVectors]]:
        """The vectors of pairs."""
        left_out = without or [()] * len(pairs)
        texts = list(dict.fromkeys(chain((query for query, _ in pairs), *left_out)))
        queries = dict(zip(texts, self.encode_queries(texts), strict=True))
        new = [text for text in dict.fromkeys(document for _, document in pairs) if text not in self._documents]
        self._documents |= zip(new, self.encode_documents(new), strict=True)
        read = [
            (without_tokens(queries[query], [queries[text] for text in others]), self._documents[document])
            for (query, document), others in zip(pairs, left_out, strict=True)
        ]
        while len(self._documents) > _KEPT_DOCUMENTS:
            del self._documents[next(iter(self._documents))]
        return read

    def _encoded(self, encode: Callable[..., Any], texts: Sequence[str]) -> list[TokenVectors]:
        import numpy as np

        readable = list(map(without_halves, checked_list("texts", texts)))
        found = []
        with in_one_line(EncodingError, "the model fails on these texts", where=self.name):
            for one in encode(readable, batch_size=_BATCH_SIZE, show_progress_bar=False, output_value=None):
                counts = one["attention_mask"].bool()
                tokens = self._model.tokenizer.convert_ids_to_tokens(one["input_ids"][counts].tolist())
                found.append(TokenVectors(tokens, one["token_embeddings"][counts].float().cpu().numpy()))
        if not all(np.isfinite(one.vectors).all() for one in found):
            raise EncodingError(
                "gives vectors of numbers that are not finite", where=self.name, remedy="its weights are damaged"
            )
        return found


def without_tokens(query: TokenVectors, others: Sequence[TokenVectors]) -> TokenVectors:
    """A query without the tokens that other ones have, too, the special ones among them."""
    seen = {token for other in others for token in other.tokens}
    kept = [place for place, token in enumerate(query.tokens) if token not in seen]
    return TokenVectors([query.tokens[place] for place in kept], query.vectors[kept])


def _best(query: TokenVectors, document: TokenVectors) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The places of the document's tokens that are most similar to those of the query, and their similarities."""
    import numpy as np

    if not document.tokens:
        return np.zeros(0, np.intp), np.zeros(0)
    similarities = query.vectors @ document.vectors.T
    places = similarities.argmax(axis=1)
    return places, similarities.max(axis=1).astype("float64")
