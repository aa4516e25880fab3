import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile
from functools import partial

import filelock
import pytest
from film_index import start
from refusals import refusal

from pyserini_compneg.documents.collection import CollectionPart, collection_files, iter_collection_blocks
from pyserini_compneg.eval import read_qrels, read_run
from pyserini_compneg.support.errors import OutputError
from pyserini_compneg.support.files import iter_jsonl, iter_lines
from pyserini_compneg.support.staging import atomic_writer, lock_file, locked, staged_folder
from pyserini_compneg.topics import read_topics


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def consume(lines):
    for _ in lines:
        pass


def entered(path):
    return refusal(atomic_writer(path).__enter__, error=OutputError)


@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_numbered_and_blank_ones_skipped(tmp_path, packed):
    data = "\ufeffone\r\n\n  \ntwo\u2028still two\nthree".encode()
    path = write(tmp_path / "lines", gzip.compress(data) if packed else data)
    assert list(iter_lines(path)) == [(1, "one"), (4, "two\u2028still two"), (5, "three")]


def test_standard_input_stays_open(monkeypatch):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(b'{"id": 1}\n'))))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(iter_jsonl("-")) == [(1, {"id": 1})]
    assert not stdin.buffer.closed


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"id": }', "not valid JSON: Expecting value at column 8"),
        ('{"id": NaN}', "not valid JSON: NaN is not a JSON number"),
        ('{"id": -Infinity}', "not valid JSON: -Infinity is not a JSON number"),
        ('{"id": "\\ud83d"}', "not valid JSON text: half of a surrogate pair"),
        ('{"id": 1, "vector": {"a": 1, "b": 2, "a": 1}}', "the key 'a' is given twice"),
        ('{"id": 1, "\\u0069d": 1}', "the key 'id' is given twice"),
        ('{"a":' + "[" * 200_000, "not valid JSON: too many brackets within brackets"),
        ("[1]", "expected a JSON object, got a list"),
        ("\0", "a NUL character, so this is not a text file"),
        ("\ufeff{}", "a byte order mark where no file begins; remove it"),
        (b'{"id": "\xff"}', "not UTF-8 text: invalid start byte at byte 9"),
    ],
)
def test_broken_jsonl_names_path_and_line(tmp_path, line, expected):
    path = write(tmp_path / "a.jsonl", b'{"id": 1}\n\n' + (line if isinstance(line, bytes) else line.encode()))
    assert refusal(consume, iter_jsonl(path)) == f"{path}:3: {expected}"


def test_a_whole_surrogate_pair_is_text(tmp_path):
    assert list(iter_jsonl(write(tmp_path / "a.jsonl", '{"id": "\\ud83d\\ude00"}'))) == [(1, {"id": "😀"})]


@pytest.mark.parametrize(("name", "packed"), [("gzip", gzip.compress), ("xz", lzma.compress)])
def test_packed_text_is_read_unless_it_is_cut_off(tmp_path, name, packed):
    whole = packed(b"".join(b"%d\n" % i for i in range(100_000)))
    assert list(iter_lines(write(tmp_path / "a", whole)))[-1] == (100_000, "99999")
    path = write(tmp_path / "b", whole[: len(whole) // 2])
    text = refusal(consume, iter_lines(path))
    assert text.startswith(f"{path}:")
    assert text.endswith(f": broken {name} data: Compressed file ended before the end-of-stream marker was reached")


def zipped(data):
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        archive.writestr(
            zipfile.ZipInfo("a.jsonl"), data
        )  # with a fixed date, as for gzip: processes must agree on names
    return buffer.getvalue()


gzipped = partial(gzip.compress, mtime=0)
NOT_READ = "which is not read; unpack it, or compress it with gzip or xz"
OTHER_COMPRESSIONS = {"zip": zipped, "bzip2": bz2.compress, "zstd": b"\x28\xb5\x2f\xfd".__add__}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        *(
            (again(pack(b'{"id": 1}\n')), f": compressed as {name}, {NOT_READ}")
            for name, pack in OTHER_COMPRESSIONS.items()
            for again in (bytes, gzipped)
        ),
        *((again(gzipped(b'{"id": 1}\n')), ": compressed twice; unpack it once") for again in (gzipped, lzma.compress)),
        *(
            (data, ":1: lines end in carriage returns alone; convert them to line feeds")
            for data in (b"one\rtwo", b'\r{"id": 1}\r{"id": 2}\r')
        ),
    ],
)
def test_what_is_no_text_file_is_named(tmp_path, data, expected):
    path = write(tmp_path / "a.jsonl.gz", data)
    assert refusal(consume, iter_lines(path)) == f"{path}{expected}"


