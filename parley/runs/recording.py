"""Runs any AutoGen team into a run file: resumable, budgeted, cached, and shown by the viewer like Parley's studies.

result = parley.record(team, ["Should buses be free?", "And trams?"], out="runs/team.sqlite")
parley.record(make_team, [{"task": "…", "identity": "nurse"}, …], out="runs/team.sqlite", repeats=5)
"""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from parley.agents import Client, Models, RecordedTeam, Transcript
from parley.base.errors import ConfigError
from parley.base.tasks import blocking
from parley.judging import Outcome, Study, Unit, Verdict
from parley.runs.engine import Result
from parley.runs.executor import Executor, InProcess
from parley.runs.job import Job
from parley.runs.options import Options
from parley.runs.plan import measure, refuse_empty

Task = str | Mapping[str, Any]
"""A task, or a mapping with the key `task`; its other keys become facets of the unit. The value of `task` is a text, or
a conversation so far: pairs of source and text."""
NAME_LENGTH = 48
Score = Callable[[Transcript], Sequence[Verdict]]


class TeamConfig(BaseModel):
    """The config of a team's run, apart from the team itself."""

    team: str
    tasks: list[dict[str, str | int | bool | list[tuple[str, str]]]]
    repeats: int = 1
    seed: int = 0


def typed_verdicts(transcript: Transcript) -> list[Verdict]:
    """Every number and truth value in the agents' typed replies, as a verdict with the field's name."""
    return [
        Verdict.from_turn(turn, name, value=float(value))
        for turn in transcript.spoken()
        if turn.verdict is not None
        for name, value in turn.verdict
        if isinstance(value, int | float)
    ]


class TeamStudy(Study):
    """A team on a list of tasks."""

    name = "team"
    Config = TeamConfig

    def __init__(self, config: TeamConfig) -> None:
        self.config: TeamConfig = config
        self.clients: list[Client] = []
        self.score: Score = typed_verdicts
        self._make: Callable[[], RecordedTeam] | None = None
        self._only: RecordedTeam | None = None
        self._turn = asyncio.Lock()
        self._description = ""

    def seat(self, team: Any, score: Score | None, models: Models) -> None:
        """Set the team (or a function that makes one), the function for verdicts, and the clients by name."""
        self.score = score or typed_verdicts
        if callable(team) and not hasattr(team, "run_stream"):
            self._make = lambda: RecordedTeam(team(), models)
            first = self._make()
        else:
            first = self._only = RecordedTeam(team, models)
        self.clients, self._description = first.clients, first.describe()

    def release(self) -> None:
        """Restore the user's team, with its own clients."""
        if self._only is not None:
            self._only.return_models()

    def models(self) -> list[str]:
        return sorted({client.name for client in self.clients})

    def sources(self) -> Mapping[str, str]:
        return {"the team": sha256(self._description.encode()).hexdigest()} if self._description else {}

    def plan(self) -> Iterator[Unit]:
        names: set[str] = set()
        for number, task in enumerate(self.config.tasks):
            words = _first_words(task["task"])
            name = f"{words} ({number})" if words in names else words
            names.add(name)
            for repeat in range(self.config.repeats):
                facets = {key: value for key, value in task.items() if not isinstance(value, list) and key != "task"}
                yield Unit(f"task/{number}/{repeat}", {"scenario": name, **facets, "repeat": repeat})

    async def run(self, unit: Unit, models: Models) -> Outcome:
        task: Any = self.config.tasks[int(unit.id.split("/")[1])]["task"]
        if self._make is not None:
            transcript = await self._make().converse(task)
        else:
            assert self._only is not None, "the study has no team"
            async with self._turn:  # one team can only have one conversation at a time
                transcript = await self._only.converse(task)
        return Outcome(transcript, tuple(self.score(transcript)))


@dataclass(slots=True, kw_only=True)
class TeamJob(Job):
    """A job whose clients are those of the team."""

    clients: list[Client]

    def make_executor(self) -> Executor:
        return InProcess()

    def open_models(self) -> list[Client]:
        if self.options.executor != "asyncio":
            raise ConfigError("a team that was made in Python runs in this process; leave the executor out")
        unpriced = [client.name for client in self.clients if not client.price.known]
        if self.options.budget_cost is not None and unpriced:
            raise ConfigError(
                f"a budget in dollars needs the price of {unpriced[0]}, which is not known: give the agents "
                "model(client, price_in=…, price_out=…)"
            )
        return self.clients


async def record_async(
    team: Any,
    tasks: Sequence[Task],
    *,
    out: str,
    repeats: int = 1,
    seed: int = 0,
    score: Score | None = None,
    options: Options | None = None,
) -> Result:
    """Run an AutoGen team on tasks, or resume such a run, and write every turn and call to a run file.

    Where an event loop is already running, as in a notebook, await `record_async`; elsewhere call `record`.

    Args:
        team: Any AutoGen team or agent, or a Parley conversation; conversations run one after the other. Or a function
            without arguments that makes one; conversations then run concurrently, each with its own team.
        tasks: Texts, or mappings with the key `task`; their other keys become facets of the unit ("identity", …). The
            task itself may be a conversation so far, as pairs of source and text.
        out: The run file. The same call resumes it; a team or tasks that have changed are refused.
        repeats: Number of runs per task.
        seed: Seed of the calls, if the model accepts one, and part of the cache key.
        score: Turns a transcript into verdicts; by default the numbers in typed replies (`output_content_type`).
        options: How to execute it: budget, concurrency, cache.
    """
    listed = [{"task": task} if isinstance(task, str) else dict(task) for task in tasks]
    if any("task" not in task for task in listed):
        raise ConfigError("a task is a text, or a mapping with the key 'task'")
    plain = [{key: _plain(key, value) for key, value in task.items()} for task in listed]
    name = getattr(team, "name", None) or getattr(team, "__name__", type(team).__name__)
    study = TeamStudy(TeamConfig(team=str(name), tasks=plain, repeats=repeats, seed=seed))
    models = Models()
    try:
        study.seat(team, score, models)
        size = measure(study)
        refuse_empty(study, size)
        chosen = (options or Options()).model_copy(update={"out": out})
        if chosen.concurrency is None and not study.clients:
            chosen = chosen.model_copy(update={"concurrency": 1})
        return await TeamJob(
            study=study, target="team", options=chosen, size=size, path=Path(out), models=models, clients=study.clients
        ).execute()
    finally:
        study.release()


def _first_words(task: Any) -> str:
    """What a task is listed by; of a conversation, the last message."""
    text = task if isinstance(task, str) else task[-1][1]
    return textwrap.shorten(text, NAME_LENGTH, placeholder="…") or "task"


def _plain(key: str, value: Any) -> Any:
    """A task's value for storage: a conversation as pairs, a facet as a number or a text."""
    if key != "task" or isinstance(value, str):
        return value if isinstance(value, bool | int) else str(value)
    try:
        return [(str(source), str(text)) for source, text in value]
    except (TypeError, ValueError):
        raise ConfigError("a task is a text, or a list of pairs of source and text") from None


record = blocking(record_async)
