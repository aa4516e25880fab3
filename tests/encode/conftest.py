"""A collection of texts in two files, and how to have it read in blocks of a few lines."""

import random

import pytest
from json_lines import write_jsonl
from vector_files import DOCUMENTS

from pyserini_compneg.support import files


@pytest.fixture
def collection(tmp_path):
    choice = random.Random(3)
    for part in range(2):
        lines = []
        for i in range(part, DOCUMENTS, 2):
            text = " ".join(choice.choices(["spy", "film", "comedy", "Vienna", "¬", "naïve", "東京"], k=8))
            lines += [{"id": f"d{i:03}", "title": f"Title {i}", "text": text, "note": "x"}, *[""] * (i % 5 == 0)]
        write_jsonl(tmp_path / "collection" / f"part{part}.jsonl", *lines)
    return tmp_path / "collection"


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 10)
