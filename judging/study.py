"""The interface of studies: a study plans units and runs one. The engine does the rest (concurrency, recording,
resuming, budgets).

Your own study is a subclass of `Study` with a name, a config, a plan and a way to run a unit; everything else has a
default. `parley new study NAME` writes a first version and `parley run path/to/file.py:MyStudy` runs it. The shipped
studies are subclasses too, and Parley uses only the members defined here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args

from pydantic import BaseModel

from parley.agents import ConfigError, ParseStatus, Role, Transcript, Turn

if TYPE_CHECKING:
    from parley.agents import Client, Models

FacetValue = str | int | bool
T = TypeVar("T")
Shown = Literal["draft", "first", "last", "statements"]
ADVANCED = object()
Advanced = Annotated[T, ADVANCED]
"""Marks a config field that few people change: `Advanced[int]`. `parley run STUDY --help` leaves its flag out,
and `--help-all` shows it."""
APART = object()
Apart = Annotated[T, APART]
"""Marks a config field that a report states elsewhere, and not among the settings of the design: the judged models, the
seed, the margin. All others belong to the design."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece of work that is planned, run, stored and resumed as a whole: usually one conversation.

    Args:
        id: Unique within the plan and the same every time, so that a run can be resumed.
        facets: Named properties of the unit (`scenario`, `identity`, `model`), for filters, groups and data frames.
    """

    id: str
    facets: Mapping[str, FacetValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judge's value in one round.

    Args:
        judge: The judge: a persona's name, or the name of a scorer or a rule.
        role: The judge's role in the conversation, usually `turn.role`.
        round: The round, counted from 1; in a critique loop the iteration, counted from 0.
        metric: What was judged: "Accuracy", "answer".
        subject: The part of the unit (candidate "A", a speaker); empty for the whole.
        value: The number that analysis uses; None if unreadable.
        sampled: The number as written in the reply, if `value` was computed from probabilities.
        text: A choice, an answer or a reason, for verdicts that are not (only) a number.
        status: The parse status. Only `ok`, `repaired`, `copied` and `empty` have a value.
        turn: The turn of the transcript that it was read from or, if a rule or a scorer made it, that it is about; None
            if it comes from no single turn. The run file has the turn's number.
    """

    judge: str
    role: Role
    round: int
    metric: str
    subject: str = ""
    value: float | None = None
    sampled: float | None = None
    text: str | None = None
    status: ParseStatus = "ok"
    turn: Turn | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_turn(
        cls,
        turn: Turn,
        metric: str,
        *,
        subject: str = "",
        value: float | None = None,
        sampled: float | None = None,
        text: str | None = None,
        status: ParseStatus | None = None,
    ) -> Verdict:
        """A verdict with the judge, role and round of a turn.

        Args:
            turn: The turn that the verdict was read from.
            metric: What was judged.
            subject: The part of the unit; empty for the whole.
            value: The number that analysis uses; None if none could be read.
            sampled: The number as written in the reply.
            text: A choice, an answer or a reason.
            status: The parse status; by default the turn's, or `ok` if the turn has none and there is a value or text.
                A turn that the vendor marks as refused gives no value.
        """
        if status is None:
            status = turn.parse_status or ("unparsed" if value is None and text is None else "ok")
            if status == "refused":
                value = sampled = None
        return cls(
            judge=turn.speaker,
            role=turn.role,
            round=turn.round,
            metric=metric,
            subject=subject,
            value=value,
            sampled=sampled,
            text=text,
            status=status,
            turn=turn,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a unit.

    Args:
        transcript: The conversation, stored turn by turn with its calls.
        verdicts: The values read from it.
    """

    transcript: Transcript
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The file that a study writes.

    Args:
        text: The contents; "" if there is nothing to write.
        remark: How to continue with it.
        about: A description of the contents.
        missing: Whether it has less than requested.
    """

    text: str
    remark: str
    about: str
    missing: bool = False


class Accepted(NamedTuple):
    """A reply that a writing study accepted: the facets of its unit, and the parsed reply."""

    facets: Mapping[str, FacetValue]
    reply: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure for comparing a study's units, in lists and charts.

    Args:
        metric: The metric of its verdicts; "" for the mean of all its scores, if they share a scale.
        label: The metric in words: "bias", "right".
        better: Which end of the scale is better; None if neither is.
        kind: "score" for numbers on a scale, "choice" for one of a pair's candidates, "correct" for an answer that is
            right or wrong.
        key: The facet with the right answer, of kind "correct": the number of an option, or a JSON list of accepted
            texts, which is empty if there is no answer.
        scale: Lowest and highest possible value of a score; None if it has no fixed ends.
    """

    metric: str
    label: str
    better: Literal["higher", "lower"] | None = None
    kind: Literal["score", "choice", "correct"] = "score"
    key: str = ""
    scale: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    """How a facet of a study's units is displayed: in titles, filters, the grid and comparisons.

    Args:
        name: Its name in `Unit.facets`.
        kind: "text" for what the unit is about: the subject of its title, and the rows of the grid. "identity" for a
            label on a person, where no value is "no label"; names that end in `_a` and `_b` are a pair's two sides.
            "varied" for anything else that is varied on a text: with "identity", the columns of the grid. "part" for
            parts of the study that are not averaged with each other. "order" for the order in which a pair is shown.
            "answer" for the number of an option, "count" for a number from 0 on, "technical" for what few people
            filter by.
        title: Its form in a unit's title, with {} for the value, or {:.6} for the first characters; "" to leave it out.
        silent: A value that titles leave out. They also leave out empty values, unless `words` has an entry.
        label: Its name in words, if `name` is not clear; for kind "answer", a description of the option: "right".
        words: Values in words, if units store codes.
    """

    name: str
    kind: Literal["", "text", "identity", "varied", "part", "order", "answer", "count", "technical"] = ""
    title: str = ""
    silent: str = ""
    label: str = ""
    words: Mapping[str, str] = field(default_factory=dict)


COMMON_FACETS = (
    *(Facet(name, "text", title="{}") for name in ("base", "scenario", "topic", "item")),
    Facet("identity", "identity", title="{}"),
    Facet("identity_a", "identity", title="A {}"),
    Facet("identity_b", "identity", title="B {}"),
    Facet("order", "order"),
    *(Facet(name, "varied", title="{}") for name in ("method", "group")),
    Facet("model", "varied"),
    Facet("repeat", "count", title="repeat {}", silent="0"),
)
"""Default facets, by their names, for a study that declares none."""


Chat = list[dict[str, str]]
"""A prompt as sent: messages with `role` and `content`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """The data of another run that a study can read.

    Args:
        study: The name of its study.
        config: The settings of its study.
        prompts: The prompts of its finished units, by unit and speaker; a speaker's last one if there are several.
    """

    study: str
    config: Mapping[str, Any]
    prompts: Mapping[str, Mapping[str, Chat]]


@dataclass(frozen=True, slots=True)
class Labelled:
    """The texts of a unit that people read, and the metrics that they score (`parley export RUN --format csv`).

    Args:
        shown: Where the texts are. Names of the prompt's placeholders: ("response",), or ("response_a", "response_b")
            for a pair. Or replies: the "first" or the "last", the last accepted "draft" of a loop, or all "statements"
            that have a verdict on the metrics.
        metrics: The metrics of the judges' verdicts that people score too; (): all that have a number.
        question: The question for people; {bias} stands for the unit's facet `bias`. "": the metrics with their scales.
    """

    shown: Shown | tuple[str, ...]
    metrics: tuple[str, ...] = ()
    question: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.shown, str) and self.shown not in get_args(Shown):
            allowed = ", ".join(get_args(Shown))
            raise ConfigError(f"Labelled shows {allowed}, or fields such as ('{self.shown}',), not '{self.shown}'")


