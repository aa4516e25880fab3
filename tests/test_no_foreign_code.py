"""No model brings code of its own: no call loads it, no library asks about it, and no command takes such a model."""

import ast
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from checkpoints import edit_json, sample_texts, write_json
from hub_server import COMMIT

import pyserini_compneg
from pyserini_compneg.baselines import dense_model_hash
from pyserini_compneg.commands.main import main
from pyserini_compneg.encode.models import ModelOptions, load_checkpoint, model_folder
from pyserini_compneg.encode.neural import ModelDocumentEncoder
from pyserini_compneg.support.errors import EncodingError, install_hint

PACKAGE = Path(pyserini_compneg.__file__).parent
LOADERS = {"from_pretrained", "SentenceTransformer", "CrossEncoder"}


def test_every_call_that_loads_a_model_refuses_its_code():
    calls = [
        (path.name, node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] in LOADERS
    ]
    assert len(calls) >= 7
    for name, call in calls:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert given.get("trust_remote_code") == "False", f"{name}:{call.lineno}"


@pytest.fixture
def foreign(request, tmp_path, monkeypatch):
    """A masked language model that works, with classes of its own for configuration, tokenizer and network."""
    pytest.importorskip("torch", reason="checkpoints are written by torch")
    pytest.importorskip("transformers", reason="checkpoints are loaded by transformers")
    folder = shutil.copytree(request.getfixturevalue("checkpoints").bert, tmp_path / "foreign")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    names = {name: "own.Own" for name in ("AutoConfig", "AutoModel", "AutoModelForMaskedLM")}
    edit_json(folder / "config.json", auto_map=names, model_type="own")
    edit_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Own", None]})
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked a question"))
    monkeypatch.chdir(folder)  # so that Python itself would find the module
    monkeypatch.syspath_prepend(folder)
    yield folder
    assert not (tmp_path / "executed").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["index", "encode", "export", "search", "compose", "train base", "train teacher", "train separate"]
)
def test_no_command_takes_such_a_model(foreign, request, tmp_path, capsys, command):
    documents, triples = tmp_path / "d.jsonl", tmp_path / "t.jsonl"
    documents.write_text("".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(sample_texts(3))))
    triples.write_text(json.dumps({"query": "q", "positive": "p", "negative": "n"}) + "\n")
    name, _, part = command.partition(" ")
    arguments = {"--encoder": foreign, "--index": tmp_path / "i", "--collection": documents, "--output": tmp_path / "o"}
    kept = {"export": ["--encoder"], "encode": ["--encoder", "--collection", "--output"], "train": ["--output"]}
    given = {name: arguments[name] for name in kept.get(command.split()[0], ["--encoder", "--index"])}
    more = []
    if name == "index":
        given |= {"--collection": documents}
    elif name in ("search", "compose"):
        assert main(["index", "--collection", str(documents), "--index", str(tmp_path / "i")]) == 0
        manifest = tmp_path / "i" / "compneg.json"
        edit_json(manifest, encoder=str(foreign), settings={"model": "0" * 16})
        more = ["--query", "film"]
    elif name == "train":
        model = {"base": str(foreign if part != "teacher" else request.getfixturevalue("checkpoints").bert)}
        settings = {"model": model, "data": [{"dataset": str(triples)}], "training": {"steps": 1}}
        settings |= {"teacher": {"model": str(foreign)}} if part == "teacher" else {}
        model |= {"query_encoder": "separate"} if part == "separate" else {}
        write_json(tmp_path / "c.yaml", settings)
        more = [str(tmp_path / "c.yaml")]
    capsys.readouterr()
    assert main([name, *(str(word) for pair in given.items() for word in pair), *more]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("info: ")]
    assert said == [f"error: {foreign}: needs custom code (config.json has `auto_map`), which is never run here"]


def test_a_type_that_transformers_has_needs_no_classes_of_its_own(foreign, request):
    """Its `auto_map` is ignored; libraries keep it when they save such a model."""
    edit_json(foreign / "config.json", model_type="bert")
    bert = str(request.getfixturevalue("checkpoints").bert)
    found, expected = (
        ModelDocumentEncoder(load_checkpoint(name), ModelOptions("torch")).encode_batch(["a spy film"])
        for name in (str(foreign), bert)
    )
    assert found == expected != [{}]


