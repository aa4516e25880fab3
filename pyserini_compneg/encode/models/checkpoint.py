"""Finds the parts of a checkpoint that encode documents and queries, and their settings.

Three layouts of the Hugging Face hub are supported, and read from JSON files only: a masked language model, a masked
language model with OpenSearch's ``idf.json`` for queries, and a folder of sentence-transformers' SparseEncoder. The
fourth is a latent model of this package, see :mod:`~pyserini_compneg.encode.models.latents`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pyserini_compneg.encode.models.configuration import (
    MODULES_FILE,
    damaged,
    is_native,
    missing_file,
    module_routes,
    most_terms,
    named_part,
    optional_json,
    part_folder,
    prompt_of,
    read_lengths,
    required_json,
    text_settings,
)
from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.encode.models.latents import (
    LATENT_WEIGHTS,
    LatentHead,
    is_latent,
    read_latent_head,
)
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.terminal import shown

_WEIGHT_FILES = ("model*.safetensors", "pytorch_model*.bin")
WEIGHTS = ("*.safetensors", "*.bin", "*.h5", "*.msgpack", "*.index.json")
"""The files of weights in all formats, and the index files of split weights."""

MODEL_FILE = "model.onnx"
"""An export."""

REPORT_FILE = "export.json"
"""The report beside an export: precision, columns of the vectors, and comparison with torch."""

OWN_LOGITS_FILE = "own_logits.safetensors"
"""Beside SpladePooling's configuration, which then has ``"own_logits": true``."""

LONG = 512
"""Networks that can read more tokens than this compute attention in blocks, if their kind allows it."""

_TEXT_FILES = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model"),
)
"""The files of a configuration and of a tokenizer, in all formats."""

_OTHER_HEADS = ("XLMWithLMHeadModel", "FlaubertWithLMHeadModel", "ReformerForMaskedLM")
"""Masked language models whose networks take other inputs than those of BERT, or, in Reformer, attend from the first
tokens of a text to its last ones, or to padding.
"""

_IDF_FILE = "idf.json"
_LFS_POINTER = b"version https://git-lfs"
_POOLING_KEYS = (
    *("pooling_strategy", "activation_function", "embedding_dimension", "word_embedding_dimension", "chunk_size"),
    *("epsilon", "own_logits"),
)
"""The settings of SpladePooling; the last two are this package's own. sentence-transformers refuses others, too."""


@dataclass(frozen=True, slots=True)
class StaticSide:
    """Vectors without a network: each token of a text has a fixed weight.

    Attributes:
        folder: The folder of the tokenizer.
        weights: A safetensors file with a tensor ``weight``, or JSON of ``{token: weight}``; None if all weights are 1.
        max_length: The default number of tokens that are read of a text.
        longest: The largest number of tokens that the tokenizer allows.
        prompt: The prompt before each text.
        top_terms: The number of terms to keep of each text, the heaviest; None for all.
        lowercase: See :class:`NeuralSide`.
        arguments: See :class:`NeuralSide`.
    """

    folder: Path
    weights: Path | None
    max_length: int
    longest: int
    prompt: str = ""
    top_terms: int | None = None
    lowercase: bool = False
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class NeuralSide:
    """Vectors of a masked language model, or of a latent model.

    Attributes:
        folder: The folder of the configuration, the weights and the tokenizer.
        head: The head that turns logits into vectors.
        max_length: The default number of tokens that are read of a text, including tokens that the tokenizer adds.
        longest: The largest number of tokens that the model can read.
        prompt: The prompt before each text.
        lowercase: Whether the tokenizer lowercases texts before its other normalisers.
        own_terms: Weights of tokens. If given, a vector contains only terms of the text's own tokens, times these
            weights.
        own_logits: A safetensors file with a tensor ``logits``. It replaces the decoder's bias in the logits that
            tokens have for their own terms. None means that these logits are computed like all others.
        top_terms: The number of terms to keep of each text, the heaviest; None for all.
        arguments: The arguments with which transformers builds the tokenizer, as JSON; empty if there are none.
        special_tokens: Whether the tokenizer adds its special tokens.
    """

    folder: Path
    head: Head | LatentHead
    max_length: int
    longest: int
    prompt: str = ""
    lowercase: bool = False
    own_terms: StaticSide | None = None
    own_logits: Path | None = None
    top_terms: int | None = None
    arguments: str = ""
    special_tokens: bool = True

    @property
    def files(self) -> list[Path]:
        """The files of the configuration, the tokenizer and the weights."""
        others = [self.own_terms.weights] if self.own_terms and self.own_terms.weights else []
        others += [self.own_logits] if self.own_logits else []
        others += [] if isinstance(self.head, Head) or self.exported_in else [self.folder / LATENT_WEIGHTS]
        folders = {self.folder, self.own_terms.folder} if self.own_terms else {self.folder}
        return [file for folder in sorted(folders) for file in text_files(folder)] + self.weights + others

    @property
    def weights(self) -> list[Path]:
        """The files of weights, in the safe format if there are any, as transformers reads them.

        A folder without weights may have an export instead.
        """
        export = self.folder / MODEL_FILE
        has_export = export.is_file() and (self.folder / REPORT_FILE).is_file()
        return weight_files(self.folder) or ([export] if has_export else [])

    @property
    def exported_in(self) -> str | None:
        """The precision of the export that a folder has instead of weights; None if the folder has weights."""
        if self.weights != [self.folder / MODEL_FILE]:
            return None
        precision = required_json(self.folder / REPORT_FILE, dict, str(self.folder)).get("precision")
        if not isinstance(precision, str):
            raise EncodingError("says no precision", where=self.folder / REPORT_FILE, remedy="export the model again")
        return precision


