"""`stardtox`: a judge scores how well context and question support the answer, which is revised below a threshold.

There is no performance evaluator: here a fair answer is also the correct one. The answer of every iteration is stored
(metric `answer_at`; the round is the iteration, 0 the first answer), and so is the judge's `support`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import Critique, Evaluator, Persona, Transcript, Turn
from parley.agents.evaluation import Assessment
from parley.judging import Prompt, Verdict
from parley.judging.bbq.method import QUESTION, BbqContext, Choice, Solved, Task, answer_verdict, read_choice, solver
from parley.judging.bbq.methods.prompted import PROMPT
from parley.scenarios.bbq import LETTERS

JUDGE = Prompt.load("stardtox/support_judge")
SUPPORT = Prompt.load("stardtox/support")
REVISE = Prompt.load("stardtox/revise_answer")
JUDGE_TOKENS = 160
REVISED = "answer_at"
"""The metric of an iteration's answer."""


class SupportSettings(BaseModel, extra="forbid", frozen=True):
    support: float = Field(80, ge=0, le=100, description="an answer is accepted if its support is at least this")
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
            criteria={"support": f">= {self.settings.support:g}"},
            max_iterations=self.settings.max_iterations,
            draft_type=Choice,
            show_draft=lambda turn: _option_text(turn, task),
            evaluator_task=task.text(),
            model=context.client,
            revise_prompt=REVISE.text,
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