def test_without_transformers_nobody_knows_which_types_it_has(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    write_json(tmp_path / "config.json", {"auto_map": {"AutoModel": "own.Own"}, "model_type": "nomic_bert"})
    with pytest.raises(EncodingError) as caught:
        model_folder(str(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}: only transformers tells whether 'nomic_bert' needs custom code, which config.json names "
        f"(`auto_map`); {install_hint('torch')}, or name a folder that export --output made"
    )


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("tokenizer_config.json", {"auto_map": {}}, "`auto_map`"),
        ("0_Transformer/config.json", {"auto_map": {"AutoModel": "own.Own"}}, "`auto_map`"),
        (
            "modules.json",
            [{"type": "sentence_transformers.models.Transformer"}, {"type": "own.Own"}],
            "the class 'own.Own'",
        ),
        ("router_config.json", {"types": {"query_0": "own.Own"}}, "the class 'own.Own'"),
        (
            "config.json",
            {"sentence_transformers": {"activation_fn": "torch.hub.load"}},
            "`activation_fn` 'torch.hub.load'",
        ),
        ("config.json", {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, None),
        (
            "config.json",
            {"sbert_ce_default_activation_function": "torch.utils.collect_env.main"},
            "`sbert_ce_default_activation_function` 'torch.utils.collect_env.main'",
        ),
        (
            "config.json",
            {"sbert_ce_default_activation_function": "torch.nn.Sigmoid", "activation_function": "gelu"},
            None,
        ),
        ("config_sentence_transformers.json", {"activation_fn": "own.Own"}, "`activation_fn` 'own.Own'"),
        ("2_Dense/config.json", {"activation_function": "torch.nn.modules.activation.Tanh"}, None),
        ("2_Dense/config.json", {"activation_function": "torch.nn.Own"}, "`activation_function` 'torch.nn.Own'"),
        ("0/wordembedding_config.json", {"tokenizer_class": "own.Own"}, "`tokenizer_class` 'own.Own'"),
        ("0/sentence_bert_config.json", {"model_args": {"weights_only": False}}, "`weights_only`"),
        ("0/sentence_bert_config.json", {"model_args": {"weights_only": True, "attn_implementation": "sdpa"}}, None),
        ("0/sentence_roberta_config.json", {"model_args": {"allow_all_kernels": True}}, "`allow_all_kernels`"),
        ("config.json", {"attn_implementation": "own/kernel"}, "`attn_implementation` 'own/kernel'"),
        (
            "modules.json",
            [{"type": "sentence_transformers.base.model.pickle"}],
            "the class 'sentence_transformers.base.model.pickle'",
        ),
        ("modules.json", "no list", None),
        ("data_config.json", [{"name": "stackexchange", "lines": 7, "weight": 2}], None),  # as of all-MiniLM-L6-v2
        ("0/config.json", {"types": {"a": "own.Own"}}, "the class 'own.Own'"),  # as routers had it
        ("2/train_config.json", {"types": ["query"]}, None),
        ("config.json", "{", None),
    ],
)
def test_every_file_that_can_name_code_is_read(tmp_path, file, content, said):
    path, linked = tmp_path / "model" / file, tmp_path / "linked"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if content == "{" else json.dumps(content))
    linked.mkdir()
    (linked / "part").symlink_to(tmp_path / "model")
    (tmp_path / "model" / "round").symlink_to(tmp_path / "model")
    for folder in (tmp_path / "model", linked):
        if said is None:
            assert model_folder(str(folder)) == folder  # what needs the file reports that it is damaged
            continue
        with pytest.raises(EncodingError) as caught:
            model_folder(str(folder))
        assert str(caught.value) == f"{folder}: needs custom code ({path.name} has {said}), which is never run here"


def test_a_dense_model_of_the_hub_is_refused_with_the_cause(tmp_path):
    """By its name, too, though a message of its own says which names there are."""
    cached = Path(os.environ["HF_HOME"], "hub", "models--owner--foreign")
    folder = cached / "snapshots" / COMMIT
    for file, content in (("refs/main", COMMIT), (f"snapshots/{COMMIT}/model.safetensors", "")):
        (cached / file).parent.mkdir(parents=True)
        (cached / file).write_text(content)
    write_json(folder / "modules.json", [{"type": "own.Own", "path": ""}])
    with pytest.raises(EncodingError) as caught:
        dense_model_hash("owner/foreign")
    said = "needs custom code (modules.json has the class 'own.Own'), which is never run here"
    assert str(caught.value) == f"owner/foreign: {said}"
