"""The training of mini: its queries and scores, and a whole training of a tiny model."""

import json
import os
import random
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from bm25_scores import Bm25Scores
from checkpoints import sample_texts
from json_lines import write_jsonl
from lead_queries import LeadQueries, hard_documents, read_lead

from pyserini_compneg.encode.bm25 import lucene_idf
from pyserini_compneg.errors import TrainingError
from pyserini_compneg.expression import Atom, Difference, Intersection, Union

NO_QUERIES = "films: no query such as `1990s spy films`, or none such as `films starring Gal Gadot`; name FilmSets"
KINDS = ("spy", "war", "silent drama", "comedy-drama")
LEADS = [
    f"Film {number}\nFilm {number} is a {1930 + number % 25} American {KINDS[number % 4]} film starring Ada Lovelace."
    for number in range(240)
]


def relevant(decade=None, kind=None):
    return {
        number
        for number in range(len(LEADS))
        if decade in (None, f"{str(1930 + number % 25)[:3]}0s") and kind in (None, KINDS[number % 4])
    }


def lead_queries():
    spy = relevant("1930s", "spy")
    judged = [
        (Atom("1930s spy films"), spy),
        (Atom("films starring Ada Lovelace"), {1, 2, 3}),
        (Atom("films starring Charles Babbage"), {4}),  # no lead has the name
        (Intersection((Atom("1930s spy films"), Atom("Short films"))), {4}),
        (Difference(Atom("1940s war films"), Atom("Lost films")), {13}),
        (Union((Atom("Odd films"), Atom("Other films"))), {9}),
    ]
    return LeadQueries(LEADS, judged, "films")


@pytest.mark.parametrize(
    ("text", "year", "kinds"),
    [
        ("Ray\nRay is a 2004 American spy film of 1999.", "2004", {"american", "spy", "american spy"}),
        ("1917\nThe Crown is an animated short film.", "", {"animated", "short", "animated short"}),
        ("no title, but from 1950", "1950", set()),
    ],
)
def test_a_lead_is_read(text, year, kinds):
    lead = read_lead(text)
    assert (lead.year, lead.kinds) == (year, kinds)


def test_judged_queries_are_told_apart():
    queries = lead_queries()
    assert [one.text for one in queries.classes] == ["1930s spy films"]
    assert [(one.text, one.relevant) for one in queries.names] == [("films starring Ada Lovelace", {1, 2, 3})]
    assert queries.classes[0].misleading == (relevant(kind="spy"), relevant("1930s"), relevant("1930s"))


def test_made_queries_have_all_their_documents():
    queries, draw = lead_queries(), random.Random(0)
    seen = set()
    for _ in range(500):
        asked = queries.made(draw)
        decade = next(iter(re.findall(r"\d{4}s", asked.text)), None)
        name = re.sub(r"\d{4}s|of the|films?|movies", "", asked.text).strip()
        kind = next((kind for kind in KINDS if name in (kind, kind.replace("-", " "))), None)
        if (name and not kind) or re.search(r"\d{4}(?!s)", asked.text):
            continue  # words such as `american`, pairs of words, years
        assert asked.relevant == relevant(decade, kind), asked.text
        seen.add((decade is not None, kind is not None))
    assert seen == {(True, True), (True, False), (False, True)}


