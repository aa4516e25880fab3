import logging
import shutil
import threading
import time

import film_index
import pytest
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.index import build_index, build_sharded_index, update_index
from pyserini_compneg.lucene.sharded_reader import open_reader
from pyserini_compneg.lucene.shards import read_shards
from pyserini_compneg.serve.served_index import ServedIndex, generation
from pyserini_compneg.serve.settings import ServedIndexSettings
from pyserini_compneg.support.errors import ArgumentError, CompNegError, IndexReadError, InputError


@pytest.fixture
def folder(films, tmp_path):
    """A copy of the index of films, which a test may replace."""
    return shutil.copytree(films, tmp_path / "index")


@pytest.fixture
def index(folder):
    index = ServedIndex("films", ServedIndexSettings(path=str(folder)))
    yield index
    index.close()


def replace(folder, *docids):
    documents = ({"id": docid, "contents": "a spy"} for docid in docids)
    build_index(write_jsonl(folder.parent / "new.jsonl", *documents), folder, existing="overwrite")


def docids(searcher):
    return [hit.docid for hit in searcher.search("spy")]


def test_a_search_that_has_begun_keeps_its_index(folder, index):
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


def test_the_last_of_several_users_closes_it_once(folder, index, monkeypatch):
    closed, before = [], index._current
    monkeypatch.setattr(before.searcher, "close", lambda: closed.append(before))
    with index.searcher(), index.searcher():
        replace(folder, "n1")
        assert index.reload()
    index._leave(before, 0)  # as a thread would that asked at the same moment
    assert closed == [before]


def test_clients_are_told_names_and_no_paths(folder, monkeypatch, caplog):
    """Whatever fails, and wherever the index lies; what warns of an index is in the log and the figures, too."""
    monkeypatch.chdir(folder)
    with make_client(".") as client:
        reader = client.app._backend.indexes["films"]._current.searcher.reader

        def told(path, **body):
            answer = client.post(path, json=body) if body else client.get(path)
            assert str(folder) not in answer.text
            return answer.json()

        assert told("/v1/films/search?query=spy&filter=year=1")["error"].startswith(
            "query spy: films: cannot be filter"
        )
        for path in (
            "search?query=a&union=x",
            "doc/x",
            "explain/x?query=a",
            "search?query=a AND (b",
            "compose?query=a AND OR b",
        ):
            assert "error" in told(f"/v1/films/{path}")
        for body in ({"vector": {"a": "b"}}, {"score": {}}, {"expression": {}}, {"query": "a", "filter": {"b": "c"}}):
            assert "error" in told("/v1/films/search", **body)
        lost = "a process that searched this shard was lost"
        logger = logging.getLogger("pyserini_compneg.cluster.shards")
        monkeypatch.setattr(reader, "raw", lambda _: logger.warning("%s: %s", folder / "s1", lost))
        assert told("/v1/films/doc/d1")["notes"] == [f"films/s1: {lost}"]
        assert not any(getattr(record, "is_noted", False) for record in caplog.records if lost in record.getMessage())
        assert 'compneg_index_warnings_total{index="films"} 1.0' in client.get("/metrics").text
        assert told("/health")["status"] == "ok"
        monkeypatch.setattr(reader, "has", lambda _: broken(folder))
        assert told("/v1/films/doc/d1") == {"error": "Internal server error"}
        degraded = {"films": "its last search failed; the log says why"}
        assert (told("/health")["status"], told("/health")["degraded"]) == ("degraded", degraded)
        assert 'compneg_index_degraded{index="films"} 1.0' in client.get("/metrics").text
        told("/v1/films/search?query=spy")
        assert told("/health")["degraded"] == {}


def broken(folder):
    raise IndexReadError(f"{folder}: the documents' ids are damaged")


