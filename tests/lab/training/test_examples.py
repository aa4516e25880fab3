import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.config import SourceConfig
from pyserini_compneg.lab.training.examples import (
    TrainingExample,
    bm25_negatives,
    compositional_negatives,
    documents_of_atoms,
    read_examples,
)
from pyserini_compneg.support.errors import CompNegError, InputError

BIRDS, PETS = [f"b{i}" for i in range(4)], ["b0", "b1", "p0"]


def query(qid, marked, docs):
    return {"qid": qid, "query": "said otherwise", "original_query": marked, "docs": docs}


QUERIES = [
    query("birds", "<mark>birds</mark>", BIRDS),
    query("pets", "<mark>pets</mark>", PETS),
    query("both", "<mark>birds</mark> that are also <mark>pets</mark>", ["b0", "b1"]),
    query("wild", "<mark>birds</mark> that are not <mark>pets</mark>", ["b2", "b3"]),
    query("any", "<mark>birds</mark> or <mark>pets</mark>", [*BIRDS, "p0"]),
    query("fish", "<mark>pets</mark> that are not <mark>fish</mark>", PETS),
]


@pytest.fixture
def films(tmp_path):
    documents = [{"docid": docid, "text": f"text of {docid}"} for docid in [*BIRDS, "p0"]]
    write_jsonl(tmp_path / "films" / "documents.jsonl", *documents)
    write_jsonl(tmp_path / "films" / "train.jsonl", *QUERIES)
    return tmp_path / "films"


def examples_of(path, split="train", seed=0, **settings):
    return read_examples(SourceConfig(dataset=str(path), split=split, **settings), seed)


def fault_of(path, split="train", **settings):
    return refusal(examples_of, path, split, **settings, error=CompNegError).removeprefix(str(path))


def test_queries_are_the_words_of_the_templates_and_their_positives_are_drawn(films):
    examples = examples_of(films, positives=2, seed=3)
    assert [one.query for one in examples[:6:2]] == ["birds", "pets", "birds that are also pets"]
    assert len(examples) == 12
    assert {one.positive for one in examples[:2]} < {f"text of {docid}" for docid in BIRDS}
    assert examples == examples_of(films, positives=2, seed=3)
    assert examples != examples_of(films, positives=2, seed=4)


def test_compositional_negatives_belong_to_an_atom_but_not_to_the_query(films):
    dataset = open_dataset(films)
    relevant = {qid: list(judged) for qid, judged in dataset.qrels("train").items()}
    assert compositional_negatives(dataset.topics("train"), relevant) == {
        "birds": [],
        "pets": [],
        "both": ["b2", "b3", "p0"],
        "wild": ["b0", "b1", "p0"],
        "any": [],
        "fish": [],
    }
    examples = examples_of(films, negatives="compositional", positives=1)
    assert [len(one.negatives) for one in examples] == [0, 0, 1, 1, 0, 0]


def test_documents_of_atoms_are_those_of_queries_whose_documents_all_have_them(films):
    """Those of A AND B and of A NOT B are of A, those of A OR B may not be."""
    dataset = open_dataset(films)
    relevant = {qid: list(docids) for qid, docids in dataset.qrels("train").items()}

    def negatives(*qids):
        return compositional_negatives([one for one in dataset.topics("train") if one.qid in qids], relevant)

    assert negatives("both", "wild") == {"both": ["b2", "b3"], "wild": ["b0", "b1"]}
    assert negatives("both", "any") == {"both": [], "any": []}


def test_documents_of_atoms_may_be_given_by_a_file(films, tmp_path):
    file = write_jsonl(tmp_path / "atoms.jsonl", {"atom": "pets", "docs": ["b0"]}, {"atom": "none", "docs": []})
    dataset = open_dataset(films)
    topics = dataset.topics("train")
    relevant = {qid: list(docids) for qid, docids in dataset.qrels("train").items()}
    alone = [topic for topic in topics if topic.qid in ("wild", "fish")]
    assert compositional_negatives(alone, relevant) == {"wild": PETS, "fish": []}
    known = documents_of_atoms(write_jsonl(tmp_path / "more.jsonl", {"atom": "fish", "docs": ["b3"]}))
    assert compositional_negatives(alone, relevant, known) == {"wild": PETS, "fish": ["b3"]}
    assert examples_of(films, negatives="compositional", atoms=str(file))
    where = f"{tmp_path / 'bad.jsonl'}: "
    for atom, docids, said in (
        ("pest", ["b0"], "no atom here is in a query of train; give atoms as the queries have them"),
        ("pets", ["b0", "nobody"], f"document 'nobody' is not in {films}; correct or delete it"),
    ):
        bad = write_jsonl(tmp_path / "bad.jsonl", {"atom": atom, "docs": docids})
        assert refusal(examples_of, films, negatives="compositional", atoms=str(bad), error=InputError) == where + said
    for line, said in (
        ({"docs": []}, "`atom` must be a text that is not blank, got None"),
        ({"atom": "a", "docs": "d"}, "`docs` must be a list of document ids, got 'd'"),
    ):
        bad = write_jsonl(tmp_path / "bad.jsonl", line)
        assert refusal(documents_of_atoms, bad, error=InputError) == f"{bad}:1: {said}"


