"""Copies of an index that another server writes: what is downloaded, what is linked, and what a kill leaves."""

import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace

import filelock  # noqa: F401  # before a fork: a copy locks its folder
import pytest
import updated_indexes
from copied_index import KEY, content, writing
from film_index import FILMS
from json_lines import write_jsonl
from local_server import Handler, serving
from refusals import refusal
from updated_indexes import draw_document

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.index import build_index, build_sharded_index, copied_files, copying, update_index
from pyserini_compneg.index.copying import IndexCopy
from pyserini_compneg.index.index_folder import COPY_RECORD
from pyserini_compneg.support.errors import DownloadError, IndexFormatError, OutputError

pytestmark = pytest.mark.slow

NEW = [{"id": f"n{i}", "title": f"Film {i}", "text": f"A spy film with horses {i}."} for i in range(3)]
REORDERED = {"reorder": True}
QUERIES = ("spy NOT comedy", "western", "spy AND horses", "film")


def build(folder, shards=None, **options):
    films = [{"id": docid, "title": title, "text": text} for docid, (title, text) in FILMS.items()]
    collection = write_jsonl(folder / "films.jsonl", *films)
    make = build_sharded_index if shards else build_index
    make(collection, folder / "index", *([shards] if shards else []), store_raw=True, **options)
    return folder / "index"


def answers(folder):
    with SignedImpactSearcher(folder) as searcher:
        return [[(hit.docid, hit.score) for hit in searcher.search(query)] for query in QUERIES]


def equal(copy, writer):
    assert content(copy.target) == content(writer.folder)
    assert answers(copy.target) == answers(writer.folder)
    beside = {path.name for path in copy.target.parent.iterdir()} - {"index", "films.jsonl", "writer"}
    return beside == {copy.target.name}


@pytest.fixture(params=[None, 2], ids=["whole", "shards"])
def shards(request):
    return request.param


@pytest.fixture
def writer(tmp_path, shards):
    with writing(build(tmp_path / "writer", shards)) as writer:
        yield writer


@pytest.fixture
def copy(tmp_path, writer):
    return IndexCopy(writer.url, KEY, tmp_path / "copy")


def test_a_copy_is_equal_after_each_change_and_what_it_has_is_not_sent_again(copy, writer, tmp_path, shards):
    generation = copy.take(copy.ask())
    assert equal(copy, writer)
    assert copy.received == writer.sent == writer.total
    assert copy.ask(generation) is None
    changes = (
        lambda: update_index(writer.folder, NEW[:1]),
        lambda: update_index(writer.folder, NEW[1:], ["d1"]),
        lambda: update_index(writer.folder, delete=["n0"]),
        lambda: update_index(writer.folder, delete=["d2"], optimize=True),
        lambda: build(tmp_path / "writer", shards, existing="overwrite"),  # files of the same names
    )
    for change in changes:
        had, before = {path: path.stat().st_ino for path in copy.target.rglob("*")}, content(copy.target)
        change()
        writer.requests.clear()
        generation = copy.take(copy.ask(generation))
        assert equal(copy, writer)
        same = {path for path, data in content(copy.target).items() if before.get(path) == data}
        assert all(had[copy.target / path] == (copy.target / path).stat().st_ino for path in same)
        assert {path for path, _ in writer.requests} == content(copy.target).keys() - same
    assert copy.received == writer.sent


def test_files_of_the_package_are_copied_and_renamed_block_maxima_are_not_sent_again(tmp_path, shards):
    random, index = Random(6), tmp_path / "index"
    updated_indexes.build(index, [draw_document(random, f"d{i:04}", False) for i in range(200)], shards or 0, REORDERED)
    folder = index / "shard-00000-of-00002" if shards else index
    for name in ("compneg.tokenizer.json", "concepts.json", "skipped-documents.txt"):
        (folder / name).write_bytes(b"[]")
    (folder / "compneg.maxima").rename(folder / "compneg.maxima.next")  # as between a commit and its end
    with writing(index) as writer:
        copy = IndexCopy(writer.url, KEY, tmp_path / "copy")
        copy.take(copy.ask())
        assert content(copy.target) == content(index)
        update_index(index, [{"id": f"n{i}", "vector": {"t1": 7}, "year": 3} for i in range(3)])
        assert (folder / "compneg.maxima").exists()
        writer.requests.clear()
        copy.take(copy.ask())
        assert content(copy.target) == content(index)
        assert "maxima" not in str(writer.requests)


