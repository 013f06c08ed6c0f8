"""`parley power`: the bases that an effect needs, the effect that a number of bases can detect, and what they can show
to be alike, by the test that reports use: sign flips over bases, Holm-corrected over the planned comparisons.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from parley.base.errors import ConfigError, ScenarioError
from parley.base.text import plural, visible
from parley.cli.shared import AddParser, need_analysis
from parley.cli.tables import plain_table
from parley.runs import explain_damage
from parley.scenarios.identities import select

if TYPE_CHECKING:
    import pandas as pd

MOST = 10**9
"""Maximum of bases, judges or tests: beyond it t is the normal distribution, and no study has as many."""
PER_BASE, JUDGES = 10, 4
SD_BASE, SD_SCENARIO, SD_RESIDUAL = 0.15, 0.65, 1.0
"""Close to a 1.5B judge's on 62 scenarios of 13 bases (0.11 between bases, 0.85 for a panel's score)."""
SD, ICC = 1.7, 0.3
MALIBU_PAIRS = "MALIBU's pairs of identities within a category"
ASSUMES = "bases are independent; the differences of their means are normally distributed; Holm's first step"
WITHOUT_EFFECT = "an effect of 0 cannot be detected; to plan a test that identities are alike, see the column 'alike'"
COUNTS = ("bases", "per_base", "judges", "repeats", "tests")
NUMBERS = ("effect", "margin", "alpha", "power", "sd", "icc", "sd_base", "sd_scenario", "sd_residual")
FROM_RUN = ("judges", "repeats", "sd", "icc", "sd_base", "sd_scenario", "sd_residual")
"""What a pilot run stands for."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        description="Find what a design can detect with the test of the reports: sign flips over bases, with Holm's "
        "correction. Give --effect (how many bases does it need?), --bases (what can they detect?), or both."
    )
    parser.add_argument(
        "--effect", type=float, help="difference between two identities, in points; how many bases does it need?"
    )
    parser.add_argument("--bases", type=int, help="number of bases; what can they detect?")
    parser.add_argument("--per-base", type=int, metavar="N", help=f"scenarios per base (default: {PER_BASE})")
    parser.add_argument("--judges", type=int, help=f"judges per scenario (default: {JUDGES})")
    parser.add_argument("--repeats", type=int, help="conversations per scenario and identity (default: 1)")
    parser.add_argument(
        "--tests",
        type=int,
        help="number of planned comparisons, for Holm's correction (default: 13, the pairs of MALIBU's ten identities "
        "within a category; with --from: those of the run)",
    )
    parser.add_argument(
        "--margin", type=float, default=0.1, help="largest difference that counts as alike (default: 0.1 points)"
    )
    parser.add_argument(
        "--sd-base", type=float, metavar="SD", help=f"standard deviation of base × identity (default: {SD_BASE})"
    )
    parser.add_argument(
        "--sd-scenario",
        type=float,
        metavar="SD",
        help=f"standard deviation of scenario × identity, within a base (default: {SD_SCENARIO})",
    )
    parser.add_argument(
        "--sd-residual",
        type=float,
        metavar="SD",
        help=f"residual standard deviation of one judge's score (default: {SD_RESIDUAL:g})",
    )
    parser.add_argument(
        "--sd",
        type=float,
        help="instead of the last two, with --icc: standard deviation of one judge's difference on one scenario "
        f"(default: {SD})",
    )
    parser.add_argument(
        "--icc", type=float, help=f"intraclass correlation of judges in one conversation (default: {ICC})"
    )
    parser.add_argument(
        "--from", dest="run", metavar="RUN", help="take standard deviations, bases and tests from a pilot run of MALIBU"
    )
    parser.add_argument("--model", help="the model of the pilot run, if it has several")
    parser.add_argument(
        "--labels", metavar="RUN", help="find how many more labels of this run an interval of --width needs"
    )
    parser.add_argument(
        "--width", type=float, help="with --labels: width of the interval (default: half of its present width)"
    )
    parser.add_argument("--alpha", type=float, default=0.05, help="significance level (default: 0.05)")
    parser.add_argument("--power", type=float, default=0.8, help="wanted power (default: 0.8)")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.set_defaults(handler=_power)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """What is known before the question is answered."""

    sd: float
    """SD of a base's mean difference between two identities, or its upper limit from a pilot run."""
    sized_by: str
    """What the SD is, in words."""
    source: str
    bases: int | None
    per_base: float
    tests: int
    family: str
    columns: dict[str, Any]
    """The columns of the plan that only explain the others."""

    def clusters(self, bases: int) -> str:
        each = plural(int(self.per_base), "scenario") if self.per_base % 1 == 0 else f"{self.per_base:.1f} scenarios"
        return f"{plural(bases, 'base')} of {each}"


