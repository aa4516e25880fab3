"""BM25 as sparse vectors: impacts of documents and weights of queries whose dot product is BM25's score.

score = Σ idf(t) · tf / (tf + k1 · (1 − b + b · length / average length)). The fraction, in (0, 1), is the document's
weight for t; idf is the query's weight. With Anserini's analysis and parameters (k1 0.9, b 0.4) an impact index
of these weights ranks like Anserini's BM25, except that Lucene rounds document lengths to one byte and this package
does not. Rounding impacts and query weights has almost no effect.

Source: Robertson and Zaragoza 2009, with Lucene's idf, which is never negative.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from pyserini_compneg.documents.collection import CollectionPart, iter_collection_blocks
from pyserini_compneg.documents.passages import passage_texts
from pyserini_compneg.documents.source_documents import text_documents
from pyserini_compneg.encode.models.options import checked_ablation
from pyserini_compneg.lucene import ENGLISH, Reader, analysis_settings, analyze, analyze_spans, checked_language
from pyserini_compneg.support.errors import EncodingError, InputError
from pyserini_compneg.support.progress import progress
from pyserini_compneg.support.vectors import TermSpan, is_number

K1 = 0.9
B = 0.4
IMPACT_SCALE = 256.0
_NONE: Mapping[str, int] = MappingProxyType({})


class Bm25DocumentEncoder:
    """The document side of BM25.

    Args:
        average_length: The mean number of terms in a document, over documents with at least one term; see
            :func:`term_counts`.
        k1: Saturation of the term frequency.
        b: Strength of the length normalisation, 0 to 1.
        language: The language of the texts, one of :data:`~pyserini_compneg.lucene.LANGUAGES`.

    Attributes:
        settings: The parameters, for the index's manifest.
        terms: The number of terms in the texts encoded so far.
        documents: The number of these texts that have a term.

    Raises:
        ArgumentError: The language is unknown.
        EncodingError: A parameter is out of range.
    """

    impact_scale = IMPACT_SCALE
    signed = False
    most_lines: int | None = None
    query_tokenizer = None
    concepts = None

    def __init__(self, average_length: float, k1: float = K1, b: float = B, language: str = ENGLISH) -> None:
        if not is_number(k1) or not 0 <= k1 < math.inf:
            raise EncodingError(f"k1 must be a finite number, 0 or more, got {k1!r}")
        if not is_number(b) or not 0 <= b <= 1:
            raise EncodingError(f"b must be a number from 0 to 1, got {b!r}")
        self.average_length = average_length
        self.k1 = k1
        self.b = b
        self.language = checked_language(language)
        parameters: dict[str, float | int | str] = {"k1": k1, "b": b, "average_length": average_length}
        self.settings: Mapping[str, float | int | str] = parameters | analysis_settings(language)
        self.terms = self.documents = 0

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        return map(self.encode_batch, batches)

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The weights, in (0, 1), of the terms of each text. A text without terms has an empty vector."""
        analysed = analyze(texts, self.language)
        self.terms += sum(map(len, analysed))
        self.documents += sum(map(bool, analysed))
        return [self._weights(Counter(terms), len(terms)) for terms in analysed]

    def _weights(self, frequencies: Counter[str], length: int) -> dict[str, float]:
        norm = self.k1 * (1 - self.b + self.b * length / self.average_length)
        return {term: frequency / (frequency + norm) for term, frequency in frequencies.items()}


class Bm25QueryEncoder:
    """The query side of BM25: idf times the term's frequency in the query. Terms without documents are left out.

    Args:
        reader: The index whose document frequencies give the idf.
        ablation: One of ``ABLATIONS``. BM25 does not expand queries, so an ablation can only remove the weights.
        language: The language of the index's texts.

    Raises:
        EncodingError: The ablation is unknown.
    """

    def __init__(self, reader: Reader, ablation: str | None = None, language: str = ENGLISH) -> None:
        self._reader, self._language = reader, language
        self._weighs = checked_ablation(ablation) in ("none", "no-expansion")

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The weights, above 0, of the terms of each text. A text without known terms has an empty vector."""
        analysed = [Counter(terms) for terms in analyze(texts, self._language)]
        vocabulary = sorted(set().union(*analysed))
        documents = self._reader.field_document_count
        idf = {
            term: lucene_idf(frequency, documents)
            for term, frequency in zip(vocabulary, self._reader.document_frequencies(vocabulary), strict=True)
            if frequency
        }
        if not self._weighs:
            return [{term: 1.0 for term in terms if term in idf} for terms in analysed]
        return [{term: count * idf[term] for term, count in terms.items() if term in idf} for terms in analysed]

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        return analyze(texts, self._language)

    def term_spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        return analyze_spans(texts, self._language)


def lucene_idf(document_frequency: int, documents: int) -> float:
    """Lucene's idf, above 0 for any frequency.

    >>> round(lucene_idf(1, 2), 4)
    0.6931
    """
    return math.log(1 + (documents - document_frequency + 0.5) / (document_frequency + 0.5))


def mean_length(counts: Iterable[tuple[int, int]]) -> float:
    """The mean document length of a collection, from (terms, documents) of its parts, however it is divided.

    >>> mean_length([(10, 2), (5, 1)])
    5.0
    """
    terms, documents = map(sum, zip(*counts, strict=True))
    return terms / documents if documents else 1.0


def count_terms(
    part: CollectionPart,
    fields: Sequence[str] | None = None,
    skip: bool = False,
    language: str = ENGLISH,
    passages: Mapping[str, int] = _NONE,
) -> tuple[int, int]:
    """The numbers of terms and of documents, or passages, with terms in a part. ``skip`` leaves out bad documents."""
    terms = documents = 0
    with progress(None, None, " docs", "counting terms") as bar:
        for block in iter_collection_blocks(part):
            documents_read, problems = text_documents(block, fields)
            if problems and not skip:
                raise InputError(problems[0])
            texts = [text for document in documents_read.values() for text in passage_texts(document, passages, fields)]
            counts = term_counts(texts, language)
            terms += sum(counts)
            documents += sum(count > 0 for count in counts)
            bar.update(len(documents_read))
    return terms, documents


def term_counts(texts: Sequence[str], language: str = ENGLISH) -> list[int]:
    """The number of terms in each text after analysis, for the average length."""
    return [len(terms) for terms in analyze(texts, language)]
