"""``compneg demo``: indexes, searches and evaluates the sample, like ``make search``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command

if TYPE_CHECKING:
    from pyserini_compneg.search import SignedImpactSearcher

SAMPLE = Path(str(resources.files("pyserini_compneg") / "resources" / "sample"))
VECTORS, QUERIES = SAMPLE / "vectors", SAMPLE / "queries.jsonl"
ENCODER = "bm25+mini"

_EXAMPLES = (
    "silent films AND western films",
    "films starring Alicia Silverstone OR films starring Damon Wayans Jr.",
    "1930s fantasy films NOT musical films",
    "1940s war films AND spy films NOT thriller films",
    "(western films OR war films) AND comedy films NOT silent films",
)
_HITS_SHOWN = 3

_EPILOG = """example:
  compneg demo --index indexes/sample
"""


def _run(args: argparse.Namespace, _: argparse.ArgumentParser) -> None:
    from pyserini_compneg.commands.eval import main as evaluate
    from pyserini_compneg.compose import Operators
    from pyserini_compneg.index import build_index
    from pyserini_compneg.search import SignedImpactSearcher
    from pyserini_compneg.support.errors import ArgumentError, IndexFormatError
    from pyserini_compneg.support.staging import keep_inputs
    from pyserini_compneg.topics.topic_runs import search_topics
    from pyserini_compneg.topics.topics import read_topics

    others = {"bm25": (None, 0.0), "vanilla": (Operators("vanilla", "vanilla", "vanilla"), None)}
    runs = [args.output, *(args.output.with_name(f"{name}.txt") for name in others)]
    if len(set(runs)) < len(runs):
        raise ArgumentError(f"--output {args.output}: is the name of another run that is made; choose another one")
    for output in runs:
        keep_inputs(output, args.index)
    if not args.index.exists():
        manifest = build_index(VECTORS, args.index, encoder=ENCODER, threads=2, store_raw=True, filter_fields=["year"])
        print(
            f"Indexed {manifest.documents} film leads in {args.index}, as impacts of BM25 and of a small model, mini.\n"
        )
    with SignedImpactSearcher(args.index) as searcher:
        made = searcher.reader.manifest
        if made is None or made.encoder != ENCODER:
            raise IndexFormatError(f"{args.index}: is not an index of {ENCODER}; delete it, or name another --index")
        print("With each hit, the terms that add most to its score, or take most from it. @ marks terms of the model,")
        print("a∩b both terms together.\n")
        for text in _EXAMPLES:
            _show(searcher, text)
        search_topics(searcher, read_topics(QUERIES), args.output, threads=2, tag=f"compneg-{ENCODER}")
    for output, (operators, weight) in zip(runs[1:], others.values(), strict=True):
        with SignedImpactSearcher(args.index, operators=operators, model_weight=weight) as searcher:
            search_topics(searcher, read_topics(QUERIES), output, threads=2, tag=f"compneg-{output.stem}")
    print(
        "The default operators; BM25 alone; and vanilla, which encodes a query as one text. The first and the last use"
    )
    print("mini, which was trained on texts of several kinds, other queries about these films among them.\n")
    if evaluate(["--qrels", str(QUERIES), "--run", *map(str, runs), "--by", "template"]):
        raise SystemExit(1)
    print(f"\nThe runs are in {args.output.parent}. Search for yourself, explain a ranking, or list all commands:")
    query = ["--index", args.index, "--query", "1940s war films NOT spy films"]
    for words in (["search", *query], ["explain", *query, "--docid", "Sky_Murder"], []):
        print(f"  {_pasted(words)}")


def _show(searcher: SignedImpactSearcher, text: str) -> None:
    from pyserini_compneg.support.terminal import printable

    print(text)
    for rank, hit in enumerate(searcher.search(text, _HITS_SHOWN), 1):
        explanation = searcher.explain(text, hit.docid).in_unit(searcher.unit(text))
        parts = [*explanation.pulled_up(2), *explanation.pushed_down(1)]
        why = "  ".join(f"{part.term} {part.amount:+.2f}" for part in parts if round(part.amount, 2))
        title = printable(searcher.title(hit.docid) or hit.docid)
        print(f"  {rank}  {explanation.score:>7.2f}  {title:<38.38}  {why}")
    print()


def _pasted(words: Sequence[str | Path]) -> str:
    """A command to paste into the shell that runs this one. Without words, it lists the commands."""
    program = Path(sys.executable).with_name("compneg")
    if sys.prefix == sys.base_prefix:
        program = Path("compneg")
    elif program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    return shlex.join(map(str, [program, *words]))


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "demo",
        "",
        "Indexes the sample that comes with the package (4,000 film leads), searches it and scores its runs.",
        _EPILOG,
    )
    parser.add_argument("--index", type=Path, default=Path("indexes/sample"), metavar="DIR", help="folder of the index")
    text = "the run of the default operators; bm25.txt and vanilla.txt are written to the same folder"
    parser.add_argument("--output", type=Path, default=Path("runs/sample/default.txt"), metavar="RUN", help=text)
    return parser


main = command(_parser, _run)
