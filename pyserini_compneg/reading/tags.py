"""The tags of words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

TAGS = ("O", "W", "S", "X", "OR", "AND")
"""None, wanted, shared by all wanted atoms, excluded, and the words that join alternatives or conditions."""

NONE, WANTED, SHARED, EXCLUDED, OR, AND = range(len(TAGS))

LONGEST_GAP = 2
"""In words. Among 10,000 tagged requests 3 have such a gap between wanted words on purpose."""


def closed(tags: Sequence[int], words: Sequence[str], separators: Collection[str]) -> list[int]:
    """The tags with short gaps inside a segment closed: one or two untagged words between two words of the same tag.

    A sign in the gap keeps it open. So does a word that separates exclusions ("no fish and no eggs"). "Non-" stays with
    a name that is not excluded, and is no part of one that is.

    >>> closed([3, 0, 3, 0, 3], ["back", "to", "oslo", "and", "rome"], {"and"})
    [3, 3, 3, 0, 3]
    >>> closed([1, 0, 3, 0], ["non", "-", "apple", "phones"], ()), closed([0, 0, 1, 1], ["non", "-", "eu", "fees"], ())
    ([0, 0, 3, 0], [1, 1, 1, 1])
    """
    result = list(tags)
    last = 0
    for place in range(1, len(tags)):
        if tags[place] == NONE:
            continue
        gap = range(last + 1, place)
        inside = tags[last] == tags[place] and tags[place] in (WANTED, SHARED, EXCLUDED) and len(gap) <= LONGEST_GAP
        parts = tags[place] == EXCLUDED and any(words[one] in separators for one in gap)
        if inside and not parts and all(words[one][0].isalnum() for one in gap):
            result[last + 1 : place] = [tags[place]] * len(gap)
        last = place
    for place in range(len(words) - 2):
        if words[place : place + 2] == ["non", "-"]:
            wanted = [tag for tag in reversed(result[place : place + 3]) if tag in (WANTED, SHARED)]
            is_excluded = result[place + 2] == EXCLUDED
            result[place : place + 3] = [NONE, NONE, EXCLUDED] if is_excluded else [*wanted, NONE][:1] * 3
    return result
