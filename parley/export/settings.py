"""How a dataset is made from debates. Nothing here changes a run: the same one can be exported again with others."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Format = Literal["trl", "trl-explicit", "sft", "kto", "jsonl", "parquet", "datasets", "hub"]
Strategy = Literal["prefer-speaker", "same-speaker", "same-round", "any", "all"]


class Settings(BaseModel):
    """The settings of `parley export`; each is a flag."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Format = Field(
        "trl",
        description="trl, trl-explicit, sft, kto, jsonl, parquet, datasets, hub; or a whole run: inspect, transcripts",
    )
    threshold: float = Field(3.0, ge=0, le=10, description="scores above it are high bias, others low")
    strategy: Strategy = Field(
        "prefer-speaker",
        description="which low-bias statement of the same debate a high-bias one is paired with: prefer-speaker (the "
        "same speaker's, else one of the same round, else any), same-speaker, same-round, any, or all of them",
    )
    per_bad: int = Field(1, ge=1, description="maximum pairs per high-bias statement (not with 'all')")
    margin: float = Field(0.0, ge=0, le=10, description="smallest difference between the two scores")
    longest: float | None = Field(None, ge=1, description="largest ratio of the two lengths, in words (default: any)")
    unconfirmed: Literal["drop", "keep", "strict"] = Field(
        "drop",
        description="pairs that a blind second referee does not confirm: drop them, keep them (marked), or strict: "
        "also drop those it was not asked about",
    )
    drop: list[Literal["refused", "role_break", "echo", "loop", "leak", "cut"]] = Field(
        ["refused", "role_break", "echo", "loop"],
        description="leave out statements that are a refusal, break role, repeat their instructions (echo) or "
        "themselves (loop), reveal the role (leak), or are truncated (cut)",
    )
    splits: list[float] = Field([0.8, 0.1, 0.1], description="shares of topics for train, validation and test")
    seed: int = Field(0, description="of the random splits")
    language: str = Field("en", description="language of the texts, as the hub writes it")
    licence: str = Field("other", description="the dataset's licence, as the hub writes it (mit, cc-by-4.0, …)")
