import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from impact_indexes import write_index
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.encode import Bm25QueryEncoder, CachedQueryEncoder, query_encoder
from pyserini_compneg.encode.cached import VectorCache
from pyserini_compneg.lucene import ImpactReader, Manifest
from pyserini_compneg.support.errors import CompNegError, EncodingError, InputError


def test_atoms_are_looked_up_by_text(tmp_path):
    path = write_jsonl(
        tmp_path / "atoms.jsonl",
        {"text": "birds of Colombia", "vector": {"bird": 2, "colombia": 1.5, "fish": 0}},
        "",
        {"id": "7", "contents": " bats ", "vector": {"bat": 1, "¬bird": 2}},
        {"query": "fish", "vector": {}},
        {"text": "bats", "vector": {"¬bird": 2, "bat": 1.0}},
    )
    encoder = CachedQueryEncoder(path)
    assert encoder.name is None
    assert encoder.encode_batch(["birds of Colombia"])[0] == {"bird": 2.0, "colombia": 1.5}
    assert encoder.encode_batch(["fish", " bats", "fish"]) == [{}, {"bat": 1.0, "¬bird": 2.0}, {}]
    message = refusal(encoder.encode_batch, ["Fish"], error=EncodingError)
    assert message == f"{path} has no vector for 'Fish'; encode it and add a line"


def test_the_words_of_a_text_are_those_of_the_index(tmp_path):
    path = write_jsonl(tmp_path / "atoms.jsonl", {"text": "spies", "vector": {"spies": 2.0, "@spy": 1.0}})
    assert CachedQueryEncoder(path).words(["zebra spies"]) == [None]
    assert CachedQueryEncoder(path, "en").words(["zebra spies", "the"]) == [["zebra", "spi"], None]


def test_gzip_the_models_name_and_a_vector_that_is_changed(tmp_path):
    lines = {"text": "a", "vector": {"x": 1}, "encoder": "splade"}, {"text": "b", "vector": {"y": 1}}
    encoder = CachedQueryEncoder(write_jsonl(tmp_path / "atoms.jsonl.gz", *lines))
    encoder.encode_batch(["a"])[0].clear()
    assert (encoder.name, encoder.encode_batch(["a"])[0]) == ("splade", {"x": 1.0})


A = {"text": "a", "vector": {"x": 1}}
ATOM = '{"text": an atom, "vector": {term: weight}}'


@pytest.mark.parametrize(
    ("lines", "error", "said"),
    [
        ([""], InputError, f": no atoms; expected lines of {ATOM}"),
        (['{"text": '], InputError, ":1: not valid JSON: Expecting value at column 10"),
        *(
            ([line], EncodingError, f":1: expected {ATOM}")
            for line in ({"vector": {}}, {"text": 7, "vector": {}}, {"text": "a"}, {"text": "a", "vector": [1]})
        ),
        ([{**A, "encoder": 7}], EncodingError, ":1: the `encoder` must be a text, got a whole number"),
        ([{"text": "a", "vector": {"": 1}}], EncodingError, ":1: a term must be a non-empty text, got ''"),
        ([A, {**A, "vector": {"x": 2}}], EncodingError, ":2: 'a' has another vector on an earlier line"),
        (
            [{**A, "encoder": "m1"}, {**A, "text": "b", "encoder": "m2"}],
            EncodingError,
            ":2: the vector is of 'm2', those before it are of 'm1'",
        ),
    ],
)
def test_bad_lines(tmp_path, lines, error, said):
    path = write_jsonl(tmp_path / "atoms.jsonl", *lines)
    assert refusal(CachedQueryEncoder, path, error=error) == f"{path}{said}"


@pytest.fixture
def reader(tmp_path):
    with ImpactReader(write_index(tmp_path / "index", {"d": {"bird": 2}})) as opened:
        yield opened


def refused(name, reader):
    return refusal(query_encoder, name, reader, error=CompNegError)


def test_the_manifest_names_the_encoder(reader):
    reader._opened.manifest = Manifest("bm25")
    assert isinstance(query_encoder(None, reader), Bm25QueryEncoder)
    assert isinstance(query_encoder("bm25", reader), Bm25QueryEncoder)


def test_without_a_manifest_the_encoder_must_be_named(reader, tmp_path):
    folder = reader.folder
    assert refused(None, reader) == (f"{folder}: has no compneg.json (stock Anserini built it), so name the --encoder")
    assert isinstance(query_encoder("bm25", reader), Bm25QueryEncoder)
    atoms = write_jsonl(tmp_path / "atoms.jsonl", {"text": "a", "vector": {}, "encoder": "splade"})
    assert isinstance(query_encoder(str(atoms), reader), CachedQueryEncoder)


def test_an_encoder_that_is_nothing(reader):
    expected = (
        "; expected mini, latent, latent:FOLDER, a folder, or owner/name on the Hugging Face hub (index and search "
        "also take bm25 and bm25+MODEL, search also a JSON Lines file of encoded texts)"
    )
    assert refused("BM-25", reader) == f"no model 'BM-25'{expected}"
    reader._opened.manifest = Manifest("splade")
    assert refused(None, reader) == (
        f"{reader.folder}: its encoder 'splade' cannot be loaded: no model 'splade'; give its place as "
        "--encoder, or a file with the vectors of the queries' atoms: --encoder atoms.jsonl"
    )
    reader._opened.manifest = Manifest("mini")
    message = refusal(query_encoder, None, reader, ablation="x", error=EncodingError)  # not of a model that is missing
    assert message.startswith("ablation must be one of ")


