"""An index that is replaced while it is searched."""

import threading

import film_index
import pytest
from json_lines import write_jsonl

from pyserini_compneg.errors import ArgumentError, CompNegError, IndexFormatError
from pyserini_compneg.index import build_index
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import IndexSettings


@pytest.fixture
def folder(tmp_path):
    return film_index.build(tmp_path)


def replace(folder, *docids):
    documents = ({"id": docid, "contents": "a spy"} for docid in docids)
    build_index(write_jsonl(folder.parent / "new.jsonl", *documents), folder, overwrite=True)


def docids(searcher):
    return [hit.docid for hit in searcher.search("spy")]


def test_a_search_that_has_begun_keeps_its_index(folder):
    index = ServedIndex("films", IndexSettings(path=str(folder)))
    with index.searcher() as before:
        replace(folder, "n1", "n2")
        assert not set(docids(before)) & {"n1", "n2"}
        assert index.reload()
        assert set(docids(before)) == {"d1", "d2", "d3"}
        with index.searcher() as after:
            assert docids(after) == ["n1", "n2"]
    with pytest.raises(ArgumentError, match="closed"):
        before.search("spy")
    assert not index.reload()
    assert index.documents == 2
    index.close()


def test_the_last_of_several_users_closes_it_once(folder, monkeypatch):
    index, closed = ServedIndex("films", IndexSettings(path=str(folder))), []
    before = index._current
    monkeypatch.setattr(before.searcher, "close", lambda: closed.append(before))
    with index.searcher(), index.searcher():
        replace(folder, "n1")
        assert index.reload()
    index._leave(before, 0)  # as a thread would that asked at the same moment
    assert closed == [before]
    index.close()


def test_a_message_names_the_index_once(folder, monkeypatch):
    index = ServedIndex("films", IndexSettings(path=str(folder)))
    monkeypatch.setattr(index._current.searcher.reader, "folder", ".")
    with pytest.raises(IndexFormatError) as refused, index.searcher():
        raise IndexFormatError(".: no range 1990..1999")
    assert str(refused.value) == "films: no range 1990..1999"
    index.close()


def test_what_cannot_be_opened_changes_nothing(folder):
    index = ServedIndex("films", IndexSettings(path=str(folder)))
    replace(folder, "n1")
    manifest = (folder / "compneg.json").read_text()
    (folder / "compneg.json").write_text("{")
    with pytest.raises(CompNegError):
        index.reload()
    assert index.documents == len(film_index.FILMS)
    (folder / "compneg.json").write_text(manifest)
    assert index.reload()
    assert index.documents == 1
    index.close()


def test_no_search_fails_while_indexes_come_and_go(folder):
    index = ServedIndex("films", IndexSettings(path=str(folder)))
    done, failures, counts = threading.Event(), [], set()

    def search():
        while not done.is_set():
            try:
                with index.searcher() as searcher:
                    counts.add(len(docids(searcher)))
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 4):
        replace(folder, *(f"n{i}" for i in range(number)))
        assert index.reload()
    done.set()
    for thread in threads:
        thread.join()
    index.close()
    assert failures == []
    assert counts <= {1, 2, 3}
