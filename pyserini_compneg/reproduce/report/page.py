"""The report as one page of HTML that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

from pyserini_compneg.reproduce.characters import printable
from pyserini_compneg.reproduce.report.contents import Contents


def render_page(contents: Contents) -> str:
    """The whole page; every text of the results is escaped by the template."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pyserini_compneg.reproduce.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2").render(report=contents)
