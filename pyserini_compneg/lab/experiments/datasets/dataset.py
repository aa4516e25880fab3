"""The common form of datasets, and functions with which each kind finds and reads its files.

Every file of a dataset may be packed with gzip. The name of a packed file ends in ``.gz``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyserini_compneg.documents import SourceDocument, source_document
from pyserini_compneg.eval import Qrels
from pyserini_compneg.expression import Atom
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import decoded_line, iter_blocks, iter_jsonl, iter_lines
from pyserini_compneg.topics import Topic

DOMAIN = "domain-"
"""The start of the name of a domain's split."""


@dataclass(frozen=True, slots=True)
class Split:
    """A split. Its files are read when their content is requested."""

    documents: Callable[[], Iterator[SourceDocument]]
    topics: Callable[[], list[Topic]]
    qrels: Callable[[], Qrels]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A folder of official files, in the form that experiments use.

    Attributes:
        kind: One of ``opening.KINDS``.
        provenance: One line with the origin and the licence.
        folder: The folder of the files.
        collection: The collection for ``index --collection``; None if the documents must be converted first.
        parts: The splits by name, in the order in which users see them.
        of_domain: Makes the split of a domain's queries, such as ``films``, ``films+books`` or, of atomic queries only,
            ``films-nc``; None if queries have no domains. ``domain-films`` is the name of the first.
    """

    kind: str
    provenance: str
    folder: Path
    collection: Path | None
    parts: Mapping[str, Split] = field(repr=False)
    of_domain: Callable[[str], Split] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return tuple(self.parts)

    def part(self, split: str) -> Split:
        """A split by its name.

        Raises:
            InputError: There is no such split. Reading the split may raise it for a broken line of a file.
        """
        if split not in self.parts and self.of_domain and split.startswith(DOMAIN):
            return self.of_domain(split.removeprefix(DOMAIN))
        if split not in self.parts:
            raise InputError(f"no split {split!r}; there are: {', '.join(self.parts)}", where=self.folder)
        return self.parts[split]

    def documents(self, split: str) -> Iterator[SourceDocument]:
        """The documents in which a split's topics are searched. All splits share them if there is a corpus."""
        return self.part(split).documents()

    def topics(self, split: str) -> list[Topic]:
        """The topics of a split, in the order of the file."""
        return self.part(split).topics()

    def qrels(self, split: str) -> Qrels:
        """The judgements of a split, including hard negatives, which are judged 0."""
        return self.part(split).qrels()


def collection_documents(path: Path) -> Iterator[SourceDocument]:
    return (source_document(line, f"{path}:{number}") for number, line in iter_lines(path))


def plain_topic(qid: str, text: str, source: str, metadata: Mapping[str, str] | None = None) -> Topic:
    """A topic of one text without operators."""
    return Topic(qid, text, Atom(text), source=source, metadata=metadata or {}, plain=True)


def check_queries(topics: Sequence[Topic], qrels: Qrels, topics_file: Path, qrels_file: Path) -> None:
    """Refuses judgements of a query that the topics lack."""
    known = {topic.qid for topic in topics}
    if unknown := [qid for qid in qrels if qid not in known]:
        what = f"{len(unknown)} of {len(qrels)} queries are not in {topics_file}, first {unknown[0]!r}"
        raise InputError(what, where=qrels_file)


def find_file(folder: Path, name: str) -> Path | None:
    """The file with this name, plain or gzip, or None."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def require_file(folder: Path, name: str, kind: str) -> Path:
    """The file with this name, plain or gzip. Raises an error if it is missing."""
    path = find_file(folder, name)
    if path is None:
        raise InputError(f"{name} is missing, plain or gzip, which the kind {kind} needs", where=folder)
    return path


def find_splits(folder: Path, names: Iterable[str], suffix: str) -> dict[str, Path]:
    """The existing files ``name + suffix``, by name."""
    paths = {name: find_file(folder, name + suffix) for name in names}
    return {name: path for name, path in paths.items() if path}


def first_fields(path: Path) -> set[str]:
    """The fields of the first object of a JSON Lines file; empty for an empty file."""
    return set(next((record for _, record in iter_jsonl(path)), {}))


def all_lines(path: Path) -> Iterator[str]:
    """All lines of a file, including blank ones, so that line numbers agree with an editor's."""
    for first, block in iter_blocks(path):
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
            yield decoded_line(line, f"{path}:{number}")
