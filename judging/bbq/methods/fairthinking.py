"""`fairthinking` (after Li et al. 2024): jurors express their perspectives, all at once; the foreperson decides."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import ConfigError, Debate, load_personas, simultaneous
from parley.judging.bbq.method import QUESTION, BbqContext, Choice, Solved, Task, read_choice
from parley.judging.study import Prompt

JUROR = Prompt.load("bbq/fairthinking_juror")
DECIDE = Prompt.load("bbq/fairthinking_decide")


class JurySettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    jury: str | None = Field(None, description="a .toml file of personas, the last of whom decides")


class FairThinking:
    name: ClassVar[str] = "fairthinking"
    Settings: ClassVar[type[BaseModel]] = JurySettings
    needs_logprobs: ClassVar[bool] = False

    def __init__(self, settings: JurySettings) -> None:
        shipped = Path(str(files("parley.judging").joinpath("personas", "bbq_jury.toml")))
        *self.jurors, self.foreperson = load_personas(Path(settings.jury) if settings.jury else shipped)
        if not self.jurors:
            raise ConfigError(f"{settings.jury}: a jury needs a juror, and one more who decides")

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (QUESTION, JUROR, DECIDE)}
        return texts | {f"persona/{one.name}": one.about for one in (*self.jurors, self.foreperson)}

    def calls(self) -> int:
        return len(self.jurors) + 1

    def reply_tokens(self) -> int:
        return 60

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        table = Debate(
            self.jurors,
            model=context.client,
            rounds=1,
            order=simultaneous,
            chair=self.foreperson,
            instructions=lambda cue: DECIDE(format=Choice.FORMAT) if cue.role == "chair" else None,
            reply_type=lambda cue: Choice if cue.role == "chair" else None,
            options=context.options,
            models=context.models,
        )
        transcript = await table.converse(JUROR(question=task.text()))
        return Solved(transcript, *read_choice(transcript.spoken("chair")[-1], task))
