"""The page: read by a parser, as a browser and a screen reader have it."""

import re
from dataclasses import replace

import pytest
from html_tree import parse_page

from pyserini_compneg.reproduce.report.contents import make_contents
from pyserini_compneg.reproduce.report.page import render_page
from pyserini_compneg.reproduce.results import Cell, Example, Results, Row, Section

ODD = "<script>alert('1')</script> & \"quotes\" {{ 7 * 7 }} {% x %} 鳥 \u202eabc"
ATTRIBUTES_THAT_LOAD = ("src", "srcset", "poster", "data", "action", "background", "formaction", "ping", "manifest")


def page_of(results):
    return parse_page(render_page(make_contents(results)))


@pytest.fixture(scope="module")
def source(contents):
    return render_page(contents)


@pytest.fixture(scope="module")
def page(source):
    return parse_page(source)


def plain(**changes):
    fields = {"title": "Title", "about": "About.", "dataset": {}, "settings": {}, "command": "true"}
    fields |= {"protocol": "p", "measures": ("nDCG@10",), "is_papers": True, "sections": ()}
    return Results(**fields | changes)


def one_row(name="only", cell=None, **changes):
    row = Row(name, "A", {"nDCG@10": cell or Cell(0.5, (0.4, 0.6))}, "runs/only.txt")
    return Section(**{"title": "Atoms", "queries": 2, "rows": (row,), "baseline": name, "per_query": {}} | changes)


def test_parts_come_in_the_order_in_which_they_are_read(page):
    headings = [found.text for found in page.all("h2")]
    sections = ["Set difference 20 queries", "Union 20 queries", "Intersection 20 queries"]
    assert headings == ["Dataset", *sections, "Curves", "Examples", "Settings"]
    assert page.one("h1").text == page.one("title").text == "Zero-shot operators on set-compositional queries"
    assert page.one("header").one("p").text.startswith("Table 1 of Krasakis, Yates and Kanoulas")


def test_the_page_loads_nothing_and_runs_nothing(source, page):
    assert [found.tag for found in page.all() if set(found.attributes) & set(ATTRIBUTES_THAT_LOAD)] == []
    assert [tag for tag in ("script", "link", "iframe", "object", "embed", "img", "image") if list(page.all(tag))] == []
    assert [name for found in page.all() for name in found.attributes if name.startswith("on")] == []
    assert all(found.attributes["href"].startswith("#") for found in page.all() if "href" in found.attributes)
    assert re.findall(r"https?:|@import|url\((?!#)", source) == []
    (policy,) = (found.attributes["content"] for found in page.all("meta") if "http-equiv" in found.attributes)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_ids_are_unique_and_all_that_is_pointed_to_is_there(source, page):
    ids = [found.attributes["id"] for found in page.all() if "id" in found.attributes]
    assert len(ids) == len(set(ids))
    pointed = {found.attributes["href"][1:] for found in page.all() if "href" in found.attributes}
    pointed |= {found.attributes["aria-labelledby"] for found in page.all() if "aria-labelledby" in found.attributes}
    pointed |= set(re.findall(r"url\(#([^)]*)\)", source))
    assert pointed
    assert pointed <= set(ids)


def test_the_dataset_is_named_with_what_it_is_not(page):
    dataset = page.one(id="dataset")
    assert dataset.one(role="note").text.startswith("FilmSets, which is not QUEST.")
    rows = {row.one("th").text: row.one("td").text for row in dataset.one("tbody").all("tr")}
    assert (rows["documents"], rows["split"]) == ("33,825", "dev")
    assert rows["provenance"].startswith("built from prust/wikipedia-movie-data")


def test_the_papers_own_dataset_has_no_warning():
    assert list(page_of(plain(papers_dataset="QUEST")).all(role="note")) == []


def test_commands_are_there_to_be_copied(results, page):
    commands = [found.one("code").text for found in page.all("pre")]
    assert commands[0] == results.command
    row = "python -m pyserini_compneg.eval --qrels qrels/union.txt -m nDCG@10 -m R@100 --run runs/union/dismax.txt"
    assert row in commands
    assert len(commands) == 1 + sum(1 + sum(row.run is not None for row in one.rows) for one in results.sections)


def test_every_table_says_what_it_is_and_what_its_headings_head(page):
    for table in page.all("table"):
        assert table.one("caption").text
        assert all(heading.attributes.get("scope") in ("col", "row", "colgroup") for heading in table.all("th"))
        assert all(heading.text for heading in table.all("th"))


