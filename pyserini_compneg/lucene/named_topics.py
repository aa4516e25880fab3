"""Topics that Pyserini knows by a name, downloaded into its cache on first use.

This module is imported only if such a name is given.
"""

from __future__ import annotations

import difflib
import importlib.util
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene.gate import java_class, message_of
from pyserini_compneg.support.errors import DownloadError, InputError


def topics_file(name: str) -> Path:
    """The file of topics of a name such as ``msmarco-passage-dev-subset``."""
    if (spec := importlib.util.find_spec("pyserini")) is None or not spec.origin:
        remedy = "give a file of topics, or pip install --no-deps pyserini"
        raise InputError(
            "no such file, and names of topics need Pyserini, which is not installed", where=name, remedy=remedy
        )
    system = java_class("java.lang.System")
    out = system.out
    system.setOut(system.err)  # Anserini reports a download on standard output, which may be a run
    try:
        base = _pyserini_search_base()
        known = _known_names(base)
        found = _downloaded(base, known[name]) if name in known else None
    except Exception as cause:  # without a network, Pyserini raises various errors
        what = f"no such file, and Pyserini's topics of a name need a network: {message_of(cause)}"
        raise DownloadError(what, where=name, remedy="give a file of topics") from None
    finally:
        system.setOut(out)
    if found is None:
        nearest = ", ".join(difflib.get_close_matches(name, known, cutoff=0.4))
        remedy = f"nearest: {nearest}" if nearest else "give a file of topics"
        raise InputError("no such file, and Pyserini has no topics of that name", where=name, remedy=remedy)
    return found


def _known_names(base: Any) -> Mapping[str, Any]:
    """The topics that Pyserini knows, by name. Pyserini 2 reads their list from the network, or from its cache."""
    names: Mapping[str, Any] = base.topics_mapping if hasattr(base, "topics_mapping") else base._get_topics_mapping()
    return names


def _downloaded(base: Any, topics: Any) -> Path:
    """The file of some topics. Pyserini itself gives only their fields, with ids that have lost their zeros."""
    if hasattr(base, "topics_mapping"):
        path = java_class("java.nio.file.Path").of(topics.path)
        return Path(java_class("io.anserini.search.topicreader.TopicReader").getTopicPath(path).toString())
    file = topics["path"]
    return Path(base._download_and_cache(f"{base.TOPICS_BASE_URL}{file}", file, base._get_topics_cache_path()))


def _pyserini_search_base() -> Any:
    """Pyserini's module of topics without its package, which would import torch."""
    package = importlib.util.find_spec("pyserini")
    assert package is not None and package.origin is not None
    spec = importlib.util.spec_from_file_location(
        "pyserini_search_base", Path(package.origin).parent / "search/_base.py"
    )
    assert spec is not None and spec.loader is not None
    base, handlers = importlib.util.module_from_spec(spec), list(logging.root.handlers)
    logging.getLogger(spec.name).setLevel(logging.ERROR)  # Pyserini 1 warns of topics that its Anserini lacks
    spec.loader.exec_module(base)
    logging.root.handlers[:] = handlers  # Pyserini 1 configures logging
    return base
