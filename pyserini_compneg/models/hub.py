"""From a model's name to its folder: a local one, one in the Hugging Face cache, or one to be downloaded."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyserini_compneg.errors import DownloadError, EncodingError
from pyserini_compneg.models.cache import cache_home

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_HUB_FILE = re.compile(r"([\w.-]+/[\w.-]+)/(.+\.onnx)")
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
    return _hub_folder(name, _WEIGHTS, unknown)


def onnx_file(name: str) -> Path:
    """An ONNX file, in a folder with what else the model needs.

    Args:
        name: The file, or one of a model of the Hugging Face hub, such as ``owner/name/onnx/model.onnx``.

    Raises:
        EncodingError: Neither.
        DownloadError: A model that is not in the cache and cannot be downloaded.
    """
    path = Path(os.path.expanduser(name))
    on_hub = _HUB_FILE.fullmatch(name)
    if path.is_file():
        return path
    unknown = EncodingError(
        f"{name}: no such file; expected an ONNX file, or one of a model on the Hugging Face hub, such as "
        "owner/name/onnx/model.onnx"
    )
    if on_hub is None or Path(on_hub[1]).is_dir():
        raise unknown
    model, file = on_hub.groups()
    path = _hub_folder(model, (f"{file}*",), unknown) / file  # large weights lie beside it: model.onnx_data
    if not path.is_file():
        raise EncodingError(f"{model}: the hub has no {file} of it; name another of its files")
    return path


def _hub_folder(name: str, weights: Sequence[str], unknown: EncodingError) -> Path:
    """The folder of a model of the hub, with weights of the first of these patterns that it has any of."""
    try:
        from huggingface_hub import errors
    except ImportError:
        raise DownloadError(
            f"{name}: models come from the hub by huggingface_hub; pip install it, or name a folder"
        ) from None
    try:
        cached = _cached(name, weights)
        if cached is not None and _mark(cached, weights).exists():
            return cached
        return _downloaded(name, weights)
    except errors.HFValidationError:
        raise unknown from None
    except DownloadError:
        if cached is None:
            raise
        if not _is_offline():
            _logger.warning("%s: taken from the Hugging Face cache; whether that has all its files is not known", name)
        return cached


def _mark(folder: Path, weights: Sequence[str]) -> Path:
    """A file that says that a snapshot was downloaded with all that is read of it, and not by others, with less."""
    kind = "" if weights == _WEIGHTS else "-" + "--".join(weights).replace("/", "--").rstrip("*")
    return cache_home() / "hub" / f"{folder.parent.parent.name}-{folder.name}{kind}"


def _cached(name: str, weights: Sequence[str]) -> Path | None:
    """What the cache has, if it is whole; no network is touched."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    for pattern in weights:
        try:
            folder = Path(_download(name, (*_TEXTS, pattern), local_files_only=True))
        except (LocalEntryNotFoundError, OSError):
            continue
        has_texts = (folder / "config.json").is_file() or (folder / "modules.json").is_file()
        if has_texts and any(folder.rglob(pattern)):
            return folder
    return None


def _downloaded(name: str, weights: Sequence[str]) -> Path:
    """Downloads configuration, tokenizer and weights, the safe format of the latter where there is one."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        for pattern in weights:
            folder = Path(_download(name, (*_TEXTS, pattern)))
            if any(folder.rglob(pattern)):
                break
    except GatedRepoError:
        raise DownloadError(f"{name}: the hub wants its licence accepted first; do so, and set HF_TOKEN") from None
    except RepositoryNotFoundError:
        raise DownloadError(f"{name}: the hub has no such model, or not without a token (HF_TOKEN)") from None
    except (HfHubHTTPError, OSError, ValueError) as cause:
        raise DownloadError(
            f"{name}: not in the Hugging Face cache, and {_reason(cause)}; name a folder, or download it where there "
            f"is a network (hf download {name}) and copy the cache"
        ) from None
    with suppress(OSError):
        _mark(folder, weights).parent.mkdir(parents=True, exist_ok=True)
        _mark(folder, weights).touch()
    return folder


def _download(name: str, patterns: tuple[str, ...], local_files_only: bool = False) -> str:
    from huggingface_hub import snapshot_download

    return snapshot_download(
        name,
        allow_patterns=list(patterns),
        ignore_patterns=list(_OTHER_FORMATS) if patterns[-1] in _WEIGHTS else [],
        local_files_only=local_files_only,
    )


def _reason(cause: Exception) -> str:
    if _is_offline():
        return "HF_HUB_OFFLINE forbids to ask the hub"
    first = str(cause).strip().splitlines()
    return f"the hub cannot be reached ({first[0][:200] if first else type(cause).__name__})"


def _is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
