"""What an embedded model reads twice, and what that costs: judgements a second with and without kept beginnings.

    python -m benchmarks.prefix                          # SmolLM2; --model NAME or FILE.gguf, --json

One scenario of MALIBU, one response, judged under several labels by a panel of four (phase 1, one round). Rows differ
in what the prompts share and in what llama.cpp is allowed to keep; tokens read and reused are llama.cpp's own counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parley.agents.models import Request, register
from parley.agents.models.local import LocalClient
from parley.execute import Job, Options
from parley.runs import RunFile

SCENARIO = "law-fire-exit"


class ForgetfulClient(LocalClient):
    """The embedded model, made to read every prompt from its first word."""

    def body(self, request: Request) -> dict[str, Any]:
        return {**super().body(request), "cache_prompt": False}


register("forgetful", "benchmarks.prefix:ForgetfulClient")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to hold the same judgements."""

    name: str
    provider: str
    batched: bool
    personas: str
    labels: str = "beside"


WAYS = (
    Way("every prompt read whole, one at a time", "forgetful", False, "last"),
    Way("every prompt read whole, batched", "forgetful", True, "last"),
    Way("beginnings kept, personas first", "local", True, "system"),
    Way("beginnings kept, personas last", "local", True, "last"),
    Way("beginnings kept, personas and labels last", "local", True, "last", "last"),
    Way("the same, one at a time", "local", False, "last", "last"),
)


@dataclass(frozen=True, slots=True)
class Figures:
    way: str
    judgements: int
    seconds: float
    read: int
    reused: int
    written: int

    @property
    def rate(self) -> float:
        return self.judgements / self.seconds


async def hold(way: Way, model: str, identities: Sequence[str], slots: int, context: int) -> Figures:
    """The judgements, held one way as `parley run` holds them, without the reply cache; loading is not timed."""
    used = slots if way.batched else 1
    name = f"{way.provider}/{model}?max_connections={used}&context={context}"
    asked = {"suite": "full", "scenarios": [SCENARIO], "phases": [1], "rounds": 1, "identities": list(identities)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        config = {**asked, "model": name, "personas": way.personas, "labels": way.labels}
        job = Job.make("malibu", config, Options(out=str(path), cache=False))
        await job.open_models()[0].prepare()
        started = time.perf_counter()
        result = await job.execute()
        seconds = time.perf_counter() - started
        assert result.complete, result
        with RunFile.open(path) as file:
            totals = "SELECT count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens) FROM calls"
            calls, prompt, reused, written = file.rows(totals)[1][0]
    return Figures(way.name, calls, seconds, prompt - reused, reused, written)


def measure(
    model: str = "smollm2",
    identities: Sequence[str] = ("race",),
    slots: int = 4,
    context: int = 2048,
    ways: Sequence[Way] = WAYS,
) -> list[Figures]:
    return [asyncio.run(hold(way, model, identities, slots, context)) for way in ways]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="smollm2", help="of the embedded catalogue, or a .gguf file")
    parser.add_argument("--identities", default="race", help="whose labels, with commas between")
    parser.add_argument("--slots", type=int, default=4, help="conversations at once, where batched")
    parser.add_argument("--context", type=int, default=2048, help="tokens a conversation may have")
    parser.add_argument("--ways", help="only these rows, by number, with commas between")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    ways = [WAYS[int(number) - 1] for number in chosen.ways.split(",")] if chosen.ways else WAYS
    found = measure(chosen.model, chosen.identities.split(","), chosen.slots, chosen.context, ways)
    if chosen.json:
        print(json.dumps([{**asdict(one), "rate": one.rate} for one in found]))
        return
    print(f"{'':42} {'read':>7} {'reused':>7} {'s':>6} {'a second':>9}")
    for one in found:
        print(f"{one.way:42} {one.read:>7,} {one.reused:>7,} {one.seconds:>6.1f} {one.rate:>9.2f}")


if __name__ == "__main__":
    main()
