"""A training from its configuration to a folder that ``--encoder`` takes."""

from __future__ import annotations

import json
import logging
import os
import shutil
from dataclasses import asdict
from pathlib import Path

from pyserini_compneg.errors import OutputError, TrainingError
from pyserini_compneg.train.config import TrainConfig
from pyserini_compneg.train.examples import read_examples

CONFIG_FILE = "training.json"
_CHECKPOINTS = "checkpoints"
_logger = logging.getLogger(__name__)


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
    if output.exists() and not overwrite:
        raise OutputError(f"{output}: exists already; choose another --output, or replace it with --overwrite")
    examples = [read_examples(source, config.training.seed + number) for number, source in enumerate(config.data)]
    _prepare(place, config, resume)
    from pyserini_compneg.train.run import run_training
    from pyserini_compneg.train.trained_folder import write_trained

    trained = run_training(config, examples, place / _CHECKPOINTS)
    try:
        write_trained(place / "model", config, trained)
        if output.exists():
            shutil.rmtree(output)
        os.replace(place / "model", output)
    except OSError as cause:
        reason = (cause.strerror or str(cause)).lower()
        raise OutputError(f"{output}: cannot be written: {reason}; free some space, and go on with --resume") from None
    shutil.rmtree(place)
    return trained.results


def _prepare(place: Path, config: TrainConfig, resume: bool) -> None:
    """Makes the folder of what is unfinished, or checks that it is of the same training."""
    settings = json.loads(json.dumps(asdict(config)))
    file = place / CONFIG_FILE
    if resume and file.is_file():
        former = json.loads(file.read_text(encoding="utf-8"))
        if changed := [name for name in settings if settings[name] != former.get(name)]:
            raise TrainingError(
                f"{place}: was begun with other settings ({', '.join(changed)}); take them back, or start anew without "
                "--resume"
            )
        return
    try:
        if place.exists():
            shutil.rmtree(place)
        place.mkdir(parents=True)
        file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    except OSError as cause:
        raise OutputError(f"{place}: cannot be written: {(cause.strerror or str(cause)).lower()}") from None
