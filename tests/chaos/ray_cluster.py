"""A Ray cluster on this machine, of one node or of several, for many runs one after the other."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import psutil

from tests.servers import PATIENCE

TRIES = 3


class RayCluster:
    """Two CPUs, on one node or on two.

    Args:
        cpus: The CPUs of each node.
    """

    def __init__(self, *cpus: int) -> None:
        from parley.runs.executors.ray_connection import import_ray

        os.environ.setdefault("RAY_raylet_start_wait_time_s", "150")  # 30, which on a busy machine are too few
        import_ray()
        from ray._common.utils import get_default_ray_temp_dir
        from ray.cluster_utils import Cluster

        # The cluster's address is written there, and only clusters without a folder of their own make it.
        Path(get_default_ray_temp_dir()).mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="pr"))  # a short name, since paths of sockets are limited
        for attempt in range(TRIES):
            head = {
                "num_cpus": cpus[0] if cpus else 2,
                "include_dashboard": False,
                "temp_dir": str(self._folder / f"ray{attempt}"),
            }
            with nullcontext() if attempt == TRIES - 1 else suppress(Exception):
                self.nodes = Cluster(initialize_head=True, head_node_args=head)
                break
        for more in cpus[1:]:
            self.nodes.add_node(num_cpus=more)
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
