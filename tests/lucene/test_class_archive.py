"""The archive of Java's classes: made once, used only when it is whole, and never seen in what a command prints."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyserini_compneg.lucene import class_archive
from pyserini_compneg.lucene.java_home import JavaRuntime

QUERY = "birds NOT parrots"
OPTIONS = """
import sys, jnius_config
from pyserini_compneg.lucene import ImpactReader
with ImpactReader(sys.argv[1]) as reader:
    print([option for option in jnius_config.options if "SharedArchive" in option or "ClassList" in option])
    print(".jsa" in open("/proc/self/maps").read())
"""


def environment(cache, **others):
    inherited = {name: value for name, value in os.environ.items() if name != "COMPNEG_CLASS_ARCHIVE"}
    return {**inherited, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COMPNEG_CACHE": str(cache), **others}


def start(cache, *command, **others):
    command = [sys.executable, *map(str, command)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=environment(cache, **others), **pipes)


def search_command(index, query=QUERY):
    return "-m", "pyserini_compneg.search", "--index", index, "--query", query


def outcome(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def files(cache):
    return sorted(path.suffix for path in (cache / "java").glob("*"))


def wait_for(cache, expected):
    deadline = time.monotonic() + 200
    while files(cache) != expected:
        assert time.monotonic() < deadline, files(cache)
        time.sleep(0.1)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("birds")
    texts = ["grey parrots are birds", "owls are birds of the night", "birds of Peru", "cats"]
    (folder / "c.jsonl").write_text(
        "".join(json.dumps({"id": f"d{place}", "contents": text}) + "\n" for place, text in enumerate(texts))
    )
    paths = ("--collection", folder / "c.jsonl", "--index", folder / "index")
    assert outcome(start(folder / "cache", "-m", "pyserini_compneg.index", *paths))[0] == 0
    assert not (folder / "cache" / "java").exists()  # no archive is made for the sake of long work
    return folder / "index"


@pytest.fixture(scope="module")
def archived(index, tmp_path_factory):
    """A cache with an archive that a search made, and what the search printed."""
    cache = tmp_path_factory.mktemp("archived")
    first = outcome(start(cache, *search_command(index)))
    wait_for(cache, [".jsa", ".state"])
    return cache, first


@pytest.mark.slow
def test_a_search_makes_the_archive_and_the_next_process_uses_it(index, archived):
    cache, (code, out, err) = archived
    assert (code, err) == (0, "")
    assert out.startswith(f"{QUERY}\n   1 ") or out.startswith(f"{QUERY}\n  1 ")
    assert outcome(start(cache, *search_command(index))) == (code, out, err)
    (archive,) = (cache / "java").glob("*.jsa")
    code, out, err = outcome(start(cache, "-c", OPTIONS, index))
    assert (code, out, err) == (0, f"['-XX:SharedArchiveFile={archive}']\n{sys.platform == 'linux'}\n", "")
    assert files(cache) == [".jsa", ".state"]


def truncate(archive):
    os.truncate(archive, archive.stat().st_size // 2)


def corrupt(archive):
    with archive.open("r+b") as data:
        for place in range(4096, archive.stat().st_size, 4096):
            data.seek(place)
            data.write(b"\xff" * 64)


def lose_the_state(archive):
    archive.with_suffix(".state").unlink()


def exchange(archive):
    archive.write_bytes(b"of another Java" * 1000)
    archive.with_suffix(".state").write_text(state_of(archive))


def state_of(archive):
    return f"{archive.stat().st_size} {archive.stat().st_mtime_ns}"


WHOLE, NONE = [".jsa", ".state"], []


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize(
    ("damage", "others", "searches", "left"),
    [
        pytest.param(truncate, {}, 1, WHOLE, id="a part of it is missing: it is made again"),
        pytest.param(corrupt, {}, 1, WHOLE, id="a part of it is wrong: it is made again"),
        pytest.param(lose_the_state, {}, 1, WHOLE, id="nothing says that it is whole: it is made again"),
        pytest.param(exchange, {}, 1, WHOLE, id="Java refuses it and says nothing"),
        pytest.param(None, {}, 3, WHOLE, id="several first searches make one"),
        pytest.param(None, {"COMPNEG_CLASS_ARCHIVE": "off"}, 1, NONE, id="it is not wanted"),
        pytest.param(None, {"JAVA_TOOL_OPTIONS": "-Xshare:off"}, 1, NONE, id="Java is told to use none"),
        pytest.param(None, {"COMPNEG_CACHE": "/dev/null/none"}, 1, NONE, id="the cache cannot be written"),
        pytest.param(
            *(None, {"COMPNEG_CACHE": "", "XDG_CACHE_HOME": "/dev/null", "HOME": "/dev/null"}, 1, NONE),
            id="there is no cache",
        ),
    ],
)
def test_a_search_prints_the_same_in_any_state_of_the_archive(
    index, tmp_path, archived, damage, others, searches, left
):
    cache = tmp_path / "cache"
    if damage:
        (archive,) = (shutil.copytree(archived[0], cache) / "java").glob("*.jsa")
        archive.chmod(0o600)
        damage(archive)
    processes = [start(cache, *search_command(index), **others) for _ in range(searches)]
    assert [outcome(process) for process in processes] == [archived[1]] * searches
    wait_for(cache, left)
    assert cache.exists() == bool(left)
    for archive in (cache / "java").glob("*.jsa"):
        assert archive.with_suffix(".state").read_text() == state_of(archive)


@pytest.mark.slow
@pytest.mark.once
def test_a_search_without_hits_makes_none(index, tmp_path):
    assert outcome(start(tmp_path, *search_command(index, "xyzzy")))[0] == 0
    wait_for(tmp_path, [])


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java whose dumps have four bytes; what is registered for the end of the process is not done."""
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COMPNEG_CLASS_ARCHIVE")
    monkeypatch.setattr("atexit.register", lambda *_: None)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("os.nice", lambda _: 0)
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "lib").touch()
    program = home / "bin" / "java"
    program.write_text('#!/bin/sh\nfor one; do case $one in *ArchiveFile=*) printf made > "${one#*=}";; esac; done\n')
    program.chmod(0o700)
    return JavaRuntime(home, 21, home / "lib")


