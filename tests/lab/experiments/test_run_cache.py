import hashlib
import random

import pytest
from film_set import write_film_set
from json_lines import write_jsonl

from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.run_cache import cached_run
from pyserini_compneg.lab.experiments.run_folder import Engine
from pyserini_compneg.reading import decompose
from pyserini_compneg.search import Hit
from pyserini_compneg.topics.topics import Topic


def test_runs_are_made_once(run, tmp_path, monkeypatch):
    runs = tmp_path / "report" / "runs"
    first = run()
    assert first.runs_made == len(list(runs.iterdir())) == 4
    for path in runs.iterdir():
        checksum = (tmp_path / "report" / "checksums" / f"{path.stem}.sha256").read_text()
        assert checksum == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"  # as sha256sum writes it
    run(("{difference: ignore}", "{difference: nrf, difference_weight: 0.5}"))
    assert len(list(runs.iterdir())) == 5  # what depends on something else has another name
    run(("hits: 20", "hits: 10"))
    assert len(list(runs.iterdir())) == 9
    monkeypatch.setattr("pyserini_compneg.lab.experiments.run_cache.RUN_FORMAT", -1)
    assert [run().runs_made, run().runs_made] == [4, 0]


@pytest.mark.parametrize(
    ("folder", "change"),
    [
        ("runs", lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:-7]))),
        ("runs", lambda path: path.write_text(path.read_text().replace(" 1 ", " 2 ", 1))),
        ("runs", lambda path: path.unlink()),
        ("checksums", lambda path: path.write_text("0" * 64)),
        ("checksums", lambda path: path.unlink()),  # as after a kill between writing the two
    ],
)
def test_a_run_that_was_changed_or_lacks_its_checksum_is_made_again(run, tmp_path, caplog, folder, change):
    first = run()
    whole = {path: path.read_bytes() for path in sorted((tmp_path / "report").glob("[rc][uh]*/*"))}
    assert len(whole) == 8
    changed = random.Random(0).choice([path for path in whole if path.parent.name == folder])
    change(changed)
    is_there = changed.exists()
    again = run()
    assert {path: path.read_bytes() for path in whole} == whole
    assert (again.runs_made, again.sections) == (1, first.sections)
    warned = {record.getMessage() for record in caplog.records if "changed" in record.getMessage()}
    run_file = tmp_path / "report" / "runs" / f"{changed.stem}.txt"
    assert warned == ({f"{run_file}: was changed since it was made; it is made again"} if is_there else set())
    assert run().runs_made == 0


def test_a_run_of_other_wordings_is_another_run(tmp_path):
    """The wording of a text that was read is part of the query, so two wordings of one expression are two runs."""

    def asked(text):
        reading = decompose(text)
        return [Topic("1", text, reading.expression, decomposition=reading)]

    def search(topics, hits):
        return {topic.qid: [Hit(topic.text.replace(" ", "-"), 1.0)] for topic in topics}

    texts = ["spy films but not comedies", "spy films other than comedies"]
    made = [cached_run(tmp_path, "operators", {}, asked(text), search, 10) for text in texts]
    assert asked(texts[0])[0].expression == asked(texts[1])[0].expression
    assert [was_there for _, was_there in made] == [False, False]
    assert [path.read_text().split()[2] for path, _ in made] == [text.replace(" ", "-") for text in texts]
    assert cached_run(tmp_path, "operators", {}, asked(texts[0]), search, 10) == (made[0][0], True)


def test_encoded_atoms_that_have_changed_are_searched_anew(run, dataset, tmp_path):
    build_index(dataset.collection, tmp_path / "index")
    texts = [topic.text for topic in dataset.topics("dev")] + [f"{word} films" for word in ("spy", "war", "western")]
    values = []
    for term in ("spy", "red"):
        lines = ({"text": text, "vector": {term: 1.0}, "encoder": "bm25"} for text in sorted({*texts}))
        atoms = write_jsonl(tmp_path / "atoms.jsonl", *lines)
        results = run(engines=[Engine(str(atoms), tmp_path / "index")])
        values.append(results.sections[1].rows[0].per_query)
    assert values[0] != values[1]


def test_a_changed_collection_is_indexed_anew(run, tmp_path):
    folder = write_film_set(tmp_path / "films")
    before = run(dataset=open_dataset(folder))
    with open(folder / "documents.jsonl", "a") as handle:
        handle.write('{"docid": "new", "title": "new", "text": "one more spy film"}\n')
    after = run(dataset=open_dataset(folder))
    assert (before.dataset["documents"], after.dataset["documents"]) == (24, 25)
    assert len(list((tmp_path / "report" / "indexes").iterdir())) == 2
