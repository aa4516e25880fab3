"""Hashes of models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from pyserini_compneg.encode.models.checkpoint import REPORT_FILE, NeuralSide, StaticSide, text_files
from pyserini_compneg.encode.models.configuration import optional_json
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.files import cache_home, content_digest, reason_of
from pyserini_compneg.support.staging import atomic_writer

_FORMAT = 4
"""The version of exports and of vectors. It is increased when a change in ``encode`` changes the vectors of unchanged
files, so that older results in the cache are not used."""

_TOKENIZER_FORMAT = 1

_READ = (".json", ".txt", ".model", ".safetensors", ".bin")
_COPY = "copy the whole folder again"


def content_hash(files: Iterable[Path], settings: Mapping[str, object]) -> str:
    """A hash of files' names and contents, and of settings, as 16 hexadecimal digits.

    The hash of a file is cached under its path, size and times, because hashing a large model takes seconds.
    """
    memory = cache_home() / "hashes.json"
    known = _remembered(memory)
    count = len(known)
    content = [json.dumps(settings, sort_keys=True)]
    for file in files:
        try:
            status = file.stat()
            key = f"{file.resolve()}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
            if key not in known:
                known[key] = content_digest(file)
        except OSError as error:
            what, remedy = f"cannot be read: {reason_of(error)}", "put the files of the model back"
            raise EncodingError(what, where=file, remedy=remedy) from None
        content.append(f"{file.name}:{known[key]}")
    if len(known) > count:
        with suppress(OSError):  # without a writable cache folder, hashing only takes longer
            memory.parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(memory) as handle:
                json.dump(known, handle)
    return content_digest(*content, digits=16)


def copied_files(folder: Path) -> dict[str, object]:
    """The names, relative to the folder of an export, of the files that determine its vectors, and one hash of them."""
    files = sorted(
        path for path in folder.rglob("*") if path.suffix in _READ and path.name != REPORT_FILE and path.is_file()
    )
    return {"files": [path.relative_to(folder).as_posix() for path in files], "files_hash": content_hash(files, {})}


def check_copy(folder: Path, name: str) -> None:
    """Refuses a folder of an export that lacks files, or in which some have changed since ``export`` wrote it.

    Without these files the export would give other vectors. Older exports do not name their files.
    """
    report = optional_json(folder / REPORT_FILE, name)
    files = report.get("files", ())
    if not isinstance(files, (list, tuple)) or not all(isinstance(file, str) for file in files):
        raise EncodingError(f"{REPORT_FILE}: `files` must be a list of names", where=name, remedy=_COPY)
    if missing := [file for file in files if not (folder / file).is_file()]:
        raise EncodingError(f"the export lacks {', '.join(missing)}", where=name, remedy=_COPY)
    if files and content_hash([folder / file for file in files], {}) != report.get("files_hash"):
        what, remedy = "a file of the export has changed since it was made", f"{_COPY}, or export the model again"
        raise EncodingError(what, where=name, remedy=remedy)


def model_hash(side: NeuralSide) -> str:
    """A hash of the files of a model, its head and its prompt. The names of the model and its folder are ignored."""
    settings: dict[str, object] = {**asdict(side.head), "prompt": side.prompt}
    settings |= {"lowercase": "by a normaliser" if side.lowercase else False}
    settings |= {"own_terms": side.own_terms is not None, "format": _FORMAT}
    settings |= {"arguments": side.arguments} if side.arguments else {}
    settings |= {} if side.special_tokens else {"special_tokens": False}
    settings |= {"cut": "left"} if _cut_on_the_left(side.folder) else {}
    return content_hash(side.files, settings)


def _cut_on_the_left(folder: Path) -> bool:
    """Whether long texts are cut at the beginning. Former versions of this package always cut at the end."""
    return optional_json(folder / "tokenizer_config.json").get("truncation_side") == "left"


def tokenizer_hash(side: StaticSide) -> str:
    """A hash of the files from which transformers builds the tokenizer of a side."""
    settings = {"format": _TOKENIZER_FORMAT, "lowercase": side.lowercase, "arguments": side.arguments}
    return content_hash(text_files(side.folder), settings)


def transformers_major() -> str | None:
    """The major release of transformers, which decides how tokenizers are built; None if it is not installed."""
    version = transformers_version()
    return version and version.split(".")[0]


def transformers_version() -> str | None:
    """The version of transformers; None if it is not installed."""
    if find_spec("transformers") is None:
        return None
    from importlib import metadata  # takes long to import

    try:
        return metadata.version("transformers")
    except metadata.PackageNotFoundError:  # a checkout in PYTHONPATH
        return "unknown"


def _remembered(memory: Path) -> dict[str, str]:
    """The cached hashes. A missing or damaged file gives an empty result, so all files are hashed again."""
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in known.items() if isinstance(value, str)} if isinstance(known, dict) else {}
