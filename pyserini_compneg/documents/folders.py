"""The files of a folder that hold its documents: all of one format, and only the corpus in a test collection.

Names tell the files of a test collection apart, since queries have the fields of documents: an id and a text. A file or
folder is a corpus if one of the words in its name is ``corpus``, ``collection``, ``documents``, ``docs``, ``passages``
or ``vectors``. It has queries or judgements if a word is ``queries``, ``topics`` or ``qrels``, or, in the folder of a
corpus, the name begins with the name of a split. Such are the names in BEIR, MTEB, MS MARCO, QUEST and Anserini.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pyserini_compneg.documents.formats import PACKED, SUFFIXES, Format
from pyserini_compneg.documents.vector_files import SHARD_NAME, VECTORS_FILE
from pyserini_compneg.lucene import is_index
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import reason_of

_logger = logging.getLogger(__name__)
_WITHOUT_FORMAT: tuple[tuple[Format, ...], ...] = (("jsonl",), ("parquet",), ("csv", "tsv"))
"""The default formats of files in a folder. Tables are read only if there is no JSON, since they may be judgements."""

_CORPUS = {"corpus", "collection", "documents", "docs", "passages", "vectors"}
_QUERIES = {"queries", "topics", "qrels"}
_SPLITS = {"train", "dev", "val", "valid", "validation", "test"}
_SPLIT_FILE = re.compile(rf"(?i:{'|'.join(sorted(_SPLITS, reverse=True))})(?![^\W\d])")
_ABOUT = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
"""JSON that the library ``datasets`` writes beside Arrow and parquet files."""

_ARROW = ".arrow"
_UNREAD = (".zst", ".bz2", ".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", _ARROW)
_LISTED = 3


def document_files(root: Path, collection_format: Format | None = None) -> list[Path]:
    """The files of a folder and its subfolders that hold documents, in the order of their names."""
    names = sorted(name for name in _below(root) if not (name.name.startswith(".") or name.name == VECTORS_FILE))
    if any(name.suffix.lower() in (_ARROW, ".parquet") for name in names):
        names = [name for name in names if name.name not in _ABOUT]
    known = _with_documents(root, names)
    for formats in _WITHOUT_FORMAT if collection_format is None else ((collection_format,),):
        if files := [name for name in known if name.name.lower().endswith(_endings(formats)) and name.is_file()]:
            break
    else:
        raise _without_files(root, names, collection_format)
    _check_shards(root, files)
    if others := sorted(set(known) - set(files), key=lambda name: not name.name.lower().endswith(_UNREAD)):
        _logger.warning("%s: %d files of other kinds are left out: %s", root, len(others), _listed(root, others))
    return files


def _endings(formats: Sequence[Format]) -> tuple[str, ...]:
    return tuple(f"{one}{packed}" for format in formats for one in SUFFIXES[format] for packed in ("", *PACKED))


def _with_documents(root: Path, names: Sequence[Path]) -> Sequence[Path]:
    """The files without queries and judgements, if files of documents are left then. Warns of those left out."""
    roles = {name: _role(name.relative_to(root)) for name in names}
    readable = [name for name in names if name.name.lower().endswith(_endings([*SUFFIXES]))]
    corpus = [name for name in readable if roles[name] == "corpus"]
    said = "files are left out that have queries or judgements by their names; to index one, give its own path: "
    if corpus and "queries" in roles.values():
        left = [name for name in readable if roles[name] != "corpus"]
        said = f"a test collection, of which only the corpus is read: {_listed(root, corpus)}; left out: "
    elif corpus:
        beside = {name.parent for name in corpus}
        left = [name for name in readable if roles[name] == "split" and name.parent in beside]
    else:
        left = [name for name in readable if roles[name] == "queries"]
        is_packed = any(name.name.lower().endswith(_UNREAD) and roles[name] != "queries" for name in names)
        if len(left) == len(readable) and not is_packed:
            return names
    if left:
        _logger.warning("%s: %s%s", root, said, _listed(root, left))
    gone = set(left)
    return [name for name in names if name not in gone]


def _role(name: Path) -> Literal["corpus", "queries", "split"] | None:
    """What the words of a path say about a file. The outermost folder that says something counts."""
    words = [{*re.findall("[a-z]+", part.lower())} for part in name.parts]
    for part in words:
        if part & _QUERIES:
            return "queries"
        if part & _CORPUS:
            return "corpus"
    return "split" if any(part & _SPLITS for part in words[:-1]) or _SPLIT_FILE.match(name.name) else None


def _listed(root: Path, names: Sequence[Path]) -> str:
    first = ", ".join(str(name.relative_to(root)) for name in names[:_LISTED])
    return f"{first} and {len(names) - _LISTED} more" if len(names) > _LISTED else first


def _without_files(root: Path, names: Sequence[Path], collection_format: Format | None) -> InputError:
    kinds = SUFFIXES.values() if collection_format is None else [SUFFIXES[collection_format]]
    expected = ", ".join(dict.fromkeys(one for kind in kinds for one in kind))
    what = f"the folder holds no {expected} file of documents, plain, .gz or .xz"
    unread = [name for name in names if name.name.lower().endswith(_UNREAD)]
    if not unread:
        return InputError(what, where=root)
    remedy = "unpack it"
    if unread[0].suffix == _ARROW:
        remedy = "write it as parquet or JSON Lines, with datasets.load_from_disk(FOLDER)"
    return InputError(f"{what}, but {_listed(root, unread)}", where=root, remedy=remedy)


def _check_shards(path: Path, files: Sequence[Path]) -> None:
    """Refuses a collection that was encoded in N shards if a shard is missing."""
    shards = [match for file in files if (match := SHARD_NAME.fullmatch(file.name))]
    counts = {int(match[2]) for match in shards}
    if len(counts) > 1:
        raise InputError(
            f"has shards of {' and of '.join(map(str, sorted(counts)))}",
            where=path,
            remedy="keep the shards of one encoding",
        )
    missing = sorted(set(range(max(counts, default=0))) - {int(match[1]) for match in shards})
    if missing:
        raise InputError(f"shard {missing[0]} of {max(counts)} is missing", where=path, remedy="encode it first")


def _below(root: Path) -> Iterator[Path]:
    """All files in a folder and its subfolders. A folder that is linked twice counts once. Indexes are skipped."""
    seen = set()
    for folder, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
        seen.add(os.path.realpath(folder))
        folders[:] = [name for name in folders if _is_new(Path(folder, name), seen)]
        yield from (Path(folder, name) for name in names)


def _is_new(folder: Path, seen: set[str]) -> bool:
    return os.path.realpath(folder) not in seen and not (is_index(folder) or folder.name.endswith(".building"))


def _refuse(cause: OSError) -> None:
    raise InputError(f"cannot be read: {reason_of(cause)}", where=cause.filename)
