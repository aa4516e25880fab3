"""From a protocol and a dataset to results: runs, tables, curves and examples."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyserini_compneg.datasets.dataset import Dataset
from pyserini_compneg.datasets.opening import TITLES
from pyserini_compneg.errors import DownloadError, EncodingError, ProtocolError
from pyserini_compneg.models import ModelOptions
from pyserini_compneg.reproduce.curves import interference_curve, sweep_curve
from pyserini_compneg.reproduce.examples import examples
from pyserini_compneg.reproduce.experiment import Engine, Ran, run_protocol
from pyserini_compneg.reproduce.methods import DENSE
from pyserini_compneg.reproduce.protocol import Protocol
from pyserini_compneg.reproduce.results import Curve, Example, Results
from pyserini_compneg.reproduce.term_measures import LOWER_IS_BETTER
from pyserini_compneg.reproduce.versions import versions
from pyserini_compneg.reproduce.workplace import ALL_MINILM, Workplace

_logger = logging.getLogger(__name__)


def reproduce(
    protocol: Protocol,
    dataset: Dataset,
    engines: Sequence[Engine],
    folder: Path,
    *,
    split: str | None = None,
    dense_encoder: str = ALL_MINILM,
    threads: int = 1,
    model_options: ModelOptions | None = None,
    command: str = "",
) -> Results:
    """Runs a protocol, as far as its runs are not in the folder already.

    Args:
        protocol: What to run.
        dataset: The dataset.
        engines: The encoders, with the indexes that are there already.
        folder: Where runs, indexes and judgements are kept.
        split: The split; None for the protocol's first that the dataset has.
        dense_encoder: Encodes for dense rows and for similarities.
        threads: Queries searched at once.
        model_options: How models encode.
        command: What the report shows as the command that made it.

    Raises:
        ProtocolError: A dataset that the protocol is not for.
        CompNegError: Whatever reading, building or searching raises.
    """
    if dataset.kind not in protocol.datasets:
        kinds = ", ".join(protocol.datasets)
        raise ProtocolError(f"{dataset.folder} is of the kind {dataset.kind}; protocol {protocol.name} is for: {kinds}")
    chosen = split or _split(protocol, dataset)
    dataset.part(chosen)
    with Workplace(folder, dataset, chosen, threads, model_options, dense_encoder) as place:
        ran = run_protocol(protocol, place, engines, _without_dense(protocol, dense_encoder))
        searcher = place.searcher(engines[0].encoder, engines[0].index)
        return Results(
            protocol=protocol.name,
            title=protocol.title,
            about=protocol.about,
            dataset={
                "name": dataset.name,
                "kind": dataset.kind,
                "split": chosen,
                "provenance": dataset.provenance,
                "documents": searcher.num_docs,
                "queries": len(place.topics),
            },
            settings={"encoder": ", ".join(engine.encoder for engine in engines), "hits": protocol.hits, **versions()},
            command=command,
            measures=protocol.measures,
            is_papers=dataset.kind in protocol.papers,
            sections=tuple(section.section for section in ran.sections),
            curves=tuple(_curves(protocol, ran, dense_encoder)),
            examples=tuple(_examples(protocol, ran, place, lambda docid: _title(searcher.doc(docid), docid))),
            seconds=ran.seconds,
            lower_is_better=tuple(name for name in protocol.measures if name in LOWER_IS_BETTER),
            papers_dataset=" or ".join(TITLES[kind] for kind in protocol.papers),
        )


def _without_dense(protocol: Protocol, dense_encoder: str) -> frozenset[str]:
    """The methods to leave out: the dense one, where its encoder cannot be had and there are others."""
    methods = {row.method for section in protocol.sections for row in section.rows if row.method}
    if DENSE not in methods:
        return frozenset()
    from pyserini_compneg.encode.dense import check_dense_model

    try:
        check_dense_model(dense_encoder)
    except (DownloadError, EncodingError) as error:
        if methods == {DENSE}:
            raise
        _logger.warning("rows of dense vectors are left out: %s", error)
        return frozenset({DENSE})
    return frozenset()


def _split(protocol: Protocol, dataset: Dataset) -> str:
    for split in protocol.splits:
        if split in dataset.splits:
            return split
    raise ProtocolError(
        f"{dataset.folder}: none of the protocol's splits ({', '.join(protocol.splits)}); "
        f"choose one with --split: {', '.join(dataset.splits)}"
    )


def _curves(protocol: Protocol, ran: Ran, dense_encoder: str) -> Iterator[Curve]:
    measure = protocol.measures[0]
    if protocol.interference is not None:
        from pyserini_compneg.encode.dense import similarities

        yield interference_curve(
            protocol.interference, ran.sections, measure, lambda pairs: similarities(dense_encoder, pairs)
        )
    for section in ran.sections:
        if section.plan.sweep:
            yield sweep_curve(section, measure)


def _examples(protocol: Protocol, ran: Ran, place: Workplace, title: Callable[[str], str]) -> Iterator[Example]:
    if protocol.examples:
        for section in ran.sections:
            yield from examples(section, protocol.measures[0], protocol.examples, place.qrels, title)


def _title(document: object, docid: str) -> str:
    title = document.get("title") if isinstance(document, dict) else None
    return title if isinstance(title, str) and title.strip() else docid
