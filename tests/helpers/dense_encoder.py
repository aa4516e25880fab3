"""A dense encoder without a model, and what its vectors have to rank."""

import zlib

import numpy as np


class StandInDenseEncoder:
    """Shaped like ``DenseEncoder``: each text has a random direction of its own, or one that a test gives it."""

    dimensions = 8

    def __init__(self, **vectors):
        self.model_hash = "0123456789abcdef"
        self.vectors = {text: np.asarray(vector, np.float32) for text, vector in vectors.items()}
        self.batches = []

    def encode_queries(self, texts):
        self.batches.append(list(texts))
        return np.array([self._vector(text) for text in texts], np.float32)

    encode_documents = encode_queries

    def _vector(self, text):
        return self.vectors[text] if text in self.vectors else direction(text, self.dimensions)


def direction(text, dimensions=8):
    """A random vector of length 1, the same for the same text."""
    vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=dimensions)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def projection_score(document, vectors):
    """(1 + length of the document's projection on the span) / 2, by least squares."""
    plane = np.array(vectors, np.float64).T
    weights = np.linalg.lstsq(plane, np.asarray(document, np.float64), rcond=1e-6)[0]
    return (1 + np.linalg.norm(plane @ weights)) / 2
