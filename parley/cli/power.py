"""`parley power`: the bases that an effect needs, the effect that a number of bases can detect, and what they can show
to be alike, by the test that reports use: sign flips over bases, Holm-corrected over the planned comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.cli.command import Answer, Command
from parley.cli.shared import need_analysis
from parley.cli.tables import plain_table
from parley.runs import explain_damage

if TYPE_CHECKING:
    import pandas as pd

MOST = 10**9
"""Maximum of bases, judges or tests: beyond it t is the normal distribution, and no study has as many."""
PER_BASE, JUDGES = 10, 4
SD_BASE, SD_SCENARIO, SD_RESIDUAL = 0.15, 0.65, 1.0
"""Close to a 1.5B judge's on 62 scenarios of 13 bases (0.11 between bases, 0.85 for a panel's score)."""
SD, ICC = 1.7, 0.3
PRIMARY_CONTRASTS = "MALIBU's primary contrasts"
ASSUMES = "bases are independent; the differences of their means are normally distributed; Holm's first step"
WITHOUT_EFFECT = "an effect of 0 cannot be detected; to plan a test that identities are alike, see the column 'alike'"
SAME_ESTIMATE = 0.15
"""An effect this close to the pilot's largest difference, as a share of it, may have been taken from there."""
FROM_RUN = ("judges", "repeats", "sd", "icc", "sd_base", "sd_scenario", "sd_residual")
"""What a pilot run stands for."""
Count = Annotated[int | None, Field(ge=1, le=MOST)]
Spread = Annotated[float | None, Field(ge=0)]


class Power(Command):
    """Find what a design can detect with the test of the reports: sign flips over bases, with Holm's correction. Give
    --effect (how many bases does it need?), --bases (what can they detect?), or both. Without either, the effect is
    --margin."""

    needs: ClassVar = {"model": "run"}
    alone: ClassVar = {
        "run": FROM_RUN,
        "sd": ("sd_scenario", "sd_residual"),
        "icc": ("sd_scenario", "sd_residual"),
    }

    effect: float | None = Field(
        None,
        description="difference between two identities, in points; how many bases does it need? (default without "
        "--bases: --margin; do not give a pilot run's own estimate, which is too large where it is significant)",
    )
    bases: Count = Field(None, description="number of bases; what can they detect?")
    per_base: Count = Field(None, description=f"scenarios per base (default: {PER_BASE})")
    judges: Count = Field(None, title="N", description=f"judges per scenario (default: {JUDGES})")
    repeats: Count = Field(None, description="conversations per scenario and identity (default: 1)")
    tests: Count = Field(
        None,
        description="number of planned comparisons, for Holm's correction (default: 3, MALIBU's primary contrasts; its "
        "other pairs of identities are 12; with --from: those of the run's headline)",
    )
    margin: float = Field(0.1, description="largest difference that counts as alike, in points")
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
        description="instead of the last two, with --icc: standard deviation of one judge's difference on one scenario "
        f"(default: {SD})",
    )
    icc: float | None = Field(
        None, ge=0, le=1, description=f"intraclass correlation of judges in one conversation (default: {ICC})"
    )
    run: Path | None = Field(
        None,
        alias="from",
        title="RUN",
        description="take standard deviations, bases and tests from a pilot run of MALIBU",
    )
    model: str | None = Field(None, description="the model of the pilot run, if it has several")
    alpha: float = Field(0.05, description="significance level")
    power: float = Field(0.8, description="wanted power")

    @property
    def planned(self) -> float | None:
        """The effect that bases are asked for; None where the bases are given, and the effect that they detect asked.

        Never a pilot's own estimate: studies sized by one that was significant had a power of 30% (8 bases) and 60%
        (20 bases) in simulations, not the 80% they were promised (`python -m tests.true_sentences --only promises`).
        """
        return self.margin if (self.effect, self.bases) == (None, None) else self.effect

    def answer(self) -> Answer:
        need_analysis()
        from parley.analysis.reporting.report import json_values

        design = _from_run(self, self.run) if self.run else _from_flags(self)
        try:
            plan, table = _plan(self, design)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        shown = plain_table("What other numbers of bases would give", _shown(table, self, design))
        return Answer(json_values(plan | {"table": table}), [*_sentences(self, design, plan), shown])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """What is known before the question is answered."""

    sd: float
    """SD of a base's mean difference between two identities, or its upper limit from a pilot run."""
    sized_by: str
    """What the SD is, in words."""
    source: str
    per_base: float
    tests: int
    family: str
    caution: str = ""
    columns: dict[str, Any]
    """The columns of the plan that only explain the others."""

    def clusters(self, bases: int) -> str:
        each = plural(int(self.per_base), "scenario") if self.per_base % 1 == 0 else f"{self.per_base:.1f} scenarios"
        return f"{plural(bases, 'base')} of {each}"


