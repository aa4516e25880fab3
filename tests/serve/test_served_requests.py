import asyncio
import logging
import threading
from urllib.parse import unquote

import pytest

from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.serve import answers


def test_every_answer_has_the_headers(client):
    for path in ("/", "/v1/films/doc/d4", "/v1/films/doc/d9", "/nowhere", "/page/app.js", "/v1/films/search?query=<b>"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert headers["content-security-policy"].endswith("frame-ancestors 'none'")
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert headers["content-type"] == "application/json"


def test_stages_are_in_a_header_and_in_the_log(client, caplog):
    with caplog.at_level(logging.INFO, "pyserini_compneg"):
        answer = client.get("/v1/films/search?query=spy%0Afilms")
    stages = [one.partition(";")[0] for one in answer.headers["server-timing"].split(", ")]
    assert stages == ["queue", "read", "compose", "search", "count", "documents", "json"]
    (record,) = (record for record in caplog.records if record.name.endswith("gate"))
    assert record.getMessage().startswith("testclient GET /v1/films/search?query=spy%0Afilms 200 ")
    assert "\n" not in record.getMessage()
    assert record.progress["status"] == 200
    assert list(record.progress["stages"]) == stages


@pytest.mark.parametrize(
    "path",
    [
        "/v1/films/doc/d4",
        "/v1/films/search?query=spy&api_key=a-long-key",
        "/v1/films/search?query=spy&api_key=a-long%2Dk%65y",
        "/v1/films/doc/a-long-key",
        "/health?x=" + "y" * 495 + "a-long-key",
        "/v1/films/search?query=a-long-key",
    ],
)
@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "a-long-key"}, {"X-API-Key": "another-key"}])
def test_keys_are_not_in_the_log(new_client, caplog, path, headers):
    with caplog.at_level(logging.INFO, "pyserini_compneg"), new_client("a-long-key") as client:
        client.get(path, headers=headers)
        client.request("A-LONG-KEY".lower(), path)
    logged = unquote(f"{caplog.text}{[getattr(record, 'progress', {}) for record in caplog.records]}")
    assert "a-long-k" not in logged
    assert "films" in logged or "..." in logged or "health" in logged


def logged(caplog):
    return [record.progress for record in caplog.records if record.name.endswith("gate")]


@pytest.mark.parametrize("choice", ["no", "hash", "yes"])
def test_queries_are_in_the_log_on_demand(new_client, caplog, choice):
    paths = [f"/v1/films/search?query={query}" for query in ("spy%20film", "spy%20film", "western")]
    with caplog.at_level(logging.INFO, "pyserini_compneg"), new_client(log_queries=choice) as client:
        for path in paths:
            assert client.get(path).status_code == 200
        assert client.get("/v1/films/search?query=spy%20film&hits=x").status_code == 400
    first, second, other, failed = (line["query"] for line in logged(caplog))
    if choice == "yes":
        assert (first, second, other) == ("query=spy%20film", "query=spy%20film", "query=western")
    else:
        assert not any(word in caplog.text for word in ("spy", "western"))
        assert (first == second, first == other) == (True, choice == "no")
        assert failed == "..." if choice == "no" else len(first) == 16
    with new_client(log_queries=choice) as client:  # a hash cannot be looked up in another log
        caplog.clear()
        with caplog.at_level(logging.INFO, "pyserini_compneg"):
            client.get(paths[0])
    assert (logged(caplog)[0]["query"] == first) == (choice != "hash")


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ("a1b2-c3.d4:e5/f6+g7=h8@i9_", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("two words", False),
        ("-a", False),
        ('a"b', False),
        (b"\xe9", False),
        ("an-a-long-key", False),
        (None, False),
    ],
)
@pytest.mark.parametrize("path", ["/health", "/v1/films/search?query=spy", "/nowhere"])
def test_the_id_of_a_request_is_in_its_answer_and_in_the_log(new_client, caplog, given, is_taken, path):
    headers = {} if given is None else {"X-Request-ID": given}
    with caplog.at_level(logging.INFO, "pyserini_compneg"), new_client("a-long-key") as client:
        ids = [client.get(path, headers=headers).headers["x-request-id"] for _ in range(2)]
    assert [line["request_id"] for line in logged(caplog)] == ids
    assert f" request_id={ids[0]}" in caplog.text
    assert (ids == [given, given]) == is_taken
    assert is_taken or (len(set(ids)) == 2 and all(len(one) == 32 for one in ids))


