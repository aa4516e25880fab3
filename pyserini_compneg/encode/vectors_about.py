"""The file in a folder of vectors that says which encoder made them; the index is told by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyserini_compneg.errors import CollectionError

VECTORS_FILE = "vectors.about"

_KEYS = {"encoder", "settings", "signed", "impact_scale"}


def read_about(path: Path) -> dict[str, Any]:
    """The ``encoder``, its ``settings``, whether it is ``signed``, its ``impact_scale``; empty if there is no file.

    Raises:
        CollectionError: A damaged file.
    """
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        about = None
    if not isinstance(about, dict) or set(about) != _KEYS or not isinstance(about["settings"], dict):
        raise CollectionError(f"{path}: damaged; delete it, and name --encoder and --impact-scale")
    return about
