"""Small datasets made of the packaged sample, one of each kind that protocols need, to try all protocols in minutes.

Their figures mean nothing: there are few queries, and pairs are made by a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyserini_compneg.lab.experiments.results import REMEDY
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.staging import atomic_writer

SAMPLE = Path(str(files("pyserini_compneg").joinpath("resources/sample")))
_DOCUMENTS, _RELEVANT, _PAIRS = 400, 5, 24


def quick_datasets(folder: Path) -> dict[str, Path]:
    """Writes the datasets, if they are not there.

    Args:
        folder: Where their folders are made.

    Returns:
        ``{kind: folder}``.
    """
    queries = [{**record, "docs": record["docs"][:_RELEVANT]} for _, record in iter_jsonl(SAMPLE / "queries.jsonl")]
    relevant = {docid for query in queries for docid in query["docs"]}
    documents = [record for _, record in iter_jsonl(SAMPLE / "documents.jsonl.gz")]
    documents.sort(key=lambda document: document["docid"] not in relevant)  # those first that are relevant
    made: dict[str, dict[str, Iterable[Any]]] = {
        "filmsets": _filmsets(documents[:_DOCUMENTS], queries),
        "nevir": {"train.jsonl": _pairs(documents[_PAIRS : 2 * _PAIRS]), "dev.jsonl": _pairs(documents[:_PAIRS])},
        "excluir": _excluir(documents[: 4 * _PAIRS]),
        "beir": _beir(documents[:_DOCUMENTS], queries),
    }
    for kind, contents in made.items():
        for name, records in contents.items():
            _write(folder / kind / name, records)
    return {kind: folder / kind for kind in made}


def quick_dataset(kinds: Sequence[str], folder: Path) -> Path:
    """The folder of the small dataset of the first kind for which there is one.

    Raises:
        InputError: There is none.
    """
    made = quick_datasets(folder)
    if there := [kind for kind in kinds if kind in made]:
        return made[there[0]]
    raise InputError(f"--quick has no dataset of the kinds {', '.join(kinds)}; name one with --dataset")


def _filmsets(documents: list[Any], queries: list[Any]) -> dict[str, Iterable[Any]]:
    """A third of the six queries of each template is for training; they stand one template after the other."""
    dev = [query for number, query in enumerate(queries) if number % 3]
    return {"documents.jsonl": documents, "train.jsonl": queries[::3], "dev.jsonl": dev}


def _pairs(documents: list[Any]) -> list[Any]:
    """Pairs of a lead and of what a negation makes of it, of both kinds of edits."""
    pairs = []
    for number, document in enumerate(documents):
        text, title = document["text"], document["title"]
        texts = {"q1": f"Is {title} a film?", "q2": f"Is {title} not a film?"}
        edited = text.replace(" is ", " is not ", 1)
        edited = edited if edited != text else f"Not: {text}"
        pairs.append({"id": f"{number}-{2 + number % 2}", **texts, "doc1": text, "doc2": edited})
    return pairs


def _excluir(documents: list[Any]) -> dict[str, Iterable[Any]]:
    """Each film is asked for without its neighbour in the list."""
    queries = [
        {
            "RQ_rewrite": f"What film is like {one['title']}, other than {other['title']}?",
            "corpus_sub_index": [2 * number + 1, 2 * number],
        }
        for number, (one, other) in enumerate(zip(documents[::2], documents[1::2], strict=True))
    ]
    corpus = [f"{document['title']} {document['text']}" for document in documents]
    return {"corpus.json": corpus, "test_manual_final.json": queries[:_PAIRS], "train.json": queries[_PAIRS:]}


def _beir(documents: list[Any], queries: list[Any]) -> dict[str, Iterable[Any]]:
    corpus = ({"_id": one["docid"], "title": one["title"], "text": one["text"]} for one in documents)
    texts = ({"_id": query["qid"], "text": query["query"]} for query in queries)
    judged = (f"{query['qid']}\t{docid}\t1" for query in queries for docid in query["docs"])
    return {"corpus.jsonl": corpus, "queries.jsonl": texts, "qrels/test.tsv": ["query-id\tcorpus-id\tscore", *judged]}


def _write(path: Path, records: Iterable[Any]) -> None:
    """JSON lines; ``.json`` one list; ``.tsv`` lines as they are. A file that is there stays, as its indexes do."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_writer(path, REMEDY) as handle:
        if path.suffix == ".json":
            json.dump(list(records), handle, ensure_ascii=False)
        else:
            lines = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in records)
            handle.writelines(f"{line}\n" for line in lines)
