"""Who answers for a shard, in a stand-in for Ray whose actors die, freeze and are slow on demand."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refusal

from pyserini_compneg.cluster import RayCluster, connection, replicas, shards, worker
from pyserini_compneg.cluster.shards import RayShard
from pyserini_compneg.cluster.worker import ShardActor
from pyserini_compneg.compose import Linear
from pyserini_compneg.lucene import cancellation
from pyserini_compneg.lucene.cancellation import Cancellation, check_cancelled
from pyserini_compneg.lucene.requests import ComposedSearch
from pyserini_compneg.support.errors import ArgumentError, ClusterError, IndexReadError, SearchCancelled, SearchTimeout

REPLICAS = 3


class RayError(Exception):
    pass


class Answer:
    """What an actor will answer, perhaps never."""

    def __init__(self, ray, actor, content, delay=0.0):
        self.ray, self.actor, self.content = ray, actor, content
        self.due = ray.now + delay
        self.is_cancelled = False

    @property
    def is_there(self):
        return not self.actor.lives or (not self.actor.is_frozen and self.ray.now >= self.due)


class StandIn:
    """A Ray without processes, and its clock. Actors are dead, frozen or slow on demand."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=type("", (RayError,), {}))
    util = SimpleNamespace(scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, **_: node))

    def __init__(self):
        self.actors, self.lives, self.is_begun, self.names = [], True, False, ["a", "b", "c"]
        self.now, self.faults, self.is_full = 0.0, {}, False

    def monotonic(self):
        return self.now

    def remote(self, **_):
        return lambda _: self

    def options(self, scheduling_strategy=None, **_):
        return SimpleNamespace(remote=lambda: self.start(scheduling_strategy), options=self.options)

    def start(self, node):
        actor = SimpleNamespace(number=len(self.actors), node=node, lives=self.lives, delay=0.0)
        actor.is_frozen = self.is_full
        actor.asked = []

        def ask(_question, _args, _kwargs, seconds):
            actor.seconds = seconds
            actor.asked.append(Answer(self, actor, (actor.number, None), actor.delay))
            return actor.asked[-1]

        actor.ask = SimpleNamespace(remote=ask)
        actor.open = SimpleNamespace(
            remote=lambda *_: Answer(self, actor, ((node, f"host-{node}"), self.faults.get(node)))
        )
        actor.heartbeat = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: Answer(self, actor, None)))
        self.actors.append(actor)
        return actor

    def get(self, answer):
        assert answer.is_there
        if not answer.actor.lives:
            raise RayError("it died")
        return answer.content

    def wait(self, answers, timeout):
        until = self.now + timeout
        due = [answer.due for answer in answers if answer.actor.lives and not answer.actor.is_frozen]
        if not any(answer.is_there for answer in answers):
            self.now = min(until, *due) if due else until
        return [answer for answer in answers if answer.is_there][:1], []

    def cancel(self, answer):
        answer.is_cancelled = True

    def kill(self, actor):
        actor.lives = False

    def is_initialized(self):
        return self.is_begun

    def init(self, *_, **__):
        self.is_begun = True

    def shutdown(self):
        self.is_begun = False

    def nodes(self):
        return [{"Alive": True, "Resources": {}}]


@pytest.fixture
def ray(monkeypatch):
    ray = StandIn()
    monkeypatch.setattr(shards, "time", ray)
    monkeypatch.setattr(cancellation, "time", ray)
    return ray


@pytest.fixture
def make_shard(ray):
    def make(replicas=REPLICAS, **settings):
        cluster = SimpleNamespace(ray=ray, worker_nodes=lambda: list(ray.names))
        return RayShard(cluster, None, Path("a-shard"), None, replicas, 1, **settings)

    return make


@pytest.fixture
def shard(make_shard):
    return make_shard()


def test_replicas_take_turns_and_so_do_those_that_replace_them(ray, shard, caplog):
    """One is lost, then all at once, then all for good."""
    assert [actor.node for actor in ray.actors] == ["a", "b", "c"]
    assert {shard.ask(max)() for _ in range(6)} == {0, 1, 2}
    assert warnings(caplog) == []
    ray.actors[1].lives = False
    assert {shard.ask(max)() for _ in range(12)} == {0, 2, 3}
    said = "a-shard: the process that searched this shard on host-b was lost; another one takes its place"
    assert warnings(caplog) == [said]
    assert ray.actors[3].node == "b"
    for actor in ray.actors:
        actor.lives = False
    assert shard.ask(max)() > REPLICAS
    for actor in ray.actors:
        actor.lives = False
    ray.lives = False
    said = "a-shard: the shard is gone: 6 actors that searched it were lost in turn"
    assert refusal(shard.ask(max), error=IndexReadError) == said


