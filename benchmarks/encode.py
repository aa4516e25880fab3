"""How fast models encode: as Pyserini and sentence-transformers run them, and as this package does, on the same texts.

    python benchmarks/encode.py [--collection FILE] [--documents 256] [--models minilm-l6 bert-base FOLDER]
                                [--rounds 3] [--max-length 256] [--exports [--tokens N]]

A model is a folder, or a name that stands for a real size and a real vocabulary with random weights and as many terms
a text as SPLADE gives (see checkpoints.py); these are kept below indexes/models. All encoders take turns on the same
texts, in one process, with all cores: Pyserini's SpladeDocumentEncoder in batches of 32 without sorting,
sentence-transformers' SparseEncoder with its own sorting, and this package with torch and with onnxruntime, in fp32 and
int8. The times of Pyserini and of this package include vectors as Python mappings. Then come single queries, and the
memory of a process after 512 and after 1,536 texts.

--exports compares how this package runs a model, each way in processes of its own: CPU time of one call (median of the
rounds), peak memory, and how many of a text's 20 heaviest terms are those of fp32. Among them are exports as version 1
made them, with slices of 4,096 terms in the head, or, for networks that read more than 512 tokens, with the attention
of all pairs of tokens at once. --tokens takes one text of so many tokens, in place of documents.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
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
from pyserini_compneg.documents.collection import CollectionPart, collection_files, iter_collection_blocks
from pyserini_compneg.documents.source_documents import text_documents
from pyserini_compneg.encode.export import export_model
from pyserini_compneg.encode.models import ModelOptions, NeuralSide, load_checkpoint
from pyserini_compneg.encode.models.checkpoint import LONG
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

_ALL_PAIRS, _OLD_SLICES = {"use_blocks": lambda *_: None}, {"SLICE": 4096}
_EXPORTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "onnx fp32": ({}, {}),
    "onnx fp32, all pairs at once": ({}, _ALL_PAIRS),
    "onnx fp32, slices of 4,096": ({}, _OLD_SLICES),
    "onnx int8": ({"precision": "int8"}, {}),
    "onnx int8, slices of 4,096": ({"precision": "int8"}, _OLD_SLICES),
    "torch": ({"backend": "torch"}, {}),
}
"""The options of each way to run a model, and what version 1 had in place of names in torch_model."""

TOP = 20

Encode = Callable[[Sequence[str]], object]


def read_texts(collection: Path, documents: int) -> list[str]:
    """Texts from the whole of a collection."""
    blocks = iter_collection_blocks(CollectionPart(collection_files(collection)))
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


def export_as(folder: Path, name: str) -> None:
    """Makes the export of a way to run a model, if there is none."""
    from pyserini_compneg.encode.networks import torch_model

    settings, old = _EXPORTS[name]
    _take_cache(old)
    for key, value in old.items():
        setattr(torch_model, key, value)
    side = load_checkpoint(str(folder)).document
    if isinstance(side, NeuralSide) and "backend" not in settings:
        export_model(side, settings.get("precision", "fp32"))


def encode_as(folder: Path, name: str, texts: Sequence[str], max_length: int) -> tuple[float, int, list[set[str]]]:
    """The CPU time of one call in seconds, the peak of the process in bytes, and each text's heaviest terms."""
    settings, old = _EXPORTS[name]
    _take_cache(old)
    encoder = ModelDocumentEncoder(load_checkpoint(str(folder)), ModelOptions(max_length=max_length, **settings))
    start = time.process_time()
    vectors = encoder.encode_batch(texts)
    seconds = time.process_time() - start
    return seconds, peak_bytes(), [set(sorted(vector, key=lambda term: -vector[term])[:TOP]) for vector in vectors]


def _take_cache(old: dict[str, Any]) -> None:
    if old:
        os.environ["COMPNEG_CACHE"] = str(INDEXES / "models" / f"old-{'-'.join(old)}")


def exports(folder: Path, texts: Sequence[str], rounds: int, max_length: int) -> dict[str, Any]:
    """What each way to run a model takes, by name."""
    left_out = _OLD_SLICES if load_checkpoint(str(folder)).document.longest > LONG else _ALL_PAIRS
    names = [name for name, (_, old) in _EXPORTS.items() if old is not left_out]
    for name in names:
        in_child(export_as, folder, name)
    taken = {name: [] for name in names}
    for _, name in itertools.product(range(rounds), names):
        taken[name].append(in_child(encode_as, folder, name, texts, max_length))
    expected = next(iter(taken.values()))[0][2]
    measured = {}
    for name, runs in taken.items():
        shares = [len(mine & theirs) / max(1, len(theirs)) for mine, theirs in zip(runs[0][2], expected, strict=True)]
        seconds, peaks = [run[0] for run in runs], [run[1] for run in runs]
        measured[name] = {"seconds": seconds, "peaks": peaks, "shares": shares}
    return measured


def _exports_report(title: str, measured: dict[str, Any]) -> str:
    headers = [title, "CPU s", "of fp32", "peak", f"same top {TOP}", ">= .95", "least"]
    first, rows = next(iter(measured.values()))["seconds"], []
    for name, found in measured.items():
        shares, ratio = np.array(found["shares"]), np.median(np.array(found["seconds"]) / first)
        kept = [f"{shares.mean():.3f}", f"{100 * (shares >= 0.95).mean():.1f} %", f"{shares.min():.2f}"]
        rows.append([name, f"{np.median(found['seconds']):.2f}", f"{ratio:.2f}", megabytes(max(found["peaks"])), *kept])
    return f"{table(headers, rows)}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    logging.getLogger("pyserini_compneg").setLevel(logging.ERROR)
    INDEXES.mkdir(exist_ok=True)
    texts = read_texts(args.collection, args.documents)
    results: dict[str, Any] = {"documents": len(texts), "max_length": args.max_length, "terms": TERMS}
    for model in args.models if args.exports else ():
        long = [" ".join(["film"] * (args.tokens - 2))] if args.tokens else None
        results[model] = exports(checkpoint(model, texts), long or texts, args.rounds, args.tokens or args.max_length)
        print(_exports_report(Path(model).name, results[model]), flush=True)
    for model in () if args.exports else args.models:
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
    text = f"{', '.join(SHAPES)}, or folders (default: the first two names)"
    parser.add_argument("--models", nargs="+", default=["minilm-l6", "bert-base"], metavar="MODEL", help=text)
    parser.add_argument("--rounds", type=COUNT, default=3)
    parser.add_argument("--max-length", type=COUNT, default=256)
    parser.add_argument("--exports", action="store_true", help="compare the ways to run a model")
    parser.add_argument("--tokens", type=COUNT, metavar="N", help="with --exports: one text of so many tokens")
    return parser


if __name__ == "__main__":
    sys.exit(main())
