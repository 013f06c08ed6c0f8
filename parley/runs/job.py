"""Runs a study, from Python and from the command line: opens or creates the run file, prepares the models, executes.

result = parley.run("malibu", suite="quick", model="sim/judge")
result = parley.run(MalibuConfig(suite="quick", model="sim/judge"))
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from parley.agents import Budget, Client, Models, ReplyCache
from parley.agents.providers import provider_of
from parley.base.errors import ConfigError, ParleyError, install
from parley.base.home import home, say
from parley.base.tasks import blocking, gather_or_cancel
from parley.base.text import plural
from parley.judging import Check, Study
from parley.judging.prompts import USERS_PROMPTS, UsersPrompt
from parley.judging.study import RefereedStudy
from parley.runs.engine import TICK_SECONDS, TRIED, Engine, Result
from parley.runs.executor import Executor, InProcess
from parley.runs.opening import PRIVATE_FILES, Replaced, beside
from parley.runs.options import Options, to_seconds, validated
from parley.runs.plan import (
    Size,
    describe,
    ingredients,
    measure,
    prompts_of,
    refuse_empty,
    refuse_if_changed,
    refuse_unknown_labels,
)
from parley.runs.prompts import with_users_prompts
from parley.runs.reading import earlier_run
from parley.runs.rows import READABLE, Progress
from parley.runs.store import RunFile
from parley.runs.studies import SHIPPED, find_study, load_function, study_of_config

if TYPE_CHECKING:
    from parley.runs.rehearsal import Usage

TRIAL, LEAST_READ = 20, 0.95
"""Number of replies in the trial of a user's prompts, and the share of them that must be readable."""
WITHOUT_MODELS = 16
"""Concurrent units of a study that calls no model."""
WITH_BUDGET = 256
"""Most units that a run with a budget has in progress: each may be paid for, yet unfinished when the budget ends."""


def make_study(target: str, config: Mapping[str, Any], prompts_from: str | None = None) -> Study:
    """Make a study from its config; `ConfigError` names a wrong key or value.

    Args:
        target: The study's name, or file.py:Class.
        config: Its settings, as in a config file.
        prompts_from: A folder with the user's prompts.
    """
    make = study_maker(target, config)
    USERS_PROMPTS.set({})
    return make() if prompts_from is None else with_users_prompts(prompts_from, make)


def study_maker(target: str, config: Mapping[str, Any]) -> Callable[[], Study]:
    """A function that makes the study with the current prompts; `ConfigError` if the config is invalid.

    Args:
        target: The study's name, or file.py:Class.
        config: Its settings, as in a config file.
    """
    study_class = find_study(target)
    checked = validated(study_class.Config, config)
    return lambda: study_class.make(checked, earlier_run)


def default_path(study: Study, size: Size) -> Path:
    """A file name that follows from config, data and prompts, so that the same command resumes the run."""
    digest = sha256(f"{ingredients(study)}{size.digest}".encode()).hexdigest()[:8]
    models = "+".join(
        re.sub(r"[^A-Za-z0-9.]+", "-", name.partition("?")[0].partition("/")[2]) for name in study.models()
    )
    parts = (study.name, models[:60].strip("-"), digest)
    return Path("runs") / f"{'-'.join(filter(None, parts))}.sqlite"


