"""Compare a text as one whole with its reading as an expression, in PyTerrier: a table with a significance test.

python examples/pyterrier_experiment.py, or cell by cell in an editor that knows notebooks.
"""

# %% The judged topics of the sample, and an index of its film leads
import gzip
import json
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyterrier as pt
from pyterrier.measures import R, nDCG

from pyserini_compneg.integrations.pyterrier import CompNegIndex, Decompose
from pyserini_compneg.reading import undivided

SAMPLE = Path(str(files("pyserini_compneg") / "resources" / "sample"))
queries = [json.loads(line) for line in (SAMPLE / "queries.jsonl").open()]
topics = pd.DataFrame([{"qid": query["qid"], "query": query["query"]} for query in queries])
relevant = [(query["qid"], docid, 1) for query in queries for docid in query["docs"]]
qrels = pd.DataFrame(relevant, columns=["qid", "docno", "label"])

folder = TemporaryDirectory()
with gzip.open(SAMPLE / "documents.jsonl.gz", "rt") as lines:
    films = [json.loads(line) for line in lines]
index = CompNegIndex(f"{folder.name}/films").index({**film, "docno": film["docid"]} for film in films)

# %% BM25 of the text as it is; the same index asked with what is wanted and what is not; and only the ten best of that
retriever = index.retriever()
plain = Decompose(undivided) >> retriever
composed = Decompose() >> retriever
first_page = (composed % 10).compile()  # fused: only ten documents are searched

# %%
table = pt.Experiment(
    [plain, composed, first_page],
    topics,
    qrels,
    [nDCG @ 10, R @ 100],
    names=["plain BM25", "composed", "composed % 10"],
    baseline=0,
)
print(table.round(4).to_string())
folder.cleanup()
