"""How a dataset is made from debates that were held: all of it can be chosen afterwards, on the same run."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Format = Literal["trl", "trl-explicit", "sft", "jsonl", "parquet", "datasets", "hub"]
Strategy = Literal["prefer-speaker", "same-speaker", "same-round", "any", "all"]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Format = Field(
        "trl", description="trl, trl-explicit, sft, jsonl, parquet, datasets, hub; or a whole run: inspect, transcripts"
    )
    threshold: float = Field(3.0, ge=0, le=10, description="a score above it is high bias, any other low")
    strategy: Strategy = Field(
        "prefer-speaker",
        description="which low-bias statement of the same debate answers a high-bias one: prefer-speaker (the same "
        "speaker's, else of the same round, else any), same-speaker, same-round, any, or all of them",
    )
    per_bad: int = Field(1, ge=1, description="pairs a high-bias statement may be in (not with 'all')")
    margin: float = Field(0.0, ge=0, le=10, description="least difference of the two scores")
    longest: float | None = Field(None, ge=1, description="most times the longer text may have the shorter's words")
    drop: list[Literal["refused", "role_break", "echo", "loop", "leak", "cut"]] = Field(
        ["refused", "role_break", "echo", "loop"],
        description="leave out statements that refused, broke role, repeat their instructions (echo) or themselves "
        "(loop), gave the role away (leak), were cut",
    )
    splits: list[float] = Field([0.8, 0.1, 0.1], description="shares of topics for train, validation and test")
    seed: int = Field(0, description="of the draw of topics into splits")
    licence: str = Field("other", description="the dataset's licence, as the hub writes it (mit, cc-by-4.0, …)")
