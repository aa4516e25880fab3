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
from pyserini_compneg.encode.sharded import PLAN_FILE  # noqa: E402
from pyserini_compneg.errors import ClusterError  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index  # noqa: E402
from pyserini_compneg.lucene import SHARDS_NAME, java_class  # noqa: E402

pytestmark = pytest.mark.slow

WORDS = ["spy", "war", "comedy", "western", "drama"]
QUERIES = ["spy AND war NOT comedy", "(drama OR western) NOT spy", "comedy NOT! war", "western AND drama"]


@pytest.fixture(scope="module")
def nodes():
    with ray_nodes() as started:
        yield started


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A collection, topics, and an index on one machine."""
    folder = tmp_path_factory.mktemp("films")
    texts = (" ".join(WORDS[(number * step) % 5] for step in range(1, 5)) for number in range(300))
    films = [{"id": f"d{number}", "contents": f"A {text} film."} for number, text in enumerate(texts)]
    write_jsonl(folder / "films.jsonl", *films)
    (folder / "topics.tsv").write_text("".join(f"{number}\t{query}\n" for number, query in enumerate(QUERIES)))
    build_index(folder / "films.jsonl", folder / "one", store_raw=True)
    return folder


def run(command, *arguments, code=0):
    """Runs a command; returns what it said, and what it printed."""
    process = start(*arguments, module=f"pyserini_compneg.{command}")
    printed, said = process.communicate(timeout=400)
    assert process.returncode == code, said
    return said, printed


def sharded(films, nodes, name="sharded"):
    """An index in shards that was built on the cluster, or a copy of it."""
    built = films / "sharded"
    if not built.exists():
        where = ["--index", built, "--shards", "2", "--ray", nodes.address, "--store-raw"]
        run("index", "--collection", films / "films.jsonl", *where)
    return built if name == built.name else Path(shutil.copytree(built, films / name))


def ranked(films, index, *options):
    """The run of all queries."""
    output = films / "run.txt"
    search = ["--index", index, "--topics", films / "topics.tsv", "--output", output, "--difference", "damped"]
    said, _ = run("search", *search, *options)
    return output.read_text(), said


def test_an_index_of_two_nodes_finds_what_one_index_finds(films, nodes):
    index = sharded(films, nodes)
    assert [shard["documents"] for shard in json.loads((index / SHARDS_NAME).read_text())["shards"]] == [150] * 2
    wanted, _ = ranked(films, films / "one")
    assert len(wanted.splitlines()) > 300
    assert ranked(films, index)[0] == wanted
    assert ranked(films, index, "--ray", nodes.address, "--replicas", "2")[0] == wanted


SEARCHER = """
import os, signal, sys, time
from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.cluster import RayCluster, ShardedImpactSearcher
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
    os.kill(processes[1], signal.SIGKILL)
    assert searcher.search(query, 20) == found, "after a kill"
    for process in searcher.reader._ask(pid):
        os.kill(process, signal.SIGKILL)
    assert searcher.search(query, 20) == found, "after two"
    scores = searcher.score(query, [hit.docid for hit in found])
    source = searcher.doc(found[0].docid)
cluster.close()
with SignedImpactSearcher(one) as searcher:
    assert searcher.search(query, 20) == found
    assert searcher.explain(query, found[0].docid) == explained
    assert scores == [hit.score for hit in found] and source == searcher.doc(found[0].docid)
