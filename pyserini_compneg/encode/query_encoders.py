"""Chooses the query encoder from ``--encoder`` and the index's manifest. Refuses the encoder of another index."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pyserini_compneg.compose import Linear, QueryEncoder
from pyserini_compneg.compose.atom_vectors import atom_vectors
from pyserini_compneg.compose.words import told_words
from pyserini_compneg.documents.vector_files import SHARD_NAME, VECTORS_FILE, read_about
from pyserini_compneg.encode.bm25 import Bm25QueryEncoder
from pyserini_compneg.encode.cached import CachedQueryEncoder
from pyserini_compneg.encode.hybrid import (
    BM25,
    LATENT_WEIGHT,
    PREFIX,
    HybridQueryEncoder,
    TokenEncoder,
    checked_weight,
    joined,
    model_parts,
    needs_statistics,
    places,
    split_name,
    with_places,
)
from pyserini_compneg.encode.models import Head, ModelOptions, load_checkpoint, model_folder
from pyserini_compneg.encode.models.latents import LATENT_SIGN
from pyserini_compneg.lucene import ENGLISH, LANGUAGES, QUERY_TOKENIZER, Manifest, Reader, analysis_settings
from pyserini_compneg.support.errors import EncodingError, IndexFormatError
from pyserini_compneg.support.vectors import without_terms

_TELLING_DOCUMENTS = 100
_WORD_PIECES = ("##s", "##ing", "##er", "[CLS]")
_FOREIGN = ("the", "of", "and", *_WORD_PIECES)
"""Stop words, and BERT's word pieces: terms that Lucene's English analysis never gives."""

_ENGLISH = ("time", "year", "result", "show", "state", "work", "group", "person", "studi", "world", "film", "call")
"""Terms that Lucene's English analysis gives for most English collections."""

_ATOMS = "give its place as --encoder, or a file with the vectors of the queries' atoms: --encoder atoms.jsonl"

_SPACES = {PREFIX: f"the model, which begin with {PREFIX!r}", "": f"the latent model, which begin with {LATENT_SIGN!r}"}

_logger = logging.getLogger(__name__)


def query_encoder(
    name: str | None,
    reader: Reader | None,
    model_options: ModelOptions | None = None,
    ablation: str | None = None,
    model_weight: float | None = None,
    language: str | None = None,
    latent_weight: float | None = None,
) -> QueryEncoder:
    """The encoder for the queries of an index.

    Args:
        name: ``bm25``; a JSON Lines file of encoded atoms; a model, as a folder or as a name of the Hugging Face hub;
            ``latent:FOLDER``, a latent model; ``bm25+MODEL``, with a model, a latent model, or both; or None, for the
            encoder that the manifest names.
        reader: The index. Without an index, None, the encoder is not checked.
        model_options: The options for running a model; None for the defaults.
        ablation: The part of query vectors that is left out, one of ``ABLATIONS``; None for nothing.
        model_weight: Multiplies the weights of the model of ``bm25+MODEL``; None for the default.
        language: The language of texts in an index without a manifest; None for English, or for the manifest's.
        latent_weight: Multiplies the weights of the latents of ``bm25+latent``; None for the default.

    Raises:
        IndexFormatError: The encoder is not the index's encoder, the encoder needs an index, or no encoder is named.
        EncodingError: The encoder is unknown, or cannot be used.
        DownloadError: The model cannot be downloaded from the hub.
    """
    manifest = reader.manifest if reader else None
    made_elsewhere = False
    if name is None and reader is not None and manifest is not None:
        name, made_elsewhere = manifest.encoder, "model" not in manifest.settings
        models = list(map(Path, places(name)))  # a build writes absolute paths, and only of models
        if any(model.is_file() or ".." in model.parts for model in models):
            raise IndexFormatError(f"its encoder {name!r} is not a model, so name the --encoder", where=reader.folder)
    if name is None:
        reason = f"{reader.folder}: has no compneg.json (stock Anserini built it)" if reader else "there is no index"
        raise IndexFormatError(f"{reason}, so name the --encoder")
    is_file, (hybrid, _) = Path(name).is_file(), split_name(name)
    _check_weights(name, {"--model-weight": model_weight, "--latent-weight": latent_weight}, is_file)
    weights = {PREFIX: checked_weight(model_weight), "": checked_weight(latent_weight, LATENT_WEIGHT)}
    if language is not None and (is_file or (name != BM25 and not hybrid)):
        why = "vectors that were encoded elsewhere are taken as they are" if is_file else "has a vocabulary of its own"
        raise EncodingError(f"{why}, so --language, which is for bm25 and bm25+MODEL, has no use", where=name)
    if name != BM25 and not is_file:
        if reader and made_elsewhere:
            try:
                for model in model_parts(name).values():
                    model_folder(model)
            except EncodingError as error:
                said = f"its encoder {name!r} cannot be loaded: {error.what}"
                raise IndexFormatError(said, where=reader.folder, remedy=_ATOMS) from None
        return _model(name, reader, model_options, ablation, weights, language)
    if model_options is not None:
        raise EncodingError("not a model, so options such as --precision do not apply", where=name)
    if name == BM25:
        if reader is None:
            raise IndexFormatError("bm25 weighs a query's terms by the statistics of an index; name the --index")
        _check(name, manifest, reader.folder)
        language = index_language(reader, language)
        _check_looks(reader, language)
        return Bm25QueryEncoder(reader, ablation, language)
    if ablation is not None:
        raise EncodingError(
            "vectors that were encoded elsewhere are taken as they are", where=name, remedy="leave out --ablation"
        )
    return _cached(name, reader)


