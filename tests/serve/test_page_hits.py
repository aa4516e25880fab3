"""The page, in a browser: hits, pages of hits, facets, and documents."""

import pytest
from page_server import HOSTILE, conditions, docids, settled, violations

pytestmark = [pytest.mark.slow, pytest.mark.once]

LONG = "spy films from the 1960s except comedies"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sizes_and_schemes(new_page, scheme):
    """Ten hits fit into three screens of a phone, also if some are marked, and everything is accessible."""
    page = new_page("/", viewport={"width": 390, "height": 844}, color_scheme=scheme, reduced_motion="reduce")
    assert violations(page) == []
    page.goto(page.url + f"?index=sample&query={LONG}&strict=0")
    page.wait_for_selector(".hit")
    assert page.locator(".hit").count() == 10 and page.locator(".contains").count() > 1
    assert page.locator(".hit table:visible").count() == 0
    assert page.evaluate("document.querySelector('#results').getBoundingClientRect().bottom") < 3 * 844
    page.locator(".why summary").first.click()
    page.click("#reading summary")
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        assert violations(page) == []
    assert (page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)") == (scheme == "dark")


def test_words_and_not_stems(new_page):
    page = new_page("/?index=dated&query=spies NOT comedies&read=expression&hits=50")
    hit = page.locator(".hit", has=page.locator(".contains")).first
    hit.get_by_text("Why").click()
    assert hit.locator(".why th").all_inner_texts() == ["spies", "comedies"]
    assert [one[0] for one in hit.locator("td.number").all_inner_texts()] == ["+", "−"]
    marked = [[mark.inner_text(), mark.get_attribute("class")] for mark in hit.locator("mark").all()]
    assert marked == [["spies", "up"], ["comedies", "down"]]
    styles = hit.locator("mark").evaluate_all("all => all.map((one) => getComputedStyle(one).textDecorationLine)")
    assert styles == ["none", "underline"]  # no colour alone
    page.goto(page.url.replace("index=dated", "index=sample"))
    page.wait_for_selector(".hit")
    terms = page.locator(".why th").evaluate_all("all => all.map((one) => one.textContent)")
    assert "related words" in terms and not any(one.startswith("@") or one == "comedi" for one in terms)


def test_latents_are_shown_by_their_concepts(new_page):
    amounts = {"~2": 4, "spy∩~0": 3, "~7": -2, "@crown": 1}
    contributions = [{"term": term, "amount": amount} for term, amount in amounts.items()]
    answer = {
        "query": {"text": "spies", "unit": 1},
        "candidates": [{"docid": "d", "doc": None, "contributions": contributions}],
        "concepts": {"~2": "@king, <b>", "~0": "ship, sail"},
    }
    shown = new_page("/docs").evaluate(
        """async (answer) => {
            const { rankingList } = await import("/page/hits.js");
            return [false, true].map((isDetailed) => {
                const list = rankingList(answer, { fields: [], isDetailed, linkOf: () => "#", open: null });
                return [...list.querySelectorAll(".why th")].map((one) => one.textContent);
            });
        }""",
        answer,
    )
    terms = ["concept: @king, <b>", "spy + concept: ship, sail", "~7"]
    assert shown == [[*terms, "related words"], [*terms, "@crown"]]


def test_hits_of_and_say_what_they_lack(new_page, server):
    page = new_page("/?index=sample&query=spy films AND western films&read=expression")
    answer = server.get("/v1/sample/search?query=spy%20films%20AND%20western%20films")[1]
    lacking = [one.get("lacks", []) for one in answer["candidates"]]
    assert any(lacking)
    shown = [hit.locator(".lacks").all_inner_texts() for hit in page.locator(".hit").all()]
    assert shown == [[f"Lacks {', '.join(names)}"] if names else [] for names in lacking]


