"""Prepares the pages of the documentation's site in ``build/docs``; ``zensical build`` makes the site of them.

These are the pages in ``docs``, and a page for the flags of each command. The page of the server's routes and tools is
generated, too, and committed, because pages and readers of the repository link to it: ``--rest`` writes it. Files
outside ``docs`` are no part of the site: links to them lead to the repository that zensical.toml names, or are texts if
it names none. ``llms.txt`` lists all pages for language models (https://llmstxt.org).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pyserini_compneg.commands.main import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REST = DOCS / "reference/rest.md"

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def prepare(target: Path) -> None:
    """Writes all pages into a folder, and removes what else is there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target)
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    repository = project.get("repo_url")
    for page in target.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(without_links_outside(text, page.parent.relative_to(target), repository), encoding="utf-8")
    for name, text in generated().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    (target / "llms.txt").write_text("\n".join(list_for_models(project, target)), encoding="utf-8")


def list_for_models(project: Mapping[str, Any], pages: Path) -> Iterator[str]:
    """The lines of ``llms.txt``: the sections of the navigation, with the title and the first sentence of each page.

    The last section, the explanations, is the one that a reader with little room may leave out.
    """
    yield f"# {project['site_name']}\n\n> {project['site_description']}\n"
    *sections, last = (entry for part in project["nav"] for entry in part.items())
    for title, section in (*sections, ("Optional", last[1])):
        yield f"## {title}\n"
        for page in entries(section):
            head, sentence = summary((pages / page).read_text(encoding="utf-8"))
            yield f"- [{head}]({Path(page).with_suffix('.html').as_posix()}): {sentence}"
        yield ""


def entries(nav: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    for entry in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from entries(entry)


def summary(page: str) -> tuple[str, str]:
    r"""The title of a page, and the first sentence of its first paragraph without links and emphasis.

    >>> summary("# Runs\n\n    eval runs\n\nA *run* is a [list](x.md) of\nhits. It has ids.")
    ('Runs', 'A run is a list of hits.')
    """
    tokens = MarkdownIt().enable("table").parse(page)
    first = {opening.type: inline for opening, inline in reversed([*pairwise(tokens)]) if opening.level == 0}
    title, paragraph = (shown(first[kind]) for kind in ("heading_open", "paragraph_open"))
    sentence = re.match(r".+?[.?!](?= |$)", paragraph)
    return title, sentence[0] if sentence else paragraph


def shown(inline: Token) -> str:
    """What a reader sees of a line of Markdown, with its code."""
    texts = {"code_inline": "`{}`", "softbreak": " ", "text": "{}"}
    return "".join(texts.get(one.type, "").format(one.content) for one in inline.children or ())


def without_links_outside(text: str, folder: Path, repository: str | None) -> str:
    """A page whose links out of ``docs`` lead to the repository, or are texts.

    >>> without_links_outside("[why](../NOTICE), [how](start.md#x)", Path(), None)
    'why, [how](start.md#x)'
    >>> without_links_outside("[why](../../NOTICE)", Path("start"), "https://forge.example/us")
    '[why](https://forge.example/us/blob/HEAD/NOTICE)'
    """

    def instead(link: re.Match[str]) -> str:
        shown, to = link.groups()
        place = os.path.normpath(Path("docs") / folder / to)
        if "://" in to or place.startswith("docs"):
            return link[0]
        return f"[{shown}]({repository}/blob/HEAD/{place})" if repository else shown

    return LINK.sub(instead, text)


def generated() -> dict[str, str]:
    """The pages that the program gives, by their paths."""
    return {f"reference/commands/{name}.md": command_page(name) for name in COMMANDS}


def command_page(name: str) -> str:
    parser: argparse.ArgumentParser = import_module(f"pyserini_compneg.commands.{name}")._parser()
    formatter = parser._get_formatter()
    parts = [f"# compneg {name}", escaped(" ".join((parser.description or "").split()))]
    parts.append(f"```text\n{parser.format_usage().removeprefix('usage: ').strip()}\n```")
    for group in parser._action_groups:
        flags = [flag for flag in group._group_actions if flag.help != argparse.SUPPRESS]
        if flags:
            rows = ((formatter._format_action_invocation(flag), formatter._expand_help(flag)) for flag in flags)
            parts.append(f"## {(group.title or '').capitalize()}\n\n{table(('flag', 'meaning'), rows)}")
    if parser.epilog:
        parts.append(f"## Examples\n\n```text\n{parser.epilog.strip()}\n```")
    return "\n\n".join([*parts, ""])


def server_page() -> Iterator[str]:
    from fastapi import FastAPI

    from pyserini_compneg.serve.mcp_tools import _TOOLS
    from pyserini_compneg.serve.routes import router

    app = FastAPI()
    app.include_router(router)
    described = app.openapi()
    yield "# REST and MCP\n\nThe server describes itself: `/openapi.json` and `/docs` have the same text.\n"
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            yield f"## {method.upper()} {path}\n\n{escaped(route.get('description') or route['summary'])}\n"
            yield fields({one["name"]: one["schema"] for one in route.get("parameters", ())})
            body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            if body.get("properties"):
                yield f"The body is a JSON object:\n\n{fields(body['properties'])}"
    yield "## Answers\n"
    for name, schema in described["components"]["schemas"].items():
        yield f"### {name}\n\n{escaped(schema.get('description', ''))}\n\n{fields(schema.get('properties', {}))}"
    yield "## Tools of the Model Context Protocol\n"
    for name, (model, _) in _TOOLS.items():
        yield f"### {name}\n\n{escaped(model.__doc__ or '')}\n\n{fields(model.model_json_schema()['properties'])}"


def fields(properties: Mapping[str, Any]) -> str:
    rows = ((name, kind(schema), schema.get("description", "")) for name, schema in properties.items())
    return table(("name", "type", "meaning"), rows) + "\n" if properties else ""


def kind(schema: Mapping[str, Any]) -> str:
    """The type of a value, its choices and its default.

    >>> kind({"anyOf": [{"type": "integer"}, {"type": "null"}]}), kind({"enum": ["a", "b"], "default": "a"})
    ('integer', 'a, b; default a')
    """
    if "enum" in schema:
        said = ", ".join(map(str, schema["enum"]))
    elif "anyOf" in schema:
        said = " or ".join(kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    elif "$ref" in schema:
        said = schema["$ref"].rpartition("/")[2]
    else:
        said = str(schema.get("type", "any"))
        said += f" of {kind(schema['items'])}" if schema.get("items") else ""
    default = schema.get("default")
    return (
        said if default is None else f"{said}; default {default if isinstance(default, str) else json.dumps(default)}"
    )


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """A table, whose first column is code."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for first, *others in rows:
        code = "`" + " ".join(first.split()).replace("|", "\\|") + "`"
        lines.append(f"| {' | '.join([code, *map(escaped, others)])} |")
    return "\n".join(lines)


def escaped(text: str) -> str:
    r"""A text in which nothing is Markdown but code.

    >>> print(escaped("*NOT* is `not *`, a|b"))
    \*NOT\* is `not *`, a\|b
    """
    parts = re.split(r"(``?[^`]+``?)", " ".join(text.split()))
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = part.replace("|", "\\|")
        else:
            parts[number] = re.sub(r"([\\*_|\[\]])", r"\\\1", part).replace("<", "&lt;")
    return "".join(parts)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rest", action="store_true", help="write docs/reference/rest.md instead")
    if arguments.parse_args().rest:
        REST.write_text("\n".join(server_page()), encoding="utf-8")
    else:
        prepare(ROOT / "build" / "docs")
