"""Small indexes of vectors, with the pairs of their documents, or with signed documents."""

import math
from itertools import combinations_with_replacement

from json_lines import write_jsonl

from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.support.vectors import PAIR_SCALE, pair_term, positive_part, top_terms


def document_pairs(vector, top):
    """D ⊗ D, Eq. 7: the pseudo-terms of a document's ``top`` heaviest terms; the other terms have no pair.

    >>> document_pairs({"birds": 4.0, "colombia": 9.0}, top=5)
    {'colombia': 9.0, 'birds∩colombia': 6.0, 'birds': 4.0}
    """
    terms = top_terms(positive_part(vector), top)
    return {
        pair_term(s, t): terms[s] if s == t else math.sqrt(terms[s] * terms[t])
        for s, t in combinations_with_replacement(terms, 2)
    }


def stored_pairs(vector, top, scale=PAIR_SCALE):
    """The impacts of a document's pairs in an index, rounded."""
    return {pair: round(scale * impact) for pair, impact in document_pairs(vector, top).items() if pair not in vector}


def with_pairs(documents, top, scale=PAIR_SCALE):
    """What an index holds of documents: their terms, and the pairs of their heaviest."""
    return {docid: impacts | stored_pairs(impacts, top, scale) for docid, impacts in documents.items()}


def write(folder, documents, **options):
    """An index of the documents."""
    with ImpactIndexer(folder, "letters", **options) as indexer:
        for docid, vector in documents.items():
            indexer.add(docid, vector)
    return folder


def write_atoms(path, vectors):
    """A file of encoded atoms."""
    lines = ({"text": text, "vector": vector, "encoder": "letters"} for text, vector in vectors.items())
    return write_jsonl(path, *lines)
