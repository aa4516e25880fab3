import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.expression import Atom, Difference
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.topics.topics import Topic

TITLES = ["Emu", "Fruit bat", "Jaws (film)", "Emma"]
NOT = "_ that are not _"


def line(domain, template="_", **more):
    marked = {"_": "<mark>a</mark>", NOT: "<mark>a</mark> that are not <mark>b</mark>"}[template]
    metadata = {"template": template, "domain": domain, "fluency": [True], "evidence_ratings": {"Emu": []}}
    about = {"query": f"{domain}?", "docs": ["Fruit bat"], "original_query": marked, "scores": None}
    return {**about, "metadata": metadata, **more}


def augmented(domain, template):
    record = line(domain, docs=["Emma"])
    return {**record, "original_query": "", "metadata": {"template": template, "domain": domain}}


@pytest.fixture
def quest(tmp_path):
    folder = tmp_path / "quest"
    write_jsonl(folder / "documents.jsonl", *({"title": title, "text": f"About {title}."} for title in TITLES))
    write_jsonl(folder / "train.jsonl", line("films"), line("plants", NOT), line("books", NOT))
    write_jsonl(folder / "val.jsonl", line("animals", NOT, docs=["Emu"]))
    write_jsonl(folder / "test.jsonl", line("books"), line("plants"))
    return folder


def test_the_official_files(quest):
    dataset = open_dataset(quest)
    assert (dataset.name, dataset.kind, dataset.collection) == ("quest", "quest", quest / "documents.jsonl")
    assert dataset.splits == ("train", "train-nc", "val", "test", "domain-train", "domain-train-nc", "domain-test")
    assert [(document.docid, document.text) for document in dataset.documents("val")] == [
        ("Emu", "Emu\nAbout Emu."),
        ("Fruit_bat", "Fruit bat\nAbout Fruit bat."),
        ("Jaws_(film)", "Jaws (film)\nAbout Jaws (film)."),
        ("Emma", "Emma\nAbout Emma."),
    ]
    assert dataset.topics("val") == [
        Topic("1", "animals?", Difference(Atom("a"), Atom("b")), group=NOT, metadata={"domain": "animals"})
    ]
    assert dataset.qrels("val") == {"1": {"Emu": 1}}


def test_the_non_compositional_subset_keeps_the_ids_of_its_file(quest):
    write_jsonl(quest / "train.jsonl", line("films", NOT), line("plants"))
    dataset = open_dataset(quest)
    assert [topic.qid for topic in dataset.topics("train-nc")] == ["2"]
    assert dataset.qrels("train-nc") == {"2": {"Fruit_bat": 1}}


@pytest.mark.parametrize(
    ("split", "qids"), [("domain-train", ["train-1", "train-3", "test-1"]), ("domain-train-nc", ["train-1", "test-1"])]
)
def test_the_domain_split_is_over_all_files(quest, split, qids):
    dataset = open_dataset(quest)
    assert [topic.qid for topic in dataset.topics(split)] == qids
    assert list(dataset.qrels(split)) == qids


def test_augmented_queries_have_no_marks_and_are_taken_once(quest):
    queries = line("films"), augmented("books", "_"), augmented("books", None), augmented("films", NOT)
    write_jsonl(quest / "train_aug.jsonl", *queries)
    dataset = open_dataset(quest)
    assert dataset.topics("train_aug")[1] == Topic(
        "2", "books?", Atom("books?"), group="_", metadata={"domain": "books"}
    )
    assert [topic.qid for topic in dataset.topics("train_aug-nc")] == ["1", "2", "3"]
    assert [topic.qid for topic in dataset.topics("domain-train")] == [f"train_aug-{n}" for n in (1, 2, 3, 4)] + [
        "test-1"
    ]


def test_a_split_without_queries(quest):
    (quest / "train.jsonl").unlink()
    write_jsonl(quest / "test.jsonl", line("plants"))
    where = f"{quest}/val.jsonl, {quest}/test.jsonl"
    said = "no query that belongs to this split: the domains are animals, plants; choose others with --domains"
    for split in ("domain-train", "domain-fims"):
        assert refusal(open_dataset(quest).topics, split) == f"{where}: {said}"


def test_a_split_of_any_domains(quest):
    dataset = open_dataset(quest)
    asked = {"domain-films": ["train-1"], "domain-books+plants": ["train-2", "train-3", "test-1", "test-2"]}
    for split, qids in {**asked, "domain-plants-nc": ["test-2"]}.items():
        assert [topic.qid for topic in dataset.topics(split)] == qids == list(dataset.qrels(split))
    said = f"{quest}: a domain without a name in 'films+'"
    assert refusal(dataset.topics, "domain-films+") == said
    with_ids = [{**line("films"), "qid": "a"}, {**line("books"), "qid": "b"}]
    write_jsonl(quest / "train.jsonl", *with_ids)
    other = open_dataset(quest)
    assert (other.kind, [topic.qid for topic in other.topics("domain-books")]) == ("filmsets", ["train-b", "test-1"])
    assert other.provenance.endswith("not the benchmark QUEST")  # documents of FilmSets have ids, too


def test_queries_without_a_domain_are_counted_in_one_warning(quest, caplog):
    without = line("films")
    del without["metadata"]["domain"]
    write_jsonl(quest / "train.jsonl", line("films"), without)
    dataset = open_dataset(quest)
    for split in ("domain-train", "domain-test", "domain-train"):
        dataset.topics(split)
    files = ", ".join(str(quest / f"{name}.jsonl") for name in ("train", "val", "test"))
    assert caplog.messages == [f"{files}: 1 of 5 queries name no domain, so the domain split lacks them"]
    assert len(dataset.topics("train")) == 2
    open_dataset(quest).topics("domain-test")  # opened anew
    assert len(caplog.messages) == 2
