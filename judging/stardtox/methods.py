"""The interface of methods of completing a sentence, their shared parts, and the shipped methods.

Your own method is a class like those here; `parley run stardtox --method my_method.py:Mine` runs it. Every draft is
measured by the whole team, whatever the method, so that methods and iterations can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, Field

from parley.agents import Client, Critique, Models, Persona, SelfDebiasAgent, Transcript
from parley.agents.conversation import Participant
from parley.agents.fencing import fence_judged
from parley.judging.config import Methods, NoSettings
from parley.judging.prompts import Prompt
from parley.judging.stardtox.team import OUTSIDE, SHUFFLED, Team
from parley.scenarios.rtp import RtpRow

GENERATOR = Prompt.load("stardtox/generator")
COMPLETE = Prompt.load("stardtox/complete")
REVISE = Prompt.load("stardtox/revise")
_OPENINGS = ("", '"', "“", "'", "...", "…")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
MIN_REPEATED = 4
"""Minimum number of words from the middle of a beginning that count as its repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionContext:
    """The resources of a method.

    Args:
        client: The model under test.
        models: All clients of the run, by model name.
        team: The evaluators that measure every draft.
        judge: The model of judges without their own.
        options: Options for every call of the model under test.
        judge_options: Options for every call of a judge.
        max_iterations: Maximum revisions of a draft.
        shuffles: Which drafts' words the judge also scores in random order (see `Team.seat`).
    """

    client: Client
    models: Models
    team: Team
    judge: str
    options: Mapping[str, Any]
    judge_options: Mapping[str, Any]
    max_iterations: int
    shuffles: Callable[[str], bool] | None = None

    async def complete(
        self,
        row: RtpRow,
        opening: str,
        *,
        generator: Participant | None = None,
        heeds: Sequence[str] = (),
        max_iterations: int = 0,
    ) -> Transcript:
        """A completion, measured by the whole team and revised until the criteria of some evaluators are met.

        Args:
            row: The prompt of RealToxicityPrompts.
            opening: The prompt of the generator.
            generator: The agent that writes (default: a plain persona of the model under test).
            heeds: Evaluators whose feedback and criteria are used; others, and the outside measure, only measure.
            max_iterations: Maximum revisions of the draft.
        """
        aside = [spec.name for spec in self.team.evaluators if spec.name not in heeds or spec.name == OUTSIDE]
        criteria = self.team.without(aside).criteria
        loop = Critique(
            generator or generator_persona(),
            self.team.seat(self.models, self.judge, self.judge_options, shuffles=self.shuffles),
            criteria=criteria,
            measure_only=[*aside, SHUFFLED],
            max_iterations=max_iterations,
            show_draft=lambda turn: continuation(row.text, turn.text),
            evaluator_task=fence_judged(row.text, "BEGINNING"),
            model=self.client,
            revise_prompt=REVISE.text,
            options=self.options,
            models=self.models,
        )
        return await loop.converse(opening)


class CompletionMethod(Protocol):
    """A way of completing sentences. Any class with these members is one; `PromptedCompletion` is a base for most."""

    name: ClassVar[str]
    """The method's name in `--method` and in reports."""
    Settings: ClassVar[type[BaseModel]]
    """The settings for `--settings key=value`."""
    needs_next_tokens: ClassVar[bool]
    """Whether the model must have next-token probabilities (see `parley.agents.persona_agent`)."""
    ignores: ClassVar[Sequence[str]]
    """Evaluators that only measure, without influence on revisions."""

    def __init__(self, settings: Any) -> None:
        """Make the method.

        Args:
            settings: An instance of `Settings`.
        """

    def prompts(self) -> Mapping[str, str]:
        """Every prompt and persona of the method, by name."""

    def drafts(self, max_iterations: int) -> int:
        """The maximum number of drafts per completion.

        Args:
            max_iterations: Maximum revisions that the config allows.
        """

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        """Complete one sentence.

        Args:
            row: The prompt of RealToxicityPrompts.
            context: The model under test, the team and their options.
        """


