"""Encoding, indexing and searching on two nodes: what comes out is what one machine makes, whatever is lost."""

import gzip
import json
import shutil
import signal
import time
from pathlib import Path

import pytest
from film_index import start
from json_lines import write_jsonl
from ray_nodes import ray_nodes
from served import serving

pytest.importorskip("ray", reason="the extra ray is not installed")

from pyserini_compneg.cluster import RayCluster  # noqa: E402
from pyserini_compneg.commands import encode, search, serve  # noqa: E402
from pyserini_compneg.commands.main import main  # noqa: E402
from pyserini_compneg.encode.sharded import PLAN_FILE  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index  # noqa: E402
from pyserini_compneg.lucene import SHARDS_NAME, java_class  # noqa: E402
from pyserini_compneg.support.errors import ClusterError  # noqa: E402

pytestmark = pytest.mark.slow

WORDS = ["spy", "war", "comedy", "western", "drama"]
QUERIES = ["spy AND war NOT comedy", "(drama OR western) NOT spy", "comedy NOT! war", "western AND drama"]


@pytest.fixture(scope="module")
def nodes():
    with ray_nodes() as started:
        yield started


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    texts = (" ".join(WORDS[(number * step) % 5] for step in range(1, 5)) for number in range(300))
    films = [{"id": f"d{number}", "contents": f"A {text} film."} for number, text in enumerate(texts)]
    write_jsonl(folder / "films.jsonl", *films)
    (folder / "topics.tsv").write_text("".join(f"{number}\t{query}\n" for number, query in enumerate(QUERIES)))
    build_index(folder / "films.jsonl", folder / "one", store_raw=True)
    return folder


def ranking(films, index, name="run.txt"):
    output = films / name
    topics = films / "topics.tsv"
    return ["search", "--index", index, "--topics", topics, "--output", output, "--difference", "damped"], output


def ranked(films, index):
    command, output = ranking(films, index)
    assert main([*map(str, command)]) == 0
    return output.read_text()


def build(films, index, *more):
    return ["index", "--collection", films, "--index", index, "--shards", "2", *more]


COMMANDS = """
import json, sys
from pyserini_compneg.cluster import RayCluster
from pyserini_compneg.commands.main import main
with RayCluster(sys.argv[1]):
    for command in json.loads(sys.argv[2]):
        print(main(command), end="\\0", flush=True)
        print(end="\\0", file=sys.stderr, flush=True)
"""


def run(nodes, commands):
    """Runs commands by their names, all by one driver: what each says, and what it prints, the exit code last."""
    given = [[*map(str, command)] for command in commands.values()]
    process = start(nodes.address, json.dumps(given), code=COMMANDS)
    printed, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return dict(zip(commands, zip(said.split("\0")[:-1], printed.split("\0")[:-1], strict=True), strict=True))


