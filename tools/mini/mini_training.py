"""The training of mini for ``bm25+mini``: what is trained is what its score adds to BM25's.

The model starts as the base and stays near it, with the base's embeddings. Its score is trained towards a share of the
base's plus a teacher's, and on judged queries about films. Documents get weights only for the terms of the batch's
queries and for a sample of the others: a small part of the vocabulary, which changes no gradient of the scores.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from mini_sources import SPLIT, Judged, MiniBatch, Taught, Teacher, films, pairs, quest, summaries
from torch import Tensor, nn

from pyserini_compneg.encode.hybrid import MODEL_WEIGHT
from pyserini_compneg.encode.models import Head, model_folder
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.bases import load_base
from pyserini_compneg.lab.training.encoder_module import EncoderModule, write_layout
from pyserini_compneg.lab.training.resumption import check_finite, keep, restore
from pyserini_compneg.lab.training.trained_folder import SPARSE_TAGS, write_card, write_log
from pyserini_compneg.support.progress import progress

QUERIES = 5
"""That choose the documents of a batch with a teacher."""

JUDGED_QUERIES = 16
TEACHER_WEIGHT = 4.0
"""What a cosine is multiplied by, to be added to a score of BM25."""

BASE_SHARE = 0.75
"""How much of the base's score is kept beside the teacher's."""

_ABOUT = """\
A SPLADE model that was distilled from its base and a bi-encoder, beside BM25, on texts of several kinds. What was
trained is what its score adds to BM25's."""
_USE = "index --collection documents.jsonl --index indexes/name --encoder bm25+THIS_FOLDER"
_SAMPLED_TERMS = 500
_WARMUP_STEPS = 30
_LAST_RATE = 0.02
_CHECKPOINT = "checkpoints/last/step.pt"
_CHECKPOINT_STEPS = 50
_LOG_STEPS = 25


@dataclass(frozen=True)
class Settings:
    """What is trained, and how long. The first four are folders, files or names on the hub; see ``--help``."""

    base: str
    teacher: str
    data: str
    summaries: str
    steps: int = 300  # batches of each source
    learning_rate: float = 4e-4  # of AdamW, with linear warm-up and decay
    near: float = 2.0  # the weight of the error among the documents near a query
    far: float = 1.0  # the weight of the error on all documents of a batch
    judged: float = 0.3
    close: float = 0.3  # the weight of the distance of vectors from the base's
    flops: float = 1e-3
    max_length: int = 256  # tokens that the model reads of a text
    training_length: int = 80  # tokens that are read in training
    seed: int = 0


class MiniModule(nn.Module):  # type: ignore[misc]  # torch without types
    """The model that is trained, and the base as it was; ``lengths`` are those that it reads, also in training."""

    def __init__(self, base: str, lengths: tuple[int, int]) -> None:
        super().__init__()
        network = load_base(model_folder(base), base, dropout=0.0)
        self.trained = EncoderModule(network, network.head or Head(), lengths[0], None, lengths[1])
        self.base = copy.deepcopy(self.trained).requires_grad_(False)
        self.trained.model.get_input_embeddings().requires_grad_(False)
        self.trained.decoder.requires_grad_(False)

    def forward(self, batch: MiniBatch) -> dict[str, Tensor]:
        """The losses of a batch, by the names of their weights in ``Settings``; FLOPS as in Paria et al. 2020."""
        with torch.no_grad():
            base_queries = weights(self.base, batch.queries)
        queries = weights(self.trained, batch.queries)
        active = (queries.detach() > 0).any(0) | (base_queries > 0).any(0)
        active[torch.randint(0, len(active), (_SAMPLED_TERMS,))] = True
        terms = active.nonzero()[:, 0]
        queries, base_queries = queries[:, terms], base_queries[:, terms]
        documents = weights(self.trained, batch.documents, terms)
        with torch.no_grad():
            base_documents = weights(self.base, batch.documents, terms)
        scores, chosen = MODEL_WEIGHT * queries @ documents.T, torch.from_numpy(batch.chosen)
        losses = {
            "close": distance(queries, base_queries) + distance(documents, base_documents),
            "flops": queries.mean(0).square().sum() + documents.mean(0).square().sum(),
        }
        if batch.teacher is None:
            return losses | {"judged": judged_loss(torch.from_numpy(batch.bm25) + scores, chosen)}
        theirs = torch.from_numpy(batch.teacher) + BASE_SHARE * MODEL_WEIGHT * base_queries @ base_documents.T
        return losses | {"near": margin_loss(scores, theirs, chosen), "far": (scores - theirs).square().mean()}


