"""Index a collection, search it with AND, OR and NOT, and see why a document is where it is.

python examples/search_films.py
"""

from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from pyserini_compneg import SignedImpactSearcher, build_index

SAMPLE = Path(str(files("pyserini_compneg") / "resources" / "sample" / "documents.jsonl.gz"))  # 4,000 film leads
QUERY = "1940s war films AND spy films NOT thriller films"

with TemporaryDirectory() as folder:
    index = Path(folder) / "films"
    build_index(SAMPLE, index, store_raw=True)
    with SignedImpactSearcher(index) as searcher:
        hits = searcher.search(QUERY, k=5)
        for rank, hit in enumerate(hits, 1):
            print(rank, hit.docid, hit.score)
        explanation = searcher.explain(QUERY, hits[0].docid)
        print("pulled up by  ", [part.term for part in explanation.pulled_up()][:5])
        print("pushed down by", [part.term for part in explanation.pushed_down()][:5])
