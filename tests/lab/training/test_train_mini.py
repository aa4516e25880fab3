import json
import random
from dataclasses import replace

import numpy as np
import pytest
from bm25_scores import Bm25Scores
from checkpoints import sample_texts
from json_lines import write_jsonl
from mini_sources import NEAR, Judged, Taught, Teacher, films, quest, summaries

from pyserini_compneg.encode.bm25 import lucene_idf

LEADS = [
    f"Film {number}\nFilm {number} is a {1930 + number % 25} American {('spy', 'war')[number % 2]} film."
    for number in range(120)
]
SPIES = {number for number in range(0, 120, 2) if number % 25 < 10}


def a_teacher(weight=1.0):
    """A teacher whose vectors say which of three words a text has, and that it is a text."""
    teacher = Teacher.__new__(Teacher)
    teacher.weight = weight
    words = ("spy", "war", "193")
    vectors = lambda texts: np.array([[1.0, *(word in text for word in words)] for text in texts], np.float32)  # noqa: E731
    teacher._model = type("Model", (), {"encode": lambda _, texts, **__: normed(vectors(texts))})()
    return teacher


def normed(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_scores_of_bm25():
    scores = Bm25Scores(["spies and a spy", "war", "the"])(["spy war spy", "unknown"])
    norm = [0.9 * (0.6 + 0.4 * length / 1.5) for length in (2, 1)]  # the mean of texts with terms; `and`, `a` are none
    idf = lucene_idf(1, 2)
    expected = [[2 * idf * 1 / (1 + norm[0]), idf / (1 + norm[1]), 0], [0, 0, 0]]
    assert scores == pytest.approx(np.array(expected), abs=1e-5)


def test_a_batch_has_documents_near_its_queries():
    source = Taught(LEADS, ["spy films", "war films", "films of 1930"], a_teacher(), 2)
    batch = source.batch(random.Random(0))
    assert 2 <= len(batch.queries) <= 3
    assert batch.bm25.shape == batch.teacher.shape == batch.chosen.shape == (len(batch.queries), len(batch.documents))
    assert batch.chosen[:2].any(0).all()
    scores = Bm25Scores(LEADS)(batch.queries)
    for query, row, near in zip(batch.queries, scores, batch.chosen, strict=True):
        worst = np.sort(row)[-NEAR]
        for document, is_near in zip(batch.documents, near, strict=True):
            if is_near and "of" not in query:
                assert row[LEADS.index(document)] >= worst - 1  # the teacher's share is 1 at most


def test_a_teacher_says_nothing_of_what_is_no_nearer_than_the_mean():
    source = Taught([*LEADS, *(f"{text} spy" for text in LEADS)], ["spy films"], a_teacher(4.0), 1)
    asked, known = (normed(np.array(vectors)) for vectors in ([[1.0, 1, 0, 0]], [[1.0, 1, 0, 0], [1, 0, 1, 0]]))
    batch = source.batch(random.Random(1))
    assert batch.teacher.min() >= 0
    assert batch.teacher.max() <= 4 * (asked @ known.T).max()


def test_judged_documents_are_those_that_are_relevant_and_those_that_are_not():
    batch = Judged(LEADS, [("1930s spy films", SPIES), ("spy films", set(range(0, 120, 2)))], 9).batch(random.Random(0))
    assert batch.teacher is None
    for query, flags in zip(batch.queries, batch.chosen, strict=True):
        numbers = [LEADS.index(text) for text in batch.documents]
        relevant = SPIES if query.startswith("1930s") else set(range(0, 120, 2))
        assert flags.tolist() == [number in relevant for number in numbers]
        assert 0 < flags.sum() < len(flags)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    documents = [
        {"docid": f"d{number}", "title": text.split("\n")[0], "text": text.split("\n")[1]}
        for number, text in enumerate(LEADS)
    ]
    write_jsonl(folder / "filmsets" / "documents.jsonl", *documents)
    atoms = {"1930s spy films": SPIES, "spy films": set(range(0, 120, 2))}
    write_jsonl(folder / "filmsets" / "train.jsonl", *[atom(text, "d{}", docs) for text, docs in atoms.items()])
    passages = sample_texts(80)
    titled = [{"title": f"T{number}", "text": text} for number, text in enumerate(passages)]
    write_jsonl(folder / "quest-evidence" / "documents.jsonl", *titled)
    topics = [atom("American films", "T{}", {1, 2}), atom("English novels", "T{}", {70, 71}, "books")]
    write_jsonl(folder / "quest-evidence" / "train.jsonl", *topics)
    other = atom("birds of Iceland", "T{}", {3}, "animals")
    write_jsonl(folder / "quest-evidence" / "wordings.train.jsonl", *topics, other)
    questions = [{"query": " ".join(text.split()[:6]), "positive": text, "negative": passages[-1]} for text in passages]
    write_jsonl(folder / "pairs" / "train.jsonl", *questions[:-1])
    (folder / "pairs" / "train.jsonl").rename(folder / "pairs" / "train.jsonl.gz")
    entries = {f"S{n}": {"title": f"S{n}", "extract": text} for n, text in enumerate(passages)}
    entries["S0"]["description"] = "Kind of film"
    (folder / "summaries.json").write_text(json.dumps(entries))
    return folder


def atom(text, name, numbers, domain="films"):
    docs = [name.format(number) for number in sorted(numbers)]
    asked = {"qid": text.replace(" ", "-"), "query": text, "original_query": f"<mark>{text}</mark>"}
    return {**asked, "docs": docs, "metadata": {"template": "_", "domain": domain}}


def test_sources(data):
    """Of QUEST no book is read. Summaries have descriptions, and films relevant documents."""
    passages, film_atoms, others = quest(data / "quest-evidence")
    assert (film_atoms, others) == (["American films"], ["birds of Iceland"])
    assert len(passages) == 78
    assert not any(text.startswith(("T70 ", "T71 ")) for text in passages)

    texts, descriptions = summaries(data / "summaries.json")
    assert texts[0].startswith("S0 ")
    assert descriptions == ["Kind of film"]
    texts, queries = films(str(data / "filmsets"), 0)
    for text, relevant in queries:
        assert relevant == {n for n, lead in enumerate(texts) if " spy " in lead and (text[0] == "s" or " 193" in lead)}


torch = pytest.importorskip("torch", reason="training runs on torch")
models = pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

import mini_training  # noqa: E402
from mini_training import MiniModule, Settings, train_mini, weights  # noqa: E402

from pyserini_compneg.encode.models import ModelOptions, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.sides import load_side  # noqa: E402
from pyserini_compneg.lab.training.encoder_module import write_layout  # noqa: E402


@pytest.fixture(scope="module")
def settings(checkpoints, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    models.SentenceTransformer(str(checkpoints.distilbert)).save_pretrained(str(folder))
    lengths = {"max_length": 48, "training_length": 32}
    return Settings(str(checkpoints.bert), str(folder), str(data), str(data / "summaries.json"), steps=4, **lengths)


def test_scores_in_training_are_those_of_the_written_model(checkpoints, tmp_path):
    module = MiniModule(str(checkpoints.bert), (48, 48)).eval()
    with torch.no_grad():
        for part in module.trained.parameters():
            part += 0.01 * torch.rand_like(part)
        queries, documents = ["spy films", "films of the 1940s"], sample_texts(7)
        terms = torch.arange(0, module.trained.get_embedding_dimension(), 2)
        ours = weights(module.trained, documents, terms)
        scores = weights(module.trained, queries) @ weights(module.trained, documents).T
        assert torch.allclose(ours, weights(module.trained, documents)[:, terms])
    write_layout(tmp_path, module.trained, module.trained)
    checkpoint = read_checkpoint(tmp_path)
    sides = [load_side(side, ModelOptions(backend="torch")) for side in (checkpoint.query, checkpoint.document)]
    asked, found = (side.encode_batch(texts) for side, texts in zip(sides, (queries, documents), strict=True))
    expected = [[sum(query.get(term, 0) * one[term] for term in one) for one in found] for query in asked]
    assert scores.numpy() == pytest.approx(np.array(expected), rel=1e-3, abs=1e-3)
    assert scores.abs().max() > 0.1


def test_a_model_is_trained(settings, tmp_path):
    model = train_mini(settings, tmp_path)
    assert {"README.md", "model.safetensors", "modules.json", "training_log.json"} <= {p.name for p in model.iterdir()}
    assert read_checkpoint(model).document.exported_in is None
    assert "without a judgement" in (model / "README.md").read_text()


@pytest.mark.slow
def test_the_losses_fall_and_a_base_that_weighs_more_is_kept_nearer(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(mini_training, "_LOG_STEPS", 10)
    monkeypatch.setattr(mini_training, "_WARMUP_STEPS", 1)
    logs = {}
    for close, steps in ((0.0, 60), (100.0, 20)):
        (tmp_path / str(close)).mkdir()
        model = train_mini(replace(settings, steps=steps, learning_rate=1e-2, close=close), tmp_path / str(close))
        logs[close] = json.loads((model / "training_log.json").read_text())["log"]
    first, second, *_, last = logs[0.0]
    assert last["judged"] < 0.9 * first["judged"]
    assert last["near"] < first["near"]
    assert logs[100.0][1]["close"] < 0.5 * second["close"]


@pytest.mark.kill
@pytest.mark.slow
def test_a_killed_training_is_resumed_to_the_same_bits(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(mini_training, "_CHECKPOINT_STEPS", 2)
    for name in ("whole", "resumed"):
        (tmp_path / name).mkdir()
    train_mini(settings, tmp_path / "whole")
    keep = torch.save

    def killed(saved, path):
        keep(saved, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(torch, "save", killed)
        train_mini(settings, tmp_path / "resumed")
    train_mini(settings, tmp_path / "resumed")
    whole, resumed = ((tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "resumed"))
    assert whole == resumed
