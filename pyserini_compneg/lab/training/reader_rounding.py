"""Rounds the weights of a trained reader to few values, so that an archive needs half as many bytes for them.

The graph stays as it is, and so do its speed and memory. The more the scores of tags depend on a weight, the smaller is
the step between two of its values: it is inversely proportional to the root mean square of the gradients of a matrix.
The gradients of a token's embedding count as often as the token occurs. The weights of a matrix that are rounded later
make up for the errors of those rounded before (Frantar et al. 2023, GPTQ).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyserini_compneg.lab.training.judged_requests import JudgedRequest
from pyserini_compneg.lab.training.reader_training import calibrated
from pyserini_compneg.lab.training.tagger_module import NO_TAG, TaggerModule, batch_of, load_base
from pyserini_compneg.reading import MODEL_FILE, SETTINGS_FILE, TOKENIZER_FILE, ModelReader, words_of, write_settings

STEP, WIDEST = 2.1e-4, 0.43
"""The step of a matrix whose gradients have a root mean square of 1, and the largest step of an embedding, in standard
deviations: chosen for the size of the packaged reader."""

_LARGEST = 118
"""The code of the largest weight. Below 127, since a weight may grow as it makes up for others."""

_POSITION_STEPS = 16
"""Steps in a standard deviation of the embeddings of positions."""

_UNREAD = 2.0
"""The step, in standard deviations, of tokens in no request: tokens without a use, and signs of other scripts."""

_UNSEEN = 0.5
"""The occurrences that are added for each token, since others have words that the requests lack."""

_DAMPING = 0.02
_BATCH = 16
_LONGEST = 256
_EMBEDDINGS, _POSITIONS = "trunk.embeddings.word_embeddings.weight", "trunk.embeddings.position_embeddings.weight"
_WITHOUT_USE = re.compile(r"\[unused\d+\]|(?:##)?[^\x00-\u024f\u2000-\u20cf]+")

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much the scores of tags depend on weights.

    ``squares`` has the mean squared gradient of each matrix for a text, and ``inputs`` the moments of its inputs.
    ``embeddings`` is the mean squared gradient of an embedding for a token.
    """

    squares: dict[str, float]
    inputs: dict[str, Floats]
    embeddings: float


def round_reader(
    reader: Path,
    base: str,
    requests: Sequence[str],
    others: Sequence[str],
    judged: Sequence[JudgedRequest],
    output: Path,
) -> None:
    """Writes a reader with rounded weights, whose confidence is calibrated again on ``judged``.

    ``base`` is the checkpoint from which the reader was trained. ``requests`` are all texts of its training; they tell
    how often a token occurs. The sensitivity is measured on ``others``.
    """
    import onnx

    module, tokenizer = load_base(base)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    module.float().eval()
    model = onnx.load(reader / MODEL_FILE)
    restore(module, model.graph)
    settings = json.loads((reader / SETTINGS_FILE).read_text("utf-8"))
    counts = np.zeros(tokenizer.get_vocab_size())
    for entry in tokenizer.encode_batch(list(requests)):
        counts[list(set(entry.ids))] += 1
    unread = [n for token, n in tokenizer.get_vocab().items() if not counts[n] and _WITHOUT_USE.fullmatch(token)]
    chances = (counts + _UNSEEN) / len(requests)
    chances[unread] = 0
    round_graph(model.graph, module, sensitivity(module, tokenizer, others), chances, settings["max_tokens"])
    output.mkdir(parents=True, exist_ok=True)
    onnx.save(model, output / MODEL_FILE)
    shutil.copyfile(reader / TOKENIZER_FILE, output / TOKENIZER_FILE)
    for derived in ("format_version", "tags", "sha256"):
        del settings[derived]
    write_settings(output, settings | {"calibration": [1.0, 0.0]})
    write_settings(output, settings | {"calibration": calibrated(ModelReader(output), judged)})


def sensitivity(module: TaggerModule, tokenizer: Any, texts: Sequence[str]) -> Sensitivity:
    """Measured with tags drawn from the module's own probabilities, so that the gradients show how these change."""
    draw = torch.Generator().manual_seed(0)
    layers = {f"{name}.weight": layer for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}
    squares = dict.fromkeys(layers, 0.0)
    inputs: dict[str, Any] = {}
    embeddings: list[Any] = []
    read = torch.zeros(0, dtype=torch.bool)

    def keep(_: Any, __: Any, states: Any) -> None:
        states.retain_grad()
        embeddings.append(states)

    def watch(name: str) -> Any:
        def add(_: Any, states: Any) -> None:
            rows = states[0].detach()[read]
            inputs[name] = inputs.get(name, 0) + rows.T @ rows

        return add

    hooks = [module.trunk.embeddings.word_embeddings.register_forward_hook(keep)]
    hooks += [layer.register_forward_pre_hook(watch(name)) for name, layer in layers.items()]
    total, tokens = 0.0, 0
    for start in range(0, len(texts), _BATCH):
        words = [(text, words_of(text)) for text in texts[start : start + _BATCH]]
        arrays, tags = batch_of(tokenizer, [(text, spans, [0] * len(spans)) for text, spans in words], _LONGEST)
        read = arrays[2] > 0
        scores = module(*arrays)[tags != NO_TAG]
        drawn = torch.multinomial(scores.detach().softmax(-1), 1, generator=draw)[:, 0]
        module.zero_grad()
        nn.functional.cross_entropy(scores, drawn, reduction="sum").backward()
        for name, layer in layers.items():
            squares[name] += float(layer.weight.grad.square().mean())
        gradients = embeddings.pop().grad[read]
        total, tokens = total + float(gradients.square().mean(1).sum()), tokens + len(gradients)
    for hook in hooks:
        hook.remove()
    means = {name: square / len(texts) for name, square in squares.items()}
    return Sensitivity(means, {name: sums.numpy() for name, sums in inputs.items()}, total / tokens)


