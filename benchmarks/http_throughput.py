"""Throughput against a server: 256 conversations at once, eight calls in a row each, answered after 200 ms.

    python -m benchmarks.http_throughput

Run from the repository's root. The server is OpenAI-compatible and runs on loopback in a process of its own.
Raw aiohttp and Parley (everything recorded, reply cache off) alternate and the median is shown; AutoGen's stock
team on its stock client comes last and once, since it takes many times as long; it needs `autogen-ext[openai]`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp import web
from autogen_core.models import ModelFamily, ModelInfo

try:
    from autogen_ext.models.openai import OpenAIChatCompletionClient
except ImportError:  # it needs tiktoken too
    OpenAIChatCompletionClient = None  # type: ignore[assignment,misc]

from benchmarks.overhead import one_team, together
from benchmarks.panel import hold_panels
from benchmarks.workload import MESSAGES, Message, converse, median, reply, verdict

RAW, PARLEY, STOCK = "raw aiohttp", "Parley, everything recorded", "AutoGen team on its OpenAI client"
TARGETS = {RAW: 0.85, STOCK: 6.0}
"""Parley's throughput over that row's, at least."""


def serve(latency: float) -> None:
    """Answers every chat completion after `latency` seconds; the first line of stdout is the port."""

    async def complete(request: web.Request) -> web.Response:
        asked = await request.json()
        await asyncio.sleep(latency)
        choice = {"index": 0, "message": {"role": "assistant", "content": reply()}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 120, "total_tokens": 220}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": int(time.time()), "model": asked["model"]}
        return web.json_response({**head, "choices": [choice], "usage": usage})

    async def forever() -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=120)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(forever())


@contextmanager
def server(latency: float) -> Iterator[str]:
    """The server's address, while it runs."""
    command = [sys.executable, "-m", "benchmarks.http_throughput", "--serve", str(latency)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


async def raw(url: str, conversations: int, waves: int = 1) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(messages: list[Message]) -> str:
            body = {"model": "bench", "messages": messages}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                answer = await response.json()
            return str(answer["choices"][0]["message"]["content"])

        async def some() -> None:
            for _ in range(waves):
                await converse(call)

        await together(some, conversations)


async def parley(url: str, conversations: int, waves: int = 1) -> None:
    model = f"server/bench?base_url={url}&max_connections={conversations}"
    with tempfile.TemporaryDirectory() as folder:
        await hold_panels(folder, conversations * waves, concurrency=conversations, model=model)


async def stock(url: str, conversations: int, waves: int = 1) -> None:
    info = ModelInfo(
        vision=False, function_calling=False, json_output=True, structured_output=True, family=ModelFamily.UNKNOWN
    )
    client = OpenAIChatCompletionClient(model="bench", base_url=url, api_key="none", model_info=info)
    for _ in range(waves):
        await together(lambda: one_team(client), conversations)
    await client.close()


Hold = Callable[[str, int, int], Awaitable[None]]


def measure(hold: Hold, url: str, conversations: int, waves: int = 1) -> dict[str, float]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(hold(url, conversations, waves))  # type: ignore[arg-type]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    messages = conversations * waves * MESSAGES
    return {"messages_a_second": messages / wall, "cpu_ms_a_message": 1e3 * cpu / messages}


def take(
    conversations: int, waves: int, rounds: int, latency: float, with_stock: bool
) -> dict[str, list[dict[str, float]]]:
    figures: dict[str, list[dict[str, float]]] = {RAW: [], PARLEY: []}
    with server(latency) as url:
        for hold in (raw, parley, stock) if with_stock else (raw, parley):
            measure(hold, url, 4)
        for _ in range(rounds):
            figures[RAW].append(measure(raw, url, conversations, waves))
            figures[PARLEY].append(measure(parley, url, conversations, waves))
        if with_stock:
            figures[STOCK] = [measure(stock, url, conversations)]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--conversations", type=int, default=256, help="held at once, eight calls each")
    parser.add_argument("--waves", type=int, default=1, help="conversations one after the other in each place")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds until the server answers")
    parser.add_argument("--no-stock", action="store_true", help="leave AutoGen's stock team out")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", type=float, metavar="LATENCY", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.serve is not None:
        serve(wanted.serve)
        return
    with_stock = OpenAIChatCompletionClient is not None and not wanted.no_stock
    figures = take(wanted.conversations, wanted.waves, wanted.rounds, wanted.latency, with_stock)
    speed = {name: [row["messages_a_second"] for row in rows] for name, rows in figures.items()}
    compared = {RAW: median([ours / theirs for ours, theirs in zip(speed[PARLEY], speed[RAW], strict=True)])}
    if STOCK in speed:
        compared[STOCK] = median(speed[PARLEY]) / speed[STOCK][0]
    if wanted.json:
        print(json.dumps({"figures": figures, "parley_over": compared, "targets": TARGETS}, indent=2))
        return
    print(f"{'messages a second':<36} {'median':>8} {'least':>8} {'most':>8} {'CPU ms each':>12}")
    for name, values in speed.items():
        cpu = median([row["cpu_ms_a_message"] for row in figures[name]])
        print(f"{name:<36} {median(values):8.0f} {min(values):8.0f} {max(values):8.0f} {cpu:12.3f}")
    if not with_stock:
        print(f"{STOCK:<36} not run (left out, or autogen-ext[openai] is missing)")
    print(f"{'no overhead at all':<36} {wanted.conversations / wanted.latency:8.0f}")
    for name, ratio in compared.items():
        print(verdict(f"Parley over {name}", ratio, TARGETS[name], at_least=True))


if __name__ == "__main__":
    main()
