"""The files of an index, which a server with ``copy_keys`` sends, and servers whose indexes follow it."""

import logging
import shutil
import threading
import time
from contextlib import contextmanager
from urllib.parse import quote

import pytest
import uvicorn
from copied_index import KEY, content, writing
from served import make_client

from pyserini_compneg.commands.serve import main
from pyserini_compneg.index.copying import IndexCopy
from pyserini_compneg.index.index_folder import COPY_RECORD
from pyserini_compneg.serve import following
from pyserini_compneg.serve.following import first_copies
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.settings import Follows, ServedIndexSettings
from pyserini_compneg.support.staging import replace_folder

pytestmark = pytest.mark.slow

READS, WRITES = "key-of-reader", "key-of-writer"
FILES, DOCUMENTS = "/v1/films/files", "/v1/films/documents"
QUERIES = ("spy NOT comedy", "western", "spy AND new", "film")


@pytest.fixture
def folder(films, tmp_path):
    return shutil.copytree(films, tmp_path / "writer" / "index")


@pytest.fixture
def writer(folder):
    with make_client(folder, READS, write_keys=(WRITES,), copy_keys=(KEY,)) as client:
        yield client


def get(client, path=FILES, key=KEY, **headers):
    return client.get(path, headers={"X-API-Key": key, **headers} if key else headers)


def write(client, *texts):
    lines = "\n".join(f'{{"id": "n{number}", "contents": "{text}"}}' for number, text in enumerate(texts))
    answer = client.post(DOCUMENTS, content=lines, headers={"X-API-Key": WRITES})
    assert answer.status_code == 200, answer.text
    return answer.json()["generation"]


def found(client):
    return [get(client, f"/v1/films/search?query={query}").json() for query in QUERIES]


def test_the_list_has_the_files_of_the_commit(writer, folder):
    answer = get(writer)
    listed = answer.json()
    generation = writer.get("/health").json()["generations"]["films"]
    assert (listed["api"], listed["index"], listed["generation"]) == ("v1", "films", generation)
    assert {one["path"]: one["bytes"] for one in listed["files"]} == {
        path: len(data) for path, data in content(folder).items()
    }
    assert answer.headers["etag"] == f'"{generation}"'
    for tags in (f'"{generation}"', f'"other", W/"{generation}"'):
        same = get(writer, **{"If-None-Match": tags})
        assert (same.status_code, same.content) == (304, b"")
    assert get(writer, **{"If-None-Match": '"other"'}).json() == listed
    before = {one["path"] for one in listed["files"]}
    assert write(writer, "a new spy") == get(writer, **{"If-None-Match": f'"{generation}"'}).json()["generation"]
    (gone,) = before - {one["path"] for one in get(writer).json()["files"]}
    assert gone.startswith("segments_")
    assert (get(writer, f"{FILES}/{gone}").status_code, (folder / gone).exists()) == (404, False)


def test_files_are_sent_whole_and_in_ranges(writer, folder):
    for path, data in content(folder).items():
        answer = get(writer, f"{FILES}/{path}")
        assert (answer.status_code, answer.content) == (200, data)
    part = get(writer, f"{FILES}/{path}", Range=f"bytes={len(data) - 3}-")
    assert (part.status_code, part.content) == (206, data[-3:])
    assert part.headers["content-range"] == f"bytes {len(data) - 3}-{len(data) - 1}/{len(data)}"
    assert get(writer, f"{FILES}/{path}", Range=f"bytes={len(data)}-").status_code == 416


OTHERS = ("write.lock", "build.json", "..", "../films.jsonl", "x/../compneg.json", "./compneg.json", "/etc/passwd")
OTHERS += ("compneg.json\0", "compneg.json\n", "compneg.json/", "shard-00000-of-00001/_0.si", "", ".")


@pytest.mark.parametrize("path", OTHERS)
def test_nothing_else_is_sent(writer, folder, path):
    for name in ("write.lock", "build.json", "../films.jsonl"):
        (folder / name).write_text("{}")
    assert writer.app._backend.indexes["films"].file(path) is None
    if path:
        assert get(writer, f"{FILES}/{quote(path, safe='').replace('.', '%2e')}").status_code == 404


def test_only_copy_keys_copy(writer, films):
    for path in (FILES, f"{FILES}/compneg.json"):
        assert get(writer, path, None).status_code == 401
        assert get(writer, path, "unknown-key").status_code == 401
        for key in (READS, WRITES):
            answer = get(writer, path, key)
            said = "The files of an index are read only with one of the server's copy_keys"
            assert (answer.status_code, answer.json()) == (403, {"error": said})
    assert writer.post(DOCUMENTS, content="{}", headers={"X-API-Key": KEY}).status_code == 403
    assert get(writer, "/v1/films/search?query=spy").status_code == 200
    with make_client(films, copy_keys=(KEY,)) as open_server:
        assert open_server.get("/v1/films/search?query=spy").status_code == 200
        assert [get(open_server, FILES, key).status_code for key in (None, "unknown-key", KEY)] == [401, 403, 200]
    with make_client(films, READS, write_keys=(WRITES,)) as without:
        for path in (FILES, f"{FILES}/compneg.json"):
            assert [get(without, path, key).status_code for key in (READS, WRITES)] == [404, 404]
    with make_client(films, copy_keys=()) as nobody:
        assert [get(nobody, FILES, key).status_code for key in (None, KEY)] == [401, 403]


def test_copies_wait_for_no_search_and_the_log_has_no_key(writer, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "pyserini_compneg")
    monkeypatch.setattr(SearchPool, "is_full", True)
    assert get(writer).status_code == 200
    assert get(writer, f"{FILES}/compneg.json?key={KEY}").status_code == 200
    assert get(writer, "/v1/films/doc/files/x").status_code == 429
    assert KEY not in caplog.text


