import json
import math
import os
import pickle
import subprocess
import sys
import threading
from datetime import date

import pytest
from film_index import FILMS, build
from hosts import adapter
from impact_indexes import write_index
from refusals import refusal

from pyserini_compneg import Operators, SignedImpactSearcher, compose_query, decompose
from pyserini_compneg.compose import Linear
from pyserini_compneg.reading.decomposition import undivided
from pyserini_compneg.search.run_writer import printed_scores
from pyserini_compneg.support.errors import ArgumentError, InputError, QueryError

host = adapter("pyterrier")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyterrier as pt  # noqa: E402
from pyterrier.measures import P, nDCG  # noqa: E402
from pyterrier.validate import InputValidationError  # noqa: E402

TEXTS = [{"docno": docid, "title": title, "text": text} for docid, (title, text) in FILMS.items()]
VECTORS = [{"docno": "d1", "toks": {"bird": 2.0, "song": -0.5}}, {"docno": "d2", "toks": {"bird": 1.0}}]
QUERIES = {"1": "spy NOT comedy", "2": "western AND comedy", "3": "spy OR western", "4": "unknown"}
TOPICS = pd.DataFrame(QUERIES.items(), columns=["qid", "query"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build(tmp_path_factory.mktemp("pyterrier"))


@pytest.fixture(scope="module")
def index(folder):
    return host.CompNegIndex(folder)


def ranked(frame):
    return {qid: list(zip(hits["docno"], hits["score"], strict=True)) for qid, hits in frame.groupby("qid")}


def as_in_runs(hits):
    """With equal scores set apart, for measures."""
    return list(zip([hit.docid for hit in hits], printed_scores(hits), strict=True))


def test_the_language_of_texts(tmp_path):
    """The index keeps it; an index of stock Anserini does not."""
    texts = [{"docno": "d1", "text": "Die alten Häuser"}, {"docno": "d2", "text": "Ein Garten"}]
    made = host.CompNegIndex(tmp_path / "made").indexer(bm25={"language": "de"}).index(texts)
    stock = write_index(tmp_path / "stock", {"d1": {"haus": 80}, "d2": {"gart": 80}})
    for index in (made, host.CompNegIndex(stock, "bm25", language="de")):
        assert list(index.retriever().search("Haus")["docno"]) == ["d1"]


@pytest.mark.parametrize("operators", [None, Operators(difference="ignore", union="maxpool")])
def test_the_hits_are_ours(folder, index, operators):
    found = index.retriever(3, operators, threads=2)(TOPICS)
    with SignedImpactSearcher(folder, operators=operators) as searcher:
        ours = searcher.batch_search(list(QUERIES.values()), list(QUERIES), 3)
    assert ranked(found) == {qid: as_in_runs(hits) for qid, hits in ours.items() if hits}
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
    assert list(found["rank"])[:3] == [0, 1, 2]


def test_a_pipeline_is_compiled(index):
    cut = (index.retriever() % 2).compile()
    assert isinstance(cut, host.CompNegRetriever) and cut.num_results == 2
    assert cut(TOPICS).equals((index.retriever() % 2)(TOPICS))


def test_filters(index, tmp_path):
    western = {"id": ["d4", "d5"]}
    found = index.retriever(filter=western)(TOPICS)
    assert set(found["docno"]) == {"d4", "d5"}
    cut = (index.retriever(filter=western) % 1).compile()(TOPICS)
    assert set(cut["docno"]) <= {"d4", "d5"} and len(cut) == found["qid"].nunique()
    own = index.retriever()(TOPICS.assign(filter=[None, western, {"id": "d4"}, None]))
    assert ranked(own)["1"] == ranked(index.retriever()(TOPICS))["1"]
    assert [docno for docno, _ in ranked(own)["3"]] == ["d4"]
    both = index.retriever(filter={"id": ["d1", "d4"]})(TOPICS.assign(filter=[np.nan, western, western, western]))
    assert set(both["docno"][both["qid"] != TOPICS["qid"][0]]) <= {"d4"} and set(both["docno"]) <= {"d1", "d4"}
    for wrong in ("id=d4", '{"id": "d4"}', ["d4"], 5, True, {}):
        frame = TOPICS.head(1).assign(filter=pd.Series([wrong], dtype=object))
        assert "a filter must name fields" in refusal(index.retriever(), frame, error=ArgumentError)
    dated = host.CompNegIndex(tmp_path / "i").indexer(filter_fields=["year"])
    years = [{**document, "year": year} for year, document in enumerate(TEXTS, 1990)]
    assert list(dated.index(years).retriever(filter={"year": "..1991"}).search("spy")["docno"]) == ["d1", "d2"]


def test_weights_and_trees(folder, index):
    """Weights are taken as they are; a tree, a reading and weights may stand where a text does."""
    weights = {"spy": np.float32(2), "comedi": -1.5}
    tree = compose_query("spy AND comedy", index.searcher.encoder)
    for column, value, same in (
        ("query_toks", weights, Linear({"spy": 2.0, "comedi": -1.5})),
        ("query_tree", tree, tree),
        ("query_tree", decompose("spy films but not comedies"), decompose("spy films but not comedies")),
    ):
        found = index.retriever()(pd.DataFrame([{"qid": "1", "query": "western", column: value}]))
        assert ranked(found) == {"1": as_in_runs(index.searcher.search(same, 1000))} != {"1": []}


def test_readings_and_explanations(index):
    text = "spy films but not comedies"
    read = host.Decompose() >> index.retriever() >> host.Explain(index)
    found = read.search(text)
    assert list(found.columns) == ["qid", "query_0", "query", "query_tree", "docno", "score", "rank", "explanation"]
    assert (found["query_0"][0], found["query"][0]) == (text, "spy films NOT comedies")
    for score, parts in zip(found["score"], found["explanation"], strict=True):
        assert math.fsum(parts.values()) == pytest.approx(score, rel=1e-6)
    parts = found.set_index("docno")["explanation"]["d1"]
    assert parts["comedi"] < 0 < parts["spy"]
    plain = (host.Decompose(undivided) >> index.retriever()).search("what is (NOT) a spy")
    assert plain["query"][0] == '"what is (NOT) a spy"'


def test_what_the_host_can_tell_of_them(index):
    retriever = index.retriever()
    assert pt.inspect.transformer_inputs(retriever) == [["qid", name] for name in ("query_tree", "query_toks", "query")]
    assert pt.inspect.transformer_outputs(retriever, ["qid", "query"]) == ["qid", "query", "docno", "score", "rank"]
    explained = pt.inspect.transformer_outputs(host.Decompose() >> retriever >> host.Explain(index), ["qid", "query"])
    assert explained[-1] == "explanation"
    assert pt.inspect.artifact_type_format(index) == ("sparse_index", "compneg")
    assert pt.inspect.indexer_inputs(index) == [["docno", "toks"], ["docno", "text"]]
    assert not pt.java.started()


def test_experiment(index):
    qrels = pd.DataFrame([{"qid": "1", "docno": "d2", "label": 1}, {"qid": "2", "docno": "d5", "label": 1}])
    plain = host.Decompose(undivided) >> index.retriever()
    systems = [plain, index.retriever(), index.retriever() % 2]
    table = pt.Experiment(
        systems, TOPICS[:2], qrels, [nDCG @ 10, P @ 1], names=["plain", "composed", "cut"], baseline=0
    )
    assert list(table["P@1"]) == [0.5, 1.0, 1.0]
    assert {"nDCG@10 p-value", "nDCG@10 +"} <= set(table.columns)


def test_indexing_texts(tmp_path, index):
    made = host.CompNegIndex(tmp_path / "index").index(iter(TEXTS))
    assert made.retriever()(TOPICS).equals(index.retriever()(TOPICS))
    assert json.loads((tmp_path / "index" / "pt_meta.json").read_text()) == {
        "type": "sparse_index",
        "format": "compneg",
        "package_hint": "pyserini_compneg",
    }
    loaded = pt.Artifact.load(str(tmp_path / "index"))
    assert isinstance(loaded, host.CompNegIndex)
    again = made.indexer(existing="overwrite").index(TEXTS[:2])
    assert again.retriever().search("spy")["docno"].tolist() == ["d1", "d2"]


def test_indexing_weights(tmp_path):
    made = host.CompNegIndex(tmp_path / "index").indexer("mine", impact_scale=10, signed=True).index(VECTORS)
    found = made.retriever()(pd.DataFrame([{"qid": 1, "query_toks": {"bird": 1.0, "song": 1.0}}]))
    assert ranked(found) == {1: [("d1", 15.0), ("d2", 10.0)]}


TWICE = "documents:2: document id 'd1' was given at documents:1 already"


@pytest.mark.parametrize(
    ("documents", "options", "error", "said"),
    [
        (VECTORS, {}, ValueError, "toks are not of bm25; name what made them: indexer('splade', impact_scale=100)"),
        (VECTORS[1:] * 2, {"encoder": "mine"}, InputError, TWICE.replace("d1", "d2")),
        (TEXTS[:1] * 2, {}, InputError, TWICE),
        ([TEXTS[0] | {"text": "\ud800"}], {}, InputError, "documents:1: not valid JSON text: half of a surrogate pair"),
    ],
)
def test_bad_documents(tmp_path, documents, options, error, said):
    indexer = host.CompNegIndex(tmp_path / "index").indexer(**options)
    assert refusal(indexer.index, documents, error=error) == said
    assert not (tmp_path / "index").exists()


def test_dates_in_filter_fields(tmp_path):
    made = host.CompNegIndex(tmp_path / "index").indexer(filter_fields=["seen"])
    made = made.index([text | {"seen": date(1999, 5, 1 + day)} for day, text in enumerate(TEXTS)])
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert [hit.docid for hit in searcher.search("spy OR bird OR song", filter={"seen": "1999-05-01"})] == ["d1"]


def test_documents_without_text(tmp_path):
    with pytest.raises(InputValidationError, match="Input does not match required columns"):
        host.CompNegIndex(tmp_path / "index").index([{"docno": "d1", "body": "a spy"}])


@pytest.mark.parametrize(
    ("frame", "error", "said"),
    [
        ({"query": ["spy"]}, InputValidationError, "does not match required columns"),
        ({"qid": ["1"], "text": ["spy"]}, InputValidationError, "missing_columns=['query']"),
        ({"qid": ["1"], "query": ["spy"], "docno": ["d1"]}, InputValidationError, "extra_columns=['docno']"),
        ({"qid": ["1", "1"], "query": ["a", "b"]}, ValueError, "qid '1' is given twice; give each query one row"),
        ({"qid": ["1"], "query": ["spy AND (film"]}, QueryError, "qid '1': "),
        ({"qid": ["1"], "query": [float("nan")]}, ValueError, "a query must be a text, an expression"),
        ({"qid": ["1"], "query_toks": [{"spy": math.nan}]}, QueryError, "the weight of 'spy' must be a finite number"),
        ({"qid": ["1"], "query_toks": [["spy"]]}, QueryError, "qid '1': $.vector: expected an object"),
    ],
)
def test_bad_queries(index, frame, error, said):
    assert said in refusal(index.retriever(), pd.DataFrame(frame), error=error)


def test_one_java_serves_both(folder):
    """PyTerrier starts it: with what its own part of Java needs left out, since that comes from Maven."""
    script = f"""
import pyterrier as pt
entries = pt.utils.entry_points
pt.utils.entry_points = lambda group: [one for one in entries(group) if one.name == "compneg"]
pt.java.init()
from pyserini_compneg.integrations.pyterrier import CompNegIndex
print(pt.java.started(), CompNegIndex({str(folder)!r}).retriever().search("spy NOT comedy")["docno"][0])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert ended.stdout == "True d2\n", ended.stderr
    assert ended.stderr.endswith("Java started and loaded: compneg\n")


def test_pickling(folder, monkeypatch):
    """A copy opens the index by itself, also one of a retriever that was used."""
    monkeypatch.chdir(folder.parent)
    index = host.CompNegIndex(folder.name)
    pipeline = host.Decompose() >> index.retriever(operators=Operators(difference="nrf")) % 3 >> host.Explain(index)
    before, hits = pickle.dumps(pipeline), pipeline.transform(TOPICS)
    after = pickle.dumps(pipeline)
    monkeypatch.chdir("/")
    for packed in (before, after):
        pd.testing.assert_frame_equal(pickle.loads(packed).transform(TOPICS), hits)
    locked = host.CompNegIndex(folder, encoder=threading.Lock())
    assert "cannot be pickled" in refusal(pickle.dumps, locked.retriever(), error=ArgumentError)
