import itertools
import json
import random
import shutil

import pytest
from json_lines import write_jsonl
from refusals import refusal
from tiny_training import train_error

from pyserini_compneg.expression import format_expression
from pyserini_compneg.lab.training import train
from pyserini_compneg.lab.training.config import ReaderSection, ReaderTrainConfig
from pyserini_compneg.lab.training.judged_requests import JudgedRequest, request_score
from pyserini_compneg.lab.training.tagged_requests import augmented, distributed, parse_request, separators
from pyserini_compneg.reading import SIGNS, TAGS, ModelReader, undivided
from pyserini_compneg.reading.confidence import probability
from pyserini_compneg.reading.words import SHARED
from pyserini_compneg.support.errors import InputError

torch = pytest.importorskip("torch", reason="training runs on torch")

from pyserini_compneg.lab.training import reader_training  # noqa: E402  # needs torch
from pyserini_compneg.lab.training.four_bits import in_blocks, rounded  # noqa: E402  # needs torch
from pyserini_compneg.lab.training.reader_training import calibrated  # noqa: E402  # needs torch
from pyserini_compneg.lab.training.tagger_module import NO_TAG, sequence_loss  # noqa: E402  # needs torch

THINGS = ("films", "songs", "games", "books", "plays")
OTHERS = ("war", "love", "crime", "music", "family", "the city")
LINES = [f"[W {thing} of {other}] but not [X {another}]" for thing in THINGS for other in OTHERS for another in OTHERS]
LINES += [f"[W {thing} about {other} that are not new]" for thing in THINGS for other in OTHERS]
LINES += [f"[W {thing}] [OR or] [W {other}] [S in London]" for thing in THINGS for other in THINGS if thing != other]
JUDGED = [
    {"kind": "exclusion", "query": "films of war but not love", "wanted": ["films of war"], "excluded": ["love"]},
    {"kind": "whole", "query": "songs about love that are not new", "wanted": ["songs"], "excluded": []},
]
HELD_OUT = {"[W films of war] but not [X love]", "[W songs about love that are not new]"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "[W a] [Y b]",
            "a bracket that is not part of a complete tag; write [TAG words], where TAG is one of W, S, X, OR, AND",
        ),
        (
            "[W a] ] b",
            "a bracket that is not part of a complete tag; write [TAG words], where TAG is one of W, S, X, OR, AND",
        ),
        ("a but not [X b]", "nothing is wanted; give at least one [W ...]"),
        ("[W a ] but not [X b]", "a blank at the edge of '[W a ]'"),
        ("[S a] [W b]", "S is shared by several W, and there is one"),
    ],
)
def test_a_wrong_line_is_refused(line, said):
    assert refusal(parse_request, line, "f.txt:7", error=InputError) == f"f.txt:7: {said}"


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("[S songs by] [W drake] [OR or] [W denny]", ["songs by drake", "or", "songs by denny"]),
        ("[W red][OR ,] [W white] [S sneakers], no [X Nike]", ["red sneakers", ",", "white sneakers", "Nike"]),
        ("no [X kit]: [S a] [W canoe] [OR or] [W raft] [S for 2]", ["kit", "a canoe for 2", "or", "a raft for 2"]),
        ("[W Drake] [OR or] [W Denny]", None),  # nothing is shared
        ("[S inns] which are [W old] [OR or] [W cheap]", None),  # other words stand between
        ("[S inns] [W old] [AND and] [W cheap]", None),  # conditions read badly so
    ],
)
def test_alternatives_repeat_what_they_share(line, again):
    request = parse_request(line, "")
    made = distributed(request)
    if again is None:
        assert made is request
        return
    assert [made.text[slice(*span)] for span, _ in made.segments] == again
    kinds = [tag for _, tag in request.segments if tag != SHARED]
    assert [tag for _, tag in made.segments] == kinds
    repeated = next(words for words in again if words not in request.text)
    draws = [augmented(request, ["x"], [], random.Random(number))[0].casefold() for number in range(60)]
    assert 5 < sum(repeated in text for text in draws) < 40


