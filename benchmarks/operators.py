"""What do operators and encoders give on every dev set, beside the plain wording and beside no exclusion at all?

    python benchmarks/operators.py --data DATASETS --encoder bm25 FOLDER bm25+FOLDER bm25+mini --output after.json
    python benchmarks/operators.py --data DATASETS --encoder bm25 --baseline wording --before before.json
    python benchmarks/operators.py --data DATASETS --encoder bm25 --sets filmsets --operators hard=NOT!,exclusion:any
    python benchmarks/operators.py --data DATASETS --encoder bm25 FOLDER mini bm25+FOLDER bm25+mini --only-default
    python benchmarks/operators.py --data DATASETS --encoder bm25 bm25+mini --rerank MODEL --sets quest excluir

Systems are compared on the same queries of the folders of DATASETS:

- `wording`: the text of the query as one atom.
- `ignore`: the default operators with the difference `ignore`; `–` where no query of a line excludes anything.
- `default`: the default operators.
- Each `--operators NAME=SETTING:VALUE,...`: the defaults with other settings, such as `pool=intersection:maxpool` or
  `full=difference:disentangled`. The setting `NOT!` puts NOT! in the place of each NOT.

| set | folder | queries | measure |
|---|---|---|---|
| quest | quest-evidence/ | QUEST train queries on evidence passages, with their marks | nDCG@10 by template |
| filmsets | filmsets/ | dev, with their marks | nDCG@10 by template |
| excluir | excluir/ | dev, as the model of the package reads them | Right Rank, R@10 |
| negconstraint | negconstraint/ | dev, as read | nDCG@10 |
| comlq | comlq/ | dev, as read | nDCG@10 by type, of types with a negation, and of 2i, 3i and 2u |

LSNC@k of the ComLQ paper is left out: it counts the first k passages that match what a query excludes, and the
judgements have relevant passages only.

--baseline adds the difference of the default to another system, and --before its difference to the default of an
earlier --output, with 95 % intervals: the paired bootstrap over queries, 2,000 samples, the same in every run. The next
table is the acceptance check. It has the cells where the default is more than 0.005 below `wording` or `ignore`. Good
defaults leave it empty.

--only-default compares encoders: each with the first one, by the default operators alone. It adds scifact (test, train)
and cisi (all), all types of ComLQ, and the domains of QUEST. Its last table has what FilmSets costs; documents/s are of
an index that this call builds. --rerank compares the default operators with a model that ranks their first documents
again. Indexes are kept in indexes/, and are built where they are missing. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeAlias

from dev_sets import as_read, index_of, index_path, label, search
from reporting import TOLERANCE, describe, environment, paired, table

from pyserini_compneg.baselines import Reranked
from pyserini_compneg.baselines.pair_scorers import pair_scorer
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, Operators
from pyserini_compneg.compose.rewrite import differences_as_exclusions
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.expression import Atom, Difference, Expression, Filter, Intersection, Union
from pyserini_compneg.lab.experiments.datasets import Dataset, open_dataset
from pyserini_compneg.reading import ModelReader
from pyserini_compneg.search import Method, SearchSettings, SignedImpactSearcher
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.topics import Topic
from pyserini_compneg.topics.batch import topic_query

NAMES = {
    "_": "A",
    "_ or _": "A OR B",
    "_ or _ or _": "A OR B OR C",
    "_ that are also _": "A AND B",
    "_ that are also both _ and _": "A AND B AND C",
    "_ that are also _ but not _": "A AND B NOT C",
    "_ that are not _": "A NOT B",
}
COMLQ_TYPES = ("2i", "3i", "2u", "2in", "3in", "inp", "pin", "pni")
TIMED = 100

BySystem: TypeAlias = dict[str, dict[str, float]]
Values: TypeAlias = dict[str, dict[str, BySystem]]
"""By line, encoder and system, then by query."""


@dataclass(frozen=True)
class DevSet:
    """Queries of a dataset, in groups that have a line each; read from files when they are first asked for."""

    folder: Path
    split: str = "dev"
    measures: tuple[str, ...] = ("nDCG@10",)
    is_read: bool = False
    types: tuple[str, ...] = ()
    """Of ComLQ, whose groups they are; elsewhere the groups are the templates."""

    has_domains: bool = False

    @cached_property
    def dataset(self) -> Dataset:
        return open_dataset(self.folder)

    @cached_property
    def topics(self) -> dict[str, list[Topic]]:
        """By group, with expressions, or as read."""
        judged = self.dataset.qrels(self.split)
        topics = [topic for topic in self.dataset.topics(self.split) if topic.qid in judged]
        if self.types:
            records = [record for _, record in iter_jsonl(self.folder / f"queries.{self.split}.jsonl")]
            types = {record["_id"]: record["type"] for record in records}
            known = self.types if not self.has_domains else sorted(set(types.values()))
            topics = [replace(topic, group=types[topic.qid]) for topic in topics if types[topic.qid] in known]
        places = {name: place for place, name in enumerate((*NAMES, *self.types))}
        topics.sort(key=lambda topic: (self._domain(topic), places.get(topic.group or "", 99), topic.group or ""))
        groups: dict[str, list[Topic]] = {}
        for topic in as_read(topics, ModelReader()) if self.is_read else topics:
            name = NAMES.get(topic.group or "", topic.group or "")
            groups.setdefault(f"{self._domain(topic)} {name}".strip(), []).append(topic)
        return groups

    def _domain(self, topic: Topic) -> str:
        return topic.metadata.get("domain", "") if self.has_domains else ""

    @cached_property
    def qrels(self) -> Mapping[str, Mapping[str, int]]:
        """The judgements of the topics."""
        qids = {topic.qid for topics in self.topics.values() for topic in topics}
        return {qid: judged for qid, judged in self.dataset.qrels(self.split).items() if qid in qids}


SETS: dict[str, DevSet] = {
    "quest": DevSet(Path("quest-evidence"), "train"),
    "filmsets": DevSet(Path("filmsets")),
    "excluir": DevSet(Path("excluir"), measures=("right_rank", "R@10"), is_read=True),
    "negconstraint": DevSet(Path("negconstraint"), is_read=True),
    "comlq": DevSet(Path("comlq"), is_read=True, types=COMLQ_TYPES),
}
MORE_SETS = {
    "scifact test": DevSet(Path("scifact"), "test"),
    "scifact train": DevSet(Path("scifact"), "train"),
    "cisi": DevSet(Path("cisi"), "all"),
}
"""Queries without operators, for encoders."""


@dataclass(frozen=True, slots=True)
class System:
    """What to search for, and by which operators."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_hard: bool = False
    method: Method | None = None

    def operators(self) -> Operators:
        """The defaults, with the settings."""
        return replace(DEFAULT_OPERATORS, **self.settings)

    def topic(self, topic: Topic) -> Topic:
        """The topic as this system searches for it."""
        if self.name == "wording":
            return replace(topic, expression=Atom(topic.text), decomposition=None)
        if self.is_hard and topic.expression:
            return replace(topic, expression=differences_as_exclusions(topic.expression), decomposition=None)
        return topic