def _check_weights(name: str, weights: Mapping[str, float | None], is_file: bool) -> None:
    """Refuses a weight without use: only a hybrid has parts whose balance can be chosen."""
    parts = model_parts(name) if split_name(name)[0] and not is_file else {}
    for (flag, weight), prefix, kind in zip(weights.items(), (PREFIX, ""), ("MODEL", "latent"), strict=True):
        if weight is not None and prefix not in parts:
            why = "vectors that were encoded elsewhere are taken as they are" if is_file else "has no such part"
            raise EncodingError(f"{why}, so {flag}, which is for bm25+{kind}, has no use", where=name)


def index_language(reader: Reader, given: str | None = None) -> str:
    """The language whose analysis made the terms of BM25 in an index. Refuses another one than the manifest's."""
    if reader.manifest is None:
        return given or ENGLISH
    settings, language = reader.manifest.settings, reader.manifest.language
    if language not in LANGUAGES:
        known = f"this release knows {', '.join(LANGUAGES)}"
        raise IndexFormatError(f"its language {language!r} is unknown", where=reader.folder, remedy=known)
    if given not in (None, language):
        what = f"its texts were indexed with --language {language}, not {given}"
        raise IndexFormatError(what, where=reader.folder, remedy="leave out --language")
    if (here := analysis_settings(language).get("lucene")) != (made := settings.get("lucene")):
        what = f"its texts were analysed by Lucene {made}, and Lucene {here} analyses {language} differently"
        raise IndexFormatError(what, where=reader.folder, remedy="rebuild the index")
    return language


class RareTermEncoder:
    """An encoder without the terms whose ln(documents / document frequency) is ``min_idf`` or lower, as in Pyserini."""

    def __init__(self, encoder: QueryEncoder, reader: Reader, min_idf: float) -> None:
        self.encoder, self._reader, self._min_idf = encoder, reader, min_idf

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        vectors = atom_vectors(texts, self.encoder)
        common = self._common(vectors.values())
        return [without_terms(vectors[text], common) for text in texts]

    def words(self, texts: Sequence[str]) -> Sequence[Collection[str] | None]:
        """The words of the encoder, without those that the vectors leave out."""
        told = told_words(texts, self.encoder)
        common = self._common(own for own in told if own is not None)
        return [None if own is None else [term for term in own if term not in common] for own in told]

    def _common(self, terms: Iterable[Iterable[str]]) -> set[str]:
        every = sorted(set().union(*terms))
        frequencies = zip(every, self._reader.document_frequencies(every), strict=True)
        documents = self._reader.counted_documents
        return {term for term, n in frequencies if n and math.log(documents / n) <= self._min_idf}