Side: TypeAlias = NeuralSide | StaticSide


class Checkpoint(NamedTuple):
    """A model for documents and queries.

    Attributes:
        name: The name that the user gave.
        document: How documents are encoded.
        query: How queries are encoded; equal to ``document`` for a shared encoder.
    """

    name: str
    document: Side
    query: Side


def weight_files(folder: Path) -> list[Path]:
    """The files of weights of a folder, in the safe format if there are any."""
    return next(filter(None, (sorted(folder.glob(pattern)) for pattern in _WEIGHT_FILES)), [])


def text_files(folder: Path) -> list[Path]:
    """The files of a configuration and of a tokenizer that a folder has, with SentencePiece models of any name."""
    names = dict.fromkeys((*_TEXT_FILES, *sorted(path.name for path in folder.glob("*.model"))))
    return [folder / name for name in names if (folder / name).is_file()]


def read_checkpoint(folder: Path, name: str | None = None, head: Head | None = None) -> Checkpoint:
    """Reads the configuration of a checkpoint without loading weights.

    Args:
        folder: A local folder in one of the hub's layouts.
        name: The model's name, for messages and manifests; the default is the name of the folder.
        head: Activation and pooling, which replace the checkpoint's. A checkpoint without a head has SPLADE-max.

    Raises:
        EncodingError: The folder is not a supported checkpoint; the message says what is missing.
    """
    name = name or str(folder)
    link, file = folder / MODULES_FILE, folder / "config.json"
    try:
        if not link.is_file() and not file.is_file():
            said = "no model: neither config.json nor modules.json is here"
            raise missing_file(link if link.is_symlink() else file, said)
        with damaged(file):
            if is_latent(folder):
                document, query = _latent(folder, head)
            elif link.is_file():
                document, query = _sentence_transformers(folder)
            else:
                document, query = _transformers(folder)
    except EncodingError as error:
        raise error.at(name) from None
    if head is not None:
        document, query = (
            replace(side, head=head) if isinstance(side, NeuralSide) else side for side in (document, query)
        )
    return Checkpoint(name, document, query)


def _transformers(folder: Path) -> tuple[Side, Side]:
    if lost := next((path.parent.name for path in sorted(folder.glob("[0-9]_[A-Z]*/config.json"))), None):
        what = f"{MODULES_FILE} is missing, and {lost} is a module of sentence-transformers"
        raise EncodingError(what, remedy="copy or download it again")
    side = NeuralSide(folder, Head(), *read_lengths(folder))
    _check_masked_lm(side)
    if not (folder / _IDF_FILE).is_file():
        return side, side
    return side, StaticSide(folder, folder / _IDF_FILE, side.max_length, side.longest)


def _latent(folder: Path, head: Head | None) -> tuple[Side, Side]:
    """Both sides of a latent model. It reads texts without the prompts of its base, as in its training."""
    if head is not None:
        raise EncodingError("is a latent model, which has a head of its own", remedy="leave out --head")
    texts = text_settings(folder, "document")
    side = NeuralSide(
        folder,
        read_latent_head(folder),
        texts.max_length,
        texts.longest,
        lowercase=texts.lowercase,
        arguments=texts.arguments,
        special_tokens=texts.special_tokens,
    )
    for file in side.files:
        if not file.is_file():
            raise missing_file(file, f"{file.name} is missing")
    _refuse_pointers(side.files)
    return side, side


def _sentence_transformers(folder: Path) -> tuple[Side, Side]:
    made = {
        side: _side([(kind, part_folder(folder, path)) for kind, path in parts], folder, side)
        for side, parts in module_routes(folder).items()
    }
    terms = most_terms(folder)
    return replace(made["document"], top_terms=terms), replace(made["query"], top_terms=terms)


