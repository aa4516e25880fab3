"""What all commands have in common: the list of them, their help, and its examples."""

import re
import shlex
from importlib import import_module

import pytest

from pyserini_compneg.commands.demo import main as demo
from pyserini_compneg.commands.main import COMMANDS, main
from pyserini_compneg.compose import DIFFERENCES, INTERSECTIONS, UNIONS


def test_the_list_of_commands(capsys):
    for arguments in ([], ["-h"], ["--help"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert all(f"\n  {name} " in out for name in COMMANDS)
        assert out.startswith("usage: python -m pyserini_compneg COMMAND [options]\n")
    assert main(["serach"]) == 2
    said = "error: there is no command 'serach'; did you mean search?\nsee python -m pyserini_compneg -h\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_typing_mistake_is_one_line_and_a_pointer(name, capsys):
    flag = {"eval": "--qrel", "datasets": "--datset", "demo": "--indexx"}.get(name, "--nothing-like-it")
    given = {"datasets": ["convert", "--dataset", "x", "--split", "y", "--output", "z"], "reproduce": ["table1"]}
    assert main([name, *given.get(name, []), flag, "x" * 10_000 + "\x1b[31m"]) == 2
    out, err = capsys.readouterr()
    first, second = err.splitlines()
    assert (out, second) == ("", f"see python -m pyserini_compneg.{name} -h")
    assert first.startswith("error: ") and first.isprintable() and len(first) < 600


@pytest.mark.parametrize(
    ("started", "program"),
    [
        ("/usr/bin/compneg", "compneg search"),
        ("C:/Scripts/compneg.exe", "compneg search"),
        ("/x/pyserini_compneg/__main__.py", "python -m pyserini_compneg search"),
        ("/x/pyserini_compneg/search/__main__.py", "python -m pyserini_compneg.search"),
    ],
)
def test_help_and_errors_name_the_program_as_it_was_called(monkeypatch, capsys, started, program):
    monkeypatch.setattr("sys.argv", [started])
    assert main(["search", "-h"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: {program} --index DIR ")
    assert ("python -m" in text) == ("python -m" in program)
    assert main(["search", "--indx", "x"]) == 2
    assert capsys.readouterr().err.endswith(f"see {program} -h\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_examples_that_parse(name, capsys):
    assert main([name, "-h"]) == 0
    text = capsys.readouterr().out
    examples = re.search(r"\nexamples?:\n((?:  .+\n)+)\Z", text)[1].replace("\\\n", "")
    commands = re.findall(r"python -m pyserini_compneg[. ](\w+) ([^)\n]+)", examples)
    assert name in [verb for verb, _ in commands]
    for verb, arguments in commands:
        import_module(f"pyserini_compneg.commands.{verb}")._parser().parse_args(shlex.split(arguments))


@pytest.mark.parametrize("name", ["search", "compose", "explain"])
def test_the_help_names_every_operator(name, capsys):
    assert main([name, "-h"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for names in (UNIONS, INTERSECTIONS, DIFFERENCES):
        assert f": {', '.join(names)} (default" in text
    assert text.index(" --difference NAME") < text.index("advanced options:") < text.index(" --weight-scale X")


@pytest.mark.slow
def test_the_demo_is_one_page(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert demo([]) == 0
    page = capfd.readouterr().out
    assert len(page.splitlines()) <= 50
    assert "\n1930s fantasy films NOT musical films\n  1   " in page
    assert re.search(r"^all +42 +0\.\d{4}\^b ", page, re.MULTILINE)
    assert {path.name for path in (tmp_path / "runs" / "sample").iterdir()} == {"default.txt", "vanilla.txt"}
    for arguments in re.findall(r"^  \S+ -m pyserini_compneg\.?(.*)$", page, re.MULTILINE):
        assert main(shlex.split(arguments)) == 0
