"""Thresholds of a toxicity scorer, measured on labelled texts by `parley run toxicity --to FILE` and stored as TOML.

    load_calibration("embedded").harmless_below

There are two thresholds, since no scorer separates toxic and harmless texts: only a stated share of toxic texts lies
below `harmless_below`, and only a stated share of harmless ones reaches `toxic_from`. Between them a score says too
little: where `embedded` misses 10% of toxic prompts, 45% of the others are false alarms; at 5% false alarms it misses
42%.
"""

from __future__ import annotations

from typing import Annotated

import tomli_w
from pydantic import BaseModel, Field

from parley.judging.config import load

Share = Annotated[float, Field(ge=0, le=1)]
_SHIPPED = ("embedded",)


class Range(BaseModel, extra="forbid", frozen=True):
    """An estimate with its interval; fields that the texts do not determine are missing."""

    estimate: Share | None = None
    low: Share | None = None
    high: Share | None = None


class GroupOfTexts(BaseModel, extra="forbid", frozen=True):
    """The thresholds on some of the texts, and the errors there at the thresholds of all texts.

    Args:
        by: "all", "language", "identity", or a field of the file.
        name: The group.
        toxic: Number of toxic texts with a score.
        harmless: Number of other texts with a score.
        unscored: Number of texts without a score.
        harmless_below: This group's threshold for the stated miss rate.
        toxic_from: This group's threshold for the stated rate of false alarms.
        missed: Share of toxic texts below the calibration's `harmless_below`.
        alarms: Share of harmless texts at or above it.
        revised: Share of harmless texts at or above the calibration's `toxic_from`.
        missed_at: Share of toxic texts below the calibration's `at`.
        alarms_at: Share of harmless texts at or above it.
    """

    by: str
    name: str
    toxic: int
    harmless: int
    unscored: int
    harmless_below: Range
    toxic_from: Range
    missed: Range
    alarms: Range
    revised: Range
    missed_at: Range
    alarms_at: Range


class Calibration(BaseModel, extra="forbid", frozen=True):
    """A scorer's thresholds, and how they were measured.

    Args:
        scorer: The scorer's name.
        version: Its version; scores of another version may need other thresholds.
        command: The command that made the calibration.
        texts: What the texts are, with the SHA-256 of their file.
        labels: What counted as toxic.
        miss_rate: Share of toxic texts that may be below `harmless_below`.
        false_alarm_rate: Share of harmless texts that may be at or above `toxic_from`.
        harmless_below: A text with a lower score counts as harmless.
        toxic_from: A text with this score or a higher one counts as toxic; never below `harmless_below`.
        at: A further threshold, at which misses were counted.
        group: All texts, and groups of them.
    """

    scorer: str
    version: str
    command: str
    texts: str
    labels: str
    miss_rate: Share
    false_alarm_rate: Share
    harmless_below: Share
    toxic_from: Share
    at: Share
    group: tuple[GroupOfTexts, ...]

    def to_toml(self) -> str:
        """The text of a calibration file."""
        return tomli_w.dumps(self.model_dump(exclude_none=True))


def load_calibration(name: str) -> Calibration:
    """A calibration.

    Args:
        name: A scorer with a shipped calibration, or the path of a .toml file.
    """
    return load(Calibration, "calibration", name, _SHIPPED, "toxicity/calibration_{}.toml")


def shipped_calibration(scorer: str) -> Calibration | None:
    """The shipped calibration of a scorer, if there is one."""
    return load_calibration(scorer) if scorer in _SHIPPED else None
