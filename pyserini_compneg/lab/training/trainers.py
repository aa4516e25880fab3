"""Trainers based on sentence-transformers that stop at numbers that are not finite, and resume after a kill."""

from __future__ import annotations

import json
import logging
import shutil
import zipfile
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainer, SparseEncoderTrainer
from sentence_transformers.base.trainer import BaseTrainer
from transformers import TrainerCallback, TrainerState

from pyserini_compneg.lab.training.batches import CONTRASTIVE_PAIRS, ContrastivePairSampler
from pyserini_compneg.lab.training.encoder_module import EncoderModule
from pyserini_compneg.support.errors import InputError, OutputError
from pyserini_compneg.support.existing_work import START_ANEW
from pyserini_compneg.support.progress import progress

_logger = logging.getLogger(__name__)
_NOT_LOGGED = ("runtime", "samples_per_second", "steps_per_second", "epoch")
_STATE, _TRAINER_STATE = "state.pt", "trainer_state.json"
_WHOLE = "whole"
"""A file that is written last and deleted first, so that an incomplete folder is not taken for a checkpoint."""


class _Trainer(BaseTrainer):  # type: ignore[misc]  # mypy has no types of sentence-transformers
    """Common base of the trainers of sparse and dense encoders. Checkpoints are in ``args.output_dir``."""

    def add_model_card_callback(self, *_: Any) -> None:
        """Adds no callback, because this package writes the card."""

    def get_batch_sampler(self, dataset: Any, batch_size: int, drop_last: bool, **more: Any) -> Any:
        if dataset.info.description == CONTRASTIVE_PAIRS:
            return ContrastivePairSampler(dataset, batch_size, drop_last, **more)
        return super().get_batch_sampler(dataset, batch_size, drop_last, **more)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *arguments: Any, **more: Any) -> Any:
        """Refuses a loss that is not a finite number."""
        first_query = inputs["query_input_ids"][0]
        loss = super().compute_loss(model, inputs, *arguments, **more)
        value = loss[0] if isinstance(loss, tuple) else loss
        if not torch.isfinite(value):
            own = next((part for part in self.model.modules() if isinstance(part, EncoderModule)), self.model)
            query = own.tokenizer.decode(first_query, skip_special_tokens=True)
            raise self._diverged(
                f"the loss of step {self.state.global_step + 1} is {value.item()}, in the batch whose first query is "
                f"{query!r:.80}"
            )
        return loss

    def restore_finished(self, checkpoint: Path) -> bool:
        """Loads the model if the training was killed after its last step. Returns False if steps are left."""
        state = TrainerState.load_from_json(str(checkpoint / _TRAINER_STATE))
        if not state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]:
            return False
        self.state = state
        self._load_from_checkpoint(str(self._best() or checkpoint))
        return True

    def evaluate(self, *arguments: Any, **more: Any) -> dict[str, float]:
        """Refuses weights that are not finite numbers."""
        self._check_weights()
        results: dict[str, float] = super().evaluate(*arguments, **more)
        self.model.train(self.is_in_train)  # the next batch is tokenized before the next step sets the mode
        return results

    def _check_weights(self) -> None:
        if not all(torch.isfinite(weight).all() for weight in self.model.parameters()):
            raise self._diverged(f"the model has weights that are not finite after step {self.state.global_step}")

    def _diverged(self, fault: str) -> InputError:
        checkpoint = last_checkpoint(Path(self.args.output_dir))
        good = f"the last good checkpoint is {checkpoint}" if checkpoint else "there is no checkpoint yet"
        return InputError(fault, remedy=f"{good}; lower training.learning_rate")

    def _best(self) -> Path | None:
        best = Path(self.args.output_dir, f"checkpoint-{self.state.best_global_step}")
        return best if best.is_dir() else None

    def _save_checkpoint(self, *arguments: Any, **more: Any) -> None:
        folder = Path(self.args.output_dir, f"checkpoint-{self.state.global_step}")
        self._check_weights()
        try:
            super()._save_checkpoint(*arguments, **more)
            (folder / _WHOLE).touch()
        except (OSError, RuntimeError) as cause:  # torch reports a full disk as a RuntimeError
            reason = (str(cause).strip().splitlines() or ["unknown"])[0][:200]
            remedy = "free some space, and continue with --resume"
            raise OutputError(f"cannot be written: {reason}", where=folder, remedy=remedy) from None
        for former in folder.parent.glob(
            "checkpoint-*"
        ):  # after the new checkpoint is complete; the mark is deleted first
            if former not in (folder, self._best()):
                (former / _WHOLE).unlink(missing_ok=True)
                shutil.rmtree(former, ignore_errors=True)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(output_dir or self.args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.model.state_dict(), folder / _STATE)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        state = torch.load(Path(checkpoint_path, _STATE), map_location="cpu", weights_only=True)
        try:
            self.model.load_state_dict(state)
        except RuntimeError as cause:
            line = str(cause).strip().splitlines()[-1].strip()
            remedy = f"give the former model.base, or {START_ANEW}"
            raise InputError(f"is of another model ({line[:120]})", where=checkpoint_path, remedy=remedy) from None

    def _load_best_model(self) -> None:
        self._load_from_checkpoint(self.state.best_model_checkpoint)


class SparseTrainer(_Trainer, SparseEncoderTrainer):  # type: ignore[misc]
    """Trains a SparseEncoder."""


class DenseTrainer(_Trainer, SentenceTransformerTrainer):  # type: ignore[misc]
    """Trains a bi-encoder."""


class Reporting(TrainerCallback):  # type: ignore[misc]  # mypy has no types of transformers
    """Shows a progress bar or log lines on standard error, and evaluates after the last step.

    The callbacks of transformers print to standard output, and evaluate only at multiples of ``eval_steps``.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._bar = progress(None, state.max_steps, " steps", "training", state.global_step, summary=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._bar.update(1)
        if state.global_step >= state.max_steps and args.eval_strategy != "no":
            control.should_evaluate = True

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any) -> None:
        values = {name.removeprefix("eval_"): value for name, value in metrics.items()}
        shown = (f"{name} {value:.4g}" for name, value in values.items() if name not in _NOT_LOGGED)
        _logger.info("step %d of %d: %s", state.global_step, state.max_steps, ", ".join(shown))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._bar.close()


def check_checkpoint(folder: Path) -> None:
    """Reads all files of a checkpoint with their checksums. Refuses damaged files."""
    files = [folder / _STATE, *sorted(folder.glob("*.pt*"))]
    try:
        json.loads((folder / _TRAINER_STATE).read_text(encoding="utf-8"))
        fault = next((f"checksum of {file.name}" for file in files if zipfile.ZipFile(file).testzip()), None)
    except (OSError, ValueError, zipfile.BadZipFile) as cause:
        fault = str(cause)
    if fault:
        remedy = "delete this folder, and continue with --resume"
        raise InputError(f"is damaged ({fault[:120]})", where=folder, remedy=remedy)


def last_checkpoint(folder: Path) -> Path | None:
    """The latest complete checkpoint, or None."""
    whole = [mark.parent for mark in folder.glob(f"checkpoint-*/{_WHOLE}")]
    return max(whole, key=lambda checkpoint: int(checkpoint.name.rsplit("-", 1)[1]), default=None)
