"""Base of the writing studies: a writer, several attempts per conversation, and a check of replies.

A study's cells are its conversations. The study gives each an `assignment`, and collects the accepted replies
(`harvest`). Every attempt is a turn of the transcript, and every rejection has its reason: the verdict
`accepted` is 1 or 0, with the problems as text. So a finished run shows the number of attempts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Debate, Models, Persona, Transcript
from parley.base.text import plural
from parley.judging import Accepted, Advanced, Apart, Measure, Outcome, Prompt, Verdict
from parley.judging.config import call_options, shipped_personas
from parley.judging.grid import GridStudy, varies
from parley.judging.study import Written
from parley.scenarios import Suite

Check = Callable[[Any], list[str]]
"""The problems of a reply; an empty list if it is accepted."""
FIRST, AGAIN, MORE = "", "_again", "_more"
"""Suffixes of the names of a writer's prompts: the task, and those after a rejected or an accepted reply."""


class WriterConfig(BaseModel, extra="forbid", frozen=True):
    """Shared settings of writers."""

    model: Apart[str] = Field(DEFAULT_MODEL, description="writer's model, as provider/model")
    tries: ClassVar[int] = 3
    """Maximum number of replies per accepted one."""
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(400, ge=16, description="maximum length of one reply, in tokens")
    seed: Apart[int] = Field(0, description="random seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A conversation's task for the writer.

    Args:
        values: What the task's placeholders stand for, and those of the prompts that follow.
        check: The check of the conversation's replies, which knows what was accepted before.
        wanted: Number of replies to accept.
    """

    values: Mapping[str, object]
    check: Check
    wanted: int = 1


@dataclass(frozen=True, kw_only=True)
class ScenarioCell:
    """One scenario of a base, or the base."""

    base: str = varies("text", "{}")
    scenario: str | None = varies("text", "{}", default=None)


class WritingStudy(GridStudy):
    """A study in which a writer is asked until enough replies pass the check or all attempts are used."""

    measures = (Measure("accepted", "accepted", better="higher", scale=(0, 1)),)
    writes: ClassVar[str] = ".toml"
    """Suffix of the file that `parley run NAME --to FILE` writes."""
    used: ClassVar[Mapping[str, Prompt]]
    """The prompts: `FIRST`, `AGAIN`, and `MORE` if a conversation writes several."""
    reply: ClassVar[type[BaseModel]]
    """The type that replies are parsed as."""

    @abstractmethod
    def assignment(self, cell: Any) -> Assignment:
        """The assignment of a cell's conversation."""

    @abstractmethod
    def written(self, accepted: Iterable[Accepted]) -> Written:
        """The file that `--to FILE` writes when the run has ended.

        Args:
            accepted: The replies that have the verdict `accepted`.
        """

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in self.used.values()} | {"persona/Writer": writer().about}

    async def ask(self, cell: Any, models: Models) -> Outcome:
        assignment, instruction = self.assignment(cell), ""
        wanted, tries = assignment.wanted, assignment.wanted * self.config.tries
        debate = Debate(
            [writer()],
            model=models[self.config.model],
            rounds=tries,
            instructions=lambda cue: instruction or None,
            reply_type=self.used[FIRST].reads(self.reply),
            options=call_options(self.config.max_tokens, self.config.temperature),
            models=models,
            name="writing",
        )
        turns, verdicts = [], []
        async with aclosing(debate.stream(self.used[FIRST](**assignment.values))) as stream:
            async for turn in stream:
                turns.append(turn)
                if turn.role == "narrator":
                    continue
                problems = assignment.check(turn.verdict) if turn.verdict else [f"the reply is {turn.parse_status}"]
                passed, text = float(not problems), "; ".join(problems) or None
                status = turn.parse_status or "unparsed"
                verdicts.append(
                    Verdict.from_turn(turn, "accepted", value=passed, sampled=passed, text=text, status=status)
                )
                wanted -= not problems
                if not wanted:
                    break
                instruction = self.used[AGAIN if problems else MORE](problems=text, **assignment.values)
        reason = "accepted" if not wanted else f"{tries} tries made"
        return Outcome(Transcript(tuple(turns), reason), tuple(verdicts))


def prompts(name: str, *parts: str) -> dict[str, Prompt]:
    """The prompts of a writer, such as malibu/derive and malibu/derive_again."""
    return {part: Prompt.load(f"{name}{part}") for part in (FIRST, AGAIN, *parts)}


def written_suite(suite: Suite) -> Written:
    """A suite of scenarios as a file."""
    answered = sum(bool(scenario.responses) for scenario in suite.scenario)
    return Written(
        text=suite.to_toml(),
        remark="Edit freely, then: parley scenarios validate",
        about=f"{plural(len(suite.scenario), 'scenario')}, {answered} with responses",
    )


def length_problem(what: str, length: int, low: int, high: int) -> Sequence[str]:
    """The problem of a text that is too short or too long; () if there is none."""
    return () if low <= length <= high else (f"{what} has {plural(length, 'word')} (expected {low} to {high})",)


def writer() -> Persona:
    """The persona of the writer."""
    return shipped_personas("malibu_writer.toml")[0]
