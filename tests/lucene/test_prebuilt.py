"""Prebuilt indexes by name: from a server on this machine, with the code that downloads them from anywhere."""

import hashlib
import io
import json
import sys
import tarfile
from importlib.metadata import version

import pytest
from archive_server import archive_server
from film_index import start
from impact_indexes import pairs, write_index
from refusals import refusal

from pyserini_compneg.compose import Linear
from pyserini_compneg.lucene import ImpactReader, prebuilt, resolve_index
from pyserini_compneg.support.errors import DownloadError, IndexFormatError

pytestmark = pytest.mark.slow

NAME = "tiny-v1.films"
FILE = "lucene-inverted.tiny-v1.films.20250101.abc123.tar.gz"


def packed(folder, member="lucene-inverted.tiny"):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(folder, member)
    return content.getvalue()


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return packed(write_index(tmp_path_factory.mktemp("built") / "i", {"d1": {"a": 3}, "d2": {"a": 5}}))


@pytest.fixture
def server(archive):
    with archive_server() as running:
        running.content[f"/{FILE}"] = archive
        yield running


class Known(dict):
    """A list of prebuilt indexes, and where they are kept."""

    def add(self, server, content, *paths, **changes):
        urls = [f"{server.address}{path}" for path in paths or [f"/{FILE}"]]
        md5 = hashlib.md5(content).hexdigest()
        self[NAME] = {"filename": FILE, "urls": urls, "md5": md5, "size": len(content), **changes}
        return self.cache / f"{FILE.removesuffix('.tar.gz')}.{self[NAME]['md5']}"

    def left(self):
        return sorted(path.name for path in self.cache.iterdir()) if self.cache.exists() else []


@pytest.fixture
def known(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(prebuilt, "registry", lambda: entries)
    entries = Known({"msmarco-v1-passage.splade-v3": {}, "beir-v1.0.0-scifact.splade-v3": {}})
    entries.cache = tmp_path / "cache" / "indexes"
    return entries


def test_an_index_is_downloaded_once_and_searched(known, server, archive):
    folder = known.add(server, archive)
    for _ in range(2):
        with ImpactReader(NAME) as reader:
            assert reader.folder == folder
            assert pairs(reader.search([Linear({"a": 1.0})], 10)[0]) == [("d2", 5.0), ("d1", 3.0)]
    assert server.requests == [(f"/{FILE}", 0)]
    assert known.left() == [folder.name]


def test_urls_that_have_nothing_or_something_else_are_passed_over(known, server, archive):
    server.content["/other"] = b"?" * len(archive)
    folder = known.add(server, archive, "/nothing", "/other", f"/{FILE}")
    assert resolve_index(NAME) == folder
    assert [path for path, _ in server.requests] == ["/nothing", "/other", f"/{FILE}"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_taken_up_again(known, server, archive, ranges):
    folder = known.add(server, archive)
    server.cut, server.ranges = [100, 150], ranges
    assert resolve_index(NAME) == folder
    assert [start for _, start in server.requests] == [0, 100, 250 if ranges else 150]


def test_an_interrupted_download_is_continued(known, server, archive, monkeypatch):
    folder = known.add(server, archive)
    server.cut = [200]
    with monkeypatch.context() as patch:
        patch.setattr("pyserini_compneg.lucene.download._ATTEMPTS", 1)
        refused(known)
    assert not folder.exists()
    assert resolve_index(NAME) == folder
    assert [start for _, start in server.requests] == [0, 200]


def test_a_part_of_something_else_is_thrown_away(known, server, archive):
    folder = known.add(server, archive)
    known.cache.mkdir(parents=True)
    (known.cache / f".{folder.name}.part").write_bytes(b"x" * 100)
    assert resolve_index(NAME) == folder
    assert [start for _, start in server.requests] == [100, 0]


def refused(known):
    with pytest.raises(DownloadError) as raised:
        resolve_index(NAME)
    message = str(raised.value)
    wrapped = f"{NAME}: cannot be downloaded: ", "; unpack the archive by hand and give its folder as the index"
    assert message.startswith(wrapped[0])
    assert message.endswith(wrapped[1])
    assert "\n" not in message
    return message.removeprefix(wrapped[0]).removesuffix(wrapped[1])


def test_a_file_that_is_another(known, server, archive):
    digest = hashlib.md5(archive).hexdigest()
    known.add(server, archive, md5="0" * 32)
    assert refused(known) == f"{server.address}/{FILE}: expected the MD5 {'0' * 32}, got {digest}"
    assert [name for name in known.left() if not name.endswith(".lock")] == []
    known.add(server, archive)
    server.content[f"/{FILE}"] = archive + b"more"
    assert f"expected the MD5 {digest}, got " in refused(known)
    server.content[f"/{FILE}"] = archive
    known.add(server, archive, size=len(archive) + 1)
    assert refused(known) == f"{server.address}/{FILE}: expected {len(archive) + 1} bytes, got {len(archive)}"


def test_no_network(known, server, archive):
    folder = known.add(server, archive)
    known[NAME]["urls"] = ["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"]
    fault = "[Errno 111] Connection refused" if sys.platform == "linux" else ""
    assert refused(known).startswith(f"http://127.0.0.1:1/a: {fault}")
    assert not folder.exists()


def test_a_cache_that_cannot_be_written(known, server, archive):
    known.add(server, archive)
    known.cache.parent.write_text("a file where the cache should be")
    with pytest.raises(DownloadError) as raised:
        resolve_index(NAME)
    kept = f"{NAME}: cannot be stored in {known.cache}: "
    assert str(raised.value).startswith(kept)
    assert str(raised.value).endswith("; set PYSERINI_CACHE to another folder")


def hostile(name, kind=tarfile.REGTYPE, link=""):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for member, member_kind, target in (("i/segments_1", tarfile.REGTYPE, ""), (name, kind, link)):
            info = tarfile.TarInfo(member)
            info.type, info.linkname = member_kind, target
            archive.addfile(info)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        hostile("../../outside"),
        hostile("i/link", tarfile.SYMTYPE, "../../../outside"),
        hostile("i/link", tarfile.LNKTYPE, "../../outside"),
        hostile("i/pipe", tarfile.FIFOTYPE),
        b"no archive at all",
    ],
)
def test_a_hostile_archive_leaves_nothing(known, server, content, tmp_path):
    folder = known.add(server, content)
    server.content[f"/{FILE}"] = content
    assert refused(known).startswith("the archive cannot be unpacked: ")
    assert not folder.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]
    assert sorted(path.name for path in known.cache.parent.iterdir()) == ["indexes"]