@dataclass(slots=True, kw_only=True)
class Job:
    """A study that is ready to run: valid config, measured plan, named file."""

    study: Study
    target: str
    """The study's name, or file.py:Class."""
    options: Options
    size: Size
    path: Path
    """The run file."""
    models: Models
    users_prompts: Mapping[str, UsersPrompt] = field(default_factory=USERS_PROMPTS.get)
    """The prompts that replace ours."""
    first: Check | None = None
    """The check of the study's judge."""
    check: Job | None = None
    """The check to execute first; None if there is none or its result is known."""
    checked: Mapping[str, Any] | None = None
    """The check's result: passed or not, the sentence, and its run file."""
    clients: list[Client] | None = None
    """The clients of all models, once opened."""
    counted: Usage | None = None
    """Expected calls and tokens, once rehearsed."""
    began: float = field(default_factory=time.monotonic)
    """Start of the wall time, for this job and its check together."""

    @classmethod
    def make(cls, target: str, config: Mapping[str, Any], options: Options) -> Job:
        """Make a job, with its check if the study has one.

        Args:
            target: The study's name, or file.py:Class.
            config: The study's settings.
            options: How to execute it.
        """
        study = make_study(target, config, options.prompts_from)
        job = cls.of(study, target, options)
        job.first = study.check_first() if isinstance(study, RefereedStudy) else None
        if job.first and not job.first.failed:
            check = job.first.study
            job.check = cls.of(check, check.name, options.model_copy(update={"out": None}))
        return job

    @classmethod
    def of(cls, study: Study, target: str, options: Options) -> Job:
        size = measure(study)
        refuse_empty(study, size)
        refuse_unknown_labels(study)
        path = Path(options.out) if options.out else default_path(study, size)
        return cls(study=study, target=target, options=options, size=size, path=path, models=Models())

    @property
    def usage(self) -> Usage:
        """The calls and tokens of the whole plan, by a rehearsal on simulated models."""
        from parley.runs.rehearsal import rehearse  # it loads AutoGen

        self.counted = self.counted or rehearse(self.study)
        return self.counted

    def read_check(self) -> Job:
        """This job with its check's result; ParleyError if the judge failed."""
        assert self.first is not None, "this study has no check"
        stops, passed, sentence = True, False, self.first.failed
        if self.check:
            try:
                from parley.runs.frames import verdicts  # it loads pandas

                verdict = load_function(self.first.verdict)(verdicts(self.check.path))
                passed, sentence = bool(verdict.passed), str(verdict.sentence)
            except ModuleNotFoundError:
                sentence = f"{self.first.name} needs pandas: {install('analysis')}."
                sentence, stops = sentence[0].upper() + sentence[1:], False
        say(sentence)
        if stops and not passed:
            raise ParleyError(f"{self.first.stop} ({plural(self.usage.calls, 'call')})")
        run = {"run": self.check.path.name} if self.check else {}
        return replace(self, checked={"passed": passed, "sentence": sentence, **run})

    def open_models(self) -> list[Client]:
        """Open the clients of all models; `ConfigError` if one cannot be used (unknown, no key, no price, …)."""
        if self.clients is not None:
            return self.clients
        clients = [self.models[name] for name in self.study.models()]
        if self.options.workers is not None and self.options.executor != "ray":
            raise ConfigError("--workers is for --executor ray")
        if self.options.ray_address is not None and self.options.executor != "ray":
            raise ConfigError("--ray-address is for --executor ray")
        if self.options.executor == "ray":
            from parley.runs.executors.ray_connection import import_ray

            import_ray()
        if self.options.budget_cost is not None:
            for client in clients:
                if not client.price.known:
                    raise ConfigError(
                        f"--budget-cost needs the price of {client.name}, which is not known: append "
                        "?price_in=…&price_out=… (US dollars per million tokens) to the model's name"
                    )
        for client in clients:
            self.study.check_model(client)
        self.clients = clients
        return clients

    def notes(self, *, dry_run: bool) -> list[str]:
        """Notes for the user before the run.

        Args:
            dry_run: Whether nothing is sent.
        """
        notes = list(self.study.notes(dry_run=dry_run))
        if dry_run and (error := self.usage.error):
            notes.append(f"a unit failed on the simulated model, so there may be more calls than this: {error}")
        return notes

    def seconds_left(self) -> float | None:
        """Seconds until the wall time is over; None if there is none."""
        wall_time = self.options.wall_time
        return None if wall_time is None else self.began + to_seconds(wall_time) - time.monotonic()

    def make_executor(self) -> Executor:
        """Make the executor. Imported here, since executors load AutoGen, which a dry run does not need."""
        if self.options.executor == "asyncio":
            return InProcess()
        from parley.runs.executors.ray_pool import RayPool
        from parley.runs.executors.worker import StudySpec

        spec = StudySpec.of(self.study, self.target)
        return RayPool(spec, workers=self.options.workers, address=self.options.ray_address)

    def open_file(self) -> RunFile:
        """The run file, opened for writing: created, or resumed if it has the same plan."""
        if self.path.exists():
            file = RunFile.open(self.path, write=True)
            try:
                refuse_if_changed(file, self.study, self.size)
            except BaseException:
                file.close()
                raise
            return file
        info = describe(self.study, self.target, self.size) | ({"check": self.checked} if self.checked else {})
        file = RunFile.create(self.path, info, prompts_of(self.study), self.study.plan())
        if ReplyCache.mark(beside(self.path, PRIVATE_FILES[0])) != ReplyCache.PROMISED:
            self._delete_replies()  # left by a deleted run
        return file

    def _delete_replies(self) -> None:
        """Delete the run's private reply cache. Files that somebody else gave these names are left alone."""
        private, *logs = (beside(self.path, suffix) for suffix in PRIVATE_FILES)
        if ReplyCache.mark(private) is not None:
            for path in (*logs, private):  # last what shows that they are ours
                path.unlink(missing_ok=True)

    def open_cache(self) -> ReplyCache:
        """Open the reply cache; with `--no-cache`, a private one next to the run file until every unit is done."""
        files = [beside(self.path, suffix) for suffix in PRIVATE_FILES]
        ours = ReplyCache.mark(files[0]) is not None
        if self.options.cache and not ours:  # a run keeps its first one
            return ReplyCache(home() / "replies.sqlite")
        if not ours and (others := [path for path in files if os.path.lexists(path)]):
            raise ParleyError(f"{others[0]} is not a reply cache of Parley's; move it away, or choose another --out")
        return ReplyCache(files[0], alone=self.options.executor != "ray")

    @contextmanager
    def _within_wall_time(self, engine: Engine) -> Iterator[None]:
        """End the engine before the wall time is over: it begins to stop one grace period earlier."""
        if (left := self.seconds_left()) is None:
            yield
            return
        grace = self.options.grace
        reason = f"the wall time of {self.options.wall_time} is nearly over"
        timer = asyncio.get_running_loop().call_later(
            max(0.0, left - grace), engine.end_within, min(grace, max(0.0, left)), reason
        )
        try:
            yield
        finally:
            timer.cancel()

    async def _expected(self) -> dict[str, int]:
        """Expected calls, for the time left; not for users' studies or simulated models, where units suffice."""
        if self.target not in SHIPPED or all(provider_of(name).simulated for name in self.study.models()):
            return {}
        usage = await asyncio.to_thread(lambda: self.usage)  # while weights are read
        return {"expected_calls": usage.calls, "expected_reads": usage.reads}

    def _concurrency(self, clients: list[Client]) -> int:
        if self.options.concurrency:
            return self.options.concurrency
        room = min((client.concurrency for client in clients), default=WITHOUT_MODELS)
        return min(room, WITH_BUDGET) if self._has_budget() else room

    def _has_budget(self) -> bool:
        limits = (self.options.budget_calls, self.options.budget_tokens, self.options.budget_cost)
        return any(limit is not None for limit in limits)

    def _budget(self, file: RunFile) -> Budget:
        """The limits and the spending so far, including the check: one budget covers both."""
        spent = [file.spent()]
        if self.check is not None:
            with RunFile.open(self.check.path) as before:
                spent.append(before.spent())
        return Budget(
            max_calls=self.options.budget_calls,
            max_tokens=self.options.budget_tokens,
            max_cost=self.options.budget_cost,
            calls=sum(part.calls for part in spent),
            tokens=sum(part.tokens for part in spent),
            cost=sum(part.cost for part in spent),
        )

    async def execute(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        on_engine: Callable[[Engine], None] | None = None,
    ) -> Result:
        """Run the units that are not done.

        Args:
            on_progress: Called with the progress, at least twice a second.
            on_engine: Called with the engine before it starts, so that the caller can interrupt it.
        """
        USERS_PROMPTS.set(self.users_prompts)
        clients = self.open_models()
        resumed = self.path.exists()
        file = self.open_file()
        cache, done = None, False
        try:
            executor = self.make_executor()
            cache = self.open_cache()
            budget = self._budget(file)
            units = file.counts()
            for line in () if resumed else self.notes(dry_run=False):
                say(f"note: {line}")
            starting: list[Coroutine[Any, Any, Any]] = [self._expected()]
            if isinstance(executor, InProcess) and units["planned"] + units["failed"]:
                loading = Progress(total=sum(units.values()), done=units["done"])
                starting.append(_prepare(clients, loading, on_progress or (lambda progress: None)))
            expected = (await gather_or_cancel(starting))[0]

            async def run(executor: Executor, concurrency: int, trial: int = 0) -> Result:
                engine = Engine(
                    self.study,
                    file,
                    models=self.models,
                    executor=executor,
                    concurrency=concurrency,
                    cache=cache,
                    budget=budget,
                    on_progress=on_progress,
                    trial=trial,
                    **expected,
                )
                if on_engine:
                    on_engine(engine)
                with self._within_wall_time(engine):
                    return await engine.run()

            tried = None
            if self.users_prompts and file.replies().typed < TRIAL:
                tried = after_trial(await run(InProcess(), 1, TRIAL), file)
            result = tried or await run(executor, self._concurrency(clients))
            done = result.progress.done == result.progress.total
        except Replaced:
            with suppress(Exception):
                if cache is not None:
                    cache.promise()
            raise
        finally:
            self.clients = None
            await self.models.close()
            file.close()
            if cache is not None:
                with suppress(Exception):
                    cache.close()
            if done:
                self._delete_replies()
        return result


