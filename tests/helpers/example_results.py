"""Results as an experiment leaves them: FilmSets dev through the operators, with values of queries drawn by a seed."""

import random

from pyserini_compneg.eval.significance import compare, confidence_interval
from pyserini_compneg.reproduce.results import Cell, Curve, Example, Point, Results, Row, Section

MEASURES = ("nDCG@10", "R@100")

_FORMULAS = {
    "vanilla": "f(A ⋆ B)",
    "score-fusion": "s(d, A) − s(d, B)",
    "disentangled": "A − B*",
    "subtraction": "A − B",
    "NRF": "A − λB",
    "orthogonal": "A − π_B A",
    "ignore": "A",
    "addition": "A + B",
    "maxpool": "MaxPool(A, B)",
    "dismax": "max(s(d, A), s(d, B))",
    "CPT": "A ⊗ B",
    "CPT + maxpool": "A ⊗ B + MaxPool(A, B)",
}
# Our means of the two measures (README) and the paper's (Table 1); None where there is none.
_SECTIONS = {
    "Set difference": {
        "vanilla": (0.354, 0.512, 0.132, 0.307),
        "score-fusion": (None, None, 0.228, 0.332),
        "subtraction": (0.545, 0.540, 0.120, 0.190),
        "ignore": (0.491, 0.533, 0.233, 0.390),
        "orthogonal": (0.491, 0.533, 0.235, 0.379),
        "NRF": (0.521, 0.536, 0.256, 0.379),
        "disentangled": (0.546, 0.539, 0.258, 0.398),
    },
    "Union": {
        "vanilla": (0.735, 0.658, 0.243, 0.383),
        "score-fusion": (None, None, 0.204, 0.335),
        "addition": (0.735, 0.658, 0.237, 0.386),
        "maxpool": (0.734, 0.658, 0.254, 0.387),
        "dismax": (0.755, 0.660, None, None),
    },
    "Intersection": {
        "vanilla": (0.319, 0.456, 0.063, 0.209),
        "score-fusion": (None, None, 0.070, 0.111),
        "addition": (0.351, 0.489, 0.068, 0.222),
        "maxpool": (0.359, 0.503, 0.069, 0.238),
        "CPT": (0.368, 0.491, 0.080, 0.268),
        "CPT + maxpool": (0.374, 0.534, None, None),
    },
}
_NOTES = {
    "CPT + maxpool": "Not in the paper; the share of max-pool was chosen on this split.",
    "dismax": "Not in the paper: the better score of the alternatives, for each document.",
}


def example_results(queries=100, **changes):
    """Results of three sections, a curve and two examples; ``changes`` replace fields."""
    generator = random.Random(20240521)
    fields = {
        "protocol": "table1",
        "title": "Zero-shot operators on set-compositional queries",
        "about": (
            "Table 1 of Krasakis, Yates and Kanoulas: each kind of query through every operator that can answer it. "
            "Here with BM25 impacts instead of SPLADE, and on another dataset."
        ),
        "dataset": {
            "name": "FilmSets",
            "kind": "filmsets",
            "split": "dev",
            "provenance": "built from prust/wikipedia-movie-data (MIT; text from Wikipedia, CC BY-SA)",
            "documents": 33_825,
            "queries": 3 * queries,
        },
        "settings": {
            "encoder": "bm25",
            "index": "indexes/filmsets",
            "depth": 1000,
            "pair terms": 5,
            "λ of NRF": 0.25,
            "pyserini_compneg": "0.1.0",
            "Pyserini": "1.6.0",
            "Lucene": "9.9.1",
        },
        "command": "python -m pyserini_compneg.reproduce table1 --dataset filmsets --encoder bm25 --report out/",
        "measures": MEASURES,
        "is_papers": False,
        "papers_dataset": "QUEST",
        "sections": tuple(_section(title, rows, queries, generator) for title, rows in _SECTIONS.items()),
        "curves": (_curve(generator),),
        "examples": _EXAMPLES,
        "seconds": 754.2,
        "runs_made": 3,
    }
    return Results(**fields | changes)


