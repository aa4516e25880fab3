"""The commands of ``docs/how-to/latent.md`` run in their order, with a tiny base and few texts.

The outputs on the page are of the base that it names, and of all texts. So only their form is compared.
"""

import gzip
import re
import shlex
from itertools import islice
from pathlib import Path

import pytest
from checkpoints import SAMPLE

from pyserini_compneg.commands.main import main

pytestmark = [pytest.mark.slow, pytest.mark.once]

PAGE = (Path(__file__).parents[2] / "docs/how-to/latent.md").read_text(encoding="utf-8")
STEP = re.compile(r"^    compneg ((?:.*\\\n)*.*)\n((?:\n?    (?!compneg ).*\n)*)", re.M)
FORMS = {
    "train": r"\S+\t|latents a text\t",
    "search": r".*\(concepts are latents, the others bm25's\)|  \d  .{9}  |  +\+  ",
    "explain": r".*\(concepts are latents, the others bm25's\)|NOT \(damped\)|[├└]── [^:]+: |  positive  |excluded  ",
    "eval": r"run .*|\w+\.txt",
}
"""What is compared of lines."""


def form(command, text):
    """The beginnings of lines, without their figures."""
    found = [re.match(FORMS[command], line.removeprefix("    ")) for line in text.splitlines()]
    return [re.sub(r"[\d.\s]+", " ", match[0]) for match in found if match]


def test_the_page(checkpoints, tmp_path, monkeypatch, capsys):
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="models are exported by torch, and run by onnxruntime")
    monkeypatch.chdir(tmp_path)
    with gzip.open(SAMPLE / "documents.jsonl.gz", "rb") as lines:
        Path("documents.jsonl.gz").write_bytes(gzip.compress(b"".join(islice(lines, 60))))
    Path("queries.jsonl").write_bytes((SAMPLE / "queries.jsonl").read_bytes())
    compared = []
    for command, shown in STEP.findall(PAGE):
        name, *arguments = shlex.split(command.replace("\\\n", ""))
        smaller = {"sentence-transformers/all-MiniLM-L6-v2": str(checkpoints.bert), "4096": "64"}
        assert main([name, *(smaller.get(argument, argument) for argument in arguments)]) == 0
        printed = capsys.readouterr().out
        if shown:
            assert form(name, printed) == form(name, shown) != []
            compared.append(name)
    assert compared == [*FORMS]
    assert len({Path("runs", f"{name}.txt").read_text() for name in ("words", "default", "heavy")}) == 3
    (script,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    exec(script, {})
    assert len(capsys.readouterr().out.splitlines()) == 3
