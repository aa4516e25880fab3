"""Checkpoints that sentence-transformers saves, encoded by this package and by sentence-transformers itself."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="checkpoints are made by torch")
pytest.importorskip("transformers", reason="checkpoints are made by transformers")
pytest.importorskip("onnxscript", reason="exports are made by torch and onnxscript")
pytest.importorskip("onnxruntime", reason="exports are run by onnxruntime")

import yaml  # noqa: E402
from checkpoints import needs_sentence_transformers  # noqa: E402
from refusals import refusal  # noqa: E402
from varied_texts import ODD, varied_texts  # noqa: E402

from pyserini_compneg import SignedImpactSearcher  # noqa: E402
from pyserini_compneg.encode.export import save_exported  # noqa: E402
from pyserini_compneg.encode.models import ModelOptions, index_term, load_checkpoint  # noqa: E402
from pyserini_compneg.encode.neural import IMPACT_SCALE, ModelDocumentEncoder, ModelQueryEncoder  # noqa: E402
from pyserini_compneg.index import build_index  # noqa: E402
from pyserini_compneg.support.errors import EncodingError  # noqa: E402

TABLE = Path(__file__).with_name("README.md")
TOLERANCE = 1e-4
"""Of the largest weight."""
TEXTS = [text for text in varied_texts(44) if text not in ODD[6:9] and text.strip()]
QUERIES = ["spy films", "a comedy set in Japan", "the music of a western", "Spy"]
HOW = {"torch": ModelOptions("torch"), "onnx": ModelOptions(), "int8": ModelOptions(precision="int8")}


class Line(NamedTuple):
    network: str
    tokenizer: str
    layout: str
    settings: str
    run: str
    expected: str


def lines() -> list[Line]:
    rows = [row.strip("|\n ") for row in TABLE.read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
    return [Line(*(cell.strip().strip("`") for cell in row.split("|"))) for row in rows]


def chosen() -> list[Line]:
    """All lines for ``make parity``, else every tenth, of each section some; COMPNEG_PARITY chooses another tenth."""
    first = os.environ.get("COMPNEG_PARITY", "4")
    return lines() if first == "all" else lines()[int(first) :: 10]


def test_each_masked_language_model_of_transformers_has_a_line():
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    assert {*MODEL_FOR_MASKED_LM_MAPPING_NAMES} - {line.network for line in lines()} == {"modernvbert", "ultravbert"}


def test_each_refusal_has_a_part_of_its_message():
    assert [
        line for line in lines() if "refused" in line.expected and not re.search(r'refused: ".{9,}"$', line.expected)
    ] == []


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("line", chosen(), ids=lambda line: " ".join(filter(None, line[:4])))
def test_a_line_of_the_table(line, tmp_path, record_property, monkeypatch):
    needs_sentence_transformers()
    from built_checkpoints import build

    settings = dict(part.split("=", 1) for part in line.settings.split("; ") if part)
    folder = tmp_path / "model"
    saved = build(folder, *line[:3], {key: yaml.safe_load(value) for key, value in settings.items()})
    expected, _, said = line.expected.partition(": ")
    if said:
        refused_by = ModelOptions() if "onnx" in expected else ModelOptions("torch")
        assert said.strip('"') in refusal(encode, folder, "document", refused_by, error=EncodingError)
    if expected == "refused":
        return
    theirs = Theirs(folder, saved, expected)
    for side, run in itertools.product(("document", "query"), line.run.split()):
        if run in ("index", "exported"):
            continue
        reference = theirs.encode(side, TEXTS)
        terms = theirs.terms(side, reference.shape[1])
        found = torch.tensor([[vector.get(term, 0.0) for term in terms] for vector in encode(folder, side, HOW[run])])
        difference = ((found - reference).abs().max() / reference.abs().max()).item()
        record_property(run, (difference, overlap(found, reference), f"{side}: {' | '.join(line[:4])}"))
        assert difference <= TOLERANCE if run != "int8" else overlap(found, reference) >= 0.9, (side, run)
    if "index" in line.run:
        assert_ranks(folder, tmp_path / "index", theirs, HOW["torch"])
    if "exported" in line.run:
        exported = tmp_path / "exported"
        save_exported(load_checkpoint(str(folder)), folder, "fp32", exported)
        assert_ranks(exported, tmp_path / "light", theirs, HOW["onnx"], monkeypatch)


def encode(folder: Path, side: str, options: ModelOptions) -> list[dict[str, float]]:
    kind = ModelDocumentEncoder if side == "document" else ModelQueryEncoder
    return kind(load_checkpoint(str(folder), options), options).encode_batch(TEXTS)


class Theirs:
    """The encoder of sentence-transformers that the last column of a line describes."""

    def __init__(self, folder: Path, saved: Any, expected: str) -> None:
        from sentence_transformers import SparseEncoder

        self.encoder = saved
        if "in memory" not in expected:
            dtype = {"dtype": "float32"} if "32 bits" in expected else {}
            self.encoder = SparseEncoder(str(folder), device="cpu", model_kwargs=dtype)
        self.batch_size = 1 if "text by text" in expected else 32
        if length := re.search(r"at (\d+) tokens", expected):
            self.encoder.max_seq_length = int(length[1])

    def encode(self, side: str, texts: Sequence[str]) -> Any:
        """The vectors, as a matrix."""
        encode = getattr(self.encoder, f"encode_{side}")
        return encode(texts, batch_size=self.batch_size, convert_to_sparse_tensor=False)

    def terms(self, side: str, width: int) -> list[str]:
        """The terms of the columns, as this package names them."""
        first = self.encoder[0]
        while hasattr(first, "sub_modules"):
            first = first.sub_modules[first._resolve_route(side, "text")][0]
        tokens = [first.tokenizer.convert_ids_to_tokens(number) or f"[id:{number}]" for number in range(width)]
        return list(map(index_term, tokens))


def overlap(found: Any, reference: Any) -> float:
    """The mean share of the 20 heaviest terms of a text that are the same."""
    pairs = zip(found.topk(20).indices.tolist(), reference.topk(20).indices.tolist(), strict=True)
    shares = [len({*ours} & {*theirs}) / 20 for ours, theirs in pairs]
    return sum(shares) / len(shares)


def assert_ranks(
    folder: Path, index: Path, theirs: Theirs, options: ModelOptions, alone: pytest.MonkeyPatch | None = None
) -> None:
    """Searches an index of the texts, ``alone`` in an environment without torch, transformers and what they left.

    Scores are dot products, but for the rounding of impacts.
    """
    texts = [{"id": str(number), "contents": text} for number, text in enumerate(TEXTS)]
    build_index(texts, index, str(folder), model_options=options)
    queries, documents = theirs.encode("query", QUERIES), theirs.encode("document", TEXTS).T
    products = queries @ documents
    rounding = queries.sum(1, keepdim=True) / 2 / IMPACT_SCALE + (queries > 0).float() @ documents / 200
    if alone:
        alone.setenv("COMPNEG_CACHE", str(index / "cache"))
        for package in ("torch", "transformers", "sentence_transformers"):
            alone.setitem(sys.modules, package, None)
    with SignedImpactSearcher(index, model_options=options) as searcher:
        for row, query in enumerate(QUERIES):
            least = (products[row] - rounding[row]).sort(descending=True).values[9]
            hits = searcher.search(query, k=10)
            assert len(hits) >= min(10, int((products[row] > rounding[row]).sum()))
            for hit in hits:
                product, tolerance = products[row, int(hit.docid)], rounding[row, int(hit.docid)] + 1e-4
                assert abs(hit.score / searcher.unit(query) - product) <= tolerance
                assert product + tolerance >= least