def test_the_same_queries_are_drawn_in_every_process():
    """Whatever the order of Python's sets, which differs from process to process."""
    code = f"""
import random
from lead_queries import LeadQueries
from pyserini_compneg.expression import Atom
judged = [(Atom("1930s spy films"), {{1}}), (Atom("films starring Ada Lovelace"), {{1, 2}})]
queries, draw = LeadQueries({LEADS!r}, judged, "films"), random.Random(0)
print([queries.made(draw).text for _ in range(50)])
"""
    drawn = set()
    for seed in "123":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        drawn.add(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
    assert len(drawn) == 1


def test_queries_of_a_single_lead_find_it():
    queries, draw = lead_queries(), random.Random(0)
    for number in range(0, 240, 7):
        asked = queries.made_of(number, draw)
        assert asked is None or number in asked.relevant or re.search(r"\b19\d\d\b", asked.text)
    assert (
        LeadQueries(
            [*LEADS, "no lead"], [(Atom("1930s spy films"), {0}), (Atom("films of Ada"), {0})], "films"
        ).made_of(240, draw)
        is None
    )


def test_each_document_of_a_batch_adds_a_query():
    batch = Films(LEADS, lead_queries(), (1, 1, 3)).batch(random.Random(0))
    assert batch.drawn == 5
    assert 5 < len(batch.queries) <= 5 + len(batch.documents)
    assert batch.bm25.shape == batch.target.shape == (len(batch.queries), len(batch.documents))
    assert batch.target[5:].any(1).mean() > 0.8


def test_kinds_of_composed_queries_count_as_judged():
    texts = {lead_queries().made(random.Random(seed)).text for seed in range(600)}
    named = {kind for kind in ("short", "war", "lost", "odd") if any(text.startswith(f"{kind} ") for text in texts)}
    assert named == {"short", "war"}  # not what is excluded, nor one of several alternatives


def test_hard_documents_are_not_relevant():
    queries, draw = lead_queries(), random.Random(0)
    for asked in [*queries.classes, *queries.names, *(queries.made(draw) for _ in range(100))]:
        assert not asked.relevant & set(hard_documents(asked, range(20), draw))
    assert len(set(hard_documents(queries.classes[0], range(20), draw))) == 3


@pytest.mark.parametrize(
    ("texts", "judged", "said"),
    [
        (LEADS[:5], [], "films: no decade or no kind of film has 20 leads; name FilmSets"),
        (LEADS, [(Atom("birds"), {1})], NO_QUERIES),
    ],
)
def test_other_collections_are_refused(texts, judged, said):
    with pytest.raises(TrainingError) as refused:
        LeadQueries(texts, judged, "films")
    assert str(refused.value) == said


def test_scores_of_bm25():
    scores = Bm25Scores(["spies and a spy", "war", "the"])(["spy war spy", "unknown"])
    norm = [0.9 * (0.6 + 0.4 * length / 1.5) for length in (2, 1)]  # the mean of texts with terms; `and`, `a` are none
    idf = lucene_idf(1, 2)
    expected = [[2 * idf * 1 / (1 + norm[0]), idf / (1 + norm[1]), 0], [0, 0, 0]]
    assert scores == pytest.approx(np.array(expected), abs=1e-5)


torch = pytest.importorskip("torch", reason="training runs on torch")
models = pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

import mini_training  # noqa: E402
from mini_batches import Films, Passages  # noqa: E402
from mini_training import HybridModule, Settings, train_mini  # noqa: E402

from pyserini_compneg.encode.models import ModelOptions, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.sides import load_side  # noqa: E402
from pyserini_compneg.training.examples import Example  # noqa: E402


@pytest.fixture(scope="module")
def settings(checkpoints, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hybrid")
    write_jsonl(
        folder / "films" / "documents.jsonl",
        *[
            {"docid": f"d{i}", "title": text.split("\n")[0], "text": text.split("\n")[1]}
            for i, text in enumerate(LEADS)
        ],
    )
    atoms = {"1930s spy films": relevant("1930s", "spy"), "films starring Ada Lovelace": {1, 2, 3}}
    write_jsonl(
        folder / "films" / "train.jsonl",
        *[
            {"qid": f"q{i}", "query": atom, "original_query": f"<mark>{atom}</mark>", "metadata": {"template": "_"}}
            | {"docs": [f"d{number}" for number in sorted(numbers)]}
            for i, (atom, numbers) in enumerate(atoms.items())
        ],
    )
    passages = sample_texts(80)
    write_jsonl(
        folder / "pairs.jsonl",
        *[{"query": " ".join(text.split()[:6]), "positive": text, "negative": passages[-1]} for text in passages[:-1]],
    )
    models.SentenceTransformer(str(checkpoints.distilbert)).save_pretrained(str(folder / "teacher"))
    section = {"base": str(checkpoints.bert), "teacher": str(folder / "teacher"), "films": str(folder / "films")}
    lengths = {"max_length": 48, "training_length": 32}
    section |= {"passages": (str(folder / "pairs.jsonl"),), "steps": 4, "learning_rate": 1e-3, **lengths}
    return Settings(**section)


def vectors(folder, queries, documents):
    """The vectors of a trained folder, as an index has them."""
    checkpoint = read_checkpoint(folder)
    options = ModelOptions(backend="torch")
    sides = [load_side(side, options) for side in (checkpoint.query, checkpoint.document)]
    return [side.encode_batch(texts) for side, texts in zip(sides, (queries, documents), strict=True)]


def test_scores_in_training_are_those_of_the_written_model(checkpoints, tmp_path):
    torch.manual_seed(0)
    texts = sample_texts(7)
    queries = ["spy films", "films of the 1940s", "a spy spy"]
    module = HybridModule(str(checkpoints.bert), (texts, queries), (48, 48)).eval()
    with torch.no_grad():
        module.query.weight += torch.rand_like(module.query.weight) - 0.3  # some weights below 0 count as 0
        scores, _ = module(queries, texts)
    module.write(tmp_path)
    asked, found = vectors(tmp_path, queries, texts)
    expected = [[sum(query.get(term, 0) * one[term] for term in one) for one in found] for query in asked]
    assert 5 * scores.numpy() == pytest.approx(np.array(expected), rel=1e-3, abs=1e-3)
    assert scores.abs().max() > 0.1


def test_a_model_is_trained(settings, tmp_path):
    model = train_mini(settings, tmp_path)
    assert {path.name for path in model.iterdir()} == {
        *("README.md", "config_sentence_transformers.json", "document_0_Transformer", "document_1_SpladePooling"),
        *("modules.json", "query_0_SparseStaticEmbedding", "router_config.json", "training_log.json"),
    }
    assert "2 queries about\n  240 documents" in (model / "README.md").read_text()


def test_a_sentence_is_never_asked_of_its_own_passage(settings):
    """It would be found by its words alone, and nothing learned."""
    examples = [
        Example(f"Where was the spy {i}?", f"The spy number {i} was seen in the old town of Vienna. He left.", ())
        for i in range(40)
    ]
    passages = Passages(examples, settings.teacher, 20.0, 6, 0)
    batch, others = passages.batch(random.Random(0)), 0
    assert batch.drawn <= 6 < len(batch.queries)
    for query, scores in zip(batch.queries, batch.bm25, strict=True):
        own = [passages.texts[number].startswith(query) for number in batch.documents]
        assert [score < -100 for score in scores] == own
        others += not any(own)
    assert others < len(batch.queries)


def test_the_losses_fall(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(mini_training, "_LOG_STEPS", 10)
    monkeypatch.setattr(mini_training, "_WARMUP_STEPS", 1)
    model = train_mini(replace(settings, steps=60, learning_rate=1e-2), tmp_path)
    first, *_, last = json.loads((model / "training_log.json").read_text())["log"]
    assert last["films"] < 0.8 * first["films"]
    assert last["passages"] < first["passages"]


@pytest.mark.kill
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
    for part in ("document_0_Transformer", "query_0_SparseStaticEmbedding"):
        whole, resumed = (
            (tmp_path / name / "model" / part / "model.safetensors").read_bytes() for name in ("whole", "resumed")
        )
        assert whole == resumed
