"""Heads of models by the equations of Krasakis et al., with loops over plain numbers."""

import math

from pyserini_compneg.encode.models import Head

HEADS = [
    Head("relu", "max"),
    Head("relu", "sum"),
    Head("log1p_relu", "max"),
    Head("log1p_relu", "sum"),
    Head("snrelu", "absmax"),
    Head("snrelu", "absmax", 0.5),
    Head("snrelu", "sum"),
    Head("snrelu", "sum", 0.5),
]


def term_weight(logits, head):
    """The weight of one term, from its logits at the tokens of a text."""

    def positive(x):
        value = math.log(1 + max(0.0, x - head.epsilon))
        return math.log(1 + value) if head.activation == "log1p_relu" else value

    activated = [positive(x) - positive(-x) if head.signed else positive(x) for x in logits]
    if head.pooling == "max":
        return max(activated)
    if head.pooling == "absmax":
        return max(activated, key=lambda value: (abs(value), value))
    if head.signed:
        return max([0.0, *activated]) + min([0.0, *activated])
    return sum(activated)
