"""Parley's side of the benchmarks: the workload as a study, and a client that answers immediately. Not a command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from autogen_core.models import RequestUsage
from pydantic import BaseModel, ConfigDict

from benchmarks.workload import ABOUT, NAMES, ROUNDS, TASK, reply
from parley.agents import Client, Debate, Models, Persona
from parley.agents.models import Reply, Request
from parley.agents.providers import register
from parley.judging import Outcome, Study, Unit
from parley.runs import Result
from parley.runs.job import Job
from parley.runs.options import Options

PERSONAS = [Persona(name, ABOUT[name]) for name in NAMES]


class InstantClient(Client):
    """Answers immediately: only the framework's own work takes time."""

    reply: ClassVar[Callable[[], str]] = reply

    async def send(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return Reply(finish_reason="stop", content=type(self).reply(), usage=RequestUsage(100, 120), cached=False)


register("instant", "benchmarks.panel:InstantClient")


class PanelConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    conversations: int = 128
    rounds: int = ROUNDS
    model: str = "instant/bench"


class Panel(Study):
    """A study of identical conversations."""

    name = "panel"
    Config = PanelConfig

    def __init__(self, config: PanelConfig) -> None:
        self.config: PanelConfig = config

    def prompts(self) -> Mapping[str, str]:
        return {"task": TASK, **ABOUT}

    def plan(self) -> Iterator[Unit]:
        return (Unit(f"panel/{n}", {"n": n}) for n in range(self.config.conversations))

    async def run(self, unit: Unit, models: Models) -> Outcome:
        debate = Debate(PERSONAS, model=models[self.config.model], rounds=self.config.rounds, models=models)
        return Outcome(await debate.converse(TASK))


async def run_panels(
    folder: str,
    conversations: int,
    concurrency: int,
    model: str = "instant/bench",
    rounds: int = ROUNDS,
    **more: Any,
) -> Result:
    """A complete run, as by `parley run`: plan, create the file, converse, record. The reply cache is off."""
    out = str(Path(folder) / "run.sqlite")
    options = Options.model_validate({"out": out, "concurrency": concurrency, "cache": False, **more})
    config = {"conversations": conversations, "model": model, "rounds": rounds}
    result = await Job.make("benchmarks.panel:Panel", config, options).execute()
    assert result.complete, result
    return result
