"""A small BM25 index of films, and the command in a process of its own."""

import os
import subprocess
import sys

from json_lines import write_jsonl

from pyserini_compneg.index import build_index

FILMS = {
    "d1": ("Spy Comedy", "A spy comedy about a clumsy spy."),
    "d2": ("Spy Drama", "A serious spy drama."),
    "d3": ("Animated Spy", "An animated spy comedy for children."),
    "d4": ("Western", "A western with horses."),
    "d5": ("Western Comedy", "A western comedy."),
    "d6": ("Wéstern NOT comedy", "NOT AND OR are words (of this film)."),
}


def build(folder, **options):
    films = ({"id": docid, "title": title, "text": text} for docid, (title, text) in FILMS.items())
    build_index(write_jsonl(folder / "films.jsonl", *films), folder / "index", **options)
    return folder / "index"


def environment(**more):
    """The variables of a process that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def start(*arguments, code=None, module="pyserini_compneg.search", **options):
    """``compneg search``, or another program with its arguments; ``env`` adds variables."""
    program = ["-c", code] if code else ["-m", module]
    variables = environment(**options.pop("env", {}))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, text=True, env=variables, **{**pipes, **options})
