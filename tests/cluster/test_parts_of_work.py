"""What a part of some work tells the process that has given it away, without a cluster."""

import socket
from types import SimpleNamespace

import pytest

exceptions = pytest.importorskip("ray.exceptions", reason="the extra ray is not installed")

from pyserini_compneg.cluster import RayRunner, tasks  # noqa: E402
from pyserini_compneg.cluster.worker import Setup, versions  # noqa: E402
from pyserini_compneg.documents.collection import collection_files  # noqa: E402
from pyserini_compneg.support.errors import ClusterError, InputError  # noqa: E402
from pyserini_compneg.support.files import iter_jsonl, iter_lines  # noqa: E402
from pyserini_compneg.support.staging import lock_seconds  # noqa: E402


def part(work, *arguments):
    return tasks._part(Setup(versions(), ".", "near", 25.0), None, 0, work, arguments)


def read(path, lines):
    return list(lines(path))


def told(given):
    """What the runner makes of the answer of a part."""

    def get(answer):
        if isinstance(answer, Exception):
            raise answer
        return answer

    ray = SimpleNamespace(get=get, exceptions=exceptions)
    cluster = SimpleNamespace(ray=ray, check_room=lambda *_: None, lacks=lambda *_: "", setup=lambda _: None)
    return RayRunner(cluster)._result(given)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g")
    token = lock_seconds.set(0.0)
    yield
    lock_seconds.reset(token)


@pytest.mark.parametrize("arguments", [(read, "films.jsonl", iter_lines), (collection_files, "films.jsonl")])
def test_a_path_that_a_node_does_not_reach(arguments, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "far")
    answer = part(*arguments)
    monkeypatch.setattr(socket, "gethostname", lambda: "near")
    with pytest.raises(InputError, match="no such file.*; the node far must reach the same paths as all others$"):
        told(answer)


def test_a_bad_line_is_one_on_any_node(tmp_path, monkeypatch):
    (tmp_path / "films.jsonl").write_text("{}\n{\n")
    answer = part(read, "films.jsonl", iter_jsonl)
    monkeypatch.setattr(socket, "gethostname", lambda: "near")
    with pytest.raises(InputError) as refused:
        told(answer)
    assert str(refused.value).startswith("films.jsonl:2: ")
    assert "node" not in str(refused.value)


def test_a_part_waits_for_locks():
    assert part(lock_seconds.get)[0] == 60.0
    assert told(part(lock_seconds.get)) == 60.0


def test_a_node_with_other_versions_is_refused():
    setup = Setup({**versions(), "Anserini": "9.9.9"}, ".", "near", 25.0)
    said = "^the node .* has Anserini .*, and the command runs with 9.9.9; install the same on all nodes$"
    with pytest.raises(ClusterError, match=said):
        told(tasks._part(setup, None, 0, lock_seconds.get, ()))


def test_what_was_never_tried_again_was_not_lost():
    with pytest.raises(ClusterError, match="^a part of the work was lost more than 10 times: "):
        told(exceptions.WorkerCrashedError())
    with pytest.raises(ClusterError, match="^a part of the work could not be run: .*no such package"):
        told(exceptions.RuntimeEnvSetupError("no such package"))


def test_a_part_that_waits_because_its_node_is_gone(caplog):
    """The node with processors goes while the parts run, and comes back."""
    lacking = iter(["", "", "no node", "no node", "", ""])
    rounds = iter([[], [], [], [], [], ["part"]])

    def wait(left, timeout):
        done = next(rounds)
        return done, [] if done else left

    total = SimpleNamespace(total=SimpleNamespace(remote=lambda: 0))
    ray = SimpleNamespace(wait=wait, get=lambda one: ("made", None, []) if one == "part" else 0, exceptions=exceptions)
    cluster = SimpleNamespace(ray=ray, check_room=lambda *_: None, lacks=lambda *_: next(lacking), setup=lambda _: None)
    assert RayRunner(cluster)._results(["part"], total, "indexing") == ["made"]
    assert caplog.messages == ["no node; the work waits until the cluster adds one"]
