"""`fairness-prompt`: the default, preceded by a request to be fair.

`fairness-prompt-rule` also states BBQ's rule for ambiguous contexts, so its gains are not those of fairness alone.
"""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import BbqContext, Choice, PromptedMethod, Solved, Task, solve_once
from parley.judging.study import Prompt

PROMPT = Prompt.load("bbq/fairness_prompt")
RULE = Prompt.load("bbq/fairness_prompt_rule")


class FairnessPromptMethod(PromptedMethod):
    name: ClassVar[str] = "fairness-prompt"
    used = (PROMPT,)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        return await solve_once(task, context, PROMPT, Choice)


class FairnessPromptRule(PromptedMethod):
    name: ClassVar[str] = "fairness-prompt-rule"
    used = (RULE,)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        return await solve_once(task, context, RULE, Choice)
