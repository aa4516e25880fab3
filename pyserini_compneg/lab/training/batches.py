"""Tables of examples, with a teacher's margins if there is one, and batches that keep contrastive pairs together.

In a contrastive pair, each of two examples has the other's relevant document as its negative, as in NevIR.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from datasets import Dataset, DatasetDict, DatasetInfo
from sentence_transformers.base.sampler import DefaultBatchSampler, NoDuplicatesBatchSampler

from pyserini_compneg.baselines import MonoT5
from pyserini_compneg.encode.models import model_folder
from pyserini_compneg.lab.training.config import TeacherConfig, TrainConfig
from pyserini_compneg.lab.training.examples import TrainingExample
from pyserini_compneg.support.errors import InputError, in_one_line

CONTRASTIVE_PAIRS = "contrastive pairs"
"""The description of a table in which rows 2i and 2i + 1 are a contrastive pair."""

_TEACHER_BATCH = 64


def example_tables(config: TrainConfig, sources: Sequence[Sequence[TrainingExample]]) -> DatasetDict:
    """The examples as tables of texts: for each source, one for each number of negatives and one for contrastive pairs.

    A batch comes from one table, because documents of one source are harder to distinguish than documents of several.
    The columns are ``query``, ``positive``, ``negative_1`` and so on, and with a teacher ``label``.
    """
    groups: dict[tuple[int, str, int], list[TrainingExample]] = defaultdict(list)
    for source, examples in enumerate(sources):
        pairs, others = ([], examples) if config.teacher else split_contrastive_pairs(examples)
        if pairs:
            groups[source, CONTRASTIVE_PAIRS, 0] = pairs
        for one in others:
            groups[source, "", len(one.negatives)].append(one)
    tables = {}
    for (source, kind, count), examples in sorted(groups.items()):
        if not count and len({one.positive for one in examples}) < 2:
            raise InputError(
                "its examples without negatives have only one document, and no other document to compare it with",
                where=config.data[source].dataset,
                remedy="add examples with other documents, or negatives",
            )
        columns: dict[str, Any] = {
            "query": [one.query for one in examples],
            "positive": [one.positive for one in examples],
        }
        for number in range(count):
            columns[f"negative_{number + 1}"] = [one.negatives[number] for one in examples]
        if config.teacher:
            columns["label"] = margins(config.teacher, examples)
        tables[f"{source}-{kind or count}"] = Dataset.from_dict(columns, info=DatasetInfo(description=kind))
    return DatasetDict(tables)


def split_contrastive_pairs(examples: Sequence[TrainingExample]) -> tuple[list[TrainingExample], list[TrainingExample]]:
    """Separates contrastive pairs, whose examples become adjacent and lose their negatives, from the other examples.

    In the same batch each example's document is the other's negative, and is encoded once instead of twice.
    """
    waiting: dict[tuple[str, str], list[int]] = defaultdict(list)
    pairs, paired = list[TrainingExample](), set[int]()
    for number, one in enumerate(examples):
        if len(one.negatives) != 1:
            continue
        (negative,) = one.negatives
        partner = next((at for at in waiting[negative, one.positive] if examples[at].query != one.query), None)
        if partner is None:
            waiting[one.positive, negative].append(number)
        else:
            waiting[negative, one.positive].remove(partner)
            paired.update((partner, number))
            pairs += [replace(examples[at], negatives=()) for at in (partner, number)]
    return pairs, [one for number, one in enumerate(examples) if number not in paired]


class ContrastivePairSampler(DefaultBatchSampler):  # type: ignore[misc]  # mypy has no types of sentence-transformers
    """Batches of a table of contrastive pairs. Pairs stay together, and no text is twice in a batch.

    An odd ``batch_size`` is reduced by one.
    """

    def __init__(self, dataset: Dataset, batch_size: int, drop_last: bool, **more: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **more)
        columns = {name: dataset[name] for name in ("query", "positive")}
        halves = {f"{name} {side}": list(values)[side::2] for name, values in columns.items() for side in (0, 1)}
        self._pairs = NoDuplicatesBatchSampler(Dataset.from_dict(halves), max(1, batch_size // 2), drop_last, **more)

    def __iter__(self) -> Iterator[list[int]]:
        self._pairs.set_epoch(self.epoch)
        for pairs in self._pairs:
            yield [2 * pair + side for pair in pairs for side in (0, 1)]

    def __len__(self) -> int:
        return len(self._pairs)


def margins(config: TeacherConfig, examples: Sequence[TrainingExample]) -> list[list[float]]:
    """The teacher's score(query, positive) − score(query, negative), for each example and each of its negatives.

    All examples have the same number of negatives. Source: Hofstätter et al. 2020, margin-MSE.
    """
    if not examples[0].negatives:
        fault = f"a teacher compares two documents, but query {examples[0].query!r:.60} has no negative"
        raise InputError(fault, remedy="give its source data.negatives, or leave the teacher out")
    queries = [one.query for one in examples]
    score = _scorer(config.model)
    columns = zip(*((one.positive, *one.negatives) for one in examples), strict=True)
    positive, *negatives = ([config.scale * value for value in score(queries, column)] for column in columns)
    return [
        [own - other for other in others] for own, others in zip(positive, zip(*negatives, strict=True), strict=True)
    ]


def _scorer(name: str) -> Callable[[Sequence[str], Sequence[str]], list[float]]:
    """The model that scores pairs: a cross-encoder, a MonoT5 or a bi-encoder, by the checkpoint's network."""
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from transformers import AutoConfig

    folder = str(model_folder(name))
    options = {"batch_size": _TEACHER_BATCH, "show_progress_bar": False}
    with in_one_line(InputError, "cannot be loaded as a teacher", where=name):
        kinds = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False).architectures or []
        if any(kind.endswith("T5ForConditionalGeneration") for kind in kinds):
            t5 = MonoT5(name)
            return lambda queries, texts: t5.log_probabilities(list(zip(queries, texts, strict=True))).tolist()
        if any(kind.endswith("ForSequenceClassification") for kind in kinds):
            cross = CrossEncoder(folder, local_files_only=True, trust_remote_code=False)
            if cross.num_labels != 1:
                raise ValueError(f"it has {cross.num_labels} scores for a pair of texts, not one")
            return lambda queries, texts: cross.predict(list(zip(queries, texts, strict=True)), **options).tolist()
        model = SentenceTransformer(folder, local_files_only=True, trust_remote_code=False)
    return lambda queries, texts: model.similarity_pairwise(
        *(model.encode(list(side), **options) for side in (queries, texts))
    ).tolist()
