"""Settings of a server: its YAML file, with the keys of Pyserini's server, and the flag ``--index``."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pyserini_compneg.lucene import checked_language
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.settings_files import Settings, read_settings
from pyserini_compneg.support.terminal import shown

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SHORTEST_KEY = 8
_URL = re.compile(
    r"https?://(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)(?::([0-9]{1,5}))?(?:/[A-Za-z0-9._~-]+)*"
    rf"/v1/{_NAME.pattern}/?"
)
_ORIGIN = re.compile(r"(?!http:.*:80$|https:.*:443$)https?://(\[[0-9a-f:]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")


class Limits(Settings):
    """Limits on the cost of a request and on connections: the key ``limits`` of the file."""

    atoms: int = Field(
        default=256,
        ge=1,
        description="atoms of an expression, with repeats; they are encoded without a time limit",
    )
    vectors: int = Field(default=1024, ge=1, description="vectors of a composed query, and filters in it that exclude")
    terms: int = Field(default=10_000, ge=1, description="weights of a composed query")
    body_bytes: int = Field(default=1_000_000, ge=1)
    connections: int = Field(
        default=1000, ge=1, description="beyond them the connection that waited longest for its request is closed"
    )
    receive_seconds: float = Field(
        default=20.0,
        gt=0,
        description="within them a request must arrive, and a client must go on reading its answer",
    )


def _checked_key(key: str) -> str:
    if len(key) < _SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"an API key has {_SHORTEST_KEY} or more printable ASCII characters, and no blank")
    return key


def _checked_url(url: str) -> str:
    found = _URL.fullmatch(url)
    if not found or int(found[1] or 0) > 65_535:
        form = "the address of an index is http:// or https://, a host without a password, and /v1/NAME"
        raise ValueError(f"{form}; got {shown(url)}")
    return url


class Follows(Settings):
    """The writer that an index follows: the ``url`` of the index there, and one of the writer's ``copy_keys``."""

    url: Annotated[str, AfterValidator(_checked_url)]
    key: Annotated[str, AfterValidator(_checked_key)]


class ServedIndexSettings(Settings):
    """An index: its folder (relative to the YAML file) or its prebuilt name, and the encoder of its queries.

    ``versions`` is a pattern of names, such as ``films-*``: a request with a write key may switch the index to such a
    folder beside its own.

    ``language`` is the language of ``bm25`` for an index of stock Anserini, as in ``SearchSettings``.

    ``model_weight`` is the share of the model of ``bm25+MODEL``, as in ``SearchSettings``, and ``latent_weight`` that
    of the latents of ``bm25+latent``.

    ``follows`` makes the folder a copy of an index of another server, and keeps it equal.

    ``index_type`` is a key of Pyserini. Only indexes of impacts are served.
    """

    path: str
    encoder: str | None = None
    language: Annotated[str, AfterValidator(checked_language)] | None = None
    model_weight: float | None = Field(default=None, ge=0)
    latent_weight: float | None = Field(default=None, ge=0)
    index_type: Literal["impact"] = "impact"
    versions: str | None = None
    follows: Follows | None = None


def checked_name(name: str) -> str:
    """The name of an index, if a URL can contain it unchanged.

    >>> checked_name("msmarco-v1.splade")
    'msmarco-v1.splade'
    """
    if not _NAME.fullmatch(name):
        form = "an index is named by up to 64 letters, digits and the signs . _ + -, and begins with a letter or digit"
        raise InputError(f"{form}, got {name[:80]!r}")
    return name


def _checked_origin(origin: str) -> str:
    if not _ORIGIN.fullmatch(origin):
        form = "an origin is http:// or https://, a host in lower case, and a port that is not the usual one"
        raise ValueError(f"{form}, such as https://app.example.org; got {shown(origin)}")
    return origin


def _as_mapping(value: Any) -> Any:
    """Expands the short form ``name: folder``."""
    return {"path": value} if isinstance(value, str) else value