def _power(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.reporting.report import json_values

    if parsed.labels:
        return _labels(parsed)
    _check_flags(parsed)
    design = _from_run(parsed) if parsed.run else _from_flags(parsed)
    try:
        plan, table = _plan(parsed, design)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if parsed.json:
        print(json.dumps(json_values(plan | {"table": table}), indent=2, ensure_ascii=False))
        return 0
    for line in _sentences(parsed, design, plan):
        print(visible(line))
    Console().print(plain_table("What other numbers of bases would give", _shown(table, parsed, design)))
    return 0


def _labels(parsed: argparse.Namespace) -> int:
    """How many more labels each of a run's corrected estimates needs."""
    from parley.analysis.reporting.corrected import labels_sentence
    from parley.analysis.reporting.report import SIMULATED, json_values
    from parley.reports.labelled import labels_table, run_lines

    typed = [name for name in ("effect", "run", "model", *COUNTS, *FROM_RUN) if getattr(parsed, name) is not None]
    if typed:
        flag = "--from" if typed[0] == "run" else _flag(typed[0])
        raise ConfigError(f"leave out {flag}: it has no effect with --labels")
    if parsed.width is not None and not 0 < parsed.width < math.inf:
        raise ConfigError(f"--width must be a number above 0, got {parsed.width:g}")
    path = Path(parsed.labels)
    with explain_damage(path):
        lines = run_lines(path)
    table = labels_table(lines, parsed.width)
    if parsed.json:
        print(json.dumps(json_values(table), indent=2, ensure_ascii=False))
        return 0
    simulated = f"{SIMULATED} raters. " if lines[0].simulated else ""
    sentence = labels_sentence(lines[0], parsed.width)
    print(visible(f"{simulated}{lines[0].metric}, {lines[0].name}: {sentence[0].lower()}{sentence[1:]}"))
    title = f"{simulated}Labels that an interval of the wanted width takes"
    Console().print(plain_table(title, table.drop(columns="raters")))
    return 0


def _check_flags(parsed: argparse.Namespace) -> None:
    if parsed.width is not None:
        raise ConfigError("--width needs --labels RUN: it is the width of an interval that labels correct")
    if parsed.effect is None and parsed.bases is None and not parsed.run:
        raise ConfigError(
            "give --effect (how many bases does it need?), --bases (what can they detect?), or --from RUN (a pilot run)"
        )
    for name in NUMBERS:
        if not math.isfinite(getattr(parsed, name) or 0.0):
            raise ConfigError(f"{_flag(name)} must be a finite number, got {getattr(parsed, name)}")
    for name in COUNTS:
        value = getattr(parsed, name)
        if value is not None and value > MOST:
            raise ConfigError(f"{_flag(name)} must be at most {MOST:,}, got {value}")
        if value is not None and value < 1:
            raise ConfigError(f"{_flag(name)} must be at least 1, got {value}")
    if parsed.model and not parsed.run:
        raise ConfigError("--model needs --from RUN: it chooses a model of the pilot run")
    if parsed.run and (typed := [name for name in FROM_RUN if getattr(parsed, name) is not None]):
        raise ConfigError(f"leave out {_flag(typed[0])}: --from takes it from the run")
    if (parsed.sd, parsed.icc) != (None, None) and (parsed.sd_scenario, parsed.sd_residual) != (None, None):
        raise ConfigError("--sd and --icc replace --sd-scenario and --sd-residual: give one pair or the other")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _from_flags(parsed: argparse.Namespace) -> _Design:
    from parley.analysis.stats.power import ScoreSpread

    base, scenario, residual = (
        default if value is None else value
        for value, default in (
            (parsed.sd_base, SD_BASE),
            (parsed.sd_scenario, SD_SCENARIO),
            (parsed.sd_residual, SD_RESIDUAL),
        )
    )
    if (parsed.sd, parsed.icc) != (None, None):
        sd, icc = SD if parsed.sd is None else parsed.sd, ICC if parsed.icc is None else parsed.icc
        if not sd > 0 or not 0 <= icc <= 1:
            raise ConfigError("--sd must be above 0" if not sd > 0 else "--icc must lie between 0 and 1")
        scenario, residual = (sd * math.sqrt(share / 2) for share in (icc, 1 - icc))
    if min(base, scenario, residual) < 0 or max(base, scenario, residual) == 0:
        raise ConfigError("standard deviations must be at least 0, and at least one of them above 0")
    judges, repeats = parsed.judges or JUDGES, parsed.repeats or 1
    per_base = parsed.per_base or PER_BASE
    within = math.hypot(scenario, residual)
    icc = (scenario / within) ** 2 if within else math.nan
    tests = parsed.tests or sum(1 for _ in select(["all"]).pairs())
    return _Design(
        sd=ScoreSpread(base=base, scenario=scenario, residual=residual).of_base(
            scenarios=per_base, judges=judges, repeats=repeats
        ),
        sized_by="a standard deviation of",
        source=f"base × identity {base:.3g}, scenario × identity {scenario:.3g}, residual {residual:.3g} (standard "
        f"deviations of a score), {plural(judges, 'judge')}, {plural(repeats, 'repeat')}",
        bases=parsed.bases,
        per_base=per_base,
        tests=tests,
        family="" if parsed.tests else MALIBU_PAIRS,
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


def _from_run(parsed: argparse.Namespace) -> _Design:
    from parley.analysis.malibu.pilot import UPPER, pilot
    from parley.analysis.reporting.verdicts import MissingColumns
    from parley.reports import load_run

    path = Path(parsed.run)
    with explain_damage(path):
        run = load_run(path)
    if run.study != "malibu":
        raise ConfigError(f"--from needs a run of malibu; {path} is a run of '{run.study}'")
    model, verdicts = _one_model(run.verdicts, parsed.model, path)
    pairs = _planned_pairs(run.config.get("identities"))
    try:
        found = pilot(verdicts, pairs)
    except MissingColumns as error:
        raise ConfigError(f"{path} cannot be read as a run of malibu: {error}") from None
    if not found.pairs:
        raise ConfigError(f"{path} needs phase-1 scores of two identities of one category on at least two bases")
    if not found.sd > 0:
        raise ConfigError(f"{path}: differences between identities do not vary over bases, so nothing can be planned")
    if parsed.per_base is not None and math.isnan(found.within):
        raise ConfigError(f"--per-base needs a pilot run with several scenarios per base; {path} has one")
    # The report says what this run finds; a new study is sized by an upper limit of a small sample's SD.
    as_run = parsed.effect is None and parsed.bases in (None, found.bases) and parsed.per_base is None
    limit = f"an upper {UPPER:.0%} confidence limit of the standard deviation of"
    return _Design(
        sd=found.sd if as_run else found.upper(parsed.per_base),
        sized_by="a standard deviation of" if as_run else limit,
        source=f"{path.name} ({model}), {plural(found.bases, 'base')} of {found.scenarios:.1f} scenarios, pooled over "
        f"{plural(found.pairs, 'pair')} of identities; judges and repeats as there",
        bases=parsed.bases or (found.bases if parsed.effect is None else None),
        per_base=parsed.per_base or found.scenarios,
        tests=parsed.tests or len(pairs or ()) or found.pairs,
        family="" if parsed.tests else "the run's pairs of identities within a category",
        columns={
            "pilot_bases": found.bases,
            "pilot_pairs": found.pairs,
            "pilot_sd": found.of_base(parsed.per_base),
            "pilot_sd_upper": found.upper(parsed.per_base),
            "sd_between_bases": found.between,
            "sd_within_bases": found.within,
        },
    )


def _one_model(verdicts: pd.DataFrame, chosen: str | None, path: Path) -> tuple[str, pd.DataFrame]:
    models = [str(model) for model in verdicts["model"].unique()]
    fitting = [model for model in models if chosen in (None, model, model.partition("?")[0])]
    if len(fitting) != 1:
        raise ConfigError(f"choose one model of {path} with --model NAME: {', '.join(models)}")
    return fitting[0], verdicts[verdicts["model"] == fitting[0]]


def _planned_pairs(identities: object) -> list[tuple[str, str]] | None:
    """The pairs that the run's config plans; None if it has the suite's identities, or a file that is gone."""
    if not isinstance(identities, list) or not identities:
        return None
    try:
        return list(select([str(name) for name in identities]).pairs())
    except ScenarioError:
        return None


def _plan(parsed: argparse.Namespace, design: _Design) -> tuple[dict[str, Any], pd.DataFrame]:
    from parley.analysis.stats.power import (
        MAX_CLUSTERS,
        clusters_for_equivalence,
        clusters_needed,
        detectable,
        equivalence_power,
        sign_flip_power,
        too_few,
    )

    family: dict[str, Any] = {"tests": design.tests, "alpha": parsed.alpha}
    note, bases, effect, power = "", design.bases, parsed.effect, parsed.power
    if bases is None:
        bases = clusters_needed(effect, design.sd, power=power, **family)
        if bases is None:
            note = f"more than {MAX_CLUSTERS:,} bases would be needed" if effect else WITHOUT_EFFECT
            power = math.nan
    else:
        note = too_few(bases, **family)
        if effect is None:
            effect, power = detectable(bases, design.sd, power=power, **family), 0.0 if note else power
    if bases is not None and parsed.effect is not None:
        power = sign_flip_power(bases, effect, design.sd, **family)
    alike = math.nan if bases is None else equivalence_power(bases, design.sd, parsed.margin, **family)
    plan = {
        "design": "paired",
        "bases": bases,
        "per_base": design.per_base,
        "scenarios": None if bases is None else round(bases * design.per_base),
        "effect": effect,
        "power": power,
        "tests": design.tests,
        "family": design.family,
        "alpha": parsed.alpha,
        "sd_of_base": design.sd,
        **design.columns,
        "margin": parsed.margin,
        "equivalence_power": alike,
        "bases_for_equivalence": clusters_for_equivalence(design.sd, parsed.margin, power=parsed.power, **family),
        "assumes": ASSUMES,
        "note": note,
    }
    return plan, _table(parsed, design, bases)


def _table(parsed: argparse.Namespace, design: _Design, bases: int | None) -> pd.DataFrame:
    """Half, one, two and four times the bases: what they find and what they can show to be alike."""
    import pandas as pd

    from parley.analysis.stats.power import detectable, equivalence_power, sign_flip_power

    start = bases or 20
    rows = []
    for count in sorted({max(start // 2, 1), start, min(2 * start, MOST), min(4 * start, MOST)}):
        family: dict[str, Any] = {"tests": design.tests, "alpha": parsed.alpha}
        row: dict[str, float] = {"bases": count, "scenarios": round(count * design.per_base)}
        if parsed.effect:
            row["power"] = sign_flip_power(count, parsed.effect, design.sd, **family)
        row["detectable"] = detectable(count, design.sd, power=parsed.power, **family)
        row["detectable_alone"] = detectable(count, design.sd, power=parsed.power, alpha=parsed.alpha)
        row["equivalence_power"] = equivalence_power(count, design.sd, parsed.margin, **family)
        rows.append(row)
    return pd.DataFrame(rows)


def _shown(table: pd.DataFrame, parsed: argparse.Namespace, design: _Design) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "bases": ("bases", "{:,}".format),
        "scenarios": ("scenarios", "{:,}".format),
        "power": ("power", _chance),
        "detectable": (f"MDE at {parsed.power:.0%} power", _points),
        "detectable_alone": ("MDE, single test", _points),
        "equivalence_power": (f"'alike' within ±{parsed.margin:g}", _chance),
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


def _sentences(parsed: argparse.Namespace, design: _Design, plan: dict[str, Any]) -> Iterator[str]:
    note, bases = plan["note"], plan["bases"]
    if note:
        yield f"{note[0].upper()}{note[1:]}."
    else:
        yield (
            f"With {design.clusters(bases)}, the power to detect a difference of {_points(abs(plan['effect']))} points "
            f"is {_chance(plan['power'])}."
        )
    correction = f"Holm over {plural(design.tests, 'test')}" if design.tests > 1 else "one test"
    family = f" ({design.family})" if design.family else ""
    yield f"Test: sign flips over bases, {correction}{family}, α {parsed.alpha:g}."
    yield f"The mean difference of a base has {design.sized_by} {_points(design.sd)} points: {design.source}."
    needed = plan["bases_for_equivalence"]
    enough = "more than 10 million bases" if needed is None else plural(needed, "base")
    if bases is not None:
        yield (
            f"If two identities are treated alike, the power to show this within ±{parsed.margin:g} points is "
            f"{_chance(plan['equivalence_power'])}; a power of {parsed.power:.0%} needs {enough}."
        )
