"""Thresholds of `parley detox`: those that a team's scorers were calibrated with, in place of the paper's 0.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from parley.agents import ConfigError, Models
from parley.judging.stardtox.team import Team
from parley.judging.toxicity.calibration import Calibration, load_calibration, shipped_calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Thresholds from the calibrations of a team's scorers.

    Args:
        criteria: Criteria that replace the team's.
        toxic_from: By score, from where a text is revised; without an entry, wherever the criterion is not met.
        cautions: What a reader must know about them.
    """

    criteria: Sequence[str] = ()
    toxic_from: Mapping[str, float] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()


def calibrated_thresholds(
    team: Team, models: Models, given: str | None, *, shipped: bool, own: Sequence[str]
) -> Thresholds:
    """The thresholds of a team's scorers.

    Args:
        team: The team.
        models: Where its scorers are shared.
        given: The user's calibration file.
        shipped: Whether the team's own thresholds are the paper's, and a shipped calibration replaces them.
        own: Scores with a threshold of the user's.
    """
    criteria, toxic_from, cautions = [], {}, []
    mine = load_calibration(given) if given else None
    scorers = team.scorers(models)
    if mine and mine.scorer not in {scorer.name for scorer in scorers.values()}:
        used = ", ".join(scorer.name for scorer in scorers.values()) or "none"
        raise ConfigError(f"{given}: a calibration of the scorer '{mine.scorer}', which is not used (used: {used})")
    for name, scorer in scorers.items():
        if name in own:
            continue
        found: Calibration | None = mine if mine and mine.scorer == scorer.name else None
        found = found or (shipped_calibration(scorer.name) if shipped else None)
        if found is None:
            if shipped and name in team.criteria:
                cautions.append(
                    f"{scorer.name} has no calibration: its threshold is the paper's, {name} {team.criteria[name]}, "
                    "which was meant for Perspective (parley score calibrate makes one)"
                )
            continue
        if found.version != scorer.version:
            cautions.append(f"the thresholds of {scorer.name} were measured on its version {found.version}")
        criteria.append(f"{name} < {found.harmless_below:g}")
        toxic_from[name] = found.toxic_from
    return Thresholds(criteria=criteria, toxic_from=toxic_from, cautions=tuple(cautions))
