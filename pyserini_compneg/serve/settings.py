"""What a server serves: the indexes and the keys of its YAML file, whose keys are those of Pyserini's server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from pyserini_compneg.serve.limits import Limits
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.settings_files import Settings, read_settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SHORTEST_KEY = 8


def checked_name(name: str) -> str:
    """The name of an index, if it can stand in a URL as it is.

    Raises:
        InputError: It cannot.

    >>> checked_name("msmarco-v1.splade")
    'msmarco-v1.splade'
    """
    if not _NAME.fullmatch(name):
        said = "an index is named by up to 64 letters, digits and the signs . _ + -, and begins with a letter or digit"
        raise InputError(f"{said}, got {name[:80]!r}")
    return name


def _checked_key(key: str) -> str:
    if len(key) < _SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"an API key has {_SHORTEST_KEY} or more printable ASCII characters, and no blank")
    return key


def _as_mapping(value: Any) -> Any:
    """The short form ``name: folder`` as the long one."""
    return {"path": value} if isinstance(value, str) else value


class IndexSettings(Settings):
    """An index.

    Attributes:
        path: The folder, or the name of a prebuilt index. A relative folder is sought beside the YAML file.
        encoder: The encoder of the queries; None for the one that the index names.
        index_type: Pyserini's word for indexes of impacts, the only ones that are served.
    """

    path: str
    encoder: str | None = None
    index_type: Literal["impact"] = "impact"


class ServerSettings(Settings):
    """The content of the file.

    Attributes:
        indexes: Indexes by the names that they have in URLs.
        api_keys: Who may search; everyone where none is given.
        limits: What a request may cost.
    """

    indexes: dict[Annotated[str, AfterValidator(checked_name)], Annotated[IndexSettings, BeforeValidator(_as_mapping)]]
    api_keys: tuple[Annotated[str, AfterValidator(_checked_key)], ...] = ()
    limits: Limits = Limits()


def read_server_settings(path: str | Path) -> ServerSettings:
    """Reads the YAML file of a server.

    Raises:
        InputError: It cannot be read, or is wrong; the message is one line that starts with the path.
    """
    settings = read_settings(path, ServerSettings, InputError)
    beside = Path(path).parent
    indexes = {name: _resolved(index, beside) for name, index in settings.indexes.items()}
    return settings.model_copy(update={"indexes": indexes})


def _resolved(index: IndexSettings, folder: Path) -> IndexSettings:
    beside = folder / index.path
    return index.model_copy(update={"path": str(beside)}) if beside.is_dir() else index


def named_indexes(arguments: list[str]) -> Mapping[str, IndexSettings]:
    """The indexes of ``--index``, each ``NAME=DIR``, or a folder that gives the name.

    Raises:
        InputError: A name that cannot stand in a URL, or that is given twice.
    """
    indexes: dict[str, IndexSettings] = {}
    for argument in arguments:
        name, _, path = argument.rpartition("=")
        name = checked_name(name or Path(path).resolve().name)
        if name in indexes:
            raise InputError(f"--index: two indexes are named {name}; give one another name, --index NAME=DIR")
        indexes[name] = IndexSettings(path=path)
    return indexes
