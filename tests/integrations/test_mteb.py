import pytest
from hosts import adapter
from refusals import refusal

from pyserini_compneg import decompose
from pyserini_compneg.support.files import iter_jsonl

pytestmark = pytest.mark.slow

CORPUS = [
    {"id": "d1", "title": "", "text": "a spy comedy"},
    {"id": "d2", "title": "Spy", "text": "a drama"},
    {"id": "d3", "title": "", "text": "a western"},
]
QUERIES = {"id": ["q1", "q2"], "text": ["spy films but not comedies", "western"]}


@pytest.fixture(scope="module")
def host():
    """The module for MTEB, whose import takes seconds: not every process that collects tests is to import it."""
    return adapter("mteb", "torch", "transformers")


def nevir(path):
    """MTEB's task with pairs of ours, as it would be after a download."""
    import mteb
    from datasets import Dataset

    task = mteb.get_task("NevIR")
    parts = {"corpus": [], "queries": [], "relevant_docs": {}, "top_ranked": {}}
    for _, pair in iter_jsonl(path):
        docids = [f"{pair['id']}_doc{number}" for number in (1, 2)]
        for number, docid in enumerate(docids, 1):
            qid = f"{pair['id']}_q{number}"
            parts["corpus"].append({"id": docid, "title": "", "text": pair[f"doc{number}"]})
            parts["queries"].append({"id": qid, "text": pair[f"q{number}"]})
            parts["relevant_docs"][qid], parts["top_ranked"][qid] = {docid: 1}, docids
    lists = {name: Dataset.from_list(parts[name]) for name in ("corpus", "queries")}
    task.dataset, task.data_loaded = {"default": {"test": {**parts, **lists}}}, True
    return task


@pytest.fixture
def search(host):
    model = host.CompNegSearch(read=decompose)
    model.index(CORPUS)
    return model


def test_searches(search):
    from mteb.models.models_protocols import SearchProtocol

    assert isinstance(search, SearchProtocol)
    found = search.search(QUERIES, top_k=10)
    assert {qid: list(scores) for qid, scores in found.items()} == {"q1": ["d2", "d1"], "q2": ["d3"]}
    assert found["q1"]["d1"] < found["q1"]["d2"]
    given = search.search(QUERIES, top_k=10, top_ranked={"q1": ["d1", "d3"], "q2": ["d3"]})
    assert given == {"q1": {"d1": found["q1"]["d1"]}, "q2": found["q2"]}
    search.index(CORPUS[2:])  # the next task takes the place of the one before
    assert search.search(QUERIES, top_k=10)["q1"] == {}


def test_refusals(search, host):
    said = "documents:2: document id 'd1' was given at documents:1 already"
    assert refusal(search.index, [CORPUS[0], CORPUS[0]]) == said
    said = "documents:1: the document id 'd 1' has white space, which a TREC run cannot hold"
    assert refusal(search.index, [{**CORPUS[0], "id": "d 1"}]) == said
    said = "no documents to search; call index first"
    assert refusal(host.CompNegSearch().search, QUERIES, top_k=1, error=RuntimeError) == said


def test_nevir(shared_data, host):
    """Pairs whose documents tie, or are not found, are wrong for MTEB as for us, so the figures are the same."""
    import mteb

    found = mteb.evaluate(host.CompNegSearch(), nevir(shared_data / "nevir" / "dev.jsonl"), cache=None)
    assert round(100 * found.task_results[0].scores["test"][0]["paired_accuracy"], 2) == 2.2