def test_facets_and_conditions_narrow_and_live_in_the_link(new_page):
    page = new_page("/?query=spies&read=expression&index=dated&hits=50", viewport={"width": 390, "height": 844})
    page.get_by_text("Narrow the results").click()
    assert page.locator("legend").all_inner_texts() == ["genre"]  # each year has one document, which tells nothing
    assert page.locator("fieldset button").all_inner_texts() == ["comedy 15", "war, spy 15"]
    placeholder = page.locator("#filter").evaluate(
        """(input) => {
            const canvas = document.createElement("canvas").getContext("2d");
            canvas.font = getComputedStyle(input).font;
            return [input.placeholder, canvas.measureText(input.placeholder).width < input.clientWidth - 20];
        }"""
    )
    assert placeholder == ["year=…", True]
    page.get_by_role("button", name="war, spy 15").press("Enter")
    settled(page)
    assert conditions(page) == ["genre war, spy ×"]
    assert page.evaluate("document.activeElement.dataset.condition") == "genre=war, spy"
    assert page.locator("fieldset button").all_inner_texts() == ["comedy 15", "war, spy 15"]
    page.fill("#filter", "year>=1970, year<1975")
    page.press("#filter", "Enter")
    settled(page)
    assert conditions(page) == ["genre war, spy ×", "year >=1970 ×", "year <1975 ×"]
    assert sorted(docids(page)) == ["d1970", "d1972", "d1974"]
    assert violations(page) == []
    other = new_page("/?" + page.url.partition("?")[2])
    assert docids(other) == docids(page)
    page.get_by_role("button", name="Remove the condition genre=war, spy").click()
    settled(page)
    assert len(docids(page)) == 5
    page.go_back()
    settled(page)
    assert len(docids(page)) == 3


def test_only_values_that_a_condition_can_name_are_buttons(new_page):
    page = new_page("/docs")
    values = ["war, spy", "x..y", "a<b", "=eq", "true", "a, year=3", "1990..1999", "..", ">5", ""]
    buttons = page.evaluate(
        """async (values) => {
            const { showFacets } = await import("/page/facets.js");
            const section = document.createElement("div");
            showFacets(section, ["f"], new Map([["f", values.map((value) => ({ value, count: 2 }))]]), [], null);
            return [...section.querySelectorAll("button bdi")].map((one) => one.textContent);
        }""",
        values,
    )
    assert buttons == values[:5]


def test_pages_behind_the_last(new_page):
    page = new_page("/?query=spies&read=expression&index=dated&page=7")
    assert page.inner_text("#results") == "The last of 30 hits is on a page before. Page 1"
    page.locator("#results").get_by_role("link", name="Page 1").click()
    settled(page)
    assert page.inner_text("#status") == "1 to 10 of 30"
    page = new_page("/?query=spies&read=expression&index=dated&page=1001")
    assert page.inner_text("#error p") == "A link reaches the first 10,000 hits. This page is behind them."
    page.locator("#error").get_by_role("link", name="Page 1").click()
    settled(page)
    assert page.inner_text("#status") == "1 to 10 of 30" and page.inner_text("#error") == ""


def test_pages(new_page):
    page = new_page("/?query=spies&read=expression&index=dated")
    assert page.inner_text("#status") == "1 to 10 of 30"
    assert page.get_by_role("link", name="Previous page").count() == 0
    pages = [docids(page)]
    for number in (2, 3):
        page.get_by_role("link", name="Next page").press("Enter")
        settled(page)
        assert page.inner_text("#status") == f"{10 * number - 9} to {10 * number} of 30"
        assert page.evaluate("scrollY") == 0
        pages.append(docids(page))
    assert len({docid for one in pages for docid in one}) == 30
    assert page.get_by_role("link", name="Next page").count() == 0
    assert docids(new_page("/?" + page.url.partition("?")[2])) == pages[2]  # without the cursor
    page.evaluate("history.replaceState({ cursor: 'of another index' }, '')")
    page.reload()
    page.wait_for_selector(".hit")
    assert docids(page) == pages[2]
    page.go_back()
    settled(page)
    assert docids(page) == pages[1]
    page.get_by_role("link", name="Previous page").click()
    settled(page)
    assert docids(page) == pages[0]


