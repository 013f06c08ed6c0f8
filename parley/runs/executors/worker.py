"""A worker: a Ray actor that runs units, with its own event loop and model clients.

It creates the same study as the run's own process from its name and config (`StudySpec`), never from pickled objects.
The spec contains no secrets: keys come from the worker's own environment.

Ray cannot call the program that started it. So the run's process always has a call of `listen` waiting at each worker,
which returns the worker's messages: calls made, and requests for calls from the run's budget; on another machine
also replies to store and to look up. So all workers share the run's budget and reply cache.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from parley.agents import Budget, Call, Models, ReplyCache
from parley.agents.models.session import Estimate, Used
from parley.base.errors import ConfigError, ParleyError
from parley.base.plugins import absolute_path
from parley.judging import Study, Unit
from parley.judging.prompts import USERS_PROMPTS, UsersPrompt
from parley.runs.executor import GC_THRESHOLDS, RunStopped, run_unit
from parley.runs.plan import ingredients, weights_of
from parley.runs.reading import earlier_run
from parley.runs.rows import Rows, Tally
from parley.runs.studies import find_study

T = TypeVar("T")
TICK_SECONDS = 0.5
"""Interval for fetching a worker's messages; questions are fetched at once."""
LINGER_SECONDS = 0.005
"""How long a question waits for others, so that many are fetched together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    """The data that a worker needs to create the study."""

    target: str
    """The study's name, or file.py:Class."""
    config: str
    """The study's config as JSON."""
    source: str | None
    """The source of a user's study, since other machines may not have the file."""
    folder: str
    """The working directory of the run."""
    path: tuple[str, ...]
    """The run's `sys.path`, in absolute entries. It is set when a worker starts, before anything is imported there."""
    fingerprint: str
    users_prompts: Mapping[str, UsersPrompt]
    """The user's prompts."""

    @classmethod
    def of(cls, study: Study, target: str) -> StudySpec:
        file = Path(target.rpartition(":")[0])
        return cls(
            target=target,
            config=study.config.model_dump_json(),
            source=file.read_text("utf-8") if file.suffix == ".py" else None,
            folder=os.getcwd(),
            path=absolute_path(),
            fingerprint=_fingerprint(study),
            users_prompts=USERS_PROMPTS.get(),
        )

    def make(self) -> Study:
        """Create the study, in the run's working directory if this machine has it."""
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
        USERS_PROMPTS.set(self.users_prompts)
        study_class = find_study(self._local_target())
        study = study_class.make(study_class.Config.model_validate_json(self.config), earlier_run)
        if _fingerprint(study) != self.fingerprint:
            raise ConfigError(
                f"the worker on {socket.gethostname()} differs from the machine that started the run in its version of "
                f"Parley, or in {self.target}, its prompts, its data or its models' weights"
            )
        return study

    def _local_target(self) -> str:
        """The user's file if this machine has the same one, else a copy of the text that was sent."""
        if self.source is None:
            return self.target
        name, _, class_name = self.target.rpartition(":")
        file = Path(name)
        if not file.is_file() or file.read_text("utf-8") != self.source:
            file = Path(tempfile.mkdtemp(prefix="parley-study-")) / file.name
            file.write_text(self.source, "utf-8")
        return f"{file}:{class_name}"


def _fingerprint(study: Study) -> str:
    """Equal for two studies with the same version of Parley, config, data, prompts and weights."""
    parley_version = "a checkout"
    with suppress(PackageNotFoundError):
        parley_version = version("parley-autogen")
    everything = (parley_version, ingredients(study), sorted(weights_of(study).items()))
    return hashlib.sha256(repr(everything).encode("utf-8", "surrogatepass")).hexdigest()


class Message(NamedTuple):
    """A worker's message to the run's process."""

    kind: str
    arguments: tuple[Any, ...]
    number: int | None = None
    """The number of a question; None if no answer is expected."""


class Line:
    """A worker's line to the run's process."""

    def __init__(self) -> None:
        self._said: list[Message] = []
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count()
        self._wake = asyncio.Event()
        self.tally = Tally()
        """The calls made since the last `listen`."""

    def tell(self, kind: str, *arguments: object) -> None:
        self._said.append(Message(kind, arguments))

    async def ask(self, kind: str, *arguments: object) -> Any:
        """The answer; an error in the run's process is raised here."""
        number = next(self._numbers)
        answer = self._questions[number] = asyncio.get_running_loop().create_future()
        self._said.append(Message(kind, arguments, number))
        self._wake.set()
        try:
            return await answer
        finally:
            del self._questions[number]

    async def listen(self, answers: Iterable[tuple[int, Any]]) -> list[Message]:
        """Take the answers to earlier questions, and return the next messages."""
        for number, answer in answers:
            question = self._questions.get(number)
            if question is None or question.done():  # its unit was abandoned
                continue
            if isinstance(answer, ParleyError):
                question.set_exception(answer)
            else:
                question.set_result(answer)
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK_SECONDS):
                await self._wake.wait()
                await asyncio.sleep(LINGER_SECONDS)
        return self.take()

    def take(self) -> list[Message]:
        self._wake.clear()
        messages, self._said = self._said, []
        tally, self.tally = self.tally, Tally()
        return [Message("count", (tally,)), *messages] if tally.calls else messages

    def hang_up(self) -> list[Message]:
        """Return the last messages, and end a waiting `listen`."""
        messages = self.take()
        self._wake.set()
        return messages


