"""Fits a sparse autoencoder to the vectors of tokens of a dense model, and writes both as a latent model."""

from __future__ import annotations

import json
import logging
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from pyserini_compneg.documents import collection_texts
from pyserini_compneg.encode.models import (
    CONCEPTS_FILE,
    LATENT_FILE,
    LATENT_WEIGHTS,
    LatentHead,
    TokenNetwork,
    quiet_transformers,
)
from pyserini_compneg.lab.latent_settings import LatentSettings
from pyserini_compneg.lab.training.autoencoder import BATCH, Autoencoder, drawn_vectors, fit
from pyserini_compneg.lab.training.latent_names import describe
from pyserini_compneg.lab.training.token_vectors import (
    Drawn,
    TokenEncoder,
    TokenizedText,
    batches,
    draw_texts,
    write_vectors,
)
from pyserini_compneg.lab.training.trained_folder import write_card
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.processors import memory_left
from pyserini_compneg.support.progress import progress

_EPOCHS, _MOST_STEPS = 8, 2000
"""By default, each token is drawn so many times on average, in so many steps at most."""

_FURTHER = 4 / 3
"""In the training a token lights so many times ``active`` latents, of which it then lights the strongest in texts. 6 of
8 rank better than 8 of 8 (QUEST's templates have .592 and .589 on the mean), and take a third fewer bytes."""

_FEW = 20
"""With fewer tokens for each latent, there is too little to learn from."""

_MEASURED = 16_384
"""The vectors from which the usual activation is computed."""

_NUMBER, _COPIES, _LIT = 4, 10, 16
"""The bytes of a number; the sizes of an encoder that the weights of both sides, their gradients and Adam's moments
take, with the gradients of dead latents; the bytes of a latent that a vector lights."""

_VECTORS, _RECORD, _CHECKPOINT = "vectors/tokens.npy", "checkpoints/vectors/done.json", "checkpoints/last/steps.pt"
_CARD_TAGS = "transformers", "feature-extraction", "sparse-encoder, sparse-autoencoder, pyserini_compneg"
_USE = "index --collection documents.jsonl --index indexes/name --encoder latent:THIS_FOLDER"
_logger = logging.getLogger(__name__)