ARROW = "write it as parquet or JSON Lines; datasets.load_from_disk(FOLDER) reads a saved dataset"
PARQUET = "index, update and encode take it as a collection of documents; convert others to JSON Lines or TSV"
BINARY = {
    "parquet": (b"PAR1\x15\x04", PARQUET),
    "arrow": (b"\xff\xff\xff\xff\x90\x02\0\0", ARROW),
    "tar": (b"a.jsonl".ljust(257, b"\0") + b"ustar\x0000", "unpack it, and give the folder or a file of it"),
}


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("pack", [bytes, gzipped])
def test_other_binary_files_are_named(tmp_path, kind, pack):
    data, remedy = BINARY[kind]
    path = write(tmp_path / "a.jsonl", pack(data))
    assert refusal(consume, iter_lines(path)) == f"{path}: {kind} data, no text; {remedy}"


@pytest.mark.parametrize("read", ["documents", "topics", "run", "judgements"])
@pytest.mark.parametrize(("ending", "kind", "pack"), [("gz", "gzip", gzipped), ("xz", "xz", lzma.compress)])
def test_a_packed_file_that_is_cut_at_its_start(tmp_path, read, ending, kind, pack):
    """A download that stops at once leaves a file of no bytes, which is no packed file of no lines."""
    path, whole = tmp_path / f"a.jsonl.{ending}", pack(b"a")
    reader = {
        "documents": lambda: consume(iter_collection_blocks(CollectionPart(collection_files(path)))),
        "topics": lambda: read_topics(path),
        "run": lambda: read_run(path),
        "judgements": lambda: read_qrels(path),
    }[read]
    for size in (0, 1, *range(2, len(whole) - 8, 5)):
        write(path, whole[:size])
        text = refusal(reader)
        assert text.startswith(f"{path}:1: broken {kind} data: "), size
    assert list(iter_lines(write(path, gzipped(b"")))) == []
    assert list(iter_lines(write(path, "a"))) == [(1, "a")]  # a wrong name
    assert list(iter_lines(write(tmp_path / "a.jsonl", ""))) == []
    assert list(iter_lines(write(tmp_path / "a.jsonl", "PAR1\tARROW1\n"))) == [(1, "PAR1\tARROW1")]


def test_text_that_begins_as_a_compression_does(tmp_path):
    assert list(iter_lines(write(tmp_path / "a.tsv", "BZh9\tPK"))) == [(1, "BZh9\tPK")]


@pytest.mark.parametrize("data", ["one\r", "\rone\r\r", "one\rstill one\n", "\r"])
def test_other_carriage_returns_do_not_matter(tmp_path, data):
    text = data.rstrip("\r\n")
    assert list(iter_lines(write(tmp_path / "a.txt", data))) == ([(1, text)] if text else [])


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    missing = tmp_path / "none.txt"
    assert refusal(consume, iter_lines(missing)) == f"{missing}: no such file"
    assert refusal(consume, iter_lines(tmp_path)) == f"{tmp_path}: a folder, expected a file"


def test_written_file_appears_at_the_end_only(tmp_path):
    target = write(tmp_path / "run.txt", "old")
    with target.open() as reader:
        with atomic_writer(target) as handle:
            handle.write("nëw\n")
            assert target.read_text() == "old"
            assert len(list(tmp_path.iterdir())) == 2
        assert reader.read() == "old"  # the file was replaced, not written again
    assert target.read_bytes() == "nëw\n".encode()
    assert list(tmp_path.iterdir()) == [target]


