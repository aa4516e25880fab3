"""A collection of texts in two files, and how to have it read in blocks of a few lines."""

import json
import random

import pytest
from vector_files import DOCUMENTS

from pyserini_compneg import files


@pytest.fixture
def collection(tmp_path):
    choice = random.Random(3)
    folder = tmp_path / "collection"
    folder.mkdir()
    for part in range(2):
        with (folder / f"part{part}.jsonl").open("w", encoding="utf-8") as handle:
            for i in range(part, DOCUMENTS, 2):
                text = " ".join(choice.choices(["spy", "film", "comedy", "Vienna", "¬", "naïve", "東京"], k=8))
                handle.write(json.dumps({"id": f"d{i:03}", "title": f"Title {i}", "text": text, "note": "x"}) + "\n")
                handle.write("\n" * (i % 5 == 0))
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 10)
