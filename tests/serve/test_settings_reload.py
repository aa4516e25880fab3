import asyncio
import os
import signal
import threading
import time
from contextlib import asynccontextmanager, suppress

import film_index
import pytest
import served
from served import make_client

from pyserini_compneg.serve import settings_reload
from pyserini_compneg.serve.settings_reload import follow

SEARCH = "/v1/films/search?query=spy"
FIRST, SECOND = "first-long-key", "second-long-key"


def text(*keys, more=""):
    return f"indexes: {{films: somewhere}}\napi_keys: [{', '.join(keys)}]\n{more}"


def write(path, content):
    """Another file in the place of the old one, as a mounted secret and most editors do it."""
    path.with_name("new.yaml").write_text(content)
    os.replace(path.with_name("new.yaml"), path)


@pytest.fixture
def file(tmp_path):
    write(tmp_path / "server.yaml", text(FIRST, SECOND))
    return tmp_path / "server.yaml"


@pytest.fixture
def client(films):
    with make_client(films, FIRST, SECOND) as client:
        yield client


@asynccontextmanager
async def followed(file, client, asked=None):
    task = asyncio.create_task(follow(file, client.app, asked or asyncio.Event()))
    await asyncio.sleep(0.1)
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def statuses(client, **headers):
    return [client.get(SEARCH, headers={"X-API-Key": key, **headers}).status_code for key in (FIRST, SECOND)]


def writes(client):
    path = "/v1/films/documents"
    return [client.post(path, content="", headers={"X-API-Key": key}).status_code for key in (FIRST, SECOND)]


async def changed(client, wanted, asked=statuses):
    until = time.monotonic() + 30  # a busy machine is no fault of the server
    while (found := await asyncio.to_thread(asked, client)) != wanted and time.monotonic() < until:
        await asyncio.sleep(0.05)
    return found


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (text(SECOND), [401, 200]),
        (text(), [401, 401]),
        ("indexes: {films: somewhere}\n", [401, 401]),  # the server never begins to admit anybody
    ],
)
def test_a_removed_key_is_refused_and_an_added_one_admitted(client, file, content, wanted):
    async def run():
        async with followed(file, client):
            assert statuses(client) == [200, 200]
            write(file, content)
            assert await changed(client, wanted) == wanted
            write(file, text(FIRST, SECOND))
            assert await changed(client, [200, 200]) == [200, 200]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (text(FIRST, more=f"write_keys: [{SECOND}]\n"), [403, 400]),  # a key to read, and one to write
        (text(more=f"write_keys: [{SECOND}]\n"), [401, 400]),
        (text(SECOND), [401, 403]),
    ],
)
def test_write_keys_change_too(films, file, content, refused):
    """A write without a document gets 400 if the key may write."""

    async def run():
        async with followed(file, client):
            assert await changed(client, [400, 401], writes) == [400, 401]
            write(file, content)
            assert await changed(client, refused, writes) == refused
            write(file, text(more=f"write_keys: [{FIRST}]\n"))
            assert await changed(client, [400, 401], writes) == [400, 401]

    write(file, text(more=f"write_keys: [{FIRST}]\n"))
    with make_client(films, write_keys=[FIRST]) as client:
        asyncio.run(run())


@pytest.mark.parametrize(
    "content", ["indexes: [", "", text("short"), text(SECOND).replace("somewhere", "x" * 300), None]
)
def test_a_file_that_cannot_be_read_changes_nothing_until_it_can(client, file, content, caplog):
    async def run():
        asked = asyncio.Event()
        async with followed(file, client, asked):
            os.remove(file)
            if content is not None:
                write(file, content)
            asked.set()
            await asyncio.sleep(0.6)
            assert statuses(client) == [200, 200]
            write(file, text(FIRST))
            assert await changed(client, [200, 401]) == [200, 401]

    asyncio.run(run())
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert warning.endswith("; the keys and origins stay as they were")