def _section(title, rows, queries, generator):
    qids = [f"{title[0]}{number}" for number in range(1, queries + 1)]
    own = {name: means[:2] for name, means in rows.items() if means[0] is not None}
    abilities = [generator.gauss(0, 0.25) for _ in qids]
    per_query = {
        name: {
            qid: {
                measure: min(1.0, max(0.0, base + ability + generator.choice((0, 1, 1)) * generator.gauss(gain, 0.18)))
                for measure, base, gain in zip(MEASURES, rows["vanilla"], _gains(means, rows), strict=False)
            }
            for qid, ability in zip(qids, abilities, strict=True)
        }
        for name, means in own.items()
    }
    made = tuple(_row(title, name, means, per_query) for name, means in rows.items())
    return Section(title, queries, made, "vanilla", per_query, f"qrels/{_slug(title)}.txt")


def _gains(means, rows):
    """What a method adds on average to a query that it changes at all: two of three."""
    return [1.5 * (mean - base) for mean, base in zip(means, rows["vanilla"], strict=False)]


def _row(title, name, means, per_query):
    cells = {}
    for place, measure in enumerate(MEASURES):
        published = means[2 + place]
        if name not in per_query:
            cells[measure] = Cell(published=published)
            continue
        values = {row: [value[measure] for value in found.values()] for row, found in per_query.items()}
        tested = len(values[name]) > 1
        better = (
            tuple(one.other for one in compare(values, False) if one.run == name and one.is_better) if tested else ()
        )
        interval = confidence_interval(values[name]) if tested else None
        cells[measure] = Cell(sum(values[name]) / len(values[name]), interval, better, published)
    run = f"runs/{_slug(title)}/{_slug(name)}.txt" if name in per_query else None
    return Row(name, _FORMULAS[name], cells, run, _NOTES.get(name, ""))


def _slug(text):
    return text.lower().replace(" + ", "-").replace(" ", "-")


def _curve(generator):
    ends = {"vanilla": (0.52, 0.12), "ignore": (0.55, 0.33), "NRF": (0.56, 0.36), "disentangled": (0.57, 0.47)}
    series = {}
    for name, (first, last) in ends.items():
        points = []
        for place in range(6):
            x, y = 0.12 + 0.15 * place, first + (last - first) * place / 5 + generator.gauss(0, 0.015)
            points.append(Point(x, y, y - 0.05 - 0.008 * place, y + 0.05 + 0.008 * place, 38 - 6 * place))
        series[name] = tuple(points)
    title = "Negation at growing interference"
    return Curve(title, "similarity of what is asked and what is negated", "nDCG@10", series)


_EXAMPLES = (
    Example(
        section="Set difference",
        method="disentangled",
        baseline="vanilla",
        qid="S17",
        text="1940s war films that are not spy films",
        expression="1940s war films \\ spy films",
        measure="nDCG@10",
        value=0.786,
        baseline_value=0.131,
        positive=(("war", 312.0), ("1940", 271.0), ("1940s", 254.0), ("film", 41.0)),
        negative=(("spy", -388.0), ("espionage", -117.0)),
        gained=("Five Graves to Cairo (1943)", "They Were Expendable (1945)", "Sahara (1943)"),
        lost=(),
    ),
    Example(
        section="Set difference",
        method="disentangled",
        baseline="vanilla",
        qid="S63",
        text="silent films that are not silent comedies",
        expression="silent films \\ silent comedies",
        measure="nDCG@10",
        value=0.214,
        baseline_value=0.469,
        positive=(("silent", 288.0), ("film", 41.0)),
        negative=(("comedi", -240.0),),
        lost=("The Wind (1928)",),
    ),
    Example(
        section="Intersection",
        method="CPT + maxpool",
        baseline="vanilla",
        qid="I4",
        text="documentary films about education that are also documentary films about intellectual disability",
        expression="documentary films about education ∩ documentary films about intellectual disability",
        measure="nDCG@10",
        value=0.613,
        baseline_value=0.0,
        positive=(("education∩intellectual", 1.57), ("documentary∩intellectual", 1.49), ("documentary", 1.04)),
        negative=(),
        gained=("Best Boy (1979)",),
    ),
)
