"""Clients that are slow, silent, many, or speak no HTTP; all on the loopback, in a server of this process."""

import json
import logging
import selectors
import socket
import threading
import time
from contextlib import contextmanager, suppress
from urllib.request import urlopen

import pytest
import uvicorn
from served import make_client

from pyserini_compneg.serve.connections import Connections, protocol

DEADLINE = 60
HEAD = b"POST /v1/films/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n"


@pytest.fixture(scope="module")
def app(films):
    return make_client(films).app


@contextmanager
def running(app, connections):
    listening = socket.create_server(("127.0.0.1", 0))
    options = {"ws": "none", "lifespan": "off", "log_config": None, "log_level": "warning"}
    server = uvicorn.Server(uvicorn.Config(app, http=protocol(connections), **options))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(DEADLINE)


@pytest.fixture(scope="module")
def patient(app):
    with running(app, Connections(50, 600.0)) as port:
        yield port


def health(port):
    with urlopen(f"http://127.0.0.1:{port}/health", timeout=DEADLINE) as answer:
        return json.load(answer)["status"]


def connect(port, sent=b""):
    client = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
    client.sendall(sent)
    return client


def wait_until_closed(clients, least, meanwhile=lambda client: None):
    """Waits until the server has closed so many; ``meanwhile`` is done with the others again and again."""
    selector, until = selectors.DefaultSelector(), time.monotonic() + DEADLINE
    for client in clients:
        selector.register(client, selectors.EVENT_READ)
    closed = 0
    while closed < least:
        assert time.monotonic() < until, f"only {closed} of {len(clients)} were closed"
        for key, _ in selector.select(0.1):
            try:
                ended = not key.fileobj.recv(4096)
            except OSError:
                ended = True
            if ended:
                selector.unregister(key.fileobj)
                closed += 1
        for key in list(selector.get_map().values()):
            with suppress(OSError):  # it is found closed next
                meanwhile(key.fileobj)
    return closed


KINDS = {
    "nothing": b"",
    "half a head": HEAD,
    "half a body": HEAD + b'\r\n{"query": ',
    "an answer, then half a head": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
    "a body that nobody reads": b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\nhalf",
}


@pytest.mark.slow
def test_half_requests_keep_nobody_waiting_and_are_closed(app, caplog):
    with running(app, Connections(1000, 1.0)) as port, caplog.at_level(logging.INFO, "pyserini_compneg"):
        clients = [connect(port, sent) for sent in KINDS.values() for _ in range(60)]
        assert health(port) == "ok"

        def drip(client):
            if client in dripping:
                client.send(b"x")

        dripping = set(clients[60:])
        assert wait_until_closed(clients, len(clients), drip) == len(clients)
        assert health(port) == "ok"
        while not (lines := [one.getMessage() for one in caplog.records if one.name.endswith("connections")]):
            time.sleep(0.05)
    assert all("sent no whole request in time" in line for line in lines)
    assert len(lines) < 30
    assert "Traceback" not in caplog.text


def test_beyond_the_bound_the_one_that_waits_longest_makes_room(app):
    with running(app, Connections(50, 600.0)) as port:
        clients = [connect(port, sent) for sent in reversed(KINDS.values()) for _ in range(60)]
        for _ in range(3):
            assert health(port) == "ok"
        wait_until_closed(clients, 250)
        assert health(port) == "ok"  # whoever was being answered waits by now
        silent = connect(port)
        newer = [connect(port) for _ in range(40)]
        assert health(port) == "ok"
        with pytest.raises(BlockingIOError):
            silent.setblocking(False)
            silent.recv(1)
        newer += [connect(port) for _ in range(20)]
        assert wait_until_closed([silent], 1) == 1


def test_a_client_that_does_not_read_its_answers_is_closed(app):
    with running(app, Connections(50, 0.5)) as port:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.settimeout(DEADLINE)
        with pytest.raises(OSError):
            while True:  # of 30 KB each
                client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"garbage\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # TLS
        (b"GET /health HTTP/1.1\r\n\r\n", 400),  # no host
        (b"GET /caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", 400),
        (b"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v1/films/search HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 200_000, 431),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        (b"GET http://a/health HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        (b"BREW /health HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    ],
)
def test_what_is_no_http_is_answered_and_told_in_a_line(patient, caplog, sent, status):
    with caplog.at_level(logging.INFO, "pyserini_compneg"):
        client = connect(patient, sent)
        answer = client.recv(65536)
        while b"}" not in answer and (more := client.recv(65536)):
            answer += more
        assert health(patient) == "ok"
        known = 3 if b"chunked" in sent else 2  # the request, that its body is broken, and the question for the health
        until = time.monotonic() + DEADLINE
        while len(lines := logged(caplog)) < known and time.monotonic() < until:
            time.sleep(0.01)
    assert int(answer.split()[1]) == status
    assert b'{"error": "' in answer or b'{"error":"' in answer or status == 200
    assert len(lines) == known, [record.getMessage() for record in lines]
    assert not any(record.exc_info for record in lines)


def logged(caplog):
    return [one for one in caplog.records if one.name.startswith(("uvicorn", "pyserini", "asyncio"))]
