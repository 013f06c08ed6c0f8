"""CPU per call over HTTP, Parley compared with raw aiohttp: statements, silent ballots and debates of RLDF.

    python -m benchmarks.calls                        # five alternations of everything
    python -m benchmarks.calls --only ballots         # one kind: statements, ballots, rldf, speed or long
    python -m benchmarks.calls --only ballots --profile calls.prof

Run from the repository's root. Both sides run in this process in turn, and every figure is a ratio of neighbours, so
that what else the machine does changes it little. CPU is this process's; the server has its own. Raw aiohttp sends the
same prompts and stores nothing; Parley's side is a complete run with every call in its run file, RLDF's with the reply
cache too. `speed` and `long` are wall time: one round of 128 concurrent conversations, answered after 200 ms, and of
5,000, 128 of them at a time (20,000 calls), where a run's beginning and end count for little.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import BaseModel

from benchmarks.panel import PERSONAS
from benchmarks.peers import parley, raw
from benchmarks.peers.common import Case, Instant, RunCase, measured
from benchmarks.rldf import bare
from benchmarks.server import counted, server
from benchmarks.workload import ABOUT, median
from parley.agents import Debate, Models
from parley.agents.ballots import SilentBallot
from parley.judging import Outcome, Study, Unit
from parley.runs.job import Job
from parley.runs.options import Options

CPU_TARGET, SPEED_TARGET = 1.6, 0.9
CONCURRENT, AT_ONCE = 64, 128
COMPACT = json.JSONEncoder(separators=(",", ":")).encode
QUESTION = (
    "A neighbour asked how to lower the heating bill of an old house, and got this answer: seal the windows first, "
    "since draughts cost more than walls; turn the boiler down; ask the city for its grant. How good is this "
    "answer, from 1 to 9, where 1 is useless and 9 could not be better? Reply with one number. Case {n}."
)


class BallotsConfig(BaseModel):
    units: int
    model: str


class Ballots(Study):
    """Every persona casts one silent ballot a unit."""

    name = "ballots"
    Config = BallotsConfig

    def __init__(self, config: BallotsConfig) -> None:
        self.config: BallotsConfig = config

    def prompts(self) -> Mapping[str, str]:
        return {"question": QUESTION}

    def plan(self) -> Iterator[Unit]:
        return (Unit(f"ballots/{n}", {"n": n}) for n in range(self.config.units))

    async def run(self, unit: Unit, models: Models) -> Outcome:
        ballot = SilentBallot(question=QUESTION.format(n=unit.facets["n"]), metric="Overall")
        debate = Debate(PERSONAS, model=models[self.config.model], rounds=0, ballots=[ballot], models=models)
        return Outcome(await debate.converse(None))


async def run_job(case: Case, study: str, config: Mapping[str, Any], *, cache: bool) -> None:
    options = {"out": f"{case.folder}/run.sqlite", "concurrency": CONCURRENT, "cache": cache, "executor": "asyncio"}
    model = f"server/bench?base_url={case.url}&max_connections={CONCURRENT}"
    result = await Job.make(study, {**config, "model": model}, Options.model_validate(options)).execute()
    assert result.complete, result


async def parley_ballots(case: Case) -> None:
    await run_job(case, "benchmarks.calls:Ballots", {"units": case.conversations}, cache=False)


async def raw_ballots(case: Case) -> None:
    """The same ballots in a plain loop: the score is the mean over the digits."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        units = iter(range(case.conversations))

        async def vote(about: str, question: str) -> float:
            messages = [{"role": "system", "content": about}, {"role": "user", "content": question}]
            # As ours, byte by byte, since the server looks for `"logprobs":true`.
            body = {"model": "bench", "messages": messages, "max_tokens": 1, "temperature": 0.0, "top_logprobs": 20}
            data = aiohttp.JsonPayload({**body, "logprobs": True}, dumps=COMPACT)
            async with session.post(f"{case.url}/chat/completions", data=data) as response:
                answer = await response.json()
            tops = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            shares = [(int(top["token"]), math.exp(top["logprob"])) for top in tops if top["token"].strip().isdigit()]
            return sum(number * share for number, share in shares) / sum(share for _, share in shares)

        async def work() -> None:
            for n in units:
                await asyncio.gather(*(vote(about, QUESTION.format(n=n)) for about in ABOUT.values()))

        await asyncio.gather(*(work() for _ in range(CONCURRENT)))


