"""The page, in a browser: what is asked, how it is read, and what the server refuses."""

import signal
from urllib.parse import urlencode

import pytest
import served
from page_server import ask, conditions, docids, settled, violations

pytestmark = [pytest.mark.slow, pytest.mark.once]

WORDS = "French or Italian comedies, but not musicals"
DATED = "spy films from the 1960s except comedies"


def test_plain_words_are_read_and_a_click_changes_a_role(new_page, server):
    page = new_page()
    assert page.is_visible("#empty")
    ask(page, WORDS)
    assert page.is_hidden("#empty")
    answer = server.get(f"/v1/sample/search?{urlencode({'query': WORDS, 'read': 'model'})}")[1]
    assert docids(page) == [one["docid"] for one in answer["candidates"]]
    said = page.inner_text("#reading summary")
    assert said == "Looking for French comedies or Italian comedies, without musicals Change"
    assert page.is_hidden(".word >> nth=0")
    page.click("#reading summary")
    roles = ["wanted", "or", "wanted", "shared", "not used", "not used", "excluded"]
    assert page.locator(".word small").all_text_contents() == roles
    before = docids(page)
    page.get_by_role("button", name="Italian: wanted. Change its role").press("Enter")
    settled(page)
    assert page.inner_text("#reading summary").startswith("Looking for French comedies, without Italian or musicals")
    assert docids(page) != before
    assert page.evaluate("document.activeElement.textContent").startswith("Italian")
    page.go_back()
    settled(page)
    assert docids(page) == before
    page.get_by_role("button", name="Edit as an expression").click()
    settled(page)
    assert page.input_value("#query") == "(French comedies OR Italian comedies) NOT musicals"
    assert page.input_value("#read") == "expression"
    assert page.is_hidden("#reading") and len(docids(page)) == 10


def test_a_decade_is_a_condition_and_an_excluded_class_is_left_out(new_page):
    page = new_page(f"/?index=dated&query={DATED}")
    assert page.inner_text("#reading summary") == "Looking for spy films, without comedies Change"
    assert conditions(page) == ["year 1960 to 1969 from your words ×"]
    assert sorted(docids(page)) == ["d1960", "d1962", "d1964", "d1966", "d1968"]
    switch = page.get_by_role("switch", name="Exclude strictly")
    assert switch.is_checked()
    switch.press("Space")
    settled(page)
    assert "strict=0" in page.url
    assert len(docids(page)) == 10
    marked = page.locator(".hit", has=page.locator(".contains"))
    assert marked.evaluate_all("hits => hits.map((one) => one.dataset.docid).sort()") == [
        f"d{year}" for year in range(1961, 1970, 2)
    ]
    assert set(page.locator(".contains").all_inner_texts()) == {"Has an excluded word: comedies"}
    page.get_by_role("button", name="Remove the condition year=1960..1969").click()
    settled(page)
    assert page.inner_text("#reading summary").startswith("Looking for spy films from the 1960s")
    assert "years=words" in page.url and docids(page)[0] == "d1960"
    page.go_back()
    settled(page)
    assert len(docids(page)) == 10


DATES = {
    "films from the 1960s": "1960..1969",
    "1980s horror": "1980..1989",
    "songs between 1990 and 1994": "1990..1994",
    "papers 2001–2004": "2001..2004",
    "since 2010": "2010..",
    "made after 1999": "2000..",
    "before 1950": "..1949",
    "films from 1966": "1966..1966",
    "films set in the 1960s": None,
    "a book about the 1980s": None,
    "the early 1970s": None,
    "Blade Runner 2049": None,
    "U-1960s": None,
    "before the 1960s": "..1959",
    "films from before 1960": "..1959",
    "after the 1980s": "1990..",
    "since the 1990s": "1990..",
    "until the 1970s": "..1979",
    "from the 1960s to the 1980s": "1960..1989",
    "between the 1960s and 1985": "1960..1985",
    "comedies of the 1960s": "1960..1969",
    "films released in 1950": "1950..1950",
    "films about France from the 1960s": "1960..1969",
    "1950s war films that are also 1950s comedies": "1950..1959",
    "pre 1960s": None,
    "after 1960 or before 1960": None,
    "1960s or 1970s": None,
    "from the 1960s and the seventies": None,
    "in 1960 and 1970": None,
    "from 1960 or 1970": None,
    "before 1960 or after 1990": None,
    "since 1990 until 1995": None,
    "from 1999 to 1950": None,
    "films from the 1960s onwards": None,
    "a man born in 1950": None,
    "companies founded in 1950": None,
    "wars in the 1960s": None,
    "a book about wars in the 1960s": None,
    "the treaty of 1815": None,
    "films not from the 1960s": None,
    "comedies or 1960s films": None,
}


