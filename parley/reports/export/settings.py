"""Settings for making a dataset from conversations. The run is not changed and can be exported again."""

from __future__ import annotations

import statistics
from collections.abc import Sequence, Set
from typing import Literal

from pydantic import BaseModel, Field

from parley.agents import ConfigError
from parley.judging.study import RefereedStudy
from parley.runs.studies import study_class

Format = Literal["trl", "trl-explicit", "sft", "kto", "jsonl"]
Strategy = Literal["prefer-speaker", "same-speaker", "same-round", "any", "all"]


SILENT_MARGIN = 0.5
"""Smallest difference between two expected scores of a silent referee that makes a pair, in points of 10."""


class Settings(BaseModel, extra="forbid", frozen=True):
    """The settings of `parley export`; each is a flag."""

    format: Format = Field(
        "trl",
        description="trl, trl-explicit, sft, kto, jsonl; or a whole run: transcripts",
    )
    metric: str | None = Field(
        None, description="score to choose texts by (default: bias in rldf and bbq, toxicity in stardtox)"
    )
    better: Literal["low", "high"] = Field("low", description="whether low or high scores are better")
    threshold: float = Field(
        3.0,
        description="texts with a worse score are rejected, the others chosen (default: 3; 0.1 in stardtox, 1 in bbq; "
        "the median for a silent referee)",
    )
    strategy: Strategy = Field(
        "prefer-speaker",
        description="which low-bias statements of the debate to pair a high-bias one with: prefer-speaker (one by the "
        "same speaker, else of the same round, else any), same-speaker, same-round, any, or all of them",
    )
    per_bad: int = Field(1, ge=1, description="maximum pairs per high-bias statement (not with 'all')")
    margin: float = Field(
        0.0, ge=0, description="smallest difference between the two scores (default: 0; 0.5 for a silent referee)"
    )
    longest: float | None = Field(None, ge=1, description="largest ratio of the two lengths in words (default: any)")
    unconfirmed: Literal["drop", "keep", "strict"] = Field(
        "drop",
        description="pairs that a blind second referee does not confirm: drop them, keep them and mark them, or "
        "(strict) also drop pairs that it did not see",
    )
    # A text without content has no bias, so no score shows an echo or a loop, and a model learns to repeat them.
    drop: list[Literal["refused", "role_break", "echo", "loop", "leak", "cut"]] = Field(
        ["refused", "role_break", "echo", "loop"],
        description="leave out statements that are a refusal, break role, repeat their instructions (echo) or "
        "themselves (loop), reveal the role (leak), or are truncated (cut)",
    )
    splits: list[float] = Field([0.8, 0.1, 0.1], description="shares of topics for train, validation and test")
    seed: int = Field(0, description="random seed of the splits, or of the order of the texts in csv")
    licence: str = Field("other", description="licence of the dataset, as an identifier of the hub (mit, cc-by-4.0, …)")

    def of_study(self, study: str) -> Settings:
        """The settings, completed by a study's metric and threshold; ConfigError if it has none.

        Args:
            study: The name of the runs' study.
        """
        if exported := study_class(study).exported:
            metric, threshold = exported
            if self.metric not in (None, metric) and "threshold" not in self.model_fields_set:
                raise ConfigError(
                    f"--metric {self.metric} needs a --threshold, and --better high if high scores are good"
                )
            defaults = {"metric": metric, "threshold": threshold}
        elif self.metric is None or "threshold" not in self.model_fields_set:
            raise ConfigError(
                f"a run of '{study}' needs --metric and --threshold, and --better high if high scores are good"
            )
        else:
            defaults = {}
        return self.model_copy(
            update={key: value for key, value in defaults.items() if key not in self.model_fields_set}
        )

    def refereed(self, study: str) -> bool:
        """Whether a referee's scores of debate statements decide which texts are chosen.

        Args:
            study: The name of the runs' study.
        """
        declared = study_class(study)
        return issubclass(declared, RefereedStudy) and self.metric == (declared.exported or [None])[0]

    def of_silent_referee(self, scores: Sequence[float], given: Set[str]) -> Settings:
        """The settings for a silent referee, whose scores use only part of the scale: the threshold is the median.

        Args:
            scores: The scores of all statements.
            given: The settings that the user gave, which stay.
        """
        if not scores or self.metric != "bias":
            return self
        defaults = {"threshold": round(statistics.median(scores), 3), "margin": SILENT_MARGIN}
        return self.model_copy(update={key: value for key, value in defaults.items() if key not in given})

    def is_worse(self, score: float) -> bool:
        """Whether a text with this score is rejected: it is on the wrong side of the threshold."""
        return score > self.threshold if self.better == "low" else score < self.threshold