SYSTEMS = (System("wording"), System("ignore", {"difference": "ignore"}), System("default"))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _arguments(argv)
    systems = (System("default"),) if args.only_default or args.rerank else (*SYSTEMS, *args.operators)
    if args.rerank:
        systems += (System("reranked", method=Reranked(pair_scorer(args.rerank))),)
    before = json.loads(args.before.read_text(encoding="utf-8"))["values"] if args.before else None
    values: Values = {}
    costs = []
    for name in args.sets:
        known = SETS.get(name) or MORE_SETS[name]
        dev_set = replace(known, folder=args.data / known.folder, has_domains=args.only_default)
        for encoder in args.encoder:
            start, is_new = time.perf_counter(), not index_path(dev_set.dataset, encoder).exists()
            index = index_of(dev_set.dataset, dev_set.split, encoder, store_raw=bool(args.rerank))
            seconds = time.perf_counter() - start if is_new else float("nan")
            with SignedImpactSearcher(index, encoder=encoder) as searcher:
                for line, by_system in _evaluated(name, dev_set, searcher, systems):
                    values.setdefault(line, {})[label(encoder)] = by_system
                if args.only_default and name == "filmsets":
                    size = sum(file.stat().st_size for file in index.iterdir()) / searcher.num_docs
                    topics = [topic for group in dev_set.topics.values() for topic in group]
                    costs.append((searcher.num_docs / seconds, size, _milliseconds(searcher, topics)))
    about = environment()
    if args.output:
        with atomic_writer(args.output) as handle:
            handle.write(json.dumps({"environment": about, "values": values}) + "\n")
    if args.rerank:
        print(f"default → reranked by {args.rerank}\n\n{_reranked(values)}\n\n{describe(about)}")
        return
    if args.only_default:
        print(f"{_compared(values)}\n\n{_losses(values)}\n\n{_costs(args.encoder, costs)}\n\n{describe(about)}")
        return
    print(f"{' / '.join(system.name for system in systems)}\n\n{_means(values, [system.name for system in systems])}")
    if args.baseline:
        print(f"\ndefault − {args.baseline}\n\n{_differences(values, args.baseline)}")
    if before is not None:
        print(f"\nbefore → now\n\n{_changes(before, values)}")
    print(f"\n{_losses(values)}\n\n{describe(about)}")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATASETS")
    parser.add_argument("--encoder", nargs="+", required=True, metavar="NAME")
    parser.add_argument("--sets", nargs="+", choices=[*SETS, *MORE_SETS], metavar="SET")
    parser.add_argument("--only-default", action="store_true", help="compare encoders, by the default operators")
    parser.add_argument("--operators", nargs="+", type=_system, default=[], metavar="NAME=SETTING:VALUE,...")
    parser.add_argument("--rerank", metavar="MODEL")
    parser.add_argument("--baseline", metavar="SYSTEM", help="wording, ignore, or a NAME of --operators")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="keeps the values of each query")
    parser.add_argument("--before", type=Path, metavar="FILE.json", help="an earlier --output to compare with")
    args = parser.parse_args(argv)
    args.sets = args.sets or [*SETS, *(MORE_SETS if args.only_default else ())]
    names = [system.name for system in (*SYSTEMS, *args.operators)]
    if args.baseline not in (None, *names):
        parser.error(f"--baseline must be one of {', '.join(names)}, got {args.baseline!r}")
    if len(set(names)) < len(names):
        parser.error(f"--operators needs distinct names, other than {', '.join(system.name for system in SYSTEMS)}")
    return args