def test_many_threads_list_files_at_once(writer):
    generation, files = writer.files()
    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(lambda _: writer.files() == (generation, files), range(60)))


@pytest.mark.parametrize("cut", [1, 7, 64, 65, 200, 500])
def test_a_broken_download_goes_on_at_its_byte(copy, writer, cut):
    writer.cut = cut
    copy.take(copy.ask())
    assert equal(copy, writer)
    assert writer.sent == writer.total


def test_a_writer_that_sends_nothing_is_asked_no_further(copy, writer, tmp_path):
    writer.cut = 0
    said = refusal(copy.take, copy.ask(), error=DownloadError)
    assert said.startswith(f"{writer.url}/files/")
    assert ": ends after 0 of " in said
    assert not copy.target.exists()
    writer.cut = None
    assert IndexCopy(writer.url, KEY, copy.target).take(copy.ask())
    assert equal(copy, writer)


def test_a_part_is_continued_by_the_next_try(copy, writer):
    size = max(path.stat().st_size for path in writer.folder.rglob("*"))
    cuts = iter([None] * 10 + [size // 2])

    def cutting(path, data):
        writer.cut = next(cuts, 0)
        return data

    writer.harm = cutting
    refusal(copy.take, copy.ask(), error=DownloadError)
    sent = writer.sent
    assert 0 < sent < writer.total
    writer.harm, writer.cut = (lambda path, data: data), None
    again = IndexCopy(writer.url, KEY, copy.target)
    again.take(again.ask())
    assert equal(again, writer)
    assert writer.sent == writer.total
    assert again.received == writer.total - sent


def test_harmed_bytes_are_never_taken(copy, writer):
    """A file with one wrong bit anywhere is sent again; if it stays wrong, the copy that is there stays."""
    generation = copy.take(copy.ask())
    before = content(copy.target)
    update_index(writer.folder, NEW)
    paths = [one["path"] for one in writer.files()[1] if one["path"] not in before]
    for number, harmed in enumerate(paths):
        place = (0, -1, -9)[number % 3]
        writer.harm = lambda path, data, harmed=harmed, place=place: flipped(data, place) if path == harmed else data
        said = refusal(copy.take, copy.ask(generation), error=DownloadError)
        assert said == f"{writer.url}: {harmed} has not the listed bytes"
        assert content(copy.target) == before
        shutil.rmtree(copy.target.with_name(".copy.copying"))  # it has all the others
    once = [paths[0]]
    writer.harm = lambda path, data: flipped(data, 5) if path in once and not once.remove(path) else data
    copy.take(copy.ask(generation))
    assert equal(copy, writer)


def flipped(data, place):
    changed = bytearray(data)
    changed[place] ^= 4
    return bytes(changed)


def test_files_that_a_commit_deletes_after_the_list_lead_to_that_commit(copy, writer):
    commits = [NEW[:1], NEW[1:]]
    writer.listed = lambda: update_index(writer.folder, commits.pop(), optimize=True) if commits else None
    copy.take(copy.ask())
    assert equal(copy, writer)
    assert {hit for hit, _ in answers(copy.target)[-1]} >= {"n0", "n1", "n2"}


def test_a_list_that_is_complete_here_is_taken_even_if_it_is_gone_there(copy, writer):
    """Small files are first, and so is the file that names the commit; only large ones must last."""
    listed = copy.ask()
    largest = max(listed[1], key=lambda one: one.bytes).path
    kept = content(writer.folder)

    def forget(path, data):
        if path == largest and len(writer.requests) >= len(listed[1]):
            update_index(writer.folder, NEW, optimize=True)
        return data

    writer.harm = forget
    assert copy.take(listed) == listed[0]
    assert content(copy.target) == kept


@contextmanager
def opened(folder):
    yield SimpleNamespace(content_id=GENERATION[0])


GENERATION = [""]


def killed_after(calls, copy, listed):
    """Runs a copy in a fork that is killed after so many calls of functions in C. Returns whether it ended before."""
    if not (child := os.fork()):
        left = [calls]

        def count(frame, event, _):
            if event == "c_call" and frame.f_code.co_filename.endswith(("copying.py", "copied_files.py")):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        copying.open_reader = opened  # no Java in a fork
        sys.setprofile(count)
        try:
            copy.take(listed)
        finally:
            sys.setprofile(None)
            os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.kill
def test_a_killed_copy_is_the_old_or_the_new_index_and_is_completed(copy, writer, tmp_path, shards):
    copy.take(copy.ask())
    update_index(writer.folder, NEW, ["d1"])
    states = [content(copy.target), content(writer.folder)]
    old, listed, calls = tmp_path / "old", copy.ask(), 0
    GENERATION[0] = listed[0]
    copy.target.rename(old)
    expected, ends = [answers(old), answers(writer.folder)], set()
    size = sum(one.bytes for one in listed[1] if states[0].get(one.path) != states[1][one.path])
    while True:
        shutil.copytree(old, copy.target, copy_function=os.link)
        writer.sent = 0
        ended = killed_after(calls, copy, listed)
        now = content(copy.target)
        assert now in states
        ends.add(states.index(now))
        if calls % 10 == 0:
            assert answers(copy.target) == expected[states.index(now)]
        again = IndexCopy(writer.url, KEY, copy.target)
        again.take(listed)
        assert content(copy.target) == states[1]
        assert {path.name for path in tmp_path.iterdir()} <= {"writer", "old", "copy"}
        assert writer.sent <= size + max(one.bytes for one in listed[1])  # but for the block that was on its way
        if ended:
            break
        shutil.rmtree(copy.target)
        calls += 1 + calls // 6
    assert calls > 100
    assert ends == {0, 1}
    assert answers(copy.target) == expected[1]


@pytest.mark.parametrize("shards", [None], indirect=True)
class TestRefusals:
    @pytest.mark.parametrize("path", ["../_0.cfs", "/etc/passwd", "write.lock", "build.json", "a/segments_1", ""])
    def test_paths_that_are_not_of_an_index(self, copy, writer, path):
        generation, files = writer.files()
        writer.files = lambda: (generation, [*files, {**files[0], "path": path}])
        assert refusal(copy.ask, error=DownloadError).startswith(f"{writer.url}/files: bad value for 'path': ")

    def test_a_list_that_is_of_another_commit(self, copy, writer):
        _, files = writer.files()
        writer.files = lambda: ("another", files)
        said = f"{writer.url}: its files are not those of generation 'another'"
        assert refusal(copy.take, copy.ask(), error=DownloadError) == said
        assert not copy.target.exists()

    def test_a_wrong_key_and_a_wrong_address(self, copy, writer, tmp_path):
        stranger = IndexCopy(writer.url, "another-key", tmp_path / "copy")
        said = f"{writer.url}: refuses: status 401, 'no such key'; give one of the writer's copy_keys"
        assert refusal(stranger.ask) == said
        nowhere = IndexCopy("http://127.0.0.1:9/v1/films", KEY, tmp_path / "copy")
        said = "http://127.0.0.1:9/v1/films: cannot be reached: connection refused"
        assert refusal(nowhere.ask, error=DownloadError) == said

    def test_a_generation_that_is_only_the_end_of_the_real_one(self, copy, writer):
        generation, files = writer.files()
        writer.files = lambda: (generation[-1:], files)
        assert "its files are not those of generation" in refusal(copy.take, copy.ask(), error=DownloadError)

    def test_a_writer_that_has_another_generation_each_time(self, copy, writer):
        _, files = writer.files()
        asked = iter(range(1000))
        writer.files = lambda: (f"other-{next(asked)}", files)
        refusal(copy.take, copy.ask(), error=DownloadError)
        assert next(asked) < 20

    def test_more_bytes_than_are_free(self, copy, writer):
        generation, files = writer.files()
        writer.files = lambda: (generation, [{**files[0], "checksum": "00000000", "bytes": 10**18}, *files[1:]])
        said = refusal(copy.take, copy.ask(), error=OutputError)
        assert said.startswith(f"{copy.target}: 1,000,000,000,") and said.endswith(" are free; make room")
        assert writer.sent == 0

    def test_a_list_that_is_too_long(self, copy, writer, monkeypatch):
        monkeypatch.setattr(copying, "_MOST_BYTES_OF_LIST", 100)
        said = f"{writer.url}/files: the list of files has more than 100 bytes"
        assert refusal(copy.ask, error=DownloadError) == said

    def test_a_damaged_index(self, copy, writer):
        generation, files = writer.files()
        writer.files = lambda: (generation, files[:1])
        said = refusal(copy.take, copy.ask(), error=DownloadError)
        assert said.startswith(f"{writer.url}: its index cannot be opened: ") and "index --verify" in said

    @pytest.mark.parametrize("kind", ["file", "folder", "link", "link inside"])
    def test_a_hidden_folder_that_holds_something_else(self, copy, tmp_path, kind):
        staging, precious = tmp_path / ".copy.copying", tmp_path / "precious"
        precious.mkdir()
        (precious / "_0.cfs").write_text("mine")
        if kind == "link":
            staging.symlink_to(precious)
        else:
            staging.mkdir()
            place = staging / ("_0.cfs.00000000.4.part" if kind == "link inside" else "letters")
            {"file": place.touch, "folder": place.mkdir, "link inside": lambda: place.symlink_to(precious / "_0.cfs")}[
                kind
            ]()
        said = refusal(copy.take, copy.ask(), error=OutputError)
        assert said.startswith(f"{staging}: ") and said.endswith("a copy is made there; move it away")
        assert (precious / "_0.cfs").read_text() == "mine"

    def test_a_folder_that_is_no_index_stays(self, copy, tmp_path):
        write_jsonl(tmp_path / "copy" / "letters.jsonl", {})
        said = refusal(copy.take, copy.ask(), error=OutputError)
        assert said == f"{tmp_path / 'copy'}: exists and is not an index; give another folder"


def test_an_index_that_is_no_copy_stays_and_a_copy_is_changed_by_its_follower_alone(copy, writer, shards, tmp_path):
    own = build(tmp_path / "own", shards)
    before = content(own)
    other = IndexCopy(writer.url, KEY, own)
    said = f"{own}: holds an index that is no copy of {writer.url}; give another path, or move it away"
    assert refusal(other.take, other.ask(), error=OutputError) == said
    copy.take(copy.ask())
    moved = IndexCopy(f"{writer.url}/", KEY, copy.target)  # the same address
    moved.take(moved.ask())
    said = (
        f"{copy.target}: is a copy that follows {writer.url}; change the index there, or delete {COPY_RECORD} in this "
        "folder if no server follows any more"
    )
    assert refusal(update_index, copy.target, NEW, error=OutputError) == said
    collection = own.parent / "films.jsonl"
    assert refusal(build_index, collection, copy.target, existing="overwrite", error=OutputError) == said
    assert (content(own), content(copy.target)) == (before, content(writer.folder))
    (copy.target / COPY_RECORD).unlink()
    update_index(copy.target, NEW)
    assert content(copy.target) != content(writer.folder)


def test_a_shard_in_another_place(tmp_path):
    index = build(tmp_path / "elsewhere", 2)
    names = index / "compneg-shards.json"
    names.write_text(names.read_text().replace('"shard-00001', f'"{index}/shard-00001'))
    assert "is in another place, so the index cannot be copied" in refusal(
        copied_files.index_paths, index, "", error=IndexFormatError
    )


@pytest.mark.parametrize("shards", [None], indirect=True)
def test_a_redirection_carries_the_key_to_no_other_host(copy, writer, tmp_path):
    seen = []

    class Other(Handler):
        def do_GET(self):
            seen.append(self.headers.get("X-API-Key"))
            self.reply(404, b"{}")

    class Moved(Handler):
        def do_GET(self):
            seen.append(self.headers.get("X-API-Key"))
            place = self.path.replace("/old", "") if "/old" in self.path else f"http://127.0.0.1:{other}/"
            self.reply(302, b"", {"Location": place})

    with serving(Other) as other, serving(Moved) as port:
        refusal(IndexCopy(f"http://127.0.0.1:{port}/old/v1/films", KEY, tmp_path / "copy").ask)
    assert seen == [KEY, KEY, None]
