"""Distillation: a teacher tells by how much it prefers the relevant document."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyserini_compneg.encode.models import model_folder
from pyserini_compneg.lab.training.config import TeacherConfig
from pyserini_compneg.lab.training.examples import Example
from pyserini_compneg.support.errors import InputError, in_one_line

_BATCH = 64


def margins(config: TeacherConfig, examples: Sequence[Example]) -> list[list[float]]:
    """score(query, positive) − score(query, negative) by the teacher, for each example and each of its negatives.

    Args:
        config: The teacher: a cross-encoder if its checkpoint classifies sequences, else a bi-encoder.
        examples: Examples with equally many negatives, at least one.

    Raises:
        InputError: Examples without negatives, or a teacher that cannot be loaded.

    Source: Hofstätter et al. 2020, margin-MSE.
    """
    if not examples[0].negatives:
        raise InputError(
            f"a teacher compares two documents, but query {examples[0].query!r:.60} has no negative; give its source "
            "data.negatives, or leave the teacher out"
        )
    queries = [one.query for one in examples]
    score = _scorer(config.model)
    columns = zip(*((one.positive, *one.negatives) for one in examples), strict=True)
    positive, *negatives = ([config.scale * value for value in score(queries, column)] for column in columns)
    return [
        [own - other for other in others] for own, others in zip(positive, zip(*negatives, strict=True), strict=True)
    ]


def _scorer(name: str) -> Callable[[Sequence[str], Sequence[str]], list[float]]:
    """The scores of queries with documents, one by one."""
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from transformers import AutoConfig

    folder = str(model_folder(name))
    options = {"batch_size": _BATCH, "show_progress_bar": False}
    with in_one_line(InputError, f"{name}: cannot be loaded as a teacher"):
        kinds = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False).architectures or []
        if any(kind.endswith("ForSequenceClassification") for kind in kinds):
            cross = CrossEncoder(folder, local_files_only=True, trust_remote_code=False)
            if cross.num_labels != 1:
                raise ValueError(f"it has {cross.num_labels} scores for a pair of texts, not one")
            return lambda queries, texts: cross.predict(list(zip(queries, texts, strict=True)), **options).tolist()
        model = SentenceTransformer(folder, local_files_only=True, trust_remote_code=False)
    return lambda queries, texts: model.similarity_pairwise(
        *(model.encode(list(side), **options) for side in (queries, texts))
    ).tolist()
