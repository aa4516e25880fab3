"""Time and memory of a training step with the sliced head and with the plain head, which has the same loss.

    python benchmarks/sliced_head.py [--pairs 24] [--max-length 128] [--steps 3] [--heads relu:max snrelu:sum:4]

A step is that of a contrastive training: queries and documents through the trunk of all-MiniLM-L6-v2 with a new head
of 30,522 terms, scores of all queries with all documents, FLOPS, and the gradients of all weights. There is no dropout,
so both heads compute the same. The plain head makes all logits, masks them with -inf (for the minimum with +inf), and
leaves the gradient to autograd. Each head has a process of its own, because the memory is that of the process. The time
is CPU time, so that one thread (OMP_NUM_THREADS=1) can be measured while other programs run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from checkpoints import trunk_folder
from encode import SAMPLE, read_texts
from measuring import in_child, peak_bytes
from reporting import megabytes, table, write_json
from torch import Tensor

from pyserini_compneg.commands.running import run_main
from pyserini_compneg.encode.models import Head
from pyserini_compneg.encode.networks.pooling import activated
from pyserini_compneg.lab.training import encoder_module
from pyserini_compneg.lab.training.bases import load_base
from pyserini_compneg.lab.training.fine_tuning import AbsoluteFlops
from pyserini_compneg.support.options import COUNT

SIDES = ("plain", "sliced")
LARGEST_DIFFERENCE = 1e-5
_FLOPS_WEIGHT = 1e-3


def plain_pooled(hidden: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, head: Head, own: Tensor | None) -> Tensor:
    """The vectors, computed from all logits."""
    logits, padding = torch.nn.functional.linear(hidden, weight, bias), mask[:, :, None] == 0
    highest = logits.masked_fill(padding, -torch.inf).amax(1)
    positive = activated(highest if own is None else torch.maximum(highest, own), head)
    if not head.signed:
        return positive
    negative = activated(-logits.masked_fill(padding, torch.inf).amin(1), head)
    return positive - negative if head.pooling == "sum" else torch.where(positive >= negative, positive, -negative)


def steps(side: str, head: str, pairs: int, max_length: int, number: int) -> dict[str, Any]:
    """The losses, the seconds and the memory of some steps."""
    if side == "plain":
        encoder_module.sliced_pooled = plain_pooled
    torch.manual_seed(0)
    chosen = Head.parse(head)
    module = encoder_module.EncoderModule(
        load_base(trunk_folder(), "all-MiniLM-L6-v2", chosen), chosen, max_length, None
    ).eval()
    documents = read_texts(SAMPLE, pairs)
    sides = [module.preprocess([" ".join(text.split()[:8]) for text in documents]), module.preprocess(documents)]
    before, flops = peak_bytes(), AbsoluteFlops()
    losses, taken = [], []
    for _ in range(number):
        start = time.process_time()
        queries, texts = (module(dict(features))["sentence_embedding"] for features in sides)
        loss = torch.nn.functional.cross_entropy(queries @ texts.T, torch.arange(pairs))
        loss = loss + _FLOPS_WEIGHT * sum(map(flops.compute_loss_from_embeddings, (queries, texts)))
        module.zero_grad()
        loss.backward()
        taken.append(time.process_time() - start)
        losses.append(loss.item())
    gradient = (
        sum(weight.grad.square().sum().item() for weight in module.parameters() if weight.grad is not None) ** 0.5
    )
    return {"loss": losses[0], "gradient": gradient, "seconds": float(np.median(taken)), "bytes": peak_bytes() - before}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    results: dict[str, Any] = {"pairs": args.pairs, "max_length": args.max_length, "threads": torch.get_num_threads()}
    rows = []
    for head in args.heads:
        measured = {side: in_child(steps, side, head, args.pairs, args.max_length, args.steps) for side in SIDES}
        difference = abs(measured["plain"]["loss"] - measured["sliced"]["loss"]) / abs(measured["plain"]["loss"])
        assert difference < LARGEST_DIFFERENCE, f"{head}: the losses differ by {difference:.1e}"
        results[head] = measured
        for side in SIDES:
            values = measured[side]
            shown = [f"{values['loss']:.6f}", f"{values['gradient']:.4f}", f"{values['seconds']:.2f}"]
            rows.append([f"{head}, {side}", *shown, megabytes(values["bytes"])])
    print(table(["head", "loss", "norm of gradient", "CPU seconds a step", "memory of the steps"], rows))
    print(write_json("sliced_head.json", results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=COUNT, default=24)
    parser.add_argument("--max-length", type=COUNT, default=128)
    parser.add_argument("--steps", type=COUNT, default=3)
    parser.add_argument("--heads", nargs="+", default=["relu:max", "snrelu:sum:4"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