def test_no_error_ends_the_reading(client, file, monkeypatch, caplog):
    read = settings_reload.read_server_settings

    def broken(path):
        monkeypatch.setattr(settings_reload, "read_server_settings", read)
        raise RuntimeError("no memory")

    async def run():
        async with followed(file, client):
            monkeypatch.setattr(settings_reload, "read_server_settings", broken)
            write(file, text(SECOND))
            await changed(client, [200, 200], lambda _: statuses(client) if caplog.records else None)
            write(file, text(FIRST))
            assert await changed(client, [200, 401]) == [200, 401]

    asyncio.run(run())
    said = f"{file}: RuntimeError('no memory'); the keys and origins stay as they were"
    assert said in [record.getMessage() for record in caplog.records]


def test_a_change_of_neither_size_nor_time_is_seen(client, file):
    async def run():
        file.write_text(text(FIRST))
        async with followed(file, client):
            assert await changed(client, [200, 401]) == [200, 401]
            before = file.stat()
            file.write_text(text("x" * len(FIRST)))
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert await changed(client, [401, 401]) == [401, 401]

    asyncio.run(run())


def test_a_change_in_place_and_what_needs_a_start_are_told(client, file, caplog):
    async def run():
        async with followed(file, client):
            file.write_text(text(SECOND, more="limits: {atoms: 5}\nallowed_origins: ['https://a.org']\n"))
            assert await changed(client, [401, 200]) == [401, 200]
            assert client.get("/health", headers={"Origin": "https://a.org"}).headers["access-control-allow-origin"]

    with caplog.at_level("INFO", "pyserini_compneg"):
        asyncio.run(run())
    said = [record.getMessage() for record in caplog.records if record.name.endswith("settings_reload")]
    assert said == [
        f"{file}: read again, api_keys: 1, write_keys: 0, copy_keys: 0, allowed_origins: 1",
        f"{file}: start the server again, so that its indexes and limits are those of the file",
    ]


@pytest.mark.parametrize("content", [text(FIRST, SECOND), text(SECOND, more=f"write_keys: [{FIRST}]\n")])
def test_removed_keys_stay_out_of_the_log(films, file, content, caplog):
    async def run():
        async with followed(file, client):
            assert await changed(client, [200, 200]) == [200, 200]
            write(file, text(SECOND))
            assert await changed(client, [401, 200]) == [401, 200]

    write(file, content)
    with make_client(films, SECOND) as client:
        asyncio.run(run())
        with caplog.at_level("INFO", "pyserini_compneg"):
            client.get(f"/v1/films/doc/{FIRST}", headers={"X-API-Key": SECOND})
    assert FIRST not in caplog.text


@pytest.mark.slow
def test_sighup_loses_no_request_and_does_not_end_the_server(tmp_path):
    folder, path = film_index.build(tmp_path), tmp_path / "server.yaml"
    content = text(FIRST, SECOND).replace("somewhere", str(folder))
    path.write_text(content)
    with served.serving("--config", path) as server:
        found, done = [], threading.Event()

        def search():
            while not done.is_set():
                found.append(server.get(SEARCH, **{"X-API-Key": SECOND})[0])

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        for keys in ((SECOND,), (FIRST, SECOND)) * 3:
            said = f"info: {path}: read again, api_keys: {len(keys)}, write_keys: 0, copy_keys: 0, allowed_origins: 0"
            before = server.log.count(said)
            path.write_text(text(*keys).replace("somewhere", str(folder)))
            for _ in range(600):  # the first reading, at the start, is not logged
                server.process.send_signal(signal.SIGHUP)
                time.sleep(0.1)
                if server.log.count(said) > before:
                    break
            assert server.log.count(said) > before
        done.set()
        for thread in threads:
            thread.join()
        assert server.get(SEARCH, **{"X-API-Key": FIRST})[0] == 200
        assert server.stop(signal.SIGTERM) == 143
    assert set(found) == {200}
