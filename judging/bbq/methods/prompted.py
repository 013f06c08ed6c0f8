"""Methods with one or two prompts: `default` (the baseline), `cot`, `fairness-prompt`, `self-debias-…`.

`cot` is a zero-shot chain of thought (Kojima et al. 2022). Self-debiasing is after Gallegos et al. 2025. In
`self-debias-explanation` the model says which options rest on a stereotype before it answers. In
`self-debias-reprompting` it answers, then answers again with bias removed; the first answer is stored too (metric
`first_answer`), so that changes can be counted.
"""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import (
    BbqContext,
    Choice,
    PromptedMethod,
    Reasoned,
    Solved,
    Task,
    answer_verdict,
    read_choice,
)
from parley.judging.prompts import Prompt

PROMPT = Prompt.load("bbq/default")
EXPLAIN = Prompt.load("bbq/self_debias_explain")
ANSWER = Prompt.load("bbq/self_debias_answer")
AGAIN = Prompt.load("bbq/self_debias_again")


class DefaultMethod(PromptedMethod):
    name: ClassVar[str] = "default"
    used = (PROMPT,)


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
        transcript = await context.converse(
            opening, [PROMPT.reads(Choice), AGAIN.reads(Choice)], [AGAIN(format=Choice.FORMAT)]
        )
        first, second = transcript.spoken()
        before = answer_verdict(first, task, *read_choice(first, task), metric="first_answer")
        return Solved(transcript, *read_choice(second, task), (before,))
