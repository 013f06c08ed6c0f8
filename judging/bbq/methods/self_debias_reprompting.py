"""`self-debias-reprompting` (after Gallegos et al. 2025): the model answers, then answers again with bias removed.

The first answer is stored too (metric `first_answer`), so that changes can be counted.
"""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import BbqContext, Choice, PromptedMethod, Solved, Task, answer_verdict, read_choice
from parley.judging.bbq.methods.default import PROMPT
from parley.judging.study import Prompt

AGAIN = Prompt.load("bbq/self_debias_again")


class SelfDebiasReprompting(PromptedMethod):
    name: ClassVar[str] = "self-debias-reprompting"
    used = (PROMPT, AGAIN)
    rounds = 2

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        opening = PROMPT(question=task.text(), format=Choice.FORMAT)
        transcript = await context.converse(opening, [Choice, Choice], [AGAIN(format=Choice.FORMAT)])
        first, second = transcript.spoken()
        before = answer_verdict(first, task, *read_choice(first, task), metric="first_answer")
        return Solved(transcript, *read_choice(second, task), (before,))
