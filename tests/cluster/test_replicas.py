"""Who answers for a shard, in a stand-in for Ray whose actors die on demand."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refusal

from pyserini_compneg.cluster import RayCluster, connection
from pyserini_compneg.cluster.shards import RayShard, ShardActor
from pyserini_compneg.lucene.cancellation import Cancellation, check_cancelled
from pyserini_compneg.support.errors import ArgumentError, ClusterError, IndexReadError, SearchTimeout

REPLICAS = 3


class RayError(Exception):
    pass


class StandIn:
    """A Ray without processes. An answer is a function that is called when it is waited for."""

    exceptions = SimpleNamespace(
        RayError=RayError, RayTaskError=type("", (RayError,), {}), GetTimeoutError=type("", (RayError,), {})
    )

    def __init__(self):
        self.actors, self.lives, self.is_begun = [], True, False

    def remote(self, _):
        return self

    def options(self, **_):
        return SimpleNamespace(remote=self.start)

    def start(self):
        actor = SimpleNamespace(number=len(self.actors), lives=self.lives, seconds=None)

        def ask(_question, _args, _kwargs, seconds):
            actor.seconds = seconds
            return lambda: self.answer(actor, (actor.number, None))

        actor.ask = SimpleNamespace(remote=ask)
        actor.open = SimpleNamespace(remote=lambda *_: lambda: None)
        self.actors.append(actor)
        return actor

    def answer(self, actor, answer):
        if not actor.lives:
            raise RayError("it died")
        return answer

    def get(self, asked, timeout=None):
        return asked()

    def wait(self, asked, timeout):
        return asked, []

    def is_initialized(self):
        return self.is_begun

    def init(self, *_, **__):
        self.is_begun = True

    def shutdown(self):
        self.is_begun = False

    def nodes(self):
        return [{"Alive": True, "Resources": {}}]


@pytest.fixture
def ray():
    return StandIn()


@pytest.fixture
def shard(ray):
    return RayShard(SimpleNamespace(ray=ray), None, Path("a-shard"), None, REPLICAS, 1)


def test_replicas_take_turns_and_so_do_those_that_replace_them(ray, shard, caplog):
    """One is lost, then all at once, then all for good."""
    assert {shard.ask(max)() for _ in range(6)} == {0, 1, 2}
    assert caplog.messages == []
    ray.actors[1].lives = False
    assert {shard.ask(max)() for _ in range(12)} == {0, 2, 3}
    assert caplog.messages == ["a-shard: a process that searched this shard was lost; another one takes its place"]
    for actor in ray.actors:
        actor.lives = False
    assert shard.ask(max)() > REPLICAS
    for actor in ray.actors:
        actor.lives = False
    ray.lives = False
    said = "a-shard: the shard is gone: 6 actors that searched it were lost in turn"
    assert refusal(shard.ask(max), error=IndexReadError) == said


def test_a_search_in_an_actor_ends_when_its_time_is_over(ray, shard):
    with Cancellation(60).applied():
        number = shard.ask(max)()
    assert 0 < ray.actors[number].seconds <= 60
    answer, error = ShardActor().ask(lambda _: check_cancelled(), (), {}, -1.0)
    assert answer is None and isinstance(error, SearchTimeout)
    assert ShardActor().ask(lambda _: "found", (), {}) == ("found", None)


@pytest.fixture
def connected(ray, monkeypatch):
    ray._private = SimpleNamespace(worker=SimpleNamespace())
    monkeypatch.setattr(connection, "_ray", lambda: ray)
    monkeypatch.setattr(connection, "machine_runs", lambda: False)
    return ray


def test_the_last_user_of_a_connection_ends_it(connected):
    first, second = RayCluster(), RayCluster()
    said = "this process is connected to the cluster local, and can have one connection only; close that one first"
    assert refusal(RayCluster, "auto", error=ClusterError) == f"auto: {said}"
    first.close()
    first.close()
    assert connected.is_initialized()
    second.close()
    assert not connected.is_initialized()


def test_a_connection_of_somebody_else_stays(connected):
    connected.init()
    with RayCluster(), RayCluster("auto"):
        pass
    assert connected.is_initialized()


def test_a_cluster_that_adds_nodes_on_demand(connected, caplog):
    with RayCluster() as cluster:
        cluster.check_room(4)
    assert caplog.messages == ["local: no node has a processor; the work waits until the cluster adds one"]


def test_a_part_that_is_too_large_for_every_node(connected, monkeypatch):
    monkeypatch.setattr(connected, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": count}} for count in (2, 1)])
    with RayCluster() as cluster:
        wanted = "a part of the work needs 64 CPU, and no node has more than 2; ask for less, or add a node"
        assert refusal(cluster.check_room, 64, error=ClusterError) == f"local: {wanted}"


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("nowhere", ArgumentError, "'nowhere': no address of a Ray cluster; expected local, auto, or HOST:PORT"),
        ("localhost:1", ClusterError, "localhost:1: there is no Ray cluster: connection refused; start one with ray"),
    ],
)
def test_there_is_no_such_cluster(connected, address, error, message):
    assert refusal(RayCluster, address, error=error).startswith(message)
    assert not connected.is_initialized()


def test_a_cluster_that_asks_for_a_token(connected, monkeypatch, capfd):
    def refused(*_, **__):
        for _ in range(20):
            os.write(2, b"[2026-11-23 11:10:26,929 W 1 1] gcs_client.cc:210: RPC error: InvalidAuthToken: ...\n")
        raise ConnectionError("Failed to connect to Ray cluster at head:6379")

    monkeypatch.setattr(connected, "init", refused, raising=False)
    with pytest.raises(ClusterError, match="^auto: this Ray cluster asks for a token: set RAY_AUTH_MODE=token"):
        RayCluster("auto")
    assert capfd.readouterr().err == ""
