"""The site: its navigation has all pages, links lead to what there is, and its reference has all public names."""

import re
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
GENERATED = {"reference/rest.md", *(f"reference/commands/{name}.md" for name in COMMANDS)}
OTHERS = ("benchmarks/README.md", "data/requests/README.md", "pyserini_compneg/lab/notes/*.md")
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(page for other in OTHERS for page in ROOT.glob(other))])


def entries(nav):
    """The pages of a navigation or of a part of it."""
    if isinstance(nav, str):
        yield nav
    for entry in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from entries(entry)


def test_every_page_is_in_the_navigation_once():
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(entries(nav)) == sorted(pages | GENERATED)


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
