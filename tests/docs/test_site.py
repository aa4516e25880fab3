"""The site: its navigation has all pages, links lead to what there is, and its reference has all public names."""

import re
import runpy
import tomllib
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import pyserini_compneg
from pyserini_compneg.commands.main import COMMANDS
from pyserini_compneg.support import errors

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {f"reference/commands/{name}.md" for name in COMMANDS}
OTHERS = ("benchmarks/README.md", "data/requests/README.md", "pyserini_compneg/lab/notes/*.md")
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(page for other in OTHERS for page in ROOT.glob(other))])


TOOL = runpy.run_path(str(ROOT / "tools/pages.py"))
CONTENTS = sorted({path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | GENERATED)


def test_every_page_is_in_the_navigation_once():
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert sorted(TOOL["entries"](nav)) == CONTENTS


def test_the_contents_on_the_first_page_have_every_page():
    listed = {*links((DOCS / "index.md").read_text(encoding="utf-8"))}
    parts = ("reference/commands/", "reference/python/")
    assert listed >= {page for page in CONTENTS if not page.startswith(parts)} - {"index.md"}


def test_the_list_for_models_says_what_every_page_is_about():
    written = [page for page in CONTENTS if page not in GENERATED]
    project = {"site_name": "Name", "site_description": "What", "nav": [{"Start": written}, {"Explanations": []}]}
    head, *lines = "\n".join(TOOL["list_for_models"](project, DOCS)).splitlines()
    assert [head, *lines[:5]] == ["# Name", "", "> What", "", "## Start", ""]
    listed = [re.fullmatch(r"- \[.+\]\((.+)\.html\): ((?=[A-Z`])(?:\S+ ){3,}.+[.?!])", line) for line in lines[5:-3]]
    assert [f"{match[1]}.md" for match in listed if match] == written


def test_the_page_of_the_server_is_as_the_server_describes_itself():
    """``python tools/pages.py --rest`` writes it."""
    assert (DOCS / "reference/rest.md").read_text(encoding="utf-8") == "\n".join(TOOL["server_page"]())


@cache
def anchors(page):
    """The names of a page's headings, as GitHub and the site make them, and those of Python."""
    text = page.read_text(encoding="utf-8")
    found = dict.fromkeys(re.findall(r"^::: (\S+)", text, re.MULTILINE), 0)
    for token, after in zip(tokens := MarkdownIt().parse(text), tokens[1:], strict=False):
        if token.type == "heading_open":
            words = "".join(one.content for one in after.children if one.type in ("text", "code_inline"))
            name = re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words.lower()).strip())
            found[name] = found.get(name, -1) + 1
    return {f"{name}-{number}" if number else name for name, last in found.items() for number in range(last + 1)}


def links(text):
    for token in MarkdownIt().enable("table").parse(text):
        for child in token.children or ():
            if child.type in ("link_open", "image"):
                yield child.attrs.get("href") or child.attrs.get("src")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in links(text):
        if re.match("[a-z]+:", link):
            continue
        to, _, anchor = link.partition("#")
        target = (page.parent / to).resolve() if to else page
        if target.is_relative_to(DOCS) and target.relative_to(DOCS).as_posix() in GENERATED:
            continue
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_the_reference_has_all_names_of_the_package():
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").rglob("*.md"))
    named = {*re.findall(r"^::: pyserini_compneg\.(\S+)$", pages, re.MULTILINE)}
    if "support.errors" in named:  # a whole module: the site shows its classes that have a docstring
        named |= {name for name, one in vars(errors).items() if isinstance(one, type) and one.__doc__}
    assert named >= {*pyserini_compneg.__all__}