class ServerSettings(Settings):
    """The content of the YAML file: indexes by their names in URLs, and keys. Without ``api_keys``, anyone may search.

    Requests that change an index need one of ``write_keys``, and those that read its files one of ``copy_keys``. These
    keys may search, too. An empty list of keys admits nobody. Web pages of the ``allowed_origins`` may ask the server
    from a browser.
    """

    indexes: dict[
        Annotated[str, AfterValidator(checked_name)], Annotated[ServedIndexSettings, BeforeValidator(_as_mapping)]
    ]
    api_keys: tuple[Annotated[str, AfterValidator(_checked_key)], ...] = ()
    write_keys: tuple[Annotated[str, AfterValidator(_checked_key)], ...] = ()
    copy_keys: tuple[Annotated[str, AfterValidator(_checked_key)], ...] = ()
    allowed_origins: tuple[Annotated[str, AfterValidator(_checked_origin)], ...] = ()
    limits: Limits = Limits()

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key: if the settings have ``api_keys``, be it an empty list."""
        return "api_keys" in self.model_fields_set

    @property
    def offers_copies(self) -> bool:
        """Whether requests may read files: if the settings have ``copy_keys``, be it an empty list."""
        return "copy_keys" in self.model_fields_set

    @property
    def secrets(self) -> frozenset[str]:
        """All keys, also those for other servers."""
        followed = (index.follows.key for index in self.indexes.values() if index.follows)
        return frozenset((*self.api_keys, *self.write_keys, *self.copy_keys, *followed))


def read_server_settings(path: str | Path) -> ServerSettings:
    """Reads the YAML file of a server. Folders are relative to the file."""
    settings = read_settings(path, ServerSettings, InputError)
    switched = next((name for name, index in settings.indexes.items() if index.versions), None)
    for name, index in settings.indexes.items():
        if index.versions and "/" in index.versions:
            said = f"indexes.{name}.versions is a pattern of names beside its folder, not of paths"
            raise InputError(f"{said}, got {index.versions!r}", where=path)
        if index.versions and index.follows:
            said = f"indexes.{name} follows another server, which says what is searched, so it has no versions"
            raise InputError(said, where=path)
    followers = [one.path for one in settings.indexes.values() if one.follows]
    folders = Counter(os.path.normpath(Path(path).parent / one) for one in followers)
    if twice := next((place for place, count in folders.items() if count > 1), None):
        raise InputError(f"two indexes follow into the same folder, {twice}", where=path)
    if switched and "write_keys" not in settings.model_fields_set:
        said = (
            f"indexes.{switched}.versions lets requests with a write key switch the index, and there are no write_keys"
        )
        raise InputError(said, where=path)
    indexes = {}
    for name, index in settings.indexes.items():
        try:
            indexes[name] = _resolved(index, Path(path).parent)
        except OSError as cause:  # such as a path that is too long
            raise InputError(f"indexes.{name}.path cannot be read: {reason_of(cause)}", where=path) from None
        if index.follows and (os.path.ismount(indexes[name].path) or not index.path.isprintable()):
            said = f"indexes.{name}.path: a copy needs a folder with a name, and no mount point"
            raise InputError(f"{said}, got {shown(index.path)}", where=path)
    return settings.model_copy(update={"indexes": indexes})


def _resolved(index: ServedIndexSettings, folder: Path) -> ServedIndexSettings:
    beside = folder / index.path
    return index.model_copy(update={"path": str(beside)}) if beside.is_dir() or index.follows else index


def named_indexes(arguments: list[str]) -> Mapping[str, ServedIndexSettings]:
    """The indexes of ``--index``, each ``NAME=DIR``, or a folder whose name is used."""
    indexes: dict[str, ServedIndexSettings] = {}
    for argument in arguments:
        name, _, path = argument.rpartition("=")
        name = checked_name(name or Path(path).resolve().name)
        if name in indexes:
            raise InputError(
                f"two indexes are named {name}", where="--index", remedy="give one another name, --index NAME=DIR"
            )
        indexes[name] = ServedIndexSettings(path=path)
    return indexes
