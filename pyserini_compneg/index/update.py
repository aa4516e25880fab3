"""Updates an index from the files of a collection: encodes the documents that have changed, and no others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyserini_compneg.documents.collection import (
    CollectionPart,
    DocumentBlock,
    Documents,
    has_vectors,
    iter_collection_blocks,
    opened_collection,
    say_formats,
)
from pyserini_compneg.documents.formats import CollectionFile, Format
from pyserini_compneg.documents.passages import shown_passages
from pyserini_compneg.documents.vector_files import VECTORS_FILE, read_about
from pyserini_compneg.encode import BM25, Bm25DocumentEncoder, DocumentEncoder
from pyserini_compneg.encode.document_encoders import document_encoder
from pyserini_compneg.encode.models import Head, ModelOptions
from pyserini_compneg.encode.query_encoders import check_places, same_model
from pyserini_compneg.index.build import absolute_name
from pyserini_compneg.index.sources import Source, TextSource, VectorSource
from pyserini_compneg.index.updater import NOWHERE, ImpactUpdater, UpdateCounts
from pyserini_compneg.lucene import ENGLISH, IndexSettings, Manifest
from pyserini_compneg.lucene.manifest import BM25_SETTINGS
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError
from pyserini_compneg.support.existing_work import changed_settings
from pyserini_compneg.support.files import iter_lines
from pyserini_compneg.support.progress import progress, token_rate
from pyserini_compneg.support.terminal import shown

REBUILD_FROM = 0.1
"""The relative change of BM25's average length from which a rebuild pays: weights then change by some per cent."""


@dataclass(slots=True, kw_only=True)
class UpdateReport(UpdateCounts):
    """What an update did, and the index after it.

    Attributes:
        manifest: The manifest, with the present number of documents.
        drift: The relative change of the average document length since the build; BM25 keeps the average of the build.
            The change is estimated from the updated documents, as if the replaced ones had had average length. None
            without BM25.
    """

    manifest: Manifest
    drift: float | None = None


def update_index(
    index: str | Path,
    collection: Documents | None = None,
    delete: str | Path | Iterable[object] | None = None,
    *,
    delete_missing: bool = False,
    optimize: bool = False,
    encoder: str | None = None,
    adopt: Manifest | None = None,
    collection_format: Format | None = None,
    model_options: ModelOptions | None = None,
    threads: int | None = None,
    upgrade: bool = False,
) -> UpdateReport:
    """Inserts, replaces and deletes documents of an index. The update becomes visible all at once.

    Documents with the same content as in the index are skipped, and not encoded.

    Args:
        index: The folder of the index.
        collection: The documents to insert, or to replace if the index has their ids; see :func:`build_index`.
        delete: A file with the ids to delete, one on a line, or a list of them; see :meth:`ImpactUpdater.delete`.
        delete_missing: Delete the documents of the index that the collection does not have.
        optimize: Merge the index at the end; see :meth:`ImpactUpdater.optimize`.
        encoder: The place of the index's model, if the model was moved. It must be the same model.
        adopt: The manifest for an index that stock Anserini built, as in :class:`ImpactUpdater`. Documents then have
            vectors. With ``filter_fields``, all documents are written again from their stored sources.
        collection_format: See :func:`build_index`.
        model_options: The ``backend`` and the ``device`` on which the model runs. All else is as in the index.
        threads: The number of threads; None for the number of processors.
        upgrade: See :class:`ImpactUpdater`.

    Raises:
        ArgumentError: There is nothing to do, or ``adopt`` has other values than an encoder and a scale.
        IndexFormatError: There is no such index, stock Anserini built it and it is not adopted, or cannot be, or the
            index's model is no longer in its place.
        InputError: A document is bad, an id is given twice, the vectors were made by another encoder, or there are
            no documents, and nothing else to do.
        EncodingError: The model is not the one of the index, or cannot be used.
        OutputError: Another process updates or builds the index (BusyError), or the index cannot be written.
    """
    if collection is None and delete is None and adopt is None and not optimize:
        raise ArgumentError("nothing to do", remedy="give a collection, a file of ids to delete, or both")
    if delete_missing and collection is None:
        raise ArgumentError("documents are missing only in a collection, and none is given")
    if isinstance(delete, Mapping):
        raise ArgumentError(f"delete must be a file or a list of ids, got {shown(delete)}")
    adopt = adopt and replace(adopt, encoder=absolute_name(adopt.encoder))
    with ImpactUpdater(index, threads, adopt, upgrade) as updater, ExitStack() as opened:
        files: list[CollectionFile] = []
        if collection is not None:
            fields = updater.manifest.filter_fields
            files = opened.enter_context(opened_collection(collection, collection_format, fields))
            if inside := next((path for path, *_ in files if path.resolve().is_relative_to(updater.folder)), None):
                raise InputError(f"is in the folder of the index, {index}", where=inside)
            say_formats(files)
        if delete is not None:
            if isinstance(delete, (str, Path)):
                if str(delete) != "-" and not Path(delete).exists():
                    remedy = "--delete takes a file of ids, one on a line, or - for standard input"
                    raise InputError("no such file", where=delete, remedy=remedy)
                delete = [line.strip() for _, line in iter_lines(delete)]
            updater.delete(delete)
        if optimize:
            updater.optimize()
        bm25 = _bm25(updater.manifest)
        if files:
            documents = _add(updater, files, _source(files, updater.manifest, bm25, encoder, model_options))
            if not (documents or optimize) and delete is None:
                raise InputError("no documents", where=files[0].label or collection)
        if delete_missing:
            updater.delete_missing()
        updater.add_stored()
        if bm25:
            updater.state["terms"] = updater.state.get("terms", 0) + bm25.terms
            updater.state["lengths"] = updater.state.get("lengths", 0) + bm25.documents
    return _report(updater)


