"""Exports checkpoints to ONNX once, compares each export with torch, and keeps it in the user's cache."""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_compneg.encode.models.batching import SparseModel, encode_tokens
from pyserini_compneg.encode.models.cache import (
    content_hash,
    copied_files,
    model_hash,
    tokenizer_hash,
    transformers_major,
    transformers_version,
)
from pyserini_compneg.encode.models.checkpoint import (
    LONG,
    MODEL_FILE,
    REPORT_FILE,
    WEIGHTS,
    Checkpoint,
    NeuralSide,
    StaticSide,
)
from pyserini_compneg.encode.models.configuration import optional_json
from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.encode.models.latents import LatentHead
from pyserini_compneg.encode.models.loading import check_packages, missing_packages
from pyserini_compneg.encode.models.onnx_model import OnnxModel
from pyserini_compneg.encode.models.tokenizer import TOKENIZER_FILE, TextTokenizer, check_direct
from pyserini_compneg.support.errors import EncodingError, OutputError
from pyserini_compneg.support.files import cache_home
from pyserini_compneg.support.staging import locked, output_errors, parent_folders, staged_folder
from pyserini_compneg.support.vectors import dot, norm

TOLERANCE = 1e-4
"""How much a weight of an fp32 export may differ from torch, relative to the larger of 1 and the weight."""

LEAST_COSINE = {"int8": 0.95, "fp16": 0.999}
"""The smallest mean cosine between vectors of a lower precision and torch's vectors, over the samples."""

_OTHERWISE = {"fp32": "choose --backend torch", "int8": "choose --precision fp32", "fp16": "choose --precision fp32"}
"""What works in place of an export that cannot be made."""

_LEAD = (
    "The film follows a retired spy who is called back to Vienna, where an old friend has vanished with a list of "
    "names. Shot in black and white on the streets of the city, it was praised for its pace and its music. "
)
SAMPLES = (
    "birds of Colombia",
    "spy films but not comedies",
    "Which novels of 1999 were set in Japan, and who wrote them?",
    "a",
    "non-European monarchs (1701-1714); élite naïveté, Ångström, 東京, αβγ, 😀",
    "x" * 300,
    "[CLS] [MASK] odd \t tokens \n and   spaces ...!?",
    _LEAD,
    _LEAD * 20,
)
"""Texts from one token to more than most models read, so that the comparison covers padding, truncation and blocks."""

_RELEASE = "-transformers"
"""In the name of a folder in the cache, before the major release of transformers, which decides how texts are split."""

_logger = logging.getLogger(__name__)


def exported_folder(side: NeuralSide, precision: str = "fp32") -> Path:
    """The folder for the export of a model, see :func:`_of_release`. It may not exist yet."""
    graph = replace(side, prompt="", lowercase=False, own_terms=None, special_tokens=True)  # no parts of the network
    blocks = "-blocks" if side.longest > LONG else ""  # older exports hold the attention of all pairs of tokens at once
    return _of_release(cache_home() / "models" / f"{model_hash(graph)}-{precision}{blocks}")


def found_export(side: NeuralSide, precision: str = "fp32") -> Path | None:
    """The export that is used without making one; None if one must be made.

    It is of another major release of transformers if the packages are missing that would make it again.
    """
    if side.exported_in:
        return side.folder
    folder = exported_folder(side, precision)
    if _is_whole(folder):
        return folder
    others = filter(_is_whole, _of_releases(folder.with_name(folder.name.partition(_RELEASE)[0])))
    return next(others, None) if missing_packages("export") else None


def export_model(side: NeuralSide, precision: str = "fp32", fresh: bool = False) -> Path:
    """The folder of the export of a model. The export is made if it is missing or must be ``fresh``."""
    if has := side.exported_in:
        if fresh or precision != has:
            said = f"comes exported in {has}, without its weights, so no other export is made"
            remedy = "name the model from which export --output made it"
            raise EncodingError(said, where=side.folder, remedy=remedy)
        return side.folder
    folder = exported_folder(side, precision)
    found = None if fresh else found_export(side, precision)
    if found:
        if found != folder:
            said = "%s: made by another release of transformers, and used as it is: %s is missing to make it again"
            _logger.warning(said, found, " and ".join(missing_packages("export")))
        return found
    check_packages("export")
    with output_errors(folder.parent, "name another place in COMPNEG_CACHE"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder, "another process exports it", waits=True):
            if fresh or not _is_whole(folder):
                _make(side, precision, folder)
    return folder