def _cached(name: str, reader: Reader | None) -> CachedQueryEncoder:
    manifest = reader.manifest if reader else None
    has_words = manifest is not None and (manifest.encoder == BM25 or split_name(manifest.encoder)[0])
    path = Path(name)  # `encode` writes a file with the settings beside its vectors
    about = read_about(path.with_name(VECTORS_FILE)) if SHARD_NAME.fullmatch(path.name) else {}
    if "" in model_parts(made := str(about.get("encoder", ""))):
        what = f"has vectors of documents, and queries of {made} have other weights, which depend on the index"
        raise EncodingError(what, where=name, remedy=f"name it as --encoder {made}")
    encoder = CachedQueryEncoder(name, index_language(reader) if reader and has_words else None)
    if encoder.name is None and manifest is not None and manifest.encoder != BM25:
        _logger.warning('%s does not say its "encoder"; taking it for %s, as the index is', name, manifest.encoder)
    elif reader is not None:
        _check(encoder.name or name, manifest, reader.folder, about.get("settings", {}).get("model"))
    if encoder.name is None and reader and manifest and split_name(manifest.encoder)[0]:
        spaces = {BM25: BM25, **{prefix: _SPACES[prefix] for prefix in model_parts(manifest.encoder)}}
        found = {_space(term) for term in encoder.terms}
        if found and (missing := next((said for own, said in spaces.items() if own not in found), None)):
            needed = "both" if len(spaces) == 2 else "all"
            raise EncodingError(f"has no terms of {missing}, and {reader.folder} needs terms of {needed}", where=name)
    return encoder


def _model(
    name: str,
    reader: Reader | None,
    options: ModelOptions | None,
    ablation: str | None,
    weights: Mapping[str, float],
    language: str | None,
) -> QueryEncoder:
    from pyserini_compneg.encode.latent import LatentQueryEncoder
    from pyserini_compneg.encode.neural import ModelQueryEncoder, encoder_hash, latent_head

    manifest = reader.manifest if reader else None
    model = manifest.settings.get("model") if manifest else None
    parts, hybrid = model_parts(name), split_name(name)[0]
    if reader is None and needs_statistics(name):
        raise IndexFormatError(f"{name} weighs a query's terms by the statistics of an index; name the --index")
    if reader and manifest and (model is None or not _same_kind(name, manifest.encoder)):
        _check(name, manifest, reader.folder)
    if reader and manifest and name == manifest.encoder:
        check_places(name, reader.folder)
    if manifest is not None:
        options = (options or ModelOptions()).for_index(manifest.settings)
    checkpoints = {prefix: load_checkpoint(part, options) for prefix, part in parts.items()}
    here = encoder_hash(checkpoints.values())
    if reader is not None and manifest is not None and model not in (None, here):
        made = f"{reader.folder} was encoded with {manifest.encoder!r} ({model})"
        if with_places(name, os.path.realpath) == with_places(manifest.encoder, os.path.realpath):
            what = f"{made}, and it is another model now ({here}): its files, or its --head, have changed"
            raise IndexFormatError(what, remedy="restore them, or build the index again")
        raise IndexFormatError(
            f"{made}, and {name!r} is another model ({here}); use the index's encoder (a Router of "
            "sentence-transformers is one encoder with a model for documents and another for queries)"
        )
    found = sorted(reader.folder.glob(f"**/{QUERY_TOKENIZER}")) if reader else []  # in an index, or in its shards
    encoders: dict[str, TokenEncoder] = {}
    for prefix, checkpoint in checkpoints.items():
        encoder = ModelQueryEncoder(checkpoint, options, ablation, next(iter(found), None))
        head = latent_head(checkpoint)
        encoders[prefix] = LatentQueryEncoder(encoder, head, reader, ablation) if head and reader else encoder
    if not hybrid or reader is None:
        return next(iter(encoders.values()))
    language = index_language(reader, language)
    if model is None and language == ENGLISH:  # the encoder of the index is unknown
        _check_spaces(name, reader, encoders)
    weighted = {prefix: (encoder, weights[prefix]) for prefix, encoder in encoders.items()}
    return HybridQueryEncoder(Bm25QueryEncoder(reader, ablation, language), weighted)


def check_places(encoder: str, index: str | Path = "") -> None:
    """Refuses the encoder of an index if one of its models is no longer in its place."""
    if lost := next((one for one in places(encoder) if os.path.isabs(one) and not os.path.isdir(one)), None):
        shape = with_places(encoder, lambda one: "FOLDER" if one == lost else one)
        place = "its new place" if encoder == lost else f"its new place, {shape},"
        raise IndexFormatError(f"there is no model {lost}", where=index, remedy=f"give {place} as --encoder")


