"""`cot`: zero-shot chain of thought (Kojima et al. 2022), the reasoning and the answer in one reply."""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import BbqContext, PromptedMethod, Reasoned, Solved, Task, solve_once
from parley.judging.study import Prompt

PROMPT = Prompt.load("bbq/cot")


class ChainOfThought(PromptedMethod):
    name: ClassVar[str] = "cot"
    used = (PROMPT,)
    length = 130

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        return await solve_once(task, context, PROMPT, Reasoned)
