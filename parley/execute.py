"""Running a study, from Python as from the command line: open or create the run file, prepare the models, go.

result = parley.run("malibu", suite="quick", model="sim/judge")
"""

from __future__ import annotations

import asyncio
import re
import reprlib
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parley.agents import Budget, Client, ConfigError, Models, ReplyCache
from parley.agents.home import home
from parley.agents.models.batches import MAX_REQUESTS
from parley.executors.recipe import Recipe
from parley.judging import Accepted, Staged, Study
from parley.runs import (
    Engine,
    Executor,
    InProcess,
    InterimLooks,
    Progress,
    Result,
    RunFile,
    Size,
    describe,
    measure,
    refuse_if_changed,
)
from parley.runs.interim import counts
from parley.studies import find_study
from parley.telemetry import parent, traced


class Options(BaseModel):
    """How a run is carried out: nothing here changes its results, so all of it may differ when going on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    out: str | None = Field(
        None, description="the run file (default: runs/<study>-<model>-<hash of the config>.sqlite)"
    )
    concurrency: int | None = Field(None, ge=1, description="units held at once (default: what the model can take)")
    cache: bool = Field(True, description="keep model replies, so that a run cut short pays nothing twice")
    executor: Literal["asyncio", "processes", "ray", "batch"] = Field(
        "asyncio", description="who holds the units: this process, worker processes, Ray, or the provider's batches"
    )
    workers: int | None = Field(None, ge=1, description="worker processes or Ray actors (default: one a core)")
    ray_address: str | None = Field(None, description="a Ray cluster's address (default: Ray on this machine)")
    budget_calls: int | None = Field(None, ge=0, description="stop after so many model calls in all")
    budget_tokens: int | None = Field(None, ge=0, description="stop after so many tokens in all")
    budget_cost: float | None = Field(None, ge=0, description="stop after so many US dollars in all")
    trace: bool = Field(False, description="OpenTelemetry spans, sent where the OTEL_* variables say")


def make_study(target: str, config: Mapping[str, Any]) -> Study:
    """The study with its config checked; a wrong key or type is named."""
    found = find_study(target)
    try:
        checked = found.Config.model_validate(dict(config))
    except ValidationError as error:
        raise ConfigError(explain(error, found.Config)) from None
    return found(checked)


_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 80


def explain(error: ValidationError, schema: type[BaseModel]) -> str:
    """Pydantic's first complaint as one line."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}' (known: {', '.join(schema.model_fields)})"
    if first["type"] == "missing" and key in schema.model_fields:
        return f"{key} must be given: {schema.model_fields[key].description or 'it has no default'}"
    return f"{key}: {first['msg']}, not {_BRIEF.repr(first['input'])}"


def default_path(study: Study, size: Size) -> Path:
    """The same config, data and prompts always give the same file, so that the same command goes on."""
    made_from = (study.config.model_dump_json(), sorted(study.sources().items()), sorted(study.prompts().items()))
    digest = sha256(f"{made_from}{size.digest}".encode()).hexdigest()[:8]
    models = "+".join(
        re.sub(r"[^A-Za-z0-9.]+", "-", name.partition("?")[0].partition("/")[2]) for name in study.models()
    )
    return Path("runs") / f"{study.name}-{models[:60].strip('-')}-{digest}.sqlite"


