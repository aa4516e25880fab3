"""The folder of an experiment: judgements, collection and indexes, each made once and reused."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pyserini_compneg.baselines import (
    PairScorer,
    Similarity,
    TokenIndex,
    check_dense_model,
    check_pair_scorer,
    dense_encoder,
    dense_model_hash,
    is_late_interaction,
    pair_scorer,
)
from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.encode import BM25, PREFIX, model_parts, split_name
from pyserini_compneg.encode.models import ModelOptions, NeuralSide, load_checkpoint, model_hash
from pyserini_compneg.eval import Qrels
from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.datasets import Dataset
from pyserini_compneg.lab.experiments.dense import VectorIndex, dense_index
from pyserini_compneg.lab.experiments.inputs import ALL_MINILM, MS_MARCO_MINILM, REMEDY
from pyserini_compneg.lab.experiments.protocol import ProtocolPlan
from pyserini_compneg.lab.experiments.rows import DENSE_ENCODER, OF_TOKENS, RERANKER, WORDNET_FILES, Need, Read, RowPlan
from pyserini_compneg.lab.experiments.run_cache import KEY_DIGITS
from pyserini_compneg.lab.experiments.term_measures import WORDNET, check_wordnet
from pyserini_compneg.lab.experiments.word_space import WordSpace, word_queries
from pyserini_compneg.lucene import MANIFEST_NAME, SHARDS_NAME, is_index
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import DownloadError, EncodingError, InputError, OutputError
from pyserini_compneg.support.files import content_digest, slug
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Engine:
    """An encoder, named as in ``--encoder``, and the index of its documents."""

    encoder: str
    index: Path | None = None  # an existing index; None to build one
    label: str = ""  # distinguishes its rows; empty for a single engine

    @property
    def is_hybrid(self) -> bool:
        """Whether its vectors combine BM25 and a model of terms, whose share can be chosen."""
        return split_name(self.encoder)[0] and PREFIX in model_parts(self.encoder)

    @property
    def is_lexical(self) -> bool:
        """Whether no model makes its vectors: BM25, or a file of vectors."""
        return self.encoder == BM25 or Path(self.encoder).is_file() or split_name(self.encoder)[0]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What rows are run with, where they do not say.

    ``dense_encoder``, ``reranker`` and ``wordnet`` default to all-MiniLM-L6-v2, a cross-encoder of MS MARCO and
    Debian's folder. If a default is missing, the parts that need it are left out.
    """

    engines: Sequence[Engine]
    dense_encoder: str | None = None
    reranker: str | None = None
    wordnet: Path | None = None
    models: Mapping[str, Path] = field(default_factory=dict)  # trained models, by their names in the protocol
    model_options: ModelOptions | None = None
    model_weight: float | None = None  # the share of the model in bm25+MODEL
    read: Read = "expression"  # how texts are read in rows that take the dataset's expressions
    threads: int = 1

    @property
    def dense_name(self) -> str:
        return self.dense_encoder or ALL_MINILM

    @property
    def reranker_name(self) -> str:
        return self.reranker or MS_MARCO_MINILM

    def encoders(self, row: RowPlan) -> Sequence[Engine]:
        """The encoders with which a row is run, each once: none for a row that is only published."""
        if row.takes_encoders or row.method is None:
            return self.engines if row.method else []
        model = str(self.models[row.model]) if row.model else self.dense_name
        return [Engine(row.encoder or model)]

    def has_late_interaction(self, protocol: ProtocolPlan) -> bool:
        """Whether the dense model gives vectors of tokens, which matters to some protocols. A missing one does not."""
        if not any(OF_TOKENS in row.needs for row in protocol.rows):
            return False
        with suppress(DownloadError, EncodingError):
            return is_late_interaction(self.dense_name)
        return False

    def absent(self, protocol: ProtocolPlan) -> dict[Need, str]:
        """The defaults and the models of the hub that a protocol needs and that are missing, and what that leaves out.

        Raises an error if the user named the missing model or folder, or if nothing else is left.
        """
        choices: dict[Need, tuple[str | Path | None, Callable[[Any], object], str | Path]] = {
            DENSE_ENCODER: (self.dense_encoder, check_dense_model, ALL_MINILM),
            RERANKER: (self.reranker, check_pair_scorer, MS_MARCO_MINILM),
            WORDNET_FILES: (self.wordnet, check_wordnet, WORDNET),
        }
        absent = {}
        for need in protocol.needs:
            if need.is_trained:
                continue
            of_hub = partial(check_dense_model, similarity=need.similarity) if need.is_dense else load_checkpoint
            named, check, default = choices.get(need, (None, of_hub, need.model))
            try:
                check(named or default)
            except (DownloadError, EncodingError, InputError) as error:
                if named is not None or protocol.is_only(need):
                    raise
                absent[need] = f"{protocol.parts(need)}: {error}"
        return absent


