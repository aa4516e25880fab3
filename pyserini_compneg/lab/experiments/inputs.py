"""Protocols, models and measures of this package, and small datasets, most of them made from the sample.

Help texts show the names, so importing this module loads nothing heavy. The figures of the small datasets are
meaningless: there are few queries, and pairs differ by a single word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.staging import atomic_writer

ALL_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""The encoder with which Krasakis et al. compare texts."""

MS_MARCO_MINILM = "cross-encoder/ms-marco-MiniLM-L6-v2"
"""A cross-encoder in Table 6 of Zhang et al. 2024 that runs on a processor."""

DENSE, WORD_SPACE = "dense", "word-space"
"""The methods of dense vectors and of word spaces."""

SYNONYMS = "negated_synonyms"
LOWER_IS_BETTER = ("negated_terms", "negated_neighbours", SYNONYMS)
TERM_MEASURES = ("positive_terms", *LOWER_IS_BETTER)
"""The measures that count words of the first documents. All others are measures of ``eval``."""

_LENGTHS = "words of {0} 1", "words of {0} 2", "difference of the {0}s' lengths"
STATISTICS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "nevir": ("pairs", *(name.format(text) for text in ("question", "passage") for name in _LENGTHS)),
        "excluir": ("queries", "words of a query", "documents"),
        "nq": ("queries", "words of a query", "documents"),
    }
)
"""The names of the statistics of texts, by kind of dataset."""

REMEDY = "choose another place with --report"
"""The remedy if a file of a report cannot be written."""

FOLDER = files(__package__).joinpath("protocols")
SAMPLE = Path(str(files("pyserini_compneg").joinpath("resources/sample")))
_DOCUMENTS, _RELEVANT, _PAIRS = 400, 5, 24
_LIKED, _LIKINGS = 300, 3


def protocol_names() -> list[str]:
    """The names of the protocols in this package.

    >>> {"table1", "table3", "table5", "figure3"} <= {*protocol_names()}
    True
    """
    return sorted(entry.name.removesuffix(".yaml") for entry in FOLDER.iterdir() if entry.name.endswith(".yaml"))


def protocol_title(name: str) -> str:
    """The title of a protocol in this package, without reading the rest of it.

    >>> protocol_title("table1")
    'Table 1: set-compositional queries, zero-shot'
    """
    lines = FOLDER.joinpath(f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("title: ")).removeprefix("title: ").strip('"')


def quick_dataset(kinds: Sequence[str], folder: Path) -> Path:
    """Writes the small dataset of the first kind that has one, if it is missing. Returns its folder."""
    if "likings" in kinds:
        return _made("likings", _likings(), folder)
    queries = [{**record, "docs": record["docs"][:_RELEVANT]} for _, record in iter_jsonl(SAMPLE / "queries.jsonl")]
    relevant = {docid for query in queries for docid in query["docs"]}
    documents = [record for _, record in iter_jsonl(SAMPLE / "documents.jsonl.gz")]
    documents.sort(key=lambda document: document["docid"] not in relevant)  # relevant documents first
    made: dict[str, Mapping[str, Iterable[Any]]] = {
        "filmsets": _filmsets(documents[:_DOCUMENTS], queries),
        "nevir": {"train.jsonl": _pairs(documents[_PAIRS : 2 * _PAIRS]), "dev.jsonl": _pairs(documents[:_PAIRS])},
        "excluir": _excluir(documents[: 4 * _PAIRS]),
        "nq": {"nq-dev-all.jsonl": _nq(documents[:_PAIRS]), "simplified-nq-train.jsonl": _nq(documents[_PAIRS:99])},
        "beir": _beir(documents[:_DOCUMENTS], queries),
    }
    if there := [kind for kind in kinds if kind in made]:
        return _made(there[0], made[there[0]], folder)
    raise InputError(f"--quick has no dataset of the kinds {', '.join(kinds)}", remedy="name one with --dataset")


def _made(kind: str, contents: Mapping[str, Iterable[Any]], folder: Path) -> Path:
    for name, records in contents.items():
        _write(folder / kind / name, records)
    return folder / kind


def _likings() -> Mapping[str, Iterable[Any]]:
    from pyserini_compneg.lab.experiments.datasets.likings import LikingsSettings, likings_files

    return likings_files(LikingsSettings(documents=_LIKED, queries=_LIKINGS))


def _filmsets(documents: list[Any], queries: list[Any]) -> dict[str, Iterable[Any]]:
    """Uses a third of the six queries of each template for training. The queries are sorted by template."""
    dev = [query for number, query in enumerate(queries) if number % 3]
    return {"documents.jsonl": documents, "train.jsonl": queries[::3], "dev.jsonl": dev}


def _pairs(documents: list[Any]) -> list[Any]:
    """Pairs of a lead and its negation, of both kinds of edits."""
    pairs = []
    for number, document in enumerate(documents):
        text, title = document["text"], document["title"]
        texts = {"q1": f"Is {title} a film?", "q2": f"Is {title} not a film?"}
        edited = text.replace(" is ", " is not ", 1)
        edited = edited if edited != text else f"Not: {text}"
        pairs.append({"id": f"{number}-{2 + number % 2}", **texts, "doc1": text, "doc2": edited})
    return pairs


def _excluir(documents: list[Any]) -> dict[str, Iterable[Any]]:
    """Asks for each film without its neighbour in the list."""
    queries = [
        {
            "question0": f"What do {one['title']} and {other['title']} have in common?",
            "RQ_rewrite": f"What film is like {one['title']}, other than {other['title']}?",
            "corpus_sub_index": [2 * number + 1, 2 * number],
        }
        for number, (one, other) in enumerate(zip(documents[::2], documents[1::2], strict=True))
    ]
    corpus = [f"{document['title']} {document['text']}" for document in documents]
    return {"corpus.json": corpus, "test_manual_final.json": queries[:_PAIRS], "train.json": queries[_PAIRS:]}


def _nq(documents: list[Any]) -> list[Any]:
    """Asks for each film by its title."""
    return [
        {
            "example_id": number,
            "question_text": f"what is {document['title']} about",
            "document_url": f"https://en.wikipedia.org//w/index.php?title={quote(document['docid'])}&amp;oldid=1",
            "document_text": document["text"],
        }
        for number, document in enumerate(documents)
    ]


def _beir(documents: list[Any], queries: list[Any]) -> dict[str, Iterable[Any]]:
    corpus = ({"_id": one["docid"], "title": one["title"], "text": one["text"]} for one in documents)
    texts = ({"_id": query["qid"], "text": query["query"]} for query in queries)
    judged = (f"{query['qid']}\t{docid}\t1" for query in queries for docid in query["docs"])
    return {"corpus.jsonl": corpus, "queries.jsonl": texts, "qrels/test.tsv": ["query-id\tcorpus-id\tscore", *judged]}


def _write(path: Path, records: Iterable[Any]) -> None:
    """Writes JSON lines, one list for ``.json``, or plain lines for ``.tsv``. An existing file stays unchanged."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_writer(path, REMEDY) as handle:
        if path.suffix == ".json":
            json.dump(list(records), handle, ensure_ascii=False)
        else:
            lines = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in records)
            handle.writelines(f"{line}\n" for line in lines)
