"""The page in a browser: the indexes that it is shown with, and what a reader does on it."""

import lzma
import re
import shutil
from importlib import resources

from json_lines import write_jsonl

from pyserini_compneg.commands.demo import ENCODER, VECTORS
from pyserini_compneg.index import build_index

HOSTILE = {
    "title": "<img src=x onerror=alert(1)>",
    "text": "<script>alert(2)</script> spy \u202eevil\u202c \x1b[31mred &lt;b&gt; javascript:alert(3)",
    "url": "javascript:alert(4)",
}
FLAGS = [f"--{flag}" for flag in ("no-sandbox", "disable-gpu", "disable-background-networking", "disable-sync")]


def build_indexes(folder):
    """Folders of four indexes: films of the sample, hostile texts in passages, films with fields, and a German text."""
    build_index(_films_of_sample(folder / "vectors"), folder / "sample", encoder=ENCODER, store_raw=True)
    lines = [{"id": "<b>1</b>", **HOSTILE}, {"id": "x/y?z#1", "title": "spy " * 100, "text": "spy" * 2000}]
    lines.append({"id": "emoji", "title": "On 😀 spy", "text": "one two three four five 😀😀 <b>Spy</b> & U.S. evil"})
    passages = {"words": 5, "overlap": 0}
    build_index(write_jsonl(folder / "h.jsonl", *lines), folder / "hostile", store_raw=True, passages=passages)
    dated = write_jsonl(folder / "d.jsonl", *map(_film, range(1950, 1980)))
    build_index(dated, folder / "dated", store_raw=True, filter_fields=["year", "genre"])
    german = write_jsonl(folder / "g.jsonl", {"id": "haus", "contents": "Alte Häuser am See"})
    build_index(german, folder / "german", store_raw=True, bm25={"language": "de"})
    return [folder / name for name in ("sample", "hostile", "dated", "german")]


def _films_of_sample(folder):
    """A tenth of the sample: what the tests ask for."""
    folder.mkdir()
    shutil.copy(VECTORS / "vectors.about", folder)
    (vectors,) = VECTORS.glob("*.xz")
    wanted = re.compile(r"\bspy\b|musical|Trainwreck|Italian")
    with lzma.open(vectors, "rt") as lines, open(folder / vectors.stem, "w") as chosen:
        chosen.writelines(line for line in lines if wanted.search(line.partition('"vector"')[0]))
    return folder


def _film(year):
    is_comedy = year % 2 == 1
    text = f"A film of {year} about spies." + " It is one of the comedies of its time." * is_comedy
    film = {"id": f"d{year}", "title": f"Film {year}", "text": text, "year": year}
    film["genre"] = "comedy" if is_comedy else "war, spy"
    return {**film, "url": "https://example.org/d1950"} if year == 1950 else film


def ask(page, text):
    page.fill("#query", text)
    page.press("#query", "Enter")
    settled(page)


def settled(page):
    page.wait_for_selector("#results[aria-busy=false]", state="attached")


def docids(page):
    return page.locator(".hit").evaluate_all("hits => hits.map((one) => one.dataset.docid)")


def conditions(page):
    return page.locator("#conditions button").all_inner_texts()


def violations(page):
    """What axe-core finds, and whether the page is wider than its window."""
    if not page.evaluate("'axe' in window"):
        page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [(one["id"], [node["html"][:80] for node in one["nodes"]]) for one in found] + ["too wide"] * wide
