"""Distillation: margins of bi-encoders and cross-encoders, and what is learnt of them."""

import pytest
from checkpoints import sample_texts
from json_lines import write_jsonl
from refusals import refusal
from tiny_training import tiny_config, training_log

from pyserini_compneg.lab.training.config import TeacherConfig
from pyserini_compneg.lab.training.examples import TrainingExample
from pyserini_compneg.support.errors import InputError

torch = pytest.importorskip("torch", reason="training runs on torch")
models = pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.batches import margins  # noqa: E402

EXAMPLES = [
    TrainingExample("spy films", "a spy in Vienna", ("a film about cats", "music")),
    TrainingExample("cats", "a film about cats", ("music", "a spy in Vienna")),
]


@pytest.fixture(scope="module")
def bi_encoder(checkpoints, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teachers") / "bi"
    models.SentenceTransformer(str(checkpoints.distilbert)).save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def cross_encoder(checkpoints, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teachers") / "cross"
    torch.manual_seed(0)
    models.CrossEncoder(str(checkpoints.bert), num_labels=1).save_pretrained(str(folder))
    return folder


def expected(score):
    return [[score(e.query, e.positive) - score(e.query, other) for other in e.negatives] for e in EXAMPLES]


def test_margins_of_a_bi_encoder(bi_encoder):
    model = models.SentenceTransformer(str(bi_encoder))

    def score(query, text):
        return 20 * model.similarity_pairwise(model.encode([query]), model.encode([text])).item()

    computed = margins(TeacherConfig(model=str(bi_encoder), scale=20.0), EXAMPLES)
    assert [pytest.approx(row, abs=1e-3) for row in expected(score)] == computed
    assert any(abs(margin) > 0.01 for row in computed for margin in row)


def test_margins_of_a_cross_encoder(cross_encoder):
    model = models.CrossEncoder(str(cross_encoder))
    computed = margins(TeacherConfig(model=str(cross_encoder)), EXAMPLES)
    rows = expected(lambda query, text: float(model.predict([(query, text)])[0]))
    assert [pytest.approx(row, abs=1e-4) for row in rows] == computed


def test_a_teacher_needs_negatives(bi_encoder):
    examples = [TrainingExample("spy films", "a spy")]
    assert refusal(margins, TeacherConfig(model=str(bi_encoder)), examples, error=InputError) == (
        "a teacher compares two documents, but query 'spy films' has no negative; give its source data.negatives, or "
        "leave the teacher out"
    )


def teacher_error(folder):
    start, _, reason = refusal(margins, TeacherConfig(model=str(folder)), EXAMPLES, error=InputError).partition(
        ": cannot be loaded as a teacher: "
    )
    assert start == str(folder)
    return reason


def test_what_is_no_teacher(tmp_path, checkpoints):
    (tmp_path / "config.json").write_text("{}")
    assert teacher_error(tmp_path)
    models.CrossEncoder(str(checkpoints.bert), num_labels=3).save_pretrained(str(tmp_path))
    assert teacher_error(tmp_path) == "it has 3 scores for a pair of texts, not one"


@pytest.mark.slow
def test_margins_are_learned(tmp_path, checkpoints, bi_encoder):
    texts = sample_texts(16)
    lines = [
        {"query": " ".join(own.split()[:6]), "positive": own, "negative": other}
        for own, other in zip(texts[::2], texts[1::2], strict=True)
    ]
    file = write_jsonl(tmp_path / "pairs.jsonl", *lines)
    teacher = TeacherConfig(model=str(bi_encoder), scale=5.0)
    settings = {"steps": 60, "batch_size": 8, "learning_rate": 5e-3}
    train(tiny_config(checkpoints.bert, file, dev=False, teacher=teacher, **settings), tmp_path / "m")
    losses = [entry["base_loss"] for entry in training_log(tmp_path / "m") if "base_loss" in entry]
    assert losses[-1] < 0.25 * losses[0]
