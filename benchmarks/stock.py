"""Stock Anserini and Lucene, to be compared with: how they index, and how they search positive queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pyserini_compneg.lucene import java_class
from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.java_home import find_java


def index_command(collection: Path, index: Path, threads: int) -> list[str]:
    """What Pyserini's documentation says to run for an impact index of vectors, without Pyserini."""
    java = [str(find_java().home / "bin" / "java"), "-cp", str(anserini_jar()), "io.anserini.index.IndexCollection"]
    options = f"-collection JsonVectorCollection -generator DefaultLuceneDocumentGenerator -threads {threads}"
    return [*java, *options.split(), "-input", str(collection), "-index", str(index), "-impact", "-pretokenized"]


def impact_searches(index: Path, queries: Sequence[Mapping[str, int]], k: int) -> Iterator[list[tuple[str, float]]]:
    """What Anserini's ``SimpleImpactSearcher`` finds for each query, as ids and scores."""
    searcher = java_class("io.anserini.search.SimpleImpactSearcher")(str(index))
    for weights in queries:
        yield [(hit.docid, hit.score) for hit in searcher.search(_java_map(weights), k)]
    searcher.close()


def _java_map(weights: Mapping[str, int]) -> object:
    encoded = java_class("java.util.HashMap")()
    for term, weight in weights.items():
        encoded.put(term, java_class("java.lang.Integer")(weight))
    return encoded


class StockSearcher:
    """Lucene's own search, and Anserini's."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        directory = java_class("org.apache.lucene.store.FSDirectory").open(
            java_class("java.nio.file.Paths").get(self.folder)
        )
        from jnius import cast  # starts Java, so it comes after the first class of the gate

        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
        self.searcher = java_class("org.apache.lucene.search.IndexSearcher")(
            cast("org.apache.lucene.index.IndexReader", reader)
        )
        self.searcher.setSimilarity(java_class("io.anserini.search.similarity.ImpactSimilarity")())

    def lucene(self, weights: Mapping[str, int], k: int) -> Callable[[], object]:
        """A search by Lucene, ready to run."""
        builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
        should = java_class("org.apache.lucene.search.BooleanClause$Occur").SHOULD
        for term, weight in weights.items():
            query = java_class("org.apache.lucene.search.TermQuery")(
                java_class("org.apache.lucene.index.Term")("contents", term)
            )
            builder.add(java_class("org.apache.lucene.search.BoostQuery")(query, float(weight)), should)
        built = builder.build()
        return lambda: self.searcher.search(built, k)

    def composed(self, line: str, k: int) -> Callable[[], object]:
        """A composed query in Lucene's search, sorted as ``SearchCollection`` sorts, ready to run."""
        built = java_class("io.compneg.ComposedQuery")("contents", line)
        sort = java_class("io.anserini.search.SearchCollection").BREAK_SCORE_TIES_BY_DOCID
        return lambda: self.searcher.search(built, k, sort, True)

    def anserini(self, weights: Mapping[str, int], k: int) -> Callable[[], object]:
        """A search by Anserini, ready to run."""
        searcher = java_class("io.anserini.search.SimpleImpactSearcher")(self.folder)
        encoded = _java_map(weights)
        return lambda: searcher.search(encoded, k)
