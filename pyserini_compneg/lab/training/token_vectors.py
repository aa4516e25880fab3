"""Draws texts, and writes the vectors of their tokens into a file, which may be larger than the memory."""

from __future__ import annotations

import heapq
import json
import logging
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers.decoders import ByteLevel
from torch import Tensor, nn

from pyserini_compneg.encode.models import TextTokenizer, TokenNetwork
from pyserini_compneg.encode.networks import load_trunk
from pyserini_compneg.lab.training.autoencoder import Vectors
from pyserini_compneg.lucene import analyze
from pyserini_compneg.support.errors import EncodingError, in_one_line
from pyserini_compneg.support.existing_work import read_record
from pyserini_compneg.support.progress import SECONDS, progress
from pyserini_compneg.support.staging import atomic_writer

LONGEST = 128
"""The most tokens of a text that are read, with the tokens that the tokenizer adds."""

_CHARACTERS = 160
"""For each token that is read, so many characters of a text are split into tokens: more than tokens have."""

_WORD = 30
"""The characters that are kept behind the last token of a text, to complete its word."""

_BLOCK, _TOGETHER, _TOKENS_TOGETHER = 4096, 64, 4096
"""Texts of a block are sorted by their length, and run together, so many at most with so many tokens."""

_READ = 256
"""The texts that are split into tokens together."""

_MEASURED, _MEASURED_TOKENS = 512, 131_072
"""Texts that are read as documents are, so many at most with about so many tokens."""

_BYTES_BLANK, _BLANK = "Ġ", "▁"
"""How tokenizers write the blank before a word: those of bytes, and SentencePiece."""

_LAYER_FILES = ("model.safetensors", "pytorch_model.bin")
_Item = TypeVar("_Item")
_logger = logging.getLogger(__name__)


class TokenizedText(NamedTuple):
    """A text up to its last word that is read, the ids of its tokens, and where each ends; 0 for silent tokens."""

    text: str
    ids: NDArray[np.int32]
    ends: NDArray[np.int32]

    @property
    def tokens(self) -> int:
        """The tokens that are not silent."""
        return int(np.count_nonzero(self.ends))


class TokenEncoder:
    """The network of a model with its layers for tokens, and its tokenizer, without a prompt."""

    def __init__(self, network: TokenNetwork, name: str) -> None:
        self.name, self.trunk = name, load_trunk(network.folder)
        self.trunk.pooler = None  # it gives no vectors of tokens
        settings = network.settings
        self.tokenizer, self.document_tokenizer = (
            TextTokenizer(
                network.folder,
                longest,
                settings.special_tokens,
                lowercase=settings.lowercase,
                arguments=settings.arguments,
            )
            for longest in (min(settings.max_length, LONGEST), settings.max_length)
        )
        width = int(self.trunk.config.hidden_size)
        self.longest = settings.max_length
        self.silent = silent_tokens(self.tokenizer)
        self.matrix, self.offset = _one_layer([_linear(folder, name) for folder in network.layers], width, name)

    @property
    def width(self) -> int:
        return len(self.matrix)

    def __call__(self, texts: Sequence[TokenizedText]) -> Tensor:
        """The vectors of all tokens that are not silent, (tokens, width)."""
        ids = torch.zeros(len(texts), max(len(text.ids) for text in texts), dtype=torch.int64)
        real, own = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for row, text in enumerate(texts):
            ids[row, : len(text.ids)] = torch.from_numpy(text.ids)
            real[row, : len(text.ids)] = 1
            own[row, : len(text.ids)] = torch.from_numpy(text.ends > 0)
        running = in_one_line(EncodingError, "the network cannot be run", where=self.name, passing=(MemoryError,))
        with running, torch.inference_mode():
            hidden = self.trunk(input_ids=ids, attention_mask=real).last_hidden_state[own]
            vectors: Tensor = nn.functional.linear(hidden, self.matrix, self.offset)
        if not torch.isfinite(vectors.half()).all():
            raise EncodingError("its vectors of tokens are not finite numbers of 16 bits", where=self.name)
        return vectors


def silent_tokens(tokenizer: TextTokenizer) -> list[int]:
    """The ids of special tokens, and of those that BM25's analysis of English drops: punctuation and stop words.

    A piece with letters that continues a word is none of them. Most tokenizers mark either the pieces that continue a
    word, by ##, or those that begin one, by the blank before it.
    """
    terms = tokenizer.terms
    counts = {mark: sum(term.startswith(mark) for term in terms) for mark in ("##", _BYTES_BLANK, _BLANK)}
    mark = max(counts, key=counts.__getitem__)
    decoded = ByteLevel().decode
    texts = [decoded([term]) for term in terms] if mark == _BYTES_BLANK and counts[mark] else terms
    pieces = []
    for term, text in zip(terms, texts, strict=True):
        inside = counts[mark] and term.startswith(mark) == (mark == "##")
        has_letters = any(map(str.isalnum, text)) or "\N{REPLACEMENT CHARACTER}" in text  # a part of a letter's bytes
        pieces.append("word" if inside and has_letters else text.lstrip(_BLANK))
    return [number for number, words in enumerate(analyze(pieces)) if not words or number in tokenizer.special]


def _linear(folder: Path, name: str) -> tuple[Tensor, Tensor]:
    """The weight and the bias of a linear layer."""
    from safetensors.torch import load_file

    file = next((folder / one for one in _LAYER_FILES if (folder / one).is_file()), folder / _LAYER_FILES[0])
    with in_one_line(EncodingError, f"{folder.name}/{file.name} cannot be read", where=name):
        safe = file.suffix == ".safetensors"
        weights: dict[str, Tensor] = load_file(file) if safe else torch.load(file, "cpu", weights_only=True)
        weight = weights["linear.weight"].float()
        return weight, weights.get("linear.bias", torch.zeros(len(weight))).float()


