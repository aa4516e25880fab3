"""The model that comes with the package: what it adds to BM25, alone and in an index of both."""

import gzip
import json
import re
import shutil

import pytest
from checkpoints import SAMPLE

pytest.importorskip("onnxruntime", reason="models are run by onnxruntime")

from pyserini_compneg import SignedImpactSearcher, build_index  # noqa: E402
from pyserini_compneg.encode.models import MINI, ModelOptions, model_folder, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.neural import ModelDocumentEncoder, checkpoint_hash  # noqa: E402
from pyserini_compneg.encode.vector_files import VECTORS_FILE  # noqa: E402
from pyserini_compneg.errors import EncodingError  # noqa: E402
from pyserini_compneg.vectors import dot, norm  # noqa: E402

LEADS = {
    "spies": "Ray\nRay is a 1994 American spy film directed by Ada Lovelace and starring Charles Babbage.",
    "war": "Fay\nFay is a 1943 British war film. It was restored in the 1990s by a spy.",
    "silent": "May\nMay is a 1924 silent comedy film starring Ada Lovelace.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mini")
    lines = [json.dumps({"id": name, "contents": text}) for name, text in LEADS.items()]
    (folder / "d.jsonl").write_text("\n".join(lines) + "\n")
    build_index(folder / "d.jsonl", folder / "index", encoder=f"bm25+{MINI}")
    return folder / "index"


def test_a_year_is_of_a_decade():
    encoder = ModelDocumentEncoder(read_checkpoint(model_folder(MINI)))
    vectors = dict(zip(LEADS, encoder.encode_batch(list(LEADS.values())), strict=True))
    assert vectors["spies"]["1990s"] > 1
    assert vectors["spies"]["1990s"] > 2 * vectors["war"].get("1990s", 0)
    assert vectors["war"]["1940s"] > 1
    assert vectors["silent"]["1920s"] > 1


def test_what_bm25_does_not_find_is_found(index):
    for weight, found in ((0.0, "war"), (None, "spies")):
        with SignedImpactSearcher(index, model_weight=weight) as searcher:
            assert searcher.search("1990s spy films")[0].docid == found


def test_the_manifest_names_the_model_of_the_package(index, tmp_path, monkeypatch):
    (tmp_path / MINI).mkdir()  # a folder of the same name is `./mini`
    monkeypatch.chdir(tmp_path)
    build_index(index.parent / "d.jsonl", tmp_path / "here", encoder=f"bm25+{MINI}")
    for folder in (index, tmp_path / "here"):
        assert json.loads((folder / "compneg.json").read_text())["encoder"] == f"bm25+{MINI}"


def test_a_copy_is_the_same_model(index, tmp_path):
    shutil.copytree(model_folder(MINI), tmp_path / "copy")
    with SignedImpactSearcher(index, encoder=f"bm25+{tmp_path / 'copy'}") as searcher:
        assert len(searcher.search("spy films")) == 3


def test_a_damaged_query_side_is_found_before_anything_is_indexed(index, tmp_path):
    shutil.copytree(model_folder(MINI), tmp_path / "copy")
    weights = next((tmp_path / "copy").glob("query*/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:60_000])
    with pytest.raises(EncodingError, match=f"^{re.escape(str(weights))}: cannot be read"):
        build_index(index.parent / "d.jsonl", tmp_path / "index", encoder=f"bm25+{tmp_path / 'copy'}")
    assert not list(tmp_path.glob("index*"))


def test_bm25_says_that_vectors_are_there(tmp_path, caplog):
    sample = SAMPLE / "vectors"
    build_index(sample, tmp_path / "index")
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{sample}: has vectors of bm25+mini, and bm25 reads the texts beside them; "
        "give --encoder bm25+mini to index the vectors"
    ]


def test_the_vectors_of_the_sample_are_its_own():
    settings = json.loads((SAMPLE / "vectors" / VECTORS_FILE).read_text())["settings"]
    checkpoint = read_checkpoint(model_folder(MINI))
    assert settings["model"] == checkpoint_hash(checkpoint)
    with gzip.open(next((SAMPLE / "vectors").glob("*.gz")), "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line, _ in zip(lines, range(40), strict=False)]
    options = ModelOptions(threshold=settings["threshold"])
    made = ModelDocumentEncoder(checkpoint, options).encode_batch([record["contents"] for record in records])
    for record, vector in zip(records, made, strict=True):
        shipped = {term[1:]: weight for term, weight in record["vector"].items() if term.startswith("@")}
        assert dot(shipped, vector) > 0.99 * norm(shipped) * norm(vector)  # processors round int8 differently
