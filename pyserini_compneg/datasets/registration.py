"""Makes datasets known to ir_datasets under the names ``compneg/FOLDER/SPLIT``."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_compneg.datasets.opening import open_dataset
from pyserini_compneg.errors import CollectionError

VARIABLE = "COMPNEG_DATASETS"

_NAME = r"^compneg/([^/]+)/([^/]+)$"
_root = [Path()]


def register(folder: str | Path | None = None) -> None:
    """Lets ``ir_datasets.load("compneg/filmsets/dev")`` open the split ``dev`` of what is in ``folder/filmsets``.

    A second call changes the folder for what has not been loaded yet.

    Args:
        folder: The folder that holds those of the datasets; by default what ``COMPNEG_DATASETS`` names.

    Raises:
        CollectionError: No folder is given, or there is none of that name; from ``load``, what ``open_dataset`` says.
        ImportError: ir_datasets is not installed.
    """
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if not chosen:
        raise CollectionError(f"no folder of datasets; give one to register, or name it in {VARIABLE}")
    if not Path(chosen).is_dir():
        raise CollectionError(f"{chosen}: no such folder of datasets")
    try:
        import ir_datasets
    except ImportError:
        raise ImportError("ir_datasets is not installed: pip install 'pyserini_compneg[datasets]'") from None
    _root[0] = Path(chosen)
    _register_pattern(ir_datasets.registry)


@cache
def _register_pattern(registry: Any) -> None:
    registry.register_pattern(_NAME, _load)


def _load(name: str, groups: tuple[str, str]) -> Any:
    """What ir_datasets calls the first time that a name is asked for."""
    from pyserini_compneg.datasets.irds import subset

    dataset = open_dataset(_root[0] / groups[0])
    dataset.part(groups[1])
    return subset(dataset, groups[1])
