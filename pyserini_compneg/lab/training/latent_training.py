"""Runs the training of a latent model, from its settings to a folder for ``--encoder latent:FOLDER``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from pyserini_compneg.documents import collection_files, fingerprint, say_formats
from pyserini_compneg.encode.models import LATENT_FILE, LAYERS_OF_TOKENS, model_folder, token_network
from pyserini_compneg.lab.latent_settings import LatentSettings
from pyserini_compneg.lab.training.training import check_output, check_packages, run_training
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.staging import keep_inputs

_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors")
_SUFFIXES = (".json", ".safetensors", ".bin", ".txt", ".model")


def train_latent(
    base: str, texts: Sequence[str | Path], output: str | Path, settings: LatentSettings | None = None
) -> dict[str, float]:
    """Trains a latent model. The complete folder appears at the end; until then checkpoints are in ``OUTPUT.training``.

    Args:
        base: The model whose vectors of tokens are learned from: a dense model, a late-interaction model or a BERT-like
            encoder, as a folder or as a name of the Hugging Face hub.
        texts: Collections, as :func:`~pyserini_compneg.encode.encode_collection` takes them.
        output: The folder to create.
        settings: The settings; None for the defaults.

    Returns:
        The number of ``tokens``; the share of the variance of their vectors that the latents leave ``unexplained``; the
        number of ``dead`` latents, which no token lights and which are left out; the mean number of ``latents a text``.

    Raises:
        ArgumentError: There are no ``texts``, or a single path instead of a list; or there are more ``latents`` than
            the memory has room for.
        InputError: A document is bad, or no text has a token to learn from.
        EncodingError: The base cannot be used.
        DownloadError: The base cannot be downloaded from the hub.
        OutputError: The folder exists, unfinished work exists and ``existing`` is ``refuse``, unfinished work has other
            settings, or the folder cannot be written.
    """
    settings, output = settings or LatentSettings(), Path(os.path.realpath(output))
    paths = checked_list("texts", texts)
    check_packages(_PACKAGES)
    check_output(output, settings.may_overwrite, LATENT_FILE)
    folder = model_folder(base, LAYERS_OF_TOKENS)
    keep_inputs(output, folder, *paths)
    network = token_network(folder, base)
    files = [file for path in paths for file in collection_files(path, settings.collection_format)]
    say_formats(files)
    from pyserini_compneg.lab.training.latent_model import fit_latent

    plan = {name: value for name, value in asdict(settings).items() if name != "existing"}
    plan |= {"base": base, "files of base": _status(folder), "texts": fingerprint(files)}
    named = ", ".join(map(str, paths))
    fit = partial(fit_latent, base, network, files, settings, named)
    return run_training(output, plan, settings.existing, fit)


def _status(folder: Path) -> list[tuple[str, int]]:
    """The names and sizes of the files of a model."""
    files = sorted(file for file in folder.rglob("*.*") if file.suffix in _SUFFIXES and file.is_file())
    return [(file.relative_to(folder).as_posix(), file.stat().st_size) for file in files]