def test_shards_that_are_left_out_are_in_the_health(tmp_path):
    lines = ({"id": f"d{number}", "contents": "a spy"} for number in range(4))
    folder = tmp_path / "index"
    build_sharded_index(write_jsonl(tmp_path / "films.jsonl", *lines), folder, 2)
    shutil.rmtree(folder / read_shards(folder)[0].path)
    index = ServedIndex(
        "films", ServedIndexSettings(path=str(folder)), lambda path, _: SignedImpactSearcher(open_reader(path, True))
    )
    assert index.degraded == "1 of its shards are left out, so results are partial"
    index.close()


@pytest.mark.parametrize("prefix", ["", "bm25+"])
def test_the_path_of_an_encoder_is_kept_from_clients(folder, tmp_path, monkeypatch, prefix):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").mkdir()
    settings = ServedIndexSettings(path=str(folder), encoder=f"{prefix}secret")
    index = ServedIndex("films", settings, lambda path, _: SignedImpactSearcher(path))
    assert index.folders == {str(folder)}  # a word of its own, that a query may have
    (tmp_path / "secret" / "atoms").mkdir()
    settings = ServedIndexSettings(path=str(folder), encoder=f"{prefix}secret/atoms")
    other = ServedIndex("films", settings, lambda path, _: SignedImpactSearcher(path))
    assert other.folders == {str(folder), "secret/atoms"}
    index.close()
    other.close()


def test_an_index_that_is_being_opened_is_well(folder):
    said = []

    def opened(path, encoder):
        said.extend(index.degraded for index in served)
        return SignedImpactSearcher(path, encoder)

    served = []
    served.append(ServedIndex("films", ServedIndexSettings(path=str(folder)), opened))
    replace(folder, "n1")
    assert served[0].reload()
    assert said == [None]
    served[0].close()


def test_what_cannot_be_opened_changes_nothing(folder, index):
    replace(folder, "n1")
    manifest = (folder / "compneg.json").read_text()
    (folder / "compneg.json").write_text("{")
    with pytest.raises(CompNegError):
        index.reload()
    assert index.degraded == "what replaced it cannot be opened, so the older index is searched"
    assert index.documents == len(film_index.FILMS)
    (folder / "compneg.json").write_text(manifest)
    assert index.reload()
    assert (index.documents, index.degraded) == (1, None)


def test_no_search_fails_while_indexes_come_and_go(folder, index):
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
    assert failures == []
    assert counts <= {1, 2, 3}


def test_updates_during_searches(folder, index):
    """Each answer is that of the index before or after an update. An update is seen without a restart."""
    done, seen = threading.Event(), set()
    states = {index.generation: {"d1", "d2", "d3"}}

    def search():
        while not done.is_set():
            with index.searcher() as searcher:
                found = generation(searcher), frozenset(docids(searcher))
                seen.add(found)

    def wait_until_seen():
        until = time.monotonic() + 60
        while index.generation not in {found for found, _ in seen.copy()} and time.monotonic() < until:
            time.sleep(0.001)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until_seen()
    for number in range(1, 8):
        changes = write_jsonl(folder.parent / "changes.jsonl", {"id": f"n{number}", "contents": "a spy"})
        (folder.parent / "ids.txt").write_text(f"n{number - 1}\n")
        update_index(folder, changes, folder.parent / "ids.txt")
        assert index.reload()
        states[index.generation] = {"d1", "d2", "d3", f"n{number}"}
        wait_until_seen()
    done.set()
    for thread in threads:
        thread.join()
    assert [found for found in seen if states[found[0]] != found[1]] == []
    assert len(states) == 8
    assert {found for found, _ in seen} == states.keys()


KEY = "a-long-key"
NO_WRITE_KEY = "An index is changed only with one of the server's write_keys"


