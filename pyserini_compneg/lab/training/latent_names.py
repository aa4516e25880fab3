"""Names latents by the words that light them most."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from os.path import commonprefix
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_compneg.lab.training.autoencoder import Vectors
from pyserini_compneg.lab.training.token_vectors import TokenizedText
from pyserini_compneg.support.progress import progress

_WORDS = 3
"""The most words of a name."""

_CANDIDATES = 24
"""The words among which those of a name are chosen, those with the largest scores."""

_LONGEST_WORD = 30
"""A longer word is a passage in a script without blanks, of which only the token is taken."""

_STEM, _LONG_STEM = 4, 6
"""The letters of a stem, and of a stem with longer endings. Words with fewer common letters are of one stem only if a
single letter follows."""

_TOKENS_TOGETHER = 4096
_MERGED = 4_000_000
"""The pairs of latents and words that are kept before equal pairs are merged."""

_BITS = 32
"""The bits of a word's number in a pair."""

_WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
_FUNCTION_WORDS = frozenset(
    """
    a about above after again against all also although always am among an and any are aren't as at be became because
    become becomes been before being below between both but by can cannot could couldn't did didn't do does doesn't
    doing don't down during each either else ever every few for from further had has hasn't have haven't having he her
    here hers herself him himself his how however i if in into is isn't it it's its itself just may me might more most
    much must my myself neither no nor not of off often on once only onto or other others otherwise our ours out over
    own per quite rather s same shall she should since so some such t than that that's the their theirs them
    themselves then there therefore these they this those though through thus to too toward towards under until up
    upon us very via was wasn't we were what when where whereas whether which while who whom whose why will with
    within without would yet you your yours
    """.split()  # noqa: SIM905  # a list would take a page
)


class LitWords:
    """How strongly the tokens of each word light each latent, and how many tokens there are."""

    def __init__(self) -> None:
        self.words: dict[str, int] = {}
        self.counts: Counter[int] = Counter()
        self._parts: list[_Sums] = []
        self._size = 0

    def add(self, words: Sequence[str], index: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        """Adds the latents, (tokens, active), that the tokens of words light, and their activations."""
        numbers = np.array([self.words.setdefault(word, len(self.words)) for word in words], np.int64)
        self.counts.update(numbers.tolist())
        rows, places = np.nonzero(values > 0)
        keys = (index[rows, places] << _BITS) | numbers[rows]
        self._parts.append(_summed(keys, values[rows, places].astype(np.float64)))
        self._size += len(self._parts[-1].keys)
        if self._size > _MERGED:
            self._merge()

    def _merge(self) -> None:
        self._parts, self._size = [_summed(*map(np.concatenate, zip(*self._parts, strict=True)))], 0

    def names(self, latents: int) -> list[str]:
        """The name of each latent: the words with the largest activation in all, over the root of their frequency."""
        self._merge()
        keys, sums = self._parts[0]
        words = [*self.words]
        kinds, counts = np.array([_kind(word) for word in words]), np.array([self.counts[n] for n in range(len(words))])
        numbers, names = keys & ((1 << _BITS) - 1), []
        scores = sums / np.sqrt(counts[numbers])
        for start, end in pairwise(np.searchsorted(keys >> _BITS, np.arange(latents + 1))):
            best = start + np.lexsort((-scores[start:end], kinds[numbers[start:end]]))[:_CANDIDATES]
            names.append(", ".join(_chosen([words[number] for number in numbers[best]])))
        return names


class _Sums(NamedTuple):
    """The sums of activations for pairs of a latent and a word, in the order of the pairs."""

    keys: NDArray[np.int64]
    sums: NDArray[np.float64]


def _summed(keys: NDArray[np.int64], sums: NDArray[np.float64]) -> _Sums:
    pairs, places = np.unique(keys, return_inverse=True)
    return _Sums(pairs, np.bincount(places, sums, len(pairs)).astype(np.float64))


def _chosen(words: Sequence[str]) -> list[str]:
    """The first words, all of one kind, without others of the same stem.

    >>> _chosen(["kings", "king", "queen", "the", ","])
    ['kings', 'queen']
    """
    chosen: list[str] = []
    for word in words:
        if _kind(word) == _kind(words[0]) and not any(_same_stem(word, other) for other in chosen):
            chosen.append(word)
    return chosen[:_WORDS]


def _kind(word: str) -> int:
    """0 for a word, 1 for a function word or a letter, 2 for a sign."""
    if not any(character.isalnum() for character in word):
        return 2
    return int(word in _FUNCTION_WORDS or (len(word) == 1 and word.isascii()))


def _same_stem(one: str, other: str) -> bool:
    """Whether two words differ only in their endings, or one is the other with more words behind a hyphen.

    >>> _same_stem("king", "kings"), _same_stem("country", "countries"), _same_stem("king", "kind")
    (True, True, False)
    >>> _same_stem("philosophy", "philosophical"), _same_stem("king", "king-emperor"), _same_stem("cord", "cordillera")
    (True, True, False)
    """
    short, long = sorted((one, other), key=len)
    common = len(commonprefix([short, long]))
    if long.startswith(f"{short}-"):
        return True
    if common < _STEM:
        return common == len(short) and len(long) - common <= 1
    more = common >= _LONG_STEM
    return len(short) - common <= 1 + more and len(long) - common <= 3 + 2 * more


def words_of_tokens(text: TokenizedText) -> list[str]:
    """For each token of a text that is not silent, its word in lower case, or the token where it is in no word."""
    words, before, word = [], 0, None
    found = _WORD.finditer(text.text)
    for end in text.ends[text.ends > 0].tolist():
        while word is None or word.end() < end:
            if (word := next(found, None)) is None:
                break
        if word is not None and word.start() < end and word.end() - word.start() <= _LONGEST_WORD:
            words.append(word[0].lower())
        else:
            piece = text.text[before:end].strip() or "␣"
            words.append((_WORD.findall(piece) or [piece])[-1].lower())  # without silent tokens before it
        before = end
    return words


def describe(vectors: Vectors, texts: Sequence[TokenizedText], weight: Tensor, bias: Tensor, active: int) -> list[str]:
    """The name of each latent."""
    lit, row = LitWords(), 0
    with progress(None, len(vectors), " tokens", "naming latents") as bar:
        for some in _together(texts):
            sizes = [text.tokens for text in some]
            inputs = torch.from_numpy(vectors[row : row + sum(sizes)].astype(np.float32))
            values, index = torch.addmm(bias, inputs, weight.T).topk(active, dim=1, sorted=False)
            lit.add([word for text in some for word in words_of_tokens(text)], index.numpy(), values.numpy())
            row += sum(sizes)
            bar.update(sum(sizes))
    return lit.names(len(bias))


def _together(texts: Sequence[TokenizedText]) -> Iterator[list[TokenizedText]]:
    batch: list[TokenizedText] = []
    for text in texts:
        batch.append(text)
        if sum(one.tokens for one in batch) >= _TOKENS_TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch
