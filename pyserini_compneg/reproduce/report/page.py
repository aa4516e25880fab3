"""The report as one page of HTML that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

from typing import Any

from pyserini_compneg.reproduce.report.contents import Contents


def render_page(contents: Contents) -> str:
    """The whole page; every text of the results is escaped by the template."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pyserini_compneg.reproduce.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2").render(report=contents)


def _printable(value: Any) -> Any:
    """Replaces what no page may hold: control characters, and halves of characters, which cannot be written."""
    if type(value) is not str or value.isprintable():
        return value
    return "".join(character if _is_allowed(character) else "\N{REPLACEMENT CHARACTER}" for character in value)


def _is_allowed(character: str) -> bool:
    code = ord(character)
    return character in "\t\n" or (code >= 0x20 and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000)
