"""Requests that add and delete documents."""

import gzip
import json
import logging
import lzma
import shutil
import threading

import film_index
import pytest
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.index import build_index, build_sharded_index
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.settings import Limits
from pyserini_compneg.support.staging import locked

READS, WRITES = "key-of-reader", "key-of-writer"
PATH = "/v1/films/documents"
DOCUMENT = b'{"id": "n1", "contents": "spy"}'


@pytest.fixture
def folder(films, tmp_path):
    return shutil.copytree(films, tmp_path / "index")


@pytest.fixture
def client(folder):
    with make_client(folder, READS, write_keys=[WRITES], limits=Limits(body_bytes=10_000)) as client:
        client.headers["X-API-Key"] = WRITES
        yield client


def lines(*documents):
    return "\n".join(json.dumps(document) for document in documents)


def found(client, query="spy"):
    answer = client.get("/v1/films/search", params={"query": query}).json()
    return {one["docid"] for one in answer["candidates"]}, answer["generation"]


def test_documents_are_found_as_soon_as_they_are_answered(client, folder, caplog):
    """A line of the log says what was written, and is no note of the answer."""
    caplog.set_level(logging.INFO, "pyserini_compneg")
    before = found(client)
    changes = lines({"id": "n1", "contents": "A new spy."}, {"id": "d1", "contents": "A farce."})
    answer = client.post(PATH, content=changes, headers={"Content-Type": "application/x-ndjson"}).json()
    generation = answer.pop("generation")
    counts = {"inserted": 1, "replaced": 1, "unchanged": 0, "deleted": 0, "not_found": 0}
    assert answer == {"api": "v1", "index": "films", "documents": 7, **counts}
    assert found(client) == ({"n1", "d2", "d3"}, generation)
    assert generation != before[1]
    again = client.post(PATH, content=changes).json()
    assert again == {**answer, "generation": generation, "inserted": 0, "replaced": 0, "unchanged": 2}
    assert [one for one in caplog.messages if one.startswith("index films: ")] == [
        "index films: 2 documents written, 0 deleted",
        "index films: 0 documents written, 0 deleted",
    ]
    answer = client.delete(PATH, params={"docid": ["n1", "d2", "none"]}).json()
    assert (answer["deleted"], answer["not_found"], answer["documents"]) == (2, 1, 5)
    assert found(client)[0] == {"d3"}
    assert 'compneg_index_reloads_total{index="films"} 2.0' in client.get("/metrics").text
    with SignedImpactSearcher(folder) as searcher:
        assert [hit.docid for hit in searcher.search("spy")] == ["d3"]


def test_only_a_write_key_writes(client, films):
    said = {"error": "An index is changed only with one of the server's write_keys"}
    requests = (("POST", PATH), ("DELETE", f"{PATH}?docid=d1"), ("PUT", "/v1/films"))
    for method, path in requests:
        answer = client.request(method, path, headers={"X-API-Key": READS})
        assert (answer.status_code, answer.json()) == (403, said)
        assert client.request(method, path, headers={"X-API-Key": "another-key"}).status_code == 401
    with make_client(films) as open_server:
        for method, path in requests:
            answer = open_server.request(method, path, headers={"X-API-Key": WRITES})
            assert (answer.status_code, answer.json()) == (403, said)
    assert found(client)[0] == {"d1", "d2", "d3"}


def test_with_write_keys_alone_anyone_searches(folder):
    with make_client(folder, write_keys=[WRITES]) as client:
        assert found(client)[0] == {"d1", "d2", "d3"}
        assert client.delete(f"{PATH}?docid=d1").status_code == 403
        assert client.delete(f"{PATH}?docid=d1", headers={"Authorization": f"Bearer {WRITES}"}).status_code == 200


