"""What becomes of a collection of texts when its encoder is a model; a stand-in for it, so that nothing is loaded."""

import pytest
from index_folders import hidden, postings
from json_lines import write_jsonl
from refusals import START_ANEW, refusal
from stand_in_encoder import StandInEncoder, vector

from pyserini_compneg.documents.collection import collection_files, has_vectors
from pyserini_compneg.encode import document_encoders
from pyserini_compneg.index import build, build_index
from pyserini_compneg.index.index_folder import SKIPPED_LOG
from pyserini_compneg.lucene import Manifest
from pyserini_compneg.support import files
from pyserini_compneg.support.errors import DownloadError, OutputError

DOCUMENTS = 200

pytestmark = pytest.mark.slow


@pytest.fixture
def model(monkeypatch):
    """In place of a model; returns the names that were asked for."""
    names = []
    monkeypatch.setattr(
        document_encoders, "_model_encoder", lambda name, options: names.append(name) or StandInEncoder()
    )
    return names


@pytest.fixture
def collection(tmp_path):
    lines = [{"id": f"d{i:03}", "contents": f"film {i} about spies" if i != 5 else ""} for i in range(DOCUMENTS)]
    return write_jsonl(tmp_path / "c.jsonl", *lines)


@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"impact_scale": 100.0}])
def test_impacts_are_the_models_weights(tmp_path, collection, model, monkeypatch, options):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 10)
    manifest = build_index(collection, tmp_path / "index", "owner/m", **options)
    scale = options.get("impact_scale", 51.2)
    assert manifest == Manifest("owner/m", StandInEncoder().settings, scale, documents=DOCUMENTS, empty_documents=1)
    assert Manifest.read(tmp_path / "index") == manifest
    expected = {f"d{i:03}": round(vector("film")["film"] * scale) for i in range(DOCUMENTS) if i != 5}
    assert postings(tmp_path / "index", "film") == expected
    assert model == ["owner/m"]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_bad_documents(tmp_path, collection, model, on_error):
    with collection.open("a") as handle:
        handle.write('{"id": "x"}\n\n{"id": "d000", "contents": "film"}\n{"id": "y", "contents": "film"}\n')
    said = f"{collection}:{DOCUMENTS + 1}: no text; expected `contents`, `title` and `text`, or `vector`"
    if on_error == "stop":
        assert refusal(build_index, collection, tmp_path / "index", "m") == said
        assert not (tmp_path / "index").exists()
        return
    assert build_index(collection, tmp_path / "index", "m", on_error="skip").documents == DOCUMENTS + 1
    assert (tmp_path / "index" / SKIPPED_LOG).read_text().splitlines() == [
        said,
        f"{collection}:{DOCUMENTS + 3}: document id 'd000' was given at {collection}:1 already",
    ]
    assert len(postings(tmp_path / "index", "film")) == DOCUMENTS


@pytest.mark.parametrize(("name", "moved", "term"), [("m", "elsewhere/m", "film"), ("bm25+m", "bm25+x/m", "@film")])
def test_a_build_is_continued(tmp_path, collection, model, monkeypatch, name, moved, term):
    """Also by another name of the model, which is known by its content."""
    build_index(collection, tmp_path / "expected", name)
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(build, "CHECKPOINT_SECONDS", 0)
    stream, seen = StandInEncoder.stream, []

    def fails(self, batches):
        for number, vectors in enumerate(stream(self, batches)):
            if number == 4:
                raise KeyboardInterrupt
            yield vectors

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StandInEncoder, "stream", fails)
        build_index(collection, tmp_path / "index", name)
    assert hidden(tmp_path) == [".index.building"]
    monkeypatch.setattr(StandInEncoder, "settings", {}, raising=False)
    monkeypatch.setattr(
        StandInEncoder, "stream", lambda self, batches: stream(self, (seen.extend(texts) or texts for texts in batches))
    )
    monkeypatch.setattr(document_encoders, "_model_encoder", lambda *_: StandInEncoder(precision="int8"))
    assert refusal(build_index, collection, tmp_path / "index", name, existing="resume", error=OutputError) == (
        f"{tmp_path / 'index'}: the unfinished work cannot be continued, because settings changed since; " + START_ANEW
    )
    monkeypatch.setattr(document_encoders, "_model_encoder", lambda *_: StandInEncoder())
    assert build_index(collection, tmp_path / "index", moved, existing="resume").encoder == moved
    assert 0 < len(seen) < DOCUMENTS - 20
    assert postings(tmp_path / "index", term) == postings(tmp_path / "expected", term) != {}
    assert hidden(tmp_path) == []


def test_vectors_need_no_model(tmp_path, model):
    path = write_jsonl(
        tmp_path / "v.jsonl", "{", {"id": "a", "vector": {"film": 2}, "contents": "film"}, {"id": "b", "contents": "x"}
    )
    build_index(path, tmp_path / "index", "owner/m", on_error="skip")
    assert postings(tmp_path / "index", "film") == {"a": 2.0}
    assert model == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['{"id": "a", "vector": {}}'], True),
        (['{"id": "a", "contents": "x", "vector": {}}'], True),
        (['{"id": "a", "contents": "x"}', '{"id": "b", "vector": {}}'], False),
        (["", "{", '{"id": "a", "contents": "x"}'], False),
        (["", "[]", '{"id": "a", "vector": {}}'], True),
        (["{", '{"id": "a"}'], None),
        ([], None),
    ],
)
def test_the_first_document_that_can_be_read_decides(tmp_path, lines, expected):
    assert has_vectors(collection_files(write_jsonl(tmp_path / "c.jsonl", *lines))) is expected


def test_a_model_that_is_not_there(tmp_path, collection):
    with pytest.raises(DownloadError, match="^owner/unheard-of: "):
        build_index(collection, tmp_path / "index", "owner/unheard-of")
    assert hidden(tmp_path) == []
    assert not (tmp_path / "index").exists()
