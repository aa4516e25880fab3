"""``compneg update``: what it says at its end."""

from json_lines import write_jsonl

from pyserini_compneg.index import build_index


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
        f"{tmp_path / 'i'}: the average document length has changed by +50% since the build; a rebuild pays",
        f"{tmp_path / 'i'}: 1 inserted, 1 replaced, 2 unchanged, 0 deleted, 4 documents now",
    ]
    ids.write_text("a\nd\nx\ny\n")
    said = run(f"update --index {tmp_path / 'i'} --delete {ids}")
    assert said.told == [f"{tmp_path / 'i'}: 2 ids to delete were not in the index"]
    assert said.err.endswith("0 inserted, 0 replaced, 0 unchanged, 2 deleted, 2 documents now\n")
    said = run(f"update --index {tmp_path / 'i'}", code=2).err
    assert said.startswith("error: --collection or --delete is needed, or both, or --optimize\n")
