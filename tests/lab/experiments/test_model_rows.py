import json

import numpy as np
import pytest
from checkpoints import needs_sentence_transformers, write_masked_lm
from dense_stand_in import DenseStandIn
from film_set import write_film_set
from refusals import refusal

from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.expression import Atom, Filter, atoms
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.inputs import ALL_MINILM, MS_MARCO_MINILM
from pyserini_compneg.lab.experiments.jobs import _among
from pyserini_compneg.lab.experiments.run_folder import Engine
from pyserini_compneg.support.errors import DownloadError, EncodingError
from pyserini_compneg.topics.topics import Topic

SPARSE = """
title: Models
about: Of rows that need a model.
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10]
examples: 1
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: sparse, method: operators}
"""
DENSE = SPARSE + "      - {name: dense, method: dense, settings: {difference: orthogonal}}\n"
RERANKED = SPARSE + "      - {name: again, method: operators, rerank: 0.3}\n"
RERANKED += "      - {name: alone, method: score-fusion, rerank: 1}\n"
KINDS = {"dot": ", similarity: dot", "cosine": ", similarity: cosine", "unsaid": ""}
NOTHING_ELSE = ("name: sparse, method: operators", "name: sparse, published: [0.1]")


class Shortest:
    name = "a/model"

    def scores(self, pairs):
        return [1 / len(document) for _, document in pairs]


def without(model):
    raise DownloadError(f"{model}: not here")


@pytest.fixture
def run(reproduced, tmp_path, monkeypatch):
    """Reproduces with stand-ins; gives the results and the names of the models that were loaded."""
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))

    def run(text, name=None, check=lambda model: None, labels=("",), **options):
        loaded = []
        for place, stand_in in {
            "run_folder.dense_encoder": lambda model, _: loaded.append(model) or DenseStandIn(),
            "run_folder.pair_scorer": lambda model: loaded.append(model) or Shortest(),
            "run_folder.dense_model_hash": lambda model, _: f"hash of {model}",
            "jobs.dense_model_hash": lambda model: f"hash of {model}",
            **dict.fromkeys(["run_folder.check_dense_model", "run_folder.check_pair_scorer"], check),
        }.items():
            monkeypatch.setattr(f"pyserini_compneg.lab.experiments.{place}", stand_in)
        options |= {"engines": [Engine("bm25", label=label) for label in labels]}
        return reproduced(text, dense_encoder=name, reranker=name, **options), loaded

    return run


def rankings(results, tmp_path):
    return [read_run(tmp_path / "report" / row.path) for row in results.sections[0].rows]


def test_dense_rows_rank_all_documents_once_whatever_the_sparse_encoders(run, tmp_path):
    results, loaded = run(DENSE, labels=("one", "two"))
    assert [row.name for row in results.sections[0].rows] == ["sparse [one]", "sparse [two]", "dense"]
    *_, ranked = rankings(results, tmp_path)
    assert {len(ranking) for ranking in ranked.values()} == {results.dataset["documents"]}
    assert all(0 <= score <= 1 for ranking in ranked.values() for score in ranking.values())
    shown = [example for example in results.examples if example.method == "dense"]
    assert not any(example.positive or example.negative for example in shown)
    again, reloaded = run(DENSE, labels=("one", "two"))
    assert (loaded, reloaded, again.sections) == ([ALL_MINILM], [], results.sections)
    assert run(DENSE, "another/model")[1] == ["another/model"]


def test_reranked_rows(run, tmp_path, monkeypatch):
    monkeypatch.setattr("pyserini_compneg.lab.experiments.jobs.RERANKED", 3)
    results, loaded = run(RERANKED)
    sparse, again, alone = rankings(results, tmp_path)
    assert loaded == [MS_MARCO_MINILM] == [results.settings["reranker"]]
    for qid, ranking in again.items():
        assert set(list(ranking)[:3]) == set(list(sparse[qid])[:3])
        assert list(ranking)[3:] == list(sparse[qid])[3:]
        assert max(alone[qid].values()) in (0, 1)
    assert any(list(ranking) != list(sparse[qid]) for qid, ranking in again.items())
    kept, reloaded = run(RERANKED)
    assert (kept.sections, reloaded) == (results.sections, [])
    assert run(RERANKED, "another/model")[1] == ["another/model"]


