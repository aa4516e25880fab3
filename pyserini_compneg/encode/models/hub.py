"""From a model's name to its folder: a local one, one in the Hugging Face cache, or one to be downloaded."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path

from pyserini_compneg.encode.models.cache import cache_home
from pyserini_compneg.errors import DownloadError, EncodingError

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_FILES = (".jsonl", ".json", ".gz", ".tsv", ".txt")
_TEXTS = ("*.json", "*.txt", "*.model")
_WEIGHTS = ("*.safetensors", "*.bin")
_logger = logging.getLogger(__name__)
_OTHER_FORMATS = ("onnx/*", "openvino/*", "*/onnx/*", "coreml/*", "*training_args.bin", "*optimizer.bin")


def model_folder(name: str) -> Path:
    """The folder of a checkpoint.

    Args:
        name: A folder, or a model of the Hugging Face hub, ``owner/name``.

    Raises:
        EncodingError: Neither.
        DownloadError: A model that is not in the cache and cannot be downloaded.
    """
    path = Path(os.path.expanduser(name))
    if name and path.is_dir():
        return path
    unknown = EncodingError(
        f"no encoder {name!r}; expected bm25, a model (a folder, or owner/name on the Hugging Face hub), or a JSON "
        "Lines file of texts encoded with it"
    )
    if not _HUB_NAME.fullmatch(name) or path.suffix in _FILES or path.exists():
        raise unknown
    return _hub_folder(name, unknown)


def _hub_folder(name: str, unknown: EncodingError) -> Path:
    """The folder of a model of the hub, with its weights in the safe format where there are any."""
    try:
        from huggingface_hub import constants, errors
    except ImportError:
        raise DownloadError(
            f"{name}: models come from the hub by huggingface_hub; pip install it, or name a folder"
        ) from None
    try:
        cached = _cached(name)
        if cached is not None and _mark(cached).exists():
            return cached
        return _downloaded(name)
    except errors.HFValidationError:
        raise unknown from None
    except DownloadError:
        if cached is None:
            raise
        if not constants.HF_HUB_OFFLINE:
            _logger.warning("%s: taken from the Hugging Face cache; whether that has all its files is not known", name)
        return cached


def _mark(folder: Path) -> Path:
    """An empty file that marks a snapshot as complete. Other programs may have downloaded only some of its files."""
    return cache_home() / "hub" / f"{folder.parent.parent.name}-{folder.name}"


def _cached(name: str) -> Path | None:
    """The snapshot in the cache, if it is complete. The network is not asked."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    for pattern in _WEIGHTS:
        try:
            folder = Path(_download(name, pattern, local_files_only=True))
        except (LocalEntryNotFoundError, OSError):
            continue
        has_texts = (folder / "config.json").is_file() or (folder / "modules.json").is_file()
        if has_texts and any(folder.rglob(pattern)):
            return folder
    return None


def _downloaded(name: str) -> Path:
    """Downloads configuration, tokenizer and weights, the safe format of the latter where there is one."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        for pattern in _WEIGHTS:
            folder = Path(_download(name, pattern))
            if any(folder.rglob(pattern)):
                break
    except GatedRepoError:
        raise DownloadError(f"{name}: its licence must be accepted on the hub first; do so, and set HF_TOKEN") from None
    except RepositoryNotFoundError:
        raise DownloadError(f"{name}: the hub has no such model, or it needs a token (HF_TOKEN)") from None
    except (HfHubHTTPError, OSError, ValueError) as cause:
        raise DownloadError(
            f"{name}: not in the Hugging Face cache, and {_reason(cause)}; name a folder, or download it where there "
            f"is a network (hf download {name}) and copy the cache"
        ) from None
    with suppress(OSError):
        _mark(folder).parent.mkdir(parents=True, exist_ok=True)
        _mark(folder).touch()
    return folder


def _download(name: str, weights: str, local_files_only: bool = False) -> str:
    from huggingface_hub import snapshot_download

    return snapshot_download(
        name,
        allow_patterns=[*_TEXTS, weights],
        ignore_patterns=list(_OTHER_FORMATS),
        local_files_only=local_files_only,
    )


def _reason(cause: Exception) -> str:
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    first = str(cause).strip().splitlines()
    return f"the hub cannot be reached ({first[0][:200] if first else type(cause).__name__})"