def fit_latent(
    base: str, network: TokenNetwork, files: Sequence[Any], settings: LatentSettings, named: str, unfinished: Path
) -> dict[str, float]:
    """Trains a latent model, writes it to the folder ``model`` of ``unfinished``, and returns its figures.

    Vectors and checkpoints are written to ``unfinished``. A later call continues from them. Errors call the texts
    ``named``.
    """
    encoder = TokenEncoder(network, base)
    _check_memory(settings, encoder.width)
    drawn = draw_texts(collection_texts(files, settings.fields), encoder, settings.tokens, settings.seed)
    if not drawn.texts:
        lacking = "has a word that the model knows, stop words aside" if drawn.among else "is there"
        raise InputError(f"nothing to learn from: no text {lacking}", where=named, remedy="name other texts")
    if drawn.tokens < _FEW * settings.latents:
        few = f"{drawn.tokens:,} tokens are few for {settings.latents:,} latents"
        _logger.warning("%s; give more texts, or a smaller number with --latents", few)
    vectors = write_vectors(encoder, drawn, unfinished / _VECTORS, unfinished / _RECORD)
    steps = settings.steps or min(_MOST_STEPS, -(-_EPOCHS * drawn.tokens // BATCH))
    torch.manual_seed(settings.seed)
    together = min(math.ceil(_FURTHER * settings.active), settings.latents)
    module = fit(vectors, settings.latents, together, steps, unfinished / _CHECKPOINT)
    sample = drawn_vectors(vectors, _MEASURED)
    weight, bias = folded(module, sample)
    names = describe(vectors, drawn.texts, weight, bias, settings.active)
    lit = [number for number, name in enumerate(names) if name]
    if not lit:
        raise InputError("no token lights a latent", where=base, remedy="give more texts")
    mean = round(max(mean_latents(encoder, drawn.documents, weight, bias, settings.active), 1.0), 2)
    head = LatentHead(len(lit), min(settings.active, len(lit)), mean, silent=tuple(encoder.silent))
    facts: dict[str, Any] = {
        "base": base,
        "texts": len(drawn.texts),
        "tokens": drawn.tokens,
        "steps": steps,
        "seed": settings.seed,
        "unexplained": round(module.unexplained(sample), 4),
        "dead": settings.latents - len(lit),
        "version": metadata.version("pyserini_compneg"),
    }
    folder = unfinished / "model"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _write_network(folder, encoder, network)
    weights = {"weight": weight[lit] @ encoder.matrix, "bias": weight[lit] @ encoder.offset + bias[lit]}
    save_file(weights, folder / LATENT_WEIGHTS)
    _write_json(folder / LATENT_FILE, asdict(head) | facts)
    _write_json(folder / CONCEPTS_FILE, [names[number] for number in lit])
    shown = {name: value for name, value in asdict(head).items() if name != "silent"}
    _write_card(folder, network, files, drawn, shown | facts)
    return {name: facts[name] for name in ("tokens", "unexplained", "dead")} | {"latents a text": head.mean_latents}


def folded(module: Autoencoder, sample: Tensor) -> tuple[Tensor, Tensor]:
    """The weight and the bias for vectors as they are. The median activation of a sample becomes 1."""
    weight = module.encoder / module.scale
    bias = module.bias - weight @ module.mean
    activations = torch.addmm(bias, sample, weight.T).topk(module.active, dim=1).values
    usual = activations[activations > 0].median() if (activations > 0).any() else torch.tensor(1.0)
    return weight / usual, bias / usual


def mean_latents(
    encoder: TokenEncoder, texts: Sequence[TokenizedText], weight: Tensor, bias: Tensor, active: int
) -> float:
    """The mean number of latents that a text lights."""
    pairs = 0
    with progress(None, len(texts), " texts", "counting latents") as bar:
        for batch in batches(texts):
            values, latents = torch.addmm(bias, encoder(batch), weight.T).topk(active, dim=1, sorted=False)
            rows = torch.arange(len(batch)).repeat_interleave(torch.tensor([text.tokens for text in batch]))
            pairs += len((rows[:, None] * len(bias) + latents)[values > 0].unique())
            bar.update(len(batch))
    return pairs / len(texts)


def _check_memory(settings: LatentSettings, width: int) -> None:
    """Refuses more latents than the memory has room for."""
    weights, logits = _COPIES * width * _NUMBER, _MEASURED * _NUMBER
    lit, left = int(_MEASURED * _LIT * _FURTHER * settings.active), memory_left()
    needed = settings.latents * (weights + logits) + lit
    if needed > left:
        most = max(0, left - lit) // (weights + logits)
        what = f"{settings.latents:,} latents need {needed / 1e9:.1f} GB of memory, and {left / 1e9:.1f} GB are left"
        fewer = f"give at most {most:,} with --latents" if most >= settings.active else "give fewer with --active"
        raise ArgumentError(what, remedy=fewer)


def _write_network(folder: Path, encoder: TokenEncoder, network: TokenNetwork) -> None:
    with quiet_transformers():
        encoder.trunk.save_pretrained(folder)
    for file in network.text_files:
        shutil.copyfile(file, folder / file.name)


def _write_json(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_card(
    folder: Path, network: TokenNetwork, files: Sequence[Any], drawn: Drawn, settings: Mapping[str, Any]
) -> None:
    base = settings["base"]
    licence = _licence(network.folder)
    made_of = [
        f"the network of {base}, "
        + (f"whose card states the licence {licence}" if licence else "whose licence applies"),
        f"{len(drawn.texts):,} of {drawn.among:,} texts: {', '.join(file.path.name for file in files)}",
    ]
    about = (
        f"The network of {base}, with a sparse autoencoder over its vectors of tokens. Its latents are terms of an "
        f"index. {CONCEPTS_FILE} names each latent by the words that light it most. Trained with pyserini_compneg."
    )
    write_card(folder, _CARD_TAGS, "A latent model", about, _USE, made_of, settings)


def _licence(folder: Path) -> str:
    """The licence that the card of a model states; empty if it states none."""
    card = folder / "README.md"
    said = (
        re.search(r"^license: *(.+)$", card.read_text(encoding="utf-8", errors="replace"), re.M)
        if card.is_file()
        else None
    )
    return said[1].strip() if said else ""
