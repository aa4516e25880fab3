"""Tiny latent models with random weights, in the folders that ``train latent`` writes."""

import json
import shutil
from pathlib import Path

LATENTS, ACTIVE = 64, 3


def write_latent_model(folder: Path, bert: Path, seed: int = 0, **settings: object) -> Path:
    """A latent model on the trunk of a BERT. Stop words and punctuation are silent, as in a training."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoTokenizer, BertModel

    draw = torch.Generator().manual_seed(seed)
    trunk = BertModel.from_pretrained(bert, add_pooling_layer=False)
    trunk.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.save_pretrained(folder)
    weight = torch.randn(LATENTS, trunk.config.hidden_size, generator=draw) / 10
    save_file({"weight": weight, "bias": torch.randn(LATENTS, generator=draw) / 100}, folder / "latent.safetensors")
    silent = [number for number in tokenizer.convert_tokens_to_ids(["the", "of", "."]) if number is not None]
    head = {"latents": LATENTS, "active": ACTIVE, "mean_latents": 9.5, "silent": silent, **settings}
    (folder / "latent.json").write_text(json.dumps(head))
    (folder / "concepts.json").write_text(json.dumps([f"word{number}, other" for number in range(LATENTS)]))
    return folder


def copied(folder: Path, target: Path) -> Path:
    """A copy of a folder, to be changed."""
    shutil.copytree(folder, target)
    return target
