"""Measures how plain texts are read, and what that does to rankings.

    python benchmarks/reading.py [--data DATASETS] [--reader FOLDER] [--plot FILE] [--wrong]

Compares readings of requests with what they ask for, by kind and for words such as "non-European", and shows how well
the confidence is calibrated, how long a reading takes, and how much memory. With --data, it counts how many exclusions
are seen in the wordings of quest-evidence/, and how many texts of scifact/, cisi/, nevir/ and pairs/ are decomposed;
and it ranks the dev splits of excluir/, negconstraint/ and filmsets/, with BM25 impacts in indexes/, built on the first
call. --wrong lists the readings that are wrong, or decomposed. Prints Markdown.
"""

from __future__ import annotations

import argparse
import math
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from dev_sets import index_of, search

from pyserini_compneg.compose import DIFFERENCES, Operators
from pyserini_compneg.eval.measures import Measure, evaluate, mean, parse_measures
from pyserini_compneg.eval.significance import confidence_interval
from pyserini_compneg.expression import Atom, Difference, Expression, Union, format_expression
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.plots import draw_curve
from pyserini_compneg.lab.experiments.results import Curve, Point
from pyserini_compneg.lab.training.judged_requests import KINDS, read_judged, request_score
from pyserini_compneg.reading import ModelReader
from pyserini_compneg.reading.decomposition import tagged
from pyserini_compneg.reading.model_reader import PACKAGED
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.topics.topics import Topic

RANKINGS = {
    "excluir": ("right_rank", "right_rank@10", "R@10"),
    "negconstraint": ("nDCG@10", "R@100"),
    "filmsets": ("nDCG@10", "R@100"),
}
EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)
"""Of the intervals of confidence."""

PREFIXED = re.compile(r"(?<![\w-])(?:non[-‐‑–]?|un[-‐‑–]?|non )(?=\w{3})(\w+)", re.IGNORECASE)
"""Words such as "non-European", "non European" and "unsalted", and the word after the prefix."""

FEWEST = 10
"""Readings of a point in the diagram."""

Run = Mapping[str, Mapping[str, float]]
Judgements = list[tuple[float, bool]]
"""The confidence of readings, and whether they are right."""


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=Path, default=Path("data/requests"), metavar="FOLDER")
    parser.add_argument("--data", type=Path, metavar="DATASETS")
    parser.add_argument("--reader", type=Path, default=PACKAGED, metavar="FOLDER")
    parser.add_argument("--wrong", action="store_true", help="list what is wrong, or decomposed")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the diagram of the confidence, as PNG")
    args = parser.parse_args()
    reader = ModelReader(args.reader)
    found = requests(reader, args.requests, args.wrong)
    prefixes(reader, args.requests, args.data, args.wrong)
    if args.data:
        found["QUEST"] = wordings(reader, args.data / "quest-evidence", args.wrong)
    calibration(found, args.plot)
    speed(args.reader, [request.query for request in read_judged(args.requests / "dev-a.jsonl")])
    if args.data:
        stays_whole(reader, args.data, args.wrong)
        for name in RANKINGS:
            rank(reader, args.data / name, args.wrong)
    return 0


def requests(reader: ModelReader, folder: Path, wrong: bool) -> dict[str, Judgements]:
    """Prints the shares of right readings by kind, and returns which ones of each file are right."""
    columns = [*KINDS, "excluded", "joined", "understood but wrong", "doubted, of the right"]
    print(f"| whole reading right, % | all | {' | '.join(columns)} |\n|---|{'---|' * (len(columns) + 1)}")
    found: dict[str, Judgements] = {}
    for path in sorted(folder.glob("*.jsonl")):
        judged = read_judged(path)
        readings = reader.read([request.query for request in judged])
        scores = [request_score(*pair) for pair in zip(judged, readings, strict=True)]
        groups = [[score.whole for score in scores]]
        groups += [[s.whole for s, one in zip(scores, judged, strict=True) if one.kind == kind] for kind in KINDS]
        groups += [[score.excluded for score in scores], [score.joined for score in scores]]
        understood = [(reading.understood, score.whole) for reading, score in zip(readings, scores, strict=True)]
        groups += [[one == (True, False) for one in understood], [not sure for sure, right in understood if right]]
        print(f"| {path.stem} | {' | '.join(f'{100 * statistics.mean(group):.1f}' for group in groups)} |")
        found[path.stem] = [(r.confidence, score.whole) for r, score in zip(readings, scores, strict=True)]
        for request, reading, score in zip(judged, readings, scores, strict=True):
            if wrong and not score.whole:
                print(
                    f"- {request.kind}, {request.wanted_op}: {request.query}\n  - asks for {list(request.wanted)} NOT ",
                    end="",
                )
                print(f"{list(request.excluded)}\n  - read as {tagged(reading)} {reading.confidence:.2f}")
    return found