@pytest.fixture
def jar(tmp_path):
    (tmp_path / "a.jar").touch()
    return tmp_path / "a.jar"


def noted(java, jar, makes=()):
    """The list of classes that Java is asked for, with the class of a search; None if it is asked for none."""
    options = class_archive.archive_options(java, [str(jar)], makes)
    if not options or "ClassList" not in options[0]:
        return None
    classes = Path(options[0].partition("=")[2])
    classes.write_text("java/lang/Object id: 0\nio/compneg/search/Explainer id: 1\n")
    return classes


def make(java, classes, monkeypatch):
    archive = classes.with_suffix("").with_suffix(".jsa")
    monkeypatch.setattr("sys.argv", ["-c", ".", str(java.program), str(archive), str(classes), "a.jar"])
    class_archive.make()
    return archive


def test_each_java_and_classpath_has_an_archive_and_the_newest_are_kept(java, tmp_path, monkeypatch):
    jars, archives = [tmp_path / f"{number}.jar" for number in range(6)], []
    for age, jar in enumerate(jars):
        jar.touch()
        archives.append(make(java, noted(java, jar), monkeypatch))
        os.utime(archives[-1], (age, age))
    names = f"{'0' * 16}.7.new", f"{'1' * 16}.8.new", "Main.java"
    left, new, other = (tmp_path / "cache" / "java" / name for name in names)
    for file, when in (left, 0), (new, time.time()), (other, 0):
        file.touch()
        os.utime(file, (when, when))
    java.library.write_text("another build")
    archives.append(make(java, noted(java, jars[0]), monkeypatch))
    assert len(set(archives)) == 7
    assert [archive for archive in archives if archive.exists()] == archives[-4:]
    assert files(tmp_path / "cache") == [".java"] + [".jsa"] * 4 + [".new"] + [".state"] * 4
    assert new.exists()
    assert other.exists()
    assert class_archive.archive_options(java, [str(jars[0])], None) == [f"-XX:SharedArchiveFile={archives[-1]}"]


def test_one_process_makes_the_archive_and_a_failure_is_not_repeated_for_a_day(java, jar, tmp_path, monkeypatch):
    assert noted(java, jar, None) is None
    classes = noted(java, jar)
    assert noted(java, jar) is None
    java.program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(subprocess.CalledProcessError):
        make(java, classes, monkeypatch)
    assert files(tmp_path / "cache") == [".claim"]
    assert noted(java, jar) is None
    (claim,) = (tmp_path / "cache" / "java").iterdir()
    os.utime(claim, (time.time() - 90_000,) * 2)
    assert noted(java, jar) is not None


def test_an_interrupted_search_leaves_the_archive_to_the_next(java, jar, tmp_path, monkeypatch):
    for leave in (Path.unlink, lambda classes: classes.write_text("java/lang/Object id: 0\n")):
        classes = noted(java, jar)
        leave(classes)
        assert not make(java, classes, monkeypatch).exists()
        assert files(tmp_path / "cache") == []


@pytest.mark.parametrize("name", [f"a{os.pathsep}b", "a%p"])
def test_a_folder_that_java_would_read_otherwise_has_no_archive(java, jar, tmp_path, monkeypatch, name):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / name))
    assert class_archive.archive_options(java, [str(jar)], ()) == []
    assert not (tmp_path / name).exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners")
def test_an_archive_of_another_user_is_not_used(java, jar, monkeypatch):
    make(java, noted(java, jar), monkeypatch)
    assert class_archive.archive_options(java, [str(jar)], None) != []
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert class_archive.archive_options(java, [str(jar)], None) == []


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize(
    ("before", "flags", "quick"),
    [
        ("", (), True),
        ("", ("--output-format", "trec"), False),
        ("gate._SMALL_INDEX = 1", (), False),
        ("sys.argv.append('of a longer program')", (), False),
    ],
)
def test_only_the_list_of_one_search_does_without_the_better_compiler(index, tmp_path, before, flags, quick):
    script = f"""
import sys, jnius_config
from pyserini_compneg.commands.search import main
from pyserini_compneg.lucene import gate
arguments = sys.argv[1:]
{before}
main(arguments)
print("-XX:TieredStopAtLevel=1" in jnius_config.options)
"""
    paths = ("--index", index, "--query", QUERY, *flags)
    code, out, err = outcome(start(tmp_path, "-c", script, *paths, COMPNEG_CLASS_ARCHIVE="off"))
    assert (code, out.splitlines()[-1], err) == (0, str(quick), "")
