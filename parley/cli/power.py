"""`parley power`: the bases that an effect needs, and the effect that a number of bases can detect, by the test that
reports use: sign flips over bases, Holm-corrected over the planned comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.cli.command import Answer, Command
from parley.cli.shared import need_analysis
from parley.cli.tables import plain_table

if TYPE_CHECKING:
    import pandas as pd

MOST = 10**9
"""Maximum of bases, judges or tests: beyond it t is the normal distribution, and no study has as many."""
PER_BASE, JUDGES = 10, 4
SD_BASE, SD_SCENARIO, SD_RESIDUAL = 0.15, 0.65, 1.0
"""Close to a 1.5B judge's on 62 scenarios of 13 bases (0.11 between bases, 0.85 for a panel's score)."""
PRIMARY_CONTRASTS = "MALIBU's primary contrasts"
ASSUMES = "bases are independent; the differences of their means are normally distributed; Holm's first step"
WITHOUT_EFFECT = "an effect of 0 cannot be detected"
Count = Annotated[int | None, Field(ge=1, le=MOST)]
Spread = Annotated[float | None, Field(ge=0)]


class Power(Command):
    """Find what a design can detect with the test of the reports: sign flips over bases, with Holm's correction. Give
    --effect (how many bases does it need?), --bases (what can they detect?), or both."""

    alone: ClassVar = {"sd": ("judges", "sd_base", "sd_scenario", "sd_residual")}

    effect: float | None = Field(
        None,
        description="the smallest difference between two identities that matters, in points; how many bases does it "
        "need? (not a pilot run's own estimate, which is too large where it is significant)",
    )
    bases: Count = Field(None, description="number of bases; what can they detect?")
    per_base: int = Field(PER_BASE, ge=1, le=MOST, description="scenarios per base")
    judges: Count = Field(
        None, title="N", description=f"judges per scenario, times the repeats of a scenario (default: {JUDGES})"
    )
    tests: Count = Field(
        None,
        description="number of planned comparisons, for Holm's correction (default: 3, MALIBU's primary contrasts; its "
        "other pairs of identities are 12)",
    )
    sd_base: Spread = Field(None, description=f"standard deviation of base × identity (default: {SD_BASE})")
    sd_scenario: Spread = Field(
        None, description=f"standard deviation of scenario × identity, within a base (default: {SD_SCENARIO})"
    )
    sd_residual: Spread = Field(
        None, description=f"residual standard deviation of one judge's score (default: {SD_RESIDUAL:g})"
    )
    sd: float | None = Field(
        None,
        gt=0,
        description="instead of these three: standard deviation of a base's mean difference between two identities, "
        "as the table mde of a similar run's report has it",
    )
    alpha: float = Field(0.05, description="significance level")
    power: float = Field(0.8, description="wanted power")

    def answer(self) -> Answer:
        need_analysis()
        from parley.analysis.reporting.report import json_values

        if (self.effect, self.bases) == (None, None):
            raise ConfigError("--effect or --bases is missing: give the difference that matters, or the bases you have")
        sd, source = self._spread()
        try:
            plan, table = _plan(self, sd)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        shown = plain_table("What other numbers of bases would give", _shown(table, self, plan["tests"]))
        return Answer(json_values(plan | {"table": table}), [*_sentences(self, plan, source), shown])

    def _spread(self) -> tuple[float, str]:
        """The standard deviation of a base's mean difference, and what it is made of."""
        from parley.analysis.stats.power import sd_of_base

        if self.sd is not None:
            return self.sd, "."
        base, scenario, residual = (
            default if value is None else value
            for value, default in (
                (self.sd_base, SD_BASE),
                (self.sd_scenario, SD_SCENARIO),
                (self.sd_residual, SD_RESIDUAL),
            )
        )
        if max(base, scenario, residual) == 0:
            raise ConfigError("at least one standard deviation must be above 0")
        judges = self.judges or JUDGES
        sd = sd_of_base(base, scenario, residual, scenarios=self.per_base, judges=judges)
        return sd, (
            f": base × identity {base:.3g}, scenario × identity {scenario:.3g}, residual {residual:.3g} (standard "
            f"deviations of a score), {plural(judges, 'judge')}."
        )


