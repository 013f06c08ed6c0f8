"""`mabrf` (Roy and Rehman 2025): the model reasons, a judge scores the reasoning for bias, and it is rephrased until
the judge finds none; then the question is answered from what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from judging.bbq.method import Desk, Solved, Task
from judging.mabrf import loop


class MabrfSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    passes: int = Field(5, ge=0, le=100, description="how often the chain of thought is rephrased, at most")
    temperature: float = Field(0.2, ge=0, le=2, description="of every call, unless --temperature is given")


class Mabrf:
    name: ClassVar[str] = "mabrf"
    Settings: ClassVar[type[BaseModel]] = MabrfSettings
    needs_logprobs: ClassVar[bool] = False

    def __init__(self, settings: MabrfSettings) -> None:
        self.settings = settings

    def prompts(self) -> Mapping[str, str]:
        return loop.prompts(search=False)

    def calls(self) -> int:
        """Solver, judge, one pass, and at the end judge and terminating agent."""
        return 6 if self.settings.passes else 4

    def reply_tokens(self) -> int:
        return 80

    async def solve(self, task: Task, desk: Desk) -> Solved:
        return await loop.Loop(task, _warm(desk, self.settings), passes=self.settings.passes).hold()


def _warm(desk: Desk, settings: MabrfSettings) -> Desk:
    return Desk(desk.client, desk.models, {"temperature": settings.temperature, **desk.options})
