"""Documents and updates of them by chance, and all that an index tells, to compare it with a new one."""

from impact_indexes import pairs
from json_lines import write_jsonl

from pyserini_compneg.compose import Linear, Max, Product
from pyserini_compneg.expression import Filter
from pyserini_compneg.index import build_index, build_sharded_index

TERMS = [f"t{i}" for i in range(12)]
NODES = [
    *(
        Linear({term: 3.0, other: -1.0, third: 2.0})
        for term, other, third in zip(TERMS, TERMS[3:], TERMS[5:], strict=False)
    ),
    Linear({"t0": 1.0}),
    Product(({"t1": 1.0, "t2": 2.0}, {"t3": 1.0})),
    Max((Linear({"t4": 2.0}), Linear({"t5": 1.0, "t6": -3.0}))),
    Linear({"t1∩t2": 2.0, "¬t3": 1.0, "t4": 1.0}),
]
FILTERS = [
    Filter({"year": ("1990..1994",)}),
    Filter({"genre": ("spy", "war")}),
    Filter({"id": ("d0001", "d0007", "none")}),
]


def draw_vector(random, signed):
    """A vector of few different weights, so that scores tie; sometimes an empty one."""
    signs = [1, 1, -1] if signed else [1]
    return {
        term: random.choice([1, 2, 7]) * random.choice(signs) for term in random.sample(TERMS, random.randint(0, 5))
    }


def draw_document(random, docid, signed, passages=0):
    fields = {"year": random.randint(1988, 1999), "genre": random.choice(["spy", "war", "love"])}
    vectors = [draw_vector(random, signed) for _ in range(random.randint(1, passages or 1))]
    found = {"vectors": vectors} if passages else {"vector": vectors[0]}
    text = f"text {random.random()}" + " more" * (len(vectors) - 1)  # passages of two words, of which one is shared
    return {"id": docid, **found, "contents": text, **fields}


def best(reader, hits):
    """The rankings of all trees."""
    return [pairs(ranking) for ranking in reader.search(NODES, hits)]


def told(reader, hits=10_000, filters=FILTERS):
    """All that an index tells."""
    docids = [f"d{i:04}" for i in range(0, 3000, 97)]
    nodes = NODES[:5]
    facets = {"genre": 2} if filters is FILTERS else {}
    return [
        *(best(reader, many) for many in (1, 2, hits)),
        *(pairs(r) for one in filters for r in reader.search(NODES, hits, filters=[one] * len(NODES))),
        [getattr(ranking, "passages", None) for ranking in reader.search(nodes, hits)],
        [reader.matches(nodes, [one] * len(nodes), facets) for one in (None, *filters)],
        [list(reader.filtered(one)[:3]) for one in filters],
        reader.score(nodes, [docids] * len(nodes)),
        [reader.explain(nodes[0], docid) for docid in docids],
        reader.document_frequencies([*TERMS, "t1∩t2", "¬t3"]),
        reader.field_document_count,
        reader.document_count,
        [reader.has(docid) for docid in docids],
    ]


def build(folder, documents, shards, options):
    """A new index of documents."""
    collection = write_jsonl(folder.with_suffix(".jsonl"), *documents)
    fields = {"filter_fields": ["year", "genre"], "store_raw": True, **options}
    if shards:
        build_sharded_index(collection, folder, shards, "m", **fields)
    else:
        build_index(collection, folder, "m", **fields)


def draw_update(random, there, most, *kind):
    """Documents to give and ids to delete, and what the update counts; changes ``there``."""
    before = dict(there)
    deleted = random.sample(sorted(there), random.randint(0, min(most, len(there) // 3)))
    missing = [f"none{i}" for i in range(random.randint(0, 2))]
    old = random.sample(sorted(there.keys() - set(deleted)), random.randint(0, min(most, len(there) // 3)))
    same = [docid for docid in old if random.random() < 0.4]
    new = [f"d{random.randrange(10_000):04}" for _ in range(random.randint(1, most))]
    new = [docid for docid in dict.fromkeys(new) if docid not in before]
    given = {docid: before[docid] if docid in same else draw_document(random, docid, *kind) for docid in [*old, *new]}
    there |= given
    for docid in deleted:
        del there[docid]
    counts = (len(new), len(old) - len(same), len(same), len(deleted), len(missing))
    return list(given.values()), [*deleted, *missing], counts
