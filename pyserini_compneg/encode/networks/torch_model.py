"""Runs checkpoints in torch. Exports are made from these networks and compared with them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.models.checkpoint import LONG, NeuralSide, weight_files
from pyserini_compneg.encode.models.configuration import read_lengths
from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.encode.models.latents import LATENT_WEIGHTS, LatentHead
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.encode.models.tokenizer import TextTokenizer, load_tokenizer
from pyserini_compneg.encode.networks.attention import use_blocks
from pyserini_compneg.encode.networks.decoders import Decoder, load_bias, take_decoder
from pyserini_compneg.encode.networks.latent import LatentModule
from pyserini_compneg.encode.networks.pooling import SLICE, own_logits, pooled
from pyserini_compneg.support.errors import CompNegError, EncodingError, InputError, in_one_line
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyserini_compneg.encode.models.batching import Entries

_SHORT = 4
"""The number of tokens of a text that is run alone, and then together with a text of twice as many tokens."""

_OF_ONE = "take config.json and the weights of one model"
_AGAIN = f"copy or download the weights again, or {_OF_ONE}"

_logger = logging.getLogger(__name__)


@contextmanager
def _running(folder: Path) -> Iterator[None]:
    """Turns a fault of a network's forward pass into one line. A NameError is a fault of this package, and passes.

    The remedy is left out where memory may be lacking, for which torch also raises RuntimeError.
    """
    failed = partial(in_one_line, EncodingError, "the network cannot be run", where=folder)
    with (
        failed(passing=(NameError,)),
        failed(remedy="name another model", passing=(NameError, MemoryError, RuntimeError)),
    ):
        yield


class SparseEncoderModule(nn.Module):  # type: ignore[misc]  # mypy has no types of torch
    """A masked language model that returns one vector for each text instead of one logit for each token and term."""

    def __init__(self, side: NeuralSide) -> None:
        super().__init__()
        assert isinstance(side.head, Head)
        self.head: Head = side.head
        self.model = model = _masked_lm(side)
        self._takes_types = "token_type_ids" in signature(model.forward).parameters
        with torch.no_grad():
            weight, bias = self._take_decoder(side.folder)
        self.width = len(weight)
        self._slices = range(-(-self.width // SLICE))
        for number, (part, offset) in enumerate(zip(weight.split(SLICE), bias.split(SLICE), strict=True)):
            self.register_buffer(f"weight_{number}", part.clone())
            self.register_buffer(f"bias_{number}", offset.clone())
        own = read_own_logits(side, self.width)
        self.register_buffer("own", own)
        tied = torch.equal(weight, model.get_input_embeddings().weight)
        self._embeddings = model.get_input_embeddings() if tied else None  # an export then holds this table once
        self.register_buffer("rows", None if own is None or tied else weight.clone())
        self._block = LONG if side.longest > LONG else None
        if self._block:
            with _running(side.folder):
                use_blocks(model, self._sample, side.folder)

    def _take_decoder(self, folder: Path) -> Decoder:
        """Removes the decoder, and checks that it was the last layer of the model."""
        ids = torch.ones(1, 3, dtype=torch.int64)
        with _running(folder):
            expected = self.model(input_ids=ids).logits
        decoder, same = take_decoder(self.model), False
        if decoder is not None:
            with _running(folder), suppress(AttributeError, RuntimeError, TypeError):
                logits = nn.functional.linear(self.model(input_ids=ids).logits, *decoder)
                same = torch.allclose(logits, expected, atol=1e-3, rtol=1e-3, equal_nan=True)
        if decoder is None or not same:
            raise EncodingError(f"the head of {type(self.model).__name__} is of an unknown kind", where=folder)
        return decoder

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The vectors of token ids, (batch, tokens), as (batch, terms)."""
        hidden = self.hidden(input_ids, token_type_ids, attention_mask)
        own = None
        if self.own is not None:
            rows = self._embeddings(input_ids) if self._embeddings else nn.functional.embedding(input_ids, self.rows)
            own = own_logits(input_ids, attention_mask, hidden, rows, self.own)
        return pooled(hidden, attention_mask, self._decoder(), self.head, own, self._block)

    def hidden(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The decoder's inputs, (batch, tokens, width)."""
        types = {"token_type_ids": token_type_ids} if self._takes_types else {}
        hidden: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask, **types).logits
        return hidden

    def _sample(self) -> Tensor:
        """The hidden states of two texts, one of LONG tokens and a shorter one, without padding."""
        ids = (torch.arange(1, 2 * LONG + 1) % self.width).view(2, LONG)
        real = torch.ones_like(ids)
        real[1, LONG // 2 :] = 0
        return self.hidden(ids * real, ids * 0, real)[real > 0]

    def _decoder(self) -> list[tuple[Tensor, Tensor]]:
        """The decoder's weights and biases, in slices. As separate buffers they stay constants in an export."""
        return [(getattr(self, f"weight_{i}"), getattr(self, f"bias_{i}")) for i in self._slices]


class TorchModel:
    """A checkpoint that runs as a :class:`SparseModel`.

    Args:
        side: The side of the checkpoint.
        device: ``cpu`` or ``cuda``. Without CUDA the processor is used, with a warning.
        half: Whether to compute with 16 bits, on CUDA only.

    Attributes:
        device: The device in use.
        unpadded: Whether padding changes the vectors of this network, as it does where convolutions or Fourier
            transforms mix the tokens.
        together: How many batches run at once: one, on all threads.
        module: The network.

    Raises:
        EncodingError: The checkpoint cannot be loaded.
    """

    together = 1

    def __init__(self, side: NeuralSide, device: str = "cpu", half: bool = False) -> None:
        if device != "cpu" and not torch.cuda.is_available():
            _logger.warning("this torch has no CUDA; models run on the processor")
            device = "cpu"
        self.device = device
        module = _latent_module(side) if isinstance(side.head, LatentHead) else SparseEncoderModule(side)
        module = module.eval()
        what, remedy = f"the network cannot be put on {device}", "choose --device cpu"
        with in_one_line(EncodingError, what, where=side.folder, remedy=remedy):
            module = module.to(device)
            self.module = module.half() if half and device != "cpu" else module
        with _running(side.folder):
            self.unpadded = self._depends_on_padding(module.width)

    def _depends_on_padding(self, width: int) -> bool:
        """Compares the hidden states of a short text alone with those beside a longer one."""
        text = torch.arange(1, 2 * _SHORT + 1) % width
        real = torch.ones(2, len(text), dtype=torch.int64)
        real[0, _SHORT:] = 0
        both, real = (text * real).to(self.device), real.to(self.device)
        with torch.inference_mode():
            alone = self.module.hidden(both[:1, :_SHORT], both[:1, :_SHORT] * 0, real[:1, :_SHORT])
            beside = self.module.hidden(both, both * 0, real)[:1, :_SHORT]
        tolerance = 1e-3 if alone.dtype == torch.float32 else 1e-1
        return not torch.allclose(alone, beside, atol=tolerance, rtol=tolerance, equal_nan=True)

    def __call__(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Entries:
        tokens, real = torch.from_numpy(ids).to(self.device), torch.from_numpy(mask).to(self.device)
        with in_one_line(EncodingError, f"the model failed on texts of {ids.shape[1]} tokens"), torch.inference_mode():
            vectors = self.module(tokens, torch.zeros_like(tokens), real).float().cpu()
        rows, columns = vectors.nonzero(as_tuple=True)
        return rows.numpy(), columns.numpy(), vectors[rows, columns].numpy()


def load_for_training(folder: Path, name: str, dropout: float | None = None) -> tuple[Any, Any, int, list[str]]:
    """Loads a network with transformers, to train it.

    Args:
        folder: The folder of a masked language model or of its trunk.
        name: The model's name, for messages.
        dropout: The dropout; None keeps the checkpoint's.

    Returns:
        The masked language model, whose decoder is a linear layer with a bias; its tokenizer; the number of tokens that
        it can read; the names of the weights that the checkpoint lacks.

    Raises:
        EncodingError: The tokenizer belongs to another model.
        InputError: The network cannot be loaded, or has another kind of decoder.
    """
    model, missing = _loaded(folder, name, error=InputError, dropout=dropout)
    tokenizer = load_tokenizer(folder, f"{name}: its tokenizer cannot be loaded", InputError)
    try:
        longest = read_lengths(folder)[1]
    except EncodingError as error:
        raise error.at(name) from None
    decoder = model.get_output_embeddings()
    if not isinstance(decoder, nn.Linear) or decoder.bias is None:
        fault = f"{type(model).__name__} has no linear decoder with a bias"
        raise InputError(fault, where=name, remedy="name a BERT-like model")
    TextTokenizer(folder, longest).fit(decoder.out_features, name)  # the trained model will be read with this tokenizer
    return model, tokenizer, longest, missing


def read_own_logits(side: NeuralSide, width: int) -> Tensor | None:
    """The values, (width,), that replace the bias in the logits of tokens for their own terms; None to keep the bias.

    Raises:
        EncodingError: The values cannot be read, or belong to another model.
    """
    from safetensors.torch import load_file

    file, head = side.own_logits, side.head
    if file is None or isinstance(head, LatentHead):
        return None
    with in_one_line(EncodingError, f"{file}: cannot be read"):
        logits: Tensor = load_file(file)["logits"].float()
    if logits.shape != (width,) or (head.pooling == "sum" and not head.signed):
        raise EncodingError(
            f"expected {width} logits, for a head that takes maxima, got {tuple(logits.shape)} for {head}", where=file
        )
    return logits


def _latent_module(side: NeuralSide) -> LatentModule:
    from safetensors.torch import load_file

    assert isinstance(side.head, LatentHead)
    file, trunk = side.folder / LATENT_WEIGHTS, load_trunk(side.folder)
    with in_one_line(EncodingError, f"{file}: cannot be read", remedy="copy the model again"):
        tensors = load_file(file)
        weight, bias = tensors["weight"].float(), tensors["bias"].float()
    expected = (side.head.latents, trunk.config.hidden_size)
    if weight.shape != expected or bias.shape != expected[:1]:
        said = (
            f"expected weights {expected} and biases {expected[:1]}, got {tuple(weight.shape)} and {tuple(bias.shape)}"
        )
        raise EncodingError(said, where=file, remedy="take the files of one model")
    if not (weight.isfinite().all() and bias.isfinite().all()):
        raise EncodingError("has numbers that are not finite", where=file, remedy="copy the model again")
    tokenizer = TextTokenizer(side.folder, side.max_length, as_transformers=True, arguments=side.arguments)
    return LatentModule(trunk, weight, bias, side.head, {*tokenizer.special, *side.head.silent})


def load_trunk(folder: Path) -> nn.Module:
    """Loads the network of an encoder without a head, which gives a vector for each token (``last_hidden_state``).

    The pooler, which gives no vectors of tokens, may lack weights.

    Args:
        folder: The folder of an encoder, or of a model with a head on it, such as a masked language model.

    Raises:
        EncodingError: The network cannot be loaded, lacks weights, or is an encoder with a decoder.
    """
    model, missing = _loaded(folder, folder, "AutoModel", attn_implementation="eager")
    if model.config.is_encoder_decoder:
        what = f"{type(model).__name__} is an encoder with a decoder"
        raise EncodingError(what, where=folder, remedy="name a BERT-like model")
    _refuse_missing(folder, [key for key in missing if not key.startswith("pooler.")])
    trunk: nn.Module = model.eval()
    return trunk


def _masked_lm(side: NeuralSide) -> Any:
    """Loads a model and refuses missing weights: a head with random weights would give random vectors."""
    model, missing = _loaded(side.folder, side.folder, attn_implementation="eager")
    _refuse_missing(side.folder, missing)
    return model.eval()


def _refuse_missing(folder: Path, missing: Sequence[str]) -> None:
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        remedy = "name a trained model, with all its weights"
        raise EncodingError(f"its weights lack {missing[0]}{more}", where=folder, remedy=remedy)


def _loaded(
    folder: Path,
    name: object,
    kind: str = "AutoModelForMaskedLM",
    error: type[CompNegError] = EncodingError,
    dropout: float | None = None,
    **options: Any,
) -> tuple[Any, list[str]]:
    """A network of a class of transformers with 32-bit weights, and the names of the weights that its checkpoint lacks.

    The bias of a decoder is read here, because transformers may leave it out.
    The network is first built without weights, to separate faults of ``config.json`` from faults of the weights.
    """
    import transformers
    from transformers import CONFIG_MAPPING, AutoConfig, PretrainedConfig, __version__

    loader = getattr(transformers, kind)
    described = "masked language model" if kind == "AutoModelForMaskedLM" else "network"
    settings: dict[str, Any] = {"local_files_only": True}
    remedy = f"compare it with the model's source; this is transformers {__version__}"
    with (
        quiet_transformers(),
        in_one_line(error, f"config.json describes no {described}", where=name, remedy=remedy),
    ):
        network = PretrainedConfig.get_config_dict(folder, **settings)[0].get("model_type")
        if isinstance(network, str) and network not in CONFIG_MAPPING:
            what = f"transformers {__version__} does not know the type {shown(network)}, which config.json names"
            raise error(what, where=name, remedy="install a newer transformers")
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, **settings)
        if config.model_type == "big_bird":  # otherwise a short text would change the attention of later long ones
            config.attention_type = "original_full"
        for key, value in config.to_dict().items():
            if dropout is not None and "dropout" in key and type(value) in (int, float):
                setattr(config, key, dropout)
        with torch.device("meta"):
            trial = loader.from_config(deepcopy(config), attn_implementation="eager")
        asked = sum(weights.numel() for weights in trial.parameters())
    if asked > (held := sum(file.stat().st_size for file in weight_files(folder))):  # a weight takes a byte or more
        what = f"config.json describes {asked:,} weights, its files have {held:,} bytes"
        raise error(what, where=name, remedy=_AGAIN)
    settings |= {"config": config, "dtype": "float32", "output_loading_info": True, "ignore_mismatched_sizes": True}
    with quiet_transformers(), in_one_line(error, "its weights cannot be loaded", where=name, remedy=_AGAIN):
        model, report = loader.from_pretrained(folder, trust_remote_code=False, **settings, **options)
    for fault in sorted(report["mismatched_keys"]):
        if isinstance(fault, str):  # transformers 4 gives the name alone, without the two shapes
            what = f"{fault} has another shape than config.json describes"
        else:
            what = f"{fault[0]} has the shape {tuple(fault[1])}, config.json describes {tuple(fault[2])}"
        raise error(what, where=name, remedy=_OF_ONE)
    in_any_layer = partial(_in_any_layer, prefix=model.base_model_prefix)
    layers = set(map(in_any_layer, model.state_dict()))
    if further := [key for key in sorted(report["unexpected_keys"]) if in_any_layer(key) in layers]:
        raise error(f"config.json describes fewer layers, none for {further[0]}", where=name, remedy=_OF_ONE)
    return model, [key for key in sorted(report["missing_keys"]) if not load_bias(model, folder, key)]


def _in_any_layer(key: str, prefix: str) -> str:
    """The name of a weight, without the numbers of its layers and without the prefix of a trunk below a head."""
    return re.sub(r"\.\d+\.", ".*.", key.removeprefix(f"{prefix}."))
