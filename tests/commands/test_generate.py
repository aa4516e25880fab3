"""The command, and what ``train`` makes of its folder."""

import pytest
from category_model import DOCUMENTS, answered
from chat_server import chat_server, content
from json_lines import write_jsonl

from pyserini_compneg.commands.generate import main
from pyserini_compneg.commands.train import main as train

ENCODER = """
model: {{base: {base}, head: "relu:max", max_length: 32}}
data: [{{dataset: made, split: train, negatives: compositional, atoms: made/atoms.jsonl}}]
training: {{steps: 2, batch_size: 4}}
"""
READER = """
reader: {{base: {base}, requests: [made/requests.txt], judged: [made/judged.jsonl], epochs: 1}}
"""

pytest.importorskip("openai")


@pytest.fixture
def home(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "c.jsonl", *DOCUMENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPNEG_LLM_MODEL", "some-model")
    return tmp_path


@pytest.fixture
def base(request):
    pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")
    pytest.importorskip("onnxscript", reason="exports are made by torch and onnxscript")
    return request.getfixturevalue("checkpoints").bert


def generated(reply, monkeypatch, *more):
    with chat_server(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return main(["--collection", "c.jsonl", "--output", "made", *more])


def test_the_counts_are_printed(home, monkeypatch, capsys):
    assert generated(answered, monkeypatch, "--limit", "4", "--seed", "7") == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("questions\t4\natoms\t8\nrequests\t3\nwords in documents\t1.0000\n", "")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((401, ""), "some-model: HTTP status 401; 0 answers are kept, and the same command goes on"),
        (
            content(""),
            "some-model: no answer can be used (questions 5, atoms 0, requests 0, rejected: atoms: not as asked 5); "
            "choose another model",
        ),
    ],
)
def test_an_error_is_one_line(home, monkeypatch, capsys, reply, said):
    assert generated(reply, monkeypatch, "--limit", "5") == 2
    assert capsys.readouterr() == ("", f"error: {said}\n")


def test_no_model_is_named(home, monkeypatch, capsys):
    monkeypatch.delenv("COMPNEG_LLM_MODEL")
    assert generated(answered, monkeypatch) == 2
    said = "error: a language model needs COMPNEG_LLM_MODEL in the environment: the base of an OpenAI-compatible API, "
    assert capsys.readouterr().err.startswith(said)
    assert [path.name for path in home.iterdir()] == ["c.jsonl"]


def test_the_output_is_no_input(home, monkeypatch, capsys):
    (home / "c").mkdir()
    (home / "c.jsonl").rename(home / "c" / "c.jsonl")
    assert main(["--collection", "c", "--output", "c/made"]) == 1
    assert capsys.readouterr().err.endswith("c/made: would overwrite c; choose another place with --output\n")


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "file"), [(ENCODER, "model.safetensors"), (READER, "reader.json")])
def test_train_takes_the_folder(home, base, monkeypatch, settings, file):
    assert generated(answered, monkeypatch, "--limit", "20") == 0
    (home / "c.yaml").write_text(settings.format(base=base))
    assert train(["c.yaml", "--data", str(home), "--output", "model"]) == 0
    assert (home / "model" / file).is_file()
    assert ("generated: requests by a language model" in (home / "model" / "README.md").read_text()) == (file[0] == "m")