def prefixes(reader: ModelReader, folder: Path, data: Path | None, wrong: bool) -> None:
    """Prints how many words with a prefix are read as an exclusion of the rest, and how many ask for that.

    A word with "un" counts if the rest is a word of another request, so "under" and "until" do not. QUEST's wordings
    ask for an exclusion if their template has one, and the texts of ``LOADERS`` never.
    """
    sets = {path.stem: [(one.query, one.excluded) for one in read_judged(path)] for path in folder.glob("*.jsonl")}
    known = {word for texts in sets.values() for text, _ in texts for word in re.findall(r"\w+", text.lower())}
    if data:
        sets |= {name: [(text, []) for text in load(data).values()] for name, load in LOADERS.items()}
        records = (record for _, record in iter_jsonl(data / "quest-evidence" / "wordings.train.jsonl"))
        sets["QUEST"] = [(r["query"], [r["query"]] if excludes(r) else []) for r in records]
    print("\n| words with | in | number | read as an exclusion | asked for | both |\n|---|---|---|---|---|---|")
    for prefix, (name, texts) in product(("non", "un"), sorted(sets.items())):
        matched = [
            (text, match, gold)
            for text, gold in texts
            for match in PREFIXED.finditer(text)
            if match[0].lower().startswith(prefix) and (prefix == "non" or match[1].lower() in known)
        ]
        found = list[tuple[bool, bool]]()
        for (_, match, gold), reading in zip(matched, reader.read([text for text, *_ in matched]), strict=True):
            starts = [start for part in reading.parts if part.excluded for start, _ in part.spans]
            asked = any(re.search(rf"(?<!\w){match[1]}\b", one, re.IGNORECASE) for one in gold)
            found.append((match.start(1) in starts, asked))
            if wrong and found[-1][0] != asked:
                print(f"- {name}: {tagged(reading)}\n  - asks for {'' if asked else 'no '}exclusion of {match[1]}")
        counts = [sum(column) for column in zip(*found, strict=True)] or [0, 0]
        print(f"| {prefix} | {name} | {len(found)} | {counts[0]} | {counts[1]} | {sum(map(all, found))} |")


def excludes(record: Mapping[str, Any]) -> bool:
    """Whether the template of a query of QUEST has an exclusion."""
    return "not" in record["metadata"]["template"].split()


def calibration(found: Mapping[str, Judgements], plot: Path | None) -> None:
    """Prints how often readings of a confidence are right, and draws it."""
    bins = list(zip(EDGES, [*EDGES[1:], 1.01], strict=True))
    print(
        f"\n| right / readings of a confidence | {' | '.join(f'{low:g} to {min(high, 1):g}' for low, high in bins)} |"
    )
    print(f"|---|{'---|' * len(bins)}")
    series: dict[str, tuple[Point, ...]] = {"perfect": tuple(Point(x, x, x, x, 0) for x in (EDGES[1], 1.0))}
    for name, judgements in found.items():
        cells, points = list[str](), list[Point]()
        for low, high in bins:
            inside = [(confidence, right) for confidence, right in judgements if low <= confidence < high]
            cells.append(f"{sum(right for _, right in inside)} / {len(inside)}" if inside else "")
            if len(inside) >= FEWEST:
                x, y = (statistics.mean(column) for column in zip(*inside, strict=True))
                points.append(Point(x, y, *proportion_interval(y, len(inside)), len(inside)))
        series[name] = tuple(points)
        print(f"| {name} | {' | '.join(cells)} |")
    if plot and (drawn := draw_curve(Curve("How often readings are right", "confidence", "right", series))):
        plot.write_bytes(drawn)