def test_rows_have_as_many_cells_as_the_table_has_columns(page):
    for table in page.all("table", class_="results"):
        first, second = table.one("thead").all("tr")
        width = sum(int(heading.attributes.get("colspan", 1)) for heading in first.all("th"))
        assert len(list(second.all("th"))) == 4
        for row in table.one("tbody").all("tr"):
            assert sum(1 for cell in row.content if getattr(cell, "tag", "") in ("td", "th")) == width


def test_values_letters_and_the_best(results, page):
    table = next(page.all("table", class_="results"))
    lines = {row.one("th").text: row for row in table.one("tbody").all("tr")}
    section = results.sections[0]
    letters = [row.name for row in section.rows if row.run]
    best = max(row.cells["nDCG@10"].value for row in section.rows if row.run)
    for row in section.rows:
        if not row.run:
            continue
        cell, shown = row.cells["nDCG@10"], next(lines[row.name].all("td", class_="ours"))
        named = {letters["abcdef".index(letter)] for found in shown.all("sup") for letter in found.text}
        assert named == set(cell.better_than)
        assert shown.text.startswith(f"{cell.value:.3f}")
        assert shown.one("small").text == "{:.3f} to {:.3f}".format(*cell.interval)
        assert bool(list(shown.all("strong"))) == (cell.value == best)
        assert lines[row.name].one("td", class_="letter").text == "abcdef"[letters.index(row.name)]
    assert any(list(row.all("sup")) for row in lines.values())


def test_the_papers_figures_stand_beside_ours(page):
    table = next(page.all("table", class_="results"))
    row = next(row for row in table.all("tr") if row.text.startswith("f disentangled"))
    assert [cell.text for cell in row.all("td", class_="paper")] == ["0.258", "0.398"]
    assert [heading.text for heading in table.all("th", scope="col")][-4:] == ["here", "paper", "here", "paper"]


def test_rows_that_are_only_published_are_marked(page):
    for table in page.all("table", class_="results"):
        row = table.one("tr", class_="published")
        assert row.one("th").text == "score-fusion published"
        assert [cell.text for cell in row.all("td", class_="ours")] == ["–", "–"]


def test_notes_are_footnotes_of_their_rows(page):
    union = page.one(id="section-2")
    row = next(row for row in union.all("tr") if "dismax" in row.text)
    target = row.one("th").one("a").attributes["href"][1:]
    assert page.one(id=target).text == "Not in the paper: the better score of the alternatives, for each document."


def test_plots_are_described_and_drawn_in_the_page_s_colours(page):
    plots = list(page.all("figure"))
    assert len(plots) == 7
    for plot in plots:
        image = plot.one(role="img")
        assert len(image.attributes["aria-label"]) > 40
        assert plot.one("figcaption").text
        assert image.one("svg").attributes["viewbox"].startswith("0 0 648 ")
    label = plots[0].one(role="img").attributes["aria-label"]
    assert label.startswith("Bars of nDCG@10 for Set difference: vanilla 0.")
    assert "score-fusion paper 0.228" in label


def test_drawings_take_their_ink_from_the_page(source):
    drawings = re.findall("<svg.*?</svg>", source, flags=re.DOTALL)
    assert all("var(--ink)" in drawing for drawing in drawings)
    assert [colour for colour in ("#1b1f24", "#59626c", "#d3d8de") if any(colour in one for one in drawings)] == []
    assert [
        tag for tag in ("<style", "<metadata", "<!--", "xmlns", "<text") if any(tag in one for one in drawings)
    ] == []


def test_examples_are_cards_by_section_and_method(page):
    examples = page.one(id="examples")
    assert [found.text for found in examples.all("h3")] == ["Set difference", "Intersection"]
    best, worst = list(examples.all("article"))[:2]
    assert (best.attributes["class"], worst.attributes["class"]) == ("card gain", "card loss")
    assert best.one("h4").text == "1940s war films that are not spy films"
    assert best.one(class_="expression").text == "1940s war films \\ spy films query S17"
    assert best.one("caption").text == "nDCG@10 +0.655"
    assert [row.text for row in best.one("table").all("tr")] == ["disentangled0.786", "vanilla0.131"]
    assert [chip.text for chip in best.one("ul", class_="negative").all("li")] == ["spy −388", "espionage −117"]
    shares = [chip.one("i").attributes["style"] for chip in best.one("ul", class_="positive").all("li")]
    assert shares == ["--share: 80", "--share: 70", "--share: 65", "--share: 11"]
    assert [item.text for item in best.one(class_="gained").all("li")][0] == "Five Graves to Cairo (1943)"
    assert worst.one(class_="lost").text == "The Wind (1928)"
    assert list(best.all(class_="lost")) == list(worst.all(class_="gained")) == []


