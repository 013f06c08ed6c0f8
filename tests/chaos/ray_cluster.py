"""A Ray cluster on this machine, of one node or of several, for many runs one after the other."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import psutil
from aiohttp.test_utils import unused_port

from tests.servers import PATIENCE

PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
SLOWER = 10
"""Factor of the time that Ray gives its node to start."""


def _ports() -> dict[str, int]:
    return {name: unused_port() for name in PORTS}


class RayCluster:
    """Two CPUs, on one node or on two.

    Args:
        cpus: The CPUs of each node.
    """

    def __init__(self, *cpus: int) -> None:
        from parley.runs.executors.ray_connection import import_ray

        import_ray()
        from ray._common.utils import get_default_ray_temp_dir
        from ray._private.node import Node
        from ray._raylet import persist_port
        from ray.cluster_utils import Cluster

        # The cluster's address is written there, and only clusters without a folder of their own make it.
        Path(get_default_ray_temp_dir()).mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="pr"))  # a short name, since paths of sockets are limited
        head = {"num_cpus": cpus[0] if cpus else 2, "temp_dir": str(self._folder / "ray")}
        idle: dict[str, Any] = {"include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
        # Ray waits for a node for half a minute, and for its agents' ports for 15 s: too little on a busy machine.
        os.environ |= {"RAY_agent_register_timeout_ms": "300000", "RAY_prestart_worker_first_driver": "0"}
        slow = SimpleNamespace(**{**vars(time), "monotonic": lambda: time.monotonic() / SLOWER})
        start_raylet = Node.start_raylet

        def with_ports(node: Any, *arguments: Any, **options: Any) -> None:
            for name in PORTS:
                persist_port(node.get_session_dir_path(), node._node_id, name, getattr(node._ray_params, name))
            start_raylet(node, *arguments, **options)

        with patch("ray._private.node.time", slow), patch.object(Node, "start_raylet", with_ports):
            self.nodes = Cluster(initialize_head=True, head_node_args=head | idle | _ports())
            for more in cpus[1:]:
                self.nodes.add_node(num_cpus=more, **_ports())
        self.address = str(self.nodes.address)

    def workers(self) -> list[psutil.Process]:
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                found += [process] if "RayWorker" in " ".join(process.cmdline()) else []
        return found

    def wait_until_idle(self) -> None:
        until = time.monotonic() + PATIENCE
        while self.workers():
            assert time.monotonic() < until, "the workers of a killed run do not end"
            time.sleep(0.1)

    def close(self) -> None:
        self.nodes.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)