def _from_flags(asked: Power) -> _Design:
    from parley.analysis.malibu.planned import CONTRASTS
    from parley.analysis.stats.power import ScoreSpread

    base, scenario, residual = (
        default if value is None else value
        for value, default in (
            (asked.sd_base, SD_BASE),
            (asked.sd_scenario, SD_SCENARIO),
            (asked.sd_residual, SD_RESIDUAL),
        )
    )
    if (asked.sd, asked.icc) != (None, None):
        sd, icc = SD if asked.sd is None else asked.sd, ICC if asked.icc is None else asked.icc
        scenario, residual = (sd * math.sqrt(share / 2) for share in (icc, 1 - icc))
    if max(base, scenario, residual) == 0:
        raise ConfigError("at least one standard deviation must be above 0")
    judges, repeats = asked.judges or JUDGES, asked.repeats or 1
    per_base = asked.per_base or PER_BASE
    within = math.hypot(scenario, residual)
    icc = (scenario / within) ** 2 if within else math.nan
    tests = asked.tests or len(CONTRASTS)
    return _Design(
        sd=ScoreSpread(base=base, scenario=scenario, residual=residual).of_base(
            scenarios=per_base, judges=judges, repeats=repeats
        ),
        sized_by="a standard deviation of",
        source=f"base × identity {base:.3g}, scenario × identity {scenario:.3g}, residual {residual:.3g} (standard "
        f"deviations of a score), {plural(judges, 'judge')}, {plural(repeats, 'repeat')}",
        per_base=per_base,
        tests=tests,
        family="" if asked.tests else PRIMARY_CONTRASTS,
        columns={
            "judges": judges,
            "repeats": repeats,
            "sd": math.sqrt(2) * within,
            "icc": icc,
            "design_effect": 1 + (judges - 1) * icc,
            "sd_base": base,
            "sd_scenario": scenario,
            "sd_residual": residual,
        },
    )


