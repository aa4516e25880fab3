"""How fast models encode: as Pyserini and sentence-transformers run them, and as this package does, on the same texts.

    python benchmarks/encode.py [--collection FILE] [--documents 256] [--models minilm-l6 bert-base FOLDER]
                                [--rounds 3] [--max-length 256]

A model is a folder, or a name that stands for a real size and a real vocabulary with random weights and as many terms
a text as SPLADE gives (see checkpoints.py); these are kept below indexes/models. All encoders take turns on the same
texts, in one process, with all cores: Pyserini's SpladeDocumentEncoder in batches of 32 without sorting,
sentence-transformers' SparseEncoder with its own sorting, and this package with torch and with onnxruntime, in fp32 and
int8. The times of Pyserini and of this package include vectors as Python mappings. Then come single queries, and the
memory of a process after 512 and after 1,536 texts.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from checkpoints import SHAPES, TERMS, make_checkpoint
from measuring import in_child, peak_bytes
from reporting import INDEXES, megabytes, table, write_json

from pyserini_compneg.commands.running import run_main
from pyserini_compneg.documents.collection import Part, collection_files, iter_collection_blocks
from pyserini_compneg.documents.source_documents import text_documents
from pyserini_compneg.encode.models import ModelOptions, load_checkpoint
from pyserini_compneg.encode.neural import ModelDocumentEncoder, ModelQueryEncoder
from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.options import COUNT

SAMPLE = Path(__file__).parent.parent / "pyserini_compneg/resources/sample/documents.jsonl.gz"
BATCH = 32
QUERIES = 100
MEMORY_REPEATS = (4, 12)
"""How often 128 texts are encoded, for the memory of a process after few and after many."""

_OURS = {
    "ours, torch": {"backend": "torch"},
    "ours, onnx fp32": {},
    "ours, onnx int8": {"precision": "int8"},
}

Encode = Callable[[Sequence[str]], object]


def read_texts(collection: Path, documents: int) -> list[str]:
    """Texts from the whole of a collection."""
    blocks = iter_collection_blocks(Part(collection_files(collection)))
    texts = [document.text or "" for block in blocks for document in text_documents(block)[0].values()]
    return [texts[number] for number in np.linspace(0, len(texts) - 1, min(documents, len(texts))).astype(int)]


def checkpoint(model: str, texts: Sequence[str]) -> Path:
    """The folder of a model; one with random weights is made if it is not there."""
    if model not in SHAPES:
        return Path(model)
    folder = INDEXES / "models" / model
    if not (folder / "config.json").exists():
        make_checkpoint(folder, model, texts[:64])
    return folder


def sides(folder: Path, max_length: int) -> dict[str, Encode]:
    """What encodes texts, by name."""
    made: dict[str, Encode] = {"Pyserini, torch": pyserini(folder, max_length)}
    made["sentence-transformers, torch"] = sentence_transformers(folder, max_length)
    for name, settings in _OURS.items():
        options = ModelOptions(max_length=max_length, **settings)
        made[name] = ModelDocumentEncoder(load_checkpoint(str(folder)), options).encode_batch
    return made


def pyserini(folder: Path, max_length: int) -> Encode:
    """Pyserini's own encoder of documents."""
    java_class("java.lang.Object")  # starts Java before Pyserini's import starts one that may be too old
    from pyserini.encode import SpladeDocumentEncoder

    encoder = SpladeDocumentEncoder(str(folder), device="cpu")
    return lambda texts: [
        encoder.encode(list(texts[start : start + BATCH]), max_length=max_length)
        for start in range(0, len(texts), BATCH)
    ]


def sentence_transformers(folder: Path, max_length: int) -> Encode:
    """sentence-transformers' own encoder."""
    from sentence_transformers import SparseEncoder

    encoder = SparseEncoder(str(folder), device="cpu")
    encoder.max_seq_length = max_length
    return lambda texts: encoder.encode(list(texts), batch_size=BATCH, show_progress_bar=False)


