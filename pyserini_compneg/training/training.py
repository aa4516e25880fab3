"""A training from its settings to a folder that ``--encoder`` takes."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from pyserini_compneg.errors import CompNegError, OutputError, TrainingError
from pyserini_compneg.files import reason_of
from pyserini_compneg.training.config import TrainConfig
from pyserini_compneg.training.examples import read_examples
from pyserini_compneg.training.output_folder import check_output, prepare_unfinished

_PACKAGES = ("torch", "transformers", "sentence_transformers", "accelerate", "datasets", "matplotlib")


def train(config: TrainConfig, output: str | Path, resume: bool = False, overwrite: bool = False) -> dict[str, float]:
    """Trains a model. Its folder appears when it is complete; until then checkpoints are in ``OUTPUT.training``.

    Args:
        config: What to train.
        output: The folder to make.
        resume: Continue a training with the same settings that was killed, if there is one.
        overwrite: Replace the folder of a former model.

    Returns:
        The results on dev of the model that was kept; empty without dev.

    Raises:
        CompNegError: Data or a checkpoint that cannot be used, a loss that is not a finite number, or a folder that
            cannot be written.
    """
    output = Path(os.path.realpath(output))
    unfinished = output.with_name(f"{output.name}.training")
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise TrainingError(f"training needs {', '.join(missing)}; pip install 'pyserini_compneg[train]'")
    check_output(output, overwrite)
    examples = [read_examples(source, config.training.seed + number) for number, source in enumerate(config.data)]
    prepare_unfinished(unfinished, config, examples, resume, overwrite)
    from safetensors import SafetensorError

    from pyserini_compneg.training.fine_tuning import fine_tune
    from pyserini_compneg.training.trained_folder import write_trained

    checkpoints = unfinished / "checkpoints"
    try:
        trained = fine_tune(config, examples, checkpoints)
    except CompNegError:
        if not any(checkpoints.glob("*/*")):  # no step can be resumed
            shutil.rmtree(unfinished)
        raise
    try:
        write_trained(unfinished / "model", config, trained)
        if output.exists():
            shutil.rmtree(output)
        os.replace(unfinished / "model", output)
    except (OSError, SafetensorError) as cause:
        raise OutputError(
            f"{output}: cannot be written: {reason_of(cause)}; free some space, and continue with --resume"
        ) from None
    shutil.rmtree(unfinished)
    return trained.results
