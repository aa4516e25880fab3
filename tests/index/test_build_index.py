"""What a build makes, what it refuses to replace, and its command."""

import json
import signal

import pytest
from film_index import start
from index_folders import contents, hidden, postings
from json_lines import write_jsonl
from refusals import EXISTS, refusal

from pyserini_compneg.commands.compose import main as compose
from pyserini_compneg.commands.index import main
from pyserini_compneg.compose import Linear, Product, query_pairs
from pyserini_compneg.encode import query_encoder
from pyserini_compneg.index import ImpactIndexer, asked_pairs, build, build_index
from pyserini_compneg.lucene import MANIFEST_NAME, ImpactReader, ImpactWriter, Manifest
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError, OutputError


def write(path, *documents):
    return write_jsonl(path, *({"id": docid, "contents": text} for docid, text in documents))


def with_birds(index):
    return list(postings(index, "bird"))


@pytest.fixture
def collection(tmp_path):
    return write(tmp_path / "collection.jsonl", ("d1", "birds of Colombia"), ("d2", "bats"), ("d3", "birds, birds"))


@pytest.fixture
def index(tmp_path):
    """An index of another collection, which is there already."""
    build_index(write(tmp_path / "old.jsonl", ("x", "birds")), tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"optimize": True}, {"reorder": True}, {"store_raw": True}])
def test_an_index_and_its_manifest(tmp_path, collection, options):
    index = tmp_path / "deep" / "index"
    manifest = build_index(collection, index, **options)
    assert Manifest.read(index) == manifest
    assert (manifest.encoder, manifest.impact_scale) == ("bm25", 256)
    assert (manifest.documents, manifest.empty_documents) == (3, 0)
    assert with_birds(index) == ["d3", "d1"]
    assert hidden(index.parent) == []
    with ImpactReader(index) as reader:
        raw = reader.raw("d2")
    assert raw == ('{"id": "d2", "contents": "bats"}' if "store_raw" in options else None)


def test_parameters_of_bm25(tmp_path, collection, capsys, monkeypatch):
    """They are in the manifest, and a build goes on with its own only."""
    index = tmp_path / "index"
    arguments = ["--collection", str(collection), "--index", str(index), "--k1", "1.2"]

    def killed(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build, "CHECKPOINT_SECONDS", -1)
        patch.setattr(build._CollectionIndexer, "_check_duplicates", killed)
        assert main([*arguments, "--b", "0.75"]) == 130
    capsys.readouterr()
    assert main([*arguments, "--resume"]) == 1
    assert "cannot be continued, because settings changed since; " in capsys.readouterr().err
    assert main([*arguments, "--b", "0.75", "--resume"]) == 0
    assert Manifest.read(index).settings == {"k1": 1.2, "b": 0.75, "average_length": 5 / 3}


def test_vectors_are_indexed_as_they_are(tmp_path):
    lines = '{"id": "d1", "vector": {"a": 3, "b": 0, "c": 2.0}}', '{"id": "d2", "vector": {"é": 1048576}}'
    path = write_jsonl(tmp_path / "vectors.jsonl", *lines, '{"id": "d3", "vector": {}}')
    manifest = Manifest("splade", {}, 1.0, documents=3, empty_documents=1)
    assert build_index(path, tmp_path / "index", "splade") == manifest
    with ImpactReader(tmp_path / "index") as reader:
        assert reader.document_frequencies(["a", "b", "c", "é"]) == [1, 0, 1, 1]
        assert list(reader.search([Linear({"a": 1.0, "c": 1.0})], 9)[0].scores) == [5.0]


def test_fractional_weights_are_scaled_and_rounded_half_to_even(tmp_path):
    path = write_jsonl(tmp_path / "v.jsonl", {"id": "d1", "vector": {"a": 0.25, "b": 0.75, "c": 1.25, "d": 0.1}})
    assert build_index(path, tmp_path / "index", "splade", impact_scale=2).impact_scale == 2
    expected = [{}, {"d1": 2.0}, {"d1": 2.0}, {}]
    assert [postings(tmp_path / "index", term) for term in "abcd"] == expected


