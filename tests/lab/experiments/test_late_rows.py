"""Dense and reranked rows by a model of late interaction, which has rows of its own."""

import pytest
from checkpoints import needs_sentence_transformers, write_late_interaction
from dense_stand_in import DenseStandIn
from refusals import refusal

from pyserini_compneg.baselines import LateInteraction, TokenIndex
from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.expression import parse
from pyserini_compneg.lab.experiments import run_folder
from pyserini_compneg.lab.experiments.dense import DenseMethod, dense_index
from pyserini_compneg.support.errors import InputError, QueryError
from pyserini_compneg.topics.topics import Topic

pytest.importorskip("torch", reason="sentence-transformers runs on torch")
needs_sentence_transformers()
pytestmark = pytest.mark.slow

PROTOCOL = """
title: Late interaction
about: Of differences.
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10]
hits: 1000
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: vanilla, method: dense, settings: {difference: vanilla}}
      - {name: ignore, method: dense, settings: {difference: ignore}}
      - {name: orthogonal, method: dense, settings: {difference: orthogonal}}
      - {name: disentangled, method: dense, settings: {difference: disentangled}}
      - {name: again, method: operators, rerank: 1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_late_interaction(tmp_path_factory.mktemp("late") / "model"))


def test_rows_of_late_interaction(reproduced, dataset, folder, tmp_path):
    results = reproduced(PROTOCOL, dense_encoder=folder, reranker=folder)
    rows = {row.name: read_run(tmp_path / "report" / row.path) for row in results.sections[0].rows}
    assert [*rows] == ["vanilla", "ignore", "disentangled", "again"]
    model, texts = LateInteraction(folder), {one.docid: one.text for one in dataset.documents("dev")}
    for topic in dataset.topics("dev"):
        if topic.qid not in rows["ignore"]:
            continue
        left, right = topic.expression.left.text, topic.expression.right.text
        wanted = model.scores([(left, text) for text in texts.values()])
        excluded = model.scores([(right, text) for text in texts.values()], [[left]] * len(texts))
        assert rows["ignore"][topic.qid] == pytest.approx(dict(zip(texts, wanted, strict=True)), abs=1e-4)
        composed = dict(zip(texts, wanted - excluded / 2, strict=True))
        assert rows["disentangled"][topic.qid] == pytest.approx(composed, abs=1e-4)
        assert 0 <= min(rows["again"][topic.qid].values()) <= max(rows["again"][topic.qid].values()) == 1
        assert rows["vanilla"][topic.qid] != rows["ignore"][topic.qid]


def test_other_models_have_the_other_rows(reproduced, monkeypatch, tmp_path):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    for name, stand_in in {
        "dense_encoder": lambda *_: DenseStandIn(),
        "dense_model_hash": lambda *_: "hash",
        "check_dense_model": lambda *_: None,
        "is_late_interaction": lambda _: False,
    }.items():
        monkeypatch.setattr(run_folder, name, stand_in)
    dense = "\n".join(PROTOCOL.splitlines()[:-1])
    results = reproduced(dense, dense_encoder="a/model")
    assert [row.name for row in results.sections[0].rows] == ["vanilla", "ignore", "orthogonal"]


def test_operators_for_the_other_kind_of_model_are_refused(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))

    def documents():
        return [SourceDocument("d1", "A spy.", "documents:1")]

    tokens = TokenIndex(["d1"], lambda: 1 / 0, LateInteraction(folder))  # refused before a document is encoded
    for index, kind, name, text, made_for in [
        (tokens, "difference", "orthogonal", "a NOT b", "one vector for a text"),
        (tokens, "intersection", "addition", "(a AND b) OR c", "one vector for a text"),
        (dense_index(documents, DenseStandIn()), "union", "max", "a OR b", "late interaction"),
    ]:
        method = DenseMethod(**{"union": "max", kind: name})
        topics = [Topic("q", text, parse(text))]
        message = refusal(method.search, lambda one=index: one, topics, 1, error=QueryError)
        assert message == f"{kind} {name!r} is for models of {made_for}"
    barred = Topic("q", "a NOT! b", parse("a NOT! b"))
    message = refusal(DenseMethod().search, lambda: tokens, [barred], 1, error=InputError)
    assert message == "dense vectors cannot leave documents out, as NOT! does; use NOT"
