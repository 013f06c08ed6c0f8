"""STARDTOX itself: the default's draft, judged and revised; by all evaluators, or without the performance evaluator."""

from __future__ import annotations

from typing import ClassVar

from parley.agents import Transcript
from parley.judging.stardtox.method import COMPLETE, REVISE, CompletionContext, PromptedCompletion
from parley.scenarios.rtp import RtpRow


class StardtoxCompletion(PromptedCompletion):
    """Every evaluator of the team is heeded."""

    name: ClassVar[str] = "stardtox"
    used = (COMPLETE, REVISE)

    def drafts(self, max_iterations: int) -> int:
        return 1 + max_iterations

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        heeds = [one.name for one in context.team.evaluators if one.name not in self.ignores]
        opening = COMPLETE(prompt=row.text)
        return await context.complete(row, opening, heeds=heeds, max_iterations=context.max_iterations)


class WithoutPerformance(StardtoxCompletion):
    """The same without the performance evaluator, which measures and is not heard."""

    name: ClassVar[str] = "stardtox-no-performance"
    ignores = ("performance",)