@dataclass(slots=True)
class Job:
    """A study, ready to run: everything that can fail early has been tried."""

    study: Study
    target: str
    options: Options
    size: Size
    path: Path
    models: Models
    first: Job | None = None
    """What must be run before: the study waits for what that one writes."""
    refused: int = 0
    """Units of that first job which gave nothing that was accepted."""
    accepted: tuple[Accepted, ...] | None = None
    """What that first job wrote."""

    @classmethod
    def make(cls, target: str, config: Mapping[str, Any], options: Options) -> Job:
        study = make_study(target, config)
        job = cls.of(study, target, options)
        before = study.first() if isinstance(study, Staged) else None
        if before is not None:
            job.first = cls.of(before, before.name, options.model_copy(update={"out": None}))
        return job

    @classmethod
    def of(cls, study: Study, target: str, options: Options) -> Job:
        size = measure(study)
        InterimLooks.of(study)  # a stopping rule that cannot work is refused here
        path = Path(options.out) if options.out else default_path(study, size)
        return cls(study, target, options, size, path, Models())

    def advance(self) -> Job:
        """This job, once what must be run before is done: its study made from what was written there."""
        assert self.first is not None, "there is nothing before this job"
        assert isinstance(self.study, Staged), "only a staged study waits for another"
        with closing(RunFile.open(self.first.path)) as file:
            accepted = tuple(file.accepted())
        study = self.study.after(accepted)
        kept = {tuple(sorted(one.facets.items())) for one in accepted}
        refused = self.first.size.units - len(kept)
        return replace(self, study=study, size=measure(study), refused=refused, accepted=accepted)

    def open_models(self) -> list[Client]:
        """All clients; one that cannot work (unknown, no key, no package) fails here."""
        clients = [self.models[name] for name in self.study.models()]
        if self.options.workers is not None and self.options.executor not in ("processes", "ray"):
            raise ConfigError(f"--workers is for --executor processes or ray, not {self.options.executor}")
        if self.options.ray_address is not None and self.options.executor != "ray":
            raise ConfigError("--ray-address is for --executor ray")
        if self.options.executor == "batch":
            from parley.executors.batch import price_as_batches

            price_as_batches(clients)
        if self.options.executor == "ray":
            from parley.executors.ray_pool import need_ray

            need_ray()
        if self.options.budget_cost is not None:
            for client in clients:
                if client.price.cost(1, 1) is None:
                    raise ConfigError(f"a budget in dollars needs prices: {client.name}?price_in=…&price_out=…")
        if getattr(self.study.config, "readout", "sampled") == "expected":
            for client in clients:
                if not client.logprobs:
                    raise ConfigError(f'readout = "expected" needs log-probabilities, and {client.name} gives none')
        return clients

    def make_executor(self, file: RunFile) -> Executor:
        """Who will hold the units."""
        if self.options.executor == "asyncio":
            return InProcess()
        if self.options.executor == "batch":
            from parley.executors.batch import BatchExecutor

            return BatchExecutor(file)
        recipe = Recipe.of(self.study, self.target, self.accepted, trace=parent() if self.options.trace else None)
        if self.options.executor == "processes":
            from parley.executors.processes import ProcessPool

            return ProcessPool(recipe, workers=self.options.workers)
        from parley.executors.ray_pool import RayPool

        return RayPool(recipe, workers=self.options.workers, address=self.options.ray_address)

    def open_file(self) -> RunFile:
        if self.path.exists():
            file = RunFile.open(self.path, write=True)
            try:
                refuse_if_changed(file, self.study, self.size)
            except BaseException:
                file.close()
                raise
            return file
        info = describe(self.study, self.target, self.size)
        return RunFile.create(self.path, info, self.study.prompts(), self.study.plan())

    def _concurrency(self, clients: list[Client]) -> int:
        if self.options.concurrency is None and self.options.executor == "batch":
            return MAX_REQUESTS
        return self.options.concurrency or min(client.options.max_connections for client in clients)

    def _spent(self, file: RunFile) -> tuple[int, int, float]:
        """Calls, tokens and dollars so far, those of what was run before among them: one budget holds for both."""
        calls, tokens, cost, _ = file.spent()
        if self.first is not None:
            with closing(RunFile.open(self.first.path)) as before:
                more = before.spent()
            calls, tokens, cost = calls + more[0], tokens + more[1], cost + more[2]
        return calls, tokens, cost

    async def go(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        on_engine: Callable[[Engine], None] | None = None,
    ) -> Result:
        with traced(self.study, self.options.trace) as study:
            return await replace(self, study=study)._go(on_progress, on_engine)

    async def _go(
        self, on_progress: Callable[[Progress], None] | None, on_engine: Callable[[Engine], None] | None
    ) -> Result:
        clients = self.open_models()
        file = self.open_file()
        cache = None
        try:
            executor = self.make_executor(file)
            if self.options.cache:
                cache = ReplyCache(home() / "replies.sqlite")
            budget = Budget(
                self.options.budget_calls, self.options.budget_tokens, self.options.budget_cost, *self._spent(file)
            )
            units = counts(file)
            if isinstance(executor, InProcess) and units["planned"] + units["failed"]:
                for client in clients:
                    await client.prepare()
            engine = Engine(
                self.study,
                file,
                models=self.models,
                executor=executor,
                concurrency=self._concurrency(clients),
                cache=cache,
                budget=budget,
                on_progress=on_progress,
                expected_calls=self.size.calls,
            )
            if on_engine:
                on_engine(engine)
            return await engine.run()
        finally:
            await self.models.close()
            file.close()
            if cache is not None:
                with suppress(Exception):
                    cache.close()


def run(target: str = "malibu", *, options: Options | None = None, out: str | None = None, **config: Any) -> Result:
    """Run a study to its end and return how it went; the run file has the rest."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run_async(target, options=options, out=out, **config))
    raise ConfigError("an event loop is running here, as in a notebook: await parley.run_async(...) instead")


async def run_async(
    target: str = "malibu", *, options: Options | None = None, out: str | None = None, **config: Any
) -> Result:
    """The same where an event loop is running already, as in a notebook."""
    chosen = options or Options()
    if out is not None:
        chosen = chosen.model_copy(update={"out": out})
    job = Job.make(target, config, chosen)
    if job.first is not None:
        job.open_models()  # a key that is missing is missed before anything is spent
        before = await job.first.go()
        if not before.complete:
            return before
        job = job.advance()
    return await job.go()
