"""The page, in a browser. COMPNEG_SCREENSHOTS names the folder for the pictures of the README."""

import json
import os
import re
import shutil
import signal
from importlib import resources
from pathlib import Path

import pytest
import served
from json_lines import write_jsonl

from pyserini_compneg import SignedImpactSearcher, decompose
from pyserini_compneg.commands.demo import ENCODER, VECTORS
from pyserini_compneg.index import build_index

sync_api = served.tool("playwright.sync_api", "the browser is steered by playwright")
served.tool("axe_playwright_python", "accessibility is checked by axe-core")

pytestmark = pytest.mark.slow

WORDS = "French or Italian comedies, but not musicals"
AXE = resources.files("axe_playwright_python") / "axe.min.js"
FLAGS = [f"--{flag}" for flag in ("no-sandbox", "disable-gpu", "disable-background-networking", "disable-sync")]
HOSTILE = {
    "title": "<img src=x onerror=alert(1)>",
    "text": "<script>alert(2)</script> spy \u202eevil\u202c \x1b[31mred &lt;b&gt; javascript:alert(3)",
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "sample"
    build_index(VECTORS, folder, encoder=ENCODER, store_raw=True)
    return folder


@pytest.fixture(scope="module")
def server(sample, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    lines = [{"id": "<b>1</b>", **HOSTILE}, {"id": "x/y?z#1", "title": "spy " * 100, "text": "spy" * 2000}]
    lines.append({"id": "emoji", "title": "On 😀 spy", "text": "one two three four five 😀😀 <b>Spy</b> & U.S. evil"})
    passages = {"words": 5, "overlap": 0}
    build_index(write_jsonl(folder / "hostile.jsonl", *lines), folder / "hostile", store_raw=True, passages=passages)
    films = [
        {"id": f"d{year}", "text": f"spy {year}", "year": year, "genre": "war, spy" if year < 1965 else "comedy"}
        for year in range(1950, 1970)
    ]
    dated = write_jsonl(folder / "dated.jsonl", *films)
    build_index(dated, folder / "dated", store_raw=True, filter_fields=["year", "genre"])
    german = write_jsonl(folder / "german.jsonl", {"id": "haus", "contents": "Alte Häuser am See"})
    build_index(german, folder / "german", store_raw=True, bm25={"language": "de"})
    folders = [folder / name for name in ("hostile", "dated", "german")]
    with served.serving("--index", f"sample={sample}", *folders) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium")
    if path is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
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
            settled(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert (outside, faults) == ([], [])


def ask(page, text):
    page.fill("#query", text)
    page.press("#query", "Enter")
    settled(page)


def settled(page):
    page.wait_for_selector("#results[aria-busy=false]", state="attached")


def titles(page, within="#results section:first-child"):
    return page.locator(f"{within} .hit h3").all_inner_texts()


def docids(page):
    return page.locator("#results section:first-child .hit .docid bdi").all_inner_texts()


def violations(page):
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [(one["id"], [node["html"][:80] for node in one["nodes"]]) for one in found]


def picture(page, name, **options):
    if folder := os.environ.get("COMPNEG_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / name, **options)


def test_plain_words_are_read_and_a_click_changes_a_role(new_page, sample):
    page = new_page()
    assert page.is_visible("#empty")
    ask(page, WORDS)
    assert page.is_hidden("#empty")
    with SignedImpactSearcher(sample) as searcher:
        assert docids(page) == [hit.docid for hit in searcher.search(decompose(WORDS), 10)]
    assert page.inner_text("#reading code") == "(French comedies OR Italian comedies) NOT musicals"
    roles = ["wanted", "or", "wanted", "shared", "not used", "not used", "excluded"]
    assert page.locator(".word small").all_text_contents() == roles
    assert page.inner_text("#operators-used") == "Operators: dismax · disentangled · damped 0.5"
    picture(page, "reading.png")
    before = docids(page)
    page.get_by_role("button", name="Italian: wanted. Change its role").click()
    settled(page)
    assert page.inner_text("#reading code") == "French comedies NOT (Italian OR musicals)"
    assert docids(page) != before
    assert page.evaluate("document.activeElement.textContent").startswith("Italian")
    page.go_back()
    settled(page)
    assert docids(page) == before


def test_hits_of_and_say_what_they_lack(new_page, sample):
    page = new_page("/?query=spy films AND western films&read=expression")
    with SignedImpactSearcher(sample) as searcher:
        lacking = searcher.lacking("spy films AND western films", docids(page))
    assert len(set(lacking)) > 1
    shown = [hit.locator(".lacks").all_inner_texts() for hit in page.locator("#results .hit").all()]
    assert shown == [[f"lacks {name}" for name in names] for names in lacking]
    assert violations(page) == []


def test_an_index_of_another_language_takes_expressions(new_page):
    page = new_page("/?index=german&query=Haus", waits=False)
    settled(page)
    assert docids(page) == ["haus"]
    assert page.input_value("#read") == "expression"
    assert page.locator("#read option:disabled").all_inner_texts() == ["plain words"]
    page.select_option("#index", "sample")
    settled(page)
    assert not page.locator("#read option:disabled").count()


def test_an_expression_is_edited_further(new_page):
    page = new_page()
    ask(page, "spy films other than comedies")
    page.get_by_role("button", name="Edit it").click()
    assert page.input_value("#query") == "spy films NOT comedies"
    assert page.input_value("#read") == "expression"
    settled(page)
    assert page.is_hidden("#reading")


def test_operators_work_at_once_and_two_settings_are_compared(new_page, sample):
    query = "spy films AND comedies NOT animated films"
    page = new_page(f"/?query={query}&read=expression")
    page.check("#compare")
    page.select_option("[name='b.intersection']", "addition")
    page.wait_for_selector("#results section:nth-child(2) .moved")
    settled(page)
    picture(page, "compare.png")
    left, right = titles(page), titles(page, "#results section:nth-child(2)")
    assert left != right
    heads = page.locator("#results h2").all_inner_texts()
    assert heads == ["dismax · disentangled · damped 0.5", "dismax · addition · damped 0.5"]
    for hit in page.locator("#results section:nth-child(2) .hit").all():
        title, shown = hit.locator("h3").inner_text(), hit.locator("header").inner_text()
        rank = int(hit.locator(".rank").inner_text())
        if title not in left:
            assert "new" in shown
        elif left.index(title) + 1 != rank:
            assert f"{'▲' if left.index(title) + 1 > rank else '▼'} {abs(left.index(title) + 1 - rank)}" in shown
    assert violations(page) == []


def test_what_two_hits_differ_in_adds_up(new_page):
    page = new_page("/?query=1940s war films NOT thriller films&read=expression")
    page.locator(".hit .docid input").nth(0).check()
    settled(page)
    page.locator(".hit .docid input").nth(1).check()
    page.wait_for_selector("#difference:not([hidden])")
    rows = [
        [cell.replace("−", "-") for cell in row.locator("td.number").all_inner_texts()]
        for row in page.locator("#difference tbody tr").all()
    ]
    *parts, total = [[float(cell) for cell in row] for row in rows]
    for column in range(3):
        assert sum(part[column] for part in parts) == pytest.approx(total[column], abs=0.1)
    page.locator("#difference").scroll_into_view_if_needed()
    picture(page, "difference.png")


def test_a_link_shows_what_its_sender_saw(new_page):
    page = new_page()
    ask(page, "spy films other than comedies")
    page.click("#operators-used")
    page.select_option("[name='a.difference']", "subtraction")
    page.fill("[name='a.difference_weight']", "0.5")
    settled(page)
    assert "difference_weight=0.5" in page.url
    other = new_page("/?" + page.url.partition("?")[2])
    assert docids(other) == docids(page)
    for name in ("a.difference", "a.difference_weight"):
        assert other.input_value(f"[name='{name}']") == page.input_value(f"[name='{name}']")
    assert "subtraction" in other.url


def test_a_filter_is_offered_where_there_are_fields_and_lives_in_the_link(new_page, server):
    page = new_page("/?query=spy&read=expression&index=dated&hits=50")
    assert len(docids(page)) == 20
    page.get_by_label("Filter").fill("year=1960..1962, genre=war, spy, year=1950")
    page.get_by_label("Filter").press("Enter")
    sync_api.expect(page.locator(".hit")).to_have_count(4)
    settled(page)
    assert sorted(docids(page)) == ["d1950", "d1960", "d1961", "d1962"]
    assert violations(page) == []
    chosen = page.locator("#facets button[aria-pressed=true]")
    assert chosen.all_inner_texts() == ["1950 1", "1960..1962", "war, spy 4"]
    link = "/?" + page.url.partition("?")[2]
    other = new_page(link)
    assert docids(other) == docids(page)
    assert other.get_by_label("Filter").input_value() == "year=1960..1962, genre=war, spy, year=1950"
    for place in (0, 1):
        other.locator(".hit .docid input").nth(place).check()
        settled(other)
    other.wait_for_selector("#difference:not([hidden])")
    assert "rank 2" in other.inner_text("#difference")
    other.click("#program summary")
    shell, python, composed = other.locator("#program pre").all_inner_texts()
    path = re.fullmatch(r"curl 'http://[^/]+(/.*)'", shell)[1]
    assert [one["docid"] for one in server.get(path)[1]["candidates"]] == docids(page)
    fields = {"year": ["1960..1962", "1950"], "genre": ["war, spy"]}
    assert f"filter={json.dumps(fields, separators=(',', ':'))}" in python
    assert json.loads(composed)["filter"] == {"year": ["1950", "1960..1962"], "genre": ["war, spy"]}
    page.go_back()
    sync_api.expect(page.locator(".hit")).to_have_count(20)
    page.select_option("#index", "sample")
    settled(page)
    assert page.is_hidden("#filter")
    refused = new_page("/?query=spy&read=expression&index=sample&filter=year%3D1950", waits=False)
    refused.wait_for_selector("#error pre")
    assert "has no filter fields" in refused.inner_text("#error pre")
    refused.fill("#filter", "")
    refused.press("#filter", "Enter")
    refused.wait_for_selector(".hit")


def test_pages_and_values_of_fields(new_page):
    page = new_page("/?query=spy&read=expression&index=dated", viewport={"width": 768, "height": 900})
    assert page.inner_text("#status").startswith("10 hits of 20 in ")
    assert page.locator("#facets dt").all_inner_texts() == ["genre"]  # each year has one document, which tells nothing
    first = docids(page)
    page.locator(".hit .docid input").nth(0).check()
    page.get_by_role("button", name="More hits").press("Enter")
    sync_api.expect(page.locator(".hit")).to_have_count(20)
    assert page.evaluate("document.activeElement.closest('.hit').querySelector('.rank').textContent") == "11"
    assert docids(page)[:10] == first and len(set(docids(page))) == 20
    assert page.is_hidden("#more")
    page.locator(".hit .docid input").nth(15).check()
    page.wait_for_selector("#difference:not([hidden])")
    assert page.locator(".hit").count() == 20
    page.get_by_role("button", name="war, spy 15").press("Enter")
    settled(page)
    assert page.input_value("#filter") == "genre=war, spy"
    assert page.evaluate("document.activeElement.dataset.condition") == "genre=war, spy"
    counted = page.locator("#facets button").all_inner_texts()
    assert counted == ["war, spy 15", "comedy 5"]  # any of a field's values will do, so all are counted
    assert violations(page) == []
    page.keyboard.press("Enter")
    settled(page)
    assert page.input_value("#filter") == "" and "filter=" not in page.url


def test_what_is_typed_before_the_server_has_answered_stays(new_page):
    page = new_page(path="/docs")
    page.route("**/health", lambda route: (page.wait_for_timeout(800), route.continue_()))
    page.goto(page.url.removesuffix("docs"))
    page.keyboard.type("spy films")
    page.keyboard.press("Enter")
    page.check("#compare")
    page.wait_for_selector("#results section:nth-child(2) .hit")
    assert page.input_value("#query") == "spy films"


def test_lines_for_programs(new_page, server, sample):
    page = new_page(f"/?query={WORDS}&a.union=addition")
    page.click("#program summary")
    shell, python, composed = page.locator("#program pre").all_inner_texts()
    path = re.fullmatch(r"curl 'http://[^/]+(/.*)'", shell)[1]
    assert [one["docid"] for one in server.get(path)[1]["candidates"]] == docids(page)
    found = {}
    exec(python.replace("indexes/sample", str(sample)), found)
    assert [hit.docid for hit in found["hits"]] == docids(page)
    assert json.loads(composed).keys() == {"score"}


def test_without_a_mouse(new_page):
    page = new_page()
    page.keyboard.type("spy films other than comedies")
    page.keyboard.press("Enter")
    settled(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("word"):
            break
    page.keyboard.press("Enter")
    settled(page)
    assert "tags=" in page.url
    assert page.evaluate("document.activeElement.className").startswith("word")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(new_page, scheme):
    page = new_page(viewport={"width": 320, "height": 640}, color_scheme=scheme)
    assert violations(page) == []
    ask(page, WORDS)
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert violations(page) == []
    page.check("#compare")
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 21)"
    assert dark == (scheme == "dark")


def test_marks_are_the_highlights_of_the_server(new_page, server):
    """Also behind characters of two units, in the best passage, and where two highlights overlap."""
    page = new_page("/?index=hostile&query=spy U.S. NOT evil&read=expression")
    hit = page.locator(".hit", has=page.locator("bdi", has_text="emoji"))
    assert hit.locator(".passage").inner_text() == "passage 1"
    assert hit.locator("p").first.inner_text() == "… 😀😀 <b>Spy</b> & U.S. evil"
    assert hit.locator("h3 mark").all_inner_texts() == ["spy"]
    marked = [[mark.inner_text(), mark.get_attribute("class")] for mark in hit.locator("p mark").all()]
    assert marked == [["Spy", "up"], ["U.S", "up"], ["evil", "down"]]
    shown = page.evaluate(
        """async () => {
            const { snippet, titleAndText } = await import("/page/text.js");
            const marks = [[3, 5, 1], [4, 6, 2], [7, 8, -1], [600, 604, 1], [605, 609, 1], [610, 611, 1]];
            const highlights = marks.map(([start, end, amount]) => ({ field: "/text", start, end, amount }));
            return ["😀 北京大学 &b", "constructor __proto__ ".repeat(40)].map((text) =>
              snippet(titleAndText({ doc: { title: "t", text }, docid: "d", highlights })[1]).innerHTML);
        }"""
    )
    assert shown[0] == '😀 北<mark class="up">京大学</mark> <mark class="down">&amp;</mark>b'
    assert shown[1].startswith("… ") and shown[1].count("<mark") == 3 and len(shown[1]) < 460


def test_documents_are_shown_as_text(new_page):
    page = new_page("/?index=hostile&query=spy&read=expression&hits=50")
    assert HOSTILE["title"] in titles(page)
    shown = page.inner_text("#results")
    assert "<script>alert(2)</script>" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    page.locator(".hit .docid input").nth(0).check()
    settled(page)
    page.locator(".hit .docid input").nth(1).check()
    page.wait_for_selector("#difference:not([hidden])")
    assert page.locator("#results img, #results script, #difference b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


REFUSED = {
    "read=expression&query=(spy": '"(" is not closed; expected ")"\n  (spy\n  ^',
    "read=expression&query=spy&a.union=best": "union must be one of maxpool, addition, dismax, vanilla, got 'best'",
    "query=spy&index=books": "Unable to open index: books; there are sample, hostile, dated, german",
    "query=spy&tags=W,W": "tags: the text has 1 words and signs, got 2 tags",
}


def test_what_the_server_refuses(new_page, server):
    page = new_page()
    for query, said in REFUSED.items():
        page.goto(f"{server.url}/?{query}")
        page.wait_for_selector("#error pre")
        assert page.inner_text("#error pre") == said
    assert violations(page) == []
    page.fill("#query", "spy films")
    page.select_option("#index", "sample")
    page.select_option("#read", "plain")


def test_nothing_found_says_why(new_page):
    page = new_page("/?index=hostile&query=zebra&read=expression")
    assert page.inner_text("#results").endswith(
        "Note: no result for query zebra: no document has its words\n\nNo document matches."
    )


def test_a_slow_answer_and_a_long_query(new_page):
    page = new_page()
    page.route("**/search?*", lambda route: (page.wait_for_timeout(600), route.continue_()))
    page.fill("#query", "spy " * 500)
    page.press("#query", "Enter")
    page.wait_for_selector(".skeleton")
    assert page.inner_text("#status") == "Searching"
    assert page.get_attribute("#results", "aria-busy") == "true"
    settled(page)
    assert page.locator(".hit").count() == 10
    assert page.get_attribute("#results", "aria-busy") == "false"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_server_that_is_gone_and_one_with_a_key(new_page, sample, tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text(f"indexes: {{sample: {sample}}}\napi_keys: [a-long-key]\n")
    with served.serving("--config", config) as server:
        page = new_page("/?query=spy", url=server.url, waits=False)
        page.wait_for_selector("#key:not([hidden])")
        page.fill("#key-input", "a-long-key")
        page.press("#key-input", "Enter")
        settled(page)
        assert page.locator(".hit").count() == 10
        assert "a-long-key" not in page.url
        server.stop(signal.SIGTERM)
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#error button")
        assert page.inner_text("#error pre") == "The server does not answer."


def test_the_routes_are_described(new_page):
    page = new_page("/docs")
    page.wait_for_selector("h2")
    assert "GET /v1/{index}/search" in page.locator("h2").all_inner_texts()
    assert violations(page) == []