def test_documents_open_and_lead_back(new_page):
    page = new_page("/?query=spies&read=expression&index=dated&hits=50")
    assert page.get_by_role("link", name="Film 1950").get_attribute("href") == "https://example.org/d1950"
    link = page.get_by_role("link", name="Film 1951")
    assert "doc=d1951" in link.get_attribute("href")
    link.press("Enter")
    page.wait_for_selector("#document:not([hidden])")
    assert page.inner_text("#document .text") == "A film of 1951 about spies. It is one of the comedies of its time."
    assert page.locator("#document mark.up").all_inner_texts() == ["spies"]
    assert page.locator("#document dd").all_inner_texts() == ["d1951", "1951", "comedy"]
    assert violations(page) == []
    other = new_page("/?" + page.url.partition("?")[2], waits=False)
    other.wait_for_selector("#document .text")
    page.go_back()
    settled(page)
    assert len(docids(page)) == 30 and page.is_hidden("#document")
    other.get_by_role("link", name="Back to the results").click()
    other.wait_for_selector(".hit")


def test_marks_are_the_highlights_of_the_server(new_page):
    """Also behind characters of two units, in the best passage, and where two highlights overlap."""
    page = new_page("/?index=hostile&query=spy U.S. NOT evil&read=expression")
    hit = page.locator(".hit[data-docid=emoji]")
    assert hit.locator(".about").inner_text() == "passage 1"
    assert hit.locator(".snippet").inner_text() == "… 😀😀 <b>Spy</b> & U.S. evil"
    assert hit.locator("h2 mark").all_inner_texts() == ["spy"]
    assert hit.locator(".contains").inner_text() == "Has an excluded word: evil"
    marked = [[mark.inner_text(), mark.get_attribute("class")] for mark in hit.locator(".snippet mark").all()]
    assert marked == [["Spy", "up"], ["U.S", "up"], ["evil", "down"]]
    shown = page.evaluate(
        """async () => {
            const { snippet, titleAndText } = await import("/page/text.js");
            const places = [[3, 5, 1], [4, 6, 2], [7, 8, -1], [600, 604, 1], [605, 609, 1], [610, 611, 1]];
            const highlights = places.map(([start, end, amount]) => ({ field: "/text", start, end, amount }));
            const excluded = [{ field: "/text", start: 20, end: 25 }];
            return ["😀 北京大学 &b", "constructor __proto__ ".repeat(40)].map((text) =>
              snippet(titleAndText({ doc: { title: "t", text }, docid: "d", highlights, excluded })[1]).innerHTML);
        }"""
    )
    assert shown[0] == '😀 北<mark class="up">京大学</mark> <mark class="down">&amp;</mark>b'
    first, rest = shown[1].split(" … ", 1)
    assert 'class="down"' in first and rest.count('<mark class="up"') == 3 and len(shown[1]) < 500


def test_documents_are_shown_as_text(new_page):
    page = new_page("/?index=hostile&query=spy&read=expression&hits=50")
    shown = page.inner_text("#results")
    assert HOSTILE["title"] in shown and "<script>alert(2)</script>" in shown
    assert "\u202e" not in shown and "\x1b" not in shown
    assert page.locator("#results img, #results script, #results b").count() == 0
    page.get_by_role("link", name=HOSTILE["title"]).click()  # its address is no address of the web
    page.wait_for_selector("#document:not([hidden])")
    assert page.locator("#document img, #document script, #document b").count() == 0
    assert violations(page) == []


def test_without_a_mouse(new_page):
    page = new_page("/?index=dated&query=spies, no comedies")
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
        outlined = page.evaluate(
            "(one => getComputedStyle(one).outlineStyle !== 'none' || one === document.body)(document.activeElement)"
        )
        assert outlined, seen[-1]
        if seen[-1] == "Next page":
            break
    assert [one for one in ("Skip to the results", "strict", "Settings", "war, spy 15") if one not in seen] == []
