"""What README.md and the pages of docs show is what their commands and scripts print; all other commands are parsed.

Each page is run from its top in a folder of its own, which has the package, the examples, and the index of
``make search`` as ``indexes/sample``. A script or a command of ours is run if its output is shown, or if a comment
``<!-- run -->`` stands above it. In shown output, ``...`` stands for any text.
``<!-- not run: REASON -->`` marks what is shown but cannot be run, ``<!-- format: WHAT -->`` what no command prints.

``COMPNEG_UPDATE_PAGES=1 python -m pytest tests/docs/test_pages.py`` writes what was printed into the pages.
"""

import doctest
import os
import re
import runpy
import shlex
import subprocess
import tomllib
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from markdown_it import MarkdownIt

from pyserini_compneg.commands.demo import ENCODER, VECTORS
from pyserini_compneg.commands.main import COMMANDS, main
from pyserini_compneg.index import build_index

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REPORT = DOCS / "how-to/example-report/report.md"
PAGES = (
    "README.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted(DOCS.rglob("*.md")) if path != REPORT),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "pyserini_compneg/lab/notes").glob("*.md"))),
)
UPDATE = bool(os.environ.get("COMPNEG_UPDATE_PAGES"))
OWN_MODULE = {
    "docs/how-to/anserini.md": "its shell scripts run in test_anserini_page.py, since each starts a Java",
    "docs/how-to/latent.md": "its commands run in test_latent_page.py, with another base",
}

OURS = re.compile(r"compneg (\w+)(.*)", re.DOTALL)
PROGRAMS = re.compile(r"(?:\$ )?(?:(?:python|compneg|make|cp|git|pip|curl|ray|for|time) |[A-Z_]+=)")
MARK = re.compile(r"<!-- (run|not run|format)(?:: (.+))? -->")


class Step(NamedTuple):
    """A command or a script, with the output that the page shows of it from the line ``first`` on."""

    is_script: bool
    text: str
    mark: str | None
    shown: list[str]
    first: int
    indent: str

    @property
    def is_run(self):
        return self.mark == "run" or bool(self.shown and self.mark is None)


def steps(page):
    """The steps of a page, in their order; a block without a command belongs to the script before it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    source, found, mark, follows_script = text.splitlines(), [], None, False
    for token in MarkdownIt().parse(text):
        if token.type == "html_block":
            mark = (MARK.fullmatch(token.content.strip()) or [None] * 2)[1]
        elif token.type not in ("fence", "code_block"):
            mark, follows_script = None, False
        else:
            first, lines = token.map[0] + (token.type == "fence"), token.content.splitlines()
            if token.info == "python":
                found.append(Step(True, token.content, mark, [], token.map[1], ""))
            elif token.info == "yaml":
                yaml.safe_load(token.content)
            elif token.info == "sh":
                found.append(Step(False, token.content.replace("\\\n", ""), mark, [], token.map[1], ""))
            elif follows_script and not PROGRAMS.match(lines[0]):
                found[-1] = found[-1]._replace(shown=lines, first=first, indent=indent_of(source[first], lines[0]))
            else:
                found += commands(lines, mark, first, source)
            mark, follows_script = None, token.info == "python"
    return found


def indent_of(raw, line):
    return raw[: len(raw) - len(line)]


def commands(lines, mark, first, source):
    """The commands of a block, each with what is shown below it."""
    place = 0
    while place < len(lines):
        start = place
        if not PROGRAMS.match(lines[start]):
            yield Step(False, lines[start], mark or "none", [], first, "")
            return
        ends = "done" if lines[start].startswith("for ") else re.search(r"<< ?'(\w+)'", lines[start] + " ")
        ends = ends[1] if isinstance(ends, re.Match) else ends
        while lines[place].endswith("\\") or ends and not lines[place].startswith(ends):
            place += 1
        place += 1
        text = "\n".join(lines[start:place]).removeprefix("$ ").replace("\\\n", "")
        while place < len(lines) and not lines[place]:
            place += 1
        shown = list(takewhile(lambda line: not PROGRAMS.match(line), lines[place:]))
        while shown and not shown[-1]:
            shown.pop()
        yield Step(False, text, mark, shown, first + place, indent_of(source[first + start], lines[start]))
        place += len(shown)
        while place < len(lines) and not lines[place]:
            place += 1


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "sample"
    build_index(VECTORS, folder, encoder=ENCODER, store_raw=True, filter_fields=["year"])
    return folder


def is_run(page):
    return page not in OWN_MODULE and any(step.is_run for step in steps(page))


ON_BOTH_LINES = {"README.md", "docs/how-to/integrations.md"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page in ON_BOTH_LINES else pytest.mark.once) for page in filter(is_run, PAGES)],
)
def test_the_page_shows_what_is_printed(page, sample, path, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    for name in ("pyserini_compneg", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(sample)
    names, checker, changed = {}, doctest.OutputChecker(), []
    for step in filter(lambda step: step.is_run, steps(page)):
        capfd.readouterr()
        execute(step, names)
        printed = [line.rstrip() for line in capfd.readouterr().out.rstrip().splitlines()]
        if step.shown and not checker.check_output(
            *("\n".join([*p, ""]) for p in (step.shown, printed)), doctest.ELLIPSIS
        ):
            if not UPDATE:
                assert printed == step.shown, step.text
            changed.append((step, printed))
    if changed:
        write(page, changed)


def execute(step, names):
    if step.is_script:
        exec(compile(step.text, "page", "exec"), names)
    elif ours := OURS.fullmatch(step.text):
        assert main([ours[1], *shlex.split(ours[2], comments=True)]) == 0
    elif script := re.fullmatch(r"python (\S+\.py)", step.text):
        runpy.run_path(script[1], run_name="__main__")  # a process of its own would start another Java
    else:
        subprocess.run(step.text, shell=True, check=True)


def write(page, changed):
    """Puts what was printed into a page, the last place first."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    for step, printed in reversed(changed):
        lines[step.first : step.first + len(step.shown)] = [f"{step.indent}{line}".rstrip() for line in printed]
    (ROOT / page).write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.once