def test_queries_of_another_encoder(reader, tmp_path, caplog):
    atoms = write_jsonl(tmp_path / "atoms.jsonl", {"text": "a", "vector": {}, "encoder": "splade"})
    unnamed = write_jsonl(tmp_path / "unnamed.jsonl", {"text": "a", "vector": {}})
    reader._opened.manifest = Manifest("unicoil")

    def other(index, queries):
        return f"{reader.folder} was encoded with {index!r}, the queries with {queries!r}; use the index's encoder"

    assert refused("bm25", reader) == other("unicoil", "bm25")
    assert refused(str(atoms), reader) == other("unicoil", "splade")
    assert isinstance(query_encoder(str(unnamed), reader), CachedQueryEncoder)
    assert caplog.messages == [f'{unnamed} does not say its "encoder"; taking it for unicoil, as the index is']
    reader._opened.manifest = Manifest("splade")
    assert query_encoder(str(atoms), reader).name == "splade"
    reader._opened.manifest = Manifest("bm25")
    assert refused(str(atoms), reader) == other("bm25", "splade")
    assert refused(str(unnamed), reader) == other("bm25", str(unnamed))


VECTORS = {"spy films": {"spy": 1.25, "film": -0.5, "¬": 2.0}, "": {}, "naïve 東京": {"##ing": 0.1}}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "deep" / "cache.sqlite"


def test_what_is_put_is_found_by_another(place):
    assert VectorCache(place).get(list(VECTORS)) == {}
    VectorCache(place).put(VECTORS)
    assert VectorCache(place).get([*VECTORS, "unknown"]) == VECTORS
    assert VectorCache(place).get([]) == {}
    VectorCache(place).put({"": {"a": 1.0}})
    assert VectorCache(place).get([""]) == {"": {"a": 1.0}}


def test_thousands_of_texts_and_none(place):
    VectorCache(place).put({})
    assert not place.parent.exists()
    vectors = {f"text {number}": {f"t{number}": 1.0} for number in range(2500)}
    VectorCache(place).put(vectors)
    assert VectorCache(place).get(list(vectors)) == vectors


def test_the_last_vectors_are_in_memory_and_belong_to_nobody(place):
    cache = VectorCache(place)
    cache.put({"first": {"a": 1.0}})
    cache.put({f"text {number}": {"b": 2.0} for number in range(255)})
    place.unlink()
    cache.get(["first"])["first"]["a"] = 9.0
    assert cache.get(["first", "text 254"]) == {"first": {"a": 1.0}, "text 254": {"b": 2.0}}
    cache.put({"one more": {}})
    assert cache.get(["first", "text 0"]) == {"text 0": {"b": 2.0}}  # the first is not in memory any more


def test_several_at_once(place):
    VectorCache(place).put({"first": {}})

    def work(number):
        cache = VectorCache(place)
        for turn in range(20):
            cache.put({f"{number} {turn}": {"a": float(turn)}})
            assert len(cache.get([f"{number} {turn}", "first"])) == 2

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(VectorCache(place).get([f"{n} {t}" for n in range(4) for t in range(20)])) == 80


def test_an_empty_file_is_an_empty_cache(place, caplog):
    """What there is between another process's opening of the file and its first words."""
    place.parent.mkdir()
    place.touch()
    cache = VectorCache(place)
    assert cache.get(["a"]) == {}
    cache.put({"a": {"x": 1.0}})
    assert cache.get(["a"]) == {"a": {"x": 1.0}}
    assert caplog.records == []


DAMAGES = {
    "file is not a database": lambda place: place.write_bytes(b"no database" * 500),
    "no such column: text": lambda place: execute(place, "ALTER TABLE vectors RENAME COLUMN text TO other"),
    "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)": lambda place: execute(
        place, "UPDATE vectors SET vector = '{'"
    ),
}


def execute(place, command):
    with sqlite3.connect(place) as database:
        database.execute(command)


@pytest.mark.parametrize("said", DAMAGES)
def test_a_damaged_file_is_said_once(place, caplog, said):
    VectorCache(place).put(VECTORS)
    DAMAGES[said](place)
    cache = VectorCache(place)
    for found in ({}, VECTORS):  # in memory
        assert cache.get(list(VECTORS)) == found
        cache.put(VECTORS)
    assert caplog.messages == [
        f"{place}: not used as a cache: {said}; delete it, or name another place in COMPNEG_CACHE"
    ]


def test_a_place_that_cannot_be_written_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    cache = VectorCache(tmp_path / "file" / "cache.sqlite")
    for found in ({}, VECTORS):  # in memory
        assert cache.get(list(VECTORS)) == found
        cache.put(VECTORS)
    (said,) = caplog.messages
    assert said.startswith(f"{tmp_path}/file/cache.sqlite: not used")
