"""Names of protocols and of models that help texts show; importing this module loads nothing else."""

from __future__ import annotations

from importlib.resources import files

ALL_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""The encoder by which Krasakis et al. compare texts."""

MS_MARCO_MINILM = "cross-encoder/ms-marco-MiniLM-L6-v2"
"""A cross-encoder of Zhang et al. 2024, Table 6, that runs on a processor."""

FOLDER = files(__package__).joinpath("protocols")


def protocol_names() -> list[str]:
    """The protocols that come with the package.

    >>> {"table1", "table3", "table5", "figure3"} <= {*protocol_names()}
    True
    """
    return sorted(entry.name.removesuffix(".yaml") for entry in FOLDER.iterdir() if entry.name.endswith(".yaml"))


def protocol_title(name: str) -> str:
    """The title of a protocol that comes with the package, without reading the rest of it.

    >>> protocol_title("table1")
    'Table 1: set-compositional queries, zero-shot'
    """
    lines = FOLDER.joinpath(f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("title: ")).removeprefix("title: ").strip('"')