def test_documents_without_terms_are_counted_and_can_be_looked_up(tmp_path):
    path = write(
        tmp_path / "c.jsonl", ("d1", "birds and bats"), ("e1", ""), ("d2", "birds of a feather"), ("e2", "the")
    )
    manifest = build_index(path, tmp_path / "index", store_raw=True)
    assert (manifest.documents, manifest.empty_documents) == (4, 2)
    assert manifest.settings["average_length"] == 2.0  # of the documents with terms
    assert Manifest.read(tmp_path / "index") == manifest
    assert with_birds(tmp_path / "index") == ["d1", "d2"]
    with ImpactReader(tmp_path / "index") as reader:
        assert (reader.document_count, reader.field_document_count) == (4, 2)
        assert reader.raw("e2") == '{"id": "e2", "contents": "the"}'


def test_folders_made_for_a_build_that_fails_are_removed(tmp_path):
    path = write(tmp_path / "c.jsonl", ("d1", "birds"), ("d1", "birds"))
    (tmp_path / "mine").mkdir()
    for index in (tmp_path / "mine" / "a" / "b" / "index", tmp_path / "c" / "index"):
        with pytest.raises(InputError, match=f"^{path}:2: document id 'd1' was given at {path}:1 already$"):
            build_index(path, index)
    with pytest.raises(InputError, match="nothing to index"), ImpactIndexer(tmp_path / "a/b/index", "m"):
        (tmp_path / "a" / "used").mkdir()
    assert {path.name for path in tmp_path.rglob("*")} == {"c.jsonl", "mine", "a", "used"}


def test_k1_and_b_stand_together(tmp_path):
    for name in ("k1", "b"):
        said = f'{name} is not a separate argument; give all as bm25={{"k1": 0.9, "b": 0.4, "language": "en"}}'
        assert refusal(build_index, tmp_path, tmp_path / "index", error=ArgumentError, **{name: 0.5}) == said
    said = "bm25 has no parameter 'lang'; it has k1, b and language"
    assert refusal(build_index, tmp_path, tmp_path / "index", bm25={"lang": "de"}, error=ArgumentError) == said


def test_an_existing_index_is_refused_before_the_collection_is_read(tmp_path, index):
    before = contents(index)
    broken = write_jsonl(tmp_path / "broken.jsonl", "broken")
    message = refusal(build_index, broken, index, error=OutputError)
    assert message == f"{index}: {EXISTS}"
    with pytest.raises(InputError, match="not valid JSON"):
        build_index(broken, index, existing="overwrite")
    assert contents(index) == before
    assert hidden(tmp_path) == []


def test_an_empty_folder_is_filled_and_an_index_replaced(tmp_path, collection):
    index = tmp_path / "index"
    index.mkdir()
    build_index(collection, index)
    assert with_birds(index) == ["d3", "d1"]
    build_index(write(tmp_path / "other.jsonl", ("x", "birds")), index, existing="overwrite")
    assert with_birds(index) == ["x"]
    assert Manifest.read(index).documents == 1
    assert hidden(tmp_path) == []


def test_settings_that_a_new_index_lacks_are_named(tmp_path, caplog):
    lines = write_jsonl(
        tmp_path / "lines.jsonl", *({"id": f"d{i}", "contents": "Häuser " * 9, "year": i} for i in (1, 2))
    )
    options = {"bm25": {"language": "de"}, "filter_fields": ["year"], "passages": {"words": 5, "overlap": 0}}
    for changes in (
        options,
        options,
        {"filter_fields": ["year"], "bm25": {"language": "fr"}},
        {"bm25": {"language": "fr"}},
    ):
        build_index(lines, tmp_path / "index", existing="overwrite", **changes)
    said = [
        record.getMessage().partition(" built with ")[2] for record in caplog.records if "replaces" in record.message
    ]
    assert said == [
        "--language de, --passages words=5,overlap=0, and this one is not",
        "--filter-fields year, and this one is not",
    ]


def test_an_index_that_lost_its_segments_file_can_be_replaced(collection, index):
    (segments,) = index.glob("segments_*")
    segments.unlink()
    build_index(collection, index, existing="replace")
    assert with_birds(index) == ["d3", "d1"]


def test_a_link_to_an_index_is_followed(tmp_path, collection, index):
    link = tmp_path / "link"
    link.symlink_to(index)
    build_index(collection, link, existing="overwrite")
    assert link.is_symlink()
    assert with_birds(index) == with_birds(link) == ["d3", "d1"]