def warnings(caplog):
    """What is logged for users. Other tests may have had more logged."""
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def answers(ray, shard, count):
    """Who answers each of some requests, and the longest time that one takes."""
    longest, found = 0.0, []
    for _ in range(count):
        begun = ray.now
        found.append(shard.ask(max)())
        longest = max(longest, ray.now - begun)
    return found, longest


def test_a_late_replica_is_left_out_and_its_search_is_cancelled(ray, make_shard, caplog):
    """For .1 s, and each time for twice as long."""
    caplog.set_level("INFO")
    shard = make_shard(2)
    for actor in ray.actors:
        actor.delay = 0.01
    answers(ray, shard, 20)
    ray.actors[0].delay = 60.0
    found, longest = answers(ray, shard, 20)
    assert (set(found), longest) == ({1}, pytest.approx(0.05 + 0.01))
    assert sum(answer.is_cancelled for answer in ray.actors[0].asked) == 2
    pauses = ("0.1", "0.2")
    assert caplog.messages == [
        f"a-shard: the process on host-a is late, and is left out for {pause} s" for pause in pauses
    ]
    ray.actors[0].delay = 0.01
    ray.now += 1
    assert set(answers(ray, shard, 2)[0]) == {0, 1}


def test_one_late_replica_does_not_raise_the_limit(ray, make_shard):
    """Its own time counts only if it answers first."""
    shard = make_shard(2)
    for actor in ray.actors:
        actor.delay = 0.1
    answers(ray, shard, 30)
    ray.actors[0].delay = 60.0
    for _ in range(50):
        ray.now += 10
        assert answers(ray, shard, 1)[1] <= 0.1 * 2 + 0.1 + 0.001


def test_a_silent_replica_is_replaced_on_another_node(ray, make_shard, caplog):
    shard = make_shard(2)
    answers(ray, shard, 20)
    ray.actors[0].is_frozen = True
    found, longest = answers(ray, shard, 20)
    assert (set(found), longest) == ({1}, pytest.approx(0.05))
    assert warnings(caplog) == []
    ray.now += shards.SILENT_SECONDS + 1
    assert 2 in answers(ray, shard, 4)[0]
    assert (ray.actors[2].node, ray.actors[0].lives) == ("c", False)
    said = "a-shard: the process that searched this shard on host-a is silent; another one takes its place"
    assert warnings(caplog) == [said]


def test_lost_replicas_are_replaced_one_at_a_time(ray, make_shard):
    """Of all shards of an index, but at once if a shard has no other replica."""
    starts = replicas.Starts()
    index = [make_shard(2, starts=starts) for _ in range(3)]
    for shard in index:
        answers(ray, shard, 4)
    ray.is_full = True  # what starts now does not get on
    for number in (0, 2, 4):
        ray.actors[number].lives = False
    assert [set(answers(ray, shard, 4)[0]) for shard in index] == [{1}, {3}, {5}]
    assert len(ray.actors) == 7
    ray.is_full = ray.actors[6].is_frozen = False
    assert [set(answers(ray, shard, 4)[0]) for shard in index] == [{1, 6}, {3, 7}, {5, 8}]
    ray.is_full, ray.actors[1].lives = True, False
    assert set(answers(ray, index[0], 4)[0]) == {6}
    ray.is_full, ray.actors[3].lives, ray.actors[7].lives = False, False, False
    assert set(answers(ray, index[1], 4)[0]) == {10, 11}
    assert len(ray.actors) == 12 and ray.actors[9].is_frozen