def test_dates_in_words(new_page):
    page = new_page("/docs")
    dates = page.evaluate(
        """async (texts) => {
            const { dateIn } = await import("/page/years.js");
            return texts.map((text) => dateIn(text)?.range ?? null);
        }""",
        list(DATES),
    )
    assert dict(zip(DATES, dates, strict=True)) == DATES


def test_the_field_of_dates(new_page):
    """It may have odd values; prices that look like years are a field of dates only if no name is that of one."""
    page = new_page("/docs")
    fields = page.evaluate(
        """async () => {
            const { dateField } = await import("/page/years.js");
            const facet = (...values) => values.map((value) => ({ value, count: 1 }));
            const years = facet("1960", "1961-05", "1962", "1963", "unknown");
            const prices = [facet("1999"), facet("1999", "15")];
            return [{ price: prices[0], year: years }, { price: prices[1] }, { constructor: years }, {}].map(dateField);
        }"""
    )
    assert fields == ["year", None, "constructor", None]


def test_after_an_error_what_was_chosen_can_be_taken_back(new_page):
    page = new_page(
        "/?index=dated&read=expression&strict=1&filter=colour=red, year=1950&query=spies NOT (film NOT war)"
    )
    assert page.locator("#error p").count() == 1
    assert conditions(page) == ["colour red ×", "year 1950 ×"]
    page.get_by_role("button", name="Remove the condition colour=red").click()
    settled(page)
    page.get_by_role("switch", name="Exclude strictly").uncheck()
    settled(page)
    assert page.inner_text("#error") == "" and docids(page) == ["d1950"]
    page.select_option("#index", "sample")  # it has no field year
    settled(page)
    assert page.inner_text("#error") == "" and page.is_hidden("#conditions")


@pytest.mark.parametrize("name", ["constructor", "__proto__"])
def test_names_of_javascript_are_unknown_indexes(new_page, name):
    page = new_page(f"/?query=spy&index={name}")
    assert page.inner_text("#error").startswith(f"Unable to open index: {name}; there are")


def test_without_a_field_of_years_the_page_says_so_and_one_film_is_excluded_softly(new_page):
    page = new_page("/?index=sample&query=1960s films with Vanessa Bayer other than Trainwreck")
    assert "This index has no field of years: “1960s” is searched as words." in page.inner_text("#reading")
    assert not page.get_by_role("switch").is_checked()
    page.get_by_role("switch").check()
    settled(page)
    assert "strict=1" in page.url and "Trainwreck_(film)" not in docids(page)


@pytest.mark.parametrize(
    ("words", "read", "doubt", "note"),
    [
        ("spies who never, except once, lied", "model", "This may be misread: 'never' is searched as a word", None),
        ("anything but not zebraq", "model", "This may be misread: ", "no result for query anything but not zebraq: "),
        ("spy films -musicals", "plain", None, "a '-' before a word is not an operator"),
    ],
)
def test_what_may_be_misread_is_said_once(new_page, words, read, doubt, note):
    page = new_page(f"/?{urlencode({'query': words, 'read': read, 'index': 'dated'})}")
    doubts, notes = page.locator(".doubt"), page.locator("#results > p.quiet")
    assert doubts.count() == (doubt is not None) and (not doubt or doubts.inner_text().startswith(doubt))
    assert notes.count() == (note is not None) and (not note or note in notes.inner_text())


def test_operators_in_capitals_make_an_expression(new_page):
    page = new_page("/?index=dated&query=films")
    for query, read in (
        ("western films NOT! comedies", "expression"),
        ("(war OR western) AND spies", "expression"),
        ("western films, not comedies", "model"),
    ):
        page.fill("#query", query)
        page.press("#query", "Enter")
        settled(page)
        assert page.locator("#read").input_value() == read


def test_settings_have_the_jargon_and_live_in_the_link(new_page):
    page = new_page("/?index=sample&query=spy films NOT comedies")
    assert page.locator("#read").input_value() == "expression"
    shown = page.inner_text("body")
    assert not [word for word in ("disentangled", "damped", "dismax", "cpt", "@") if word in shown]
    page.click("#settings summary")
    assert "cpt" in page.inner_text("body")
    page.select_option("[name=difference]", "subtraction")
    settled(page)
    page.fill("[name=difference_weight]", "0.5")
    page.press("[name=difference_weight]", "Tab")
    settled(page)
    page.locator(".why summary").first.click()
    assert "@" in page.locator(".why table").first.inner_text()
    assert violations(page) == []
    other = new_page("/?" + page.url.partition("?")[2])
    assert docids(other) == docids(page)
    assert other.input_value("[name=difference_weight]") == "0.5"
    link = page.get_attribute("#request", "href")
    assert "difference=subtraction" in link and "difference_weight=0.5" in link