def test_names_are_exchanged_inside_parts():
    request = parse_request("[W who wrote Live and Let Die], not [X The Man Who Fell to Earth]", "")
    made = {augmented(request, ["x"], ["Ready or Not"], random.Random(number))[0].casefold() for number in range(99)}
    assert any("who wrote ready or not, not the man who fell" in text for text in made)
    assert any("live and let die, not ready or not" in text for text in made)
    for line in (
        "[W Marks and Spencer] in [W Leeds]",
        "[W Deal or No Deal board game]",
    ):  # any first word has a capital
        other = parse_request(line, "")
        assert not any("ready" in augmented(other, ["x"], ["Ready or Not"], random.Random(n))[0] for n in range(99))


def test_the_loss_of_a_sequence_is_its_negative_log_probability():
    draw = torch.Generator().manual_seed(0)
    scores, transitions = torch.randn(3, 4, 6, generator=draw), torch.randn(6, 6, generator=draw)
    tags = torch.tensor([[NO_TAG, 3, NO_TAG, 1], [0, 1, 5, 2], [NO_TAG] * 4])
    words = [[(1, 3), (3, 1)], [(0, 0), (1, 1), (2, 5), (3, 2)]]

    def total(text, path):
        steps = sum(transitions[one, other] for one, other in itertools.pairwise(path))
        return steps + sum(scores[text, place, tag] for (place, _), tag in zip(words[text], path, strict=True))

    expected = 0
    for text, right in enumerate(words):
        every = torch.stack([total(text, path) for path in itertools.product(range(6), repeat=len(right))])
        expected += torch.logsumexp(every, 0) - total(text, [tag for _, tag in right])
    assert sequence_loss(scores, tags, transitions).item() == pytest.approx(expected.item() / 6, rel=1e-5)


class Reader:
    """Leaves every text whole. Its only sign is the number of words; texts of 99 words are too long."""

    def signed(self, texts):
        signs = [(len(text.split()), 0.0, 0.0, 0.0, 0.0) for text in texts]
        return [(undivided(text), known if known[0] < 99 else None) for text, known in zip(texts, signs, strict=True)]


@pytest.mark.parametrize("held_out", [[], ["a b c d e"] * 9])
def test_the_confidence_is_fitted_to_what_is_right_and_its_offset_to_judged_requests(held_out):
    def judged(text, excluded):
        kind = "exclusion" if excluded else "whole"
        return JudgedRequest(kind=kind, query=text, wanted=["a"], excluded=excluded, wanted_op="single")

    wrong = [judged(text, ["b"]) for text in ["a b c d e", "a b c d e f"] * 9 + ["a b " * 50]]
    right = [judged(text, []) for text in ["a", "a b"] * 9]
    weights = calibrated(Reader(), wrong + right, [judged(text, []) for text in held_out])
    assert len(weights) == len(SIGNS) + 1
    chances = [probability((words, 0.0, 0.0, 0.0, 0.0), weights) for words in (1, 2, 5, 6)]
    assert chances == sorted(chances, reverse=True) and chances[1] > 0.8 and chances[2] < 0.4


def test_weights_are_exact_again_after_a_step_with_rounded_ones():
    layer = torch.nn.Linear(100, 3)
    before = layer.weight.detach().clone()
    with rounded(layer):
        assert not layer.weight.equal(before)
        assert all(len(block.unique()) <= 16 for part in layer.weight.detach().split(64, 1) for block in part)
        layer(torch.ones(1, 100)).sum().backward()
    assert layer.weight.equal(before)
    assert layer.weight.grad.equal(torch.ones(3, 100))
    assert in_blocks(in_blocks(before)).allclose(in_blocks(before), atol=1e-6)


def test_words_between_exclusions():
    lines = ["[W a] no [X b] and no [X c]", "[W a] no [X b] and [X c] but [X d]"]
    assert separators([parse_request(line, "") for line in lines]) == ["and"]


