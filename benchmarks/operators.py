"""What do the default operators give on every dev set, beside the plain wording and beside no exclusion at all?

    python benchmarks/operators.py --data DATASETS --encoder bm25 FOLDER bm25+FOLDER bm25+mini --output after.json
    python benchmarks/operators.py --data DATASETS --encoder bm25 --baseline wording --before before.json
    python benchmarks/operators.py --data DATASETS --encoder bm25 --sets filmsets --operators hard=NOT!,exclusion:any

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
earlier --output, with 95 % intervals: the paired bootstrap over queries, 2,000 samples, the same in every run. The last
table is the acceptance check. It has the cells where the default is more than 0.005 below `wording` or `ignore`. Good
defaults leave it empty. Indexes are those of `encoders.py`, and are built where they are missing. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from encoders import NAMES, label
from reading import search
from reporting import INDEXES, TOLERANCE, describe, environment, paired, table

from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, Operators
from pyserini_compneg.compose.rewrite import hardened
from pyserini_compneg.eval.measures import evaluate, parse_measures
from pyserini_compneg.expression import Atom, Difference, Expression, Filter, Intersection, Union
from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.datasets.dataset import require_file
from pyserini_compneg.reading import ModelReader
from pyserini_compneg.search import SearchSettings, SignedImpactSearcher
from pyserini_compneg.support.files import iter_jsonl, slug
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.topics.topics import Topic

COMLQ_TYPES = ("2i", "3i", "2u", "2in", "3in", "inp", "pin", "pni")

Values: TypeAlias = dict[str, dict[str, dict[str, dict[str, float]]]]
"""By line, encoder and system, then by query."""


@dataclass(frozen=True)
class DevSet:
    """Queries of a dataset, in groups that have a line each; read from files when they are first asked for."""

    folder: Path
    split: str = "dev"
    measures: tuple[str, ...] = ("nDCG@10",)
    is_read: bool = False
    groups: tuple[str, ...] = ()
    """The types of ComLQ; elsewhere the groups are the templates."""

    @cached_property
    def topics(self) -> dict[str, list[Topic]]:
        """By group, with expressions, or as read."""
        topics = open_dataset(self.folder).topics(self.split)
        if self.groups:
            records = iter_jsonl(require_file(self.folder, f"queries.{self.split}.jsonl", "beir"))
            types = {record["_id"]: record["type"] for _, record in records}
            topics = [replace(topic, group=types[topic.qid]) for topic in topics if types[topic.qid] in self.groups]
        if self.is_read:
            readings = ModelReader().read([topic.text for topic in topics])
            pairs = zip(topics, readings, strict=True)
            topics = [replace(topic, expression=reading.expression, decomposition=reading) for topic, reading in pairs]
        names = self.groups or tuple(NAMES) if any(topic.group for topic in topics) else (None,)
        return {NAMES.get(name or "", name or "all"): [t for t in topics if t.group == name] for name in names}

    @cached_property
    def qrels(self) -> Mapping[str, Mapping[str, int]]:
        """The judgements of the topics."""
        qids = {topic.qid for topics in self.topics.values() for topic in topics}
        return {qid: judged for qid, judged in open_dataset(self.folder).qrels(self.split).items() if qid in qids}


SETS: dict[str, DevSet] = {
    "quest": DevSet(Path("quest-evidence"), "train"),
    "filmsets": DevSet(Path("filmsets")),
    "excluir": DevSet(Path("excluir"), measures=("right_rank", "R@10"), is_read=True),
    "negconstraint": DevSet(Path("negconstraint"), is_read=True),
    "comlq": DevSet(Path("comlq"), is_read=True, groups=COMLQ_TYPES),
}


@dataclass(frozen=True, slots=True)
class System:
    """What to search for, and by which operators."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_hard: bool = False

    def operators(self) -> Operators:
        """The defaults, with the settings."""
        return replace(DEFAULT_OPERATORS, **self.settings)

    def topic(self, topic: Topic) -> Topic:
        """The topic as this system searches for it."""
        if self.name == "wording":
            return replace(topic, expression=Atom(topic.text), decomposition=None)
        if self.is_hard and topic.expression:
            return replace(topic, expression=hardened(topic.expression), decomposition=None)
        return topic


SYSTEMS = (System("wording"), System("ignore", {"difference": "ignore"}), System("default"))