def _system(text: str) -> System:
    """A system as ``--operators`` names it.

    >>> _system("hard=NOT!,exclusion:0.4")
    System(name='hard', settings={'exclusion': 0.4}, is_hard=True)
    """
    name, _, chosen = text.partition("=")
    parts = [part for part in chosen.split(",") if part]
    pairs = [part.partition(":")[::2] for part in parts if part != "NOT!"]
    if not name or not parts:
        raise argparse.ArgumentTypeError(f"expected NAME=SETTING:VALUE,..., got {text!r}")
    try:
        system = System(name, {setting: _value(value) for setting, value in pairs}, is_hard="NOT!" in parts)
        system.operators()
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    return system


def _value(text: str) -> str | float:
    """A number if it is one, so that ``cpt_terms`` is whole."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _evaluated(
    name: str, dev_set: DevSet, searcher: SignedImpactSearcher, systems: Sequence[System]
) -> Iterator[tuple[str, BySystem]]:
    """The values by system and query, for each line: the set, its measure where there are several, and the group."""
    measures = parse_measures(dev_set.measures)
    every = [topic for topics in dev_set.topics.values() for topic in topics]
    found = {}
    k = None if dev_set.has_domains else searcher.num_docs if "right_rank" in dev_set.measures else 10
    for system in systems:
        searcher.settings = SearchSettings(system.operators())
        run = search(searcher, [system.topic(topic) for topic in every], k, system.method)
        found[system.name] = evaluate(dev_set.qrels, run, measures)
    for measure in measures:
        for group, topics in dev_set.topics.items():
            line = " ".join(filter(None, (name, measure.name if len(measures) > 1 else "", group)))
            has_exclusion = any(_excludes(topic.expression) for topic in topics)
            yield (
                line,
                {
                    system.name: {topic.qid: found[system.name][topic.qid][measure.name] for topic in topics}
                    for system in systems
                    if has_exclusion or system.name != "ignore"
                },
            )


def _milliseconds(searcher: SignedImpactSearcher, topics: Sequence[Topic]) -> float:
    """The median time of a query, of those that are spread over the topics; each is searched twice."""
    times = []
    for topic in topics[:: max(1, len(topics) // TIMED)]:
        for _ in range(2):
            start = time.perf_counter()
            searcher.search(topic_query(topic), 1000)
            last = time.perf_counter() - start
        times.append(1000 * last)
    return median(times)


def _excludes(expression: Expression | Filter | None) -> bool:
    if isinstance(expression, (Union, Intersection)):
        return any(map(_excludes, expression.operands))
    return isinstance(expression, Difference)


def _means(values: Values, systems: Sequence[str]) -> str:
    return _table(values, lambda _, by_system: " / ".join(_mean(by_system.get(system)) for system in systems))


def _mean(by_query: Mapping[str, float] | None) -> str:
    return f"{fmean(by_query.values()):.3f}".removeprefix("0") if by_query else "–"


def _differences(values: Values, baseline: str) -> str:
    return _table(
        values,
        lambda _, by_system: paired(by_system["default"], by_system[baseline]) if baseline in by_system else "–",
    )


def _changes(before: Values, values: Values) -> str:
    """The default before and now; the queries are those that both have."""

    def cell(place: tuple[str, str], by_system: BySystem) -> str:
        line, encoder = place
        then = before.get(line, {}).get(encoder, {}).get("default")
        if not then:
            return "–"
        now = {qid: value for qid, value in by_system["default"].items() if qid in then}
        then = {qid: then[qid] for qid in now}
        return f"{_mean(then)} → {_mean(now)}, {paired(now, then)}"

    return _table(values, cell)


def _reranked(values: Values) -> str:
    def cell(_: tuple[str, str], by_system: BySystem) -> str:
        then, now = by_system["default"], by_system["reranked"]
        return f"{_mean(then)} → {_mean(now)}, {paired(now, then)}"

    return _table(values, cell)


def _compared(values: Values) -> str:
    """The means of encoders, with their differences to the first one."""
    first = next(iter(next(iter(values.values()))))

    def cell(place: tuple[str, str], by_system: BySystem) -> str:
        line, encoder = place
        base = values[line][first]["default"]
        return _mean(by_system["default"]) + (f" {paired(by_system['default'], base)}" if encoder != first else "")

    return _table(values, cell)


def _losses(values: Values) -> str:
    """The cells that are below what they must not be below, by more than the tolerance.

    The default is compared with the wording and with no exclusion or, where only it was run, with the first encoder.
    """
    rows = []
    for line, by_encoder in values.items():
        first, *_ = by_encoder
        for encoder, by_system in by_encoder.items():
            others = {other: by_system[other] for other in ("wording", "ignore") if other in by_system}
            if len(by_system) == 1 and encoder != first:
                others = {first: by_encoder[first]["default"]}
            now = by_system["default"]
            rows += [
                [line, encoder, other, _mean(then), _mean(now), paired(now, then)]
                for other, then in others.items()
                if fmean(now.values()) < fmean(then.values()) - TOLERANCE
            ]
    heading = f"Cells where the default is more than {TOLERANCE} below another: {len(rows)}"
    headers = ["queries", "vectors", "below", "that", "default", "difference"]
    return f"{heading}\n\n{table(headers, rows)}" if rows else heading


def _costs(encoders: Sequence[str], costs: Sequence[tuple[float, float, float]]) -> str:
    """What FilmSets costs with each encoder; nothing if it was not among the sets."""
    rows = [
        [f"`{label(encoder)}`", f"{rate:,.0f}", f"{size:,.0f}", f"{ms:.1f}", f"{ms / costs[0][2]:.2f}"]
        for encoder, (rate, size, ms) in zip(encoders, costs, strict=False)
    ]
    headers = ["FilmSets", "documents/s", "bytes a document", "ms a query", f"of {label(encoders[0])}'s"]
    return table(headers, rows) if rows else ""


def _table(values: Values, cell: Callable[[tuple[str, str], BySystem], str]) -> str:
    """A row for each line and a column for each encoder; ``cell`` takes line and encoder, and values by system."""
    encoders = list(next(iter(values.values())))
    rows = [
        [line, str(len(by_encoder[encoders[0]]["default"])), *(cell((line, e), by_encoder[e]) for e in encoders)]
        for line, by_encoder in values.items()
    ]
    return table(["queries", "n", *(f"`{encoder}`" for encoder in encoders)], rows)


if __name__ == "__main__":
    sys.exit(main())
