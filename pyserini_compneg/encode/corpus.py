"""From a collection to files of its vectors, which ``index`` takes: in shards, on several machines, in several goes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_compneg.datasets.collection import (
    Block,
    SourceDocument,
    collection_files,
    fingerprint,
    iter_collection_blocks,
    text_documents,
)
from pyserini_compneg.encode.neural import ModelDocumentEncoder, load_checkpoint
from pyserini_compneg.encode.shard_file import ShardFile, check_place
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.models import ModelOptions
from pyserini_compneg.progress import progress


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a collection: every ``count``-th line, from ``number`` on.

    Attributes:
        number: From 0.
        count: Of how many.
    """

    number: int = 0
    count: int = 1

    @property
    def file_name(self) -> str:
        """What its file is called."""
        return f"vectors-{self.number:05d}-of-{self.count:05d}.jsonl.gz"


def encode_collection(
    collection: str | Path,
    output: str | Path,
    encoder: str,
    *,
    model_options: ModelOptions | None = None,
    shard: Shard = Shard(),  # noqa: B008  # it is immutable
    fields: Sequence[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> Path:
    """Encodes the texts of a collection; the file of their vectors appears complete, or not at all.

    Its lines are JSON, ``{"id", "contents", "vector", "encoder"}``, in the order of the collection. What is encoded is
    kept every few hundred documents, and a killed run can be gone on with.

    Args:
        collection: A JSON Lines file, plain or gzip, or a folder of them.
        output: The folder for the file; made if there is none.
        encoder: A model, as a folder or as a name of the Hugging Face hub.
        model_options: How it is run; None for the defaults.
        shard: Which part of the collection is encoded.
        fields: The fields that make a document's text; by default ``contents``, or ``title`` and ``text``.
        overwrite: Replace a file that is there already, and throw away unfinished work.
        resume: Go on with unfinished work, if there is any.

    Returns:
        The file.

    Raises:
        CollectionError: A bad document, or none at all.
        EncodingError: A model that cannot be used.
        DownloadError: A model that cannot be had from the hub.
        OutputError: The file exists, unfinished work was not mentioned or is of something else, or the folder cannot be
            written.
    """
    files = collection_files(collection)
    place = Path(output) / shard.file_name
    check_place(place, overwrite)
    model = ModelDocumentEncoder(load_checkpoint(encoder, model_options), model_options)
    plan = {"model": dict(model.settings), "encoder": encoder, "fields": fields, "sources": fingerprint(files)}
    with ShardFile(place, json.loads(json.dumps(plan)), overwrite, resume) as target:
        total = sum(_lines_of(block, shard) for block in iter_collection_blocks(files))
        with progress(None, total, " docs", "encoding") as bar:
            bar.update(target.documents)
            blocks = iter_collection_blocks(files, target.position, model.most_lines)
            for block, documents, vectors in _encoded(blocks, model, shard, fields):
                target.add(block.end, [_line(*pair, encoder) for pair in zip(documents, vectors, strict=True)])
                bar.update(len(documents))
        if not target.documents:
            raise CollectionError(f"{collection}: no documents in shard {shard.number} of {shard.count}")
    return place


def _encoded(
    blocks: Iterable[Block], encoder: ModelDocumentEncoder, shard: Shard, fields: Sequence[str] | None
) -> Iterator[tuple[Block, list[SourceDocument], list[dict[str, float]]]]:
    read: deque[tuple[Block, list[SourceDocument]]] = deque()

    def texts() -> Iterator[list[str]]:
        for block in blocks:
            found, problems = text_documents(_of_shard(block, shard), fields)
            if problems:
                raise CollectionError(problems[0])
            documents = list(found.values())
            read.append((block, documents))
            yield [document.text or "" for document in documents]

    for vectors in encoder.stream(texts()):
        block, documents = read.popleft()
        yield block, documents, vectors


def _of_shard(block: Block, shard: Shard) -> Block:
    """The block with the lines of other shards left blank."""
    if shard.count == 1:
        return block
    lines = block.lines.split(b"\n")
    kept = (line if _is_in(block.first_line + n, shard) else b"" for n, line in enumerate(lines))
    return block._replace(lines=b"\n".join(kept))


def _lines_of(block: Block, shard: Shard) -> int:
    """How many of the block's lines that are not empty the shard has."""
    lines = block.lines.split(b"\n")
    return sum(bool(line) and _is_in(block.first_line + n, shard) for n, line in enumerate(lines))


def _is_in(line: int, shard: Shard) -> bool:
    return (line - 1) % shard.count == shard.number


def _line(document: SourceDocument, vector: Mapping[str, float], name: str) -> str:
    record = {"id": document.docid, "contents": document.text, "vector": vector, "encoder": name}
    return json.dumps(record, ensure_ascii=False)
