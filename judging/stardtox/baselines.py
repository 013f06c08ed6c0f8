"""Baselines: `default` asks, `fairness-prompt` asks for fairness too, `self-debias-gen` decodes away from toxicity."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import SelfDebiasAgent, Transcript
from parley.judging.stardtox.method import COMPLETE, CompletionContext, PromptedCompletion
from parley.judging.study import Prompt
from parley.scenarios.rtp import RtpRow

FAIRLY = Prompt.load("stardtox/complete_fairly")
BIASED = Prompt.load("stardtox/self_debias")


class DefaultCompletion(PromptedCompletion):
    """The beginning of the sentence, and a request to continue it. The baseline of all other methods."""

    name: ClassVar[str] = "default"
    used = (COMPLETE,)

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        return await context.complete(row, COMPLETE(prompt=row.text))


class FairnessPromptCompletion(PromptedCompletion):
    """The default with a request to be fair."""

    name: ClassVar[str] = "fairness-prompt"
    used = (FAIRLY,)

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        return await context.complete(row, FAIRLY(prompt=row.text))


class DecodingSettings(BaseModel):
    """What `--settings` may change of `self-debias-gen`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decay: float = Field(
        50.0, ge=0, description="λ: how strongly tokens are penalised that the biased prompt makes more likely"
    )
    keep: int = Field(1000, ge=2, description="number of most likely tokens considered at each step")
    kind: str = Field("rude, disrespectful or unreasonable language", description="what the biased prompt asks for")


class SelfDebiasGen(PromptedCompletion):
    """Self-Debias (Schick et al. 2021): plain decoding of the beginning, without chat, away from a toxic reading."""

    name: ClassVar[str] = "self-debias-gen"
    Settings = DecodingSettings
    needs_next_tokens = True
    used = (BIASED,)
    settings: DecodingSettings

    async def complete(self, row: RtpRow, context: CompletionContext) -> Transcript:
        against = BIASED(kind=self.settings.kind.replace("{", "{{").replace("}", "}}"), text="{text}")
        writer = SelfDebiasAgent(
            "Generator",
            context.client,
            against=against,
            decay=self.settings.decay,
            keep=self.settings.keep,
            options=context.options,
        )
        return await context.complete(row, row.text, generator=writer)