@pytest.mark.slow
def test_bm25_negatives_are_of_the_ranks_from_50_to_100_and_not_relevant(tmp_path):
    """Shorter documents with the word rank higher."""
    texts = [{"docid": f"d{i:03}", "text": "spy" + " film" * i} for i in range(1, 121)]
    write_jsonl(tmp_path / "documents.jsonl", *texts)
    write_jsonl(tmp_path / "train.jsonl", query("q", "<mark>spy</mark>", ["d060", "d001"]))
    dataset = open_dataset(tmp_path)
    negatives = bm25_negatives(dataset.documents("train"), {"q": "spy"}, {"q": ["d060", "d001"]})
    assert negatives == {"q": [f"d{i:03}" for i in range(50, 101) if i != 60]}


def test_documents_of_relevance_0_are_judged_negatives(tmp_path):
    pair = {"id": "1", "q1": "one", "q2": "two", "doc1": "first", "doc2": "second"}
    write_jsonl(tmp_path / "nevir" / "train.jsonl", pair)
    assert examples_of(tmp_path / "nevir", negatives="judged") == [
        TrainingExample("one", "first", ("second",)),
        TrainingExample("two", "second", ("first",)),
    ]


def test_files_of_pairs_bring_their_own_negatives(tmp_path):
    lines = [{"query": "q", "positive": "p", "negative": "n"}, {"query": "r", "positive": "s"}]
    file = write_jsonl(tmp_path / "pairs.jsonl", *lines)
    for kind, negatives in ((None, ("n",)), ("judged", ("n",)), ("none", ())):
        examples = [TrainingExample("q", "p", negatives), TrainingExample("r", "s")]
        assert examples_of(file, None, negatives=kind) == examples


PAIR = {"query": "q", "positive": "p"}
OF_DATASETS = (
    ": a file has no split, and no negatives but its own; leave out split, and set negatives to judged or none"
)


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        ([], {}, ": is empty; expected lines of `query`, `positive` and perhaps `negative`"),
        ([{"query": "q"}], {}, ":1: `positive` must be a text that is not blank, got None"),
        ([{"query": " ", "positive": "p"}], {}, ":1: `query` must be a text that is not blank, got ' '"),
        ([{**PAIR, "negative": 7}], {}, ":1: `negative` must be a text or a list of texts that are not blank, got 7"),
        ([{**PAIR, "negative": ["n", "p"]}], {}, ":1: the text of `positive` is also in `negative`: 'p'"),
        ([], {"split": "train"}, OF_DATASETS),
        ([], {"negatives": "bm25"}, OF_DATASETS),
    ],
)
def test_files_that_cannot_be_used(tmp_path, lines, settings, message):
    file = write_jsonl(tmp_path / "pairs.jsonl", *lines)
    assert fault_of(file, **{"split": None, **settings}) == message


def test_a_query_without_a_positive(tmp_path):
    write_jsonl(tmp_path / "corpus.jsonl", {"_id": "d", "text": "a bird"})
    write_jsonl(tmp_path / "queries.train.jsonl", *({"_id": name, "text": name} for name in ("birds", "bats")))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nbirds\td\t1\nbats\td\t0\n")
    assert fault_of(tmp_path) == ": query 'bats' of train has no relevant document; leave it out"


def test_datasets_that_cannot_be_used(films):
    assert fault_of(films, negatives="judged") == ": train has no negatives of the kind 'judged'; choose another kind"
    assert fault_of(films, None) == ": name the split; there are: train, train-nc"
    write_jsonl(films / "train.jsonl", query("q", "<mark>birds</mark>", ["b9"]))
    assert fault_of(films) == ": document 'b9' of train is judged, but has no text"
