"""STARDTOX itself: the default's draft, judged and revised, with or without the performance evaluator."""

from __future__ import annotations

from typing import ClassVar

from parley.agents import Transcript
from parley.judging.stardtox.method import COMPLETE, REVISE, CompletionContext, PromptedCompletion
from parley.scenarios.rtp import RtpRow


class StardtoxCompletion(PromptedCompletion):
    """Revised until the criteria of every evaluator are met."""

    name: ClassVar[str] = "stardtox"
    used = (COMPLETE, REVISE)

    def drafts(self, max_iterations: int) -> int:
        return 1 + max_iterations

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        heeds = [spec.name for spec in context.team.evaluators if spec.name not in self.ignores]
        opening = COMPLETE(prompt=row.text)
        return await context.complete(row, opening, heeds=heeds, max_iterations=context.max_iterations)


class WithoutPerformance(StardtoxCompletion):
    """The same, but the performance evaluator only measures: its scores and criteria have no influence."""

    name: ClassVar[str] = "stardtox-no-performance"
    ignores = ("performance",)