print("done")
"""


def test_an_actor_that_is_killed_is_replaced_and_asked_again(films, nodes):
    process = start(nodes.address, sharded(films, nodes), films / "one", code=SEARCHER)
    printed, said = process.communicate(timeout=400)
    assert (process.returncode, printed) == (0, "done\n"), said


def test_a_server_sits_on_the_cluster(films, nodes):
    index, search = sharded(films, nodes, "served"), "/v1/{}/search?query=spy+AND+war+NOT+comedy&hits=20"
    with serving("--index", index, films / "one", "--ray", nodes.address) as server:
        wanted = server.get(search.format("one"))[1]["candidates"]
        assert len(wanted) == 20
        assert len(nodes.workers("ray::ShardActor")) == 2
        assert server.get(search.format("served"))[1]["candidates"] == wanted
        build_sharded_index(films / "films.jsonl", index, 1, store_raw=True, overwrite=True)
        until = time.monotonic() + 60
        while len(nodes.workers("ray::ShardActor")) != 1 and time.monotonic() < until:
            time.sleep(0.2)
        assert server.get(search.format("served"))[1]["candidates"] == wanted
        assert len(nodes.workers("ray::ShardActor")) == 1
        assert server.stop(signal.SIGTERM) == 143
    said, _ = run("serve", "--index", films / "one", "--ray", nodes.address, code=2)
    why = "none of the indexes is in shards"
    remedy = "build one with index --shards N, or leave out --ray"
    assert said == f"error: --ray {nodes.address}: {why} ({films / 'one'}); {remedy}\n"


def test_a_shard_that_is_gone_for_good(films, nodes):
    index = sharded(films, nodes, "to-be-lost")
    (index / "shard-00001-of-00002").rename(films / "away")
    search = ["--index", index, "--query", "spy", "--ray", nodes.address]
    said, printed = run("search", *search, code=1)
    why = "the shard cannot be read: no such file or directory"
    assert (said, printed) == (f"error: {index}/shard-00001-of-00002: {why}\n", "")
    partial, said = ranked(films, index, "--ray", nodes.address, "--allow-partial")
    assert {line.split()[5] for line in partial.splitlines()} == {"compneg-partial"}
    assert "results are partial: 1 of 2 shards are searched" in said


def test_vectors_are_those_of_one_machine(films, nodes, tmp_path):
    """With the small model of the package. A node that ends meanwhile takes no document with it."""
    few = films / "few.jsonl"
    few.write_text("".join((films / "films.jsonl").read_text().splitlines(keepends=True)[:40]))
    encode = ["--collection", few, "--encoder", "bm25+mini", "--shards", "3"]
    run("encode", *encode, "--output", tmp_path / "here")
    process = start(*encode, "--output", tmp_path / "there", "--ray", nodes.address, module="pyserini_compneg.encode")
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


def wait_for(there, process):
    """Waits until something is there, while a process runs."""
    for _ in range(600):
        if there():
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    raise AssertionError("it did not come")


@pytest.mark.kill
def test_a_driver_that_is_killed_leaves_a_build_to_go_on_with(films, nodes, tmp_path):
    index = tmp_path / "index"
    build = ["--collection", films / "films.jsonl", "--index", index, "--shards", "2", "--ray", nodes.address]
    process = start(*build, module="pyserini_compneg.index")
    wait_for(lambda: list(tmp_path.glob(".index.building/shard-*")), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not index.exists()
    time.sleep(3)  # until the workers of the killed process are gone
    run("index", *build, "--resume")
    assert ranked(films, index)[0] == ranked(films, films / "one")[0]
    assert list(tmp_path.iterdir()) == [index]


@pytest.mark.parametrize(
    ("address", "code", "message"),
    [
        ("nowhere", 2, "'nowhere': no address of a Ray cluster; expected local, auto, or HOST:PORT such as head:6379"),
        ("localhost:1", 1, "localhost:1: there is no Ray cluster: connection refused; start one with ray start --head"),
    ],
)
def test_there_is_no_such_cluster(films, tmp_path, address, code, message):
    build = ["--collection", films / "films.jsonl", "--index", tmp_path / "index", "--shards", "2", "--ray", address]
    assert run("index", *build, code=code) == (f"error: {message}\n", "")
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_said_in_one_line_and_leaves_nothing(films, nodes, tmp_path):
    ray = ["--ray", nodes.address]
    index = ["--index", tmp_path / "index", *ray]
    collection = ["--collection", films / "films.jsonl"]
    said, _ = run("index", *collection, *index, code=2)
    assert said.startswith("error: --ray needs --shards N, the indexes that its machines build\n")
    (tmp_path / "few.jsonl").write_text('{"id": "a", "contents": "spy"}\n')
    said, _ = run("index", "--collection", tmp_path / "few.jsonl", *index, "--shards", "3", code=2)
    assert said.splitlines()[-1].endswith("few.jsonl: 3 shards need as many documents, got 1; build fewer shards")
    said, _ = run("index", *collection, *index, "--shards", "2", "--threads", "64", code=1)
    wanted = "a part of the work needs 64 CPU, and no node has more than 1; ask for less, or add a node"
    assert said == f"error: {nodes.address}: {wanted}\n"
    said, _ = run("search", "--index", films / "one", "--query", "spy", *ray, code=2)
    why = "has no compneg-shards.json, so there are no shards for a cluster"
    assert said == f"error: {films / 'one'}: {why}; build it with index --shards N, or leave out --ray\n"
    assert [path.name for path in tmp_path.iterdir()] == ["few.jsonl"]


def test_java_before_ray_is_refused():
    """The other way round the process would end at the next fault that Java handles."""
    java_class("io.compneg.SignedSearcher")
    with pytest.raises(ClusterError) as refused:
        RayCluster("local")
    assert str(refused.value) == (
        "Java runs in this process already, and then Ray's handling of signals would end the process: connect to the "
        "cluster before the first index is opened"
    )


VERSIONS = """
import sys
from pyserini_compneg.cluster import RayCluster, RayRunner, connection
from pyserini_compneg.errors import ClusterError
from pyserini_compneg.encode.bm25 import lucene_idf
true = connection.versions()
connection.versions = lambda: {**true, "Anserini": "9.9.9"}
with RayCluster(sys.argv[1]) as cluster:
    try:
        RayRunner(cluster)(lucene_idf, [(1, 2)], "counting")
    except ClusterError as error:
        print(error)
"""


def test_other_versions_on_a_node_are_refused(nodes):
    printed, said = start(nodes.address, code=VERSIONS).communicate(timeout=400)
    assert printed.startswith("the node "), said
    assert printed.endswith(", and the command runs with 9.9.9; install the same on all nodes\n")