def test_written_file_has_ordinary_permissions(tmp_path):
    with atomic_writer(tmp_path / "run.txt") as handle:
        handle.write("x")
    (tmp_path / "plain").write_text("x")
    assert stat.S_IMODE((tmp_path / "run.txt").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


HOLDER = """
import sys, time
from pyserini_compneg.support.staging import atomic_writer
with atomic_writer(sys.argv[1]) as handle:
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.kill
def test_what_a_killed_writer_left_is_removed_by_the_next_one_and_nothing_else(tmp_path):
    target = tmp_path / "run.txt"
    kept = [tmp_path / name for name in (".run.txt.notes.tmp", ".run.txt.1234567.tmp", ".other.txt.12345678.tmp")]
    for path in kept:
        path.touch()
    with start(target, code=HOLDER) as killed, start(target, code=HOLDER) as living:
        assert killed.stdout.readline() == living.stdout.readline() == "writing\n"
        killed.kill()
        killed.wait()
        with atomic_writer(target) as handle:
            handle.write("new")
        assert len(list(tmp_path.iterdir())) == len(kept) + 2  # that of the living one is left
        living.communicate("")
    assert target.read_text() == ""  # the last one wins
    assert sorted(tmp_path.iterdir()) == sorted([*kept, target])


FOLDER_HOLDER = """
import sys
from pathlib import Path
from pyserini_compneg.support.staging import staged_folder
with staged_folder(Path(sys.argv[1]), replace=True) as folder:
    (folder / "part").write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.kill
def test_a_folder_that_a_killed_writer_left_is_removed_by_the_next_one_and_nothing_else(tmp_path):
    target = tmp_path / "made"
    kept = [tmp_path / name for name in (".made.notes.tmp", ".other.12345678.tmp")]
    for path in kept:
        path.mkdir()
    with start(target, code=FOLDER_HOLDER) as killed, start(target, code=FOLDER_HOLDER) as living:
        assert killed.stdout.readline() == living.stdout.readline() == "writing\n"
        killed.kill()
        killed.wait()
        with staged_folder(target) as folder:
            (folder / "part").write_text("whole")
        assert (target / "part").read_text() == "whole"
        assert len(list(tmp_path.iterdir())) == len(kept) + 2  # that of the living one is left
        living.communicate("")
    assert (target / "part").read_text() == "half"  # the last one wins
    assert sorted(tmp_path.iterdir()) == sorted([*kept, target])


def test_a_lock_that_is_released_just_after_it_was_refused(tmp_path, monkeypatch):
    acquire, tried = filelock.FileLock.acquire, []

    def release_meanwhile(lock, timeout):
        tried.append(timeout)
        if len(tried) == 1:
            raise filelock.Timeout(lock.lock_file)
        return acquire(lock, timeout)

    monkeypatch.setattr(filelock.FileLock, "acquire", release_meanwhile)
    with locked(tmp_path / "made", "busy"):
        assert lock_file(tmp_path / "made").exists()
    assert list(tmp_path.iterdir()) == []


def test_links_and_devices_stay_what_they_are(tmp_path):
    link = tmp_path / "link.txt"
    link.symlink_to("target.txt")
    for text in ("new", "newer"):  # its target is not there at first
        with atomic_writer(link) as handle:
            handle.write(text)
        assert link.is_symlink()
        assert (tmp_path / "target.txt").read_text() == text
    with atomic_writer(os.devnull) as handle:
        handle.write("gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("path", [None, "-"])
def test_standard_output(capsys, path):
    with atomic_writer(path) as handle:
        handle.write("text\n")
    assert capsys.readouterr().out == "text\n"


def test_a_missing_folder_is_made_and_removed_again_if_nothing_is_written(tmp_path):
    path = tmp_path / "a" / "b" / "run.txt"
    with pytest.raises(KeyboardInterrupt), atomic_writer(path) as handle:
        handle.write("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with atomic_writer(path) as handle:
        handle.write("whole")
    assert path.read_text() == "whole"


def test_an_unwritable_place_is_known_on_entry(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "run.txt"
    said = f"{path}: cannot be written: {path.parent} is not a folder; choose another place with --output"
    assert entered(path) == said
    assert entered(tmp_path) == f"{tmp_path}: cannot be written: it is a folder; name a file in it"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o555)
    path = tmp_path / "run.txt"
    text = entered(path)
    assert text == f"{path}: cannot be written: permission denied; choose another place with --output"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk():
    with pytest.raises(OutputError) as caught, atomic_writer("/dev/full") as handle:
        handle.write("x")
    assert str(caught.value) == (
        "/dev/full: cannot be written: no space left on device; choose another place with --output"
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_standard_output(monkeypatch):
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(full, write_through=True))
        with pytest.raises(OutputError) as caught, atomic_writer(None) as handle:
            handle.write("x")
    assert str(caught.value) == "standard output: no space left on device"