@pytest.mark.parametrize("indexes", [0, 2])
def test_an_archive_without_one_index(known, server, tmp_path, indexes):
    source = tmp_path / "source"
    source.mkdir()
    for i in range(indexes):
        (source / f"i{i}").mkdir()
        (source / f"i{i}" / "segments_1").touch()
    content = packed(source)
    server.content[f"/{FILE}"] = content
    known.add(server, content)
    assert refused(known) == f"the archive must hold one Lucene index, it holds {indexes}"


def test_two_processes_at_once_download_once(known, server, archive):
    folder = known.add(server, archive)
    script = f"""
import json, sys
from pyserini_compneg.lucene import prebuilt, resolve_index
prebuilt.registry = lambda: json.loads({json.dumps(json.dumps(known))})
print(resolve_index({NAME!r}))
"""
    both = [start(code=script) for _ in range(3)]
    assert {process.communicate()[0].strip() for process in both} == {str(folder)}
    assert server.requests == [(f"/{FILE}", 0)]
    assert known.left() == [folder.name]


def test_an_unknown_name_says_what_is_near(known):
    assert refusal(resolve_index, "scifact.splade-v3", error=IndexFormatError) == (
        "scifact.splade-v3: no such index folder, and no prebuilt impact index of that name (nearest: "
        "beir-v1.0.0-scifact.splade-v3, msmarco-v1-passage.splade-v3); build one with compneg index"
    )


def test_a_path_is_never_looked_up(known, tmp_path):
    for path in (str(tmp_path / NAME), f"./{NAME}", tmp_path / NAME):
        with pytest.raises(IndexFormatError, match="no such index folder; build one with"):
            resolve_index(path)


def test_a_list_that_cannot_be_had(known, server, archive, monkeypatch):
    folder = known.add(server, archive)

    def offline():
        raise OSError("name resolution failed")

    monkeypatch.setattr(prebuilt, "registry", offline)
    assert refusal(resolve_index, NAME, error=IndexFormatError) == (
        f"{NAME}: no such index folder, and Pyserini's list of prebuilt indexes needs a network: name resolution "
        "failed; give the folder of an index"
    )
    folder.mkdir(parents=True)  # downloaded before
    assert resolve_index(NAME) == folder


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSERINI_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert prebuilt.pyserini_cache() == tmp_path / "home" / ".cache" / "pyserini"
    (tmp_path / ".cache").mkdir()
    monkeypatch.setattr(prebuilt, "version", lambda _: "1.6.0")
    assert prebuilt.pyserini_cache() == tmp_path / "home" / ".cache" / "pyserini"
    monkeypatch.setattr(prebuilt, "version", lambda _: "2.4.0")
    assert prebuilt.pyserini_cache() == tmp_path / ".cache" / "pyserini"
    monkeypatch.setattr(prebuilt, "version", lambda _: version("no such distribution"))
    assert prebuilt.pyserini_cache() == tmp_path / "home" / ".cache" / "pyserini"


def test_the_list_of_pyserini_1(metadata):
    if metadata:
        pytest.skip("Pyserini 2 asks the network for its list")
    index = prebuilt._look_up("beir-v1.0.0-scifact.splade-v3")
    assert index.size == 2828089
    assert index.folder_name == f"lucene-inverted.beir-v1.0.0-scifact.splade-v3.20250603.168a2d.{index.md5}"
    assert len(index.urls) == 1


def test_the_list_of_pyserini_2(server, archive, known, metadata):
    if not metadata:
        pytest.skip("Pyserini 1 brings its list along")
    folder = known.add(server, archive)
    names = NAME, "msmarco-v1-passage.unicoil", "msmarco-v2-passage.unicoil-0shot"
    metadata.files["/lucene/msmarco-v1-passage-impact.json"] = [
        {"name": name, "description": "", **known[NAME]} for name in (*names[1:], f"msmarco-{NAME}")
    ]
    script = f"from pyserini_compneg.lucene import resolve_index; print(resolve_index('msmarco-{NAME}'))"
    with start(code=script, env=metadata.environment) as process:
        out, err = process.communicate()
    assert (out.strip(), process.returncode) == (str(folder), 0), err
