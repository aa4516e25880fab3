"""What a part of some work tells the process that has given it away, without a cluster."""

import socket
from types import SimpleNamespace

import pytest
from refusals import refusal

exceptions = pytest.importorskip("ray.exceptions", reason="the extra ray is not installed")

from pyserini_compneg.cluster import RayRunner, tasks  # noqa: E402
from pyserini_compneg.cluster.worker import Setup, versions  # noqa: E402
from pyserini_compneg.documents.collection import collection_files  # noqa: E402
from pyserini_compneg.support.errors import ClusterError  # noqa: E402
from pyserini_compneg.support.files import iter_jsonl, iter_lines  # noqa: E402
from pyserini_compneg.support.staging import lock_seconds  # noqa: E402

SETUP = Setup(versions(), ".", "near", 25.0)


def part(work, *arguments, setup=SETUP):
    return tasks._part(setup, None, 0, work, arguments)


def read(path, lines):
    return list(lines(path))


def runner(lacks=lambda *_: "", **ray):
    ray = SimpleNamespace(exceptions=exceptions, **ray)
    return RayRunner(SimpleNamespace(ray=ray, check_room=lambda *_: None, lacks=lacks, setup=lambda _: None))


def told(given):

    def get(answer):
        if isinstance(answer, Exception):
            raise answer
        return answer

    return runner(get=get)._result(given)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g")
    token = lock_seconds.set(0.0)
    yield
    lock_seconds.reset(token)


@pytest.mark.parametrize("host", ["near", "far"])
def test_what_a_part_cannot_read(host, tmp_path, monkeypatch):
    """A path may be missing on one node alone; a bad line is one on any node."""
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    for work in ((read, "films.jsonl", iter_lines), (collection_files, "films.jsonl")):
        said = refusal(told, part(*work))
        assert "no such file" in said
        assert said.endswith("; the node far must reach the same paths as all others") == (host == "far")
    (tmp_path / "films.jsonl").write_text("{}\n{\n")
    said = refusal(told, part(read, "films.jsonl", iter_jsonl))
    assert said.startswith("films.jsonl:2: ") and "node" not in said


def test_a_part_waits_for_locks():
    assert told(part(lock_seconds.get)) == 60.0


def test_a_node_with_other_versions_is_refused():
    other = SETUP._replace(versions={**versions(), "Anserini": "9.9.9"})
    said = "^the node .* has Anserini .*, and the command runs with 9.9.9; install the same on all nodes$"
    with pytest.raises(ClusterError, match=said):
        told(part(lock_seconds.get, setup=other))


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (exceptions.WorkerCrashedError(), "a part of the work was lost more than 10 times: "),
        (exceptions.RuntimeEnvSetupError("no such package"), "a part of the work could not be run: "),
    ],
)
def test_what_was_never_tried_again_was_not_lost(lost, said):
    assert refusal(told, lost, error=ClusterError).startswith(said)


def test_a_part_that_waits_because_its_node_is_gone(caplog):
    """The node with processors goes while the parts run, and comes back."""
    lacking = iter(["", "", "no node", "no node", "", ""])
    rounds = iter([[], [], [], [], [], ["part"]])

    def wait(left, timeout):
        done = next(rounds)
        return done, [] if done else left

    total = SimpleNamespace(total=SimpleNamespace(remote=lambda: 0))
    answers = {"part": ("made", None, []), 0: 0}
    waiting = runner(lambda *_: next(lacking), wait=wait, get=answers.__getitem__)
    assert waiting._results(["part"], total, "indexing") == ["made"]
    assert caplog.messages == ["no node; the work waits until the cluster adds one"]
