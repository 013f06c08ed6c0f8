"""A run with Ray, on a cluster and on this machine: the same file, whatever happens, and no key is stored.

Skipped if Ray is not installed (`pip install '.[ray]'`).
"""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec

import pytest

from parley.runs.executors import ray_pool
from parley.runs.executors.ray_connection import import_ray
from tests.chaos.ray_cluster import RayCluster
from tests.panels import RUN_PANEL
from tests.parley.test_resume import kept

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs ray")  # a second to import, in every worker
RUN = ("--suite", "tiny", "--yardstick", "off", "--quiet", "--repeats", "2", "--seed", "3", "--concurrency", "8")
UNITS, CALLS = 18, 144
RAY = ("--executor", "ray", "--workers", "2")
KEY = "sk-planted-0123456789abcdef"
STUDIES = '''
import asyncio
import os
import signal
from pathlib import Path
from parley.judging.malibu.study import Malibu


class Deadly(Malibu):
    """MALIBU; the tenth unit kills the worker that runs it, once its replies are stored."""

    name = "deadly"

    async def run(self, unit, models):
        outcome = await super().run(unit, models)
        if [u.id for u in self.plan()].index(unit.id) == 9 and Path("armed").exists() and not Path("killed").exists():
            Path("ready").touch()
            while not Path("stored").exists():
                await asyncio.sleep(0.01)
            Path("killed").write_text(unit.id)
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

class Poison(Malibu):
    async def run(self, unit, models):
        os.kill(os.getpid(), signal.SIGKILL)

class Where(Malibu):
    """MALIBU; each unit names the node that runs it, and waits until the other one has begun too."""

    async def run(self, unit, models):
        import ray

        Path(f"node-{ray.get_runtime_context().get_node_id()}").touch()
        while len([*Path().glob("node-*")]) < 2:
            await asyncio.sleep(0.05)
        return await super().run(unit, models)

class Changing(Malibu):
    def sources(self):
        return {"data": str(os.getpid())}
'''


@pytest.fixture(scope="module")
def nodes():
    """A running cluster of one node with two CPUs, and no keys; this process is connected to it."""
    os.environ.pop("PARLEY_SERVER_KEY", None)
    os.environ.pop("OPENAI_API_KEY", None)
    ray = import_ray()
    cluster = RayCluster()
    ray.init(cluster.address, log_to_driver=False)
    yield cluster.nodes
    ray.shutdown()
    cluster.close()


@pytest.fixture
def cluster(nodes, place):
    """Its address."""
    (place / "own.py").write_text(STUDIES)
    return str(nodes.address)


def own(study, model="sim/judge", *flags):
    return ("run", f"own.py:{study}", *RUN_PANEL[2:], *RUN, "--model", model, "--out", "a.sqlite", *flags)


def panel(model="sim/judge", *flags):
    return (*RUN_PANEL, *RUN, "--model", model, "--out", "a.sqlite", *flags)


def test_on_a_cluster_a_killed_worker_costs_nothing_but_time(parley, start, cluster, place, server, run_file):
    command = own("Deadly", server.model(), "--no-cache")
    assert parley(*command).status == 0
    (place / "a.sqlite").rename("peace.sqlite")
    (place / "armed").touch()
    server.asked.clear()
    process = start(*command, *RAY, "--ray-address", cluster)
    process.wait_for((place / "ready").exists)
    asked = len(server.asked)
    process.wait_for(lambda: kept(place) >= asked)
    (place / "stored").touch()
    result = process.end()
    assert result.status == 0, result.err
    file, killer = run_file("a.sqlite"), (place / "killed").read_text()
    paid = file.rows(f"SELECT DISTINCT cached FROM calls WHERE unit = '{killer}'")
    assert paid == [(1,)], "its replies were paid for"
    assert file.story() == run_file("peace.sqlite").story()
    file.check()
    assert len(file.rows("SELECT detail FROM events WHERE kind = 'worker lost'")) == 1


