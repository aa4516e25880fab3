"""``compneg update``: what it says at its end."""

import pytest
from impact_indexes import write_stock_index
from index_folders import postings
from json_lines import write_jsonl

from pyserini_compneg.index import build_index
from pyserini_compneg.lucene import Manifest, versions


def test_an_update_says_what_it_did(run, tmp_path):
    texts = {"a": "birds fly", "b": "birds sing", "c": "spies lie"}
    build_index(
        write_jsonl(tmp_path / "old.jsonl", *({"id": d, "contents": t} for d, t in texts.items())), tmp_path / "i"
    )
    texts |= {"a": "birds and the films about them, in all countries", "d": "birds run"}
    changes = write_jsonl(tmp_path / "new.jsonl", *({"id": d, "contents": t} for d, t in texts.items()))
    ids = tmp_path / "ids.txt"
    ids.write_text("x\n")
    said = run(f"update --index {tmp_path / 'i'} --collection {changes} --delete {ids}")
    assert said.told[1:] == [f"{tmp_path / 'i'}: 1 id to delete was not in the index"]
    assert said.err.splitlines() == [
        f"{tmp_path / 'i'}: the average document length has changed by an estimated +50% since the build, as if what "
        "was replaced had average length; a rebuild may pay",
        f"{tmp_path / 'i'}: 1 inserted, 1 replaced, 2 unchanged, 0 deleted, 4 documents now",
    ]
    ids.write_text("a\nd\nx\ny\n")
    said = run(f"update --index {tmp_path / 'i'} --delete {ids}")
    assert said.told == [f"{tmp_path / 'i'}: 2 ids to delete were not in the index"]
    assert said.err.endswith("0 inserted, 0 replaced, 0 unchanged, 2 deleted, 2 documents now\n")
    said = run(f"update --index {tmp_path / 'i'} --delete b", code=2).err
    assert said == "error: b: no such file; --delete takes a file of ids, one on a line, or - for standard input\n"
    said = run(f"update --index {tmp_path / 'i'}", code=2).err
    assert said.startswith("error: --collection or --delete is needed, or both, or --optimize or --adopt\n")


def test_an_adoption(run, tmp_path):
    """It needs no documents, and may be given again. Later vectors have its scale."""
    index = write_stock_index(tmp_path, {"a": {"t": 3, "u": 2}, "b": {"t": 2}, "c": {"t": 9}})
    (model := tmp_path / "model").mkdir()
    command = f"update --index {index} --adopt --encoder {model} --impact-scale 10"
    for _ in range(2):
        assert run(command).err.endswith("0 inserted, 0 replaced, 0 unchanged, 0 deleted, 3 documents now\n")
        assert Manifest.read(index) == Manifest(str(model), impact_scale=10, documents=3)
    run(f"{command} --collection {write_jsonl(tmp_path / 'new.jsonl', {'id': 'd', 'vector': {'t': 0.42}})}")
    assert postings(index, "t") == {"c": 9, "d": 4, "a": 3, "b": 2}
    refused = {
        "--adopt": "--adopt needs --encoder",
        "--optimize --impact-scale 9": "--impact-scale is for --adopt",
        "--optimize --filter-fields t": "--filter-fields is for --adopt",
    }
    for flags, said in refused.items():
        assert run(f"update --index {index} {flags}", code=2).err.startswith(f"error: {said}")


def test_an_adoption_with_filter_fields(run, tmp_path):
    index = write_stock_index(tmp_path, {"a": {"t": 3}, "b": {"t": 2}, "c": {"t": 9}}, "-storeRaw")
    run(f"update --index {index} --adopt --encoder some-model --filter-fields contents", code=2)
    assert not (index / "compneg.json").exists()
    lines = [{"id": "d", "vector": {"t": 1}, "kind": "x"}]
    command = f"update --index {index} --adopt --encoder some-model --filter-fields kind"
    said = run(f"{command} --collection {write_jsonl(tmp_path / 'new.jsonl', *lines)}").err
    assert said.endswith("1 inserted, 3 replaced, 0 unchanged, 0 deleted, 4 documents now\n")
    assert Manifest.read(index).filter_fields == ("kind",)


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("shards", [0, 2])
def test_another_line_of_lucene_is_not_shut_out_by_accident(run, tmp_path, monkeypatch, shards):
    """The line that wrote an index could not read it any more after an update by the next line."""
    documents = write_jsonl(tmp_path / "d.jsonl", *({"id": f"d{i}", "vector": {"t": 1 + i}} for i in range(4)))
    index = tmp_path / "index"
    run(f"index --collection {documents} --index {index} --encoder m {f'--shards {shards}' if shards else ''}")
    wrote, before = versions.running_lucene()[0], files(index)
    monkeypatch.setattr(versions, "running_lucene", lambda: (wrote + 1, 0, 0))
    changes = write_jsonl(tmp_path / "new.jsonl", {"id": "d1", "vector": {"t": 9}})
    for flags in (f"--collection {changes}", "--optimize"):
        said = run(f"update --index {index} {flags}", code=2).err
        assert said.startswith(
            f"error: {index}: Lucene {wrote} wrote it, and could not read it any more after an update"
        )
        assert said.endswith("or allow this by --upgrade\n")
        assert files(index) == before
    assert "1 replaced" in run(f"update --index {index} --collection {changes} --upgrade").err