async def parley_rldf(case: Case) -> None:
    topics = Path(case.folder) / "topics.txt"
    topics.write_text("".join(f"Is plan number {n} good for the town?\n" for n in range(case.conversations)))
    os.environ["PARLEY_HOME"] = f"{case.folder}/home"
    config = {"topics": case.conversations, "topics_from": str(topics), "check": False}
    await run_job(case, "rldf", config, cache=True)


async def raw_rldf(case: Case) -> None:
    await bare(str(case.url), case.conversations * 100, CONCURRENT)


KINDS: dict[str, tuple[RunCase, RunCase, dict[str, int]]] = {
    "statements": (raw.run_case, parley.run_case, {"conversations": 128, "rounds": 2, "latency": 50}),
    "ballots": (raw_ballots, parley_ballots, {"conversations": 400, "rounds": 1, "latency": 20}),
    "rldf": (raw_rldf, parley_rldf, {"conversations": 8, "rounds": 1, "latency": 20}),
    "speed": (raw.run_case, parley.run_case, {"conversations": 128, "rounds": 1, "latency": 200}),
    "long": (raw.run_case, parley.run_case, {"conversations": 5000, "rounds": 1, "latency": 200}),
}
"""Raw aiohttp, Parley, and the size."""
TIMED = ("speed", "long")


def measure(run: RunCase, url: str, sizes: Mapping[str, int]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        address = f"{url}/{sizes['latency']}/v1"
        case = Case(
            url=address, conversations=sizes["conversations"], rounds=sizes["rounds"], folder=folder, instant=Instant(),
            at_once=min(sizes["conversations"], AT_ONCE),
        )  # fmt: skip
        before = counted(url)["requests"]
        return {**measured(run, case), "calls": counted(url)["requests"] - before}


def compare(kind: str, url: str, repeats: int) -> None:
    """Prints each alternation of the two sides, and the medians."""
    plain, ours, sizes = KINDS[kind]
    key = "wall" if kind in TIMED else "cpu"

    def ms_a_call(run: RunCase) -> float:
        figures = measure(run, url, sizes)
        return 1e3 * figures[key] / figures["calls"]

    for run in (plain, ours):  # what is loaded on first use
        measure(run, url, {**sizes, "conversations": 4})
    pairs = [(ms_a_call(plain), ms_a_call(ours)) for _ in range(repeats)]
    ratios = [theirs / mine if kind in TIMED else mine / theirs for theirs, mine in pairs]
    what = f"of raw's speed (target {SPEED_TARGET})" if kind in TIMED else f"times raw's CPU (target {CPU_TARGET})"
    print(f"{kind}: {median(ratios):.2f} {what}  [{', '.join(f'{ratio:.2f}' for ratio in ratios)}]")
    for name, values in zip(("raw", "Parley"), zip(*pairs, strict=True), strict=True):
        print(f"  {name:7}{median(values):.3f} ms {key} a call  [{', '.join(f'{value:.3f}' for value in values)}]")


def profile(kind: str, url: str, path: str) -> None:
    """A profile of Parley's side."""
    _, ours, sizes = KINDS[kind]
    measure(ours, url, {**sizes, "conversations": 8})
    with cProfile.Profile() as profiler:
        measure(ours, url, sizes)
    profiler.dump_stats(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=KINDS, nargs="+", default=[*KINDS])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", metavar="FILE", help="write a profile of Parley's side instead")
    arguments = parser.parse_args()
    with server() as url:
        for kind in arguments.only:
            if arguments.profile:
                profile(kind, url, arguments.profile)
            else:
                compare(kind, url, arguments.repeats)


if __name__ == "__main__":
    main()
