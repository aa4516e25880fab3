"""Writes the report of an experiment."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

from pyserini_compneg.errors import OutputError
from pyserini_compneg.files import atomic_writer
from pyserini_compneg.reproduce.protocol import REMEDY
from pyserini_compneg.reproduce.report.contents import make_contents
from pyserini_compneg.reproduce.report.latex import render_tables
from pyserini_compneg.reproduce.report.markdown import render_markdown
from pyserini_compneg.reproduce.report.page import render_page
from pyserini_compneg.reproduce.results import Results

FIGURES = "figures"
_OURS = re.compile(r"(section-\d+-(bars|differences)|curve-\d+)\.png")
_INSTALL = "pip install 'pyserini_compneg[report]'"
_NEEDED = {"jinja2": ("jinja2", "Environment"), "matplotlib": ("matplotlib.figure", "Figure")}


def check_packages() -> None:
    """Makes sure that a report can be made, before hours of runs.

    Raises:
        OutputError: A package is missing, or broken.
    """
    for package, (module, name) in _NEEDED.items():
        if importlib.util.find_spec(package) is None:
            raise OutputError(f"a report needs the package {package}; {_INSTALL}")
        try:
            getattr(importlib.import_module(module), name)
        except Exception as cause:  # of whatever the package does when it is imported
            lines = str(cause).strip().splitlines() or [type(cause).__name__]
            raise OutputError(
                f"a report needs the package {package}, which cannot be imported: {lines[0][:200]}; {_INSTALL}"
            ) from None


def write_report(results: Results, folder: Path) -> None:
    """Writes ``report.html``, ``report.md``, ``tables.tex`` and ``figures/*.png``: of the same results the same bytes.

    Everything is made before the first file is written, and each file appears complete or not at all. Plots of an
    earlier report that this one has not are removed.

    Args:
        results: What the experiment found.
        folder: Where the run files and judgements are that the results name; made if it is not there.

    Raises:
        OutputError: As :func:`check_packages`, or a file cannot be written.
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
        raise OutputError(f"{cause.filename}: cannot be made: {reason}; {REMEDY}") from None
    for plot in contents.plots:
        with atomic_writer(figures / f"{plot.name}.png", REMEDY) as handle:
            handle.buffer.write(plot.png)
    kept = {f"{plot.name}.png" for plot in contents.plots}
    for path in figures.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in kept:
            path.unlink()
    for name, text in texts.items():
        with atomic_writer(folder / name, REMEDY) as handle:
            handle.write(text)
