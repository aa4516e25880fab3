"""The tables for a paper: LaTeX with booktabs, a table for each section."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pyserini_compneg.reproduce.report.tables import Entry, Line, Table

_HEAD = """\
% Tables of a report of pyserini_compneg. In the preamble: \\usepackage{booktabs}
% They need the width of a page of two columns (table*); on a narrower one leave out the formulas.
% Confidence intervals and the commands that compute the figures again are in report.html.
"""
_TEXT = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"[": "{[}", "]": "{]}", "`": "{`}", '"': "''"},
    **{"–": r"\textendash{}", "—": r"\textemdash{}", "…": r"\dots{}", "‘": "`", "’": "'", "“": "``", "”": "''"},
}
_MATHEMATICS = {
    **{"−": "-", "·": r"\cdot", "×": r"\times", "±": r"\pm", "⋆": r"\star", "∘": r"\circ", "≤": r"\le", "≥": r"\ge"},
    **{"∩": r"\cap", "∪": r"\cup", "∖": r"\setminus", "⊗": r"\otimes", "⊕": r"\oplus", "¬": r"\neg", "∈": r"\in"},
    **{"Σ": r"\Sigma", "∑": r"\sum", "Π": r"\Pi", "∏": r"\prod", "√": r"\surd", "∞": r"\infty", "≈": r"\approx"},
    **{"α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "ε": r"\varepsilon", "λ": r"\lambda", "μ": r"\mu", "π": r"\pi"},
    **{
        "*": "*",
        "<": "<",
        ">": ">",
        "|": "|",
        "‖": r"\|",
        "Δ": r"\Delta",
        "→": r"\to",
        "⟂": r"\perp",
        "⊥": r"\perp",
        "∅": r"\emptyset",
        "≠": r"\ne",
        "′": r"'",
    },
    **{sign: f"_{{{place}}}" for place, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{sign: f"^{{{place}}}" for place, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{"ᵢ": "_{i}", "ⱼ": "_{j}", "ₙ": "_{n}", "ₓ": "_{x}", "ₜ": "_{t}", "⁺": "^{+}", "⁻": "^{-}"},
}
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_LETTERS = "ßØøÆæŒœŁłı"
_END_OF_LATIN = 0x180
"""With letters under one of the accents, up to that end, what LaTeX prints in any of its fonts."""


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is, on one line, with no package for it.

    Mathematical signs, Greek letters and indices become mathematics. What LaTeX has no sign for is named by its code.

    >>> escape("A − B* & 5_%")
    'A \\ensuremath{-} B\\ensuremath{*} \\& 5\\_\\%'
    >>> escape("é 鳥")
    'é {[}U+9CE5{]}'
    """
    escaped = "".join(map(_escaped, " ".join(text.split())))
    return re.sub("-(?=-)", "-{}", escaped)  # or two become a dash


def _escaped(character: str) -> str:
    if character in _MATHEMATICS:
        return f"\\ensuremath{{{_MATHEMATICS[character]}}}"
    if character in _TEXT:
        return _TEXT[character]
    if (character.isascii() and character.isprintable()) or _is_letter(character):
        return character
    return f"{{[}}U+{ord(character):04X}{{]}}"


def _is_letter(character: str) -> bool:
    base, *marks = list(unicodedata.normalize("NFD", character))
    accented = base.isascii() and len(marks) == 1 and marks[0] in _ACCENTS and ord(character) < _END_OF_LATIN
    return accented or character in _LETTERS


def render_tables(tables: Sequence[Table]) -> str:
    """A file for LaTeX to take in."""
    return "\n".join([_HEAD, *map(_table, tables)])


def _table(table: Table) -> str:
    columns = "ll" + "".join("rr" if column.has_paper else "r" for column in table.columns)
    legend = [table.legend[kind] for kind in ("letters", "best", "lower", "paper") if kind in table.legend]
    caption = " ".join([f"{escape(table.title)} ({table.queries}).", *map(escape, legend)])
    lines = [
        r"\begin{table*}",
        r"\centering\small",
        f"\\caption{{{caption}}}",
        f"\\begin{{tabular}}{{{'l' if table.has_letters else ''}{columns}}}",
        r"\toprule",
        *_header(table),
        r"\midrule",
        *(_row(_line(line, table)) for line in table.lines),
        r"\bottomrule",
        r"\end{tabular}",
        *(
            f"\\par\\smallskip{{\\footnotesize\\textsuperscript{{{number}}} {escape(note)}}}"
            for number, note in enumerate(table.notes, 1)
        ),
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _header(table: Table) -> list[str]:
    """One line of headings, or two where the paper's figures stand beside ours."""
    lead = ["", "method", "formula"] if table.has_letters else ["method", "formula"]
    titles = [escape(column.title) for column in table.columns]
    if not table.has_paper:
        return [_row(lead + titles)]
    above, below, rules, place = [""] * len(lead), lead, "", len(lead) + 1
    for title, column in zip(titles, table.columns, strict=True):
        width = 2 if column.has_paper else 1
        above = [*above, f"\\multicolumn{{{width}}}{{c}}{{{title}}}"]
        below = [*below, "here", "paper"] if column.has_paper else [*below, ""]
        rules += f"\\cmidrule(lr){{{place}-{place + width - 1}}}"
        place += width
    return [_row(above), rules, _row(below)]


def _line(line: Line, table: Table) -> list[str]:
    note = f"\\textsuperscript{{{line.note}}}" if line.note else ""
    cells = [line.letter] if table.has_letters else []
    formula = (f"\\textsubscript{{{escape(text)}}}" if is_index else escape(text) for text, is_index in line.formula)
    cells += [escape(line.name) + note, "".join(formula)]
    for entry, column in zip(line.entries, table.columns, strict=True):
        cells += [_entry(entry), escape(entry.published or "–")] if column.has_paper else [_entry(entry)]
    return cells


def _entry(entry: Entry) -> str:
    value = escape(entry.value or "–")
    letters = f"\\textsuperscript{{{entry.letters}}}" if entry.letters else ""
    return (f"\\textbf{{{value}}}" if entry.is_best else value) + letters


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