def test_the_best_method_s_examples_are_open_and_others_closed():
    one = Example("Atoms", "b", "a", "1", "text", "", "nDCG@10", 0.5, 0.25, (), ())
    rows = tuple(Row(name, "", {"nDCG@10": Cell(value)}, "r") for name, value in (("a", 0.1), ("b", 0.3), ("c", 0.2)))
    section = one_row(rows=rows, baseline="a")
    found = page_of(plain(sections=(section,), examples=(replace(one, method="c"), one))).one(id="examples")
    opened = {group.one("summary").text: "open" in group.attributes for group in found.all("details")}
    assert opened == {"c": False, "b": True}
    elsewhere = page_of(plain(examples=(one,))).one(id="examples")
    assert "open" in elsewhere.one("details").attributes


def test_of_a_measure_where_lower_is_better_a_loss_in_value_is_a_gain():
    one = Example("Atoms", "b", "a", "1", "text", "", "negated_terms", 0.01, 0.03, (), ())
    card = page_of(plain(measures=("negated_terms",), lower_is_better=("negated_terms",), examples=(one,))).one(
        "article"
    )
    assert (card.attributes["class"], card.one("caption").text) == ("card gain", "negated_terms (%) −2.00")


@pytest.mark.parametrize("text", [ODD, "w" * 3000, "a\tb\nc", "'" * 5, "&amp;lt;", "{{ report.title }}"])
def test_texts_are_shown_as_they_are(text):
    example = Example("Atoms", text, text, text, text, text, "nDCG@10", 0.5, 0.25, ((text, 1.0),), ((text, -1.0),))
    example = replace(example, gained=(text,), lost=(text,))
    section = one_row(text, title=text, qrels=text)
    results = plain(
        title=text, about=text, dataset={text: text}, settings={text: text}, command=text, sections=(section,)
    )
    page = page_of(replace(results, examples=(example,)))
    shown = " ".join(text.split())
    assert page.one("h1").text == page.one("title").text == page.one(class_="about").text == shown
    assert page.one(id="dataset").one("td").text == page.one(id="settings").one("td").text == shown
    assert page.one("h4").text == page.one(class_="gained").text == page.one(class_="lost").text == shown
    assert [chip.one("bdi").text for chip in page.all("li") if list(chip.all("i"))] == [shown, shown]
    assert list(page.all("script")) == []


def test_what_no_page_may_hold_is_replaced():
    page = page_of(plain(title="a\x00b\x1b\x7f\x85\ud800c", about="\U0010ffff é"))
    assert page.one("h1").text == "a\N{REPLACEMENT CHARACTER}b" + "\N{REPLACEMENT CHARACTER}" * 4 + "c"
    assert page.one(class_="about").text == "\U0010ffff é"


def test_a_section_of_one_row_has_a_table_without_letters():
    page = page_of(plain(sections=(one_row(),)))
    table = page.one("table", class_="results")
    assert [heading.text for heading in table.one("thead").all("th")] == ["method", "formula", "nDCG@10"]
    assert (table.one("tbody").text, list(table.all("sup"))) == ("only A 0.5000.400 to 0.600", [])
    assert list(page.all(class_="finding")) == []


def test_one_query_is_one_query():
    values = {"a": {"q": {"nDCG@10": 1.0}}, "b": {"q": {"nDCG@10": 0.5}}}
    rows = tuple(Row(name, "", {"nDCG@10": Cell(found["q"]["nDCG@10"])}, "r") for name, found in values.items())
    page = page_of(plain(sections=(one_row(rows=rows, queries=1, baseline="a", per_query=values),)))
    assert page.one("table", class_="results").one("caption").text == "Atoms, means over 1 query"
    assert "0 better, 0 equal, 1 worse" in list(page.all(role="img"))[1].attributes["aria-label"]


def test_indices_of_formulas_are_set_low():
    section = one_row()
    row = replace(section.rows[0], formula="A − π_B(A) < 1")
    formula = page_of(plain(sections=(replace(section, rows=(row,)),))).one("td", class_="formula")
    assert (formula.text, formula.one("sub").text) == ("A − πB(A) < 1", "B")


def test_nothing_is_said_of_parts_that_are_not_there():
    page = page_of(plain())
    assert [found.text for found in page.all("h2")] == ["Dataset", "Settings"]
    assert [found.text for found in page.one("nav").all("a")] == ["Dataset", "Settings"]
    assert list(page.all("figure")) == []