def proportion_interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's interval of 95 %."""
    z = 1.96
    centre, half = share + z * z / (2 * count), z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return (centre - half) / (1 + z * z / count), (centre + half) / (1 + z * z / count)


def speed(folder: Path, texts: Sequence[str]) -> None:
    """Prints times and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    reader = ModelReader(folder)
    loading = time.perf_counter() - start
    times = []
    for text in texts * 2:
        start = time.perf_counter()
        reader(text)
        times.append(1000 * (time.perf_counter() - start))
    times = sorted(times[len(texts) :])
    start = time.perf_counter()
    reader.read(texts)
    together = 1000 * (time.perf_counter() - start) / len(texts)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    command = [sys.executable, "-c", "from pyserini_compneg import decompose; decompose('spy films but not comedies')"]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    whole = time.perf_counter() - start
    print(
        f"\n{len(texts)} texts, one after the other on one core: p50 {statistics.median(times):.1f} ms, "
        f"p99 {times[int(0.99 * len(times))]:.1f} ms; together, on all cores, {together:.1f} ms a text. "
        f"Loading {loading:.2f} s, a process that reads one text {whole:.2f} s; {size:.1f} MB of files, "
        f"{before / 1024:.0f} MB of memory."
    )


def rank(reader: ModelReader, folder: Path, wrong: bool) -> None:
    """Prints the measures of a dataset's dev queries: as whole texts, as read, and as marked."""
    dataset = open_dataset(folder)
    qrels = dataset.qrels("dev")
    topics = [topic for topic in dataset.topics("dev") if topic.qid in qrels]
    readings = reader.read([topic.text for topic in topics])
    split = sum(not isinstance(reading.expression, Atom) for reading in readings)
    print(f"\n{dataset.name}, dev: {len(topics)} queries, {split} decomposed")
    if any(topic.group for topic in topics):
        equal = sum(
            operands(reading.expression) == operands(topic.expression)
            for topic, reading in zip(topics, readings, strict=True)
        )
        print(f"\n{equal} readings are equal to the marks")
    index = index_of(dataset, "dev")
    measures = parse_measures(RANKINGS[folder.name])
    print(f"\n| {dataset.name} | {' | '.join(measure.name for measure in measures)} |\n|---|{'---|' * len(measures)}")
    read_as = [replace(t, expression=r.expression, decomposition=r) for t, r in zip(topics, readings, strict=True)]
    rows: list[tuple[str, Sequence[Topic], Operators]] = [
        ("whole text", [replace(topic, expression=Atom(topic.text)) for topic in topics], Operators())
    ]
    if any(topic.group for topic in topics):
        rows.append(("marked", topics, Operators()))
    rows += [(f"`{name}`", read_as, Operators(difference=name)) for name in DIFFERENCES if name != "vanilla"]
    for name, asked, operators in rows:
        with SignedImpactSearcher(index, operators=operators) as searcher:
            values = evaluate(qrels, search(searcher, asked), measures)
        print(f"| {name} | {' | '.join(shown(values, measure, list(qrels)) for measure in measures)} |")
        if wrong and name == "`damped`":
            listed = [t for t in read_as if values[t.qid][measures[0].name] < 0.5]
    if wrong:
        print(*(f"- {topic.qid}: {format_expression(topic.expression)}" for topic in listed), sep="\n")


def shown(values: Run, measure: Measure, qids: Sequence[str]) -> str:
    """A mean with its 95 % interval."""
    low, high = confidence_interval([values[qid][measure.name] for qid in qids if qid in values])
    return f"{mean(values, measure, qids):.3f} [{low:.3f}, {high:.3f}]"