def commit(folder):
    """What Lucene opens: the newest list of segments, and the files that it names are never changed."""
    return {file.name: file.read_bytes() for file in folder.glob("segments_*")}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"id": "n1", "contents": "spy"}\n\n{"id": "n2"}', "documents:3: "),
        ('{"id": "n1", "contents": "spy"}\n{"id": "n2", "contents": "spy"', "documents:2: "),
        (
            '{"id": "n1", "contents": "spy"}\n{"id": "n1", "contents": "spy"}',
            "documents:2: the id 'n1' was given before",
        ),
        (b'{"id": "n1", "contents": "\xff"}', "documents:1: "),
        ("", "documents: no documents"),
        (gzip.compress(DOCUMENT, mtime=0), "documents: compressed as gzip, expected JSON Lines; unpack it"),
        (lzma.compress(DOCUMENT), "documents: compressed as xz, expected JSON Lines; unpack it"),
        (gzip.compress(DOCUMENT, mtime=0)[:9], "documents: compressed as gzip, expected JSON Lines; unpack it"),
        (b"PAR1\0\0", "documents: parquet data, no text; "),
        (DOCUMENT.replace(b" ", b"\r"), "documents:1: lines end in carriage returns alone; "),
    ],
)
def test_a_bad_line_leaves_the_index_as_it_was(client, folder, body, said):
    before = found(client), commit(folder)
    answer = client.post(PATH, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(said)
    assert (found(client), commit(folder)) == before


def test_other_requests_that_are_refused(client, films):
    everything = client.delete(PATH, params={"docid": sorted(film_index.FILMS)})
    said = "films: the update would leave no document with a term"
    assert (everything.status_code, everything.json()["error"]) == (400, said)
    assert client.post(PATH, content="x" * 10_001).status_code == 413
    assert client.post(PATH, content="x", headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.delete(PATH).json() == {"error": "the key 'docid' is missing"}
    assert client.delete(f"{PATH}?docid=d1&other=1").json()["error"].startswith("unknown key 'other'")
    assert client.post("/v1/none/documents", content="x").json()["error"].startswith("Unable to open index: none")
    assert found(client)[0] == {"d1", "d2", "d3"}


def test_a_note_on_a_body_names_no_path(client):
    answer = client.post(PATH, content=lines({"title": "n1", "text": "spy"})).json()
    assert answer["notes"] == ["documents: documents have no ids, so their titles are their ids"]


def test_searches_that_wait_refuse_no_write(client, monkeypatch):
    monkeypatch.setattr(SearchPool, "is_full", property(lambda _: True))
    assert client.get("/v1/films/search?query=spy").status_code == 429
    assert client.post("/v1/films/search", json={"query": "spy"}).status_code == 429
    assert client.post(PATH, content=lines({"id": "n1", "contents": "spy"})).status_code == 200
    assert client.delete(f"{PATH}?docid=n1").status_code == 200
    assert client.put("/v1/films", json={"index": "films-2"}).json()["error"].startswith("films has no versions")


def test_one_writer_at_a_time(client, folder):
    document = lines({"id": "n1", "contents": "spy"})
    with locked(folder, "x"):
        answer = client.post(PATH, content=document)
    said = "films: another process is updating or building it; wait for it"
    assert (answer.status_code, answer.json()) == (409, {"error": said})
    with client.app._backend.indexes["films"]._changing:
        answer = client.post(PATH, content=document)
    said = "films: another request is changing it; ask again when it is done"
    assert (answer.status_code, answer.json()) == (409, {"error": said})
    assert client.post(PATH, content=document).status_code == 200


def test_writers_and_searchers_together(client):
    """Each write is whole, refused, or not begun; no search fails."""
    answers, done, failures = [], threading.Event(), []

    def write(number):
        documents = [{"id": f"{number}-{one}", "contents": "a spy"} for one in range(3)]
        answers.append((number, client.post(PATH, content=lines(*documents)).status_code))

    def search():
        while not done.is_set():
            docids, _ = found(client)
            by_writer = [sum(docid.startswith(f"{number}-") for docid in docids) for number in range(4)]
            failures.extend(count for count in by_writer if count not in (0, 3))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    searching = threading.Thread(target=search)
    for thread in (searching, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    searching.join()
    assert failures == []
    assert {status for _, status in answers} <= {200, 409}
    written = {f"{number}-{one}" for number, status in answers if status == 200 for one in range(3)}
    answer = client.get("/v1/films/search", params={"query": "spy", "hits": 100}).json()
    assert {one["docid"] for one in answer["candidates"]} == written | {"d1", "d2", "d3"}


def test_shards_and_filter_fields(tmp_path):
    films = ({"id": f"d{number}", "contents": "a spy", "year": number} for number in range(1960, 1964))
    collection = write_jsonl(tmp_path / "films.jsonl", *films)
    build_sharded_index(collection, tmp_path / "index", 2, filter_fields=["year"], store_raw=True)
    with make_client(tmp_path / "index", write_keys=[WRITES]) as client:
        client.headers["X-API-Key"] = WRITES
        answer = client.post(PATH, content=lines({"id": "n", "contents": "a spy", "year": 1999}))
        assert answer.json()["documents"] == 5
        answer = client.get("/v1/films/search?query=spy&filter=year>1990").json()
        assert [one["docid"] for one in answer["candidates"]] == ["n"]


def test_an_index_of_a_model_encodes_new_documents(tmp_path):
    collection = write_jsonl(tmp_path / "c.jsonl", {"id": "d1", "contents": "horses"})
    build_index(collection, tmp_path / "index", encoder="bm25+mini")
    with make_client(tmp_path / "index", write_keys=[WRITES]) as client:
        client.headers["X-API-Key"] = WRITES
        assert client.post(PATH, content=lines({"id": "d2", "contents": "Swiss films"})).json()["inserted"] == 1
        answer = client.get("/v1/films/search?query=Switzerland").json()  # which no document contains
        assert answer["candidates"][0]["docid"] == "d2"