def _from_run(asked: Power, path: Path) -> _Design:
    from parley.analysis.malibu.panel import panel_data
    from parley.analysis.malibu.pilot import MORE_IF_SKEWED, UPPER, pilot
    from parley.analysis.malibu.planned import main_family
    from parley.analysis.reporting.verdicts import MissingColumns
    from parley.reports import load_run

    with explain_damage(path):
        run = load_run(path)
    if run.study != "malibu":
        raise ConfigError(f"--from needs a run of malibu; {path} is a run of '{run.study}'")
    model, verdicts = _one_model(run.verdicts, asked.model, path)
    try:
        data = panel_data(verdicts)
        found, main = pilot(data), main_family(data, model)
    except MissingColumns as error:
        raise ConfigError(f"{path} cannot be read as a run of malibu: {error}") from None
    if not found.pairs:
        raise ConfigError(f"{path} needs phase-1 scores of two identities of one category on at least two bases")
    if not found.sd > 0:
        raise ConfigError(f"{path}: differences between identities do not vary over bases, so nothing can be planned")
    if asked.per_base is not None and math.isnan(found.within):
        raise ConfigError(f"--per-base needs a pilot run with several scenarios per base; {path} has one")
    # The report says what this run finds; a new study is sized by an upper limit of a small sample's SD.
    as_run = (asked.effect, asked.bases, asked.per_base) == (None, found.bases, None)
    limit = f"an upper {UPPER:.0%} confidence limit of the standard deviation of"
    if found.skewed:  # the bases that a difference needs grow with the square of the SD
        limit = f"{limit.removesuffix(' of')}, raised for {MORE_IF_SKEWED:g} times the bases as the pilot is skewed, of"
    return _Design(
        sd=found.sd if as_run else found.planning_sd(asked.per_base),
        sized_by="a standard deviation of" if as_run else limit,
        source=f"{path.name} ({model}), {plural(found.bases, 'base')} of {found.scenarios:.1f} scenarios, pooled over "
        f"{plural(found.pairs, 'pair')} of identities; judges and repeats as there",
        per_base=asked.per_base or found.scenarios,
        tests=asked.tests or len(main),
        family="" if asked.tests else "as in the run's headline",
        caution=_own_estimate(asked.effect, found.largest),
        columns={
            "pilot_bases": found.bases,
            "pilot_pairs": found.pairs,
            "pilot_sd": found.of_base(asked.per_base),
            "pilot_sd_upper": found.upper(asked.per_base),
            "sd_between_bases": found.between,
            "sd_within_bases": found.within,
        },
    )


def _own_estimate(effect: float | None, largest: float) -> str:
    """A caution where the effect is about the largest difference of the pilot run; "" elsewhere."""
    if effect is None or not abs(abs(effect) - largest) <= SAME_ESTIMATE * largest:
        return ""
    return (
        f"{_points(abs(effect))} is about the largest difference of the pilot run ({_points(largest)}). The largest of "
        "several estimates is usually too large, so expect less power; plan with the smallest difference that matters."
    )


def _one_model(verdicts: pd.DataFrame, chosen: str | None, path: Path) -> tuple[str, pd.DataFrame]:
    models = [str(model) for model in verdicts["model"].unique()]
    fitting = [model for model in models if chosen in (None, model, model.partition("?")[0])]
    if len(fitting) != 1:
        raise ConfigError(f"choose one model of {path} with --model NAME: {', '.join(models)}")
    return fitting[0], verdicts[verdicts["model"] == fitting[0]]


def _plan(asked: Power, design: _Design) -> tuple[dict[str, Any], pd.DataFrame]:
    from parley.analysis.malibu.conclusions import ENOUGH_FOR_ALIKE
    from parley.analysis.stats.power import (
        MAX_CLUSTERS,
        clusters_for_equivalence,
        clusters_needed,
        detectable,
        sign_flip_power,
        too_few,
    )

    family: dict[str, Any] = {"tests": design.tests, "alpha": asked.alpha}
    note, bases, effect, power = "", asked.bases, asked.planned, asked.power
    if bases is None:
        assert effect is not None, "without bases there is an effect"
        bases = clusters_needed(effect, design.sd, power=power, **family)
        if bases is None:
            note = f"more than {MAX_CLUSTERS:,} bases would be needed" if effect else WITHOUT_EFFECT
            power = math.nan
    else:
        note = too_few(bases, **family)
        if effect is None:
            effect, power = detectable(bases, design.sd, power=power, **family), 0.0 if note else power
    if bases is not None and asked.planned is not None:
        power = sign_flip_power(bases, asked.planned, design.sd, **family)
    for_alike = clusters_for_equivalence(design.sd, asked.margin, power=asked.power, **family)
    plan = {
        "design": "paired",
        "bases": bases,
        "per_base": design.per_base,
        "scenarios": None if bases is None else round(bases * design.per_base),
        "effect": effect,
        "power": power,
        "tests": design.tests,
        "family": design.family,
        "alpha": asked.alpha,
        "sd_of_base": design.sd,
        **design.columns,
        "margin": asked.margin,
        "equivalence_power": math.nan if bases is None else _alike(bases, asked, design),
        "bases_for_equivalence": None if for_alike is None else max(for_alike, ENOUGH_FOR_ALIKE),
        "assumes": ASSUMES,
        "note": note,
    }
    return plan, _table(asked, design, bases)


