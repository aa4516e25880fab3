"""Natural Questions' official files, as NQ320k: the document of a question is the Wikipedia page that answers it.

The id of a document is the title in the page's address. Of several revisions of a page, the first in the files is
taken, without its tags. Both files give documents, so all splits share one collection.

Source: Kwiatkowski et al. 2019, Natural Questions. Zhang et al. 2024 (ExcluIR) use NQ320k, and do not say how it is
made.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import Qrels
from pyserini_compneg.lab.experiments.datasets.dataset import Dataset, Split, find_file, plain_topic
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.json_objects import checked_id, docid_from_title
from pyserini_compneg.topics import Topic

_FILES = {"dev": "nq-dev-all.jsonl", "train": "simplified-nq-train.jsonl"}
_DOWNLOADED = "v1.0-simplified_"
"""What a browser puts before the names of the files."""

_PROVENANCE = "Natural Questions, google-research-datasets/natural-questions (CC BY-SA 3.0)"


def is_nq(folder: Path) -> bool:
    """Whether a folder has one of the official files."""
    return bool(_files(folder))


def open_nq(folder: Path) -> Dataset:
    """A split for each file, over the pages of all files."""
    files = _files(folder)
    if not files:
        listed = " or ".join(_FILES.values())
        raise InputError(f"no questions; the kind nq needs {listed}, plain or gzip", where=folder)
    documents = partial(_documents, [*files.values()])
    parts = {name: Split(documents, partial(_topics, path), partial(_qrels, path)) for name, path in files.items()}
    return Dataset("nq", _PROVENANCE, folder, None, parts)


def _files(folder: Path) -> dict[str, Path]:
    found = {name: find_file(folder, file) or find_file(folder, _DOWNLOADED + file) for name, file in _FILES.items()}
    return {name: path for name, path in found.items() if path}


def _documents(paths: list[Path]) -> Iterator[SourceDocument]:
    seen = set[str]()
    for path in paths:
        for number, record in iter_jsonl(path):
            source = f"{path}:{number}"
            if (title := _title(record, source)) not in seen:
                seen.add(title)
                words = (word for word in _words(record, source) if not (word[0] == "<" and word[-1] == ">"))
                yield SourceDocument(title, f"{title.replace('_', ' ')} {' '.join(words)}", source)


def _words(record: dict[str, Any], source: str) -> list[str]:
    """The words and tags of a page, of a simplified record or of a whole one."""
    if isinstance(text := record.get("document_text"), str):
        return text.split()
    try:
        return [str(token["token"]) for token in record["document_tokens"] if token["token"]]
    except (KeyError, TypeError):
        fault = "no text of the page; expected `document_text` or `document_tokens`"
        raise InputError(fault, where=source) from None


def _title(record: dict[str, Any], source: str) -> str:
    url = record.get("document_url")
    query = url.replace("&amp;", "&").partition("?")[2] if isinstance(url, str) else ""
    if not (title := parse_qs(query).get("title")):
        raise InputError(f"`document_url` must be an address with a title, got {url!r:.80}", where=source)
    return docid_from_title(title[0])


def _topics(path: Path) -> list[Topic]:
    topics = []
    for qid, record, source in _questions(path):
        text = record.get("question_text")
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"`question_text` must be a text that is not blank, got {text!r:.60}", where=source)
        topics.append(plain_topic(qid, text.strip(), source))
    return topics


def _qrels(path: Path) -> Qrels:
    return {qid: {_title(record, source): 1} for qid, record, source in _questions(path)}


def _questions(path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    for number, record in iter_jsonl(path):
        source = f"{path}:{number}"
        if "example_id" not in record:
            raise InputError("no `example_id`", where=source)
        yield checked_id(record["example_id"], "query id", source), record, source