class PromptedCompletion:
    """A base class for methods that prompt: set `name` and `used`, and write `complete` if one prompt is not enough.

    Without a `complete` of its own, the method fills the beginning of the sentence into its first prompt.
    """

    Settings: ClassVar[type[BaseModel]] = NoSettings
    needs_next_tokens: ClassVar[bool] = False
    ignores: ClassVar[Sequence[str]] = ()
    used: ClassVar[Sequence[Prompt]] = ()
    """The names of its prompts, besides the generator's persona."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in (GENERATOR, *self.used)}

    def drafts(self, max_iterations: int) -> int:
        return 1

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        return await context.complete(row, self.used[0](prompt=row.text))


def generator_persona() -> Persona:
    """The plain persona of the model under test."""
    return Persona("Generator", GENERATOR.text)


def continuation(prompt: str, reply: str) -> str:
    """Remove the sentence's beginning, or a part of it, if the reply repeats that, so that only its addition is judged.

    A part is its last words, or a run of words that begins anywhere. "Twitter account." after "… his Twitter account at
    the" is left as it is: so short a run may be meant.

    Args:
        prompt: The beginning of the sentence.
        reply: The model's reply.
    """
    bare, given = reply.strip(), prompt.strip()
    for opening in _OPENINGS:
        if bare.lower().startswith(f"{opening}{given}".lower()):
            return bare[len(opening) + len(given) :].strip()
    beginning, words = _words(given), _words(bare)
    repeated = end = 0
    for start in range(len(beginning)):
        pairs = zip(beginning[start:], words, strict=False)
        run = sum(1 for _ in takewhile(lambda pair: pair[0][0] == pair[1][0], pairs))
        if run > repeated and (run >= MIN_REPEATED or start + run == len(beginning)):
            repeated, end = run, words[run - 1][1]
    if not repeated:
        return bare
    rest = bare[end:].removeprefix(given[beginning[-1][1] :]).strip()
    return rest if _WORD.search(rest) else ""


def _words(text: str) -> list[tuple[str, int]]:
    """The words in lower case, each with the position of its end."""
    return [(match.group().lower().replace("’", "'"), match.end()) for match in _WORD.finditer(text)]


class StardtoxCompletion(PromptedCompletion):
    """Revised until the criteria of every evaluator are met."""

    name: ClassVar[str] = "stardtox"
    used = (COMPLETE, REVISE)

    def drafts(self, max_iterations: int) -> int:
        return 1 + max_iterations

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        heeds = [spec.name for spec in context.team.evaluators if spec.name not in self.ignores]
        opening = COMPLETE(prompt=row.text)
        return await context.complete(row, opening, heeds=heeds, max_iterations=context.max_iterations)


class WithoutPerformance(StardtoxCompletion):
    """`stardtox`, but the performance evaluator only measures: its scores and criteria have no influence."""

    name: ClassVar[str] = "stardtox-no-performance"
    ignores = ("performance",)


FAIRLY = Prompt.load("stardtox/complete_fairly")
BIASED = Prompt.load("stardtox/self_debias")


class DefaultCompletion(PromptedCompletion):
    """A request to continue the sentence; the baseline of all other methods."""

    name: ClassVar[str] = "default"
    used = (COMPLETE,)


class FairnessPromptCompletion(PromptedCompletion):
    """The default with a request to be fair."""

    name: ClassVar[str] = "fairness-prompt"
    used = (FAIRLY,)


class DecodingSettings(BaseModel, extra="forbid", frozen=True):
    """The settings of `self-debias-gen`."""

    kind: str = Field("rude, disrespectful or unreasonable language", description="what the biased prompt asks for")


class SelfDebiasGen(PromptedCompletion):
    """Self-Debias (Schick et al. 2021): plain decoding of the beginning, without chat, away from a toxic reading."""

    name: ClassVar[str] = "self-debias-gen"
    Settings = DecodingSettings
    needs_next_tokens = True
    used = (BIASED,)
    settings: DecodingSettings

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        against = BIASED(kind=self.settings.kind.replace("{", "{{").replace("}", "}}"), text="{text}")
        writer = SelfDebiasAgent(
            "Generator",
            context.client,
            against=against,
            options=context.options,
        )
        return await context.complete(row, row.text, generator=writer)


METHODS: Methods[CompletionMethod] = Methods(
    "method",
    {
        "default": f"{__name__}:DefaultCompletion",
        "fairness-prompt": f"{__name__}:FairnessPromptCompletion",
        "self-debias-gen": f"{__name__}:SelfDebiasGen",
        "stardtox": f"{__name__}:StardtoxCompletion",
        "stardtox-no-performance": f"{__name__}:WithoutPerformance",
    },
    members=("name", "Settings", "needs_next_tokens", "ignores", "prompts", "drafts", "complete"),
    contract="judging/stardtox/methods.py",
)
