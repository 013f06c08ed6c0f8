"""A run with Ray, on a cluster and on this machine: the same file, whatever happens, and no key is stored.

Skipped if Ray is not installed (`pip install 'parley-autogen[ray]'`).
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web

from parley.runs.executors import ray_pool
from parley.runs.executors.ray_connection import RayConnection, import_ray
from tests.chaos.ray_cluster import RayCluster
from tests.panels import RUN_PANEL

pytest.importorskip("ray")
RUN = ("--suite", "tiny", "--yardstick", "off", "--quiet", "--repeats", "2", "--seed", "3", "--concurrency", "8")
UNITS, CALLS = 18, 144
RAY = ("--executor", "ray", "--workers", "2")
TIMEOUT_SECONDS = 240.0
"""Ray takes five seconds to start on an idle machine, and much longer on a busy one."""
KEY = "sk-planted-0123456789abcdef"
STUDIES = '''
import asyncio
import os
import signal
from pathlib import Path
from parley.judging.malibu.study import Malibu


class Deadly(Malibu):
    """MALIBU; the tenth unit kills the worker that runs it, once its replies have had time to be stored."""

    name = "deadly"

    async def run(self, unit, models):
        outcome = await super().run(unit, models)
        if [u.id for u in self.plan()].index(unit.id) == 9 and Path("armed").exists() and not Path("killed").exists():
            await asyncio.sleep(2.0)
            Path("killed").write_text(unit.id)
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

class Poison(Malibu):
    async def run(self, unit, models):
        os.kill(os.getpid(), signal.SIGKILL)

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


@pytest.fixture
def busy(cluster):
    """Another program has both CPUs of the cluster."""
    ray = import_ray()

    class Other:
        def ready(self):
            return True

    actor = ray.remote(Other).options(num_cpus=2).remote()
    assert ray.get(actor.ready.remote(), timeout=TIMEOUT_SECONDS)
    yield
    ray.kill(actor)
    while ray.available_resources().get("CPU", 0) < 2:
        time.sleep(0.1)


def own(study, model="sim/judge", *flags):
    return ("run", f"own.py:{study}", *RUN_PANEL[2:], *RUN, "--model", model, "--out", "a.sqlite", *flags)


def panel(model="sim/judge", *flags):
    return (*RUN_PANEL, *RUN, "--model", model, "--out", "a.sqlite", *flags)


def test_on_a_cluster_a_killed_worker_costs_nothing_but_time(parley, start, cluster, place, server, run_file):
    command = own("Deadly", server.model(), "--no-cache")
    assert parley(*command).status == 0
    (place / "a.sqlite").rename("peace.sqlite")
    (place / "armed").touch()
    result = start(*command, *RAY, "--ray-address", cluster).end(TIMEOUT_SECONDS)
    assert result.status == 0, result.err
    file, killer = run_file("a.sqlite"), (place / "killed").read_text()
    paid = file.rows(f"SELECT DISTINCT cached FROM calls WHERE unit = '{killer}'")
    assert paid == [(1,)], "its replies were paid for"
    assert file.story() == run_file("peace.sqlite").story()
    file.check()
    assert len(file.rows("SELECT detail FROM events WHERE kind = 'worker lost'")) == 1


@pytest.mark.parametrize("machine", ["this one", pytest.param("another", marks=pytest.mark.nightly)])
def test_a_run_interrupted_with_ray_is_resumed_without_it(parley, cluster, server, run_file, machine, monkeypatch):
    """Workers on another machine store their replies through the run's process."""
    if machine == "another":
        monkeypatch.setattr(ray_pool.socket, "gethostname", lambda: machine)
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


def test_a_cluster_without_a_free_cpu_gets_one_line(parley, busy, monkeypatch):
    monkeypatch.setattr(ray_pool, "PLACEMENT_SECONDS", 0.5)
    one_complaint(parley(*panel(), *RAY), "Ray found no free CPU for a worker within ")


@pytest.mark.nightly
def test_workers_that_are_all_given_up_end_the_run(parley, busy, monkeypatch, run_file):
    async def free_cpus(self):
        return 2

    monkeypatch.setattr(RayConnection, "free_cpus", free_cpus)
    monkeypatch.setattr(ray_pool, "PLACEMENT_SECONDS", 0.5)
    one_complaint(parley(*panel(), *RAY), "Ray found no free CPU for a worker within ")
    assert len(run_file("a.sqlite").rows("SELECT 1 FROM events WHERE kind = 'worker not placed'")) == 2


@pytest.mark.nightly
def test_a_budget_in_dollars_is_exceeded_by_the_calls_in_progress_at_most(parley, cluster, server, run_file):
    """The limit is 50 calls of $0.0012."""
    result = parley(*panel(server.model("retries=0&price_in=10&price_out=10")), *RAY, "--budget-cost", "0.06")
    one_complaint(result, "the budget of $0.06 is spent")
    assert 50 <= len(server.asked) <= 50 + 4 * 8, "eight units, each of which asks up to four questions concurrently"
    file = run_file("a.sqlite")
    file.check()
    abandoned = file.rows("SELECT detail FROM events WHERE kind = 'abandoned'")[0][0]
    stored = file.one("SELECT count(*) FROM calls")
    assert stored + int(float(abandoned.strip("[").split(",")[0])) == len(server.asked), "every call is accounted for"