def test_an_index_of_another_language_takes_expressions(new_page):
    page = new_page("/?index=german&query=Haus")
    assert docids(page) == ["haus"]
    assert page.input_value("#read") == "expression"
    page.click("#settings summary")
    assert page.locator("#read option:disabled").all_inner_texts() == ["plain words"]
    page.select_option("#index", "sample")
    settled(page)
    assert not page.locator("#read option:disabled").count()


def test_what_is_typed_before_the_server_has_answered_stays(new_page):
    page = new_page(path="/docs")
    page.route("**/health", lambda route: (page.wait_for_timeout(800), route.continue_()))
    page.goto(page.url.removesuffix("docs"))
    page.keyboard.type("spy films")
    page.wait_for_selector("#index option", state="attached")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    assert page.input_value("#query") == "spy films"


def test_a_slow_answer_and_a_long_query(new_page):
    page = new_page()
    held = []
    page.route("**/search?*", lambda route: held.append(route))
    page.fill("#query", "spy " * 500)
    with page.expect_request("**/search?*"):
        page.press("#query", "Enter")
    page.wait_for_selector(".skeleton")
    assert page.inner_text("#status") == "Searching"
    assert page.get_attribute("#results", "aria-busy") == "true"
    held.pop().continue_()
    settled(page)
    assert page.locator(".hit").count() == 10
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


REFUSED = {
    "read=expression&query=spy+AND+(war": '"(" is not closed; expected ")"; '
    "for plain words, use quotes or --read plain (read=plain)\n  spy AND (war\n          ^",
    "read=expression&query=spy&union=best": "union must be one of maxpool, addition, dismax, vanilla, got 'best'",
    "query=spy&index=books": "Unable to open index: books; there are sample, hostile, dated, german",
    "query=spy&tags=W,W": "tags: the text has 1 words and signs, got 2 tags",
    "query=spy&index=dated&filter=colour=red": "query spy: dated: cannot be filtered: it has no filter field 'colour', "
    "only genre, year",
    "query=" + "spy+" * 2500: "query: expected a text of at most 8000 characters, got 'spy spy spy spy spy spy spy spy "
    "spy spy spy spy spy spy ...",
    "doc=nothing&index=dated": "Document not found: nothing",
}


def test_what_the_server_refuses(new_page, server):
    page = new_page()
    page.press("#query", "Enter")
    assert page.inner_text("#error") == "Type what you look for."
    for query, said in REFUSED.items():
        page.goto(f"{server.url}/?{query}")
        page.wait_for_selector("#error p")
        assert page.inner_text("#error") == said
    assert violations(page) == []
    page.goto(f"{server.url}/?index=dated&query=zebra&read=expression&filter=year=1950")
    page.wait_for_selector("#results p >> nth=1")
    assert page.inner_text("#results p >> nth=1") == "No document matches. Remove a condition, or use other words."


def test_a_server_that_is_gone_and_one_with_a_key(new_page, films, tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text(f"indexes: {{films: {films}}}\napi_keys: [a-long-key]\n")
    with served.serving("--config", config) as server:
        page = new_page("/?query=spy", url=server.url, waits=False)
        page.wait_for_selector("#key:not([hidden])")
        assert page.inner_text("#error") == "This server wants a key."
        page.fill("#key-input", "ключ")
        page.press("#key-input", "Enter")
        assert page.inner_text("#error") == "This key has a character that no key can have. Type the key again."
        assert page.is_visible("#key") and page.evaluate("sessionStorage.length") == 0
        page.fill("#key-input", "a-long-key")
        page.press("#key-input", "Enter")
        page.wait_for_selector(".hit")
        assert "a-long-key" not in page.url
        server.stop(signal.SIGTERM)
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#error button")
        assert page.inner_text("#error p") == "The server does not answer."


def test_the_routes_are_described(new_page):
    page = new_page("/docs")
    page.wait_for_selector("h2")
    assert "GET /v1/{index}/search" in page.locator("h2").all_inner_texts()
    page.evaluate("document.querySelectorAll('section:nth-of-type(n+4)').forEach((one) => one.remove())")  # all alike
    assert violations(page) == []
