"""Rows of protocols whose first documents a model ranks again."""

import json

import pytest
from checkpoints import needs_sentence_transformers, write_masked_lm
from film_set import write_film_set
from refusals import refusal

from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.expression import Atom, Filter
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.experiment import reproduce
from pyserini_compneg.lab.experiments.jobs import _among
from pyserini_compneg.lab.experiments.protocol import read_protocol
from pyserini_compneg.lab.experiments.provided import MS_MARCO_MINILM
from pyserini_compneg.lab.experiments.workplace import Engine
from pyserini_compneg.support.errors import DownloadError, EncodingError
from pyserini_compneg.topics.topics import Topic

RERANKED = """
title: Reranked
about: Of rows that a model ranks again.
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10]
examples: 1
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: sparse, method: operators}
      - {name: again, method: operators, rerank: both, rerank_hits: 3}
      - {name: text, method: score-fusion, rerank: text}
"""


class Shortest:
    """Prefers short documents."""

    name, model_hash = "a/model", "0"

    def scores(self, pairs):
        return [1 / len(document) for _, document in pairs]


@pytest.fixture
def rerun(tmp_path, monkeypatch):
    films = open_dataset(write_film_set(tmp_path / "films"))

    def rerun(name=None, check=lambda model: None, text=RERANKED, dataset=films):
        loaded = []
        (tmp_path / "reranked.yaml").write_text(text)
        place = "pyserini_compneg.lab.experiments"
        monkeypatch.setattr(f"{place}.workplace.pair_scorer", lambda model: loaded.append(model) or Shortest())
        monkeypatch.setattr(f"{place}.jobs.dense_model_hash", lambda model: f"hash of {model}")
        monkeypatch.setattr(f"{place}.experiment.check_pair_scorer", check)
        protocol = read_protocol(str(tmp_path / "reranked.yaml"))
        return reproduce(protocol, dataset, [Engine("bm25")], tmp_path / "report", reranker=name), loaded

    return rerun


def without(model):
    raise DownloadError(f"{model}: not here")


def test_reranked_rows(rerun, tmp_path):
    results, loaded = rerun()
    sparse, again, text = (read_run(tmp_path / "report" / row.path) for row in results.sections[0].rows)
    assert loaded == [MS_MARCO_MINILM] == [results.settings["reranker"]]
    for qid, ranking in again.items():
        assert list(ranking) != list(sparse[qid]) or len(ranking) == 1
        assert set(ranking) == set(list(sparse[qid])[:3])
        assert max(text[qid].values()) <= 1
    kept, reloaded = rerun()
    assert (kept.sections, reloaded) == (results.sections, [])
    assert rerun("another/model")[1] == ["another/model"]


def test_judged_documents_alone_are_reranked(rerun, tmp_path):
    protocol = RERANKED.replace("rerank_hits: 3", "rerank_judged: true")
    results, _ = rerun(text=protocol)
    sparse, again, _ = (read_run(tmp_path / "report" / row.path) for row in results.sections[0].rows)
    judged = open_dataset(tmp_path / "films").qrels("dev")
    assert again
    for qid, ranking in again.items():
        assert set(ranking) == set(sparse[qid]) & set(judged[qid])
    assert rerun(text=protocol)[1] == []
    records = [json.loads(line) for line in (tmp_path / "films" / "dev.jsonl").read_text().splitlines()]
    for record in records:
        record["docs"] = record["docs"][1:] or record["docs"]
    (tmp_path / "films" / "dev.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    changed, loaded = rerun(text=protocol, dataset=open_dataset(tmp_path / "films"))
    assert loaded  # other judgements are other documents
    assert changed.sections[0].rows[1].path != results.sections[0].rows[1].path


def test_a_topics_own_filter_is_kept():
    topic = Topic("1", "spy films", Atom("spy films"), filter=Filter({"genre": "war"}))
    assert _among(topic, ["a", "b"]).filter == Filter({"genre": "war", "id": ["a", "b"]})


def test_reranked_rows_are_left_out_where_there_is_no_model(rerun, caplog):
    results, loaded = rerun(check=without)
    assert (loaded, [row.name for row in results.sections[0].rows]) == ([], ["sparse"])
    said = f"rows that are reranked: {MS_MARCO_MINILM}: not here"
    assert results.settings["left out"] == said and f"left out: {said}" in caplog.messages
    with pytest.raises(DownloadError, match="^a/model: not here$"):
        rerun("a/model", check=without)
    with pytest.raises(DownloadError, match=f"^{MS_MARCO_MINILM}: not here$"):
        rerun(check=without, text=RERANKED.replace("name: sparse, method: operators", "name: s, published: [0.1]"))


def test_a_model_of_another_kind_is_refused_before_anything_is_indexed(tmp_path):
    pytest.importorskip("torch", reason="the model is made by torch")
    needs_sentence_transformers()
    films, masked = open_dataset(write_film_set(tmp_path / "films")), write_masked_lm(tmp_path / "masked")
    (tmp_path / "reranked.yaml").write_text(RERANKED)
    protocol, engines, report = read_protocol(str(tmp_path / "reranked.yaml")), [Engine("bm25")], tmp_path / "report"
    message = refusal(reproduce, protocol, films, engines, report, reranker=str(masked), error=EncodingError)
    assert message.startswith(f"{masked}: has no head that scores (BertForMaskedLM); rerank with ")
    assert not report.exists()