def test_a_shard_that_is_asked_no_more_does_not_hold_up_the_others(ray, make_shard, monkeypatch):
    """It is closed, or left out, while an actor of it starts; nor is a replacement lost whose start fails."""
    starts = replicas.Starts()
    for is_closed in (True, False):
        other, shard = make_shard(2, starts=starts), make_shard(2, starts=starts)
        for one in (other, shard):
            answers(ray, one, 4)
        ray.is_full = True
        for one, first in ((other, -4), (shard, -3)):
            ray.actors[first].lives = False
            answers(ray, one, 4)
        ray.is_full = False
        there = len(ray.actors)
        if is_closed:
            other.close()
        else:
            ray.now += replicas.START_SECONDS + 1
        with monkeypatch.context() as failing:
            failing.setattr(shard._cluster, "worker_nodes", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                answers(ray, shard, 1)
        assert len(ray.actors) == there
        answers(ray, shard, 4)
        assert len(ray.actors) == there + 1


def test_the_only_replica_is_silent(ray, make_shard):
    """Another one takes its place, unless the time is over before, or partial results are allowed."""
    shard = make_shard(1)
    answers(ray, shard, 20)
    ray.actors[0].is_frozen = True
    with Cancellation(4).applied():
        said = "a-shard: the time of the search is over, and host-a did not answer; ask again later, or search with "
        assert refusal(shard.ask(max), error=SearchTimeout) == f"{said}replicas=2"
    assert shard.ask(max)() == 1
    assert ray.now < 12
    shard = make_shard(1, allow_partial=True)
    answers(ray, shard, 20)
    ray.actors[2].is_frozen = True
    assert refusal(shard.ask(max), error=IndexReadError) == "a-shard: host-a did not answer"


def test_a_long_search_is_not_repeated_and_not_blamed_on_a_node(ray, make_shard):
    """The process answers heartbeats, and no search was faster before."""
    shard = make_shard(2)
    ray.actors[0].delay = ray.actors[1].delay = 0.9
    answers(ray, shard, 20)
    assert [len(actor.asked) for actor in ray.actors] == [10, 10]
    shard = make_shard(1)
    ray.actors[2].delay = 60.0
    with Cancellation(5).applied():
        said = "the search took longer than the limit of 5 seconds"
        assert refusal(shard.ask(max), error=SearchTimeout).startswith(said)


def test_a_replica_that_cannot_open_the_shard_is_passed_over(ray, make_shard, caplog):
    """However late the other one is."""
    ray.faults["b"] = IndexReadError("no such folder", where="a-shard")
    shard = make_shard(2)
    ray.actors[0].delay = 30.0
    assert set(answers(ray, shard, 4)[0]) == {0}
    assert warnings(caplog) == ["a-shard: no such folder; other processes of the shard are asked"]
    ray.faults["a"] = ray.faults["b"]
    assert refusal(make_shard(2).ask(max), error=IndexReadError) == "a-shard: no such folder"


def test_a_replica_moves_to_a_node_that_comes_back(ray, make_shard):
    ray.names = ["a", "b"]
    shard = make_shard(2)
    answers(ray, shard, 2)
    ray.names = ["a"]
    ray.actors[1].lives = False
    for names, moved in ((["a"], False), (["a", "c"], True)):
        ray.names = names
        for _ in range(4):
            answers(ray, shard, 4)
            ray.now += 11
        assert set(answers(ray, shard, 8)[0]) == ({0, 3} if moved else {0, 2})
    assert [actor.node for actor in ray.actors] == ["a", "b", "a", "c"]
    assert [actor.lives for actor in ray.actors] == [True, False, False, True]


def test_a_replica_that_does_not_start_is_replaced(ray, make_shard, caplog):
    shard = make_shard(1)
    ray.actors[0].is_frozen = True
    said = "a-shard: the cluster has started no actor for the shard in 120 s; it may lack processors or nodes"
    assert refusal(shard.ask(max), error=IndexReadError) == said
    assert (shard.ask(max)(), ray.actors[1].node) == (1, "c")
    said = "a-shard: a process for this shard did not start in 120 s; another one takes its place"
    assert warnings(caplog) == [said]


def test_kinds_of_requests_take_about_as_long():
    one, two, many = (ComposedSearch([Linear({"a": 1.0})] * count, hits=10) for count in (1, 2, 64))
    assert len({shards._kind(max, [asked]) for asked in (one, two, many)}) == 3
    assert shards._kind(max, [many]) == shards._kind(max, [replace(many, threads=2)])
    assert shards._kind(max, [["a", "b", "c"]]) == shards._kind(max, [["d", "e"]]) != shards._kind(max, [])


def test_a_search_in_an_actor_ends_when_its_time_is_over_or_another_has_answered(ray, shard, monkeypatch):
    with Cancellation(60).applied():
        number = shard.ask(max)()
    assert 0 < ray.actors[number].seconds <= 60
    monkeypatch.setattr(worker, "call_is_cancelled", lambda: False)
    answer, error = ShardActor().ask(lambda _: check_cancelled(), (), {}, -1.0)
    assert answer is None and isinstance(error, SearchTimeout)
    assert ShardActor().ask(lambda _: "found", (), {}) == ("found", None)
    monkeypatch.setattr(worker, "call_is_cancelled", lambda: True)
    answer, error = ShardActor().ask(lambda _: check_cancelled(), (), {})
    assert answer is None and isinstance(error, SearchCancelled)


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
    assert warnings(caplog) == ["local: no node has a processor; the work waits until the cluster adds one"]


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
