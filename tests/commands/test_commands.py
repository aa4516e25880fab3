"""What all commands have in common: the list of them, their help, and its examples."""

import json
import os
import re
import shlex
import sys
from importlib import import_module

import pytest
from film_index import start
from json_lines import write_jsonl

from pyserini_compneg.commands.demo import main as demo
from pyserini_compneg.commands.main import COMMANDS, main
from pyserini_compneg.lucene.versions import describe_build


def test_the_list_of_commands(capsys):
    for arguments in ([], ["-h"], ["--help"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert all(f"\n  {name} " in out for name in COMMANDS)
        assert out.startswith("usage: compneg COMMAND [options] | --version\n")
    assert main(["serach"]) == 2
    said = "error: there is no command 'serach'; did you mean search?\nsee compneg -h\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_typing_mistake_is_one_line_and_a_pointer(name, capsys):
    flag = {"eval": "--qrel", "datasets": "--datset", "demo": "--indexx"}.get(name, "--nothing-like-it")
    given = {"datasets": ["convert", "--dataset", "x", "--split", "y", "--output", "z"], "reproduce": ["table1"]}
    assert main([name, *given.get(name, []), flag, "x" * 10_000 + "\x1b[31m"]) == 2
    out, err = capsys.readouterr()
    first, second = err.splitlines()
    assert (out, second) == ("", f"see compneg {name} -h")
    assert first.startswith("error: ") and first.isprintable() and len(first) < 600


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "--log-format", "json"],
        ["index", "--log-format=json", "--colection", "x"],
        ["index", "--collection", "", "--log-format", "json"],
        ["search", "--index", "x", "--query", "spy AND (war", "--log-format", "json"],
        ["compose", "--index", "x", "--query", "spy", "--hits", "5", "--log-format", "json"],
    ],
)
def test_an_error_is_one_line_of_json_where_the_log_is_json(arguments, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert json.loads(err)["level"] == "error"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_examples_that_parse(name, capsys):
    assert main([name, "-h"]) == 0
    text = capsys.readouterr().out
    examples = re.search(r"\nexamples?:\n((?:  .+\n)+)\Z", text)[1].replace("\\\n", "")
    commands = re.findall(r"compneg (\w+) ([^)\n]+)", examples)
    assert name in [verb for verb, _ in commands]
    for verb, arguments in commands:
        import_module(f"pyserini_compneg.commands.{verb}")._parser().parse_args(shlex.split(arguments))


def test_a_former_name_of_a_command(capsys):
    assert main(["lucene", "plugin"]) == 0
    jar, said = capsys.readouterr()
    assert said == "warning: compneg lucene is now compneg paths\n"
    assert main(["paths", "plugin"]) == 0
    assert capsys.readouterr() == (jar, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["update", "serve"])
def test_modules_are_run_as_in_pyserini_or_not_at_all(name):
    with start("-h", module=f"pyserini_compneg.{name}") as process:
        said = f"write compneg {name}, or python -m pyserini_compneg {name}\n"
        assert process.communicate(timeout=120) == ("", f"error: there is no python -m pyserini_compneg.{name}; {said}")
    assert process.returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--version"], ["search", "--version"]])
def test_versions_need_no_java_machine(arguments):
    with start(*arguments, module="pyserini_compneg", env={"JVM_PATH": "", "JAVA_HOME": ""}) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["pyserini_compneg", "Pyserini", "Anserini", "Java"]
    facts = describe_build()
    assert f" (build {facts['build']}, index format {facts['index_format']})," in out
    assert f" {facts['anserini']}, Lucene {facts['lucene']} (" in out


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("arguments", "is_closed"),
    [(["-h"], True), (["--version"], False), (["search", "-h"], False), (["paths", "plugin"], True)],
)
def test_what_cannot_be_printed_is_an_error(arguments, is_closed):
    with open("/dev/full", "w") as file:
        closed = {"preexec_fn": lambda: os.close(1)} if is_closed else {}
        environment = {"PYTHONUNBUFFERED": ""}
        with start(*arguments, module="pyserini_compneg", stdout=file, env=environment, **closed) as process:
            said = "it is closed" if is_closed else "no space left on device"
            assert process.communicate(timeout=120)[1] == f"error: standard output: {said}\n"
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        *[("index", flag) for flag in ("--collection", "--index", "--verify", "--encoder")],
        *[("search", flag) for flag in ("--index", "--topics", "--query", "--output", "--tag")],
        *[("eval", flag) for flag in ("--qrels", "--run")],
        *[("encode", "--output"), ("train", "--output"), ("demo", "--index"), ("export", "--model")],
    ],
)
def test_an_empty_argument_is_no_name_of_the_current_folder(command, flag, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for empty in ([flag, ""], [f"{flag}="]):
        assert main([command, *empty]) == 2
        assert capfd.readouterr() == ("", f"error: argument {flag}: must not be empty\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", ["pyserini_compneg.search", "pyserini_compneg"])
def test_an_interruption_while_modules_are_imported_is_one_line(tmp_path, module):
    """The process interrupts itself as soon as it imports the first module of the engine."""
    (tmp_path / "sitecustomize.py").write_text("""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "pyserini_compneg.support.errors":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
""")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    with start("search", "--index", "x", module=module, env={"PYTHONPATH": path}) as process:
        assert process.communicate(timeout=120) == ("", "interrupted\n")
    assert process.returncode == 130


@pytest.mark.slow
@pytest.mark.once
def test_the_demo(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert demo([]) == 0
    page = capfd.readouterr().out
    assert "\n1930s fantasy films NOT musical films\n  1   " in page
    assert re.search(r"^all +42 +0\.\d{4}\^bc ", page, re.MULTILINE)
    tags = {path.name: path.read_text().split(maxsplit=6)[5] for path in (tmp_path / "runs" / "sample").iterdir()}
    assert tags == {
        "default.txt": "compneg-bm25+mini",
        "bm25.txt": "compneg-bm25",
        "vanilla.txt": "compneg-vanilla",
    }
    for arguments in re.findall(r"^  \S*compneg\b(.*)$", page, re.MULTILINE):
        assert main(shlex.split(arguments)) == 0
    assert demo(["--output", "runs/bm25.txt"]) == 2
    other = write_jsonl(tmp_path / "other.jsonl", {"id": "d", "contents": "a spy"})
    assert main(["index", "--collection", str(other), "--index", "indexes/old"]) == 0
    assert demo(["--index", "indexes/old"]) == 2
    assert "indexes/old: is not an index of bm25+mini; delete it, or" in capfd.readouterr().err