@pytest.mark.parametrize(
    ("line", "wanted", "excluded", "joined", "score"),
    [
        ("[W red cars] without [X rust]", ["red cars"], ["rust"], "single", (True, True, True)),
        ("[W red cars] without [X any rust]", ["cars"], ["rust"], "single", (True, True, True)),
        ("[W red cars] without [X rust]", ["red cars", "without"], ["rust"], "single", (True, True, False)),
        ("[W red cars] without [X rust] or dents", ["red cars"], ["rust", "dents"], "single", (False, True, False)),
        ("[W cars] [OR or] [W vans] without [X rust]", ["cars", "vans"], ["rust"], "or", (True, True, True)),
        ("[W cars] [OR or] [W vans] without [X rust]", ["cars", "vans"], ["rust"], "and", (True, False, False)),
    ],
)
def test_scores(line, wanted, excluded, joined, score):
    from pyserini_compneg.reading.assembly import assembled
    from pyserini_compneg.reading.words import words_of

    request = parse_request(line, "")
    words = words_of(request.text)
    reading = assembled(request.text, words, request.tags(words), 1.0)
    judged = JudgedRequest(kind="combined", query=request.text, wanted=wanted, excluded=excluded, wanted_op=joined)
    assert request_score(judged, reading) == score
    assert request_score(judged, undivided(request.text)).whole is False


def config(base, folder, lines=LINES, **settings):
    (folder / "requests.txt").write_text("".join(f"{line}\n" for line in lines if line not in HELD_OUT))
    write_jsonl(folder / "judged.jsonl", *({**record, "wanted_op": "single"} for record in JUDGED))
    given = {"requests": (f"{folder}/requests.txt",), "judged": (f"{folder}/judged.jsonl",), **settings}
    return ReaderTrainConfig(reader=ReaderSection(base=str(base), **given))


