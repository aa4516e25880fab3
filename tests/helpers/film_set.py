"""A small dataset with QUEST's fields: films by colour and genre, and a query of every template."""

from json_lines import write_jsonl

COLOURS, GENRES = ("red", "green", "blue"), ("spy", "war", "western", "comedy")
TEMPLATES = {
    "_": lambda a, b, c: a,
    "_ or _": lambda a, b, c: a | b,
    "_ or _ or _": lambda a, b, c: a | b | c,
    "_ that are not _": lambda a, b, c: a - b,
    "_ that are also _": lambda a, b, c: a & b,
    "_ that are also both _ and _": lambda a, b, c: a & b & c,
    "_ that are also _ but not _": lambda a, b, c: (a & b) - c,
}


def write_film_set(folder, with_train=False):
    """Writes ``documents.jsonl`` and ``dev.jsonl``, two to four queries a template; returns the folder.

    With a ``train.jsonl`` every other query is there instead.
    """
    films = {}
    for colour in COLOURS:
        for number, genre in enumerate(GENRES):
            other = GENRES[(number + 1) % len(GENRES)]
            words = [colour, genre, other]
            films[f"{colour} {genre} {other}"] = f"A {colour} {genre} film, with {other} in it." + f" {genre}" * number
            films[f"{colour} {genre}"] = f"A {colour} film about {genre} and nothing else, {' '.join(words[:2])}."
    documents = ({"docid": f"D{i}", "title": t, "text": text} for i, (t, text) in enumerate(films.items()))
    write_jsonl(folder / "documents.jsonl", *documents)
    docids = {title: f"D{i}" for i, title in enumerate(films)}

    def about(word):
        return {title for title in films if word in title.split()}

    queries = []
    for template, operation in TEMPLATES.items():
        for colour in COLOURS:
            for genre, other in (("spy", "war"), ("war", "western")):
                words = (genre, other, colour)
                texts = [f"{word} films" for word in words][: template.count("_")]
                relevant = sorted(docids[title] for title in operation(*map(about, words)))
                if not relevant:
                    continue
                marked = template
                for text in texts:
                    marked = marked.replace("_", f"<mark>{text}</mark>", 1)
                plain = marked.replace("<mark>", "").replace("</mark>", "")
                queries.append(
                    {
                        "qid": f"q{len(queries)}",
                        "query": plain,
                        "original_query": marked,
                        "docs": relevant,
                        "metadata": {"template": template, "domain": "films"},
                    }
                )
    write_jsonl(folder / "dev.jsonl", *queries[:: 1 + with_train])
    if with_train:
        write_jsonl(folder / "train.jsonl", *queries[1::2])
    return folder
