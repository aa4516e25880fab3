"""Where Anserini's jar comes from."""

import hashlib
import os
import re
import select
import signal
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from refusals import refusal

from pyserini_compneg.lucene import anserini
from pyserini_compneg.support.errors import InputError, JvmError
from pyserini_compneg.topics import read_topics

JAR = "anserini-9.9.9-fatjar.jar"


def test_the_jar_in_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("ANSERINI_CLASSPATH", str(tmp_path))
    assert refusal(anserini.anserini_jar, error=JvmError) == (
        f"{tmp_path} holds no anserini-*-fatjar.jar: reinstall pyserini, or set ANSERINI_CLASSPATH to its folder"
    )
    (tmp_path / JAR).write_text("")
    assert anserini.anserini_jar() == tmp_path / JAR


def test_the_pyserini_that_is_downloaded_is_the_tested_one():
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text("utf-8")
    sign = "<" if sys.version_info < (3, 12) else ">="
    assert f'pyserini=={anserini.PYSERINI}; python_version {sign} "3.12"' in pins.splitlines()


@pytest.fixture
def hidden(monkeypatch, tmp_path):
    """An environment without Pyserini, an empty cache, and an index of packages with one small Pyserini."""
    find = anserini.importlib.util.find_spec
    absent = {"pyserini"}
    monkeypatch.setattr(anserini.importlib.util, "find_spec", lambda name: None if name in absent else find(name))
    monkeypatch.delenv("ANSERINI_CLASSPATH", raising=False)
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    name = f"pyserini-{anserini.PYSERINI}"
    info = f"{name}.dist-info"
    with zipfile.ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pyserini/resources/jars/" + JAR, "the jar")
        wheel.writestr(f"{info}/licenses/LICENSE", "a licence")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: pyserini\nVersion: {anserini.PYSERINI}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setattr(anserini, "_SHA256", hashlib.sha256(b"the jar").hexdigest())
    return absent


def test_the_jar_is_downloaded_once_and_alone(hidden, tmp_path, monkeypatch):
    said = refusal(anserini.anserini_jar, download=False, error=JvmError)
    assert said == f"the first search downloads the jar of Pyserini {anserini.PYSERINI}, with Lucene {anserini.LUCENE}"
    jar = anserini.anserini_jar()
    assert (jar.name, jar.read_text()) == (JAR, "the jar")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"pyserini-{anserini.PYSERINI}"]
    assert sorted(path.name for path in jar.parent.iterdir()) == ["LICENSE", JAR]
    monkeypatch.setattr(anserini, "_download", None)
    assert anserini.anserini_jar(download=False) == jar


def test_settings_for_other_installations_and_programs_in_the_folder_do_not_matter(hidden, tmp_path, monkeypatch):
    for name in ("PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_DRY_RUN", "PIP_PREFIX", "PIP_ROOT"):
        monkeypatch.setenv(name, "1")
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('a stranger')")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cache" / f"pyserini-{anserini.PYSERINI}").mkdir(parents=True)  # its jar was deleted
    assert anserini.anserini_jar().read_text() == "the jar"


def test_another_jar_is_refused(hidden, tmp_path, monkeypatch):
    monkeypatch.setattr(anserini, "_SHA256", "0")
    said = refusal(anserini.anserini_jar, error=JvmError)
    assert said.startswith(f"the downloaded {JAR} has the SHA-256 ")
    assert list((tmp_path / "cache").iterdir()) == []


def test_of_several_processes_one_downloads(hidden, tmp_path, monkeypatch):
    started = []
    run = anserini.subprocess.run
    monkeypatch.setattr(anserini.subprocess, "run", lambda *args, **more: started.append(args) or run(*args, **more))
    with ThreadPoolExecutor(3) as threads:
        jars = {future.result() for future in [threads.submit(anserini.anserini_jar) for _ in range(3)]}
    assert len(jars) == len(started) == 1


@pytest.mark.skipif("ANSERINI_CLASSPATH" in os.environ, reason="another jar is tested")
def test_the_checksum_is_that_of_the_tested_jar():
    with anserini.anserini_jar().open("rb") as data:
        assert hashlib.file_digest(data, "sha256").hexdigest() == anserini._SHA256


def test_uv_downloads_where_there_is_no_pip(hidden, tmp_path, monkeypatch):
    hidden.add("pip")
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "neither pip nor uv" in refusal(anserini.anserini_jar, error=JvmError)
    monkeypatch.setenv("UV", str(tmp_path / "uv"))
    (tmp_path / "uv").write_text('#!/bin/sh\necho "no such option: $*" >&2\nexit 2\n')
    (tmp_path / "uv").chmod(0o755)
    said = refusal(anserini.anserini_jar, error=JvmError)
    arguments = f"pip install --python {sys.executable} --quiet --no-deps --target .* pyserini=={anserini.PYSERINI}"
    assert re.search(f"downloaded: no such option: {arguments}; install it", said)
    assert list((tmp_path / "cache").iterdir()) == []


WAITING = """
from pyserini_compneg.commands.paths import main
from pyserini_compneg.lucene import anserini

anserini.importlib.util.find_spec = lambda name: None
raise SystemExit(main(["anserini"]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children of a killed process")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGKILL", -9)])
def test_the_download_ends_with_the_command(tmp_path, name, code):
    """Of SIGINT and SIGTERM the command learns, and ends its child; SIGKILL leaves that to Linux."""
    uv, pipe = tmp_path / "uv", tmp_path / "pipe"
    os.mkfifo(pipe)
    uv.write_text(f"#!/bin/sh\nexec >{pipe}\necho\nexec sleep 60\n")
    uv.chmod(0o755)
    environment = {**os.environ, "UV": str(uv), "COMPNEG_CACHE": str(tmp_path / "cache")}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ANSERINI_CLASSPATH": ""}
    run = [sys.executable, "-c", WAITING]
    written = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen(run, env=environment, stderr=subprocess.DEVNULL) as command:
        assert select.select([written], [], [], 60)[0], "the command does not download"
        assert os.read(written, 1) == b"\n"
        command.send_signal(getattr(signal, name))
        assert command.wait(20) == code
        assert select.select([written], [], [], 20)[0] and os.read(written, 1) == b""  # the download has ended
    os.close(written)
    left = [path.name for path in (tmp_path / "cache").iterdir()]
    assert left == [] or name == "SIGKILL", left


def test_names_of_topics_need_pyserini_itself(hidden):
    said = refusal(read_topics, "msmarco-passage-dev-subset", error=InputError)
    assert said.startswith("msmarco-passage-dev-subset: no such file, and names of topics need Pyserini, which is not")