def test_the_example_of_a_report_is_what_its_command_makes(tmp_path, monkeypatch):
    """But for versions of what is installed, times, and the hashes in the names of runs. Its plot is not compared."""
    varies = r"(?m)^\| [\w\\-]+ \| \d+\.\d.*\|\n|-[0-9a-f]{12}\b|\d+\.\d s\."
    shown = REPORT.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "pyserini_compneg").symlink_to(ROOT / "pyserini_compneg")
    (command,) = re.findall(r"^compneg (reproduce .*)$", shown, re.M)
    assert main(shlex.split(command)) == 0
    made = (tmp_path / "reports/example/report.md").read_text("utf-8")
    if UPDATE:
        REPORT.write_text(made, encoding="utf-8")
    else:
        assert re.sub(varies, "", made) == re.sub(varies, "", shown)


@pytest.mark.once
@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_can_be_read(page, tmp_path, monkeypatch):
    """Scripts compile. Commands have the flags of their parsers, and name targets, extras and files that there are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "reader").mkdir(parents=True)
    for step in steps(page):
        assert step.mark != "none", f"no command and no mark: {step.text}"
        if step.is_script:
            compile(step.text, page, "exec")
        else:
            for command in re.split(r"\n|; |&& |\| ", step.text):
                check(command.strip().removeprefix("do ").removeprefix("time ").removeprefix("OMP_NUM_THREADS=1 "))
    text = (ROOT / page).read_text(encoding="utf-8")
    for code in re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$|^    [^\n]*$", "", text, flags=re.M | re.S)):
        check(" ".join(code.split()), is_whole=False)


def check(command, is_whole=True):
    if (ours := OURS.match(command)) and ours[1] in COMMANDS:
        parser = import_module(f"pyserini_compneg.commands.{ours[1]}")._parser()
        if is_whole and not re.search(r"\.\.\.|\$|--help|--version|\b[A-Z_]{5,}\b", ours[2]):
            parser.parse_args(shlex.split(ours[2], comments=True))
        flags = re.findall(r"(?<= )--?[a-z][\w-]*", re.sub(r"'[^']*'", "", ours[2]))
        assert {*flags} <= {*parser._option_string_actions}, command
    elif script := re.match(r"python ((?:benchmarks|examples|tools)/\S+\.py)(.*)", command):
        text = (ROOT / script[1]).read_text(encoding="utf-8")
        for flag in re.findall(r"(?<= --)[a-z][\w-]*", script[2]):
            assert flag in text or flag.replace("-", "_") in text, command
    elif target := re.match(r"make ([a-z-]+)(?: +#.*)?$", command):
        assert re.search(rf"^{target[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M), command
    elif extras := re.match(r"pip install .*'\.\[(.*)\]'", command):
        known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        assert {*extras[1].split(",")} <= {*known}, command