def after_trial(result: Result, file: RunFile) -> Result | None:
    """The result of a trial of the user's prompts that failed; None if the run continues.

    Args:
        result: How the trial ended.
        file: The run file, with the replies.
    """
    replies = file.replies()
    if result.stopped != TRIED:
        return result
    if replies.read >= LEAST_READ * replies.typed:
        return None
    unread = f"SELECT speaker, parse_status, text FROM transcript WHERE parse_status NOT IN {READABLE}"
    for speaker, status, text in file.rows(unread)[1]:
        say(f"{speaker}, {status}: {' '.join(text.split())}")
    return replace(
        result,
        stopped=f"{replies.read} of the first {replies.typed} replies to your prompts could be read; see above. "
        "Ask for replies as the shipped prompts do, or name a reader in a prompt's first line (#! reader: NAME)",
    )


async def _prepare(clients: list[Client], progress: Progress, on_progress: Callable[[Progress], None]) -> None:
    """Load the models, with progress twice a second: on first use an embedded model's weights are also converted."""
    for client in clients:
        task = asyncio.create_task(client.prepare())
        try:
            while not task.done():
                progress.waiting = client.preparing
                if progress.waiting:
                    on_progress(progress)
                await asyncio.wait([task], timeout=TICK_SECONDS)
            await task
        finally:
            task.cancel()