def rates(encoders: dict[str, Encode], texts: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Texts a second of each side in each round, after a part of the texts that does not count."""
    for encode in encoders.values():
        encode(texts[:BATCH])
    taken: dict[str, list[float]] = {name: [] for name in encoders}
    for _, (name, encode) in itertools.product(range(rounds), encoders.items()):
        start = time.perf_counter()
        encode(texts)
        taken[name].append(len(texts) / (time.perf_counter() - start))
    return taken


def query_milliseconds(folder: Path, queries: Sequence[str], settings: dict[str, Any]) -> tuple[float, float]:
    """Median and 99th percentile of the time for one query, of those that are not on disk yet."""
    encoder = ModelQueryEncoder(load_checkpoint(str(folder)), ModelOptions(**settings))
    encoder._cache = None  # noqa: SLF001  # what is measured is the model
    taken = []
    for query in [*queries[:5], *queries]:
        start = time.perf_counter()
        encoder.encode_batch([query])
        taken.append(1000 * (time.perf_counter() - start))
    return float(np.median(taken[5:])), float(np.percentile(taken[5:], 99))


def memory(folder: Path, texts: Sequence[str], repeats: int) -> int:
    """The peak of a process that encodes texts a number of times, in bytes."""
    encoder = ModelDocumentEncoder(load_checkpoint(str(folder)), ModelOptions(max_length=256))
    for _ in encoder.stream(itertools.repeat(list(texts), repeats)):
        pass
    return peak_bytes()


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    logging.getLogger("pyserini_compneg").setLevel(logging.ERROR)
    INDEXES.mkdir(exist_ok=True)
    texts = read_texts(args.collection, args.documents)
    results: dict[str, Any] = {"documents": len(texts), "max_length": args.max_length, "terms": TERMS}
    for model in args.models:
        results[model] = _measure(model, texts, args.rounds, args.max_length)
        print(_report(Path(model).name, results[model]), flush=True)
    print(write_json("encode.json", results))


def _measure(model: str, texts: Sequence[str], rounds: int, max_length: int) -> dict[str, Any]:
    folder = checkpoint(model, texts)
    queries = [text.split("\n", 1)[0] for text in texts[:QUERIES]]
    return {
        "memory": [in_child(memory, folder, texts[:128], repeats) for repeats in MEMORY_REPEATS],
        "rates": rates(sides(folder, max_length), texts, rounds),
        "queries": {name: query_milliseconds(folder, queries, settings) for name, settings in _OURS.items()},
    }


def _report(title: str, measured: dict[str, Any]) -> str:
    medians = {name: float(np.median(taken)) for name, taken in measured["rates"].items()}
    rows = []
    for name, rate in medians.items():
        pair = [np.median(np.array(measured["rates"][name]) / measured["rates"][other]) for other in list(medians)[:2]]
        query = measured["queries"].get(name)
        times = [f"{query[0]:.1f}", f"{query[1]:.1f}"] if query else ["", ""]
        rows.append([name, f"{rate:.1f}", *(f"{ratio:.2f}" for ratio in pair), *times])
    headers = [title, "texts/s", "to Pyserini", "to s-t", "query p50, ms", "query p99, ms"]
    few, many = map(megabytes, measured["memory"])
    counts = " and ".join(str(128 * repeats) for repeats in MEMORY_REPEATS)
    return f"{table(headers, rows)}\n\nmemory after {counts} texts: {few}, {many}\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, default=SAMPLE, help="documents (default the sample)")
    parser.add_argument("--documents", type=COUNT, default=256, help="how many of them are encoded")
    text = f"{', '.join(SHAPES)}, or folders (default: the two names)"
    parser.add_argument("--models", nargs="+", default=list(SHAPES), metavar="MODEL", help=text)
    parser.add_argument("--rounds", type=COUNT, default=3)
    parser.add_argument("--max-length", type=COUNT, default=256)
    return parser


if __name__ == "__main__":
    sys.exit(main())
