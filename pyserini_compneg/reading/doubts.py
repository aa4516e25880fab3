"""Signs that a text may be misread: a word of exclusion or choice that is searched for, or a word in no part."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pyserini_compneg.reading.decomposition import Part, Span
from pyserini_compneg.reading.tags import NONE
from pyserini_compneg.support.terminal import shown

_CUE = re.compile(
    r"(?<![\w'’])(?:(?:apart|aside|away)\s+from|other\s+than|rather\s+than|instead\s+of|save\s+for|but|not|no|non|nor|"
    r"(?:ca|do|does|did|wo|would|should|could|have|has|had|is|are|was|were|ai|must|need|might)n['’]?t|can['’]?t|cannot|"
    r"neither|never|none|nothing|without|w/o|sans|minus|except(?:ing|ed)?|exclud(?:e[sd]?|ing)|excl|besides|barring|"
    r"omit(?:s|ting|ted)?|avoid(?:s|ing)?|skip(?:s|ping)?|unlike|or|either)(?![\w'’])|(?<!\w)non(?=-)",
    re.IGNORECASE,
)
"""English words that often say that something is excluded, or that either of two things will do."""

_NAME = re.compile(r"(?<=[\w,] )(?!I['’])[^\W\d_a-z]\w*[a-z](?!\w)")
"""A word with a capital that begins no sentence."""


def doubts(
    text: str, words: Sequence[Span], tags: Sequence[int], parts: Sequence[Part], unasked: Collection[str]
) -> tuple[str, ...]:
    """The reasons why a reading may be wrong.

    >>> text = "deploy without Docker in October"
    >>> words = [(0, 6), (7, 14), (15, 21), (22, 24), (25, 32)]
    >>> doubts(text, words, [1, 1, 1, 0, 0], [Part.of(text, [(0, 21)], excluded=False)], {"in"})
    ("'without' is searched as a word", "'October' is in no part")
    """
    cues = [match[0] for part in parts if not part.excluded and (match := _CUE.search(part.text))]
    used = {place for part in parts for span in part.spans for place in range(*span)}
    names = {match.start() for match in _NAME.finditer(text)}
    lost = [
        text[start:end]
        for (start, end), tag in zip(words, tags, strict=True)
        if tag == NONE and start not in used and text[start].isalnum()
        if text[start:end].lower().replace("’", "'") not in unasked or start in names
    ]
    said = [f"{shown(cue)} is searched as a word" for cue in dict.fromkeys(cues)]
    return (*said, *(f"{shown(word)} is in no part" for word in dict.fromkeys(lost)))
