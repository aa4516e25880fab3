"""Chooses the splits of a dataset for a protocol: the reported split, and others for tuning or training."""

from __future__ import annotations

from pyserini_compneg.lab.experiments.datasets import Dataset
from pyserini_compneg.lab.experiments.protocol import ProtocolPlan
from pyserini_compneg.support.errors import InputError


def reported_split(protocol: ProtocolPlan, dataset: Dataset, chosen: str | None = None) -> str:
    """The split that the user chose, or the first split of the protocol that the dataset has."""
    if dataset.kind not in protocol.datasets:
        kinds = ", ".join(protocol.datasets)
        raise InputError(f"{dataset.folder} is of the kind {dataset.kind}; protocol {protocol.name} is for: {kinds}")
    if chosen is not None:
        dataset.part(chosen)
        return chosen
    if there := [split for split in protocol.splits if split in dataset.splits]:
        return there[0]
    said = f"none of the protocol's splits ({', '.join(protocol.splits)})"
    remedy = f"choose one with --split: {', '.join(dataset.splits)}"
    raise InputError(said, where=dataset.folder, remedy=remedy)


def tuning_split(protocol: ProtocolPlan, dataset: Dataset, reported: str) -> str | None:
    """The first split for tuning that shares no query with the reported split; None if no row is tuned."""
    if not any(row.tuned and row.method for row in protocol.rows):
        return None
    for split in protocol.tuned_on:
        if split in dataset.splits and not shared_queries(dataset, split, reported):
            return split
    said = f"protocol {protocol.name} is tuned on a split that shares no query with {reported}, on one of "
    said += f"{', '.join(protocol.tuned_on)}; there are: {', '.join(dataset.splits)}"
    raise InputError(said, where=dataset.folder)


def shared_queries(dataset: Dataset, one: str, other: str) -> int:
    """How many queries two splits share. Ids are ignored: texts and relevant documents must be equal."""
    return len(_queries(dataset, one) & _queries(dataset, other))


def _queries(dataset: Dataset, split: str) -> set[tuple[str, frozenset[str]]]:
    qrels = dataset.qrels(split)
    return {
        (topic.text, frozenset(docid for docid, grade in qrels.get(topic.qid, {}).items() if grade > 0))
        for topic in dataset.topics(split)
    }
