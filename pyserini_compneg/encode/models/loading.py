"""What transformers loads of a checkpoint. Code that a checkpoint brings is neither run nor asked about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyserini_compneg.support.errors import CompNegError, EncodingError, in_one_line, install_hint


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences the reports of transformers; faults are reported by this package."""
    from transformers.utils import logging as reports

    reports.disable_progress_bar()
    before = reports.get_verbosity()
    reports.set_verbosity_error()
    try:
        yield
    finally:
        reports.set_verbosity(before)


def load_masked_lm(
    folder: Path, failed: str, error: type[CompNegError] = EncodingError, dropout: float | None = None, **options: Any
) -> tuple[Any, list[str]]:
    """A masked language model with weights of 32 bits, and the names of the weights that the checkpoint lacks.

    Args:
        folder: Its folder.
        failed: The start of the message if it cannot be loaded.
        error: The class of that error.
        dropout: The dropout, instead of the checkpoint's.
        **options: More arguments of ``from_pretrained``.

    Raises:
        CompNegError: Of the class ``error``.
    """
    try:
        from transformers import AutoConfig, AutoModelForMaskedLM
    except ImportError:
        raise EncodingError(f"checkpoints need transformers; {install_hint('torch')}") from None
    with quiet_transformers(), in_one_line(error, failed):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        for key, value in config.to_dict().items():
            if dropout is not None and "dropout" in key and type(value) in (int, float):
                setattr(config, key, dropout)
        model, report = AutoModelForMaskedLM.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            dtype="float32",
            **options,
        )
    return model, sorted(report["missing_keys"])


def load_tokenizer(folder: Path, failed: str, error: type[CompNegError] = EncodingError) -> Any:
    """The tokenizer that transformers makes of a folder; the arguments are those of :func:`load_masked_lm`."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise EncodingError(f"{folder}: without tokenizer.json, its tokenizer needs transformers") from None
    with in_one_line(error, failed):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