COMMON_LABELLED = (
    Labelled(("response_a", "response_b"), ("preferred",), "preferred: which answer is better, A, B or tie?"),
    Labelled(("response",)),
    Labelled("draft"),
)
"""Default for a study that declares nothing, if its prompts have such placeholders or it has drafts."""


class Study(ABC):
    """Base class of studies. A study has `name`, `Config`, `plan` and `run`; all other members have a default."""

    name: ClassVar[str]
    """The study's name in `parley run NAME`, in run files and in reports."""
    Config: ClassVar[type[BaseModel]]
    """All settings that change results. Its fields are the flags of `parley run NAME`, their descriptions the help."""
    report: str | Callable[..., Any] = "parley.analysis.generic:report"
    """Makes the report: `module:function`, or `report.py:function` for a file next to the class's own. It is
    imported, with pandas, when a report is made. Default: means, and identities compared within scenarios."""
    comparable: str = ""
    """Turns verdicts into values that `parley compare` can average, as `module:function`; "" if they can be."""
    claims: str = ""
    """Turns verdicts into the values that papers' claims are about, as `module:function`: a frame with the columns
    `parley.analysis.claims.contrasts.VALUES`; "" if no paper has claims about it."""
    measures: tuple[Measure, ...] = ()
    """Measures that represent a unit by one number and one word: the first score or correct answer with a verdict, and
    the first choice. The first measure is the main one. Without any, all numbers of a unit's last round are averaged,
    which makes no sense for a mix of bias, ranks and 0/1 flags."""
    facets: tuple[Facet, ...] = COMMON_FACETS
    """How facets are displayed, in the order of a unit's title. Default: by their names."""
    labelled: tuple[Labelled, ...] = COMMON_LABELLED
    """What people score. The first entry that fits a unit is used: the unit has its texts and a verdict on one of its
    metrics. If none fits, people score the last reply."""

    exported: tuple[str, float] | None = None
    """The metric by which `parley export` chooses texts, and its threshold; None if both must be given."""
    papers: tuple[str, ...] = ()
    """The citations of a report's methods section: "Mirza et al., 2025". CITATION.cff has the papers in full."""

    def __init__(self, config: Any) -> None:
        """Check everything that can be checked before work starts, and raise `ConfigError` if something is wrong.

        Args:
            config: An instance of `Config`, which is stored in the run file.
        """
        self.config = config

    @classmethod
    def make(cls, config: Any, earlier_run: Callable[[str], EarlierRun]) -> Self:
        """Make the study from its config, with another run if it reads one.

        Args:
            config: An instance of `Config`.
            earlier_run: Reads a run file.
        """
        return cls(config)

    @classmethod
    def cited(cls, config: Mapping[str, Any]) -> tuple[str, ...]:
        """The citations of a run with these settings. Default: the study's papers.

        Args:
            config: The settings from the run file.
        """
        return cls.papers

    @abstractmethod
    def plan(self) -> Iterator[Unit]:
        """The units. The same config must always give the same plan."""

    @abstractmethod
    async def run(self, unit: Unit, models: Models) -> Outcome:
        """Run one unit.

        Args:
            unit: A unit of the plan.
            models: Clients by model name, shared by all units of the run.
        """

    def models(self) -> list[str]:
        """The names of all models that the study calls. Default: the config's `model`, which may be a list, if any."""
        model = getattr(self.config, "model", [])
        return [model] if isinstance(model, str) else list(model)

    def prompts(self) -> Mapping[str, str]:
        """The prompt texts by name. A run stores them with their hashes, and resumes only with the same ones."""
        return {}

    def sources(self) -> Mapping[str, str]:
        """Hashes of the data that the plan depends on, by name. A run resumes only with the same data."""
        return {}

    def analysis_plan(self) -> Mapping[str, Any] | None:
        """The plan for analysing the results, as JSON data, made before there are any; None if there is no plan.

        It is stored with its hash when a run begins, and never changed afterwards. Any keys are allowed: estimands,
        families, clusters, … The report reads two of them: `margin`, the margin of equivalence; and `tables`, which
        says whether each table of the report, or some of its rows, is "planned" or "exploratory".
        """
        return None

    def check_model(self, client: Client) -> None:
        """Raise `ConfigError` before the first unit if a model does not support the config.

        Default: it accepts the config's `temperature`.

        Args:
            client: One of the study's models.
        """
        chosen = "temperature" in self.config.model_fields_set and self.config.temperature is not None
        if chosen and not client.takes_temperature:
            raise ConfigError(f"{client.name} accepts no temperature; leave --temperature out{client.or_effort}")

    def notes(self, *, dry_run: bool) -> Iterable[str]:
        """Notes to print before a run: what a model cannot do, and what happens instead.

        Args:
            dry_run: Whether nothing is sent; notes may then also compare the costs of alternatives.
        """
        return ()

    @property
    def label_words(self) -> Mapping[str, str]:
        """Words that stand for a label in the prompts, for simulated models: "a woman" → female."""
        return {}

    @property
    def seed(self) -> int:
        """The seed of every call. Default: the config's `seed`, or 0."""
        seed: int = getattr(self.config, "seed", 0)
        return seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of a study's judge on known answers, run before the first unit; the run file has its result.

    Args:
        study: The study to run.
        name: Its name in messages: "the referee's check".
        about: Text before it, after the number of its units: "texts of known order check the referee".
        verdict: From the verdicts of its run, whether the judge `passed` and a `sentence` on that: `module:function`.
        failed: The result of an earlier check of this judge, if it failed; this one is then not run.
        stop: Why it stops, and what to do.
        anyway: The flag that runs the study without the check.
    """

    study: Study
    name: str
    about: str
    verdict: str
    failed: str = ""
    stop: str
    anyway: str


class RefereedStudy(Study):
    """A study of debates in which a referee scores every statement: `parley export` pairs statements by `exported`."""

    def check_first(self) -> Check | None:
        """The check of the referee on known answers before the first unit; None if there is none."""
        return None
