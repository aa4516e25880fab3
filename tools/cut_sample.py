"""Cuts the sample that the package ships (``pyserini_compneg/resources/sample``) out of the FilmSets data.

    python tools/cut_sample.py DATA_FOLDER [--output FOLDER]

Reads ``DATA_FOLDER/filmsets/{documents.jsonl.gz,dev.jsonl}``. The sample holds a few queries of each template, every
document that is relevant to one of them (so its judgements are complete), the near misses that make intersection and
difference mean something, and a random rest. The same input gives the same bytes, as far as zlib compresses alike.
Beside them are the documents' vectors of bm25+mini, for which no model has to run before the sample is searched. They
depend on the processor a little, as int8 does.

The queries are chosen to show the operators at work on plain words, and the documents are one in eight: a figure
measured on the sample says nothing about the whole collection.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_compneg.commands.encode import main as encode
from pyserini_compneg.documents.vector_files import VECTORS_FILE
from pyserini_compneg.encode.hybrid import HYBRID
from pyserini_compneg.encode.models import MINI

SEED = 20
QUERIES_PER_TEMPLATE = 6
RELEVANT = range(3, 41)
ANSWERABLE = 0.5  # the least share of the relevant documents that fit the query by their words
TEMPTING = 3  # the fewest documents that a difference has to keep out
NEAR_MISSES_PER_ATOM = 40
DOCUMENTS = 4000
YEAR = r"\b(?:is|was) an? (?:\w+ )?((?:18|19|20)\d\d)\b"  # as the first sentence of a lead has it
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 24}]  # unpacking takes as much memory

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "pyserini_compneg" / "resources" / "sample"

Record = dict[str, Any]


def atoms(query: Record) -> list[str]:
    """The texts between ``<mark>`` and ``</mark>``.

    >>> atoms({"original_query": "<mark>1970s spy films</mark> that are not <mark>War films</mark>"})
    ['1970s spy films', 'War films']
    """
    return re.findall(r"<mark>(.*?)</mark>", query["original_query"])


def genre(atom: str) -> str | None:
    """The genre that an atom asks for, None for an atom about a person.

    >>> genre("1970s spy films"), genre("War films"), genre("films starring Sally Field")
    ('spy', 'war', None)
    """
    match = re.fullmatch(r"(?:\d{4}s )?(.+) films", atom)
    return match[1].lower() if match else None


def decade(atom: str) -> str | None:
    """The first three digits of the years that an atom asks for.

    >>> decade("1970s spy films"), decade("War films")
    ('197', None)
    """
    match = re.match(r"(\d{3})0s ", atom)
    return match[1] if match else None


def mentions(text: str, atom: str) -> bool:
    """Whether a document's words fit an atom, whatever the judgements say of it.

    >>> mentions("Top Secret! is a 1984 spy comedy.", "1980s spy films")
    True
    """
    name, digits = genre(atom), decade(atom)
    if name is None:
        return atom.removeprefix("films starring ") in text
    return name in text.lower() and (digits is None or re.search(rf"\b{digits}\d\b", text) is not None)


class Words:
    """Which documents of the collection fit an atom by their words; each atom is looked up once."""

    def __init__(self, documents: list[Record]) -> None:
        self.fitting = cache(lambda atom: {d["docid"] for d in documents if mentions(d["text"], atom)})

    def answers(self, query: Record) -> set[str]:
        """Ids of the documents that fit what the query asks for, with nothing taken out."""
        template, parts = query["metadata"]["template"], [self.fitting(atom) for atom in atoms(query)]
        if " not " in template:
            parts.pop()
        return set.union(*parts) if " or " in template else set.intersection(*parts)

    def tempting(self, query: Record) -> set[str]:
        """Ids of the documents that fit both sides of a difference, and are not relevant; none for other queries."""
        if " not " not in query["metadata"]["template"]:
            return set()
        return (self.answers(query) & self.fitting(atoms(query)[-1])).difference(query["docs"])


def is_telling(query: Record, words: Words) -> bool:
    """Whether a query shows what its operators do.

    Each atom has to matter: no genre twice, no second decade. The relevant documents have to be few, and to be found by
    their words; a difference needs something to take out.
    """
    genres = [name for atom in atoms(query) if (name := genre(atom))]
    decades = {digits for atom in atoms(query) if (digits := decade(atom))}
    return (
        len(query["docs"]) in RELEVANT
        and len(set(genres)) == len(genres)
        and len(decades) <= 1
        and len(words.answers(query).intersection(query["docs"])) >= ANSWERABLE * len(query["docs"])
        and (" not " not in query["metadata"]["template"] or len(words.tempting(query)) >= TEMPTING)
    )


def choose_queries(queries: list[Record], words: Words, rng: random.Random) -> list[Record]:
    """A few queries of each template, no two of them with the same first atom; in the order given."""
    chosen: list[Record] = []
    for template in sorted({query["metadata"]["template"] for query in queries}):
        candidates = [query for query in queries if query["metadata"]["template"] == template]
        rng.shuffle(candidates)
        taken: dict[str, Record] = {}
        for query in candidates:
            if len(taken) < QUERIES_PER_TEMPLATE and atoms(query)[0] not in taken and is_telling(query, words):
                taken[atoms(query)[0]] = query
        chosen.extend(taken.values())
    return sorted(chosen, key=lambda query: query["qid"])


def near_misses(chosen: list[Record], queries: list[Record], words: Words, rng: random.Random) -> set[str]:
    """Documents that answer a part of a chosen query: by another query's judgements, or by their words.

    A bare genre is left out, since every other document would fit it.
    """
    wanted = {atom for query in chosen for atom in atoms(query) if genre(atom) is None or decade(atom)}
    found = {docid for query in queries if wanted.intersection(atoms(query)) for docid in query["docs"]}
    found.update(docid for query in chosen for docid in words.tempting(query))
    for atom in sorted(wanted):
        fitting = sorted(words.fitting(atom))
        found.update(rng.sample(fitting, min(NEAR_MISSES_PER_ATOM, len(fitting))))
    return found


def cut(documents: list[Record], queries: list[Record]) -> tuple[list[Record], list[Record]]:
    """Returns the sample's documents and queries, each in the order given."""
    rng, words = random.Random(SEED), Words(documents)
    chosen = choose_queries(queries, words, rng)
    kept = {docid for query in chosen for docid in query["docs"]} | near_misses(chosen, queries, words, rng)
    rest = [document["docid"] for document in documents if document["docid"] not in kept]
    kept.update(rng.sample(rest, max(0, DOCUMENTS - len(kept))))
    return [document for document in documents if document["docid"] in kept], chosen