def parameters(graph: Any) -> dict[str, str]:
    """The name of each quantised matrix in an exported graph, by the name of the parameter it was made from."""
    users = {name: node for node in graph.node for name in node.input}
    found = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            last = node
            while last.op_type != "Add":  # the sum with the bias, whose name was kept
                last = users[last.output[0]]
            bias = next(name for name in last.input if name.endswith(".bias"))
            found[f"{bias.removesuffix('bias')}weight"] = node.input[1]
    return found


def restore(module: TaggerModule, graph: Any) -> None:
    """Gives a module the weights of an exported graph."""
    from onnx import numpy_helper

    tensors = {entry.name: numpy_helper.to_array(entry) for entry in graph.initializer}
    weights = {name: tensors[name] for name in module.state_dict() if name in tensors}
    for name, quantised in parameters(graph).items():
        weights[name] = (tensors[quantised] * tensors[_scale(quantised)]).T
    weights[_EMBEDDINGS] = tensors[f"{_EMBEDDINGS}_int8"] * tensors[f"{_EMBEDDINGS}_scales"][:, None]
    module.load_state_dict({name: torch.tensor(array.astype(np.float32)) for name, array in weights.items()})


def round_graph(
    graph: Any, module: TaggerModule, found: Sensitivity, chances: NDArray[np.float64], most_tokens: int
) -> None:
    """Replaces the weights of a graph that was exported from the module. The last matrix, which scores tags, stays.

    ``chances`` are the shares of texts in which each token occurs, and 0 for a token that no text has. Positions from
    ``most_tokens`` on are not used.
    """
    from onnx import numpy_helper

    tensors = {entry.name: entry for entry in graph.initializer}
    values = {name: value.numpy() for name, value in module.state_dict().items()}

    def put(name: str, array: NDArray[Any]) -> None:
        tensors[name].CopyFrom(numpy_helper.from_array(array, name))

    for name, quantised in parameters(graph).items():
        if name.startswith("head."):
            continue
        weights = values[name].T
        deviations = weights.std(0)
        steps = deviations / deviations.mean() * STEP / found.squares[name] ** 0.5
        steps = _short(np.maximum(steps, np.abs(weights).max(0) / _LARGEST))
        put(quantised, compensated(weights, steps, found.inputs[name]))
        put(_scale(quantised), steps)
    table = values[_EMBEDDINGS]
    deviations = table.std(1)
    steps = STEP / np.sqrt(np.maximum(chances, 1e-12) * found.embeddings)
    steps = np.clip(steps, np.abs(table).max(1) / _LARGEST, WIDEST * deviations)
    steps = _short(np.where(chances > 0, steps, _UNREAD * deviations))
    steps[steps == 0] = 1
    put(f"{_EMBEDDINGS}_int8", np.rint(table / steps[:, None]).astype(np.int8))
    put(f"{_EMBEDDINGS}_scales", steps)
    positions = values[_POSITIONS].copy()
    positions[most_tokens:] = 0
    step = 2 ** np.floor(np.log2(positions[:most_tokens].std() / _POSITION_STEPS))
    put(_POSITIONS, (np.rint(positions / step) * step).astype(np.float32))


def compensated(weights: Floats, steps: Floats, moment: Floats) -> NDArray[np.int8]:
    """The rounded matrix (inputs, outputs). Its rows are rounded one after the other, the most active one first."""
    order = np.argsort(-np.diag(moment))
    damped = moment[np.ix_(order, order)].astype(np.float64)
    damped[np.diag_indices_from(damped)] += _DAMPING * np.diag(damped).mean()
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T.astype(np.float32)
    rest, codes = weights[order], np.empty(weights.shape, np.int8)
    for row, target in enumerate(order):
        codes[target] = np.clip(np.rint(rest[row] / steps), -127, 127)
        error = (rest[row] - codes[target] * steps) / factor[row, row]
        rest[row + 1 :] -= np.outer(factor[row, row + 1 :], error)
    return codes


def _short(steps: NDArray[Any]) -> Floats:
    """Steps with three bits of a mantissa, so that they take little space, too."""
    bits = steps.astype(np.float32).view(np.uint32)
    return ((bits + 0x80000) & 0xFFF00000).astype(np.uint32).view(np.float32)


def _scale(quantised: str) -> str:
    return f"{quantised.removesuffix('_quantized')}_scale"
