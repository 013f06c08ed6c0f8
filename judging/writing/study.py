"""The writing studies' one form: a writer, several attempts per conversation, and only replies that pass a check.

A study says what each conversation asks for (`Assignment`), which problems a reply has, and what becomes of those that
were accepted (`harvest`). Every attempt is a turn of the transcript, and every rejection has its reason: the verdict
`accepted` is 1 or 0, with the problems as text. So a finished run shows how many attempts the accepted replies took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Debate, Models, Persona, Transcript
from parley.base.text import plural
from parley.judging.config import call_options, shipped_personas
from parley.judging.study import Advanced, FacetValue, Measure, Outcome, Prompt, Study, Unit, Verdict, Written
from parley.scenarios import Suite

Check = Callable[[Any], list[str]]
"""The problems of a reply; an empty list if it is accepted."""
FIRST, AGAIN, MORE = "", "_again", "_more"
"""The prompts of a writer, by what their names end in: the task, and what follows a rejected or an accepted reply."""


class WriterConfig(BaseModel, extra="forbid", frozen=True):
    """What the writers' configs share."""

    model: str = Field(DEFAULT_MODEL, description="writer's model, as provider/model")
    tries: Advanced[int] = Field(3, ge=1, le=20, description="maximum replies to request per accepted one")
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(400, ge=16, description="maximum length of one reply, in tokens")
    seed: int = Field(0, description="random seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one conversation asks of the writer.

    Args:
        id: The unit's id.
        facets: The unit's facets.
        values: What the task's placeholders stand for, and those of the prompts that follow.
        checks: Makes the check of one conversation's replies, which knows what was accepted before.
        wanted: Number of replies to accept.
    """

    id: str
    facets: Mapping[str, FacetValue]
    values: Mapping[str, object]
    checks: Callable[[], Check] = field(repr=False)
    wanted: int = 1


class WritingStudy(Study):
    """A writer that is asked until enough replies have passed the check, or all attempts are used."""

    measures = (Measure("accepted", "accepted", better="higher", scale=(0, 1)),)
    writes = ".toml"
    used: ClassVar[Mapping[str, Prompt]]
    """The prompts: `FIRST`, `AGAIN`, and `MORE` where a conversation writes several."""
    reply: ClassVar[type[BaseModel]]
    """The type that replies are parsed as."""

    def assignments(self) -> Iterator[Assignment]:
        """The conversations; the same config must always give the same ones."""
        raise NotImplementedError

    @cached_property
    def _assignments(self) -> dict[str, Assignment]:
        return {assignment.id: assignment for assignment in self.assignments()}

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in self.used.values()} | {"persona/Writer": writer().about}

    def plan(self) -> Iterator[Unit]:
        yield from (Unit(assignment.id, assignment.facets) for assignment in self._assignments.values())

    async def run(self, unit: Unit, models: Models) -> Outcome:
        assignment, instruction = self._assignments[unit.id], ""
        check, wanted, tries = assignment.checks(), assignment.wanted, assignment.wanted * self.config.tries
        debate = Debate(
            [writer()],
            model=models[self.config.model],
            rounds=tries,
            instructions=lambda cue: instruction or None,
            reply_type=self.reply,
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
                problems = check(turn.verdict) if turn.verdict else [f"the reply is {turn.parse_status}"]
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
    """The problem of a text that is too short or too long; () if it is neither."""
    return () if low <= length <= high else (f"{what} has {plural(length, 'word')} (expected {low} to {high})",)


def writer() -> Persona:
    """The persona of the writer."""
    return shipped_personas("malibu_writer.toml")[0]
