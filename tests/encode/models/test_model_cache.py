import json
import os
from pathlib import Path

import pytest

from pyserini_compneg.encode.models.cache import content_hash
from pyserini_compneg.support.files import cache_home


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "model" / name for name in ("config.json", "model.safetensors")]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_text(f"content of {path.name}")
    return paths


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_home() == tmp_path
    monkeypatch.setenv("COMPNEG_CACHE", "~/x")  # as environment files have it, which no shell reads
    assert cache_home() == Path.home() / "x"
    if os.name == "posix":
        monkeypatch.setenv("COMPNEG_CACHE", "~no_such_user/x")
        assert cache_home() == Path("~no_such_user/x")
    monkeypatch.setenv("COMPNEG_CACHE", "")
    assert cache_home() == tmp_path / "xdg" / "pyserini_compneg"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_home() == Path.home() / ".cache" / "pyserini_compneg"


def test_content_names_and_settings_count_but_not_folders(cache, files, tmp_path):
    first = content_hash(files, {"pooling": "max", "epsilon": 0})
    assert len(first) == 16
    assert set(first) <= set("0123456789abcdef")
    moved = [path.rename(tmp_path / path.name) for path in files]
    assert content_hash(moved, {"epsilon": 0, "pooling": "max"}) == first
    others = [content_hash(moved, {"pooling": "sum", "epsilon": 0}), content_hash(moved[:1], {}), content_hash([], {})]
    moved[0].rename(tmp_path / "other.json")
    others.append(content_hash([tmp_path / "other.json", moved[1]], {"pooling": "max", "epsilon": 0}))
    assert len({first, *others}) == 5


def test_hashes_are_remembered_until_the_file_changes(cache, files, monkeypatch):
    before = content_hash(files, {})
    assert len(json.loads((cache / "hashes.json").read_text())) == 2
    with monkeypatch.context() as patched:
        patched.setattr("hashlib.file_digest", None)
        assert content_hash(files, {}) == before
    status = files[1].stat()
    files[1].write_text("content of model.safetensorZ")
    os.utime(files[1], ns=(status.st_atime_ns, status.st_mtime_ns))  # as copies that keep times do
    assert content_hash(files, {}) != before


@pytest.mark.parametrize("content", ["", "{", "[1]", "\udcff"])
def test_a_damaged_memory_is_none(cache, files, content):
    expected = content_hash(files, {})
    (cache / "hashes.json").write_bytes(content.encode(errors="surrogateescape"))
    assert content_hash(files, {}) == expected
    assert len(json.loads((cache / "hashes.json").read_text())) == 2


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path, monkeypatch, files):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "file" / "cache"))
    assert content_hash(files, {}) == content_hash(files, {})