def _one_layer(layers: Iterable[tuple[Tensor, Tensor]], width: int, name: str) -> tuple[Tensor, Tensor]:
    """The linear layer that does what several do, one after another."""
    matrix, offset = torch.eye(width), torch.zeros(width)
    for weight, bias in layers:
        if weight.shape[1] != len(matrix):
            what = f"a layer for tokens takes {weight.shape[1]} numbers, and gets {len(matrix)}"
            raise EncodingError(what, where=name, remedy="take all files of one model")
        matrix, offset = weight @ matrix, weight @ offset + bias
    return matrix, offset


class Drawn(NamedTuple):
    """Some texts of a collection, in the order of their vectors, and how many texts it has.

    ``documents`` are a few texts of the collection, read as far as documents are.
    """

    texts: list[TokenizedText]
    among: int
    documents: list[TokenizedText]

    @property
    def tokens(self) -> int:
        return sum(text.tokens for text in self.texts)


def draw_texts(texts: Iterable[str], encoder: TokenEncoder, tokens: int, seed: int) -> Drawn:
    """Texts that have at most so many tokens together; a random sample if the collection has more.

    Each text gets a random number, and those with the smallest are kept, so only these are in memory. Texts without a
    token that is not silent are left out.
    """
    draw, total, among = random.Random(seed), 0, 0
    heap: list[tuple[float, int]] = []
    kept: dict[int, TokenizedText] = {}
    whole: list[tuple[float, int, str]] = []
    largest, characters = 1.0, _CHARACTERS * encoder.longest
    with progress(None, None, " texts", "reading texts") as bar:
        for some in _blocks(texts, _READ):
            numbered = [(draw.random(), number, text[:characters]) for number, text in enumerate(some, among)]
            asked = [one for one in numbered if one[0] < largest]
            read = _tokenized(encoder, encoder.tokenizer, [one[2][: _CHARACTERS * LONGEST] for one in asked])
            for (chance, number, _), text in zip(asked, read, strict=True):
                if text.tokens:
                    heapq.heappush(heap, (-chance, number))
                    kept[number], total = text, total + text.tokens
            whole = heapq.nsmallest(_MEASURED, whole + numbered)
            while total > tokens and len(heap) > 1:
                chance, number = heapq.heappop(heap)
                largest, total = -chance, total - kept.pop(number).tokens
            among += len(some)
            bar.update(len(some))
    by_chance = [kept[number] for _, number in sorted(heap, reverse=True)]
    read = _tokenized(encoder, encoder.document_tokenizer, [text for _, _, text in whole])
    documents = [text for text in read if text.tokens]
    before = accumulate((text.tokens for text in documents), initial=0)
    measured = [text for text, count in zip(documents, before, strict=False) if count < _MEASURED_TOKENS]
    drawn = Drawn([text for batch in batches(by_chance) for text in batch], among, measured)
    if largest < 1:
        _logger.info("%s of %s texts are taken, with %s tokens", f"{len(kept):,}", f"{among:,}", f"{total:,}")
    return drawn


def _blocks(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    left = iter(items)
    while block := list(islice(left, size)):
        yield block


def _tokenized(encoder: TokenEncoder, tokenizer: TextTokenizer, texts: Sequence[str]) -> Iterator[TokenizedText]:
    tokens, ends = tokenizer.ends(texts)
    for text, ids, places in zip(texts, tokens.ids, ends, strict=True):
        numbers, own = np.array(ids, np.int32), np.array(places, np.int32)
        own[np.isin(numbers, encoder.silent)] = 0
        yield TokenizedText(text[: max(places, default=0) + _WORD], numbers, own)


def batches(texts: Sequence[TokenizedText]) -> Iterator[list[TokenizedText]]:
    """Texts of similar lengths that are run together."""
    for block in _blocks(texts, _BLOCK):
        batch: list[TokenizedText] = []
        for text in sorted(block, key=lambda text: -len(text.ids)):
            if len(batch) == _TOGETHER or len(batch) * len(batch[0].ids if batch else ()) >= _TOKENS_TOGETHER:
                yield batch
                batch = []
            batch.append(text)
        yield batch


def write_vectors(encoder: TokenEncoder, drawn: Drawn, file: Path, record: Path) -> Vectors:
    """Writes the vectors of tokens that are not silent into a file, and maps it. ``record`` says how far it is."""
    file.parent.mkdir(exist_ok=True)
    shape = (drawn.tokens, encoder.width)
    done: int = (read_record(record) or {}).get("batches", 0)
    mapped: Any = np.lib.format.open_memmap(file, mode="r+" if done else "w+", dtype=np.float16, shape=shape)
    if not done and sys.platform == "linux":
        with file.open("r+b") as handle:  # a full disk is an error now, and would kill the process later
            os.posix_fallocate(handle.fileno(), 0, file.stat().st_size)
    kept, every = time.monotonic(), [*batches(drawn.texts)]
    written = sum(text.tokens for batch in every[:done] for text in batch)
    with progress(None, drawn.tokens, " tokens", "encoding texts", done=written) as bar:
        for number, batch in enumerate(every[done:], done + 1):
            made = encoder(batch)
            mapped[written : written + len(made)] = made.numpy()
            written += len(made)
            bar.update(len(made))
            if number == len(every) or time.monotonic() - kept >= SECONDS:
                mapped.flush()
                with atomic_writer(record) as text:
                    json.dump({"batches": number}, text)
                kept = time.monotonic()
    vectors: Vectors = np.load(file, mmap_mode="r")
    return vectors