async def complete(job: Job, execute: Callable[[Job], Awaitable[Result]] = Job.execute) -> tuple[Job, Result]:
    """Execute a job, after the check of its judge if it has one; returns the job and its result.

    Args:
        job: What to execute.
        execute: Executes a single job.
    """
    job.open_models()  # a missing key is reported before anything is spent
    if job.first is not None:
        if job.check is not None:
            say(f"first, {job.check.size.units:,} {job.first.about}")
            result = await execute(job.check)
            if not result.complete:
                return job.check, result
        job = await asyncio.to_thread(job.read_check)  # it may rehearse in its own event loop
    return job, await execute(job)


async def run_async(
    study: str | BaseModel = "malibu", *, options: Options | None = None, out: str | None = None, **config: Any
) -> Result:
    """Run a study, or resume it, and return how the run ended; the results are in the run file.

    Where an event loop is already running, as in a notebook, await `run_async`; elsewhere call `run`.

    Args:
        study: The study's config, such as `MalibuConfig(suite="wide")`, or its name, or file.py:Class.
        options: How to execute it: concurrency, budget, executor, … Default: as `parley run` without flags.
        out: The run file; the same as `Options(out=…)`. Default: a name under runs/ that follows from the config.
        config: With a name: the study's settings, as in a config file: `model="sim/judge"`, `suite="quick"`, …
    """
    chosen = options or Options()
    if out is not None:
        chosen = chosen.model_copy(update={"out": out})
    if isinstance(study, BaseModel):
        if config:
            raise ConfigError(f"set {next(iter(config))} in the {type(study).__name__} itself")
        name, config = study_of_config(study), study.model_dump(exclude_unset=True)
    else:
        name = study
    _, result = await complete(Job.make(name, config, chosen))
    return result


run = blocking(run_async)