def static_tokenizer(side: StaticSide, max_length: int | None = None, kept: Path | None = None) -> TextTokenizer:
    """The tokenizer of a side without a network, as transformers builds it, so that both sides follow one rule.

    An index keeps it, in the file ``kept``, so that a search needs no transformers and follows the release that split
    the documents. Without an index, transformers is needed for the first use only: the tokenizer is kept beside the
    exports, for each major release of transformers.
    """
    folder = _of_release(cache_home() / "tokenizers" / tokenizer_hash(side))
    build = partial(
        TextTokenizer,
        max_length=max_length or side.max_length,
        special_tokens=False,
        prompt=side.prompt,
        lowercase=side.lowercase,
        arguments=side.arguments,
    )
    if kept is not None:
        return build(kept)
    if (folder / TOKENIZER_FILE).is_file():
        with suppress(EncodingError):  # a damaged one is made again
            return build(folder)
    if (side.folder / REPORT_FILE).is_file():  # beside an export, whose tokenizer is one that was written here
        return build(side.folder)
    if (side.folder / TOKENIZER_FILE).is_file() and transformers_major() is None:
        check_direct(side.folder, side.arguments)
        return build(side.folder)
    tokenizer = build(side.folder, as_transformers=True)
    with suppress(OSError):  # without a writable cache, only time is lost
        folder.parent.mkdir(parents=True, exist_ok=True)
        with staged_folder(folder, replace=True) as made:
            tokenizer.save(made / TOKENIZER_FILE)
    return tokenizer


def save_exported(checkpoint: Checkpoint, source: Path, precision: str, output: Path, overwrite: bool = False) -> None:
    """Writes a folder like the checkpoint's, with exports in place of weights. It can be used as a checkpoint.

    Weights of other formats, and hidden files, are left out. The report in the folder names the files that must be
    copied with it, see :func:`~pyserini_compneg.encode.models.cache.check_copy`. With ``overwrite``, exports are made
    again, and an older folder of exports is replaced.
    """
    if output.exists() and not (overwrite and (output / REPORT_FILE).is_file()):
        what = "exists already, and is no folder of an export" if overwrite else "exists already"
        raise OutputError(what, where=output, remedy="name another folder")
    source = source.resolve()
    if output.resolve().is_relative_to(source):
        raise OutputError(f"lies in the model's folder, {source}", where=output, remedy="name another folder")
    sides = [side for side in dict.fromkeys(checkpoint[1:]) if isinstance(side, NeuralSide)]
    static = [side for side in checkpoint[1:] if isinstance(side, StaticSide)]
    static += [side.own_terms for side in sides if side.own_terms]
    exports = [export_model(side, precision, overwrite) for side in sides]
    places = [side.folder.resolve().relative_to(source) for side in sides]
    weights = {file for place in places for pattern in WEIGHTS for file in (source / place).glob(pattern)}
    kept = [path for path in source.rglob("*") if path not in weights and path.is_file()]
    kept = [path for path in kept if not any(part.startswith(".") for part in path.relative_to(source).parts)]
    with output_errors(output), parent_folders(output), staged_folder(output, replace=overwrite) as made:
        for file in kept:
            target = made / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(file, target)
        for place, export in zip(places, exports, strict=True):
            for name in (MODEL_FILE, TOKENIZER_FILE):
                shutil.copyfile(export / name, made / place / name)
            report = {key: value for key, value in read_report(export).items() if key != "model"}  # the model is a path
            _write_report(made / place, report)
        for side in static:
            place = side.folder.resolve().relative_to(source)
            if place not in places:
                static_tokenizer(side).save(made / place / TOKENIZER_FILE)
                _write_report(made / place, {"transformers": transformers_version()})
        _write_report(made, {**optional_json(made / REPORT_FILE), **copied_files(made)})


def _write_report(folder: Path, report: Mapping[str, Any]) -> None:
    (folder / REPORT_FILE).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _copy(file: Path, target: Path) -> None:
    """Copies a file of a model. Classes of its own are left out, since an export needs none."""
    values = optional_json(file) if file.name in ("config.json", "tokenizer_config.json") else {}
    if "auto_map" not in values:
        shutil.copyfile(file, target)
        return
    kept = {key: value for key, value in values.items() if key != "auto_map"}
    target.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def read_report(folder: Path) -> dict[str, Any]:
    """The report of an export: ``width``, the number of its columns, ``unpadded``, and its differences from torch."""
    try:
        report: dict[str, Any] = json.loads((folder / REPORT_FILE).read_text(encoding="utf-8"))
        whole = type(report["width"]) is int and report["hash"] == _hash(folder, MODEL_FILE)
        whole &= report.get("tokenizer_hash") in (None, _hash(folder, TOKENIZER_FILE))  # None in older exports
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        again = "delete the folder, and it is made" if folder.is_relative_to(cache_home()) else "copy the model"
        raise EncodingError("the export is damaged", where=folder, remedy=f"{again} again")
    return report


def _hash(folder: Path, name: str) -> str:
    return content_hash([folder / name], {})


