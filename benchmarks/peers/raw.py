"""The floor: the conversation in a plain loop, over one aiohttp session, storing nothing."""

from __future__ import annotations

import asyncio

import aiohttp

from benchmarks.peers.common import Case, main
from benchmarks.workload import Message, converse


async def run_case(case: Case) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(messages: list[Message]) -> str:
            if case.url is None:
                await asyncio.sleep(0)
                return case.instant.reply()
            body = {"model": "bench", "messages": messages}
            async with session.post(f"{case.url}/chat/completions", json=body) as response:
                answer = await response.json()
            return str(answer["choices"][0]["message"]["content"])

        waiting = iter(range(case.conversations))

        async def work() -> None:
            for _ in waiting:
                await converse(call, case.rounds)

        await asyncio.gather(*(work() for _ in range(case.at_once)))


if __name__ == "__main__":
    main(run_case, ["aiohttp"])
