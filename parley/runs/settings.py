"""The settings of the main studies, as keywords of `parley.run`: for editors and type checkers.

Made from the studies' configs by `python -m docs.settings`; edit those instead.
"""

# The overload that never returns takes what the others do not, so it overlaps with them.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Literal, NoReturn, Protocol, TypedDict, TypeVar, Unpack, cast, overload

from parley.runs import job
from parley.runs.engine import Result
from parley.runs.options import Options

R = TypeVar("R", covariant=True)


class Execution(TypedDict, total=False):
    """How any study is executed, and where its run file is."""

    options: Options | None
    out: str | None


class MalibuSettings(Execution, total=False):
    """The keywords of `parley.run("malibu", …)`."""

    suite: str
    model: str | Sequence[str]
    design: Literal["staged", "silent", "talk", "paper"]
    scenarios: Sequence[str] | None
    per_base: int | None
    limit: int | None
    debated_bases: int | None
    debates: int | None
    wordings: str
    wordings_per_base: int
    label_places: Sequence[Literal["before", "beside", "after"]] | None
    label_kinds: Sequence[Literal["profile", "byline", "self-description", "name", "pronoun"]] | None
    samples: int
    phases: Sequence[Literal[1, 2]] | None
    identities: Sequence[str] | None
    rubric: str | None
    metrics: Sequence[str] | None
    rounds: int
    blind: bool
    speaking_order: Literal["fixed", "shuffled"]
    ties: bool
    reasons_first: bool
    cells: Literal["all", "one"]
    controls: bool | None
    yardstick: Literal["full", "brief", "off"] | None
    yardstick_bases: int | None
    judges: str | None
    personas: Literal["system", "last"] | None
    remark_chars: int | None
    fence: bool | None
    consensus: Literal["mean", "chair"]
    repeats: int
    readout: Literal["sampled", "expected"]
    temperature: float | None
    max_tokens: int
    seed: int
    margin: float


class BbqSettings(Execution, total=False):
    """The keywords of `parley.run("bbq", …)`."""

    data: str
    templates: str | None
    model: str | Sequence[str]
    method: str | Sequence[str]
    settings: Sequence[str]
    categories: Sequence[str] | None
    limit: int | None
    shuffle: bool
    repeats: int
    temperature: float | None
    max_tokens: int
    seed: int


class SquadSettings(Execution, total=False):
    """The keywords of `parley.run("squad", …)`."""

    data: str | None
    model: str | Sequence[str]
    search: str | Sequence[str]
    search_model: str | None
    paragraph: bool
    as_published: bool
    limit: int | None
    searched: int
    repeats: int
    temperature: float | None
    max_tokens: int
    seed: int


class RldfSettings(Execution, total=False):
    """The keywords of `parley.run("rldf", …)`."""

    bias: str
    topics: int
    limit: int | None
    topics_from: str | None
    roles: int
    rounds: int
    mode: Literal["self-reflection", "teacher-student", "teacher-guides"]
    model: str
    teacher: str | None
    referee: str | None
    design: Literal["silent", "paper"] | None
    check: bool
    require_referee: bool
    feedback: bool
    order: Literal["fixed", "shuffled"]
    rereferee: float
    repeats: int
    examples: bool
    words: int
    personas: Literal["system", "last"]
    readout: Literal["sampled", "expected"]
    temperature: float | None
    max_tokens: int
    seed: int


class StardtoxSettings(Execution, total=False):
    """The keywords of `parley.run("stardtox", …)`."""

    data: str
    sets: str | Sequence[str]
    prompts: int
    limit: int | None
    completions: int
    model: str | Sequence[str]
    method: str | Sequence[str]
    settings: Sequence[str]
    judge: str | None
    scorer: str | None
    measure: str
    meaning: str | None
    team: str
    without: str | Sequence[str]
    criteria: str | Sequence[str]
    max_iterations: int
    temperature: float | None
    max_tokens: int
    seed: int


class InjectionSettings(Execution, total=False):
    """The keywords of `parley.run("injection", …)`."""

    model: str | Sequence[str]
    judged_by: Literal["malibu", "referee"] | Sequence[Literal["malibu", "referee"]]
    responses: int
    limit: int | None
    attempts: str
    kinds: Sequence[str] | None
    asks: Sequence[int] | None
    fence: Literal["both", "open", "fenced"]
    suite: str
    rubric: str
    metrics: Sequence[str] | None
    judges: str
    members: int
    repeats: int
    readout: Literal["sampled", "expected"]
    temperature: float | None
    max_tokens: int
    seed: int


class CardSettings(Execution, total=False):
    """The keywords of `parley.run("card", …)`."""

    model: str
    battery: str
    size: Literal["default", "brief", "subset", "sampled"] | None
    talk: bool
    temperature: float | None
    seed: int


class RunsStudy(Protocol[R]):
    """`parley.run`, by the study's name."""

    @overload
    def __call__(self, target: Literal["malibu"] = "malibu", **config: Unpack[MalibuSettings]) -> R: ...

    @overload
    def __call__(self, target: Literal["bbq"], **config: Unpack[BbqSettings]) -> R: ...

    @overload
    def __call__(self, target: Literal["squad"], **config: Unpack[SquadSettings]) -> R: ...

    @overload
    def __call__(self, target: Literal["rldf"], **config: Unpack[RldfSettings]) -> R: ...

    @overload
    def __call__(self, target: Literal["stardtox"], **config: Unpack[StardtoxSettings]) -> R: ...

    @overload
    def __call__(self, target: Literal["injection"], **config: Unpack[InjectionSettings]) -> R: ...

    @overload
    def __call__(self, target: Literal["card"], **config: Unpack[CardSettings]) -> R: ...

    # A main study with other settings raises `ConfigError`. Without this, the last one would take them.
    @overload
    def __call__(
        self, target: Literal["malibu", "bbq", "squad", "rldf", "stardtox", "injection", "card"], **config: object
    ) -> NoReturn: ...

    @overload
    def __call__(self, target: str, *, options: Options | None = None, out: str | None = None, **config: Any) -> R: ...


run = cast("RunsStudy[Result]", job.run)
run_async = cast("RunsStudy[Coroutine[Any, Any, Result]]", job.run_async)