def test_a_run_interrupted_with_ray_is_resumed_without_it(parley, cluster, server, run_file):
    command = [word for word in panel(server.model()) if word != "--quiet"]
    stopped = parley(*command, *RAY[:2], "--workers", "6", "--budget-calls", "60")
    assert stopped.status == 1
    assert "the cluster has room for 2 of 6 workers" in stopped.err
    noted = run_file("a.sqlite").rows("SELECT detail FROM events WHERE kind = 'workers'")
    assert noted == [("the cluster has room for 2 of 6 workers",)]
    assert "parley: stopped: the budget of 60 calls is spent" in stopped.err
    assert len(server.asked) == 60, "one budget covers all workers"
    assert 0 < run_file("a.sqlite").count() < UNITS
    assert parley(*command).status == 0
    assert len(server.asked) == CALLS, "the replies that workers received were in the run's cache"
    assert parley(*command[:-1], "peace.sqlite", "--no-cache").status == 0
    assert run_file("a.sqlite").story() == run_file("peace.sqlite").story()


def one_complaint(result, begins):
    assert (result.status, len(result.complaints)) == (1, 1), result
    assert result.complaints[0].startswith(f"parley: stopped: {begins}"), result.complaints


def test_what_ends_a_run_with_ray_is_one_line(parley, cluster, run_file, monkeypatch, server):
    monkeypatch.setattr(ray_pool, "MAX_DEATHS_IN_A_ROW", 2)
    poison = parley(*own("Poison"), *RAY[:2], "--workers", "1")
    one_complaint(poison, "2 workers died in a row, the last with: a Ray worker died")
    assert run_file("a.sqlite").count("planned") == UNITS
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    keyless = parley(*panel(server.model(provider="openai"))[:-1], "b.sqlite", *RAY)
    one_complaint(keyless, "a worker on ")
    assert keyless.complaints[0].endswith(
        " cannot work: openai/judge needs a key: set OPENAI_API_KEY in the environment"
    )
    assert server.asked == []
    stored = list(known_to_ray())
    assert any(b"parley.runs.executors" in value for value in stored), "this is not where Ray stores arguments"
    assert [value for value in stored if KEY.encode() in value] == []
    monkeypatch.setattr(import_ray(), "is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    nobody = parley(*panel()[:-1], "c.sqlite", *RAY, "--ray-address", address)
    one_complaint(nobody, f"Ray at {address} cannot be reached: ")  # Ray itself retried for ten minutes
    assert "Connection refused" in nobody.complaints[0]

    def times_out(*arguments, **options):
        raise Exception(
            "The current node timed out during startup."
        )  # after half a minute, if its agent does not start

    monkeypatch.setattr(import_ray(), "init", times_out)
    agentless = parley(*panel()[:-1], "c.sqlite", *RAY)
    one_complaint(agentless, "Ray did not start: The current node timed out during startup. (see /tmp/ray/")


@pytest.mark.nightly
def test_a_worker_with_other_data_is_refused(parley, cluster):
    (line,) = parley(*own("Changing"), *RAY).complaints
    assert "in its version of Parley, or in own.py:Changing, its prompts, its data" in line


def known_to_ray():
    """What Ray's head node stores of a run, and its dashboard shows: jobs, actors, nodes, and every value of its store,
    which has classes, their arguments and environments."""
    from ray._private.state import state
    from ray.experimental import internal_kv

    yield repr((state.job_table(), state.actor_table(None, None, None), state.node_table())).encode()
    for namespace in (None, b"fun", b"serve", b"session", b"cluster", b"tracing", b"job", b"usage_stats"):
        for name in internal_kv._internal_kv_list(b"", namespace=namespace):
            yield name + (internal_kv._internal_kv_get(name, namespace=namespace) or b"")


def test_a_run_on_two_nodes_is_the_same_run(parley, start, place, run_file):
    """As on a cluster of two machines, whose nodes have processes and an object store of their own."""
    (place / "own.py").write_text(STUDIES)
    assert parley(*panel()).status == 0
    (place / "a.sqlite").rename("peace.sqlite")
    cluster = RayCluster(1, 1)
    try:
        # In a process of its own: this one is connected to the other tests' cluster.
        result = start(*own("Where"), *RAY, "--ray-address", cluster.address).end()
    finally:
        cluster.close()
    assert result.status == 0, result.err
    assert len([*place.glob("node-*")]) == 2, "one worker on each"
    file = run_file("a.sqlite")
    assert file.story() == run_file("peace.sqlite").story()
    file.check()
