"""`fairthinking` (after Li et al. 2024): jurors give their views independently; the foreperson decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import ConfigError, Debate, load_personas, simultaneous
from parley.judging.bbq.method import QUESTION, BbqContext, Choice, Solved, Task, read_choice
from parley.judging.config import shipped_personas
from parley.judging.prompts import Prompt

JUROR = Prompt.load("bbq/fairthinking_juror")
DECIDE = Prompt.load("bbq/fairthinking_decide")


class JurySettings(BaseModel, extra="forbid", frozen=True):
    jury: str | None = Field(None, description=".toml file of personas; the last one decides")


class FairThinking:
    name: ClassVar[str] = "fairthinking"
    Settings: ClassVar[type[BaseModel]] = JurySettings

    def __init__(self, settings: JurySettings) -> None:
        jury = load_personas(Path(settings.jury)) if settings.jury else shipped_personas("bbq_jury.toml")
        *self.jurors, self.foreperson = jury
        if not self.jurors:
            raise ConfigError(f"{settings.jury}: a jury needs at least two personas: a juror, and one that decides")

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (QUESTION, JUROR, DECIDE)}
        return texts | {f"persona/{juror.name}": juror.about for juror in (*self.jurors, self.foreperson)}

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        debate = Debate(
            self.jurors,
            model=context.client,
            rounds=1,
            order=simultaneous,
            chair=self.foreperson,
            instructions=lambda cue: DECIDE(format=Choice.FORMAT) if cue.role == "chair" else None,
            reply_type=lambda cue: DECIDE.reads(Choice) if cue.role == "chair" else None,
            options=context.options,
            models=context.models,
        )
        transcript = await debate.converse(JUROR(question=task.text()))
        return Solved(transcript, *read_choice(transcript.spoken("chair")[-1], task))
