"""The shipped methods of answering BBQ. A new one is a class here and a line in `METHODS`; your own is a file:

    parley run bbq --method default,cot
    parley run bbq --method my_method.py:Mine

`cot` is a zero-shot chain of thought (Kojima et al. 2022). Self-debiasing is after Gallegos et al. 2025: in
`self-debias-explanation` the model says which options rest on a stereotype before it answers; in
`self-debias-reprompting` it answers, then answers again with bias removed, and the first answer is stored too (metric
`first_answer`), so that changes can be counted. In `fairthinking` (after Li et al. 2024) jurors give their views
independently, and the foreperson decides.

In `stardtox` a judge scores how well context and question support the answer, which is revised below a threshold. There
is no performance evaluator: here a fair answer is also the correct one. The answer of every iteration is stored (metric
`answer_at`; the round is the iteration, 0 the first answer), and so is the judge's `support`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import (
    ConfigError,
    Critique,
    Debate,
    Evaluator,
    Persona,
    Transcript,
    Turn,
    load_personas,
    simultaneous,
)
from parley.agents.evaluation import Assessment
from parley.judging import Prompt, Verdict
from parley.judging.bbq.method import (
    QUESTION,
    BbqContext,
    BbqMethod,
    Choice,
    PromptedMethod,
    Reasoned,
    Solved,
    Task,
    answer_verdict,
    read_choice,
    solver,
)
from parley.judging.config import Methods, shipped_personas
from parley.scenarios.bbq import LETTERS

METHODS: Methods[BbqMethod] = Methods(
    "method",
    {
        "default": f"{__name__}:DefaultMethod",
        "cot": f"{__name__}:ChainOfThought",
        "fairness-prompt": f"{__name__}:FairnessPromptMethod",
        "fairthinking": f"{__name__}:FairThinking",
        "self-debias-explanation": f"{__name__}:SelfDebiasExplanation",
        "self-debias-reprompting": f"{__name__}:SelfDebiasReprompting",
        "stardtox": f"{__name__}:StardtoxMethod",
        "mabrf": "parley.judging.bbq.mabrf.loop:Mabrf",
        "mabrf-search": "parley.judging.bbq.mabrf.loop:MabrfSearch",
    },
    members=("name", "Settings", "prompts", "solve"),
    contract="judging/bbq/method.py",
)

PROMPT = Prompt.load("bbq/default")
EXPLAIN = Prompt.load("bbq/self_debias_explain")
ANSWER = Prompt.load("bbq/self_debias_answer")
AGAIN = Prompt.load("bbq/self_debias_again")


class DefaultMethod(PromptedMethod):
    name: ClassVar[str] = "default"
    used = (PROMPT,)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        async with context.shared_start():  # loops that begin with its prompt begin with its answer
            return await super().solve(task, context)


class ChainOfThought(PromptedMethod):
    name: ClassVar[str] = "cot"
    used = (Prompt.load("bbq/cot"),)
    reply = Reasoned


class FairnessPromptMethod(PromptedMethod):
    """The default, preceded by a request to be fair."""

    name: ClassVar[str] = "fairness-prompt"
    used = (Prompt.load("bbq/fairness_prompt"),)


class SelfDebiasExplanation(PromptedMethod):
    name: ClassVar[str] = "self-debias-explanation"
    used = (EXPLAIN, ANSWER)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        opening, then = EXPLAIN(question=task.text()), ANSWER(format=Choice.FORMAT)
        transcript = await context.converse(opening, [None, ANSWER.reads(Choice)], [then])
        return Solved(transcript, *read_choice(transcript.spoken()[-1], task))


class SelfDebiasReprompting(PromptedMethod):
    name: ClassVar[str] = "self-debias-reprompting"
    used = (PROMPT, AGAIN)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        opening = PROMPT(question=task.text(), format=Choice.FORMAT)
        async with context.shared_start():
            transcript = await context.converse(
                opening, [PROMPT.reads(Choice), AGAIN.reads(Choice)], [AGAIN(format=Choice.FORMAT)]
            )
        first, second = transcript.spoken()
        before = answer_verdict(first, task, *read_choice(first, task), metric="first_answer")
        return Solved(transcript, *read_choice(second, task), (before,))


JUROR = Prompt.load("bbq/fairthinking_juror")
DECIDE = Prompt.load("bbq/fairthinking_decide")


class JurySettings(BaseModel, extra="forbid", frozen=True):
    jury: str | None = Field(None, description=".toml file of personas; the last one decides")


class FairThinking:
    name: ClassVar[str] = "fairthinking"
    Settings: ClassVar[type[BaseModel]] = JurySettings

    def __init__(self, settings: JurySettings) -> None:
        jury = load_personas(Path(settings.jury)) if settings.jury else shipped_personas("bbq_jury.toml")
        *self.jurors, self.foreperson = jury
        if not self.jurors:
            raise ConfigError(f"{settings.jury}: a jury needs at least two personas: a juror, and one that decides")

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (QUESTION, JUROR, DECIDE)}
        return texts | {f"persona/{juror.name}": juror.about for juror in (*self.jurors, self.foreperson)}

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        debate = Debate(
            self.jurors,
            model=context.client,
            rounds=1,
            order=simultaneous,
            chair=self.foreperson,
            instructions=lambda cue: DECIDE(format=Choice.FORMAT) if cue.role == "chair" else None,
            reply_type=lambda cue: DECIDE.reads(Choice) if cue.role == "chair" else None,
            options=context.options,
            models=context.models,
        )
        transcript = await debate.converse(JUROR(question=task.text()))
        return Solved(transcript, *read_choice(transcript.spoken("chair")[-1], task))


JUDGE = Prompt.load("stardtox/support_judge")
SUPPORT = Prompt.load("stardtox/support")
REVISE = Prompt.load("stardtox/revise_answer")
JUDGE_TOKENS = 160
LEAST_SUPPORT = 80
"""An answer is accepted if its support, 0 to 100, is at least this."""
REVISED = "answer_at"
"""The metric of an iteration's answer."""


