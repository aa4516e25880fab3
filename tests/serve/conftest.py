"""A server in this process, on a small index of films; and a browser that shows the page of another server."""

import os
import shutil

import film_index
import page_server
import pytest
import served
from served import make_client


@pytest.fixture(scope="session")
def films(tmp_path_factory):
    return film_index.build(tmp_path_factory.mktemp("served"), store_raw=True)


@pytest.fixture(scope="module")
def client(films):
    with make_client(films) as client:
        yield client


@pytest.fixture
def new_client(films):
    return lambda *keys, **options: make_client(films, *keys, **options)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server whose page is shown, with the indexes of ``page_server``."""
    with served.serving("--index", *page_server.build_indexes(tmp_path_factory.mktemp("page"))) as server:
        yield server


@pytest.fixture(scope="module")  # its event loop would disturb the tests of other modules
def browser():
    sync_api = served.tool("playwright.sync_api", "the browser is steered by playwright")
    served.tool("axe_playwright_python", "accessibility is checked by axe-core")
    path = shutil.which("chromium")
    if path is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=page_server.FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser, server):
    """Opens the page, and waits for answers; at the end no other server was asked, and no script has failed."""
    contexts, outside, faults = [], [], []

    def open_page(path="/", url=None, waits=True, **options):
        contexts.append(context := browser.new_context(**options))
        context.set_default_timeout(120_000)  # a busy machine is no fault of the page
        page = context.new_page()
        base = url or server.url
        page.on("request", lambda request: request.url.startswith((base, "data:")) or outside.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
        page.goto(base + path)
        if waits and "query=" in path:
            page_server.settled(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert (outside, faults) == ([], [])