@pytest.mark.nightly
def test_a_429_slows_all_workers(parley, cluster, server, run_file):
    """The server asks for a pause; no worker sends a request during it, except those sent before."""
    times = []

    def answer(nth, body):
        times.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": "5"}) if nth == 20 else None

    server.answer, server.delay = answer, 0.02
    assert parley(*panel(server.model("retries=2")), "--no-cache", *RAY).status == 0
    assert max(later - before for before, later in pairwise(times)) > 1.0, "the other worker did not pause"
    assert run_file("a.sqlite").one("SELECT max(attempts) FROM calls") == 2


@pytest.mark.nightly
def test_a_worker_with_other_data_is_refused_and_one_without_a_cpu_does_not_hold_the_run_up(
    parley, cluster, monkeypatch
):
    """Another program may take a CPU between the count of those that are free and the workers' start."""
    (line,) = parley(*own("Changing"), *RAY).complaints
    assert "in its version of Parley, or in own.py:Changing, its prompts, its data" in line

    async def free_cpus(self):
        return 3

    monkeypatch.setattr(RayConnection, "free_cpus", free_cpus)
    monkeypatch.setattr(ray_pool, "PLACEMENT_SECONDS", 1000.0)
    began = time.monotonic()
    assert parley(*panel()[:-1], "b.sqlite", *RAY[:2], "--workers", "3").status == 0
    assert time.monotonic() - began < 500


@pytest.mark.nightly
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_ends_a_run_that_waits_for_a_cpu(start, cluster, busy, run_file, presses):
    process = start(*panel(), *RAY, "--ray-address", cluster)
    process.wait_for(lambda: run_file("a.sqlite").starts() == 1, TIMEOUT_SECONDS)
    for _ in range(presses):
        process.press_ctrl_c()
    ended = process.end(30)
    assert (ended.status, "Traceback" in ended.err) == (130, False), ended.err


@pytest.mark.nightly
def test_a_node_that_dies_is_survived_without_spare_cpus(parley, start, nodes, server, run_file):
    server.delay = 0.05
    command = (*panel(server.model()), "--repeats", "4", "--no-cache")
    file = run_file("a.sqlite")
    node = nodes.add_node(num_cpus=1)
    process = start(*command, *RAY[:2], "--workers", "3", "--ray-address", nodes.address)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 3, TIMEOUT_SECONDS)
    nodes.remove_node(node, allow_graceful=False)
    ended = process.end(TIMEOUT_SECONDS)
    assert ended.status == 0, ended.err
    assert len(file.rows("SELECT 1 FROM events WHERE kind = 'worker lost'")) == 1
    assert parley(*command, "--out", "peace.sqlite").status == 0
    assert file.story() == run_file("peace.sqlite").story()
    file.check()


def known_to_ray():
    """What Ray's head node stores of a run, and its dashboard shows: jobs, actors, nodes, and every value of its store,
    which has classes, their arguments and environments."""
    from ray._private.state import state
    from ray.experimental import internal_kv

    yield repr((state.job_table(), state.actor_table(None, None, None), state.node_table())).encode()
    for namespace in (None, b"fun", b"serve", b"session", b"cluster", b"tracing", b"job", b"usage_stats"):
        for name in internal_kv._internal_kv_list(b"", namespace=namespace):
            yield name + (internal_kv._internal_kv_get(name, namespace=namespace) or b"")


@pytest.mark.nightly
def test_on_this_machine_keys_are_inherited_and_stored_nowhere_and_ctrl_c_stops_it(
    parley, start, place, server, run_file, monkeypatch
):
    server.delay = 0.05
    folder = Path(tempfile.mkdtemp(prefix="pr"))  # a short name, since paths of sockets are limited
    command = (*panel(server.model()), "--no-cache", "--repeats", "12")  # long enough for a busy machine
    file = run_file("a.sqlite")
    process = start(*command, *RAY, PARLEY_SERVER_KEY=KEY, RAY_TMPDIR=str(folder / "m"))
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0, TIMEOUT_SECONDS)
    listed = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            listed.append(path.read_bytes())
    assert any(b"raylet" in line for line in listed)
    assert [line for line in listed if KEY.encode() in line] == []
    process.press_ctrl_c()
    ended = process.end(TIMEOUT_SECONDS)
    assert (ended.status, "Traceback" in ended.err) == (130, False), ended.err
    assert 0 < file.count() < 6 * UNITS
    assert file.one("SELECT count(*) FROM calls") == len(server.asked), "a reply that had come was thrown away"
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    written = [path for root in (folder / "m", place) for path in root.rglob("*") if path.is_file()]
    assert len([path for path in written if "session_" in str(path)]) > 5, "this is not where Ray writes"
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    assert KEY not in ended.out + ended.err
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    assert parley(*command).status == 0
    assert parley(*command, "--out", "peace.sqlite").status == 0
    assert file.story() == run_file("peace.sqlite").story()
    shutil.rmtree(folder, ignore_errors=True)
