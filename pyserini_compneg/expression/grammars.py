"""Loads the grammar files of this package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from lark import Lark


def load_grammar(name: str, builder: object) -> Lark:
    """Builds the LALR parser of a grammar file; callers keep it.

    Args:
        name: The file's name in this package.
        builder: Has a method for each rule. The parser calls it with the list of the rule's children as soon as the
            rule is complete, so no parse tree is built and deep input costs no recursion.
    """
    from lark import Lark  # takes 0.1 s, which importing this package should not

    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", transformer=cast("Any", builder))
