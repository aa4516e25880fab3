"""All protocols of the package, one after the other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from pyserini_compneg.lab.experiments.protocol import Protocol, read_protocol
from pyserini_compneg.lab.experiments.provided import protocol_names
from pyserini_compneg.support.errors import CompNegError, InputError

_logger = logging.getLogger(__name__)


def reproduce_all(kind: str | None, run: Callable[[Protocol], None]) -> Iterator[tuple[str, float]]:
    """Runs every protocol that a kind of dataset is for. One that fails does not keep the others from being run.

    Args:
        kind: The kind of dataset; None for all.
        run: Runs a protocol.

    Yields:
        The name of each protocol that was run, and the seconds that it took.

    Raises:
        InputError: At the end, if any failed; the log has the reasons.
    """
    failed = []
    for name in protocol_names():
        protocol, started = read_protocol(name), time.monotonic()
        if kind is not None and kind not in protocol.datasets:
            continue
        try:
            run(protocol)
        except CompNegError as error:
            failed.append(name)
            _logger.error("%s: %s", name, error)
        else:
            yield name, time.monotonic() - started
    if failed:
        raise InputError(f"{len(failed)} protocols were not reproduced: {', '.join(failed)}; see the lines above")