class RunsCache:
    """The reply cache of the run's process, for workers on other machines."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def find(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        text = await self._line.ask("find", address)
        try:
            return None if text is None else parse(text)
        except (ValueError, TypeError, RecursionError):
            return None

    def put_text(self, address: bytes, model: str, text: str) -> None:
        self._line.tell("put_text", address, model, text)

    def commit(self) -> None:
        self._line.tell("commit")


class RunsBudget(Budget):
    """The budget of the run's process, for its workers; every call is taken from it."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    async def take_call(self, estimate: Estimate) -> None:
        while True:
            asking = asyncio.ensure_future(self._line.ask("reserve", estimate))
            try:
                if await asyncio.shield(asking):
                    return
            except asyncio.CancelledError:
                asking.add_done_callback(lambda answered: self._give_up(answered, estimate))
                raise
            await asyncio.sleep(LINGER_SECONDS)

    def _give_up(self, answered: asyncio.Future[bool], estimate: Estimate) -> None:
        """Free what was reserved for an abandoned call."""
        if not answered.cancelled() and not answered.exception() and answered.result():
            self.give_call_back()
            self.release(estimate, Used())

    @property
    def measured(self) -> bool:
        return True  # estimates are made here; the run's process knows its limits

    def release(self, estimate: Estimate, used: Used) -> None:
        self._line.tell("release", estimate, used)

    def give_call_back(self) -> None:
        self._line.tell("give_call_back")

    def spend(self, call: Call) -> None:
        """Nothing to do: the run's process counts all calls."""


def nth_part(total: int, parts: int, index: int) -> int:
    """Divide a total into nearly equal parts, and return the one at this index."""
    return total // parts + (index < total % parts)


class Worker:
    """Runs in a Ray actor: `open` is called first, then `run` for every unit, and `close` last.

    Args:
        spec: The study.
        index: The worker's number.
        workers: Number of workers, which share the limit on connections.
        limited: Whether the run has a budget.
        cache: The run's machine, and the path of its reply cache there.
    """

    def __init__(self, spec: StudySpec, index: int, workers: int, limited: bool, cache: tuple[str, str]) -> None:
        self._spec, self._index, self._workers, self._limited = spec, index, workers, limited
        self._host, self._file = cache
        self._models = Models()
        self._units: set[asyncio.Task[Rows]] = set()

    async def open(self) -> str | None:
        """Create the study and its clients; the error message if that fails."""
        self._line = Line()
        self._budget = RunsBudget(self._line) if self._limited else None
        self._cache: ReplyCache | RunsCache = RunsCache(self._line)
        try:
            # On the run's machine the file is faster: asking the run's process takes 5 to 20 ms a call.
            if self._host == socket.gethostname() and os.path.exists(self._file):
                self._cache = ReplyCache(Path(self._file))
            self._study: Study = self._spec.make()
            for name in self._study.models():
                client = self._models[name]
                client.throttle = client.make_throttle(
                    lambda total: max(1, nth_part(total, self._workers, self._index)),
                    1 / self._workers,
                    partial(self._line.tell, "slow_down", self._index, name),
                )
                await client.prepare()
        except ParleyError as error:
            return f"a worker on {socket.gethostname()} cannot work: {error}"
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        return None

    async def run(self, unit: Unit) -> Rows | str | None:
        """Run a unit; returns its rows, the reason why the whole run must stop, or None if it was abandoned."""
        USERS_PROMPTS.set(self._spec.users_prompts)  # each call of an actor has a context of its own
        running = run_unit(
            self._study,
            unit,
            self._models,
            cache=self._cache,
            budget=self._budget,
            on_call=lambda call: self._line.tally.count(call),
        )
        task = asyncio.create_task(running)
        self._units.add(task)
        try:
            await asyncio.wait((task,))
            return None if task.cancelled() else task.result()
        except RunStopped as error:
            return str(error)
        finally:
            self._units.discard(task)

    async def listen(self, answers: list[tuple[int, Any]]) -> list[Message]:
        messages = await self._line.listen(answers)
        if isinstance(self._cache, ReplyCache):
            with suppress(ParleyError):  # the next reply raises it, and stops the run
                self._cache.commit()
        return messages

    async def slow_down(self, model: str, pause: float) -> None:
        """The model's server has told another worker to slow down."""
        self._models[model].throttle.slow_down(pause, reported=True)

    async def close(self) -> list[Message]:
        """Abandon the units in progress; returns the last messages, including replies already paid for."""
        for task in self._units:
            task.cancel()
        await asyncio.gather(*self._units, return_exceptions=True)
        await self._models.close()
        if isinstance(self._cache, ReplyCache):
            with suppress(ParleyError):
                self._cache.close()
        return self._line.hang_up()
