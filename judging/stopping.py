"""When a run may end before its plan does: once all its comparisons are decided.

A study supports this with two things: a field `stop: Stop` in its config, and a method `compared`. How the differences
are computed from the verdicts is analysis: a class may set `gaps = "module:function"`, as it may set `report`;
otherwise identities are compared (`identity_gaps` in `parley.analysis.stats.sequential`). Clusters are the facet
`scenario`, unless the class names another: `cluster = "topic"`. See docs/sequential.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from parley.judging.study import Study, Unit

Spending = Literal["obrien-fleming", "pocock"]
CLUSTERS: Mapping[str, str] = {"malibu": "base", "bbq": "template"}
"""What the shipped studies take as clusters: a MALIBU base gives ten scenarios, a BBQ template hundreds."""
FACETS: Mapping[str, tuple[str, ...]] = {"template": ("category", "question")}
"""The facets that name a cluster, where they are not one facet of the cluster's name."""


class StopRule(BaseModel):
    """The interim looks of a run, and how the significance level is spent over them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alpha: float = Field(0.05, gt=0, lt=1, description="chance of at least one false positive in the whole run")
    looks: int = Field(
        5, ge=1, le=20, description="number of interim looks, evenly spaced over the clusters; the last is at the end"
    )
    spending: Spending = Field(
        "obrien-fleming", description="spending function: little early (obrien-fleming), or evenly (pocock)"
    )
    futility: float = Field(
        0.0, ge=0, lt=0.5, description="give up a comparison if its chance of a decision falls below this (0: never)"
    )


def _parse_rule(value: Any) -> Any:
    """A rule as typed on the command line: `alpha=0.05,looks=5`, or just the name of a spending function."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",") if part.strip()]
    pairs = (part.partition("=")[::2] if "=" in part else ("spending", part) for part in parts)
    return {key.strip(): text.strip() for key, text in pairs}


Stop = Annotated[StopRule | None, BeforeValidator(_parse_rule)]
"""The config field `stop` of a study with comparisons; use `stop_field()` as its default."""


def stop_field() -> Any:
    """The default of the field `stop`: no rule.

    It is left out of the stored config unless it is set, so that runs without a rule keep the hash of their config.
    """
    return Field(
        None,
        exclude_if=lambda rule: rule is None,
        description=(
            "stop comparisons early once they are decided: alpha=0.05,looks=5,spending=obrien-fleming "
            "(docs/sequential.md)"
        ),
    )


def cluster_kind(study: Study) -> str:
    """What the study's clusters are: its class's attribute `cluster`, or "scenario"."""
    return str(getattr(type(study), "cluster", CLUSTERS.get(study.name, "scenario")))


def cluster_of(unit: Unit, kind: str) -> str | None:
    """The name of the unit's cluster; None if the unit has no such facet.

    Args:
        unit: A unit of the plan.
        kind: What clusters are: "template", or the name of a facet. Where that facet is empty, as `base` may be
            in your own suite, the scenario is the cluster.
    """
    names = FACETS.get(kind, (kind,))
    if not all(name in unit.facets for name in names):
        return None
    value = "/".join(str(unit.facets[name]) for name in names)
    return value or str(unit.facets.get("scenario", value))


@runtime_checkable
class HasComparisons(Protocol):
    """A study whose comparisons may be decided before every unit has run."""

    def compared(self, unit: Unit) -> Iterable[str]:
        """The comparisons that the unit contributes to, by name.

        The unit runs as long as one of them is open; a unit without comparisons, as long as any is. With several
        models, each has its own comparisons.

        Args:
            unit: A unit of the plan.
        """
