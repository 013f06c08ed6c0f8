"""A run with Ray, on a cluster and on this machine: the same file, whatever happens, and no key is stored.

Skipped if Ray is not installed (`pip install 'parley-autogen[ray]'`).
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from parley.executors.ray_pool import import_ray

pytest.importorskip("ray")
RUN = ("--suite", "quick", "--quiet", "--repeats", "2", "--seed", "3", "--concurrency", "8")
UNITS = 18
RAY = ("--executor", "ray", "--workers", "2")
TIMEOUT_SECONDS = 240.0
"""Ray takes five seconds to start on an idle machine, and much longer on a busy one."""
KEY = "sk-planted-0123456789abcdef"
DEADLY = '''
import os
import signal
from pathlib import Path
from parley.judging.malibu.study import Malibu


class Deadly(Malibu):
    """MALIBU; the tenth unit kills the worker that runs it, once."""

    name = "deadly"

    async def run(self, unit, models):
        outcome = await super().run(unit, models)
        if [u.id for u in self.plan()].index(unit.id) == 9 and Path("armed").exists() and not Path("killed").exists():
            Path("killed").write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome
'''


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where Ray writes; a short name, since paths of sockets are limited."""
    path = Path(tempfile.mkdtemp(prefix="pr"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[str]:
    """A running cluster whose nodes have no keys."""
    os.environ.pop("PARLEY_SERVER_KEY", None)
    os.environ.pop("OPENAI_API_KEY", None)
    ray = import_ray()
    context = ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=str(folder / "c"))
    yield context.address_info["address"]
    ray.shutdown()


def test_on_a_cluster_a_killed_worker_costs_nothing_but_time(
    parley: Callable[..., Any], start: Callable[..., Any], cluster: str, place: Path, server: Any, run_file: Any
) -> None:
    (place / "deadly.py").write_text(DEADLY)
    command = ("run", "deadly.py:Deadly", *RUN, "--model", server.model())
    assert parley(*command, "--out", "peace.sqlite", "--no-cache").status == 0
    (place / "armed").touch()

    result = start(*command, "--out", "killed.sqlite", *RAY, "--ray-address", cluster).end(TIMEOUT_SECONDS)

    assert result.status == 0, result.err
    assert (place / "killed").exists()
    file = run_file("killed.sqlite")
    assert file.story() == run_file("peace.sqlite").story()
    file.check()
    assert len(file.rows("SELECT detail FROM events WHERE kind = 'worker lost'")) == 1


def known_to_ray() -> Iterator[bytes]:
    """What Ray's head node stores of a run, and its dashboard shows: jobs, actors, nodes, and every value of its store,
    which has classes, their arguments and environments."""
    from ray._private.state import state
    from ray.experimental import internal_kv

    yield repr((state.job_table(), state.actor_table(None, None, None), state.node_table())).encode()
    for namespace in (None, b"fun", b"serve", b"session", b"cluster", b"tracing", b"job", b"usage_stats"):
        for name in internal_kv._internal_kv_list(b"", namespace=namespace):
            yield name + (internal_kv._internal_kv_get(name, namespace=namespace) or b"")


def process_list() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            yield path.read_bytes()


def test_an_address_where_nothing_listens_gets_one_line(
    parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray itself was still retrying after ten minutes, and ignored Ctrl-C."""
    monkeypatch.setattr(import_ray(), "is_initialized", lambda: False)  # whatever other tests have started
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    result = parley("run", "malibu", *RUN, "--model", "sim/judge", "--out", "a.sqlite", *RAY, "--ray-address", address)
    assert result.status == 1
    assert result.complaints[0].startswith(f"parley: stopped: Ray at {address} cannot be reached: ")
    assert "Connection refused" in result.complaints[0]


def test_a_key_that_the_nodes_lack_gets_one_line(
    parley: Callable[..., Any], cluster: str, monkeypatch: pytest.MonkeyPatch, server: Any
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    result = parley("run", "malibu", *RUN, "--model", server.model(provider="openai"), "--out", "a.sqlite", *RAY)

    assert result.status == 1
    assert len(result.complaints) == 1
    assert result.complaints[0].startswith("parley: stopped: a worker on ")
    assert result.complaints[0].endswith(
        " cannot work: openai/judge needs a key: set OPENAI_API_KEY in the environment"
    )
    assert server.asked == []
    stored = list(known_to_ray())
    assert any(b"parley.executors" in value for value in stored), "this is not where Ray stores arguments"
    assert [value for value in stored if KEY.encode() in value] == []


def test_on_this_machine_keys_are_inherited_and_stored_nowhere_and_ctrl_c_stops_it(
    parley: Callable[..., Any],
    start: Callable[..., Any],
    folder: Path,
    place: Path,
    server: Any,
    run_file: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.delay = 0.05
    many = ("--repeats", "12")  # enough that a busy machine is interrupted before the end
    command = ("run", "malibu", *RUN, *many, "--model", server.model(), "--out", "a.sqlite", "--no-cache")
    file = run_file("a.sqlite")
    process = start(*command, *RAY, PARLEY_SERVER_KEY=KEY, RAY_TMPDIR=str(folder / "m"))
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0, TIMEOUT_SECONDS)

    listed = list(process_list())
    assert any(b"raylet" in line for line in listed)
    assert [line for line in listed if KEY.encode() in line] == []

    process.press_ctrl_c()
    ended = process.end(TIMEOUT_SECONDS)

    assert ended.status == 130, ended.err
    assert "Traceback" not in ended.err
    assert 0 < file.count() < 6 * UNITS
    assert file.one("SELECT count(*) FROM calls") == len(server.asked), "a reply that had come was thrown away"
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    written = [path for root in (folder / "m", place) for path in root.rglob("*") if path.is_file()]
    assert len([path for path in written if "session_" in str(path)]) > 5, "this is not where Ray writes"
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    assert KEY not in ended.out + ended.err

    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    assert parley(*command).status == 0
    assert parley(*command[:-3], "--no-cache", "--out", "peace.sqlite").status == 0
    assert file.story() == run_file("peace.sqlite").story()
