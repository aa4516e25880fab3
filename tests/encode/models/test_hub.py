"""Names of the hub, offline and against a server of this machine that answers as the hub does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub_server import COMMIT, hub_server
from refusals import refusal

from pyserini_compneg.encode.models import model_folder
from pyserini_compneg.support.errors import DownloadError, EncodingError

pytest.importorskip("huggingface_hub", reason="models come from the hub by huggingface_hub")
pytestmark = [pytest.mark.slow, pytest.mark.once]

SCRIPT = """
import sys
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.encode.models import model_folder

for name in sys.argv[1:]:
    try:
        print(model_folder(name))
    except CompNegError as error:
        print(type(error).__name__, error)
"""
FILES = {
    "config.json": "{}",
    "README.md": "# A model",
    "tokenizer.json": "{}",
    "vocab.txt": "[PAD]",
    "1_SpladePooling/config.json": "{}",
    "model.safetensors": "weights",
    "pytorch_model.bin": "weights",
    "training_args.bin": "",
    "optimizer.bin": "",
    "onnx/model.onnx": "",
    "onnx/config.json": "{}",
    "openvino/openvino_model.bin": "",
    "tf_model.h5": "",
    "flax_model.msgpack": "",
}

TEXTS = {"config.json", "tokenizer.json", "vocab.txt", "1_SpladePooling/config.json"}


@pytest.fixture
def hub(tmp_path):
    with hub_server() as server:
        for name, files in FILES.items():
            path = tmp_path / "model" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files)
        server.add("owner/m", tmp_path / "model")
        yield server


@pytest.fixture
def ask(tmp_path, hub):
    def ask(*names, script=SCRIPT, **environment):
        known = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        known |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HF_HOME": str(tmp_path / "home")}
        known |= {"HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "*", **environment}
        command = [sys.executable, "-c", script, *names]
        done = subprocess.run(command, capture_output=True, text=True, env=known, check=True)
        return done.stdout.strip()

    return ask


def files(folder):
    return {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_folder_is_a_folder(tmp_path, monkeypatch):
    assert model_folder(str(tmp_path)) == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert model_folder(f"~/{tmp_path.name}") == tmp_path
    (tmp_path / "owner" / "m").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert model_folder("owner/m") == Path("owner/m")


@pytest.mark.parametrize(
    "name",
    ["", "a/b/c", "/no/such", "a b", "owner/", "../m", "https://hub/m", "m?", "x.y/"]
    + ["owner/a--b", "a..b", "-m", "m.", "owner/m.git", "x" * 200, "é/m"],  # the hub allows no such names
)
def test_what_cannot_be_a_name(name):
    assert refusal(model_folder, name, error=EncodingError) == (
        f"no model {name!r}; expected mini, latent, latent:FOLDER, a folder, or owner/name on the Hugging Face hub "
        "(index and search also take bm25 and bm25+MODEL, search also a JSON Lines file of encoded texts)"
    )


@pytest.mark.parametrize("name", ["", "mini", "m+latent:n"])
def test_what_cannot_be_the_place_of_a_latent_model(name):
    said = f"no model {name!r}; expected a folder, or owner/name on the Hugging Face hub, after latent:"
    assert refusal(model_folder, f"latent:{name}", error=EncodingError) == said


def test_offline_an_unknown_model_is_one_line():
    assert refusal(model_folder, "owner/unheard-of", error=DownloadError) == (
        "owner/unheard-of: neither a folder nor in the Hugging Face cache, and HF_HUB_OFFLINE is set; name a folder, "
        "or download it where there is a network (hf download owner/unheard-of) and copy the cache"
    )


def test_a_download_takes_what_is_needed_and_is_not_repeated(ask, hub, tmp_path):
    folder = ask("owner/m")
    assert folder == str(tmp_path / "home" / "hub" / "models--owner--m" / "snapshots" / COMMIT)
    assert files(folder) == {*TEXTS, "model.safetensors"}
    assert (Path(folder) / "model.safetensors").read_text() == "weights"
    assert hub.requests
    hub.requests.clear()
    assert ask("owner/m") == folder
    assert ask("owner/m", HF_HUB_OFFLINE="1") == folder
    assert hub.requests == []


def test_the_older_format_where_there_is_no_other(ask, hub):
    del hub.models["owner/m"]["model.safetensors"]
    folder = ask("owner/m")
    assert files(folder) == {*TEXTS, "pytorch_model.bin"}


def test_what_the_cache_lacks_is_downloaded(ask, hub):
    folder = Path(ask("owner/m"))
    complete = files(folder)
    for lost in ("model.safetensors", "config.json"):
        (folder / lost).resolve().unlink()
        (folder / lost).unlink()
        hub.requests.clear()
        assert ask("owner/m") == str(folder)
        assert files(folder) == complete
        assert any(request.endswith(f"/{lost}") for request in hub.requests)


def test_a_download_that_breaks_is_continued(ask, hub):
    hub.broken.add("tokenizer.json")
    said = ask("owner/m")
    assert said.startswith(
        "DownloadError owner/m: neither a folder nor in the Hugging Face cache, and the hub cannot be reached ("
    )
    hub.broken.clear()
    assert "tokenizer.json" in files(ask("owner/m"))


def test_what_the_hub_refuses(ask, hub):
    kinds = ((401, "GatedRepo"), (403, "GatedRepo"), (404, "RepoNotFound"), (401, "RepoNotFound"))
    hub.refused |= {f"owner/m{number}": kind for number, kind in enumerate(kinds)}
    licence = "its licence must be accepted on the hub first; do so, and set HF_TOKEN"
    unknown = "the hub has no such model, or it needs a token (HF_TOKEN)"
    assert ask(*hub.refused).splitlines() == [
        f"DownloadError owner/m0: {licence}",
        f"DownloadError owner/m1: {licence}",
        f"EncodingError owner/m2: {unknown}",
        f"EncodingError owner/m3: {unknown}",
    ]


def test_no_hub(ask, tmp_path):
    said = ask("owner/m", HF_ENDPOINT="http://127.0.0.1:9")
    assert said.startswith(
        "DownloadError owner/m: neither a folder nor in the Hugging Face cache, and the hub cannot be reached ("
    )
    assert said.endswith(
        "); name a folder, or download it where there is a network (hf download owner/m) and copy the cache"
    )
    assert "\n" not in said