@pytest.mark.slow
def test_a_reader_is_trained_and_reads(tmp_path, trunk, monkeypatch):
    learnt, steps, exported = set(), [], []

    def watched(function, seen):
        def call(first, *more):
            seen(first)
            return function(first, *more)

        return call

    for name, seen in (
        ("augmented", lambda request: learnt.add(request.text)),
        ("rounded", lambda module: steps.append(module)),
        ("dense_graph", lambda module: exported.extend(weight.detach().clone() for weight in module.parameters())),
    ):
        monkeypatch.setattr(reader_training, name, watched(getattr(reader_training, name), seen))
    results = train(config(trunk, tmp_path, epochs=12, learning_rate=3e-3, threshold=0.1), tmp_path / "reader")
    texts = [parse_request(line, "").text for line in LINES if line not in HELD_OUT]
    assert learnt == set(texts) - set(texts[24::25])
    assert len(steps) == -(-(len(texts) - len(texts) // 25) // 32)  # of the last epoch
    matrices = [weight for weight in exported if weight.ndim == 2 and len(weight) != len(TAGS)]
    assert len(matrices) > 9 and all(in_blocks(weight).allclose(weight, atol=1e-6) for weight in matrices)
    assert results == {"all": 1.0, "exclusion": 1.0, "whole": 1.0}
    texts = ["games of love but not war", "plays about crime that are not new", "books or songs in London"]
    assert [format_expression(reading.expression) for reading in ModelReader(tmp_path / "reader").read(texts)] == [
        "games of love NOT war",
        "plays about crime that are not new",
        "books in London OR songs in London",
    ]
    assert {path.name for path in (tmp_path / "reader").iterdir()} == {
        *("README.md", "model.onnx", "reader.json", "tokenizer.json", "training_log.json")
    }
    assert not (tmp_path / "reader.training").exists()


@pytest.mark.kill
@pytest.mark.slow
def test_a_killed_training_is_resumed_to_the_same_bits(tmp_path, trunk, monkeypatch):
    settings = config(trunk, tmp_path, LINES[::5], epochs=3)
    train(settings, tmp_path / "whole")
    keep = torch.save

    def killed(saved, path):
        keep(saved, path)
        if saved["epochs"] == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(torch, "save", killed)
        train(settings, tmp_path / "resumed")
    assert not (tmp_path / "resumed").exists()
    train(settings, tmp_path / "resumed", existing="resume")
    whole, resumed = (json.loads((tmp_path / name / "reader.json").read_text()) for name in ("whole", "resumed"))
    assert whole == resumed


RIGHT = JUDGED[0] | {"wanted_op": "single"}


@pytest.mark.parametrize(
    ("lines", "record", "said"),
    [
        ("[W a]\n[X b]\n", RIGHT, "requests.txt:2: nothing is wanted; give at least one [W ...]"),
        ("", RIGHT, "requests.txt: no request in it"),
        ("[W a]\n", {"query": "a"}, "judged.jsonl:1: the key 'kind' is missing"),
        ("[W a]\n", RIGHT | {"wanted_op": "OR"}, "judged.jsonl:1: wanted_op: expected 'single', 'or' or 'and', got "),
        ("[W a]\n", RIGHT | {"excluded": [3]}, "judged.jsonl:1: excluded[0]: expected a text, got 3"),
        ("[W a]\n", RIGHT | {"wanted": ["sea"]}, "judged.jsonl:1: 'sea' is not in the query"),
        ("[W a]\n", RIGHT | {"query": "\x1f", "wanted": ["\x1f"], "excluded": []}, "the query is blank"),
        (
            "[W Films  of war] but not [X love]\n",
            RIGHT,
            "the judged request 'films of war but not love' is among the tagged ones; take it out of them",
        ),
    ],
)
def test_wrong_files_are_refused_and_leave_nothing(tmp_path, trunk, lines, record, said):
    settings = config(trunk, tmp_path, epochs=1)
    (tmp_path / "requests.txt").write_text(lines)
    write_jsonl(tmp_path / "judged.jsonl", record)
    assert said in train_error(settings, tmp_path / "reader")
    assert not list(tmp_path.glob("reader*"))


def test_a_second_process_is_refused(tmp_path, trunk, monkeypatch):
    settings = config(trunk, tmp_path, epochs=1)
    messages = []

    def second(*_, **__):
        messages.append(train_error(settings, tmp_path / "reader", existing="resume"))
        raise InputError("enough")

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", second)
    assert train_error(settings, tmp_path / "reader") == "enough"
    assert messages == [
        f"{tmp_path}/reader.training: another process trains here; wait for it, or choose another --output"
    ]


def test_a_loss_that_is_not_finite_ends_it(tmp_path, trunk, monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", lambda scores, *_, **__: scores.sum() * float("nan"))
    message = train_error(config(trunk, tmp_path, epochs=1), tmp_path / "reader")
    assert message.startswith(
        "the loss of epoch 1 is not a finite number; choose a smaller learning_rate, and start anew"
    )
    assert not list(tmp_path.glob("reader*"))


def test_an_interrupt_before_the_first_checkpoint_leaves_nothing(tmp_path, trunk, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(config(trunk, tmp_path, epochs=1), tmp_path / "reader")
    assert {path.name for path in tmp_path.iterdir()} - {".reader.training.lock"} == {"requests.txt", "judged.jsonl"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model_type": "electra"}, "is of the type electra, not bert"),
        ({"type_vocab_size": 1}, "has 1 type of tokens, not two"),
        ({"max_position_embeddings": 4}, "reads 4 tokens, not 32 or more"),
    ],
)
def test_other_models_are_refused(tmp_path, trunk, changed, said):
    base = shutil.copytree(trunk, tmp_path / "base")
    settings = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(settings | changed))
    message = train_error(config(base, tmp_path, epochs=1), tmp_path / "reader")
    assert message == f"{base}: a reader cannot start from this model: it {said}"
