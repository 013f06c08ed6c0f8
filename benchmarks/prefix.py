"""Prompt caching of an embedded model: judgements per second with and without cached prompt prefixes.

    python -m benchmarks.prefix                          # SmolLM2; or --model NAME or FILE.gguf

One scenario of MALIBU, one response, judged under several labels by a panel of four (phase 1, one round). Rows differ
in what the prompts share and in what llama.cpp may cache; tokens read and reused are llama.cpp's own counts.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents.models import Request, register
from parley.agents.models.local import LocalClient
from parley.runs import RunFile
from parley.runs.job import Job, Options

SCENARIO = "law-fire-exit"


class UncachedClient(LocalClient):
    """The embedded model without its prompt cache: it reads every prompt from the start."""

    def body(self, request: Request) -> dict[str, Any]:
        return {**super().body(request), "cache_prompt": False}


register("uncached", "benchmarks.prefix:UncachedClient")


@dataclass(frozen=True, slots=True)
class Setup:
    """One setup for the same judgements."""

    name: str
    provider: str
    batched: bool
    personas: str


SETUPS = (
    Setup("no prompt cache, one at a time", "uncached", False, "last"),
    Setup("no prompt cache, batched", "uncached", True, "last"),
    Setup("prompt cache, personas first", "local", True, "system"),
    Setup("prompt cache, personas last", "local", True, "last"),
    Setup("the same, one at a time", "local", False, "last"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one setup took; `read`, `reused` and `written` are tokens."""

    way: str
    judgements: int
    seconds: float
    read: int
    reused: int
    written: int

    @property
    def rate(self) -> float:
        return self.judgements / self.seconds


async def run_once(setup: Setup, model: str, identities: Sequence[str], slots: int, context: int) -> Figures:
    """All judgements with one setup, as by `parley run`, without the reply cache; loading is not timed."""
    connections = slots if setup.batched else 1
    name = f"{setup.provider}/{model}?max_connections={connections}&context={context}"
    settings = {
        "suite": "full",
        "design": "paper",
        "blind": True,
        "reasons_first": True,
        "scenarios": [SCENARIO],
        "phases": [1],
        "rounds": 1,
        "identities": list(identities),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        config = {**settings, "model": name, "personas": setup.personas}
        job = Job.make("malibu", config, Options(out=str(path), cache=False))
        await job.open_models()[0].prepare()
        started = time.perf_counter()
        result = await job.execute()
        seconds = time.perf_counter() - started
        assert result.complete, result
        with RunFile.open(path) as file:
            totals = "SELECT count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens) FROM calls"
            calls, prompt, reused, written = file.rows(totals)[1][0]
    return Figures(
        way=setup.name, judgements=calls, seconds=seconds, read=prompt - reused, reused=reused, written=written
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="smollm2", help="a name of the embedded catalogue, or a .gguf file")
    parser.add_argument("--identities", default="race", help="identities, separated by commas")
    parser.add_argument("--slots", type=int, default=4, help="concurrent conversations, where batched")
    parser.add_argument("--context", type=int, default=2048, help="context size of a conversation, in tokens")
    arguments = parser.parse_args()
    identities = arguments.identities.split(",")
    print(f"{'':42} {'read':>7} {'reused':>7} {'s':>6} {'per second':>10}")
    for setup in SETUPS:
        row = asyncio.run(run_once(setup, arguments.model, identities, arguments.slots, arguments.context))
        print(f"{row.way:42} {row.read:>7,} {row.reused:>7,} {row.seconds:>6.1f} {row.rate:>10.2f}")


if __name__ == "__main__":
    main()
