"""Pages of other origins that the settings allow: preflights, readable answers, and a page in a browser."""

import film_index
import pytest
import served
from local_server import Handler, serving

PAGE = "https://app.example.org"
OTHER = "https://other.example.org"
KEY = "a-long-key"
SEARCH = "/v1/films/search?query=spy"


def preflight(client, origin, path=SEARCH, method="GET"):
    return client.options(path, headers={"Origin": origin, "Access-Control-Request-Method": method})


def test_no_origin_is_allowed_by_default(client):
    for answer in (preflight(client, PAGE), client.get("/health", headers={"Origin": PAGE})):
        assert not {name for name in answer.headers if name.startswith("access-control")}
        assert "origin" not in answer.headers.get("vary", "")
    assert preflight(client, PAGE).status_code == 403


@pytest.mark.parametrize("path", [SEARCH, "/mcp", "/health", "/nowhere"])
def test_a_preflight_needs_no_key(new_client, path):
    with new_client(KEY, origins=(PAGE,)) as client:
        answer = preflight(client, PAGE, path, "POST")
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, PAGE)
        assert answer.headers["access-control-allow-methods"] == "*"
        assert answer.headers["access-control-allow-headers"] == "*, Authorization"
        refused = preflight(client, OTHER)
        assert refused.status_code == 401
        assert "access-control-allow-origin" not in refused.headers
        assert client.options(SEARCH, headers={"Origin": PAGE}).status_code == 401  # not by a browser


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (SEARCH, {"X-API-Key": KEY}, 200),
        ("/health", {}, 200),
        (SEARCH, {}, 401),
        (f"{SEARCH}&hits=x", {"X-API-Key": KEY}, 400),
        ("/v1/films/doc/none", {"X-API-Key": KEY}, 404),
        ("/nowhere", {}, 404),
    ],
)
def test_pages_read_answers_and_errors(new_client, path, headers, status):
    with new_client(KEY, origins=(PAGE, "http://localhost:3000")) as client:
        for origin in (PAGE, "http://localhost:3000", OTHER, "null"):
            answer = client.get(path, headers={"Origin": origin, **headers})
            allowed = None if origin in (OTHER, "null") else origin
            assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (status, allowed)
            assert "origin" in answer.headers["vary"]
            assert "access-control-allow-credentials" not in answer.headers


def test_without_keys_only_pages_of_allowed_origins_search(new_client):
    with new_client(origins=(PAGE,)) as client:
        for origin, status in ((PAGE, 200), (OTHER, 403), (f"{PAGE}.evil.example", 403)):
            sent = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
            assert client.get(SEARCH, headers=sent).status_code == status


ASK = """async (url) => {
    const headers = { "X-API-Key": "a-long-key" };
    const found = await fetch(url, { headers });
    const failed = await fetch(url + "&hits=x", { headers });
    const body = JSON.stringify({ query: "spy" });
    const posted = await fetch(url.split("?")[0], {
        method: "POST", body, headers: { ...headers, "Content-Type": "application/json" } });
    const writing = { headers: { "X-API-Key": "a-key-of-writer", "Content-Type": "application/jsonl" } };
    const documents = url.replace(/search.*/, "documents");
    const line = '{"id": "n1", "contents": "A new spy."}';
    const written = await fetch(documents, { ...writing, method: "POST", body: line });
    const deleted = await fetch(documents + "?docid=n1", { ...writing, method: "DELETE" });
    const switched = await fetch(url.replace(/.search.*/, ""), { ...writing, method: "PUT", body: '{"index": "x"}' });
    return [found.status, (await found.json()).candidates.length, found.headers.get("Server-Timing") !== null,
            failed.status, (await failed.json()).error, posted.status,
            (await written.json()).inserted, (await deleted.json()).deleted, (await switched.json()).error];
}"""


class _Page(Handler):
    def do_GET(self):  # noqa: N802  # the name is http.server's
        self.reply(200, b"<title>A page</title>", {"Content-Type": "text/html"})


@pytest.mark.slow
@pytest.mark.once
def test_a_page_of_another_origin_in_a_browser(browser, tmp_path):
    folder = film_index.build(tmp_path, store_raw=True)
    with serving(_Page) as allowed, serving(_Page) as other:
        settings = f"indexes: {{films: {folder}}}\napi_keys: [{KEY}]\nwrite_keys: [a-key-of-writer]\n"
        (tmp_path / "server.yaml").write_text(f"{settings}allowed_origins: ['http://localhost:{allowed}']\n")
        with served.serving("--config", tmp_path / "server.yaml") as server:
            page = browser.new_page()
            page.goto(f"http://localhost:{allowed}/")
            assert page.evaluate(ASK, f"{server.url}{SEARCH}") == [
                *(200, 3, True, 400),
                "hits: expected a whole number, got 'x'",
                *(200, 1, 1, "films has no versions: the settings name none for it"),
            ]
            page.goto(f"http://localhost:{other}/")
            assert (
                page.evaluate("(url) => fetch(url).catch((error) => error.name)", f"{server.url}/health") == "TypeError"
            )
            page.close()
