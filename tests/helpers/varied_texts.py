"""Texts to encode: of all lengths, in many scripts, and what no one would write."""

from __future__ import annotations

import random

from checkpoints import sample_texts

ODD = (
    *("a", "A", "the", "¬", "∩", "a∩b ¬c"),
    *("\x00", "\x01\x02\x1f\x7f\x80", "\u200b\u200d\ufeff", "a\u0301\u0301\u0301", "İıſßẞ"),
    *("東京物語", "مرحبا بالعالم", "नमस्ते दुनिया"),
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "\U0010ffff\ue000\ufffd",
    "\u2028\u2029\x85",
    "[CLS] [SEP] [MASK] [PAD] [UNK] ##ing",
    "!?.,;:-(){}[]'\"" * 4,
    "x" * 101,
    "y" * 5000,
    "\t spy \n films \r\n ",
)


def varied_texts(count: int, seed: int = 0) -> list[str]:
    """As many texts; the first are the odd ones, the others pieces of the sample, some with odd characters within."""
    choice = random.Random(seed)
    words = " ".join(sample_texts(200)).split()
    texts = list(ODD)
    while len(texts) < count:
        start, length = choice.randrange(len(words)), int(choice.lognormvariate(2.5, 1.2)) + 1
        text = " ".join(words[start : start + length])
        if choice.random() < 0.2:
            place = choice.randrange(len(text) + 1)
            text = text[:place] + choice.choice(ODD) + text[place:]
        texts.append(text)
    return texts[:count]
