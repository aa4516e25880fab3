"""Heads turn the logits of a masked language model into one sparse vector for each text."""

from __future__ import annotations

from dataclasses import dataclass

from pyserini_compneg.support.arguments import finite_number
from pyserini_compneg.support.errors import EncodingError

_POOLINGS_OF = {"relu": ("max", "sum"), "log1p_relu": ("max", "sum"), "snrelu": ("absmax", "sum")}
ACTIVATIONS = tuple(_POOLINGS_OF)


@dataclass(frozen=True, slots=True)
class Head:
    """The activation of logits and their pooling over the tokens of a text, with the names of sentence-transformers.

    | activation | pooling | weight of term j, of logits out_ij of the tokens i |
    |---|---|---|
    | ``relu`` | ``max`` | max_i log(1 + ReLU(out_ij)), SPLADE-max, Krasakis et al., Eq. 2 |
    | ``relu`` | ``sum`` | Σ_i log(1 + ReLU(out_ij)), the first SPLADE |
    | ``log1p_relu`` | either | the same with log(1 + log(1 + ReLU(out_ij))), as in OpenSearch's models |
    | ``snrelu`` | ``absmax`` | the activation with the largest absolute value, Eq. 12 |
    | ``snrelu`` | ``sum`` | the largest positive plus the smallest negative one, Eq. 13 |

    SNReLU, Eq. 11, is implemented as the symmetrical function that the paper describes and draws in Figure 2: log(1 +
    ReLU(out − ε)) and −log(1 + ReLU(−out − ε)). The printed equation has +ε in the second case.

    Attributes:
        activation: One of ``ACTIVATIONS``.
        pooling: A pooling that fits the activation.
        epsilon: Half the width of SNReLU's dead zone, 0 or more, in the unit of logits.

    Raises:
        EncodingError: The combination is unknown or impossible.
    """

    activation: str = "relu"
    pooling: str = "max"
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise EncodingError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}")
        fitting = _POOLINGS_OF[self.activation]
        if self.pooling not in fitting:
            raise EncodingError(f"{self.activation} is pooled by {' or '.join(fitting)}, got {self.pooling!r}")
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, (int, float)):
            raise EncodingError(f"epsilon must be a number, got {self.epsilon!r}")
        if not 0 <= self.epsilon < float("inf") or (self.epsilon and not self.signed):
            raise EncodingError(f"epsilon must be 0 or more, and is for snrelu only, got {self.epsilon!r}")

    @classmethod
    def parse(cls, text: str) -> Head:
        """Parses ``activation:pooling`` or ``activation:pooling:epsilon``.

        Raises:
            EncodingError: There is no such head.

        >>> str(Head.parse("snrelu:absmax:0.1")), str(Head.parse("relu"))
        ('snrelu:absmax:0.1', 'relu:max')
        """
        activation, *rest = text.split(":", 2)
        pooling, epsilon = (*rest, *("max", "0")[len(rest) :])
        try:
            if (value := finite_number(epsilon)) is None:
                raise EncodingError(f"epsilon must be a number, got {epsilon!r}")
            return cls(activation, pooling, value)
        except EncodingError as cause:
            raise EncodingError(f"head {text!r}: {cause}") from None

    def __str__(self) -> str:
        return f"{self.activation}:{self.pooling}" + (f":{self.epsilon:g}" if self.epsilon else "")

    @property
    def signed(self) -> bool:
        """Whether weights may be negative."""
        return self.activation == "snrelu"