def operands(expression: Expression | None) -> object:
    """The expression with the operands of unions and intersections in a fixed order."""
    match expression:
        case None:
            return None
        case Atom(text):
            return text
        case Difference(left, right):
            return "NOT", operands(left), operands(right)
    kind = "OR" if isinstance(expression, Union) else "AND"
    return kind, *sorted(map(repr, map(operands, expression.operands)))


def wordings(reader: ModelReader, folder: Path, wrong: bool) -> Judgements:
    """Prints how many of QUEST's human wordings are read with an exclusion: of those that have one, and of the others.

    A reading is right here if it has an exclusion or alternatives where the template does.
    """
    records = [record for _, record in iter_jsonl(folder / "wordings.train.jsonl")]
    readings = reader.read([record["query"] for record in records])
    print(
        "\n| QUEST train, wordings | number | an exclusion is read | none is, and it is understood |\n|---|---|---|---|"
    )
    for name, wanted in (("with an exclusion", True), ("without", False)):
        found = [
            (record, reading, isinstance(reading.expression, Difference))
            for record, reading in zip(records, readings, strict=True)
            if excludes(record) == wanted
        ]
        silent = sum(wanted and reading.understood and not seen for _, reading, seen in found)
        print(f"| {name} | {len(found)} | {100 * statistics.mean(seen for *_, seen in found):.1f} % | {silent} |")
        if wrong:
            listed = [(record, reading) for record, reading, seen in found if seen != wanted]
            print(*(f"- {record['query']}\n  - {tagged(reading)}" for record, reading in listed), sep="\n")
    return [
        (
            reading.confidence,
            _operators(reading.expression) == {"or", "not"} & set(record["metadata"]["template"].split()),
        )
        for record, reading in zip(records, readings, strict=True)
    ]


def _operators(expression: Expression) -> set[str]:
    if isinstance(expression, Difference):
        return {"not"} | _operators(expression.left)
    return {"or"} if isinstance(expression, Union) else set()


def stays_whole(reader: ModelReader, data: Path, wrong: bool) -> None:
    """Prints how many texts are decomposed of datasets whose texts exclude and join next to nothing."""
    print("\n| texts | number | decomposed | not understood |\n|---|---|---|---|")
    for name, load in LOADERS.items():
        texts = load(data)
        readings = reader.read(list(texts.values()))
        decomposed = [(key, r) for key, r in zip(texts, readings, strict=True) if not isinstance(r.expression, Atom)]
        print(f"| {name} | {len(texts):,} | {len(decomposed)} | {sum(not r.understood for r in readings)} |")
        if wrong:
            print(*(f"- {name} {key}: {tagged(r)} {r.confidence:.2f}" for key, r in decomposed), sep="\n")


def scifact(data: Path) -> dict[str, str]:
    """The claims."""
    return {record["_id"]: record["text"] for _, record in iter_jsonl(data / "scifact" / "queries.jsonl")}


def pairs(data: Path) -> dict[str, str]:
    """The questions of NevIR-like pairs, by their line."""
    return {str(number): record["query"] for number, record in iter_jsonl(data / "pairs" / "train.jsonl.gz")}


def nevir(data: Path) -> dict[str, str]:
    """The questions of the dev split."""
    records = [record for _, record in iter_jsonl(data / "nevir" / "dev.jsonl")]
    return {f"{record['id']}:{question}": record[question] for record in records for question in ("q1", "q2")}


def cisi(data: Path) -> dict[str, str]:
    """The queries in words."""
    texts = re.split(r"\.I (?=\d+\n)", (data / "cisi" / "CISI.QRY").read_text())[1:]
    numbered = (text.partition("\n")[::2] for text in texts)
    return {number: " ".join(text.split(".W\n")[-1].split()) for number, text in numbered}


LOADERS: dict[str, Callable[[Path], dict[str, str]]] = {
    "scifact": scifact,
    "cisi": cisi,
    "nevir": nevir,
    "pairs": pairs,
}


if __name__ == "__main__":
    sys.exit(main())
