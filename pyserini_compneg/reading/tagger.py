"""A small network that scores the tags of words: an ONNX file and its tokenizer, in a folder.

The package contains such a folder (``resources/reader``). ``compneg train reader`` makes others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.reading.confidence import SIGNS
from pyserini_compneg.reading.decoding import Chain
from pyserini_compneg.reading.decomposition import Span
from pyserini_compneg.reading.words import TAGS
from pyserini_compneg.support.errors import QueryError, in_one_line
from pyserini_compneg.support.files import content_digest, reason_of
from pyserini_compneg.support.onnx_sessions import open_session
from pyserini_compneg.support.processors import model_threads
from pyserini_compneg.support.schema import entry, read_schema
from pyserini_compneg.support.surrogates import without_halves

SETTINGS_FILE, MODEL_FILE, TOKENIZER_FILE = "reader.json", "model.onnx", "tokenizer.json"
FORMAT_VERSION = 2

_LARGEST = 1e6
_MOST_TOKENS = 512
_INPUTS = ("input_ids", "token_type_ids", "attention_mask")


class Tagger:
    """Scores tags with the network in a folder. Several threads may use it.

    ``confidence`` has the weights of :func:`~pyserini_compneg.reading.confidence.probability`. Below ``threshold``, a
    decomposition is not relied on. ``separators`` are words that separate two exclusions. ``unasked`` are words, in
    lower case, that may be in no part. The network reads ``max_tokens``, including the two that begin and end a text.
    """

    def __init__(self, folder: Path) -> None:
        settings = _read_settings(folder)
        self.chain = Chain.of(settings.transitions, settings.bias)
        self.confidence = settings.confidence
        self.threshold = settings.threshold
        self.separators = frozenset(settings.separators)
        self.unasked = frozenset(settings.unasked)
        self.max_tokens = settings.max_tokens
        self._tokenizer, self._session = _loaded(folder)

    def emissions(self, texts: Sequence[str], words: Sequence[Sequence[Span]]) -> list[NDArray[np.float64] | None]:
        """A (words, tags) array for each text; None for a text that exceeds the tokens that the network reads."""
        with ThreadPoolExecutor(model_threads()) as pool:
            return list(pool.map(self._scores, texts, words))

    def _scores(self, text: str, words: Sequence[Span]) -> NDArray[np.float64] | None:
        """The scores of one text: in a batch, the rounding of each text would depend on the others."""
        with in_one_line(QueryError, "the reader's tokenizer failed", remedy="train the reader anew"):
            entry = self._tokenizer.encode(without_halves(text, "\N{REPLACEMENT CHARACTER}"))
        if len(entry.ids) > self.max_tokens:
            return None
        inputs = (entry.ids, is_capital(text, words, entry.offsets), [1] * len(entry.ids))
        arrays = {name: np.array([values], dtype=np.int64) for name, values in zip(_INPUTS, inputs, strict=True)}
        with in_one_line(QueryError, f"the reader failed on a text of {len(entry.ids)} tokens"):
            (outputs,) = self._session.run(None, arrays)
        if outputs.shape != (1, len(entry.ids), len(TAGS)) or not np.isfinite(outputs).all():
            what = f"the reader's network gives no scores of {len(TAGS)} tags for each token"
            raise QueryError(what, remedy="train it anew")
        scores: NDArray[np.float64] = outputs[0, first_tokens(words, entry.offsets)].astype(np.float64)
        return scores


def first_tokens(words: Sequence[Span], offsets: Sequence[Span]) -> list[int]:
    """The position of the token in which each word begins; 0, the token that begins the text, without such a token.

    >>> first_tokens([(0, 3), (4, 7), (8, 9)], [(0, 0), (0, 2), (2, 3), (4, 7), (0, 0)])
    [1, 3, 0]
    """
    covering: dict[int, int] = {}
    for place, (start, end) in enumerate(offsets):
        for sign in range(start, end):
            covering.setdefault(sign, place)
    return [covering.get(start, 0) for start, _ in words]


def is_capital(text: str, words: Sequence[Span], offsets: Sequence[Span]) -> list[int]:
    """1 for the tokens of words that begin with a capital, else 0: the second input of the network.

    The tokenizer lowercases, so titles and names would otherwise be lost.

    >>> is_capital("a Town", [(0, 1), (2, 6)], [(0, 0), (0, 1), (2, 4), (4, 6), (0, 0)])
    [0, 0, 1, 1, 0]
    """
    inside = set[int]()
    for start, end in words:
        if text[start].isupper():
            inside.update(range(start, end))
    return [int(end > start and start in inside) for start, end in offsets]


def _are_numbers(values: Sequence[Any], count: int) -> bool:
    return len(values) == count and all(abs(value) <= _LARGEST for value in values)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The content of ``reader.json``, beside ``format_version``."""

    format_version: int
    separators: tuple[str, ...]
    unasked: tuple[str, ...]
    sha256: Mapping[str, str]
    tags: tuple[str, ...] = entry(lambda tags: tags == list(TAGS))
    transitions: tuple[tuple[float, ...], ...] = entry(
        lambda rows: len(rows) == len(TAGS) and all(_are_numbers(row, len(TAGS)) for row in rows)
    )
    bias: tuple[float, ...] = entry(lambda values: _are_numbers(values, len(TAGS)))
    confidence: tuple[float, ...] = entry(lambda weights: _are_numbers(weights, len(SIGNS) + 1))
    threshold: float = entry(lambda value: 0 <= value <= 1)
    max_tokens: int = entry(lambda count: 3 <= count <= _MOST_TOKENS)


def _read_settings(folder: Path) -> _Settings:
    """Reads and checks ``reader.json``. The other two files must be the files for which it was written."""
    path = folder / SETTINGS_FILE
    try:
        settings = read_schema(_Settings, path, FORMAT_VERSION, QueryError, "train the reader anew")
    except FileNotFoundError:
        raise QueryError(f"not the folder of a reader: it has no {SETTINGS_FILE}", where=folder) from None
    for name in (MODEL_FILE, TOKENIZER_FILE):
        try:
            found = content_digest(folder / name)
        except OSError as error:
            raise QueryError(f"cannot be read: {reason_of(error)}", where=folder / name) from None
        if found != settings.sha256.get(name):
            raise QueryError(f"damaged: its SHA-256 is not the one in {SETTINGS_FILE}", where=folder / name)
    return settings


def write_settings(folder: Path, entries: Mapping[str, Any]) -> None:
    """Writes ``reader.json`` beside the network and the tokenizer of a reader.

    Args:
        folder: The folder with the network and the tokenizer.
        entries: ``transitions``, ``bias``, ``confidence``, ``threshold``, ``separators``, ``unasked`` and
            ``max_tokens``.
    """
    checksums = {name: content_digest(folder / name) for name in (MODEL_FILE, TOKENIZER_FILE)}
    settings = {"format_version": FORMAT_VERSION, "tags": TAGS, **entries, "sha256": checksums}
    (folder / SETTINGS_FILE).write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def _loaded(folder: Path) -> tuple[Any, Any]:
    import tokenizers

    with in_one_line(QueryError, "cannot be loaded", where=folder):
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        session = open_session(folder / MODEL_FILE, threads=1)  # texts are short
    return tokenizer, session