def test_judged_documents_alone_are_reranked(run, tmp_path):
    """Other judgements are other documents, and so another run."""
    films = open_dataset(write_film_set(tmp_path / "films"))
    text = RERANKED.replace("rerank: 0.3", "rerank: 0.3, rerank_judged: true")
    results, _ = run(text, dataset=films)
    sparse, again, _ = rankings(results, tmp_path)
    judged = films.qrels("dev")
    assert again
    for qid, ranking in again.items():
        assert set(ranking) == set(sparse[qid]) & set(judged[qid])
    assert run(text, dataset=films)[1] == []
    records = [json.loads(line) for line in (tmp_path / "films" / "dev.jsonl").read_text().splitlines()]
    for record in records:
        record["docs"] = record["docs"][1:] or record["docs"]
    (tmp_path / "films" / "dev.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    changed, loaded = run(text, dataset=open_dataset(tmp_path / "films"))
    assert loaded and changed.sections[0].rows[1].path != results.sections[0].rows[1].path


def test_a_topics_own_filter_is_kept():
    topic = Topic("1", "spy films", Atom("spy films"), filter=Filter({"genre": "war"}))
    assert _among(topic, ["a", "b"]).filter == Filter({"genre": "war", "id": ["a", "b"]})


@pytest.mark.parametrize(
    ("text", "what", "model"),
    [(DENSE, "rows of dense vectors", ALL_MINILM), (RERANKED, "rows that are reranked", MS_MARCO_MINILM)],
)
def test_rows_are_left_out_where_there_is_no_model(run, caplog, tmp_path, text, what, model):
    """But where the model was named, or where there is nothing else to run."""
    for options in ({"text": text, "name": "a/modle"}, {"text": text.replace(*NOTHING_ELSE)}):
        message = refusal(run, **options, check=without, error=DownloadError)
        assert message == f"{options.get('name', model)}: not here"
    assert not (tmp_path / "report").exists()
    results, loaded = run(text, check=without)
    assert (loaded, [row.name for row in results.sections[0].rows]) == ([], ["sparse"])
    said = f"{what}: {model}: not here"
    assert results.settings["left out"] == said and f"left out: {said}" in caplog.messages


def test_a_curve_without_a_model_is_left_out_and_nothing_else(run):
    text = SPARSE.replace("sections:", "interference: {section: Set difference, bins: 1}\nsections:")
    results, _ = run(text, check=without)
    assert (results.curves, len(results.sections[0].rows)) == ([], 1)
    assert results.settings["left out"] == f"the curve by similarity: {ALL_MINILM}: not here"


def test_dense_rows_alone_build_no_sparse_index(run, tmp_path):
    results, _ = run(DENSE.replace(*NOTHING_ELSE))
    assert not (tmp_path / "report" / "indexes").exists()
    assert results.dataset["documents"] == 24
    assert "encoder" not in results.settings and results.settings["dense encoder"] == ALL_MINILM


@pytest.mark.slow
def test_a_row_says_how_a_checkpoint_of_the_hub_compares_its_vectors(reproduced, dataset, tmp_path, monkeypatch):
    """By the library's vectors. Other files than those of the network are absent, as in Contriever's repository."""
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    folder = write_masked_lm(tmp_path / "hub")
    row = "{name: NAME, method: dense, settings: {difference: ignore}, encoder: " + f"'{folder}'"
    rows = [f"      - {row.replace('NAME', name)}{more}}}\n" for name, more in KINDS.items()]
    nothing, _ = SPARSE.split("      - {name: sparse")
    results = reproduced(nothing + "".join(rows))
    assert "dense encoder" not in results.settings
    dot, cosine, unsaid = rankings(results, tmp_path)
    assert unsaid == cosine
    library = needs_sentence_transformers().SentenceTransformer(str(folder), device="cpu")
    topic = next(one for one in dataset.topics("dev") if one.qid in dot)
    texts = [atoms(topic.expression)[0], *(one.text for one in dataset.documents("dev"))]
    query, *documents = library.encode(texts, show_progress_bar=False).astype(float)
    for document, vector in zip(dataset.documents("dev"), documents, strict=True):
        product = query @ vector / np.linalg.norm(query)
        assert dot[topic.qid][document.docid] == pytest.approx(product, rel=1e-4)
        share = product / np.linalg.norm(vector)
        assert cosine[topic.qid][document.docid] == pytest.approx((1 + share) / 2, rel=1e-4)
    (folder / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "cosine"}')
    message = refusal(reproduced, nothing + rows[0], error=EncodingError)
    assert message == f"{folder}: its files compare vectors by cosine, not by dot; leave similarity out"


def test_a_model_of_another_kind_is_refused_before_anything_is_indexed(reproduced, tmp_path):
    pytest.importorskip("torch", reason="the model is made by torch")
    needs_sentence_transformers()
    masked = write_masked_lm(tmp_path / "masked")
    message = refusal(reproduced, RERANKED, reranker=str(masked), error=EncodingError)
    assert message.startswith(f"{masked}: has no head that scores (BertForMaskedLM); rerank with ")
    assert not (tmp_path / "report").exists()