@pytest.fixture(scope="module")
def sharded(films, nodes):
    """An index in shards. The driver of its build was killed, and another one has gone on, and then done more."""
    index, lost, there = films / "built" / "sharded", films / "lost", ["--ray", nodes.address]
    command = build(films / "films.jsonl", index, "--store-raw", *there)
    process = start(*command, module="pyserini_compneg")
    wait_for(lambda: [*films.glob("built/.sharded.building/shard-*")], process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not index.exists()
    wait_for(lambda: not nodes.workers("ray::_part"))  # they hold the locks of the killed process
    build_sharded_index(films / "films.jsonl", lost, 2)
    (lost / "shard-00001-of-00002").rename(films / "away")
    (films / "bad.jsonl").write_text('{"id": "a", "contents": "spy"}\n{\n')
    said = run(
        nodes,
        {
            "resume": [*command, "--resume"],
            "search": [*ranking(films, index, "there.txt")[0], *there, "replicas=2"],
            "lost": ["search", "--index", lost, "--query", "spy", *there],
            "partial": [*ranking(films, lost, "partial.txt")[0], *there, "--allow-partial"],
            "bad": build(films / "bad.jsonl", films / "made" / "index", *there),
        },
    )
    return index, said


def test_an_index_of_two_nodes_finds_what_one_index_finds(films, sharded):
    """Though a driver was killed while it was built."""
    index, said = sharded
    assert (said["resume"][1], said["search"][1]) == ("0", "0"), said
    assert [*index.parent.iterdir()] == [index]
    assert [shard["documents"] for shard in json.loads((index / SHARDS_NAME).read_text())["shards"]] == [150] * 2
    wanted = ranked(films, films / "one")
    assert len(wanted.splitlines()) > 300
    assert ranked(films, index) == wanted
    assert (films / "there.txt").read_text() == wanted


SEARCHER = """
import os, signal, sys, time
from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.cluster import RayCluster, ShardedImpactSearcher
from pyserini_compneg.lucene.cancellation import Cancellation
address, index, one = sys.argv[1:]
query = "spy AND war NOT comedy"
cluster = RayCluster(address)

def pid(reader):
    return os.getpid()

with ShardedImpactSearcher(index, ray=address) as searcher:
    found = searcher.search(query, 20)
    explained = searcher.explain(query, found[0].docid)
    processes = searcher.reader._ask(pid)
    assert len(set(processes)) == 2 and os.getpid() not in processes
    for process in processes:
        os.kill(process, signal.SIGKILL)
    assert searcher.search(query, 20) == found
    assert not set(processes) & set(searcher.reader._ask(pid))
    scores = searcher.score(query, [hit.docid for hit in found])
    source = searcher.doc(found[0].docid)
with ShardedImpactSearcher(index, ray=address, replicas=2) as searcher:
    searcher.search(query, 20)
    frozen = searcher.reader._ask(pid)
    for process in frozen:
        os.kill(process, signal.SIGSTOP)  # its other replicas answer
    with Cancellation(120).applied():
        for _ in range(10):
            assert searcher.search(query, 20) == found
    for process in frozen:
        os.kill(process, signal.SIGCONT)
cluster.close()
with SignedImpactSearcher(one) as searcher:
    assert searcher.search(query, 20) == found
    assert searcher.explain(query, found[0].docid) == explained
    assert scores == [hit.score for hit in found] and source == searcher.doc(found[0].docid)
print("done")
"""


def test_actors_that_are_killed_are_replaced_and_those_that_are_frozen_are_left_out(films, nodes, sharded):
    process = start(nodes.address, sharded[0], films / "one", code=SEARCHER)
    printed, said = process.communicate(timeout=400)
    assert (process.returncode, printed) == (0, "done\n"), said


def test_a_server_sits_on_the_cluster(films, nodes, sharded):
    index = Path(shutil.copytree(sharded[0], films / "served"))
    search = "/v1/{}/search?query=spy+AND+war+NOT+comedy&hits=20"
    with serving("--index", index, films / "one", "--ray", nodes.address) as server:
        wanted = server.get(search.format("one"))[1]["candidates"]
        assert len(wanted) == 20
        assert len(nodes.workers("ray::ShardActor")) == 2
        assert server.get(search.format("served"))[1]["candidates"] == wanted
        build_sharded_index(films / "films.jsonl", index, 1, store_raw=True, existing="overwrite")
        until = time.monotonic() + 60
        while len(nodes.workers("ray::ShardActor")) != 1 and time.monotonic() < until:
            time.sleep(0.2)
        assert server.get(search.format("served"))[1]["candidates"] == wanted
        assert len(nodes.workers("ray::ShardActor")) == 1
        assert server.stop(signal.SIGTERM) == 143


def test_a_shard_that_is_gone_for_good(films, sharded):
    _, said = sharded
    why = "the shard cannot be read: no such file or directory"
    assert said["lost"] == (f"error: {films / 'lost'}/shard-00001-of-00002: {why}\n", "1")
    assert (said["partial"][1], "results are partial: 1 of 2 shards are searched" in said["partial"][0]) == ("0", True)
    partial = (films / "partial.txt").read_text()
    assert {line.split()[5] for line in partial.splitlines()} == {"compneg-bm25-partial"}


def test_bad_input_is_said_in_one_line_and_leaves_nothing(films, sharded):
    said, printed = sharded[1]["bad"]
    assert printed == "2"
    assert said.splitlines()[-1].startswith(f"error: {films / 'bad.jsonl'}:2: ")
    assert not (films / "made").exists()


def test_vectors_are_those_of_one_machine(films, nodes, tmp_path):
    """With the small model of the package. A node that ends meanwhile takes no document with it."""
    few = films / "few.jsonl"
    few.write_text("".join((films / "films.jsonl").read_text().splitlines(keepends=True)[:40]))
    given = ["--collection", str(few), "--encoder", "bm25+mini", "--shards", "3", "--output"]
    assert encode.main([*given, str(tmp_path / "here")]) == 0
    process = start(*given, tmp_path / "there", "--ray", nodes.address, module="pyserini_compneg.encode")
    begun = tmp_path / "there" / PLAN_FILE
    wait_for(lambda: begun.exists() and len(nodes.workers("ray::_part")) == 2, process)  # so that one is on that node
    nodes.tell("remove")
    _, said = process.communicate(timeout=400)
    nodes.tell("add")
    assert process.returncode == 0, said
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == names
    assert len(names) == 5  # with the plan and what is said of the vectors
    for name in names:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    with gzip.open(tmp_path / "here" / names[1], "rt") as lines:
        assert any(term.startswith("@") for term in json.loads(lines.readline())["vector"])


def wait_for(there, process=None):
    for _ in range(1200):
        if there():
            return
        assert process is None or process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    raise AssertionError("it did not come")


def test_an_index_that_is_not_in_shards(films, capsys):
    index = str(films / "one")
    remedy = "build {} with index --shards N, or leave out --ray"
    assert search.main(["--index", index, "--query", "spy", "--ray", "auto"]) == 2
    said = f"error: {index}: has no compneg-shards.json, so there are no shards for a cluster; {remedy.format('it')}\n"
    assert capsys.readouterr() == ("", said)
    assert serve.main(["--index", index, "--ray", "auto"]) == 2
    said = f"error: --ray auto: none of the indexes is in shards ({index}); {remedy.format('one')}\n"
    assert capsys.readouterr() == ("", said)


def test_java_before_ray_is_refused():
    """The other way round the process would end at the next fault that Java handles."""
    java_class("io.compneg.search.SignedSearcher")
    with pytest.raises(ClusterError) as refused:
        RayCluster("local")
    assert str(refused.value) == (
        "Java runs in this process already, and then Ray's handling of signals would end the process; connect to the "
        "cluster before the first index is opened"
    )
