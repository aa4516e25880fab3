import pytest
from json_lines import write_jsonl

from pyserini_compneg import SignedImpactSearcher, build_index
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.eval.measures import evaluate, mean, parse_measures
from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.expression import Atom
from pyserini_compneg.support.files import iter_jsonl

pytestmark = pytest.mark.slow  # two exports and two indexes of a trained model


@pytest.fixture(scope="module")
def qrels(shared_data):
    """Those of every fourth claim."""
    return dict(list(read_qrels(shared_data / "scifact" / "qrels" / "test.tsv").items())[::4])


@pytest.fixture(scope="module")
def rankings(splade_tiny, shared_data, qrels, tmp_path_factory):
    """The ten best documents of each claim, by precision; of those that are judged and as many others."""
    folder, data = tmp_path_factory.mktemp("scifact"), shared_data / "scifact"
    judged = {docid for documents in qrels.values() for docid in documents}
    corpus = [record for _, record in iter_jsonl(data / "corpus.jsonl.gz")]
    part = [record for number, record in enumerate(corpus) if record["_id"] in judged or number % 60 == 0]
    collection = write_jsonl(folder / "part.jsonl", *part)
    claims = {record["_id"]: Atom(record["text"]) for _, record in iter_jsonl(data / "queries.jsonl")}
    found = {}
    for precision in ("fp32", "int8"):
        build_index(collection, folder / precision, str(splade_tiny), model_options=ModelOptions(precision=precision))
        with SignedImpactSearcher(folder / precision) as searcher:
            hits = searcher.batch_search([claims[qid] for qid in qrels], list(qrels), k=10)
        found[precision] = {qid: {hit.docid: hit.score for hit in best} for qid, best in hits.items()}
    return found


def test_int8_ranks_as_fp32_does(rankings, qrels):
    measures = parse_measures(["nDCG@10"])
    fp32, int8 = (mean(evaluate(qrels, run, measures), measures[0], list(qrels)) for run in rankings.values())
    assert fp32 > 0.7
    assert abs(int8 - fp32) < 0.01
    shares = [len(best.keys() & rankings["int8"][qid].keys()) / len(best) for qid, best in rankings["fp32"].items()]
    assert sum(shares) / len(shares) > 0.95
