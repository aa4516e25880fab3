import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyserini_compneg.encode.cached import VectorCache

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
    for _ in range(2):
        assert cache.get(list(VECTORS)) == {}
        cache.put(VECTORS)
    assert [record.getMessage() for record in caplog.records] == [
        f"{place}: not used as a cache: {said}; delete it, or name another place in COMPNEG_CACHE"
    ]


def test_a_place_that_cannot_be_written_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    cache = VectorCache(tmp_path / "file" / "cache.sqlite")
    for _ in range(2):
        assert cache.get(list(VECTORS)) == {}
        cache.put(VECTORS)
    (said,) = caplog.messages
    assert said.startswith(f"{tmp_path}/file/cache.sqlite: not used")