def _alike(bases: int, asked: Power, design: _Design) -> float:
    """The chance of "alike" where two identities are; with too few bases a report does not say it."""
    from parley.analysis.malibu.conclusions import ENOUGH_FOR_ALIKE
    from parley.analysis.stats.power import equivalence_power

    shown = equivalence_power(bases, design.sd, asked.margin, tests=design.tests, alpha=asked.alpha)
    return shown if bases >= ENOUGH_FOR_ALIKE else 0.0


def _table(asked: Power, design: _Design, bases: int | None) -> pd.DataFrame:
    """Half, one, two and four times the bases: what they find and what they can show to be alike."""
    import pandas as pd

    from parley.analysis.stats.power import detectable, sign_flip_power

    start = bases or 20
    rows = []
    for count in sorted({max(start // 2, 1), start, min(2 * start, MOST), min(4 * start, MOST)}):
        family: dict[str, Any] = {"tests": design.tests, "alpha": asked.alpha}
        row: dict[str, float] = {"bases": count, "scenarios": round(count * design.per_base)}
        if asked.planned:
            row["power"] = sign_flip_power(count, asked.planned, design.sd, **family)
        row["detectable"] = detectable(count, design.sd, power=asked.power, **family)
        row["detectable_alone"] = detectable(count, design.sd, power=asked.power, alpha=asked.alpha)
        row["equivalence_power"] = _alike(count, asked, design)
        rows.append(row)
    return pd.DataFrame(rows)


def _shown(table: pd.DataFrame, asked: Power, design: _Design) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "bases": ("bases", "{:,}".format),
        "scenarios": ("scenarios", "{:,}".format),
        "power": ("power", _chance),
        "detectable": (f"MDE at {asked.power:.0%} power", _points),
        "detectable_alone": ("MDE, single test", _points),
        "equivalence_power": (f"'alike' within ±{asked.margin:g}", _chance),
    }
    if design.tests == 1:
        del columns["detectable_alone"]
    return pd.DataFrame({title: table[name].map(form) for name, (title, form) in columns.items() if name in table})


def _chance(value: float) -> str:
    if 0 < value < 0.005 or 0.995 <= value < 1:
        return "below 1%" if value < 0.5 else "over 99%"
    return f"{value:.0%}"


def _points(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.2f}" if 0.1 <= value < 1000 else f"{value:.3g}"


def _sentences(asked: Power, design: _Design, plan: dict[str, Any]) -> Iterator[str]:
    note, bases = plan["note"], plan["bases"]
    if note:
        yield f"{note[0].upper()}{note[1:]}."
    else:
        yield (
            f"With {design.clusters(bases)}, the power to detect a difference of {_points(abs(plan['effect']))} points "
            f"is {_chance(plan['power'])}."
        )
    if design.caution:
        yield design.caution
    correction = f"Holm over {plural(design.tests, 'test')}" if design.tests > 1 else "one test"
    family = f" ({design.family})" if design.family else ""
    yield f"Test: sign flips over bases, {correction}{family}, α {asked.alpha:g}."
    yield f"The mean difference of a base has {design.sized_by} {_points(design.sd)} points: {design.source}."
    needed = plan["bases_for_equivalence"]
    enough = "more than 10 million bases" if needed is None else plural(needed, "base")
    if bases is not None:
        yield (
            f"If two identities are treated alike, the power to show this within ±{asked.margin:g} points is "
            f"{_chance(plan['equivalence_power'])}; a power of {asked.power:.0%} needs {enough}."
        )
