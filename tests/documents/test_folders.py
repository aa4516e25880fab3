import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.documents.collection import collection_files
from pyserini_compneg.encode import encode_collection
from pyserini_compneg.index import build_index, build_sharded_index, update_index
from pyserini_compneg.support.files import iter_lines

LAYOUTS = {
    "BEIR": ("corpus.jsonl", "queries.jsonl qrels/test.tsv qrels/train.tsv"),
    "BEIR, packed": ("corpus.jsonl.gz", "queries.jsonl.gz qrels/dev.tsv"),
    "BEIR in parquet": ("corpus.parquet", "queries.parquet qrels/test.tsv"),
    "MTEB": ("corpus.jsonl", "queries.jsonl qrels/train.jsonl qrels/dev.jsonl"),
    "NanoBEIR": (
        "corpus/train-00000-of-00001.parquet",
        "queries/train-00000-of-00001.parquet qrels/train-00000-of-00001.parquet",
    ),
    "FollowIR": (
        "corpus/corpus-0.parquet corpus/corpus-1.parquet",
        "default/test-0.parquet queries/queries-0.parquet qrels_og/test-0.parquet top_ranked/top_ranked-0.parquet",
    ),
    "MS MARCO": ("collection.tsv", "queries.dev.small.tsv qrels.dev.tsv top1000.dev.tsv triples.train.small.tsv"),
    "MS MARCO documents": ("msmarco-docs.tsv.gz", "msmarco-doctrain-queries.tsv msmarco-doctrain-qrels.tsv"),
    "Anserini": ("collection_jsonl/docs00.json collection_jsonl/docs01.json", "topics.tsv qrels.tsv"),
    "QUEST": ("documents.jsonl", "train.jsonl val.jsonl test.jsonl"),
    "vectors beside topics": ("vectors-00000-of-00001.jsonl.gz", "topics.jsonl"),
    "other vectors beside topics": ("split00.jsonl.gz split01.jsonl.gz", "topics.msmarco-dev.jsonl"),
    "splits of documents": ("dev.jsonl test.jsonl train.jsonl", ""),
    "queries to be indexed": ("queries.dev.jsonl queries.train.jsonl", ""),
    "several parts": ("corpus.jsonl more.jsonl", ""),
    "a folder of queries has names of documents": ("corpus/part.jsonl", "queries/docs.jsonl"),
    "a corpus of a split": ("train/corpus.jsonl", "train/queries.jsonl train/qrels.tsv"),
    "documents with the name of a split": ("news_docs.jsonl other.jsonl train_timetables.jsonl", ""),
    "a part with the name of a split": ("blog/other.jsonl blog/test.jsonl docs/a.jsonl", ""),
    "a table beside JSON of queries": ("collection.csv", "queries.jsonl"),
}
"""The files of a folder that are read, and those that are left out."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_queries_and_judgements_are_no_documents(tmp_path, layout, caplog):
    read, left = (names.split() for names in LAYOUTS[layout])
    root = tmp_path / "test" / "queries"  # names above the folder say nothing
    for name in [*read, *left]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    assert [str(file.path.relative_to(root)) for file in collection_files(root)] == read
    assert len(caplog.messages) == (1 if left else 0)
    listed = ", ".join(sorted(left)[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
    assert all(listed in message for message in caplog.messages)


def test_each_door_reads_the_corpus_of_a_test_collection_alone(tmp_path, caplog):
    folder = tmp_path / "scifact"
    write_jsonl(folder / "corpus.jsonl", {"_id": "d1", "title": "On birds", "text": "owls"})
    write_jsonl(folder / "queries.jsonl", {"_id": "q1", "text": "which owls"})
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    said = f"{folder}: a test collection, of which only the corpus is read: corpus.jsonl; left out: "
    doors = {
        "build": lambda: build_index(folder, tmp_path / "index").documents,
        "shards": lambda: build_sharded_index(folder, tmp_path / "shards", 1).documents,
        "update": lambda: update_index(tmp_path / "index", folder, delete_missing=True).unchanged,
        "encode": lambda: len([*iter_lines(encode_collection(folder, tmp_path / "v", "mini"))]),
        "a file": lambda: build_index(folder / "queries.jsonl", tmp_path / "queries").documents,
    }
    for name, door in doors.items():
        caplog.clear()
        assert door() == 1, name
        warned = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
        assert warned == ([] if name == "a file" else [f"{said}qrels/test.tsv, queries.jsonl"]), name


UNREAD = "the folder holds no .jsonl, .json, .csv, .tsv, .parquet file of documents, plain, .gz or .xz"
SAVED = "write it as parquet or JSON Lines, with datasets.load_from_disk(FOLDER)"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("a.txt", UNREAD),
        ("a.jsonl.zst", f"{UNREAD}, but a.jsonl.zst; unpack it"),
        ("corpus.jsonl.zst queries.jsonl", f"{UNREAD}, but corpus.jsonl.zst; unpack it"),
        ("corpus/x.arrow queries.jsonl qrels.tsv", f"{UNREAD}, but corpus/x.arrow; {SAVED}"),
        ("b.json.bz2 a.zip c.tar.gz d.tgz", f"{UNREAD}, but a.zip, b.json.bz2, c.tar.gz and 1 more; unpack it"),
        ("data-00000-of-00001.arrow dataset_info.json state.json", f"{UNREAD}, but data-00000-of-00001.arrow; {SAVED}"),
        ("train/data-00000.arrow train/state.json dataset_dict.json", f"{UNREAD}, but train/data-00000.arrow; {SAVED}"),
    ],
)
def test_folders_of_files_that_are_not_read(tmp_path, names, said, caplog):
    for name in names.split():
        path = tmp_path / "c" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert refusal(build_index, tmp_path / "c", tmp_path / "index") == f"{tmp_path / 'c'}: {said}"
    write_jsonl(tmp_path / "c" / "good.jsonl", {"id": "d1", "contents": "owls"})
    assert build_index(tmp_path / "c", tmp_path / "index").documents == 1
    assert "files of other kinds are left out: " in caplog.text
