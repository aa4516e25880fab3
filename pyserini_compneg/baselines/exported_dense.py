"""Dense models that have an export to ONNX in their folder, run by onnxruntime, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyserini_compneg.encode.models import TextTokenizer
from pyserini_compneg.encode.models.batching import batches
from pyserini_compneg.encode.models.configuration import (
    MODULES_FILE,
    module_routes,
    optional_json,
    part_folder,
    prompt_of,
    text_settings,
)
from pyserini_compneg.encode.models.onnx_model import INPUTS
from pyserini_compneg.encode.models.tokenizer import check_direct
from pyserini_compneg.support.errors import EncodingError, in_one_line
from pyserini_compneg.support.onnx_sessions import import_onnxruntime, open_session
from pyserini_compneg.support.processors import model_threads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MEAN, _CLS = "mean", "cls"
_FORMER_NAMES = {"pooling_mode_mean_tokens": _MEAN, "pooling_mode_cls_token": _CLS}
_OUTPUTS = ("token_embeddings", "last_hidden_state")
"""Names of the output that has the vectors of the tokens."""

_CHAIN = ["Transformer", "Pooling", "Normalize"]
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
_BATCH_TOKENS = 8192
_REMEDY = "export it again, or delete it"


class DenseExport(NamedTuple):
    """The graph of a network, the network's folder, how one vector is made of those of the tokens, and its length."""

    file: Path
    network: Path
    pooling: str
    normalised: bool


def dense_export(folder: Path) -> DenseExport | None:
    """The export in a model's folder. None if there is none, or if only sentence-transformers can run the model."""
    if not (folder / MODULES_FILE).is_file() or not find_spec("onnxruntime"):
        return None
    with suppress(EncodingError):  # sentence-transformers says what is wrong
        chain, queries = module_routes(folder).values()
        if chain != queries or [kind for kind, _ in chain] not in (_CHAIN[:2], _CHAIN):
            return None
        network, pooling = (part_folder(folder, path) for _, path in chain[:2])
        file, has_pooling = network / "onnx" / "model.onnx", (pooling / "config.json").is_file()
        if file.is_file() and has_pooling and (mode := _mode(pooling)) in (_MEAN, _CLS):
            check_direct(network, text_settings(network, "query").arguments)
            return DenseExport(file, network, mode, chain[-1][0] == _CHAIN[-1])
    return None


def _mode(pooling: Path) -> str:
    """The kind of pooling; empty for several kinds together, and for one without the prompt's tokens."""
    config = optional_json(pooling / "config.json")
    former = [name for name, is_on in config.items() if name.startswith("pooling_mode_") and is_on]
    mode = config.get("pooling_mode", [_FORMER_NAMES.get(name, "") for name in former] or _MEAN)
    if isinstance(mode, list):
        mode = mode[0] if len(mode) == 1 else ""
    return str(mode) if config.get("include_prompt", True) else ""


class ExportedDense:
    """Gives the vectors of queries and of documents, as the model of sentence-transformers does."""

    def __init__(self, export: DenseExport, folder: Path, name: str) -> None:
        self._name, self._export = name, export
        self._tokenizers = {side: _tokenizer(export.network, folder, side) for side in ("query", "document")}
        has = import_onnxruntime().get_available_providers()
        with in_one_line(EncodingError, "onnx/model.onnx cannot be run", where=name, remedy=_REMEDY):
            self._session = open_session(export.file, model_threads(), [one for one in _PROVIDERS if one in has])
        self._inputs = [one.name for one in self._session.get_inputs()]
        outputs = [one.name for one in self._session.get_outputs()]
        if not {*self._inputs} <= {*INPUTS} or not {*outputs} & {*_OUTPUTS}:
            what = f"onnx/model.onnx takes {', '.join(self._inputs)} and gives {', '.join(outputs)}; expected are "
            what += f"{', '.join(INPUTS)} and {_OUTPUTS[0]}"
            raise EncodingError(what, where=name, remedy=_REMEDY)
        self._output = next(one for one in _OUTPUTS if one in outputs)

    def encode_query(self, texts: Sequence[str], batch_size: int, **_: object) -> NDArray[np.float32]:
        return self._encoded("query", texts, batch_size)

    def encode_document(self, texts: Sequence[str], batch_size: int, **_: object) -> NDArray[np.float32]:
        return self._encoded("document", texts, batch_size)

    def _encoded(self, side: str, texts: Sequence[str], batch_size: int) -> NDArray[np.float32]:
        import numpy as np

        ids = self._tokenizers[side](texts).ids
        vectors: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(ids)
        for batch in batches([len(one) for one in ids], batch_size, _BATCH_TOKENS):
            tokens = np.zeros((len(batch), len(ids[batch[0]])), np.int64)
            mask = np.zeros_like(tokens)
            for row, number in enumerate(batch):
                tokens[row, : len(ids[number])], mask[row, : len(ids[number])] = ids[number], 1
            inputs = dict(zip(INPUTS, (tokens, tokens * 0, mask), strict=True))
            with in_one_line(EncodingError, "onnx/model.onnx cannot be run", where=self._name, remedy=_REMEDY):
                (states,) = self._session.run([self._output], {name: inputs[name] for name in self._inputs})
            if self._export.pooling == _CLS:
                made = states[:, 0]
            else:
                made = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            if self._export.normalised:
                made = made / np.linalg.norm(made, axis=1, keepdims=True)
            for number, vector in zip(batch, made, strict=True):
                vectors[number] = vector
        return np.asarray(vectors, np.float32)


def _tokenizer(network: Path, folder: Path, side: str) -> TextTokenizer:
    texts = text_settings(network, side)
    return TextTokenizer(
        network,
        texts.max_length,
        texts.special_tokens,
        prompt_of(folder, side),
        texts.lowercase,
        arguments=texts.arguments,
    )
