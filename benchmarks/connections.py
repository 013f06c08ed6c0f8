"""A run's requests a second on a server, beside those of a raw client that sends the same bodies.

    python -m benchmarks.connections run stardtox --model vllm/NAME … --json    # arguments of `parley`

The run comes first, in a process of its own and without the reply cache; then aiohttp sends the bodies that the run
sent, at most `--at-once` at a time and in no order, so it waits for no reply of a debate. `--times` alternations follow
a first pair that is not counted.

    python -m benchmarks.connections --chains RUN.sqlite    # a finished run whose units ask one call after another

Chains cannot end sooner than the longest of them: its calls' latencies, added up, beside the run's seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def child(arguments: Sequence[str], out: Path) -> int:
    """`parley` with these arguments in this process; writes its requests and the time from the first to the last."""
    from parley.agents.models.compatible import CompatibleClient
    from parley.agents.models.request import Request
    from parley.cli import main as parley

    sent: list[tuple[str, dict[str, Any]]] = []
    seconds: list[float] = []
    body = CompatibleClient.body

    def recorded(self: CompatibleClient, request: Request) -> dict[str, Any]:
        # The option `body` of a subclass calls this one first, and adds to the same dictionary.
        content = body(self, request)
        sent.append((f"{self.base_url}/chat/completions", content))
        seconds.append(time.perf_counter())
        return content

    CompatibleClient.body = recorded  # type: ignore[method-assign]
    status = parley(arguments)
    seconds.append(time.perf_counter())
    out.write_text(json.dumps({"sent": sent, "seconds": seconds[-1] - seconds[0]}))
    return status


def by_parley(arguments: Sequence[str], folder: Path) -> tuple[list[tuple[str, dict[str, Any]]], float]:
    """The requests of a run, and its seconds from the first request to the end."""
    out = folder / "sent.json"
    command = [sys.executable, "-m", "benchmarks.connections", "--child", str(out), *arguments]
    command += ["--no-cache", "--quiet", "--out", str(folder / f"{time.time_ns()}.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True)
    if not out.exists():
        sys.exit(f"the run failed:\n{done.stderr[-2000:]}")
    result = json.loads(out.read_text())
    out.unlink()
    return result["sent"], result["seconds"]


async def by_aiohttp(sent: Sequence[tuple[str, dict[str, Any]]], at_once: int) -> float:
    """The seconds in which a raw client sends these requests and reads the replies."""
    import aiohttp

    room, failed = asyncio.Semaphore(at_once), 0
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=600)) as session:

        async def send(url: str, body: dict[str, Any]) -> None:
            nonlocal failed
            async with room, session.post(url, json=body) as response:
                await response.read()
                failed += response.status != 200

        began = time.perf_counter()
        await asyncio.gather(*(send(url, body) for url, body in sent))
    if failed:
        print(f"{failed} of {len(sent)} raw requests failed", flush=True)
    return time.perf_counter() - began


def chains(run: str) -> str:
    """The longest chain of a run, beside the run's seconds from the first unit's start to the last one's end."""
    with sqlite3.connect(f"file:{run}?mode=ro", uri=True) as file:
        calls, by_unit = file.execute("SELECT count(*), count(DISTINCT unit) FROM calls WHERE NOT cached").fetchone()
        (seconds,) = file.execute("SELECT max(finished_at) - min(started_at) FROM units").fetchone()
        (longest,) = file.execute("SELECT max(s) FROM (SELECT sum(latency) s FROM calls GROUP BY unit)").fetchone()
    return (
        f"{by_unit:,} chains, {calls:,} calls in {seconds:.1f} s, {calls / seconds:.1f}/s; "
        f"the longest chain waited {longest:.1f} s for replies: {longest / seconds:.2f} of the run"
    )


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[3:], Path(sys.argv[2]))
    if sys.argv[1:2] == ["--chains"]:
        print("\n".join(map(chains, sys.argv[2:])))
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=1024)
    options, arguments = parser.parse_known_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.times + 1):
            sent, seconds = by_parley(arguments, Path(folder))
            raw = asyncio.run(by_aiohttp(sent, options.at_once))
            ratios += [raw / seconds] if turn else []
            print(
                f"{turn}: {len(sent):,} requests; Parley {len(sent) / seconds:.1f}/s, "
                f"raw {len(sent) / raw:.1f}/s, ratio {raw / seconds:.2f}",
                flush=True,
            )
    print(f"ratio, median of {len(ratios)}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
