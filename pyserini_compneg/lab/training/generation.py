"""Requests for training, by a language model, over the documents of a collection."""

from __future__ import annotations

import json
import logging
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyserini_compneg.documents import collection_files, iter_documents, say_formats
from pyserini_compneg.expression import Atom
from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.datasets.conversion import document_lines, write_lines
from pyserini_compneg.lab.experiments.datasets.quest import ANSWERS
from pyserini_compneg.lab.generation_settings import GenerationSettings
from pyserini_compneg.lab.training.composed_requests import (
    ATOM_INSTRUCTIONS,
    REQUEST_INSTRUCTIONS,
    SHOWN,
    ComposedQuery,
    Documents,
    composed_queries,
    named_atoms,
    plain,
    question_of_atoms,
    question_of_request,
    tagged_request,
)
from pyserini_compneg.lab.training.judged_requests import judged_by_tags
from pyserini_compneg.lab.training.tagged_requests import TaggedRequest
from pyserini_compneg.lucene import analyze
from pyserini_compneg.reading import ChatModel
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import InputError, OutputError, QueryError
from pyserini_compneg.support.files import content_digest, iter_jsonl, iter_lines
from pyserini_compneg.support.progress import progress
from pyserini_compneg.support.staging import (
    end_or_undo_exchange,
    keep_inputs,
    locked,
    output_errors,
    parent_folders,
    staged_folder,
)
from pyserini_compneg.support.surrogates import without_halves

_GROUP = 8
"""How many documents a question about atoms shows."""

_SECONDS = 300.0
"""How long an answer may take. Nobody waits for a single one, and a model on a processor is slow."""

_TRIED = 20
"""After so many questions without a usable request, no more are asked."""

_HELD_OUT = 10
"""One request in this many is judged; the others are tagged. No reader may have both."""

_FILES = ("documents.jsonl", "train.jsonl", "atoms.jsonl", "judged.jsonl", "requests.txt", "summary.json")
_REMEDY = "choose another place with --output"

_logger = logging.getLogger(__name__)