def weights(encoder: EncoderModule, texts: Sequence[str], terms: Tensor | None = None) -> Tensor:
    """The weights of some terms, (texts, terms). Texts of like lengths go together, so that little is padding."""
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    half = -(-len(order) // 2)
    encoder.vocabulary = terms
    parts = [
        encoder(encoder.preprocess([texts[number] for number in order[start : start + half]]))["sentence_embedding"]
        for start in range(0, len(order), half)
    ]
    encoder.vocabulary = None
    return torch.cat(parts)[torch.tensor(order).argsort()]


def distance(vectors: Tensor, others: Tensor) -> Tensor:
    """The squares of the differences, as a share of the squares of the others."""
    return (vectors - others).square().sum() / others.square().sum().clamp(min=1e-9)


def margin_loss(scores: Tensor, wanted: Tensor, near: Tensor) -> Tensor:
    """The variance of the error among the documents near a query: the mean square error of their margins, halved.

    >>> scores, wanted = torch.tensor([[3.0, 1.0, 9.0]]), torch.tensor([[1.0, 1.0, 1.0]])
    >>> margin_loss(scores, wanted, torch.tensor([[True, True, False]])).item()
    2.0
    """
    error = (scores - wanted).masked_fill(~near, 0)
    count = near.sum(1, keepdim=True)
    centred = (error - error.sum(1, keepdim=True) / count.clamp(min=1)).masked_fill(~near, 0)
    return centred.square().sum() / (count - 1).clamp(min=0).sum().clamp(min=1)


def judged_loss(scores: Tensor, relevant: Tensor) -> Tensor:
    """The cross-entropy of each relevant document among it and all that are not relevant, averaged.

    >>> judged_loss(torch.tensor([[2.0, 2.0, 0.0]]), torch.tensor([[True, True, False]])).item() < 0.2
    True
    """
    others = torch.logsumexp(scores.masked_fill(relevant, -1e9), 1, keepdim=True)
    losses = nn.functional.softplus(others - scores) * relevant
    return (losses.sum(1) / relevant.sum(1).clamp(min=1)).mean()


def read_sources(settings: Settings) -> dict[str, Taught | Judged]:
    data = Path(settings.data)
    passages, film_atoms, other_atoms = quest(data / "quest-evidence")
    texts, descriptions = summaries(Path(settings.summaries))
    asked = pairs(str(data / "pairs" / "train.jsonl.gz"))
    judged = films(str(data / "filmsets"), settings.seed)
    teacher = Teacher(settings.teacher, TEACHER_WEIGHT)
    return {
        "summaries": Taught(texts, [*descriptions, *other_atoms], teacher, QUERIES),
        "passages": Taught(passages, film_atoms, teacher, QUERIES),
        "pairs": Taught(*asked, teacher, QUERIES),
        "films": Judged(*judged, JUDGED_QUERIES),
    }


def train_mini(settings: Settings, unfinished: Path) -> Path:
    """Trains the model, and returns its folder in ``unfinished``, a folder that exists.

    Checkpoints are kept there, and a later call goes on from the last one.
    """
    torch.manual_seed(settings.seed)
    module = MiniModule(settings.base, (settings.max_length, settings.training_length))
    log = _fit(module, settings, read_sources(settings), unfinished / _CHECKPOINT)
    folder = unfinished / "model"
    folder.mkdir(exist_ok=True)
    write_layout(folder, module.trained, module.trained)
    write_log(folder, settings=asdict(settings), log=log)
    _write_card(folder, settings)
    return folder


def _fit(
    module: MiniModule, settings: Settings, sources: Mapping[str, Taught | Judged], checkpoint: Path
) -> list[dict[str, float]]:
    trained = [part for part in module.trained.parameters() if part.requires_grad]
    optimizer = torch.optim.AdamW(trained, settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / _WARMUP_STEPS) * max(_LAST_RATE, 1 - step / settings.steps)
    )
    states: dict[str, Any] = {"module": module.trained, "optimizer": optimizer, "schedule": schedule}
    done, log, draw = 0, list[dict[str, float]](), random.Random(settings.seed)
    if saved := restore(checkpoint, states):
        done, log = saved["steps"], saved["log"]
        draw.setstate(saved["draw"])
    sums: dict[str, float] = {}
    with progress(None, settings.steps, " steps", "training", done=done) as bar:
        for step in range(done + 1, settings.steps + 1):
            optimizer.zero_grad()
            total = 0.0
            for source in sources.values():
                losses = module(source.batch(draw))
                loss = sum(getattr(settings, name) * value for name, value in losses.items())
                loss.backward()
                total += loss.detach()
                for name, value in losses.items():
                    sums[name] = sums.get(name, 0.0) + float(value.detach())
            norm = nn.utils.clip_grad_norm_(trained, 1.0)
            check_finite(total, norm, f"step {step}")
            optimizer.step()
            schedule.step()
            bar.update(1)
            if step % _LOG_STEPS == 0 or step == settings.steps:
                count = (step - 1) % _LOG_STEPS + 1
                log.append({"step": step, **{name: value / count for name, value in sums.items()}})
                sums = {}
            if step % _CHECKPOINT_STEPS == 0:
                keep(checkpoint, states, steps=step, log=log, draw=draw.getstate())
    return log


def _write_card(folder: Path, settings: Settings) -> None:
    made_of = [
        f"the weights of {settings.base}, whose licence applies",
        f"the cosines of {settings.teacher}",
        f"{settings.summaries}: summaries of Wikipedia's articles (CC BY-SA), with their short descriptions as queries",
        "QUEST (Malaviya et al. 2023, Apache-2.0): passages about films, and atoms of its training queries but those "
        "about books, without a judgement; text from Wikipedia (CC BY-SA)",
        "XQuAD, HotpotQA (CC BY-SA 4.0) and PubMedQA (MIT): questions and passages of pairs/train.jsonl.gz",
        f"filmsets, split {SPLIT}: {open_dataset(Path(settings.data) / 'filmsets').provenance}; atomic queries with "
        "their judgements. FilmSets is also a benchmark of this project",
    ]
    write_card(folder, SPARSE_TAGS, "A small sparse encoder beside BM25", _ABOUT, _USE, made_of, asdict(settings))
