"""``compneg encode``, and ``--encoder MODEL`` of the commands after it, with a tiny model."""

import gzip
import json
import random
import shutil

import pytest

pytest.importorskip("torch", reason="models are exported by torch")
pytest.importorskip("transformers", reason="checkpoints are loaded by transformers")
pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
pytest.importorskip("onnxruntime", reason="exports are run by onnxruntime")

from checkpoints import SAMPLE  # noqa: E402
from json_lines import write_jsonl  # noqa: E402
from vector_files import NAME, records  # noqa: E402

from pyserini_compneg.commands.encode import main as encode  # noqa: E402
from pyserini_compneg.commands.index import main as build  # noqa: E402
from pyserini_compneg.commands.search import main as search  # noqa: E402
from pyserini_compneg.encode.models import (
    ModelOptions,  # noqa: E402
    load_checkpoint,  # noqa: E402
)
from pyserini_compneg.encode.neural import ModelDocumentEncoder, checkpoint_hash  # noqa: E402
from pyserini_compneg.lucene import Manifest  # noqa: E402

pytestmark = pytest.mark.slow

DOCUMENTS = 120


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    with gzip.open(SAMPLE / "documents.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line, _ in zip(lines, range(DOCUMENTS), strict=False)]
    documents[7]["title"] = documents[7]["text"] = ""
    return write_jsonl(tmp_path_factory.mktemp("collection") / "films.jsonl", *documents)


@pytest.fixture(scope="module")
def titles(collection):
    return [json.loads(line)["title"] for line in collection.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def topics(tmp_path, titles):
    """Twenty expressions of titles, with all the operators."""
    choice = random.Random(2)
    words = [title.replace('"', "") for title in titles if title]
    lines = []
    for number in range(20):
        parts = [f'"{title}"' for title in choice.sample(words, 3)]
        lines.append(f"q{number}\t{parts[0]} {choice.choice(['AND', 'OR'])} {parts[1]} NOT {parts[2]}\n")
    (tmp_path / "topics.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path / "topics.tsv"


@pytest.fixture
def model(checkpoints, exported):
    exported("bert")
    return checkpoints.bert


def arguments(**options):
    for name, value in options.items():
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield str(value)


def run(command, /, **options):
    return command(list(arguments(**options)))


def run_of(topics, index, output, **options):
    assert run(search, index=index, topics=topics, output=output, hits=50, tag="t", **options) == 0
    return output.read_text()


def test_options_of_the_model(tmp_path, collection, model, capfd):
    options = {"collection": collection, "output": tmp_path / "out", "encoder": model}
    assert run(encode, **options, backend="torch", top_terms=5, threshold=0.2, batch_size=3, max_length=16) == 0
    assert capfd.readouterr() == (f"{tmp_path / 'out' / NAME}\n", "")
    chosen = ModelOptions("torch", top_terms=5, threshold=0.2, max_length=16)
    lines = records(tmp_path / "out" / NAME)
    assert [line["id"] for line in lines] == [json.loads(text)["docid"] for text in collection.open(encoding="utf-8")]
    vectors = ModelDocumentEncoder(load_checkpoint(str(model)), chosen).encode_batch([d["contents"] for d in lines])
    assert max(len(line["vector"]) for line in lines) == 5
    for line, vector in zip(lines, vectors, strict=True):
        assert line["vector"] == pytest.approx(vector, abs=2e-5)
        assert line["encoder"] == str(model)


def test_an_index_of_texts_is_one_of_their_vectors(tmp_path, collection, topics, model, capfd):
    assert run(encode, collection=collection, output=tmp_path / "vectors", encoder=model) == 0
    built = {"encoder": model, "store_docvectors": True}
    assert run(build, collection=tmp_path / "vectors", index=tmp_path / "two", **built) == 0
    assert run(build, collection=collection, index=tmp_path / "one", **built) == 0
    runs = [run_of(topics, tmp_path / name, tmp_path / f"{name}.txt") for name in ("one", "two")]
    assert runs[0] == runs[1]
    assert len(runs[0].splitlines()) > 100
    one, two = (Manifest.read(tmp_path / name) for name in ("one", "two"))
    settings = {"model": checkpoint_hash(load_checkpoint(str(model))), "precision": "fp32", "max_length": 64}
    assert (one.settings, one.encoder, one.impact_scale, one.signed) == (settings, str(model), 51.2, False)
    assert (one.documents, one.empty_documents) == (DOCUMENTS, 1)
    assert two == one
    said = f"{DOCUMENTS} documents (1 without a term), encoder {model}"
    assert [line for line in capfd.readouterr().err.splitlines() if line.startswith(str(tmp_path))] == [
        f"{tmp_path / 'two'}: {said}",
        f"{tmp_path / 'one'}: {said}",
    ]


def test_queries_of_another_model(tmp_path, collection, topics, model, checkpoints, capfd):
    index = tmp_path / "index"
    assert run(build, collection=collection, index=index, encoder=model) == 0
    hashes = [checkpoint_hash(load_checkpoint(str(folder))) for folder in (model, checkpoints.distilbert)]
    capfd.readouterr()
    assert run(search, index=index, topics=topics, encoder=checkpoints.distilbert) == 2
    assert capfd.readouterr() == (
        "",
        f"error: {index} was encoded with {str(model)!r} ({hashes[0]}), and {str(checkpoints.distilbert)!r} is another "
        f"model ({hashes[1]}); use the index's encoder (a Router of "
        "sentence-transformers is one encoder with a model for documents and another for queries)\n",
    )
    assert run(search, index=index, topics=topics, encoder="bm25") == 2
    assert capfd.readouterr().err == (
        f"error: {index} was encoded with {str(model)!r}, the queries with 'bm25'; use the index's encoder\n"
    )
    assert run(search, index=index, topics=topics, head="relu:sum") == 2
    err = capfd.readouterr().err
    assert err.startswith(
        f"error: {index} was encoded with {str(model)!r} ({hashes[0]}), and it is another model now ("
    )
    assert err.endswith("): its files, or its --head, have changed; restore them, or build the index again\n")
    expected = run_of(topics, index, tmp_path / "run.txt")
    assert run_of(topics, index, tmp_path / "run.txt", encoder=checkpoints.sparse_encoder) == expected


def test_a_signed_head_makes_a_signed_index(tmp_path, collection, topics, checkpoints, exported):
    exported("signed")
    options = {"collection": collection, "encoder": checkpoints.signed}
    assert run(build, **options, index=tmp_path / "one") == 0
    assert Manifest.read(tmp_path / "one").signed
    assert run(encode, **options, output=tmp_path / "vectors") == 0
    options["collection"] = tmp_path / "vectors"
    assert run(build, **options, index=tmp_path / "two") == 0
    runs = [run_of(topics, tmp_path / name, tmp_path / f"{name}.txt") for name in ("one", "two")]
    assert runs[0] == runs[1] != ""


def test_ablations_and_pruning_of_queries(tmp_path, collection, topics, model):
    index = tmp_path / "index"
    assert run(build, collection=collection, index=index, encoder=model) == 0
    choices = [{}, *({"ablation": name} for name in ("none", "no-expansion", "no-weighting", "doc-only"))]
    choices += [{"top_terms": 3}, {"threshold": 0.5}, {"backend": "torch"}]
    runs = [run_of(topics, index, tmp_path / "run.txt", **options) for options in choices]
    assert runs[0] == runs[1]
    assert len(set(runs[:-1])) == len(choices) - 2


def test_an_index_remembers_its_head_and_where_its_model_is(tmp_path, collection, topics, checkpoints, monkeypatch):
    monkeypatch.chdir(checkpoints.bert.parent)
    options = {"encoder": checkpoints.bert.name, "backend": "torch"}
    assert run(build, collection=collection, index=tmp_path / "index", head="relu:sum", **options) == 0
    assert Manifest.read(tmp_path / "index").settings["head"] == "relu:sum"
    expected = run_of(topics, tmp_path / "index", tmp_path / "run.txt", backend="torch")
    assert run_of(topics, tmp_path / "index", tmp_path / "run.txt", **options) == expected != ""
    monkeypatch.chdir(tmp_path)
    assert run_of(topics, tmp_path / "index", tmp_path / "run.txt", backend="torch") == expected


def test_a_model_that_was_moved_is_known_by_its_content(tmp_path, collection, topics, checkpoints, capfd):
    """By ``search``, by ``index`` of its vectors, and by another machine that encodes the next shard."""
    first, second = (shutil.copytree(checkpoints.bert, tmp_path / name) for name in ("first", "second"))
    options = {"collection": collection, "backend": "torch", "shard_num": 2}
    for number, folder in enumerate((first, second)):
        assert run(encode, **options, encoder=folder, output=tmp_path / "vectors", shard_id=number) == 0
    assert run(build, collection=collection, index=tmp_path / "one", encoder=first, backend="torch") == 0
    assert run(build, collection=tmp_path / "vectors", index=tmp_path / "two", encoder=first) == 0
    shutil.rmtree(first)
    capfd.readouterr()
    assert run(search, index=tmp_path / "one", topics=topics) == 2
    said = f"{tmp_path / 'one'}: there is no model {first}; give its new place as --encoder"
    assert capfd.readouterr().err == f"error: {said}\n"
    chosen = {"encoder": second, "backend": "torch"}
    runs = {run_of(topics, tmp_path / name, tmp_path / "run.txt", **chosen) for name in ("one", "two")}
    assert len(runs) == 1 and runs != {""}
    other = checkpoints.distilbert
    assert run(build, collection=tmp_path / "vectors", index=tmp_path / "three", encoder=other) == 2
    assert (
        capfd.readouterr().err
        == f"error: {tmp_path / 'vectors'}: the vectors are of {str(second)!r}, not of {str(other)!r}\n"
    )
