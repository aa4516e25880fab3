"""What docstrings are on the site: roles of reStructuredText become code, doctests become blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
DOCTEST = re.compile(r"(?:^ *>>> .*\n?)(?:^ *\S.*\n?)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Zensical has mkdocstrings load it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrites the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    r"""A docstring in Markdown.

    >>> as_markdown("As in :func:`~a.b`.\n\n>>> 1 + 1  # doctest: +SKIP\n2")
    'As in `b`.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    code = ROLE.sub(lambda role: f"`{role[1].rpartition('.')[2] if '~' in role[0] else role[1]}`", docstring)
    return DOCTEST.sub(fenced, re.sub(r" +# doctest: .*", "", code))


def fenced(doctest: re.Match[str]) -> str:
    lines = doctest[0].rstrip("\n")
    indent = " " * (len(lines) - len(lines.lstrip()))
    return f"{indent}```pycon\n{lines}\n{indent}```" + doctest[0][len(lines) :]