def _add(updater: ImpactUpdater, files: Sequence[CollectionFile], source: Source) -> int:
    """Adds the documents of files, and returns how many there are, changed or not."""
    places: deque[list[int]] = deque()

    def changed() -> Iterator[DocumentBlock]:
        for block in iter_collection_blocks(CollectionPart(files), most_lines=source.most_lines):
            _, ids, sources = source.compared(block)
            found = updater.compare(ids, block.name, block.first_line, sources)
            lines = block.lines.split(b"\n")
            kept = [line if place != NOWHERE else b"" for line, place in zip(lines, [*found, 0], strict=False)]
            if block.faults or any(map(bytes.strip, kept)):
                places.append(found)
                yield block._replace(lines=b"\n".join(kept))
            bar.update(sum(map(bool, map(bytes.strip, lines))))

    with progress(None, None, " docs", "updating", summary=True) as bar, token_rate(bar):
        for block, layers, problems in source.encoded(changed()):
            if problems:
                raise InputError(problems[0])
            found = places.popleft()
            for start, lines, sources in layers:
                updater.write(lines, found[start:], block.name, block.first_line + start, sources)
        return int(bar.n)


def _bm25(manifest: Manifest) -> Bm25DocumentEncoder | None:
    """BM25 with the parameters and the average length of the build."""
    if not all(name in manifest.settings for name in BM25_SETTINGS):
        return None
    parameters = {name: float(manifest.settings[name]) for name in BM25_SETTINGS}
    return Bm25DocumentEncoder(**parameters, language=manifest.language)


def _source(
    files: Sequence[CollectionFile],
    manifest: Manifest,
    bm25: Bm25DocumentEncoder | None,
    encoder: str | None,
    options: ModelOptions | None,
) -> Source:
    """The encoder of the index's documents, with its settings."""
    name = encoder or manifest.encoder
    index = IndexSettings(filter_fields=manifest.filter_fields, passages=manifest.passages)
    if encoder and not same_model(manifest.encoder, manifest.settings, encoder):
        said = f"the index was encoded with {manifest.encoder!r}"
        raise EncodingError(said, where=encoder, remedy="build another index with this encoder")
    if manifest.encoder != BM25 and has_vectors(files) is not False:
        _check_vectors(files, manifest)
        return VectorSource(files, name, index)
    if not encoder:
        check_places(name)
    made = _document_encoder(name, manifest, bm25, options)
    settings = _encoding(manifest)
    if changed := changed_settings(settings, made.settings):
        was, now = settings.get(changed[0]), made.settings.get(changed[0])
        said = f"{changed[0]} was {was!r} when the index was built, and is {now!r}"
        raise EncodingError(said, where=name, remedy="use the encoder of the index, or build it again")
    return TextSource(made, index)


def _encoding(manifest: Manifest) -> dict[str, float | int | str]:
    """The settings of an encoder, with the language, as an encoder has them."""
    return {**manifest.settings, **({"language": manifest.language} if manifest.language != ENGLISH else {})}


def _check_vectors(files: Sequence[CollectionFile], manifest: Manifest) -> None:
    """Refuses vectors that the same encoder has made with other settings."""
    folder = files[0].path.parent
    about = read_about(folder / VECTORS_FILE)
    settings = _encoding(manifest)
    if about and (sizes := about.get("passages", {})) != manifest.passages:
        said = (
            f"passages of the vectors are {shown_passages(sizes)}, and {shown_passages(manifest.passages)} in the index"
        )
        raise InputError(said, where=folder, remedy="encode them with the settings of the index")
    if about and settings and (changed := changed_settings(settings, about["settings"])):
        was, now = settings.get(changed[0]), about["settings"].get(changed[0])
        said = f"{changed[0]} of the vectors is {now!r}, and {was!r} in the index"
        raise InputError(said, where=folder, remedy="encode them with the settings of the index")


def _document_encoder(
    name: str, manifest: Manifest, bm25: Bm25DocumentEncoder | None, options: ModelOptions | None
) -> DocumentEncoder:
    """The encoder of an index's documents, with the settings of the index."""
    settings: Mapping[str, Any] = manifest.settings
    if name != BM25:
        if "model" not in settings:
            said = f"the index was built from vectors of {manifest.encoder!r}, and these documents have texts"
            raise InputError(said, remedy="encode them, and give documents with vectors")
        kept = {one: settings[one] for one in ("precision", "max_length", "top_terms", "threshold") if one in settings}
        head = Head.parse(str(settings["head"])) if "head" in settings else None
        options = replace(options or ModelOptions(), head=head, **kept)

    def made_bm25() -> Bm25DocumentEncoder:
        assert bm25
        return bm25

    return document_encoder(name, options, made_bm25)


def _report(updater: ImpactUpdater) -> UpdateReport:
    manifest, state = updater.manifest, updater.state
    report = UpdateReport(**asdict(updater.counts), manifest=manifest)
    if average := float(manifest.settings.get("average_length", 0)):
        # Documents that were replaced several times count several times.
        share = min(1.0, state.get("lengths", 0) / max(1, manifest.documents - manifest.empty_documents))
        mean = state["terms"] / state["lengths"] if state.get("lengths") else average
        report.drift = share * (mean / average - 1)
    return report
