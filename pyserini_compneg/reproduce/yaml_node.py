"""YAML, read strictly: a wrong type, an unknown key or one given twice is one clear line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.reproduce.characters import UNPRINTABLE

LARGEST = 1e9
"""Of the magnitude of a number."""

_SPECIMEN = "see the files in pyserini_compneg/reproduce/protocols"


def load_yaml(text: str, place: str) -> Any:
    """What a text of YAML says.

    Args:
        text: The YAML.
        place: What messages start with.

    Raises:
        ProtocolError: No YAML, a key that is there twice, or values that cannot be computed with or written.
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
        """Refuses a key that a mapping has twice, of which YAML's own loader takes the last."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [key.value for key, _ in node.value]
            twice = next((key for key in keys if isinstance(key, str) and keys.count(key) > 1), None)
            if twice is not None:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {twice!r} is there twice", node.start_mark
                )
            return dict(super().construct_mapping(node, deep))

    try:
        content = yaml.load(text, Loader)  # noqa: S506  # it is a SafeLoader
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(cause, "problem", None) or str(cause).splitlines()[0]
        raise ProtocolError(f"{place}{line}: no YAML: {problem}") from None
    except (ValueError, RecursionError) as cause:
        reason = "too deeply nested" if isinstance(cause, RecursionError) else str(cause)[:200]
        raise ProtocolError(f"{place}: no YAML: {reason}") from None
    _check_values(content, place)
    return content


def _check_values(content: Any, place: str) -> None:
    """Refuses numbers that overflow where they are used, and texts that no file or page can hold."""
    waiting, seen = [content], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:  # by an alias, which may stand in what it stands for
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, int) and abs(value) > LARGEST:
            raise ProtocolError(f"{place}: a whole number beyond {LARGEST:g} in magnitude")
        elif isinstance(value, str) and (signs := UNPRINTABLE.findall(value)):
            raise ProtocolError(f"{place}: U+{ord(signs[0]):04X}, a character that cannot be shown, in {value!r:.60}")


class Node:
    """A mapping of a file, which knows its place, and which of its keys were asked for.

    Args:
        content: What the YAML has there.
        place: What messages start with.

    Raises:
        ProtocolError: It is no mapping.
    """

    def __init__(self, content: Any, place: str) -> None:
        if not isinstance(content, dict):
            raise ProtocolError(f"{place}: expected keys and values, got {_kind(content)}; {_SPECIMEN}")
        self.content, self.place = content, place
        self._asked: set[str] = set()

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """The value of a key, of a kind.

        Raises:
            ProtocolError: There is none, and no default, or it is of another kind.
        """
        self._asked.add(key)
        value = self.content.get(key, default)
        if value is ...:
            raise ProtocolError(f"{self.place}: the key {key!r} is missing; {_SPECIMEN}")
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            wanted = kind.__name__ if isinstance(kind, type) else " or ".join(one.__name__ for one in kind)
            raise ProtocolError(f"{self.place}: {key!r} must be a {wanted}, got {_kind(value)}")
        return value

    def texts(self, key: str, default: Sequence[str] | Any = ...) -> tuple[str, ...]:
        """A list of texts, likewise."""
        values = self.get(key, list, default)
        if not all(isinstance(value, str) for value in values):
            raise ProtocolError(f"{self.place}: {key!r} must be a list of texts")
        return tuple(values)

    def nodes(self, key: str) -> list[Node]:
        """A list of mappings, likewise, that is not empty."""
        values = self.get(key, list)
        if not values:
            raise ProtocolError(f"{self.place}: {key!r} is empty")
        return [Node(value, f"{self.place}: {key}[{number}]") for number, value in enumerate(values)]

    def done(self) -> None:
        """Refuses keys that were not asked for.

        Raises:
            ProtocolError: There is one.
        """
        for key in self.content:
            if key not in self._asked:
                known = f"; expected one of {', '.join(sorted(self._asked))}" if self._asked else ""
                raise ProtocolError(f"{self.place}: unknown key {key!r}{known}")


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
