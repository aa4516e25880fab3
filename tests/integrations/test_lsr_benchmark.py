"""What benchmarks/lsr does with embeddings, without lsr-benchmark, which only loads them."""

import gzip
import runpy
from pathlib import Path

import numpy as np
import pytest

approach = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "lsr" / "compneg_retrieval.py"))


def embeddings(prefix, weights):
    """The rows of a matrix as lsr-benchmark loads them, with tokens as texts."""
    found = [(f"{prefix}{number:03}", row, row.nonzero()[0]) for number, row in enumerate(weights)]
    return [(name, terms.astype("U30"), row[terms]) for name, row, terms in found]


def sparse(rng, rows, share):
    weights = rng.lognormal(0, 0.7, (rows, 60)) * (rng.random((rows, 60)) < share)
    return weights.astype(np.float32)


@pytest.mark.parametrize("scale, reorder", [(100, True), (100, False), (3, True)])
def test_a_run_has_the_best_documents_of_a_full_scan(tmp_path, scale, reorder):
    rng = np.random.default_rng(7)
    documents, queries = sparse(rng, 300, 0.2), sparse(rng, 12, 0.1)
    queries[5] = 0
    approach["build_index"](tmp_path / "index", "model", embeddings("d", documents), scale, reorder)
    rankings = approach["search"](tmp_path / "index", embeddings("q", queries), 10)
    approach["write_rankings"](tmp_path / "run.txt.gz", [f"q{i:03}" for i in range(12)], rankings, "ours")

    exact = queries.astype(float) @ documents.T.astype(float)
    rounded = queries.astype(float) @ np.rint(documents.T.astype(float) * scale) / scale
    furthest = 0.5 / scale * queries.sum(axis=1) + 1e-4
    lines = iter(gzip.decompress((tmp_path / "run.txt.gz").read_bytes()).decode().splitlines())
    for query in range(12):
        best = [doc for doc in np.argsort(-rounded[query], kind="stable")[:10] if rounded[query, doc] > 0]
        assert len(best) == (0 if query == 5 else 10)
        for rank, doc in enumerate(best, 1):
            *said, score, tag = next(lines).split()
            assert (*said, tag) == (f"q{query:03}", "Q0", f"d{doc:03}", str(rank), "ours")
            assert float(score) == pytest.approx(rounded[query, doc], abs=1e-4)
            assert abs(float(score) - exact[query, doc]) <= furthest[query]
    assert next(lines, None) is None
