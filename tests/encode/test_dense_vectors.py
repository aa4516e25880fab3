"""Files of dense vectors: what is in them, and that whatever ends a run, it is gone on with."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dense_encoder import StandInDenseEncoder, direction

from pyserini_compneg.datasets.collection import SourceDocument
from pyserini_compneg.encode import dense_vectors
from pyserini_compneg.encode.dense_vectors import VECTORS_FILE, Contents, contents_of, write_dense_vectors
from pyserini_compneg.errors import CollectionError, OutputError

# Encodes with the stand-in, in small batches, and kills its own process at a step of the work, before or after it.
MORTAL = """
import os, sys
from mortal import make_mortal
from pathlib import Path
from pyserini_compneg.encode import dense_vectors, shard_file
from dense_encoder import StandInDenseEncoder
from test_dense_vectors import documents

steps = int(sys.argv[2])
dense_vectors._BATCH = 4

make_mortal(((os, ("fsync", "replace", "unlink")), (shard_file.ShardFile, ("add", "_open"))), steps)
contents = dense_vectors.contents_of(documents)
dense_vectors.write_dense_vectors(documents, contents, Path(sys.argv[1]), StandInDenseEncoder())
"""


def documents(count=11):
    return [SourceDocument(f"d{i}é", f"text {i}", None, f"films.jsonl:{i + 1}") for i in range(count)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(dense_vectors, "_BATCH", 4)


def write(folder, encoder, source=documents):
    return write_dense_vectors(source, contents_of(source), folder, encoder)


def lines_of(path):
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        return [json.loads(line) for line in handle]


def assert_whole(folder):
    lines = lines_of(folder / VECTORS_FILE)
    assert [line["docid"] for line in lines] == [document.docid for document in documents()]
    expected = [direction(document.text) for document in documents()]
    assert (np.array([line["vector"] for line in lines], np.float32) == expected).all()
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == [VECTORS_FILE]


def test_lines_are_those_of_json_dense_vector_collection(tmp_path):
    encoder = StandInDenseEncoder()
    assert write(tmp_path / "vectors", encoder) == tmp_path / "vectors" / VECTORS_FILE
    assert_whole(tmp_path / "vectors")
    assert list(map(len, encoder.batches)) == [4, 4, 3]


def test_what_was_encoded_is_not_encoded_again(tmp_path):
    write(tmp_path, StandInDenseEncoder())
    again = StandInDenseEncoder()
    write(tmp_path, again)
    assert again.batches == []


def test_numbers_keep_all_their_bits(tmp_path):
    odd = [1.0, -1e-45, 3.4028235e38, 1 / 3, -0.0, 1e-7, 16777217, 2e-30]
    write(tmp_path, StandInDenseEncoder(**{"text 0": odd}))
    found = np.array(lines_of(tmp_path / VECTORS_FILE)[0]["vector"], np.float32)
    assert found.tobytes() == np.float32(odd).tobytes()


def test_work_that_an_error_ended_is_gone_on_with(tmp_path, caplog):
    encoder = StandInDenseEncoder()
    original = encoder.encode_documents

    def failing(texts):
        if len(encoder.batches) == 2:
            raise RuntimeError("out of memory")
        return original(texts)

    encoder.encode_documents = failing
    with pytest.raises(RuntimeError, match="out of memory"):
        write(tmp_path, encoder)
    assert not (tmp_path / VECTORS_FILE).exists()
    assert caplog.messages == [
        f"{tmp_path / VECTORS_FILE}: what was encoded is kept; run the same again to go on with it"
    ]
    rest = StandInDenseEncoder()
    write(tmp_path, rest)
    assert rest.batches == [["text 8", "text 9", "text 10"]]
    assert_whole(tmp_path)


def test_a_kill_leaves_nothing_half_written(tmp_path):
    helpers = [Path(__file__).parents[1] / "helpers", Path(__file__).parent]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, helpers), *sys.path])}
    for steps in range(2, 200, 5):
        folder = tmp_path / str(steps)
        command = [sys.executable, "-c", MORTAL, str(folder), str(steps)]
        code = subprocess.run(command, env=environment, check=False).returncode
        if (folder / VECTORS_FILE).exists():
            assert len(lines_of(folder / VECTORS_FILE)) == 11
        write(folder, StandInDenseEncoder())
        assert_whole(folder)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert steps > 20


def test_documents_are_known_by_ids_and_texts():
    expected = contents_of(documents)
    assert expected == Contents(11, expected.digest)
    moved = [document._replace(source="elsewhere") for document in documents()]
    assert contents_of(lambda: moved) == expected
    for changed in (
        documents()[::-1],
        documents(10),
        [documents()[0]._replace(text="other"), *documents()[1:]],
        [documents()[0]._replace(docid="other"), *documents()[1:]],
    ):
        assert contents_of(lambda changed=changed: changed).digest != expected.digest


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "there are no documents to encode"),
        (
            [*documents(2), documents()[0]._replace(source="films.jsonl:9")],
            "films.jsonl:9: document id 'd0é' was given at films.jsonl:1 already",
        ),
        (
            [SourceDocument("d", None, {"a": 1}, "films.jsonl:1")],
            "films.jsonl:1: only a `vector`, where texts are encoded",
        ),
    ],
)
def test_bad_documents_are_refused_before_any_is_encoded(source, message):
    with pytest.raises(CollectionError) as error:
        contents_of(lambda: source)
    assert str(error.value) == message


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError) as error:
        write(tmp_path / "file", StandInDenseEncoder())
    assert str(error.value) == (
        f"{tmp_path / 'file' / VECTORS_FILE}: cannot be written: file exists; make room, or name another place in "
        "COMPNEG_CACHE"
    )
