"""Writes the report of an experiment."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from pyserini_compneg.errors import OutputError
from pyserini_compneg.files import atomic_writer
from pyserini_compneg.reproduce.report.contents import make_contents
from pyserini_compneg.reproduce.report.latex import render_tables
from pyserini_compneg.reproduce.report.markdown import render_markdown
from pyserini_compneg.reproduce.report.page import render_page
from pyserini_compneg.reproduce.results import Results

FIGURES = "figures"
_REMEDY = "choose another place with --report"


def check_packages() -> None:
    """Makes sure that a report can be made, before hours of runs.

    Raises:
        OutputError: A package is missing.
    """
    for package in ("jinja2", "matplotlib"):
        if importlib.util.find_spec(package) is None:
            raise OutputError(f"a report needs the package {package}; pip install 'pyserini_compneg[report]'")


def write_report(results: Results, folder: Path) -> None:
    """Writes ``report.html``, ``report.md``, ``tables.tex`` and ``figures/*.png``: of the same results the same bytes.

    Everything is made before the first file is written, and each file appears complete or not at all.

    Args:
        results: What the experiment found.
        folder: Where the run files and judgements are that the results name; made if it is not there.

    Raises:
        OutputError: A package is missing, or a file cannot be written.
    """
    check_packages()
    contents = make_contents(results)
    texts = {
        "report.html": render_page(contents),
        "report.md": render_markdown(contents, FIGURES),
        "tables.tex": render_tables([part.table for part in contents.parts]),
    }
    figures = folder / FIGURES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        figures.mkdir(exist_ok=True)
    except OSError as cause:
        reason = (cause.strerror or str(cause)).lower()
        raise OutputError(f"{cause.filename}: cannot be made: {reason}; {_REMEDY}") from None
    for plot in contents.plots:
        with atomic_writer(figures / f"{plot.name}.png", _REMEDY) as handle:
            handle.buffer.write(plot.png)
    for name, text in texts.items():
        with atomic_writer(folder / name, _REMEDY) as handle:
            handle.write(text)