def generate(
    collection: str | Path, output: str | Path, settings: GenerationSettings | None = None
) -> dict[str, float]:
    """Makes a folder of training data: a dataset for encoders, and tagged and judged requests for readers.

    Each answer of the model is kept in the folder at once. The same call later asks only what has no answer yet, so a
    call that was killed goes on, and a call with a larger limit adds to what there is.

    Args:
        collection: The documents, as :func:`~pyserini_compneg.encode.encode_collection` takes them.
        output: The folder to create, or of an earlier call.
        settings: The settings; None for the defaults.

    Returns:
        The number of questions, of atoms, of requests, and of rejections by their reasons; and as ``words in
        documents`` the share of an atom's content words that its documents have, on average over the atoms and
        apart from words that all documents beside them have, too.

    Raises:
        QueryError: The environment names no language model, the model does not answer, or none of its answers can be
            used. What it answered is kept.
        InputError: A document is bad, or an id is given twice.
        OutputError: The folder exists and was not made here, or cannot be written.
    """
    settings, output = settings or GenerationSettings(), Path(os.path.realpath(output))
    keep_inputs(output, collection)
    keep_inputs(collection, output)
    model = ChatModel(os.environ, _SECONDS)
    files = collection_files(collection, settings.collection_format)
    say_formats(files)
    with ExitStack() as stack:
        with output_errors(output, _REMEDY):
            stack.enter_context(parent_folders(output))
            stack.enter_context(locked(output, "another process writes here"))
            end_or_undo_exchange(output, lambda folder: (folder / ANSWERS).is_file())
        is_empty = output.is_dir() and not any(output.iterdir())  # a kill may leave a folder without an answer
        if output.exists() and not (is_empty or (output / ANSWERS).is_file()):
            raise OutputError(f"exists already, and was not made here (no {ANSWERS})", where=output, remedy=_REMEDY)
        _check_own(output)
        stack.enter_context(output_errors(output, _REMEDY))
        folder = stack.enter_context(staged_folder(output, replace=True))
        docids: set[str] = set()
        write_lines(folder / "documents.jsonl", document_lines(iter_documents(files, settings.fields), docids))
        if len(docids) <= 1:
            raise InputError(f"has {len(docids)} documents, and requests combine two or more", where=collection)
        atoms: dict[str, tuple[Documents, float]] = {}
        rejected = Counter[str]()
        bar = stack.enter_context(progress(None, settings.limit, " questions", "asking"))
        asked = _Asked(output / ANSWERS, model, settings.limit, bar)
        with _searcher(folder / "documents.jsonl") as searcher:
            found = list(_requests(searcher, sorted(docids), asked, settings.seed, atoms, rejected))
        counts = {"questions": asked.count, "atoms": len(atoms), "requests": len(found)}
        counts |= {f"rejected: {reason}": count for reason, count in sorted(rejected.items())}
        if not found:
            counted = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise QueryError(f"no answer can be used ({counted})", where=model.name, remedy="choose another model")
        if not asked.is_over:
            _logger.warning("the documents are used up after %d of %d questions", asked.count, settings.limit)
        shares = [share for _, share in atoms.values()]
        results = counts | {"words in documents": sum(shares) / len(shares)}
        _write(folder, found, atoms)
        about = {"collection": str(collection), "model": model.name, **asdict(settings), "results": results}
        (folder / "summary.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        write_lines(folder / ANSWERS, (line for _, line in iter_lines(output / ANSWERS)))
    return results


def _check_own(output: Path) -> None:
    """Refuses to replace a folder that holds a file of somebody else."""
    own = {*_FILES, ANSWERS}
    if other := next((path for path in sorted(output.glob("*")) if path.name not in own), None):
        raise OutputError("was not made here, and the folder is made anew", where=other, remedy="move it away")


class _Asked:
    """The questions to a model, and the file of its answers, in which each is kept before the next question."""

    def __init__(self, path: Path, model: ChatModel, limit: int, bar: Any) -> None:
        self._path, self._model, self._limit, self._bar = path, model, limit, bar
        self._answers: dict[str, str] = {}
        self.count = 0
        if path.is_file():
            whole = path.read_bytes().rpartition(b"\n")
            if whole[2] and not whole[2].startswith(b"{"):
                raise InputError("is no list of answers", where=path, remedy="move it away")
            os.truncate(path, len(whole[0] + whole[1]))  # the end of an answer that was being written
            for line, record in iter_jsonl(path):
                try:
                    self._answers[_digest(record)] = str(record["answer"])
                except KeyError as cause:
                    raise InputError(f"no {cause}", where=f"{path}:{line}", remedy="delete the line") from None

    @property
    def is_over(self) -> bool:
        return self.count >= self._limit

    def answer(self, instructions: str, text: str) -> str:
        """The answer to a question: the kept one, or that of the model."""
        question = {
            "model": self._model.name,
            "settings": dict(self._model.settings),
            "instructions": instructions,
            "text": text,
        }
        key = _digest(question)
        if key not in self._answers:
            try:
                answer = without_halves(self._model.answer(instructions, text))
            except QueryError as error:
                remedy = f"{len(self._answers)} answers are kept, and the same command goes on"
                raise error.recast(QueryError, remedy).at(self._model.name) from None
            self._path.parent.mkdir(exist_ok=True)
            with open(self._path, "a", encoding="utf-8", newline="\n") as handle:
                handle.write(json.dumps({**question, "answer": answer}, ensure_ascii=False) + "\n")
                handle.flush()
                os.fsync(handle.fileno())
            self._answers[key] = answer
        self.count += 1
        self._bar.update(1)
        return self._answers[key]


def _digest(question: Mapping[str, Any]) -> str:
    return content_digest(json.dumps([question[name] for name in ("model", "settings", "instructions", "text")]))


@contextmanager
def _searcher(documents: Path) -> Iterator[SignedImpactSearcher]:
    """A BM25 searcher of the documents, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="compneg-") as folder:
        build_index(documents, Path(folder, "index"), store_raw=True)
        with SignedImpactSearcher(Path(folder, "index")) as searcher:
            yield searcher


def _requests(
    searcher: SignedImpactSearcher,
    docids: list[str],
    asked: _Asked,
    seed: int,
    atoms: dict[str, tuple[Documents, float]],
    rejected: Counter[str],
) -> Iterator[tuple[ComposedQuery, str, TaggedRequest]]:
    """Usable requests, each with its line of tags, until the limit. Adds to the atoms, and counts rejections.

    A group is a document at random and those that are most similar to it by BM25.
    """
    draw = random.Random(seed)
    draw.shuffle(docids)
    shown, known, said = set[str](), set[str](), set[str]()
    for docid in docids:
        if docid in shown:
            continue
        first = Atom(_text(searcher, docid)[:SHOWN])
        group = {hit.docid: _text(searcher, hit.docid) for hit in searcher.search(first, _GROUP)}
        shown.update(group)
        if len(group) < 2:  # an atom that all documents match, or none, is in no expression
            continue
        if asked.is_over or (asked.count >= _TRIED and not said):
            return
        answer = asked.answer(ATOM_INSTRUCTIONS, question_of_atoms(list(group.values())))
        named = named_atoms(answer, group, analyze, known, rejected)
        atoms.update(named)
        matched = {atom: documents for atom, (documents, _) in named.items()}
        for query in composed_queries(matched, frozenset(group), draw, rejected):
            if asked.is_over:
                return
            answer = asked.answer(REQUEST_INSTRUCTIONS, question_of_request(query, draw))
            try:
                line, request = tagged_request(answer, query.expression)
                if plain(request.text) in said:
                    raise InputError("request: given already")
            except InputError as error:
                rejected[error.what] += 1
                continue
            said.add(plain(request.text))
            yield query, line, request


def _text(searcher: SignedImpactSearcher, docid: str) -> str:
    return str((searcher.doc(docid) or {})["contents"])


def _write(
    folder: Path,
    found: Sequence[tuple[ComposedQuery, str, TaggedRequest]],
    atoms: Mapping[str, tuple[Documents, float]],
) -> None:
    """Writes the queries and atoms of the dataset, and the requests of readers."""
    queries = (
        {
            "qid": str(number),
            "query": request.text,
            "original_query": query.marked,
            "docs": sorted(query.documents),
            "metadata": {"template": query.template},
        }
        for number, (query, _, request) in enumerate(found, 1)
    )
    write_lines(folder / "train.jsonl", map(_json, queries))
    named = ({"atom": atom, "docs": sorted(documents)} for atom, (documents, _) in atoms.items())
    write_lines(folder / "atoms.jsonl", map(_json, named))
    judged = (judged_by_tags(request).model_dump() for _, _, request in found[::_HELD_OUT])
    write_lines(folder / "judged.jsonl", map(_json, judged))
    tagged = (line for number, (_, line, _) in enumerate(found) if number % _HELD_OUT)
    write_lines(folder / "requests.txt", tagged)


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)