class SupportSettings(BaseModel, extra="forbid", frozen=True):
    max_iterations: int = Field(2, ge=0, description="maximum revisions of an answer")
    judge: str | None = Field(None, description="judge's model (default: the model under test)")


class StardtoxMethod:
    name: ClassVar[str] = "stardtox"
    Settings: ClassVar[type[BaseModel]] = SupportSettings

    def __init__(self, settings: SupportSettings) -> None:
        self.settings = settings

    def models(self) -> list[str]:
        return [self.settings.judge] if self.settings.judge else []

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (QUESTION, PROMPT, JUDGE, SUPPORT, REVISE)}
        return {**texts, "persona/Solver": solver().about}

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        judge = Persona("Support", JUDGE.text, self.settings.judge)
        options = {**context.options, "max_tokens": JUDGE_TOKENS}
        loop = Critique(
            solver(),
            {"support": Evaluator(judge, Assessment, SUPPORT.text, options)},
            criteria={"support": f">= {LEAST_SUPPORT}"},
            max_iterations=self.settings.max_iterations,
            draft_type=Choice,
            show_draft=lambda turn: _option_text(turn, task),
            evaluator_task=task.text(),
            model=context.client,
            revise_prompt=REVISE.text,
            first_call=context.shared_start(),
            options=context.options,
            models=context.models,
        )
        transcript = await loop.converse(PROMPT(question=task.text(), format=Choice.FORMAT))
        last = transcript.spoken("generator")[-1]
        return Solved(transcript, *read_choice(last, task), tuple(_verdicts(transcript, task)))


def _option_text(turn: Turn, task: Task) -> str:
    """The chosen option with its text, or the reply itself if it chose none."""
    place, _ = read_choice(turn, task)
    return turn.text if place is None else f"{LETTERS[place]}) {task.options[place]}"


def _verdicts(transcript: Transcript, task: Task) -> Iterator[Verdict]:
    for turn in transcript.spoken():
        if turn.role == "generator":
            yield answer_verdict(turn, task, *read_choice(turn, task), metric=REVISED)
        elif turn.role == "evaluator":
            assessment = turn.verdict if isinstance(turn.verdict, Assessment) else None
            score = float(assessment.score) if assessment else None
            reason = assessment.reason if assessment else None
            status = turn.parse_status or "unparsed"
            yield Verdict.from_turn(turn, "support", value=score, sampled=score, text=reason, status=status)