@contextmanager
def listening(app, port=0):
    """Runs a server in a thread. Gives its port."""
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def until(holds):
    end = time.monotonic() + 60
    while not (value := holds()) and time.monotonic() < end:
        time.sleep(0.02)
    assert value
    return value


def test_a_follower_answers_as_its_writer_and_says_how_far_it_is_behind(films, folder, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "pyserini_compneg")
    monkeypatch.setattr(following, "_SECONDS", 0.05)
    copy = tmp_path / "copy" / "films"
    serve = {"write_keys": (WRITES,), "copy_keys": (KEY,)}
    at_writer = make_client(folder, **serve)
    with listening(at_writer.app) as port:
        writer = Follows(url=f"http://127.0.0.1:{port}/v1/films", key=KEY)
        first_copies({"films": ServedIndexSettings(path=str(copy), follows=writer)})
        with make_client(copy, follows=writer, **serve) as follower:

            def state():
                return follower.get("/health").json()["follows"]["films"]

            for texts in (("a new spy",), ("a newer spy", "a western"), ("no film",)):
                generation = write(at_writer, *texts)
                until(lambda generation=generation: state() == {"generation": generation, "behind_seconds": 0.0})
                assert found(follower) == found(at_writer)
                assert content(copy) == content(folder)
            assert state()["generation"] == get(follower).json()["generation"]  # others may follow it in turn
            text = follower.get("/metrics").text
            assert 'compneg_index_behind_seconds{index="films"} 0.0' in text
            assert f'compneg_index_generation{{generation="{generation}",index="films"}} 1.0' in text
            assert text.count("compneg_index_generation{") == 1
            said = f"films is a copy, and is changed where it is written: {writer.url}"
            for method, path in (("POST", DOCUMENTS), ("DELETE", f"{DOCUMENTS}?docid=d1"), ("PUT", "/v1/films")):
                body = {"content": '{"index": "x"}'} if method != "DELETE" else {}
                answer = follower.request(method, path, headers={"X-API-Key": WRITES}, **body)
                assert (answer.status_code, answer.json()) == (409, {"error": said})
            health = follower.get("/health").json()
            assert (health["status"], health["degraded"]) == ("ok", {})
            older = shutil.copytree(films, tmp_path / "older")  # such as a backup
            shutil.copy(copy / COPY_RECORD, older)
            replace_folder(older, copy)
            until(lambda: content(copy) == content(folder))
            until(lambda: state() == {"generation": generation, "behind_seconds": 0.0})
            assert found(follower) == found(at_writer)
    with make_client(copy, follows=writer) as follower:
        index = follower.app._backend.indexes["films"]
        until(lambda: any("cannot be reached" in line for line in caplog.messages))
        warned = [line for line in caplog.messages if "cannot be reached" in line]
        assert warned == [
            f"index films: the copy that is there stays: {writer.url}: cannot be reached: connection refused"
        ]
        assert follower.get("/health").json()["follows"]["films"]["behind_seconds"] > 0
        assert found(follower)[0]["candidates"]
        index._equal_at -= 61
        health = follower.get("/health").json()
        said = "it has not been equal to the index that it follows for 60 s; the log says why"
        assert (health["status"], health["degraded"]) == ("degraded", {"films": said})
        assert 'compneg_index_degraded{index="films"} 1.0' in follower.get("/metrics").text
        with listening(make_client(folder, **serve).app, port):
            until(lambda: follower.get("/health").json()["status"] == "ok")
    assert KEY not in caplog.text


def test_a_copy_that_cannot_be_taken_is_tried_again_and_again_but_told_once(folder, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(following, "_SECONDS", 0.01)
    monkeypatch.setattr(following, "_MOST_SECONDS", 0.05)
    with writing(folder) as writer:
        copy = IndexCopy(writer.url, KEY, tmp_path / "copy")
        copy.take(copy.ask())
        with make_client(copy.target, follows=Follows(url=writer.url, key=KEY)) as follower:
            before = found(follower)
            writer.harm = lambda path, data: data[:-1] + b"x"
            with make_client(folder, write_keys=(WRITES,)) as at_writer:
                write(at_writer, "a new spy")
                asked = len(writer.requests)
                until(lambda: len(writer.requests) > asked + 20)
                assert found(follower) == before
                writer.harm = lambda path, data: data
                until(lambda: found(follower) == found(at_writer))
    warned = [line for line in caplog.messages if "stays" in line]
    assert len(warned) == len(set(warned))
    assert any("has not the listed bytes" in line for line in warned)


@pytest.mark.parametrize(
    ("key", "code", "said"),
    [
        (KEY, 1, "http://127.0.0.1:9/v1/films: cannot be reached: connection refused"),
        ("another-key", 2, "{url}: refuses: status 401, 'no such key'; give one of the writer's copy_keys"),
    ],
)
def test_a_first_copy_that_is_not_made(folder, tmp_path, capfd, key, code, said):
    with writing(folder) as writer:
        url = writer.url if "{url}" in said else "http://127.0.0.1:9/v1/films"
        settings = f"indexes: {{films: {{path: copies/films, follows: {{url: '{url}', key: {key}}}}}}}"
        (tmp_path / "server.yaml").write_text(settings)
        assert main(["--config", str(tmp_path / "server.yaml"), "--port", "0"]) == code
        assert capfd.readouterr().err == f"error: {said.format(url=url)}\n"
    assert not (tmp_path / "copies").exists()
