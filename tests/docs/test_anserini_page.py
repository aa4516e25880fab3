"""The commands of ``docs/how-to/anserini.md`` run as they stand, in their order, and do what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import ALIASED, prebuilt_entry

from pyserini_compneg.lucene.prebuilt import registry

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs/how-to/anserini.md"
PREBUILT = "beir-v1.0.0-scifact.splade-v3"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def environment(anserini, metadata, path, tmp_path_factory):
    """That of a user whose Pyserini has downloaded an index before."""
    cache = tmp_path_factory.mktemp("cache")
    if metadata:
        entry = prebuilt_entry(PREBUILT)
        aliased = [prebuilt_entry(name) for name in ALIASED]
        metadata.files |= {"/beir-impact.json": [entry], "/msmarco-v1-passage-impact.json": aliased}
    else:
        entry = registry()[PREBUILT]
    modules = os.pathsep.join([str(PAGE.parents[1]), *filter(None, sys.path)])
    folder = cache / "indexes" / f"{entry['filename'].removesuffix('.tar.gz')}.{entry['md5']}"
    brief = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a dozen Javas, none of them for long
    options = " ".join([*filter(None, [anserini.get("JAVA_TOOL_OPTIONS")]), brief])
    return {
        **os.environ,
        **anserini,
        "JAVA_TOOL_OPTIONS": options,
        "PATH": path,
        "PYTHONPATH": modules,
        "PYSERINI_CACHE": str(cache),
    }, folder


@pytest.fixture(scope="module")
def folder(environment, tmp_path_factory):
    """Where all commands have run; what was cached stands in for the download."""
    variables, cached = environment
    folder = tmp_path_factory.mktemp("page")
    copy = f'mkdir -p "{cached.parent}" && cp -r indexes/stock "{cached}"\n'
    script = "set -euo pipefail\n" + "".join(
        (copy if "Prebuilt" in block or PREBUILT in block else "") + block for block in blocks("sh")
    )
    ended = subprocess.run(["bash", "-c", script], cwd=folder, env=variables, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    (folder / "output").write_text(ended.stdout)
    return folder


def ranking(path):
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return [(qid, docid, rank) for qid, _, docid, rank, _, _ in lines]


@pytest.mark.parametrize(("theirs", "queries"), [("stock", "123"), ("plugin", "123456")])
def test_their_runs_are_ours(folder, theirs, queries):
    found = ranking(folder / "runs" / f"{theirs}.txt")
    assert found == ranking(folder / "runs" / f"{theirs}-ours.txt")
    assert {qid for qid, _, _ in found} == set(queries)


def test_the_run_on_an_index_of_stock_anserini_is_ours(folder):
    """But for its tag: a stock index does not name its encoder."""
    run, ours = ((folder / "runs" / name).read_text().splitlines() for name in ("stock-index.txt", "plugin-ours.txt"))
    assert [line.split()[:5] for line in run] == [line.split()[:5] for line in ours]
    assert run[0].endswith(" compneg-atoms.jsonl") and ours[0].endswith(" compneg-my-model")


def test_the_hits_on_a_prebuilt_index(folder):
    hits = re.findall(r"\bd\d\b", (folder / "output").read_text())
    assert hits[:3] == ["d1", "d3", "d2"]


def test_pyserinis_searcher(folder, pyserini_host, monkeypatch, capsys):
    (script,) = blocks("python")
    monkeypatch.chdir(folder)
    exec(script.replace('Searcher("', f'Searcher("{folder}/'), {})  # Java has another working directory
    expected = [docid for qid, docid, _ in ranking(folder / "runs" / "stock-ours.txt") if qid == "3"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == expected