def main() -> int:
    """Prints the tables."""
    args = _arguments()
    systems = (*SYSTEMS, *args.operators)
    before = json.loads(args.before.read_text(encoding="utf-8"))["values"] if args.before else None
    values: Values = {}
    for name in args.sets:
        dev_set = replace(SETS[name], folder=args.data / SETS[name].folder)
        for encoder in args.encoder:
            for line, by_system in _evaluated(name, dev_set, encoder, systems):
                values.setdefault(line, {})[label(encoder)] = by_system
    about = environment()
    if args.output:
        with atomic_writer(args.output) as handle:
            handle.write(json.dumps({"environment": about, "values": values}) + "\n")
    print(f"{' / '.join(system.name for system in systems)}\n\n{_means(values, [system.name for system in systems])}")
    if args.baseline:
        print(f"\ndefault − {args.baseline}\n\n{_differences(values, args.baseline)}")
    if before is not None:
        print(f"\nbefore → now\n\n{_changes(before, values)}")
    print(f"\n{_losses(values)}\n\n{describe(about)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATASETS")
    parser.add_argument("--encoder", nargs="+", required=True, metavar="NAME")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--operators", nargs="+", type=_system, default=[], metavar="NAME=SETTING:VALUE,...")
    parser.add_argument("--baseline", metavar="SYSTEM", help="wording, ignore, or a NAME of --operators")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="keeps the values of each query")
    parser.add_argument("--before", type=Path, metavar="FILE.json", help="an earlier --output to compare with")
    args = parser.parse_args()
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
    name: str, dev_set: DevSet, encoder: str, systems: Sequence[System]
) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """The values by system and query, for each line: the set, its measure where there are several, and the group."""
    dataset = open_dataset(dev_set.folder)
    index = INDEXES / f"{dataset.name}-{slug(label(encoder))}"
    if not index.exists():
        assert dataset.collection  # these kinds of datasets have a collection
        build_index(dataset.collection, index, encoder=encoder)
    measures = parse_measures(dev_set.measures)
    every = [topic for topics in dev_set.topics.values() for topic in topics]
    found = {}
    with SignedImpactSearcher(index, encoder=encoder) as searcher:
        k = searcher.num_docs if "right_rank" in dev_set.measures else 10
        for system in systems:
            searcher.settings = SearchSettings(system.operators())
            run = search(searcher, [system.topic(topic) for topic in every], k)
            found[system.name] = evaluate(dev_set.qrels, run, measures)
    for measure in measures:
        for group, topics in dev_set.topics.items():
            shown = [name, *([measure.name] if len(measures) > 1 else []), *([group] if group != "all" else [])]
            has_exclusion = any(_excludes(topic.expression) for topic in topics)
            yield (
                " ".join(shown),
                {
                    system.name: {topic.qid: found[system.name][topic.qid][measure.name] for topic in topics}
                    for system in systems
                    if has_exclusion or system.name != "ignore"
                },
            )


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

    def cell(place: tuple[str, str], by_system: dict[str, dict[str, float]]) -> str:
        line, encoder = place
        then = before.get(line, {}).get(encoder, {}).get("default")
        if not then:
            return "–"
        now = {qid: value for qid, value in by_system["default"].items() if qid in then}
        then = {qid: then[qid] for qid in now}
        return f"{_mean(then)} → {_mean(now)}, {paired(now, then)}"

    return _table(values, cell)


def _losses(values: Values) -> str:
    """The cells where the default is below the wording, or below no exclusion, by more than the tolerance."""
    rows = []
    for line, by_encoder in values.items():
        for encoder, by_system in by_encoder.items():
            for other in ("wording", "ignore"):
                if other in by_system:
                    now, then = by_system["default"], by_system[other]
                    if fmean(now.values()) < fmean(then.values()) - TOLERANCE:
                        rows.append([line, encoder, other, _mean(then), _mean(now), paired(now, then)])
    if not rows:
        return f"The default is nowhere more than {TOLERANCE} below `wording` or `ignore`."
    heading = f"Cells where the default is more than {TOLERANCE} below `wording` or `ignore`: {len(rows)}"
    return f"{heading}\n\n{table(['queries', 'vectors', 'below', 'that', 'default', 'difference'], rows)}"


def _table(values: Values, cell: Callable[[tuple[str, str], dict[str, dict[str, float]]], str]) -> str:
    """A row for each line and a column for each encoder; ``cell`` takes line and encoder, and values by system."""
    encoders = list(next(iter(values.values())))
    rows = [
        [line, str(len(by_encoder[encoders[0]]["default"])), *(cell((line, e), by_encoder[e]) for e in encoders)]
        for line, by_encoder in values.items()
    ]
    return table(["queries", "n", *(f"`{encoder}`" for encoder in encoders)], rows)


if __name__ == "__main__":
    sys.exit(main())
