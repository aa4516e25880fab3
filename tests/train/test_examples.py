"""What is learnt from datasets: positives, negatives, and what no example can be made of."""

import pytest
from tiny_training import write_lines

from pyserini_compneg.datasets import open_dataset
from pyserini_compneg.errors import CollectionError, QuerySyntaxError, TrainingError
from pyserini_compneg.train.config import SourceConfig
from pyserini_compneg.train.examples import Example, read_examples
from pyserini_compneg.train.negatives import bm25_negatives, compositional_negatives

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
    write_lines(tmp_path / "films" / "documents.jsonl", documents)
    write_lines(tmp_path / "films" / "train.jsonl", QUERIES)
    return tmp_path / "films"


def test_queries_are_the_words_of_the_templates_and_their_positives_are_drawn(films):
    examples = read_examples(SourceConfig(str(films), "train", positives=2), seed=3)
    assert [one.query for one in examples[:6:2]] == ["birds", "pets", "birds that are also pets"]
    assert len(examples) == 12
    assert {one.positive for one in examples[:2]} < {f"text of {docid}" for docid in BIRDS}
    assert examples == read_examples(SourceConfig(str(films), "train", positives=2), seed=3)
    assert examples != read_examples(SourceConfig(str(films), "train", positives=2), seed=4)


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
    examples = read_examples(SourceConfig(str(films), "train", "compositional", positives=1), seed=0)
    assert [len(one.negatives) for one in examples] == [0, 0, 1, 1, 0, 0]


def test_bm25_negatives_are_of_the_ranks_from_50_to_100_and_not_relevant(tmp_path):
    """Shorter documents with the word rank higher."""
    texts = [{"docid": f"d{i:03}", "text": "spy" + " film" * i} for i in range(1, 121)]
    write_lines(tmp_path / "documents.jsonl", texts)
    write_lines(tmp_path / "train.jsonl", [query("q", "<mark>spy</mark>", ["d060", "d001"])])
    dataset = open_dataset(tmp_path)
    found = bm25_negatives(dataset.documents("train"), {"q": "spy"}, {"q": ["d060", "d001"]})
    assert found == {"q": [f"d{i:03}" for i in range(50, 101) if i != 60]}


def test_a_documents_of_relevance_0_are_negatives_if_asked(tmp_path):
    pair = {"id": "1", "q1": "one", "q2": "two", "doc1": "first", "doc2": "second"}
    write_lines(tmp_path / "nevir" / "train.jsonl", [pair])
    assert read_examples(SourceConfig(str(tmp_path / "nevir"), "train", "judged"), seed=0) == [
        Example("one", "first", ("second",)),
        Example("two", "second", ("first",)),
    ]


def test_files_of_pairs_bring_their_own_negatives(tmp_path):
    lines = [{"query": "q", "positive": "p", "negative": "n"}, {"query": "r", "positive": "s"}]
    write_lines(tmp_path / "pairs.jsonl", lines)
    assert read_examples(SourceConfig(str(tmp_path / "pairs.jsonl")), seed=0) == [
        Example("q", "p", ("n",)),
        Example("r", "s"),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], ": no pairs; expected lines of `query`, `positive` and perhaps `negative`"),
        ([{"query": "q"}], ":1: `positive` must be a text that is not blank, got None"),
        ([{"query": " ", "positive": "p"}], ":1: `query` must be a text that is not blank, got ' '"),
        (
            [{"query": "q", "positive": "p", "negative": 7}],
            ":1: `negative` must be a text or a list of texts that are not blank, got 7",
        ),
        ([{"query": "q", "positive": "p", "negative": ["n", "p"]}], ":1: `positive` is `negative`, too: 'p'"),
    ],
)
def test_files_without_pairs(tmp_path, lines, message):
    write_lines(tmp_path / "pairs.jsonl", lines)
    with pytest.raises(TrainingError) as error:
        read_examples(SourceConfig(str(tmp_path / "pairs.jsonl")), seed=0)
    assert str(error.value) == f"{tmp_path}/pairs.jsonl{message}"


@pytest.mark.parametrize("settings", [{"split": "train"}, {"negatives": "bm25"}])
def test_files_have_neither_splits_nor_other_negatives(tmp_path, settings):
    write_lines(tmp_path / "pairs.jsonl", [{"query": "q", "positive": "p"}])
    with pytest.raises(TrainingError) as error:
        read_examples(SourceConfig(str(tmp_path / "pairs.jsonl"), **settings), seed=0)
    assert str(error.value) == f"{tmp_path}/pairs.jsonl: is no folder; split and negatives are for datasets"


def test_a_query_without_a_positive(tmp_path):
    write_lines(tmp_path / "corpus.jsonl", [{"_id": "d", "text": "a bird"}])
    write_lines(tmp_path / "queries.train.jsonl", [{"_id": name, "text": name} for name in ("birds", "bats")])
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nbirds\td\t1\nbats\td\t0\n")
    with pytest.raises(TrainingError) as error:
        read_examples(SourceConfig(str(tmp_path), "train"), seed=0)
    assert str(error.value) == f"{tmp_path}: query 'bats' of train has no relevant document; leave it out"


def test_a_positive_that_is_no_document(films):
    write_lines(films / "train.jsonl", [query("q", "<mark>birds</mark>", ["b9"])])
    with pytest.raises(TrainingError) as error:
        read_examples(SourceConfig(str(films), "train"), seed=0)
    assert str(error.value) == f"{films}: document 'b9' of train is judged, but has no text"


def test_a_kind_of_negatives_that_there_is_none_of(films):
    with pytest.raises(TrainingError) as error:
        read_examples(SourceConfig(str(films), "train", "judged"), seed=0)
    assert str(error.value) == f"{films}: train has no negatives of the kind 'judged'; choose another"


def test_no_split(films):
    with pytest.raises(TrainingError) as error:
        read_examples(SourceConfig(str(films)), seed=0)
    assert str(error.value) == f"{films}: name the split; there are: train, train-nc"


def test_an_unknown_template(films):
    write_lines(films / "train.jsonl", [query("q", "<mark>birds</mark> nor <mark>pets</mark>", ["b0"])])
    with pytest.raises(QuerySyntaxError, match=r"train\.jsonl:1: unknown wording '_ nor _'"):
        read_examples(SourceConfig(str(films), "train"), seed=0)


def test_an_empty_file(films):
    write_lines(films / "train.jsonl", [])
    with pytest.raises(CollectionError, match=r"train\.jsonl: no topics; expected lines"):
        read_examples(SourceConfig(str(films), "train"), seed=0)
