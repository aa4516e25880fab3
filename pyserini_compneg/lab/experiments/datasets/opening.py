"""Opens a folder as a dataset. The kind is recognised by its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.lab.experiments.datasets.beir import is_beir, open_beir
from pyserini_compneg.lab.experiments.datasets.cisi import is_cisi, open_cisi
from pyserini_compneg.lab.experiments.datasets.dataset import Dataset
from pyserini_compneg.lab.experiments.datasets.excluir import is_excluir, open_excluir
from pyserini_compneg.lab.experiments.datasets.likings import is_likings, open_likings
from pyserini_compneg.lab.experiments.datasets.nevir import is_nevir, open_nevir
from pyserini_compneg.lab.experiments.datasets.nq import is_nq, open_nq
from pyserini_compneg.lab.experiments.datasets.quest import is_filmsets, is_quest, open_filmsets, open_quest
from pyserini_compneg.support.errors import InputError


class _Kind(NamedTuple):
    title: str
    files: str
    is_one: Callable[[Path], bool]
    open: Callable[[Path], Dataset]


_KINDS = {
    "likings": _Kind("Likings", "documents.jsonl with words and phrases.jsonl", is_likings, open_likings),
    "quest": _Kind("QUEST", "documents.jsonl with train, val or test.jsonl", is_quest, open_quest),
    "filmsets": _Kind("FilmSets", "the same with query ids", is_filmsets, open_filmsets),
    "nevir": _Kind("NevIR", "train, validation or test.csv, or .jsonl of pairs", is_nevir, open_nevir),
    "excluir": _Kind("ExcluIR", "corpus.json with test_manual_final.json, or a sample", is_excluir, open_excluir),
    "nq": _Kind("NQ320k", "simplified-nq-train.jsonl or nq-dev-all.jsonl", is_nq, open_nq),
    "beir": _Kind("BEIR", "corpus.jsonl with queries.jsonl and qrels/SPLIT.tsv or qrels.SPLIT.tsv", is_beir, open_beir),
    "cisi": _Kind("CISI", "CISI.ALL with CISI.QRY and CISI.REL", is_cisi, open_cisi),
}

KINDS = tuple(_KINDS)
"""The kinds of datasets, in the order in which they are tried."""

TITLES = {name: kind.title for name, kind in _KINDS.items()}
"""The names of kinds in reports."""


def open_dataset(folder: str | Path, kind: str | None = None) -> Dataset:
    """Opens the official files of a dataset. They are read when their content is requested.

    Args:
        folder: The folder of the files.
        kind: One of ``KINDS``; the default is the first kind whose files the folder has.

    Raises:
        InputError: There is no such folder or kind, the folder is not a dataset, or a file is missing.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError("a file, expected a folder" if root.exists() else "no such folder", where=folder)
    if kind is not None and kind not in _KINDS:
        raise InputError(f"no kind of dataset {kind!r}; there are: {', '.join(KINDS)}")
    chosen = kind or next((name for name, files in _KINDS.items() if files.is_one(root)), None)
    if chosen is None:
        looked_for = "; ".join(f"{name}: {files.files}" for name, files in _KINDS.items())
        raise InputError(f"no dataset of a known kind; looked for {looked_for}", where=folder)
    return _KINDS[chosen].open(root)