def as_lines(records: Iterable[Record]) -> bytes:
    """JSON Lines, UTF-8, keys in the order of the source."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def write_vectors(sample: Path) -> None:
    """Encodes the documents of a sample. To save space, the model's small weights go; others have three decimals."""
    with tempfile.TemporaryDirectory() as folder:
        documents = str(sample / "documents.jsonl.gz")
        options = ["--encoder", f"{HYBRID}{MINI}", "--threshold", "0.5"]
        if encode(["--collection", documents, "--output", folder, *options]):
            raise SystemExit(1)
        (made,) = Path(folder).glob("*.jsonl.gz")
        with gzip.open(made, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        for record in records:
            record["title"], _, text = record["contents"].partition("\n")
            if made_in := re.search(YEAR, text):
                record["year"] = int(made_in[1])
            record["vector"] = {term: round(weight, 3) for term, weight in record["vector"].items()}
        (sample / "vectors").mkdir(exist_ok=True)
        (sample / "vectors" / made.with_suffix(".xz").name).write_bytes(lzma.compress(as_lines(records), filters=XZ))
        shutil.copyfile(Path(folder) / VECTORS_FILE, sample / "vectors" / VECTORS_FILE)


def main(argv: list[str] | None = None) -> int:
    """Writes the sample and prints what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path, metavar="DATA_FOLDER", help="folder that holds filmsets/")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, metavar="FOLDER", help="default: %(default)s")
    options = parser.parse_args(argv)

    source = options.data / "filmsets"
    with gzip.open(source / "documents.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    with (source / "dev.jsonl").open(encoding="utf-8") as lines:
        queries = [json.loads(line) for line in lines]
    kept, chosen = cut(documents, queries)

    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "queries.jsonl").write_bytes(as_lines(chosen))
    # The time of writing and the file's name stay out of the gzip header: the bytes depend on the input alone.
    (options.output / "documents.jsonl.gz").write_bytes(gzip.compress(as_lines(kept), compresslevel=9, mtime=0))
    write_vectors(options.output)
    print(f"{len(kept)} documents, {len(chosen)} queries in {options.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