def test_a_request_switches_an_index(folder, tmp_path):
    """To a folder that the settings name, and back. A search that has begun ends in the old one."""
    folder.rename(tmp_path / "films-1")
    for name in ("films-2", "secret"):
        build_index(write_jsonl(tmp_path / f"{name}.jsonl", {"id": name, "contents": "a spy"}), tmp_path / name)
    (tmp_path / "films-3").mkdir()
    damaged = shutil.copytree(tmp_path / "films-2", tmp_path / "films-5")
    for file in damaged.glob("*.si"):
        file.write_bytes(b"x")
    (tmp_path / "films-6").symlink_to(tmp_path / "secret")
    (tmp_path / "films-7").symlink_to(tmp_path / "films-2")

    def switch(name, status=200, key=KEY, client=None):
        answer = (client or keyed).put("/v1/films", json={"index": name}, headers={"X-API-Key": key})
        assert answer.status_code == status
        assert str(tmp_path) not in answer.text
        return answer.json().get("error", answer.json())

    with make_client(tmp_path / "films-1", "reads-only", versions="films-*", write_keys=[KEY]) as keyed:
        index, headers = keyed.app._backend.indexes["films"], {"X-API-Key": KEY}
        first = index.generation
        with index.searcher() as before:
            switched = switch("films-2")
            assert switched == {"api": "v1", "index": "films", "generation": index.generation, "documents": 1}
            assert keyed.get("/health").json()["versions"] == {"films": "films-2"}
            assert len(docids(before)) == 3
        answer = keyed.get("/v1/films/search?query=spy", headers=headers).json()
        assert [one["docid"] for one in answer["candidates"]] == ["films-2"]
        assert answer["generation"] == switched["generation"] != first
        assert switch("films-7")["generation"] == switched["generation"]
        for name in ("secret", "films-4", "films-6"):
            assert switch(name, 400) == f"films has no version {name!r}"
        assert switch("films-1/../secret", 400).startswith("an index is named by up to 64 letters")
        assert switch("films-3", 400) == "version films-3: films: not a Lucene index (it has no segments file)"
        assert switch("films-5", 400).startswith("version films-5: films: cannot be opened: ")
        with index._changing:
            assert switch("films-2", 409) == "films: another request is changing it; ask again when it is done"
        assert switch("films-2", 403, "reads-only") == NO_WRITE_KEY
        assert switch("films-2", 401, "wrong-key").startswith("Unauthorized")
        assert index.documents == 1
        (tmp_path / "new.jsonl").write_text('{"id": "n", "contents": "a spy"}')
        assert 'compneg_index_reloads_total{index="films"} 2.0' in keyed.get("/metrics").text
        update_index(tmp_path / "films-2", tmp_path / "new.jsonl")
        index.reload()  # unless the server has done this already, which looks for updates by itself
        assert index.documents == 2
        (tmp_path / "films-7").unlink()
        (tmp_path / "films-7").symlink_to(tmp_path / "secret")  # where no request could have switched it to
        with pytest.raises(InputError, match="films has no version 'films-7' any more"):
            index.reload()
        answer = keyed.delete("/v1/films/documents?docid=secret", headers=headers)
        said = "films: has no version 'films-7' any more; switch it to another one"
        assert (answer.status_code, answer.json()) == (409, {"error": said})
        assert index.documents == 2
        assert switch("films-1")["generation"] == first
    with make_client(tmp_path / "films-1", write_keys=[KEY]) as client:
        said = "films has no versions: the settings name none for it"
        assert switch("films-1", 400, client=client) == said
        assert client.get("/health").json()["versions"] == {}
    with make_client(tmp_path / "films-1", versions="films-*") as client:
        assert switch("films-2", 403, client=client) == NO_WRITE_KEY


def test_without_the_model_documents_match_by_their_words_alone(tmp_path):
    lines = [{"id": "d1", "contents": "Swiss films"}, {"id": "d2", "contents": "Switzerland"}]
    build_index(write_jsonl(tmp_path / "c.jsonl", *lines), tmp_path / "index", encoder="bm25+mini")
    found = []
    for weight in (None, 0):
        index = ServedIndex("films", ServedIndexSettings(path=str(tmp_path / "index"), model_weight=weight))
        with index.searcher() as searcher:
            found.append(searcher.matches("Swiss").total.value)
        index.close()
    assert found == [2, 1]
