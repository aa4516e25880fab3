"""The two folders of a training: OUTPUT, which has the finished model, and OUTPUT.training, which has checkpoints."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.errors import OutputError, TrainingError
from pyserini_compneg.files import reason_of
from pyserini_compneg.training.config import TrainConfig
from pyserini_compneg.training.examples import Example

LOG_FILE = "training_log.json"
"""In the folder of a trained model: the settings, the results, and what was logged."""

_SETTINGS_FILE = "training.json"


def check_output(output: Path, overwrite: bool) -> None:
    """Makes sure that only a trained model is replaced, and only on request.

    Raises:
        OutputError: The folder exists and may not be replaced.
    """
    if not output.exists():
        return
    if not overwrite:
        raise OutputError(f"{output}: exists already; choose another --output, or replace it with --overwrite")
    if not (output / LOG_FILE).is_file():
        raise OutputError(f"{output}: is no model that was trained here (no {LOG_FILE}); choose another --output")


def prepare_unfinished(
    folder: Path, config: TrainConfig, examples: Sequence[Sequence[Example]], resume: bool, overwrite: bool
) -> None:
    """Makes the folder of the unfinished training, or checks that it belongs to this training.

    Args:
        folder: The folder.
        config: What to train.
        examples: The examples of each source.
        resume: Continue the training of the folder, if there is one.
        overwrite: Delete a folder that exists.

    Raises:
        TrainingError: The folder has a training with other settings.
        OutputError: The folder exists and may not be deleted, or it cannot be written.
    """
    settings = config.model_dump(mode="json")
    settings["texts of data"] = hashlib.sha256(repr(examples).encode()).hexdigest()
    file = folder / _SETTINGS_FILE
    if resume and file.is_file():
        former = _former_settings(file)
        if changed := [name for name in settings if settings[name] != former.get(name)]:
            raise TrainingError(
                f"{folder}: was started with other settings ({', '.join(changed)}); restore them, or start anew with "
                "--overwrite and without --resume"
            )
        return
    if folder.exists() and not overwrite:
        raise OutputError(
            f"{folder}: has an unfinished training; continue it with --resume, or delete it with --overwrite"
        )
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    except OSError as cause:
        raise OutputError(f"{folder}: cannot be written: {reason_of(cause)}") from None


def _former_settings(file: Path) -> dict[str, object]:
    try:
        former = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        former = None
    if not isinstance(former, dict):
        raise TrainingError(f"{file}: is damaged; start anew with --overwrite and without --resume")
    return former
