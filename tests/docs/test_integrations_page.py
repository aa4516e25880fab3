import re
from pathlib import Path

import pytest
from film_index import FILMS
from json_lines import write_jsonl

from pyserini_compneg import build_index

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs/how-to/integrations.md").read_text(encoding="utf-8")
SCRIPTS = dict(re.findall(r"^## (\w+)$.*?^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def test_script_of_pyserini(tmp_path, monkeypatch, capsys, shared_data, pyserini_host):
    """With a small SPLADE in place of the one on the hub, and Pyserini's own encoder for it."""
    pytest.importorskip("torch", reason="SpladeQueryEncoder runs on torch")
    monkeypatch.chdir(tmp_path)
    model = str(shared_data / "models" / "splade-tiny")
    films = ({"id": docid, "title": title, "text": text} for docid, (title, text) in FILMS.items())
    build_index(write_jsonl(tmp_path / "films.jsonl", *films), "indexes/splade", model)
    script = SCRIPTS["Pyserini"].replace("naver/splade-v3", model)
    found = {}
    for query in ("spy films NOT comedies", "spy films"):
        exec(script.replace("spy films NOT comedies", query), {})
        found[query] = [line.split() for line in capsys.readouterr().out.splitlines()]
    from pyserini.encode import SpladeQueryEncoder

    index = str(tmp_path / "indexes" / "splade")
    stock = pyserini_host.LuceneImpactSearcher(index, SpladeQueryEncoder(model))
    assert found["spy films"] == [[hit.docid, str(hit.score)] for hit in stock.search("spy films", 3)]
    assert found["spy films NOT comedies"] != found["spy films"]
