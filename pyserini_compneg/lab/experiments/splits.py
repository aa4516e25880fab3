"""Which splits of a dataset a protocol uses: the one that is reported, and others to choose values or to train on."""

from __future__ import annotations

from pyserini_compneg.lab.experiments.datasets.dataset import Dataset
from pyserini_compneg.lab.experiments.protocol import Protocol
from pyserini_compneg.support.errors import InputError


def reported_split(protocol: Protocol, dataset: Dataset, chosen: str | None = None) -> str:
    """The split that a protocol reports.

    Args:
        protocol: The protocol.
        dataset: The dataset.
        chosen: The split that the user names; None for the protocol's first that the dataset has.

    Raises:
        InputError: A dataset that the protocol is not for, or one that has none of its splits.
        InputError: There is no such split.
    """
    if dataset.kind not in protocol.datasets:
        kinds = ", ".join(protocol.datasets)
        raise InputError(f"{dataset.folder} is of the kind {dataset.kind}; protocol {protocol.name} is for: {kinds}")
    if chosen is not None:
        dataset.part(chosen)
        return chosen
    if there := [split for split in protocol.splits if split in dataset.splits]:
        return there[0]
    raise InputError(
        f"{dataset.folder}: none of the protocol's splits ({', '.join(protocol.splits)}); "
        f"choose one with --split: {', '.join(dataset.splits)}"
    )


def tuning_split(protocol: Protocol, dataset: Dataset, reported: str) -> str | None:
    """The split on which rows are tuned, the first that shares no query with the reported one; None if none is tuned.

    Raises:
        InputError: There is no such split.
    """
    if not any(row.tuned and row.method for section in protocol.sections for row in section.rows):
        return None
    for split in protocol.tuned_on:
        if split in dataset.splits and not shared_queries(dataset, split, reported):
            return split
    raise InputError(
        f"{dataset.folder}: protocol {protocol.name} is tuned on a split that shares no query with {reported}, on one "
        f"of {', '.join(protocol.tuned_on)}; there are: {', '.join(dataset.splits)}"
    )


def shared_queries(dataset: Dataset, one: str, other: str) -> int:
    """How many queries two splits share: those of the same text and the same relevant documents, under any id."""
    return len(_queries(dataset, one) & _queries(dataset, other))


def _queries(dataset: Dataset, split: str) -> set[tuple[str, frozenset[str]]]:
    qrels = dataset.qrels(split)
    return {
        (topic.text, frozenset(docid for docid, grade in qrels.get(topic.qid, {}).items() if grade > 0))
        for topic in dataset.topics(split)
    }
