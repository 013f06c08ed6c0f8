"""What a study is: it plans units, and knows how to hold one. Everything else (concurrency, recording, resuming,
budgets) is the engine's.

A study of the user's own is a class with these members; `parley new study NAME` begins one, `parley run
path/to/file.py:MyStudy` runs it, and nothing of ours has to change. Ours come through the same door.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel

from parley.agents import ConfigError, Models, ParseStatus, Role, Transcript

Facet = str | int | bool


@dataclass(frozen=True, slots=True)
class Unit:
    """One conversation to hold. The id is stable; the facets say what it is, for filters and data frames."""

    id: str
    facets: Mapping[str, Facet]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One value that one judge gave in one round. `value` is what counts; `sampled` is the digit that was said."""

    judge: str
    role: Role
    round: int
    metric: str
    subject: str = ""
    value: float | None = None
    sampled: float | None = None
    text: str | None = None
    status: ParseStatus = "ok"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a unit."""

    transcript: Transcript
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class UsageEstimate:
    """What a unit is likely to take, for a dry run."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    shared: tuple[int, ...] = ()
    """For each call that begins as an earlier one of the unit did, with the same reply asked for: how many tokens."""


class Accepted(NamedTuple):
    """A reply that a writing study accepted: the facets of its unit, and the reply as it was read."""

    facets: Mapping[str, Facet]
    reply: Mapping[str, Any]


class Study(Protocol):
    """`Config` holds all that changes results; its fields are the flags of `parley run NAME`."""

    name: ClassVar[str]
    Config: ClassVar[type[BaseModel]]
    config: BaseModel

    def __init__(self, config: Any) -> None:
        """Checks everything that can be checked before work starts."""

    def models(self) -> list[str]:
        """The model names the study will use."""

    def prompts(self) -> Mapping[str, str]:
        """The prompt texts by name; a run keeps them with their hashes."""

    def sources(self) -> Mapping[str, str]:
        """Hashes of the data the plan is made from, by name."""

    def plan(self) -> Iterator[Unit]:
        """The units, the same every time for the same config."""

    def estimate(self, unit: Unit) -> UsageEstimate:
        """What the unit is likely to take."""

    async def run(self, unit: Unit, models: Models) -> Outcome:
        """Hold the conversation."""


@runtime_checkable
class Staged(Protocol):
    """A study that may be made from what another one wrote; that one is run first."""

    def first(self) -> Study | None:
        """The study to run first, if one is needed."""

    def after(self, accepted: Iterable[Accepted]) -> Study:
        """This study, on what the first one wrote."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: a text file of `judging/prompts/`, or beside a study of one's own, with named {placeholders}."""

    name: str
    text: str = field(repr=False)

    @classmethod
    def load(cls, name: str) -> Prompt:
        path = files("parley.judging").joinpath("prompts", *f"{name}.txt".split("/"))
        return cls(name, path.read_text("utf-8").strip())

    @classmethod
    def beside(cls, module: str, name: str) -> Prompt:
        """`name`.txt beside a module of the user's own: `Prompt.beside(__file__, "ask")`."""
        path = Path(module).with_name(f"{name}.txt")
        try:
            return cls(name, path.read_text("utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None

    def __call__(self, **values: object) -> str:
        return self.text.format(**values)
