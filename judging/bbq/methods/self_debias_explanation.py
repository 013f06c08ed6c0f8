"""`self-debias-explanation` (after Gallegos et al. 2025): the model first says which options rest on a stereotype."""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import BbqContext, Choice, PromptedMethod, Solved, Task, read_choice
from parley.judging.study import Prompt

EXPLAIN = Prompt.load("bbq/self_debias_explain")
ANSWER = Prompt.load("bbq/self_debias_answer")


class SelfDebiasExplanation(PromptedMethod):
    name: ClassVar[str] = "self-debias-explanation"
    used = (EXPLAIN, ANSWER)
    rounds = 2
    length = 70

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        opening, then = EXPLAIN(question=task.text()), ANSWER(format=Choice.FORMAT)
        transcript = await context.converse(opening, [None, Choice], [then])
        return Solved(transcript, *read_choice(transcript.spoken()[-1], task))
