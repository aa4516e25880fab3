"""Writes the texts that ``latent``, the latent model of the package, was trained on.

    python tools/latent/latent_texts.py --data DATASETS --summaries summaries_en-us.json --wordnet FOLDER --output texts

README.md names the sources. The same sources give the same files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_FILMS, _SENSES = 8000, 30_000
_FILMS_SEED, _SENSES_SEED = 7, 3
_SHORTEST = 50
"""Shorter cells of CondaQA are no passages."""


def _records(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.splitlines()]


def _sources(data: Path, summaries: Path, wordnet: Path) -> Iterator[tuple[str, Iterable[str]]]:
    films = [
        f"{film.get('title') or ''}\n{film['text']}".strip() for film in _records(data / "filmsets/documents.jsonl.gz")
    ]
    yield "films", random.Random(_FILMS_SEED).sample(films, _FILMS)
    pairs = _records(data / "pairs/train.jsonl.gz")
    for source in ("xquad", "hotpotqa", "pubmedqa"):
        own = [pair for pair in pairs if pair["source"] == source]
        yield source, [pair["positive"] for pair in own]
        yield f"{source}-questions", [pair["query"] for pair in own]
    passages = [row["passage"] for row in _records(data / "condaqa/dev.jsonl")]
    yield "condaqa", [passage for passage in passages if len(passage) > _SHORTEST]
    yield "nevir", [row[name] for row in _records(data / "nevir/train.jsonl") for name in ("doc1", "doc2")]
    articles = json.loads(summaries.read_text(encoding="utf-8")).values()
    yield "wikipedia", [f"{article['title']}\n{article['extract']}" for article in articles]
    yield "wikipedia-descriptions", [article["description"] for article in articles if article.get("description")]
    yield "wordnet", random.Random(_SENSES_SEED).sample(list(_senses(wordnet)), _SENSES)


def _senses(wordnet: Path) -> Iterator[str]:
    """The words of each sense and its gloss, "monarch, sovereign: a nation's ruler"."""
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (wordnet / f"data.{kind}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  ") or "|" not in line:  # the licence, at the beginning
                continue
            head, gloss = line.split("|", 1)
            fields = head.split()
            words = [
                re.sub(r"\(.*\)", "", fields[4 + 2 * number]).replace("_", " ") for number in range(int(fields[3], 16))
            ]
            yield f"{', '.join(words)}: {gloss.strip()}"


def main() -> None:
    """Writes a file of JSON Lines for each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATASETS")
    parser.add_argument("--summaries", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--wordnet", type=Path, required=True, metavar="FOLDER", help="has data.noun and so on")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    args = parser.parse_args()
    args.output.mkdir()
    for name, texts in _sources(args.data, args.summaries, args.wordnet):
        with (args.output / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number, text in enumerate(dict.fromkeys(texts)):
                file.write(json.dumps({"id": f"{name}-{number}", "contents": text}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