@pytest.mark.parametrize("path", ["/health?x=a-longer-key", "/none?x=a-longer-key", "/v1/films/search?x=a-longer-key"])
def test_a_query_is_in_the_log_if_the_request_has_a_key(new_client, caplog, path):
    for keys, given, is_shown in (((), {}, True), ((KEY,), {}, False), ((KEY,), {"X-API-Key": KEY}, True)):
        caplog.clear()
        with caplog.at_level(logging.INFO, "pyserini_compneg"), new_client(*keys) as client:
            client.get(path, headers=given)
        assert ("a-longer-key" in caplog.text) == is_shown
        assert logged(caplog)[0]["query"] == ("x=a-longer-key" if is_shown else "...")


def test_a_key_is_no_place_in_a_trace(new_client, caplog):
    key = "4bf92f3577b34da6a3ce929d0e0e4736"
    with caplog.at_level(logging.INFO, "pyserini_compneg"), new_client(key) as client:
        client.get("/health", headers={"traceparent": f"00-{key}-00f067aa0ba902b7-01"})
    assert key not in caplog.text
    assert "traceparent" not in logged(caplog)[0]


@pytest.mark.parametrize(
    ("parent", "is_taken"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", True),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01", False),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", False),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", False),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", False),
        ("anything", False),
    ],
)
def test_the_log_has_the_place_of_a_request_in_a_trace(client, caplog, parent, is_taken):
    with caplog.at_level(logging.INFO, "pyserini_compneg"):
        client.get("/health", headers={"traceparent": parent})
    (line,) = logged(caplog)
    assert line.get("traceparent") == (parent if is_taken else None)
    assert (f" traceparent={parent}" in caplog.text) == is_taken


@pytest.mark.parametrize(
    ("headers", "post", "get"),
    [
        ({}, 200, 200),
        ({"Origin": "http://testserver"}, 200, 200),
        ({"Origin": "https://testserver"}, 200, 200),  # a proxy speaks TLS
        ({"Origin": "http://testserver.evil.example"}, 403, 403),
        ({"Origin": "http://testserver:3000"}, 403, 403),
        ({"Origin": "null"}, 403, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://behind.example"}, 200, 200),
        ({"Sec-Fetch-Site": "none"}, 200, 200),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://testserver"}, 403, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403, 200),  # a link to a search
        ({"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer a-long-key"}, 200, 200),
        ({"Content-Type": "text/plain"}, 415, 200),
        ({"Content-Type": "TEXT/plain; charset=utf-8"}, 415, 200),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415, 200),
        ({"Content-Type": "application/json; charset=utf-8"}, 200, 200),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 200, 200),  # that of curl -d
    ],
)
def test_pages_of_other_origins_do_not_search(client, headers, post, get):
    answer = client.post("/v1/films/search", content=b'{"query": "spy"}', headers=headers)
    assert answer.status_code == post, answer.text
    assert answer.json().keys() <= {"error"} or post == 200
    assert client.get("/v1/films/search?query=spy", headers=headers).status_code == get
    assert client.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "location"),
    [("/v1/films/search/?query=spy", "/v1/films/search?query=spy"), ("/page", "/page/"), ("/health/", "/health")],
)
def test_redirections_do_not_follow_the_host(client, path, location):
    answer = client.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, location)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8081", 200),
        ("LOCALHOST", 200),
        ("localhost:8081@evil.example", 421),
        ("[::1]:8081", 200),
        ("evil.example", 421),
        ("evil.example:8081", 421),
    ],
)
def test_a_local_server_answers_to_its_names_only(new_client, host, status):
    with new_client(hosts=("localhost", "[::1]")) as client:
        assert client.get("/health", headers={"Host": host}).status_code == status


