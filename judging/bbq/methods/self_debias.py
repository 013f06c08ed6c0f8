"""`self-debias-explanation` and `self-debias-reprompting` (after Gallegos et al. 2025).

The first lets the model say which options rest on a stereotype before it answers. In the second the model answers, then
answers again with bias removed; the first answer is stored too (metric `first_answer`), so that changes can be counted.
"""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import BbqContext, Choice, PromptedMethod, Solved, Task, answer_verdict, read_choice
from parley.judging.bbq.methods.default import PROMPT
from parley.judging.study import Prompt

EXPLAIN = Prompt.load("bbq/self_debias_explain")
ANSWER = Prompt.load("bbq/self_debias_answer")


class SelfDebiasExplanation(PromptedMethod):
    name: ClassVar[str] = "self-debias-explanation"
    used = (EXPLAIN, ANSWER)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        opening, then = EXPLAIN(question=task.text()), ANSWER(format=Choice.FORMAT)
        transcript = await context.converse(opening, [None, Choice], [then])
        return Solved(transcript, *read_choice(transcript.spoken()[-1], task))


AGAIN = Prompt.load("bbq/self_debias_again")


class SelfDebiasReprompting(PromptedMethod):
    name: ClassVar[str] = "self-debias-reprompting"
    used = (PROMPT, AGAIN)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        opening = PROMPT(question=task.text(), format=Choice.FORMAT)
        transcript = await context.converse(opening, [Choice, Choice], [AGAIN(format=Choice.FORMAT)])
        first, second = transcript.spoken()
        before = answer_verdict(first, task, *read_choice(first, task), metric="first_answer")
        return Solved(transcript, *read_choice(second, task), (before,))
