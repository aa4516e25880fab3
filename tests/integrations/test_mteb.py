import pytest
from hosts import adapter
from refusals import refusal

from pyserini_compneg import decompose, parse
from pyserini_compneg.support.errors import InputError, QueryError
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


def filled(name, queries, corpus, relevant, top_ranked=None):
    """A task of MTEB as it would be after a download."""
    import mteb
    from datasets import Dataset

    task = mteb.get_task(name)
    (split,) = task.metadata.eval_splits
    parts = {"corpus": Dataset.from_list(corpus), "queries": Dataset.from_list(queries)}
    parts |= {"relevant_docs": relevant, "top_ranked": top_ranked}
    task.dataset, task.data_loaded = {"default": {split: parts}}, True
    return task


def figures(model, task):
    import mteb

    (scores,) = mteb.evaluate(model, task, cache=None).task_results[0].scores.values()
    return scores[0]


def nevir(path):
    """MTEB's task with pairs of ours."""
    corpus, queries, relevant, given = [], [], {}, {}
    for _, pair in iter_jsonl(path):
        docids = [f"{pair['id']}_doc{number}" for number in (1, 2)]
        for number, docid in enumerate(docids, 1):
            qid = f"{pair['id']}_q{number}"
            corpus.append({"id": docid, "title": "", "text": pair[f"doc{number}"]})
            queries.append({"id": qid, "text": pair[f"q{number}"]})
            relevant[qid], given[qid] = {docid: 1}, docids
    return filled("NevIR", queries, corpus, relevant, given)


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


BLANK = "the text is blank, so no document is found"


@pytest.mark.parametrize("given", [None, {"q1": ["d2"], "q2": ["d3"], "q3": ["d1"]}])
def test_a_blank_query_finds_nothing_and_the_others_are_searched(search, given, caplog):
    queries = {"id": ["q1", "q2", "q3"], "text": ["drama", " ", ""], "instruction": [None, "", "western"]}
    found = search.search(queries, top_k=1, top_ranked=given)
    assert {qid: list(scores) for qid, scores in found.items()} == {
        "q1": ["d2"],
        "q2": [],
        "q3": ["d3"] if given is None else [],
    }
    assert caplog.messages == [f"query q2: {BLANK}"]
    assert search.search({"id": ["q2"], "text": ["\n"]}, top_k=1, top_ranked=given) == {"q2": {}}


def test_an_instruction_is_read_behind_its_text(search):
    texts = []
    search.read = lambda text: texts.append(text) or parse(text)
    search.search({"id": ["q1", "q2"], "text": ["spy", "bond"], "instruction": ["drama", None]}, top_k=1)
    assert texts == ["spy drama", "bond"]


def test_messages_name_the_query(search, host):
    said = "query q2: top_ranked: there are no documents to rank again"
    assert refusal(search.search, QUERIES, top_k=1, top_ranked={"q1": ["d1"]}) == said
    model = host.CompNegSearch(read=parse)
    model.index(CORPUS)
    for text in ("spy AND (film", ["a turn", "of a talk"]):
        said = refusal(model.search, {"id": ["q7"], "text": [text]}, top_k=1, error=(InputError, QueryError))
        assert said.startswith("query q7: ")


def test_nevir(shared_data, host):
    """Pairs whose documents tie, or are not found, are wrong for MTEB as for us, so the figures are the same."""
    task = nevir(shared_data / "nevir" / "dev.jsonl")
    assert round(100 * figures(host.CompNegSearch(), task)["paired_accuracy"], 2) == 2.2


BIRDS = [
    {"id": "diver", "title": "", "text": "A kingfisher is a bird of the river that dives for fish"},
    {"id": "wader", "title": "", "text": "A heron is a bird of the river that waits for fish"},
]
INSTRUCTED = {"dives": "diver", "waits": "wader"}


def instructed(name, *marks, **more):
    """A task whose queries have one text, and an instruction each, which decides what is relevant."""
    queries = [
        {"id": mark.format("1"), "text": "bird of the river", "instruction": f"Relevant is a bird that {verb}"}
        for mark, verb in zip(marks, INSTRUCTED, strict=False)
    ]
    relevant = {query["id"]: {docid: 1} for query, docid in zip(queries, INSTRUCTED.values(), strict=False)}
    return filled(name, queries, BIRDS, relevant, **more)


def test_instructir(host):
    assert figures(host.CompNegSearch(), instructed("InstructIR", "{}_a", "{}_b"))["robustness_at_10"] == 1.0


def test_followir(host, monkeypatch):
    """The instruction moves a document from rank 1 to rank 2, so p-MRR is 1 - (1/2) / (1/1)."""
    import datasets
    from mteb.tasks.instruction_reranking.eng import core17_instruction_retrieval as module

    changed = datasets.Dataset.from_list([{"query-id": "1", "corpus-ids": ["diver"]}])
    monkeypatch.setattr(module, "load_dataset", lambda *_, **__: changed)
    given = {qid: ["wader", "diver"] for qid in ("1-og", "1-changed")}
    task = instructed("Core17InstructionRetrieval", "{}-og", "{}-changed", top_ranked=given)
    assert figures(host.CompNegSearch(), task)["p-MRR"] == 0.5


def test_ifir(host):
    """The ids of the queries say how complex the instructions are."""
    queries = [
        {"id": f"1-v{level}", "text": "bird of the river", "instruction": f"{'Relevant ' * level} is a bird that waits"}
        for level in (1, 2, 3)
    ]
    task = filled("IFIRScifact", queries, BIRDS, {query["id"]: {"wader": 1} for query in queries})
    assert figures(host.CompNegSearch(), task)["ndcg_at_1"] == 1.0