def test_what_fails_inside_says_nothing_of_it(client, monkeypatch):
    def fail(*_):
        raise OSError("/secret/path: broken")

    monkeypatch.setattr(answers, "document_answer", fail)
    answer = client.get("/v1/films/doc/d4")
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal server error"})


def test_a_path_that_ends_with_a_line_feed(client):
    assert client.get("/v1/films/doc/d4").status_code == client.head("/health").status_code == 200
    for path in ("/v1/films/doc/d4%0a", "/v1/films/search%0a?query=spy"):
        assert client.get(path).status_code == 404


def test_a_large_body_is_refused_whatever_the_method(client):
    body = b"x" * 1_500_000
    for method in ("GET", "POST", "PUT"):
        assert client.request(method, "/v1/films/search?query=spy", content=body).status_code == 413
    without_length = {"GET": (200, 413), "POST": (413,), "PUT": (405,)}  # a GET may be answered before its body is read
    for method, statuses in without_length.items():
        answer = client.request(method, "/v1/films/search?query=spy", content=iter([body]))
        assert answer.status_code in statuses


def test_too_many_and_too_slow(new_client, monkeypatch):
    answer_at_once, go_on = answers.document_answer, threading.Event()

    def slow(*asked):
        while not go_on.is_set():
            check_cancelled()
        return answer_at_once(*asked)

    monkeypatch.setattr(answers, "document_answer", slow)
    with new_client(timeout=0.05) as client:
        answer = client.get("/v1/films/doc/d4")
        assert answer.status_code == 504
        assert answer.json()["error"].startswith("the search took longer than the limit of 0.05 seconds")
    with new_client(threads=1, queue=0, timeout=60) as client:
        first = threading.Thread(target=client.get, args=("/v1/films/doc/d4",))
        first.start()
        while client.get("/metrics").text.count("compneg_searches_running 1.0") == 0:
            asyncio.run(asyncio.sleep(0.01))
        refused = client.get("/v1/films/doc/d4")
        go_on.set()
        first.join()
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json() == {"error": "Too many searches are waiting; try again in a second"}


@pytest.mark.parametrize(
    ("method", "path", "first"),
    [
        ("GET", "/v1/films/doc/d4", {}),
        ("POST", "/v1/films/search", {"body": b"{", "more_body": True}),  # it leaves while it sends
    ],
)
def test_a_request_ends_when_its_client_goes(new_client, monkeypatch, caplog, method, path, first):
    def slow(*_):
        while True:
            check_cancelled()

    async def ask(app):
        scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
        messages = [{"type": "http.request", **first}, {"type": "http.disconnect"}]

        async def receive():
            return messages.pop(0)

        async def send(_):
            pass

        await app(scope, receive, send)

    monkeypatch.setattr(answers, "document_answer", slow)
    with caplog.at_level(logging.INFO, "pyserini_compneg"), new_client(timeout=60) as client:
        client.portal.call(ask, client.app)
    (record,) = (record for record in caplog.records if record.name.endswith("gate"))
    assert record.progress["status"] == 499


KEY = "a-long-key"


@pytest.mark.parametrize(
    ("headers", "is_admitted"),
    [
        ([("Authorization", f"Bearer {KEY}")], True),
        ([("X-API-Key", "another-key")], True),
        ([("X-API-Key", f" {KEY} ")], True),
        ([("X-API-Key", "wrong"), ("Authorization", f"bearer {KEY}")], True),
        ([], False),
        ([("X-API-Key", "a-long-ke")], False),
        ([("X-API-Key", f"{KEY}2")], False),
        ([("X-API-Key", "")], False),
        ([("Authorization", f"Basic {KEY}")], False),
        ([("X-API-Key", b"\xe9" * 10)], False),
    ],
)
def test_keys(new_client, headers, is_admitted):
    with new_client(KEY, "another-key") as client:
        answer = client.get("/v1/films/search?query=spy", headers=headers)
        assert answer.status_code == (200 if is_admitted else 401)
        if not is_admitted:
            said = "Unauthorized: send an API key as X-API-Key, or as Authorization: Bearer"
            assert (answer.json(), answer.headers["www-authenticate"]) == ({"error": said}, "Bearer")
        assert client.get("/").status_code == 200
