"""A training from its configuration to a folder that ``--encoder`` takes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from pyserini_compneg.errors import CompNegError, OutputError, TrainingError
from pyserini_compneg.train.config import TrainConfig
from pyserini_compneg.train.examples import Example, read_examples

LOG_FILE = "training_log.json"
"""In the folder of a trained model: the configuration, the results, and what was logged."""

_PACKAGES = ("torch", "transformers", "sentence_transformers", "accelerate", "datasets", "matplotlib")
_CONFIG_FILE = "training.json"
_CHECKPOINTS = "checkpoints"


def train(config: TrainConfig, output: str | Path, resume: bool = False, overwrite: bool = False) -> dict[str, float]:
    """Trains a model; its folder appears complete, under its name, or not at all.

    Checkpoints are kept in ``OUTPUT.training`` until then.

    Args:
        config: What to train.
        output: The folder to make.
        resume: Go on with a training of the same configuration that was killed, if there is one.
        overwrite: Replace a folder that is there.

    Returns:
        The results on dev of the model that was kept; empty without dev.

    Raises:
        CompNegError: Data or a checkpoint that cannot be used, a loss that is no number, or a place that cannot be
            written.
    """
    output = Path(os.path.realpath(output))
    place = output.with_name(f"{output.name}.training")
    _check_packages()
    _check_output(output, overwrite)
    examples = [read_examples(source, config.training.seed + number) for number, source in enumerate(config.data)]
    _prepare(place, config, examples, resume, overwrite)
    from safetensors import SafetensorError

    from pyserini_compneg.train.run import run_training
    from pyserini_compneg.train.trained_folder import write_trained

    try:
        trained = run_training(config, examples, place / _CHECKPOINTS)
    except CompNegError:
        if not any(place.glob(f"{_CHECKPOINTS}/*/*")):  # nothing was trained that could be gone on with
            shutil.rmtree(place)
        raise
    try:
        write_trained(place / "model", config, trained)
        if output.exists():
            shutil.rmtree(output)
        os.replace(place / "model", output)
    except (OSError, SafetensorError) as cause:
        reason = (getattr(cause, "strerror", None) or str(cause)).lower()
        raise OutputError(f"{output}: cannot be written: {reason}; free some space, and go on with --resume") from None
    shutil.rmtree(place)
    return trained.results


def _check_packages() -> None:
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise TrainingError(f"training needs {', '.join(missing)}; pip install 'pyserini_compneg[train]'")


def _check_output(output: Path, overwrite: bool) -> None:
    """Makes sure that nothing is replaced but a model, and that only if asked."""
    if not output.exists():
        return
    if not overwrite:
        raise OutputError(f"{output}: exists already; choose another --output, or replace it with --overwrite")
    if not (output / LOG_FILE).is_file():
        raise OutputError(f"{output}: is no model that was trained here (no {LOG_FILE}); choose another --output")


def _prepare(
    place: Path, config: TrainConfig, examples: Sequence[Sequence[Example]], resume: bool, overwrite: bool
) -> None:
    """Makes the folder of what is unfinished, or checks that it is of the same training."""
    settings = json.loads(json.dumps(asdict(config)))
    settings["texts of data"] = hashlib.sha256(repr(examples).encode()).hexdigest()
    file = place / _CONFIG_FILE
    if resume and file.is_file():
        former = _former_settings(file)
        if changed := [name for name in settings if settings[name] != former.get(name)]:
            raise TrainingError(
                f"{place}: was begun with other settings ({', '.join(changed)}); take them back, or start anew with "
                "--overwrite alone"
            )
        return
    if place.exists() and not overwrite:
        raise OutputError(f"{place}: has an unfinished training; go on with --resume, or start anew with --overwrite")
    try:
        if place.exists():
            shutil.rmtree(place)
        place.mkdir(parents=True)
        file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    except OSError as cause:
        raise OutputError(f"{place}: cannot be written: {(cause.strerror or str(cause)).lower()}") from None


def _former_settings(file: Path) -> dict[str, object]:
    try:
        former = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        former = None
    if not isinstance(former, dict):
        raise TrainingError(f"{file}: is damaged; start anew with --overwrite alone")
    return former