def test_a_file_in_the_place_of_the_index(tmp_path, collection):
    other = write(collection.with_name("other.jsonl"), ("x", "birds"))
    message = refusal(build_index, other, collection, error=OutputError)
    assert message == f"{collection}: exists and is not an index; give another folder"
    for index in (collection / "index", collection / "deep" / "index"):
        message = refusal(build_index, other, index, error=OutputError)
        assert message == f"{index}: cannot be written: {collection} is not a folder; give another folder"


@pytest.mark.parametrize("name", ["to-mum.txt", "segments_of_my_thesis.txt", MANIFEST_NAME])
def test_nothing_but_an_index_is_overwritten(tmp_path, collection, name):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / name).write_text("dear")
    message = refusal(build_index, collection, tmp_path / "letters", existing="overwrite", error=OutputError)
    assert message == f"{tmp_path / 'letters'}: exists and is not an index; give another folder"
    assert (tmp_path / "letters" / name).read_text() == "dear"


@pytest.mark.parametrize("name", ["letter.doc", "letters", "notes.txt", "_readme"])
def test_nothing_that_was_put_into_an_index_is_lost(collection, index, name):
    (index / name).mkdir() if name == "letters" else (index / name).write_text("dear")
    with pytest.raises(OutputError) as caught:
        build_index(collection, index, existing="overwrite")
    said = f"{index}: holds {name!r}, which is not part of an index; move it, or give another folder"
    assert str(caught.value) == said
    assert (index / name).exists()


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_what_was_there(tmp_path, collection, index, monkeypatch, interruption, overwrite):
    before = contents(index)
    target = index if overwrite else tmp_path / "new"

    def drain(self):
        raise interruption

    with monkeypatch.context() as patch, pytest.raises(interruption):
        patch.setattr(ImpactWriter, "drain", drain)
        build_index(collection, target, existing="overwrite" if overwrite else "refuse")
    assert contents(index) == before
    assert target.exists() == overwrite
    assert hidden(tmp_path) == []
    build_index(collection, target, existing="overwrite" if overwrite else "refuse")
    assert with_birds(target) == ["d3", "d1"]


SLOW_COMMAND = """
import sys, time
from pyserini_compneg.index import indexer
from pyserini_compneg.commands.compose import main as compose
from pyserini_compneg.commands.index import main
def add_lines(self, *arguments):
    print("adding", flush=True)
    for _ in range(1200):  # a signal that comes to a thread of Java wakes no sleeper
        time.sleep(0.1)
indexer.ImpactWriter.add_lines = add_lines
sys.exit(main())
"""


@pytest.mark.slow
def test_a_signal_leaves_what_was_there(tmp_path, collection, index):
    arguments = "--collection", collection, "--index", index, "--overwrite"
    with start(*arguments, code=SLOW_COMMAND) as process:
        assert process.stdout.readline() == "adding\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 143
    assert hidden(tmp_path) == []
    assert with_birds(index) == ["x"]


def test_the_command(tmp_path, collection, capfd):
    index = tmp_path / "index"
    arguments = ["--collection", str(collection), "--index", str(index)]
    assert main(arguments) == 0
    assert capfd.readouterr() == ("", f"{index}: 3 documents, encoder bm25\n")
    assert main(arguments) == 1
    assert capfd.readouterr() == ("", f"error: {index}: {EXISTS}\n")
    more = ["--overwrite", "--threads", "2", "--store-raw", "--optimize", "--impact-scale", "100"]
    assert main([*arguments, *more]) == 0
    assert Manifest.read(index).impact_scale == 100
    with ImpactReader(index) as reader:
        assert reader.raw("d2") is not None


@pytest.mark.slow
def test_a_log_in_json(tmp_path, collection):
    (tmp_path / "bad.jsonl").write_text("{}")
    arguments = "--log-format", "json", "--index", tmp_path / "index", "--threads", 1, "--collection"
    for file, code, level in ((collection, 0, "info"), (tmp_path / "bad.jsonl", 2, "error")):
        with start(*arguments, file, "--overwrite", module="pyserini_compneg.index") as process:
            out, err = process.communicate(timeout=120)
        assert (out, process.returncode) == ("", code)
        lines = [json.loads(line) for line in err.splitlines()]
        assert lines[-1].keys() == {"time", "level", "message"}
        assert lines[-1]["level"] == level
        if code == 0:
            assert lines[-2]["done"] == 3
            assert lines[-2].keys() >= {"work", "seconds", "per_second", "done_before"}