def _is_whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (MODEL_FILE, TOKENIZER_FILE, REPORT_FILE))


def _of_release(folder: Path) -> Path:
    """``folder`` with the major release of transformers in its name; without transformers the newest of any release."""
    if major := transformers_major():
        return folder.with_name(f"{folder.name}{_RELEASE}{major}")
    return next(_of_releases(folder), folder)


def _of_releases(folder: Path) -> Iterator[Path]:
    """The folders of :func:`_of_release` that have a tokenizer, the newest first. Version 1 had ``folder`` itself."""
    files = [*folder.parent.glob(f"{folder.name}{_RELEASE}*/{TOKENIZER_FILE}"), *folder.glob(TOKENIZER_FILE)]
    return (file.parent for file in sorted(files, key=os.path.getmtime, reverse=True))


def _make(side: NeuralSide, precision: str, folder: Path) -> None:
    """Exports a model into a temporary folder, which is renamed to its final name if the vectors match torch's."""
    from pyserini_compneg.encode.networks import TorchModel, write_graph

    original = TorchModel(side)
    tokenizer = TextTokenizer(side.folder, side.max_length, as_transformers=True, arguments=side.arguments)
    if isinstance(side.head, LatentHead):
        columns = side.head.terms
    else:
        tokenizer.fit(original.module.width, str(side.folder))
        columns = tokenizer.terms
    _logger.info("exporting %s to ONNX (%s), once; it is kept in %s", side.folder, precision, folder.parent)
    with staged_folder(folder, replace=True) as made:
        write_graph(original.module, precision, made / MODEL_FILE)
        tokenizer.save(made / TOKENIZER_FILE)
        try:
            export = OnnxModel(made, unpadded=original.unpadded, remedy=_OTHERWISE[precision])
            largest_difference, mean_cosine = compare(original, export, tokenizer, columns)
            check_likeness(precision, largest_difference, mean_cosine, side.head)
        except EncodingError as error:
            error.remedy = error.remedy or _OTHERWISE[precision]
            raise error.without(made / MODEL_FILE).at(side.folder) from None
        report = {
            "model": str(side.folder),
            "precision": precision,
            "width": original.module.width,
            "unpadded": original.unpadded,
            "bytes": (made / MODEL_FILE).stat().st_size,
            "hash": _hash(made, MODEL_FILE),
            "tokenizer_hash": _hash(made, TOKENIZER_FILE),
            "transformers": transformers_version(),
            "largest_difference": largest_difference,
            "mean_cosine": mean_cosine,
        }
        _write_report(made, report)


def check_likeness(precision: str, largest_difference: float, mean_cosine: float, head: Head | LatentHead) -> None:
    """Refuses an export whose vectors differ too much from torch's vectors.

    Of two latents that a token lights nearly alike, another one may be the last of the active ones, so the largest
    difference says nothing about a latent model.
    """
    if isinstance(head, LatentHead) and precision == "fp32":
        least = LEAST_COSINE["fp16"]
        if not mean_cosine >= least:
            said = f"the mean cosine of the export's vectors with torch's is {mean_cosine:.4f}, less than {least:g}"
            raise EncodingError(said, remedy="choose --backend torch")
    elif precision == "fp32" and not largest_difference <= TOLERANCE:
        said = f"the export's weights differ from torch's by {largest_difference:.2g}, more than {TOLERANCE:g}"
        raise EncodingError(said, remedy="choose --backend torch")
    if precision != "fp32" and not mean_cosine >= LEAST_COSINE[precision]:
        said = f"mean cosine {mean_cosine:.3f}, at least {LEAST_COSINE[precision]:g}"
        raise EncodingError(f"{precision} changes the vectors too much ({said})", remedy="choose --precision fp32")


def compare(
    original: SparseModel, export: SparseModel, tokenizer: TextTokenizer, columns: Sequence[str]
) -> tuple[float, float]:
    """The largest difference of a weight, relative to the larger of 1 and the weight, and the mean cosine of texts."""
    ids = tokenizer(SAMPLES).ids
    pairs = list(zip(encode_tokens(original, ids, columns), encode_tokens(export, ids, columns), strict=True))
    weights = [weight for pair in pairs for vector in pair for weight in vector.values()]
    if not weights or not all(map(math.isfinite, weights)):
        raise EncodingError("its vectors of the sample texts are empty, or not finite; nothing could be compared")
    values = [(a.get(term, 0.0), b.get(term, 0.0)) for a, b in pairs for term in {**a, **b}]
    lengths = [norm(a) * norm(b) for a, b in pairs]
    cosines = [
        dot(a, b) / length if length else float(not a and not b) for (a, b), length in zip(pairs, lengths, strict=True)
    ]
    return max(abs(a - b) / max(1.0, abs(a)) for a, b in values), sum(cosines) / len(pairs)
