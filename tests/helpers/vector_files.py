"""Files of vectors as ``encode`` writes them: how tests make them, and what is in them."""

import gzip
import json
from pathlib import Path
from typing import Any

from stand_in_encoder import StandInEncoder

from pyserini_compneg.encode.corpus import encode_collection

DOCUMENTS = 300
NAME = "vectors-00000-of-00001.jsonl.gz"


def encode(collection: Path, output: Path, name: str = "m", **options: Any) -> Path:
    """Encodes a collection with the stand-in, whose settings are an option."""
    settings = options.pop("settings", {})
    return encode_collection(collection, output, name, model=StandInEncoder(**settings), **options)


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of vectors."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def leftovers(folder: Path) -> list[str]:
    """What unfinished work has left in a folder."""
    return sorted(path.name for path in folder.glob(".*"))


def sources(collection: Path) -> list[dict[str, Any]]:
    """The documents of a collection, in its order."""
    lines = [line for path in sorted(collection.iterdir()) for line in path.read_text().splitlines() if line]
    return [json.loads(line) for line in lines]
