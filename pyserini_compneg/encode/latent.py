"""Latent terms as sparse vectors: BM25's saturation for documents, idf for queries.

score = Σ a_q(l) · idf(l) · w(l), over the latents l of a query, with their activations a_q. The weight in a document is
BM25's fraction, with an activation in the place of a term's frequency, and the number of latents in that of the length:
w = a / (a + k1 · (1 − b + b · latents / mean latents)). It is stored in few levels, as small impacts, because presence
alone is nearly enough. The mean is that of the training's texts, so a document's weights depend on no other document.

Source: Clavié, Lee, Shakir and Kato, Latent Terms, arXiv 2605.29384.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pyserini_compneg.compose import QueryEncoder
from pyserini_compneg.encode.bm25 import IMPACT_SCALE, lucene_idf
from pyserini_compneg.encode.models.latents import LatentHead
from pyserini_compneg.encode.models.options import checked_ablation
from pyserini_compneg.encode.neural import ModelDocumentEncoder
from pyserini_compneg.lucene import Reader
from pyserini_compneg.support.vectors import TermSpan


class LatentDocumentEncoder:
    """The document side of a latent model. With BM25's impact scale its impacts are the levels, from 1.

    The vectors of ``model`` are activations; ``concepts`` has the name of each latent.
    """

    impact_scale = IMPACT_SCALE
    signed = False
    query_tokenizer = None

    def __init__(self, model: ModelDocumentEncoder, head: LatentHead, concepts: Sequence[str]) -> None:
        self._model, self._head, self.concepts = model, head, concepts
        self.most_lines, self.settings = model.most_lines, model.settings

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        for vectors in self._model.stream(batches):
            yield [saturated(vector, self._head) for vector in vectors]


def saturated(activations: Mapping[str, float], head: LatentHead) -> dict[str, float]:
    """The weights of a document's latents: their levels, in the unit of BM25's impacts.

    >>> weights = saturated({"~0": 1.0, "~7": 0.1}, LatentHead(8, 2, mean_latents=2.0, levels=15))
    >>> {latent: weight * IMPACT_SCALE for latent, weight in weights.items()}
    {'~0': 12.0, '~7': 4.0}
    """
    norm = head.k1 * (1 - head.b + head.b * len(activations) / head.mean_latents)
    return {
        latent: max(1, round(head.levels * value / (value + norm))) / IMPACT_SCALE
        for latent, value in activations.items()
    }


class LatentQueryEncoder:
    """The query side of a latent model: activation times idf, by the index. Latents without documents are left out.

    With the ablation ``no-weighting``, which ``model`` has, too, there is no idf, so all weights are equal.
    """

    def __init__(self, model: QueryEncoder, head: LatentHead, reader: Reader, ablation: str | None = None) -> None:
        self._model, self._reader = model, reader
        self._weighs = checked_ablation(ablation) == "none"
        self._unit = IMPACT_SCALE / head.levels

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The weights, above 0, of the latents of each text."""
        vectors = self._model.encode_batch(texts)
        latents = sorted(set().union(*vectors))
        documents = self._reader.field_document_count
        idf = {
            latent: self._unit * (lucene_idf(frequency, documents) if self._weighs else 1.0)
            for latent, frequency in zip(latents, self._reader.document_frequencies(latents), strict=True)
            if frequency
        }
        return [
            {latent: value * idf[latent] for latent, value in vector.items() if latent in idf} for vector in vectors
        ]

    def words(self, texts: Sequence[str]) -> Sequence[Collection[str] | None]:
        """None for each text: latents are concepts, not words."""
        return [None] * len(texts)

    def term_spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        """Nothing: a latent has no place in a text."""
        return [[] for _ in texts]
