"""An encoder for tests, with the vectors that a test gives it."""


class LookupEncoder:
    """An encoder that looks up, and remembers what it was asked. All terms are words; other texts have none."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.batches = []

    def encode(self, text):
        return dict(self.vectors.get(text, {}))

    def encode_batch(self, texts):
        self.batches.append(list(texts))
        return [self.encode(text) for text in texts]

    def words(self, texts):
        return [list(self.encode(text)) for text in texts]


def letters(**vectors):
    """Vectors by atom: ``a="xy"`` has the terms x and y with weight 1."""
    return {name: dict.fromkeys(terms, 1.0) for name, terms in vectors.items()}