def _plan(asked: Power, sd: float) -> tuple[dict[str, Any], pd.DataFrame]:
    from parley.analysis.stats.power import MAX_CLUSTERS, clusters_needed, detectable, sign_flip_power, too_few
    from parley.judging.malibu.planned import CONTRASTS

    family: dict[str, Any] = {"tests": asked.tests or len(CONTRASTS), "alpha": asked.alpha}
    note, bases, effect, power = "", asked.bases, asked.effect, asked.power
    if bases is None:
        assert effect is not None, "without bases there is an effect"
        bases = clusters_needed(effect, sd, power=power, **family)
        if bases is None:
            note = f"more than {MAX_CLUSTERS:,} bases would be needed" if effect else WITHOUT_EFFECT
            power = math.nan
    else:
        note = too_few(bases, **family)
        if effect is None:
            effect, power = detectable(bases, sd, power=power, **family), 0.0 if note else power
    if bases is not None and asked.effect is not None:
        power = sign_flip_power(bases, asked.effect, sd, **family)
    plan = {
        "bases": bases,
        "per_base": asked.per_base,
        "scenarios": None if bases is None else bases * asked.per_base,
        "effect": effect,
        "power": power,
        **family,
        "sd_of_base": sd,
        "assumes": ASSUMES,
        "note": note,
    }
    return plan, _table(asked, sd, bases or 20, family)


def _table(asked: Power, sd: float, bases: int, family: dict[str, Any]) -> pd.DataFrame:
    """What half, one, two and four times the bases find."""
    import pandas as pd

    from parley.analysis.stats.power import detectable, sign_flip_power

    rows = []
    for count in sorted({max(bases // 2, 1), bases, min(2 * bases, MOST), min(4 * bases, MOST)}):
        row: dict[str, float] = {"bases": count, "scenarios": count * asked.per_base}
        if asked.effect:
            row["power"] = sign_flip_power(count, asked.effect, sd, **family)
        row["detectable"] = detectable(count, sd, power=asked.power, **family)
        row["detectable_alone"] = detectable(count, sd, power=asked.power, alpha=asked.alpha)
        rows.append(row)
    return pd.DataFrame(rows)


def _shown(table: pd.DataFrame, asked: Power, tests: int) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "bases": ("bases", "{:,}".format),
        "scenarios": ("scenarios", "{:,}".format),
        "power": ("power", _chance),
        "detectable": (f"MDE at {asked.power:.0%} power", _points),
        "detectable_alone": ("MDE, single test", _points),
    }
    if tests == 1:
        del columns["detectable_alone"]
    return pd.DataFrame({title: table[name].map(form) for name, (title, form) in columns.items() if name in table})


def _chance(value: float) -> str:
    if 0 < value < 0.005 or 0.995 <= value < 1:
        return "below 1%" if value < 0.5 else "over 99%"
    return f"{value:.0%}"


def _points(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.2f}" if 0.1 <= value < 1000 else f"{value:.3g}"


def _sentences(asked: Power, plan: dict[str, Any], source: str) -> Iterator[str]:
    note, tests = plan["note"], plan["tests"]
    if note:
        yield f"{note[0].upper()}{note[1:]}."
    else:
        yield (
            f"With {plural(plan['bases'], 'base')} of {plural(asked.per_base, 'scenario')}, the power to detect a "
            f"difference of {_points(abs(plan['effect']))} points is {_chance(plan['power'])}."
        )
    correction = f"Holm over {plural(tests, 'test')}" if tests > 1 else "one test"
    family = "" if asked.tests else f" ({PRIMARY_CONTRASTS})"
    yield f"Test: sign flips over bases, {correction}{family}, α {asked.alpha:g}."
    yield f"The mean difference of a base has a standard deviation of {_points(plan['sd_of_base'])} points{source}"