def test_the_check_of_an_index(index, capfd):
    assert main(["--verify", str(index)]) == 0
    said = f"{index}: whole: the files, the ids and the manifest of 1 documents\n"
    assert capfd.readouterr() == ("", said)
    (index / "compneg.json").rename(index.parent / "manifest")
    assert main(["--verify", str(index)]) == 0
    said = f"{index}: whole: the files, the ids, without a manifest, of 1 documents\n"
    assert capfd.readouterr() == ("", said)
    text = (index.parent / "manifest").read_text()
    (index / "compneg.json").write_text(text.replace('"empty_documents": 0', '"empty_documents": 1'))
    assert main(["--verify", str(index)]) == 1
    assert "0 documents have no term, and the manifest counts 1" in capfd.readouterr().err
    (index / "compneg.json").write_text(text)
    (postings,) = index.glob("*.doc")
    *whole, last = postings.read_bytes()  # of a checksum, which differs from build to build
    postings.write_bytes(bytes([*whole, last ^ 1]))
    assert main(["--verify", str(index)]) == 1
    assert capfd.readouterr().err.startswith(f"error: {index}: ")


def test_an_index_that_appeared_meanwhile_is_kept(tmp_path, index):
    target = tmp_path / "new"
    with pytest.raises(OutputError, match="exists already"), ImpactIndexer(target, "m") as indexer:
        indexer.add("d1", {"bird": 1})
        index.rename(target)
    assert with_birds(target) == ["x"]
    assert hidden(tmp_path) == []


def test_the_pairs_that_queries_ask_for(tmp_path, collection):
    """Only expressions need an encoder."""
    composed = [Product(({"bird": 4.0}, {"colombia": 2.0}))]
    assert asked_pairs(composed, collection) == ("bird∩colombia",)
    expected = query_pairs(["birds AND bats"], query_encoder("mini", None))
    assert asked_pairs(["birds AND bats"], collection, "mini") == expected
    assert asked_pairs(["birds AND bats"], [{"id": "d1", "contents": "birds"}], "mini") == expected
    for name in ("bm25", "bm25+mini", "latent:m"):
        said = refusal(asked_pairs, ["birds AND bats"], collection, name, error=EncodingError)
        assert said.startswith(f"{name} weighs the terms of these queries by the statistics of an index, which is not")
    (tmp_path / "queries.tsv").write_text("1\tbirds AND bats\n")
    asked = ["--encoder", "mini", "--pairs-from", str(tmp_path / "queries.tsv")]
    assert main(["--collection", str(collection), "--index", str(tmp_path / "new"), *asked]) == 0
    assert Manifest.read(tmp_path / "new").pairs == expected


def test_the_pairs_of_queries_that_were_composed_with_bm25(tmp_path):
    """BM25 needs the statistics of an index, so the queries come from an index without pairs."""
    collection = write(
        tmp_path / "c.jsonl", ("d1", "birds of colombia"), ("d2", "bats, birds, colombia"), ("d3", "rain")
    )
    topics = tmp_path / "topics.tsv"
    topics.write_text("1\tbirds AND colombia\n2\tbats AND colombia\n")
    index, composed, paired = (str(tmp_path / name) for name in ("index", "composed.jsonl", "paired"))
    assert main(["--collection", str(collection), "--index", index]) == 0
    assert compose(["--index", index, "--topics", str(topics), "--output", composed]) == 0
    assert main(["--collection", str(collection), "--index", paired, "--pairs-from", composed]) == 0
    assert Manifest.read(tmp_path / "paired").pairs == ("bat∩colombia", "bird∩colombia")
    with SignedImpactSearcher(index) as factored, SignedImpactSearcher(paired, cpt="materialised") as materialised:
        for query in ("birds AND colombia", "bats AND colombia"):
            found = [hit.docid for hit in materialised.search(query)]
            assert found == [hit.docid for hit in factored.search(query)] != []
