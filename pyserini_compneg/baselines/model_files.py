"""Files of models that sentence-transformers or transformers run: checks, hashes and loading."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pyserini_compneg.baselines.exported_dense import dense_export
from pyserini_compneg.encode.models import LAYERS_OF_TOKENS, model_folder
from pyserini_compneg.encode.models.cache import content_hash
from pyserini_compneg.encode.models.configuration import optional_json
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.support.errors import EncodingError, in_one_line, install_hint

Similarity = Literal["cosine", "dot"]
COSINE: Similarity = "cosine"
DOT: Similarity = "dot"

_MODEL_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin", "*.metadata")
_FORMAT = 2
"""The version of vectors. It is increased when a change alters the vectors of unchanged models, or their files."""

WHOLE = "get a whole model"
PYLATE_LAYER = LAYERS_OF_TOKENS[0]
"""The class of PyLate in whose place sentence-transformers runs its own."""


def load_model(load: Callable[[str], Any], name: str, unused: str = "") -> Any:
    """Loads a model by a function of its folder. Its weights may lack ``unused`` only, and its words must be there."""
    folder = folder_of(name)
    with quiet_transformers(), in_one_line(EncodingError, "the model cannot be loaded", where=name):
        model = load(str(folder)).eval()
        _check_network(model, folder, name, unused)
    return model


def _check_network(model: Any, folder: Path, name: str, unused: str) -> None:
    """Refuses a model that lacks words, or weights other than ``unused``.

    transformers initialises missing weights at random, and replaces a missing tokenizer by one of almost no words.
    """
    network = model.transformers_model
    modules = json.loads((folder / "modules.json").read_bytes()) if (folder / "modules.json").is_file() else []
    place = folder / modules[0]["path"] if modules else folder
    if network is None or not (place / "config.json").is_file():  # several networks, each in its own folder
        return
    _, found = type(network).from_pretrained(
        str(place), local_files_only=True, trust_remote_code=False, output_loading_info=True
    )
    if lacking := sorted(key for key in found["missing_keys"] if not (unused and unused in key)):
        raise EncodingError(f"its weights lack {lacking[0]!r}, which would be random", where=name, remedy=WHOLE)
    words, embedded = model.tokenizer.vocab_size, network.get_input_embeddings().num_embeddings
    if words > embedded:
        what = f"its tokenizer has {words} tokens, and its weights {embedded}"
        raise EncodingError(what, where=name, remedy=WHOLE)
    check_tokenizer(model.tokenizer, place, name)


def check_tokenizer(tokenizer: Any, folder: Path, name: str) -> None:
    """Refuses a folder without a tokenizer, in whose place transformers made one of almost no words."""
    files = sorted({"tokenizer.json", *type(tokenizer).vocab_files_names.values()})
    if not any((folder / file).is_file() for file in files):
        raise EncodingError(f"has no tokenizer, none of {', '.join(files)}", where=name, remedy=WHOLE)


def check_dense_model(name: str, similarity: Similarity | None = None) -> None:
    """Checks, without loading it, that a model exists and that an installed package can run it.

    Raises:
        EncodingError: There is no model, its files name another similarity, or sentence-transformers is missing and the
            model has no export.
        DownloadError: The model cannot be downloaded from the hub.
    """
    if not find_spec("sentence_transformers") and not dense_export(folder_of(name)):
        raise EncodingError("dense models need sentence-transformers", remedy=install_hint("dense"))
    similarity_of(name, similarity)


def dense_model_hash(name: str, similarity: Similarity | None = None) -> str:
    """A hash of the files of a model and of its similarity. The model is not loaded.

    Raises:
        EncodingError: There is no model, or its files name another similarity.
        DownloadError: The model cannot be downloaded from the hub.
    """
    folder = folder_of(name)
    settings = {"format": _FORMAT} | ({"similarity": DOT} if similarity_of(name, similarity) == DOT else {})
    export = dense_export(folder)
    files = [file for kind in _MODEL_FILES for file in folder.rglob(kind)]
    exported = export.file.parent.glob(f"{export.file.name}*") if export else []  # large weights are beside it
    return content_hash(sorted({*files, *exported}), settings)


def similarity_of(name: str, given: Similarity | None) -> Similarity:
    """The similarity that a model's files name, or the given one. Other similarities count as the cosine."""
    said = optional_json(folder_of(name) / "config_sentence_transformers.json", name).get("similarity_fn_name")
    if said is None:
        return given or COSINE
    own = DOT if said == DOT else COSINE
    if given not in (None, own):
        what = f"its files compare vectors by {own}, not by {given}"
        raise EncodingError(what, where=name, remedy="leave similarity out")
    return own


def folder_of(name: str) -> Path:
    """The folder of a model, which is downloaded if necessary."""
    try:
        return model_folder(name, [PYLATE_LAYER])
    except EncodingError as error:
        if error.where:  # of a model that was found
            raise
        expected = "expected a folder, or owner/name on the Hugging Face hub"
        raise EncodingError(f"no model of sentence-transformers {name!r}", remedy=expected) from None
