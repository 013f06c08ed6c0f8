"""`parley power`: the bases that an effect needs, and the effect that a number of bases can detect, by the test that
reports use: t over bases, Holm-corrected over the planned comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from parley.analysis.stats.results import ALPHA, clusters_to_reject
from parley.base.errors import ConfigError
from parley.base.text import p_text, plural
from parley.cli.command import Answer, Command
from parley.cli.shared import need_analysis
from parley.cli.tables import plain_table
from parley.judging.malibu.size import SPREADS

if TYPE_CHECKING:
    import pandas as pd

MOST = 10**9
"""Maximum number of bases, judges or tests; beyond it t equals the normal distribution."""
SD = 0.42
"""Debates of ten scenarios per base by four judges: close to a 1.5B judge's on 62 scenarios of 13 bases."""
FAMILY = "MALIBU's primary contrasts"
ASSUMES = "bases are independent; the differences of their means are normally distributed; Holm's first step"
WITHOUT_EFFECT = "an effect of 0 cannot be detected"
Count = Annotated[int | None, Field(ge=1, le=MOST)]


class Power(Command):
    """Plan the number of bases, for the reports' test: t over bases, with Holm's correction. Give --effect,
    --bases or both."""

    effect: float | None = Field(
        None,
        description="smallest difference between two identities that matters, in points: prints the bases it needs "
        "(not the estimate of a pilot run, which is too large if it is significant)",
    )
    bases: Count = Field(None, description="number of bases: prints the difference that they can detect")
    tests: Count = Field(
        None,
        description="number of planned comparisons, for Holm's correction (default: 3, MALIBU's primary contrasts; its "
        "other pairs of identities are 12)",
    )
    sd: float = Field(
        SD,
        gt=0,
        description="standard deviation of a base's mean difference between two identities, from the table mde "
        "in the report of a similar run",
    )
    power: float = Field(0.8, description="wanted power")

    def answer(self) -> Answer:
        need_analysis()
        from parley.analysis.say import json_values

        if (self.effect, self.bases) == (None, None):
            raise ConfigError("--effect or --bases is missing: give the difference that matters, or the bases you have")
        try:
            plan, table = _plan(self)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        shown = plain_table("What other numbers of bases would give", _shown(table, self, plan["tests"]))
        return Answer(json_values(plan | {"table": table}), [*_sentences(self, plan), shown])


def _plan(design: Power) -> tuple[dict[str, Any], pd.DataFrame]:
    from parley.analysis.stats.power import MAX_CLUSTERS, clusters_needed, detectable, power_of, too_few
    from parley.judging.malibu.plan import PRIMARY_CONTRASTS

    family: dict[str, Any] = {"tests": design.tests or len(PRIMARY_CONTRASTS), "alpha": ALPHA}
    note, bases, effect, power, sd = "", design.bases, design.effect, design.power, design.sd
    if bases is None:
        assert effect is not None, "without bases there is an effect"
        bases = clusters_needed(effect, sd, power=power, **family)
        if bases is None:
            note = f"more than {MAX_CLUSTERS:,} bases would be needed" if effect else WITHOUT_EFFECT
            power = math.nan
    else:
        note = too_few(bases, **family)
        if effect is None:
            effect = detectable(bases, sd, power=power, **family)
    if bases is not None and design.effect is not None:
        power = power_of(bases, design.effect, sd, **family)
    plan = {
        "bases": bases,
        "effect": effect,
        "power": power,
        **family,
        "sd": sd,
        "assumes": ASSUMES,
        "note": note,
    }
    return plan, _table(design, bases or 20, family)


def _table(design: Power, bases: int, family: dict[str, Any]) -> pd.DataFrame:
    """The results with half, one, two and four times the bases."""
    import pandas as pd

    from parley.analysis.stats.mean_test import smallest_p
    from parley.analysis.stats.power import detectable, power_of

    rows = []
    for count in sorted({max(bases // 2, 1), bases, min(2 * bases, MOST), min(4 * bases, MOST)}):
        row: dict[str, float] = {"bases": count, "smallest_p": min(1.0, family["tests"] * smallest_p(count))}
        if design.effect:
            row["power"] = power_of(count, design.effect, design.sd, **family)
        row["detectable"] = detectable(count, design.sd, power=design.power, **family)
        row["detectable_alone"] = detectable(count, design.sd, power=design.power, alpha=ALPHA)
        rows.append(row)
    return pd.DataFrame(rows)


def _shown(table: pd.DataFrame, design: Power, tests: int) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "bases": ("bases", "{:,}".format),
        "smallest_p": ("smallest p", lambda p: p_text(p).removeprefix("= ")),
        "power": ("power", _chance),
        "detectable": (f"MDE at {design.power:.0%} power", _points),
        "detectable_alone": ("MDE, single test", _points),
    }
    if tests == 1:
        del columns["detectable_alone"]
    return pd.DataFrame({title: table[name].map(form) for name, (title, form) in columns.items() if name in table})


def _chance(value: float) -> str:
    if 0 < value < 0.005 or 0.995 <= value < 1:
        return "below 1%" if value < 0.5 else "over 99%"
    return f"{value:.0%}" if value == value else "–"


def _points(value: float) -> str:
    return "–" if math.isinf(value) else f"{value:.2f}" if 0.1 <= value < 1000 else f"{value:.3g}"


def _sentences(design: Power, plan: dict[str, Any]) -> Iterator[str]:
    note, tests = plan["note"], plan["tests"]
    if note:
        yield f"{note[0].upper()}{note[1:]}."
    else:
        yield (
            f"With {plural(plan['bases'], 'base')}, the power to detect a difference of "
            f"{_points(abs(plan['effect']))} points is {_chance(plan['power'])}."
        )
    correction = f"Holm over {plural(tests, 'test')}" if tests > 1 else "one test"
    family = "" if design.tests else f" ({FAMILY})"
    yield f"Test: t over bases, {correction}{family}, α {ALPHA:g}."
    if plan["bases"] and plan["bases"] == clusters_to_reject(ALPHA, tests):
        yield f"A finding needs all {plan['bases']} bases to agree in sign."
    yield f"The mean difference of a base has a standard deviation of {_points(design.sd)} points."
    if design.sd == SD:
        low, high = SPREADS["silent ballots"]
        yield f"That is of debates; silent ballots of the same judge had {low:.2g} to {high:.2g} (--sd)."