def _side(modules: Sequence[tuple[str, Path]], whole: Path, side: str) -> Side:
    """The side that a chain of modules makes. Raises an error if the chain gives no weights of terms."""
    prompt = prompt_of(whole, side)
    kinds = [kind for kind, _ in modules]
    folders = [folder for _, folder in modules]
    if kinds == ["SparseStaticEmbedding"]:
        with named_part(folders[0], whole):
            return _static(folders[0], prompt)
    if kinds[:2] not in (["Transformer", "SpladePooling"], ["MLMTransformer", "SpladePooling"]) or len(kinds) > 3:
        raise EncodingError(
            f"a model of {', '.join(kinds) or 'no modules'} does not give weights of terms; expected a masked language "
            "model and SpladePooling"
        )
    with named_part(folders[1], whole):
        head, own_logits = _pooling(folders[1])
    own_terms = None
    if len(kinds) == 3:
        if kinds[2] == "Normalize":
            what = "Normalize after SpladePooling, which divides vectors by their lengths, is not supported"
            raise EncodingError(what, remedy="delete the module from modules.json of a copy")
        if kinds[2] != "SparseStaticEmbedding":
            raise EncodingError(f"a model with {kinds[2]} after SpladePooling does not give weights of terms")
        with named_part(folders[2], whole):
            own_terms = _static(folders[2], "")
    with named_part(folders[0], whole):
        return _neural(folders[0], side, head, prompt, own_terms, own_logits)


def _neural(
    folder: Path, side: str, head: Head, prompt: str, own_terms: StaticSide | None, own_logits: Path | None
) -> NeuralSide:
    texts = text_settings(folder, side)
    made = NeuralSide(
        folder,
        head,
        texts.max_length,
        texts.longest,
        prompt,
        texts.lowercase,
        own_terms,
        own_logits,
        arguments=texts.arguments,
        special_tokens=texts.special_tokens,
    )
    _check_masked_lm(made)
    return made


def _pooling(folder: Path) -> tuple[Head, Path | None]:
    """The head, and the file of a token's own logits, of SpladePooling."""
    config = required_json(folder / "config.json", dict)
    if unknown := next((key for key in config if key not in _POOLING_KEYS), None):
        raise EncodingError(f"config.json: {shown(unknown)} is unknown", remedy=f"known are {', '.join(_POOLING_KEYS)}")
    try:
        head = Head(
            config.get("activation_function", "relu"), config.get("pooling_strategy", "max"), config.get("epsilon", 0.0)
        )
    except (EncodingError, TypeError) as cause:
        raise EncodingError(f"config.json: {cause}") from None
    own_logits = folder / OWN_LOGITS_FILE if config.get("own_logits") else None
    if own_logits and not own_logits.is_file():
        raise EncodingError(f"has no {OWN_LOGITS_FILE}, which its config.json asks for")
    return head, own_logits


def _static(folder: Path, prompt: str) -> StaticSide:
    path = optional_json(folder / "config.json").get("path")
    # A file that the configuration names, such as idf.json, may lie beside the folders of the modules.
    named = [folder / str(path), folder.parent / Path(str(path)).name] if path else sorted(folder.glob("*.safetensors"))
    root = os.path.normpath(folder.parent)  # not resolved, because files in the hub's cache are links to another folder
    inside = (file for file in named if file.is_file() and Path(os.path.normpath(file)).is_relative_to(root))
    weights = next(inside, None)
    if weights is None:
        raise EncodingError("no weights of its tokens (model.safetensors, or what config.json names)")
    _refuse_pointers([weights])
    return StaticSide(folder, weights, *read_lengths(folder), prompt)


def _refuse_pointers(files: Iterable[Path]) -> None:
    for file in files:
        with file.open("rb") as data:
            if data.read(len(_LFS_POINTER)) == _LFS_POINTER:
                what = f"{file.name} is only a pointer of Git LFS to the file"
                raise EncodingError(what, remedy="get the file with git lfs pull, or download the model again")


def _check_masked_lm(side: NeuralSide) -> None:
    config = required_json(side.folder / "config.json", dict)
    architectures = config.get("architectures") or []
    if not isinstance(architectures, list):
        raise EncodingError(f"config.json: `architectures` must be a list, got {architectures!r}")
    if other := next((kind for kind in architectures if kind in _OTHER_HEADS), None):
        raise EncodingError(f"{other} has a masked-language-model head of a kind that is not supported")
    if not any(str(kind).endswith(("ForMaskedLM", "ForPreTraining")) for kind in architectures):
        said = ", ".join(map(str, architectures)) or "a model of unknown architecture"
        raise EncodingError(
            f"{said} has no masked-language-model head, so it weighs no terms",
            remedy="name a SPLADE-like model",
        )
    if "auto_map" in config and not is_native(side.folder):
        raise EncodingError("needs custom code (config.json has `auto_map`), which is never run here")
    for file in side.weights:
        if not file.is_file():
            raise missing_file(file, f"{file.name} is missing")
    _refuse_pointers(side.files)
    if not side.weights:
        what = "no weights (model.safetensors or pytorch_model.bin)"
        if found := next(iter(sorted(side.folder.rglob("*.onnx"))), None):
            what += f"; {found.relative_to(side.folder)} is an export of another program, which lacks the pooling"
            raise EncodingError(what, remedy="get the weights, from which this package makes its own export")
        raise EncodingError(what)
