"""Chooses the encoder of documents from ``--encoder``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder
from pyserini_compneg.encode.hybrid import (
    BM25,
    DocumentEncoder,
    HybridDocumentEncoder,
    hybrid_settings,
    model_parts,
    split_name,
)
from pyserini_compneg.encode.models import ModelOptions, StaticSide, load_checkpoint
from pyserini_compneg.encode.models.latents import read_concepts


def document_encoder(
    name: str, options: ModelOptions | None, make_bm25: Callable[[], Bm25DocumentEncoder]
) -> DocumentEncoder:
    """The encoder of documents of a name: ``bm25``, a model, or a hybrid of BM25 and models.

    Its queries can be encoded, too: an index is useless otherwise. ``make_bm25`` is called if BM25 is a part, after the
    models are loaded, because it may have to count the terms of all documents.
    """
    if name == BM25:
        return make_bm25()
    encoders = {prefix: _model_encoder(one, options) for prefix, one in model_parts(name).items()}
    return HybridDocumentEncoder(make_bm25(), encoders) if split_name(name)[0] else next(iter(encoders.values()))


def model_settings(name: str, options: ModelOptions | None) -> dict[str, Any]:
    """The settings that determine the vectors of an encoder's models. A runner can call this on any machine."""
    from pyserini_compneg.encode.neural import document_settings

    parts = [document_settings(load_checkpoint(one, options), options) for one in model_parts(name).values()]
    return hybrid_settings(parts)


def _model_encoder(name: str, options: ModelOptions | None) -> DocumentEncoder:
    from pyserini_compneg.encode.latent import LatentDocumentEncoder
    from pyserini_compneg.encode.neural import ModelDocumentEncoder, latent_head
    from pyserini_compneg.encode.sides import load_side

    checkpoint = load_checkpoint(name, options)
    if isinstance(checkpoint.query, StaticSide):
        load_side(checkpoint.query, ModelOptions())
    if (head := latent_head(checkpoint)) is None:
        return ModelDocumentEncoder(checkpoint, options)
    concepts = read_concepts(checkpoint.document.folder, head.latents)
    return LatentDocumentEncoder(ModelDocumentEncoder(checkpoint, options), head, concepts)
