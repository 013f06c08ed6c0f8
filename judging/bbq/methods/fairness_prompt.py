"""`fairness-prompt`: the default, preceded by a request to be fair."""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import BbqContext, Choice, PromptedMethod, Solved, Task, solve_once
from parley.judging.study import Prompt

PROMPT = Prompt.load("bbq/fairness_prompt")


class FairnessPromptMethod(PromptedMethod):
    name: ClassVar[str] = "fairness-prompt"
    used = (PROMPT,)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        return await solve_once(task, context, PROMPT, Choice)
