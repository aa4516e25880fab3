"""Finds the folder of a model: a local folder, or a folder in the Hugging Face cache, after a download if necessary."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection
from contextlib import suppress
from importlib import resources
from pathlib import Path

from pyserini_compneg.encode.models.cache import check_copy
from pyserini_compneg.encode.models.checkpoint import Checkpoint, read_checkpoint
from pyserini_compneg.encode.models.configuration import refuse_foreign_code
from pyserini_compneg.encode.models.latents import is_latent
from pyserini_compneg.encode.models.options import ModelOptions
from pyserini_compneg.support.errors import DownloadError, EncodingError
from pyserini_compneg.support.files import cache_home

MINI = "mini"
"""The model of terms that is part of this package."""

LATENT = "latent"
"""The latent model that is part of this package, and, before a colon, the prefix of the name of any other one."""

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_FILES = (".jsonl", ".json", ".gz", ".tsv", ".txt")
_TEXTS = ("*.json", "*.txt", "*.model")
_WEIGHTS = ("*.safetensors", "*.bin")
_logger = logging.getLogger(__name__)
_EXPECTED = (
    "expected mini, latent, latent:FOLDER, a folder, or owner/name on the Hugging Face hub (index and search also take "
    "bm25 and bm25+MODEL, search also a JSON Lines file of encoded texts)"
)
_EXPECTED_PLACE = "expected a folder, or owner/name on the Hugging Face hub"
_OTHER_FORMATS = ("onnx/*", "openvino/*", "*/onnx/*", "coreml/*", "*training_args.bin", "*optimizer.bin")


def model_folder(name: str, read: Collection[str] = ()) -> Path:
    """The folder of a checkpoint.

    Args:
        name: A folder; a model of the Hugging Face hub, ``owner/name``; ``mini``, the model of this package; or
            ``latent:`` with a folder or a hub model, which must be a latent model.
        read: Classes of modules that the caller does not run, but whose weights it reads.

    Raises:
        EncodingError: The name is neither a folder nor a hub model, the model is of the other kind, or the model needs
            custom code, which this package never runs.
        DownloadError: The model is not in the cache and cannot be downloaded.
    """
    if name in (MINI, LATENT):
        return Path(str(resources.files("pyserini_compneg") / "resources" / name))
    if name.startswith(f"{LATENT}:"):
        folder = _any_folder(name.removeprefix(f"{LATENT}:"), read, f"{_EXPECTED_PLACE}, after {LATENT}:")
        if not is_latent(folder):
            remedy = f"leave out {LATENT}:, or make a latent model of it with train latent --base"
            raise EncodingError("is no latent model", where=name, remedy=remedy)
        return folder
    folder = _any_folder(name, read, _EXPECTED_PLACE if read else _EXPECTED)  # this package's models have no weights
    if is_latent(folder):
        raise EncodingError("is a latent model", where=name, remedy=f"write {LATENT}:{name}")
    return folder


def _any_folder(name: str, read: Collection[str], expected: str) -> Path:
    path = Path(os.path.expanduser(name))
    folder = path if name and path.is_dir() else None
    what, remedy = (
        ("bm25 is not a model", "index and search take --encoder bm25, other commands a model, or bm25+MODEL")
        if name == "bm25"
        else (f"no model {name!r}", expected)
    )
    unknown = EncodingError(what, remedy=remedy)
    if folder is None and (not _HUB_NAME.fullmatch(name) or path.suffix in _FILES or path.exists()):
        raise unknown
    folder = folder or _hub_folder(name, unknown)
    refuse_foreign_code(folder, name, read)
    check_copy(folder, name)
    return folder


def load_checkpoint(name: str, options: ModelOptions | None = None) -> Checkpoint:
    """The checkpoint of a folder or of a hub model; see :func:`model_folder` and :func:`read_checkpoint`."""
    return read_checkpoint(model_folder(name), name, options.head if options else None)


def _hub_folder(name: str, unknown: EncodingError) -> Path:
    """The folder of a hub model. Weights are in the safe format if the hub has it."""
    from huggingface_hub import constants, errors

    try:
        cached = _cached(name)
        if cached is not None and _mark(cached).exists():
            return cached
        return _downloaded(name)
    except errors.HFValidationError:
        raise unknown from None
    except DownloadError as error:
        if cached is None and Path(name).parent.is_dir():  # more likely a folder with a typing error
            raise EncodingError(error.what, where=name, remedy=error.remedy) from None
        if cached is None:
            raise
        if not constants.HF_HUB_OFFLINE:
            _logger.warning("%s: taken from the Hugging Face cache; whether that has all its files is not known", name)
        return cached


def _mark(folder: Path) -> Path:
    """An empty file that marks a snapshot as complete. Other programs may have downloaded only a part of it."""
    return cache_home() / "hub" / f"{folder.parent.parent.name}-{folder.name}"


def _cached(name: str) -> Path | None:
    """The complete snapshot in the cache, or None. No request is sent."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = _snapshot(name, local_files_only=True)
    except (LocalEntryNotFoundError, OSError):
        return None
    has_texts = (folder / "config.json").is_file() or (folder / "modules.json").is_file()
    return folder if has_texts and any(any(folder.rglob(pattern)) for pattern in _WEIGHTS) else None


def _downloaded(name: str) -> Path:
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        folder = _snapshot(name)
    except GatedRepoError:
        raise DownloadError(
            "its licence must be accepted on the hub first", where=name, remedy="do so, and set HF_TOKEN"
        ) from None
    except RepositoryNotFoundError:
        raise EncodingError("the hub has no such model, or it needs a token (HF_TOKEN)", where=name) from None
    except (HfHubHTTPError, OSError, ValueError) as cause:
        first = (str(cause).strip().splitlines() or [type(cause).__name__])[0][:200]
        reason = "HF_HUB_OFFLINE is set" if HF_HUB_OFFLINE else f"the hub cannot be reached ({first})"
        raise DownloadError(
            f"neither a folder nor in the Hugging Face cache, and {reason}",
            where=name,
            remedy=f"name a folder, or download it where there is a network (hf download {name}) and copy the cache",
        ) from None
    with suppress(OSError):
        _mark(folder).parent.mkdir(parents=True, exist_ok=True)
        _mark(folder).touch()
    return folder


def _snapshot(name: str, local_files_only: bool = False) -> Path:
    """The folder of a model's files. Weights are in the safe format if the hub has it."""
    from huggingface_hub import snapshot_download

    for pattern in _WEIGHTS:
        folder = Path(
            snapshot_download(
                name,
                allow_patterns=[*_TEXTS, pattern],
                ignore_patterns=list(_OTHER_FORMATS),
                local_files_only=local_files_only,
            )
        )
        if any(folder.rglob(pattern)):
            break
    return folder
