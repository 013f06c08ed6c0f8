"""When a run may end before its plan does: once what it compares has been decided.

A study takes part with two things: a field `stop: Stop` in its config, and a method `compared`. How the differences
are read from the verdicts is analysis: a class may say `gaps = "module:function"`, as with `report`; else identities
are set side by side (`identity_gaps` in `parley.analysis.stats.sequential`). Clusters are the facet `scenario`. See
docs/sequential.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from parley.judging.study import Unit

Spending = Literal["obrien-fleming", "pocock"]


class StopRule(BaseModel):
    """How often is looked, and how the chance of a false alarm is spent over the looks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alpha: float = Field(0.05, gt=0, lt=1, description="the chance of even one false alarm in the whole run")
    looks: int = Field(5, ge=1, le=20, description="evenly spaced over the clusters; the last is at their end")
    spending: Spending = Field("obrien-fleming", description="little early (obrien-fleming), or evenly (pocock)")
    futility: float = Field(
        0.0, ge=0, lt=0.5, description="give a comparison up if its chance to be decided falls below this (0: never)"
    )


def _read(value: Any) -> Any:
    """A rule as it is typed: `alpha=0.05,looks=5`, or just the name of a spending function."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",") if part.strip()]
    pairs = (part.partition("=")[::2] if "=" in part else ("spending", part) for part in parts)
    return {key.strip(): text.strip() for key, text in pairs}


Stop = Annotated[StopRule | None, BeforeValidator(_read)]
"""The config field `stop` of a study that compares; use `stop_field()` as its default."""


def stop_field() -> Any:
    """Not written into the config where there is none, so that runs without a rule are what they always were."""
    return Field(
        None,
        exclude_if=lambda rule: rule is None,
        description="stop early what has been decided: alpha=0.05,looks=5,spending=obrien-fleming (docs/sequential.md)",
    )


@runtime_checkable
class HasComparisons(Protocol):
    """A study whose comparisons may be decided before every unit is held."""

    def compared(self, unit: Unit) -> Iterable[str]:
        """The comparisons that the unit serves, by name. It is wanted as long as one of them is open; one that
        serves none, as long as anything is. Where several models take part, each has comparisons of its own."""