class RunFolder(ExitStack):
    """Makes or reuses the files of an experiment. Use it as a context manager, which closes the indexes.

    The names of indexes and converted collections contain a hash of all their inputs, and the files are written
    atomically. So an existing file is valid, and an interrupted experiment can continue. Models are loaded on first
    use.
    """

    def __init__(self, folder: Path, dataset: Dataset, split: str, options: RunOptions) -> None:
        super().__init__()
        self.folder, self.dataset, self.split, self.options = folder, dataset, split, options
        self.topics, self.qrels = dataset.topics(split), dataset.qrels(split)
        self._dense: dict[tuple[str, Similarity | None], VectorIndex | TokenIndex] = {}
        self._searchers: dict[tuple[Engine, str | None, float | None], SignedImpactSearcher] = {}
        keep_inputs(folder, dataset.folder, remedy=REMEDY)
        if folder.exists() and (is_index(folder) or not folder.is_dir()):
            raise OutputError("is an index or no folder", where=folder, remedy=REMEDY)
        folder.mkdir(parents=True, exist_ok=True)

    def searcher(self, engine: Engine, ablation: str | None, model_weight: float | None) -> SignedImpactSearcher:
        """The searcher of an encoder's index. A missing index is built.

        Only a hybrid with a model of terms has a ``model_weight``.
        """
        weight = model_weight if engine.is_hybrid and PREFIX in model_parts(engine.encoder) else None
        key = engine, ablation, weight
        if key not in self._searchers:
            index, options = engine.index or self._built(engine.encoder), self._options(engine.encoder)
            opened = SignedImpactSearcher(
                index, engine.encoder, model_options=options, ablation=ablation, model_weight=weight
            )
            self._searchers[key] = self.enter_context(opened)
            self._check_documents(opened)
        return self._searchers[key]

    def depends_on(self, engine: Engine, index: Path) -> dict[str, object]:
        """The inputs of an engine's rankings: the encoder and the state of the index.

        The state consists of Lucene's commit, whose segments have random names, and of the manifest, or of the list of
        shards with their checksums.
        """
        files = sorted((*index.glob("segments_*"), index / MANIFEST_NAME, index / SHARDS_NAME))
        state = content_digest(*filter(Path.is_file, files), digits=KEY_DIGITS)
        return {"encoder": self._fingerprint(engine.encoder), "index": state}

    def _fingerprint(self, encoder: str) -> list[str]:
        """The inputs of query vectors besides the index: files of the model or of vectors, and options."""
        if encoder == BM25:
            return [BM25]
        if Path(encoder).is_file():
            return [content_digest(Path(encoder))]
        models = [load_checkpoint(name, self.options.model_options) for name in model_parts(encoder).values()]
        sides = [side for checkpoint in models for side in (checkpoint.document, checkpoint.query)]
        hashes = [model_hash(side) if isinstance(side, NeuralSide) else repr(side) for side in sides]
        return [*[BM25] * split_name(encoder)[0], *hashes, repr(self.options.model_options)]

    @cached_property
    def reranker(self) -> PairScorer:
        return pair_scorer(self.options.reranker_name)

    def dense_fingerprint(self, encoder: str, similarity: Similarity | None) -> str:
        """The inputs of rankings by a dense encoder. Does not load the model."""
        return f"{dense_model_hash(encoder, similarity)}-{self.collection_key}"

    def dense(self, encoder: str, similarity: Similarity | None) -> VectorIndex | TokenIndex:
        """The documents' vectors by a dense encoder. Missing vectors are made."""
        key = encoder, similarity
        if key not in self._dense:  # only one is kept, because they are large
            self._dense = {key: dense_index(self.documents, dense_encoder(encoder, similarity))}
        return self._dense[key]

    @cached_property
    def words(self) -> WordSpace:
        return WordSpace(self.documents())

    def ask_words(self) -> None:
        """Replaces the dataset's queries by :func:`word_queries`, which are not judged."""
        self.topics = word_queries(self.words)
        self.qrels = {topic.qid: {} for topic in self.topics}

    def qrels_file(self, name: str, qrels: Qrels) -> str:
        """Writes judgements for scoring runs. Returns the path of the file in the folder."""
        path = self.folder / "qrels" / f"{slug(name)}.txt"
        path.parent.mkdir(exist_ok=True)
        with atomic_writer(path, REMEDY) as handle:
            handle.writelines(
                f"{qid} 0 {docid} {value}\n" for qid, judged in qrels.items() for docid, value in judged.items()
            )
        return path.relative_to(self.folder).as_posix()

    def document_count(self) -> int:
        """The number of documents in the open index, or in the dataset."""
        opened = next(iter(self._searchers.values()), None)
        return opened.num_docs if opened else sum(1 for _ in self.documents())

    def title(self, docid: str) -> str:
        """A document's title from an open index, or its id."""
        opened = next(iter(self._searchers.values()), None)
        return (opened.title(docid) if opened else None) or docid

    def documents(self) -> Iterator[SourceDocument]:
        """All documents in which the split's topics are searched."""
        return self.dataset.documents(self.split)

    def _built(self, encoder: str) -> Path:
        made_of = content_digest(json.dumps([self.collection_key, self._fingerprint(encoder)]), digits=KEY_DIGITS)
        index = self.folder / "indexes" / f"{slug(Path(encoder).name)}-{made_of}"
        if not index.exists():
            index.parent.mkdir(exist_ok=True)
            collection, threads, options = self._collection(), self.options.threads, self._options(encoder)
            build_index(
                collection, index, encoder, threads=threads, store_raw=True, existing="resume", model_options=options
            )
        return index

    def _collection(self) -> Path:
        """The documents as a file for ``index`` and Anserini. Converted once if the dataset has no such file."""
        if self.dataset.collection is not None:
            return self.dataset.collection
        path = self.folder / "collection" / f"{slug(self.split)}-{self.collection_key}.jsonl"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            with atomic_writer(path, REMEDY) as handle:
                for document in self.documents():
                    line = {"id": document.docid, "contents": document.text}
                    handle.write(json.dumps(line, ensure_ascii=False) + "\n")
        return path

    @cached_property
    def collection_key(self) -> str:
        """A hash of the collection's path, size and time, or of the documents if the dataset has no such file."""
        if self.dataset.collection is None:
            key: list[object] = [[document.docid, document.text] for document in self.documents()]
        else:
            path = self.dataset.collection.resolve()
            key = [str(path), path.stat().st_size, path.stat().st_mtime_ns]
        return content_digest(json.dumps(key), digits=KEY_DIGITS)

    def _check_documents(self, searcher: SignedImpactSearcher) -> None:
        """Checks that an index belongs to this dataset: that it contains the judged documents."""
        folder = searcher.reader.folder
        judged = list(dict.fromkeys(docid for documents in self.qrels.values() for docid in documents))
        missing = [docid for docid in judged if not searcher.reader.has(docid)]
        if missing and len(missing) == len(judged):
            said = f"none of {len(judged)} judged documents of {self.dataset.folder} is in it, {missing[0]!r} for one"
            raise InputError(f"{said}; it is an index of another collection", where=folder)
        if missing:
            share = f"{len(missing)} of {len(judged)} judged documents"
            _logger.warning("%s: lacks %s, %r for one; no method can find them", folder, share, missing[0])

    def _options(self, encoder: str) -> ModelOptions | None:
        return None if encoder == BM25 else self.options.model_options