def _space(term: str) -> str:
    """The part of a hybrid that a term belongs to: the prefix of a model, or ``bm25``."""
    return PREFIX if term.startswith(PREFIX) else "" if term.startswith(LATENT_SIGN) else BM25


def _check_spaces(name: str, reader: Reader, models: Mapping[str, QueryEncoder]) -> None:
    """Refuses an index of unknown origin that lacks terms of one of its spaces. Small indexes are not checked."""
    if reader.field_document_count < _TELLING_DOCUMENTS:
        return
    spaces: dict[str, Sequence[str]] = {"bm25": _ENGLISH}
    for prefix, model in models.items():
        (vector,) = model.encode_batch([" ".join((*_ENGLISH, "study"))])
        spaces[_SPACES[prefix]] = list(joined({}, {prefix: vector}))
    for space, terms in spaces.items():
        if not any(reader.document_frequencies(terms)):
            said = f"none of {len(terms)} common terms of {space}, so it is not an index of {name}"
            raise IndexFormatError(f"has {said}", where=reader.folder, remedy=f"build one with index --encoder {name}")


def _same_kind(name: str, other: str) -> bool:
    """Whether encoders have parts of the same kinds: BM25, a model, a latent model."""
    return split_name(name)[0] == split_name(other)[0] and [*model_parts(name)] == [*model_parts(other)]


def same_model(encoder: str, settings: Mapping[str, object], name: str, model: object = None) -> bool:
    """Whether ``name`` is the encoder of a manifest: by its name, its path, or the content of its files."""
    if not _same_kind(encoder, name):
        return False
    if model and settings.get("model"):
        return model == settings["model"]
    if with_places(encoder, os.path.realpath) == with_places(name, os.path.realpath):
        return True
    if not settings.get("model") or not all(map(os.path.isdir, places(name))):
        return False
    from pyserini_compneg.encode.neural import encoder_hash

    head = ModelOptions(head=Head.parse(str(settings["head"]))) if "head" in settings else None
    return encoder_hash(load_checkpoint(one, head) for one in model_parts(name).values()) == settings["model"]


def _check(name: str, manifest: Manifest | None, folder: Path, model: object = None) -> None:
    if manifest is not None and not same_model(manifest.encoder, manifest.settings, name, model):
        changed = " as it is now" if name == manifest.encoder else ""
        raise IndexFormatError(
            f"{folder} was encoded with {manifest.encoder!r}, the queries with {name!r}{changed}; use the index's "
            "encoder"
        )


def _check_looks(reader: Reader, language: str) -> None:
    """Looks at the terms of an index without a manifest. Small indexes are not checked.

    Term frequencies are refused, because their scores would not be BM25's. Other terms than BM25's are warned of.
    """
    if reader.manifest is not None or reader.field_document_count < _TELLING_DOCUMENTS:
        return
    foreign, english = (
        [(term, count) for term, count in zip(terms, reader.document_frequencies(terms), strict=True) if count]
        for terms in (_FOREIGN if language == ENGLISH else _WORD_PIECES, _ENGLISH)
    )
    remedy = "name the model that made it as --encoder"
    # A few documents may have such a term: the stem of "ands" is a stop word.
    if foreign := [pair for pair in foreign if pair[1] > reader.field_document_count / 20]:
        said = f"it has the term {foreign[0][0]!r}, which Lucene's analysis never gives; {remedy}"
    elif language != ENGLISH:
        return
    elif not english:
        said = f"it has none of {len(_ENGLISH)} common English terms, such as {_ENGLISH[0]!r}; {remedy}"
    else:
        from statistics import median

        term, count = min(english, key=lambda pair: pair[1])
        ((_, impacts),) = reader.search([Linear({term: 1.0})], count)
        if not len(impacts) or median(impacts) > 1:
            return
        what = "has term frequencies, not impacts of bm25, so its scores would not be those of bm25"
        remedy = "build an index of the texts with compneg index"
        raise IndexFormatError(what, where=reader.folder, remedy=remedy)
    _logger.warning("%s does not look like an index of bm25: %s", reader.folder, said)
