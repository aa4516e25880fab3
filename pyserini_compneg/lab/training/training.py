"""Runs a training from its settings to a folder for ``--encoder`` or ``--read``."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyserini_compneg.encode.models import model_folder
from pyserini_compneg.lab.training.config import LOG_FILE, AnyConfig, ReaderTrainConfig
from pyserini_compneg.lab.training.examples import read_examples
from pyserini_compneg.lab.training.judged_requests import read_judged, refuse_common
from pyserini_compneg.lab.training.tagged_requests import read_names, read_requests
from pyserini_compneg.support.errors import CompNegError, InputError, OutputError, install_hint
from pyserini_compneg.support.existing_work import (
    Existing,
    ExistingWork,
    continues,
    existing_option,
    exists_already,
    read_record,
)
from pyserini_compneg.support.files import content_digest
from pyserini_compneg.support.options import check_options
from pyserini_compneg.support.staging import (
    locked,
    output_errors,
    parent_folders,
    remove_left,
    replace_folder,
    staged_folder,
)

_SETTINGS_FILE = "training.json"
_CHECKPOINTS = "checkpoints/*/*"
_PACKAGES = ("torch", "transformers", "sentence_transformers", "accelerate", "datasets", "matplotlib")
_READER_PACKAGES = ("torch", "transformers", "tokenizers", "onnx", "onnxscript", "onnxruntime")


@dataclass(frozen=True, slots=True)
class _TrainingWork(ExistingWork):
    existing: Existing = existing_option()

    def __post_init__(self) -> None:
        check_options(self)


def train(config: AnyConfig, output: str | Path, existing: Existing = "refuse") -> dict[str, float]:
    """Trains a model. The complete folder appears at the end; until then checkpoints are in ``OUTPUT.training``.

    Args:
        config: The settings.
        output: The folder to create.
        existing: How to treat the folder of a former model, and an unfinished training. ``refuse`` raises an
            OutputError. ``resume`` continues the training, and raises an OutputError if something has changed since.
            ``overwrite`` replaces the folder and discards the training. ``resume or overwrite`` replaces the folder
            and continues the training.

    Returns:
        The results of the kept model on dev; empty without dev. For a reader, the shares of right readings.

    Raises:
        ArgumentError: ``existing`` is none of these.
        CompNegError: Data or a checkpoint cannot be used, a loss is not a finite number, or a folder cannot be written.
    """
    work, output = _TrainingWork(existing), Path(os.path.realpath(output))
    check_packages(_READER_PACKAGES if isinstance(config, ReaderTrainConfig) else _PACKAGES)
    check_output(output, work.may_overwrite, LOG_FILE)
    _check_models(config)
    examples = _examples(config)
    settings = config.model_dump(mode="json")
    settings["texts of data"] = content_digest(repr(examples))
    return run_training(output, settings, existing, partial(_fit, config, examples))


def run_training(
    output: Path, settings: Mapping[str, Any], existing: Existing, fit: Callable[[Path], dict[str, float]]
) -> dict[str, float]:
    """Runs a training in the folder ``OUTPUT.training``, which ``fit`` gets. Its folder ``model`` becomes the output.

    An unfinished training is continued if its settings were the same. ``fit`` writes checkpoints as
    ``checkpoints/KIND/FILE``; without one, a training that failed or was interrupted leaves nothing.
    """
    unfinished = output.with_name(f"{output.name}.training")
    with ExitStack() as stack:
        with output_errors(unfinished):
            stack.enter_context(parent_folders(unfinished))
            busy, remedy = "another process trains here", "wait for it, or choose another --output"
            stack.enter_context(locked(unfinished, busy, remedy))
            _prepare_unfinished(output, unfinished, settings, existing)
        return _finish(fit, unfinished, output)


def check_packages(packages: Sequence[str]) -> None:
    if missing := [name for name in packages if find_spec(name) is None]:
        raise InputError(f"training needs {', '.join(missing)}; {install_hint('train')}")


def _finish(fit: Callable[[Path], dict[str, float]], unfinished: Path, output: Path) -> dict[str, float]:
    from safetensors import SafetensorError

    with output_errors(output, "free some space, and continue with --resume", (OSError, SafetensorError)):
        try:
            results = fit(unfinished)
        except (CompNegError, KeyboardInterrupt):
            if not any(unfinished.glob(_CHECKPOINTS)):  # there is no checkpoint to resume from
                shutil.rmtree(unfinished)
            raise
        mode = stat.S_IMODE((unfinished / _SETTINGS_FILE).stat().st_mode)
        for file in filter(Path.is_file, (unfinished / "model").rglob("*")):  # safetensors hides its files from others
            file.chmod(mode)
        replace_folder(unfinished / "model", output)
    shutil.rmtree(unfinished)
    return results


def _examples(config: AnyConfig) -> Sequence[Any]:
    if isinstance(config, ReaderTrainConfig):
        requests = [request for path in config.reader.requests for request in read_requests(path)]
        judged = [request for path in config.reader.judged for request in read_judged(path)]
        refuse_common(requests, judged)
        return requests, judged, [name for path in config.reader.names for name in read_names(path)]
    return [read_examples(source, config.training.seed + number) for number, source in enumerate(config.data)]


def _fit(config: AnyConfig, examples: Sequence[Any], unfinished: Path) -> dict[str, float]:
    if isinstance(config, ReaderTrainConfig):
        from pyserini_compneg.lab.training.reader_training import fit_reader

        requests, judged, names = examples
        return fit_reader(config, requests, judged, names, unfinished)
    from pyserini_compneg.lab.training.fine_tuning import fine_tune
    from pyserini_compneg.lab.training.trained_folder import write_trained

    trained = fine_tune(config, examples, unfinished / "checkpoints")
    return write_trained(unfinished / "model", config, trained, examples)


def check_output(output: Path, overwrite: bool, mark: str) -> None:
    """Checks that only a trained model, which has a file ``mark``, is replaced, and only on request."""
    if not output.exists():
        return
    if not overwrite:
        raise exists_already(output)
    if not (output / mark).is_file():
        fault = f"is not a model that was trained here (no {mark})"
        raise OutputError(fault, where=output, remedy="choose another --output")


def _check_models(config: AnyConfig) -> None:
    """Reports a missing or unsuitable model before the data are read, which takes a while."""
    from pyserini_compneg.lab.training.bases import neural_side

    if isinstance(config, ReaderTrainConfig):
        model_folder(config.reader.base)
    elif config.model.is_dense:
        model_folder(config.model.base)
    else:
        neural_side(model_folder(config.model.base), config.model.base, "document")


def _prepare_unfinished(output: Path, folder: Path, settings: Mapping[str, Any], existing: Existing) -> None:
    """Makes the folder of the unfinished training, or checks that an existing one belongs to this training."""
    remove_left(folder)
    former = (read_record(folder / _SETTINGS_FILE) or {}) if folder.exists() else None
    if continues(output, former, settings, existing):
        return
    with staged_folder(folder, replace=True) as made:  # so that it never lacks its settings
        (made / _SETTINGS_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
