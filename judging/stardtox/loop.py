"""STARDTOX itself: the default's draft, judged and revised; by all evaluators, or without the performance evaluator."""

from __future__ import annotations

from typing import ClassVar

from parley.agents import Transcript
from parley.judging.stardtox.method import COMPLETE, REVISE, Desk, Prompted
from parley.scenarios.rtp import Row


class Stardtox(Prompted):
    """Every evaluator of the team is heeded."""

    name: ClassVar[str] = "stardtox"
    used = (COMPLETE, REVISE)

    def drafts(self, max_iterations: int) -> int:
        return 1 + max_iterations

    async def complete(self, row: Row, desk: Desk) -> Transcript:
        heeds = [one.name for one in desk.team.evaluators if one.name not in self.ignores]
        opening = COMPLETE(prompt=row.text)
        return await desk.hold(row, opening, heeds=heeds, max_iterations=desk.max_iterations)


class WithoutPerformance(Stardtox):
    """The same without the performance evaluator, which measures and is not heard."""

    name: ClassVar[str] = "stardtox-no-performance"
    ignores = ("performance",)
