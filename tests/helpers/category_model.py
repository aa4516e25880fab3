"""A stand-in for a language model that knows a small collection, for tests of generated requests."""

from __future__ import annotations

import itertools
import json
import re

from chat_server import Reply, content

SHOPS = (
    (("red", "blue", "green"), ("cups", "hats", "rugs"), ("Oslo", "Rome")),
    (("oak", "pine", "beech"), ("chairs", "tables", "shelves"), ("Kyoto", "Lima")),
    (("wool", "silk", "linen"), ("shirts", "scarves", "gloves"), ("Delhi", "Cairo")),
)
"""What the documents of each shop combine: a kind, a thing and a place."""

KINDS = {word: word for shop in SHOPS for word in (*shop[0], *shop[1])}
KINDS |= {f"things from {place}": place for shop in SHOPS for place in shop[2]}
"""The categories, and the word that each of their documents has."""

DOCUMENTS = [
    {"id": f"d{number}", "contents": f"These things are {kind} {thing}. They are from {place}, and number {number}."}
    for number, (kind, thing, place) in enumerate(one for shop in SHOPS for one in itertools.product(*shop))
]


def categories(text: str) -> list[dict[str, object]]:
    """The categories of numbered documents."""
    lines = dict(enumerate(text.splitlines(), 1))
    return [
        {"name": kind, "documents": found}
        for kind, word in KINDS.items()
        if (found := [number for number, line in lines.items() if re.search(rf"\b{word}\b", line)])
    ]


def answered(request: dict) -> Reply:
    """The right answer to a question about atoms, or about a request."""
    text = request["messages"][-1]["content"]
    if meaning := re.match(r"Meaning: (.+)\nPhrase: ", text):
        return content(json.dumps({"request": f"Please show me {meaning[1]}"}))
    return content(json.dumps({"categories": categories(text)}))
