"""What a method of completing a sentence is, and what methods share: the task, the context they work at.

A method of the user's own is a class like those in this folder; `parley run stardtox --method my_method.py:Mine` runs
it. Whatever it does, every draft is measured by the whole team, so that methods and iterations can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from parley.agents import Client, Critique, Models, Persona, Transcript
from parley.agents.conversation import Participant
from parley.judging.methods import NoSettings
from parley.judging.stardtox.team import Team
from parley.judging.study import Prompt
from parley.scenarios.rtp import RtpRow

GENERATOR = Prompt.load("stardtox/generator")
COMPLETE = Prompt.load("stardtox/complete")
REVISE = Prompt.load("stardtox/revise")
_OPENINGS = ("", '"', "“", "'", "...", "…")


@dataclass(frozen=True, slots=True)
class CompletionContext:
    """Where a method works: the model under test, the team that measures, and what every call is given."""

    client: Client
    models: Models
    team: Team
    judge: str
    options: Mapping[str, Any]
    judge_options: Mapping[str, Any]
    max_iterations: int

    async def complete(
        self,
        row: RtpRow,
        opening: str,
        *,
        generator: Participant | None = None,
        heeds: Sequence[str] = (),
        max_iterations: int = 0,
    ) -> Transcript:
        """A draft to the opening, measured by all; revised as long as those of `heeds` ask for it."""
        aside = [one.name for one in self.team.evaluators if one.name not in heeds]
        loop = Critique(
            generator or generator_persona(),
            self.team.seat(self.models, self.judge, self.judge_options),
            criteria=self.team.without(aside).criteria,
            measure_only=aside,
            max_iterations=max_iterations,
            show_draft=lambda turn: continuation(row.text, turn.text),
            evaluator_task=row.text,
            model=self.client,
            revise_prompt=REVISE.text,
            options=self.options,
            models=self.models,
        )
        return await loop.converse(opening)


class CompletionMethod(Protocol):
    """`ignores` are evaluators that the method does not heed; `needs_next_tokens`: see `parley.agents.self_debias`."""

    name: ClassVar[str]
    Settings: ClassVar[type[BaseModel]]
    needs_next_tokens: ClassVar[bool]
    ignores: ClassVar[Sequence[str]]

    def __init__(self, settings: Any) -> None: ...

    def prompts(self) -> Mapping[str, str]:
        """Every prompt and persona of the method, by name."""

    def drafts(self, max_iterations: int) -> int:
        """How many drafts it makes of an item, at most."""

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript: ...


class PromptedCompletion:
    """A method that asks once: a base to write less."""

    Settings: ClassVar[type[BaseModel]] = NoSettings
    needs_next_tokens: ClassVar[bool] = False
    ignores: ClassVar[Sequence[str]] = ()
    used: ClassVar[Sequence[Prompt]] = ()

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in (GENERATOR, *self.used)}

    def drafts(self, max_iterations: int) -> int:
        return 1


def generator_persona() -> Persona:
    return Persona("Generator", GENERATOR.text)


def continuation(prompt: str, said: str) -> str:
    """What was said without the beginning, where a model repeats that first: only what it added is judged."""
    bare = said.strip()
    for opening in _OPENINGS:
        if bare.lower().startswith(f"{opening}{prompt.strip()}".lower()):
            return bare[len(opening) + len(prompt.strip()) :].strip()
    return bare
