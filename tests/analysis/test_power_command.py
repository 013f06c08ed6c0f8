"""`parley power`: three questions, a pilot run and what it says about how much differences vary, and extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import parley as library
from parley.analysis.malibu.pilot import pilot
from parley.analysis.stats.power import ScoreSpread, clusters_needed, detectable, sign_flip_power
from tests.analysis.test_known_values import DYESTUFF
from tests.analysis.verdicts import single
from tests.panels import in_design

Parley = Callable[..., Any]


@pytest.fixture(autouse=True)
def _start_in_an_empty_folder(place: Path) -> None:
    """See `place`."""


def complaint(result: Any) -> str:
    """The one line on stderr of a command that was refused."""
    assert (result.status, result.out) == (2, "")
    (line,) = result.err.splitlines()
    return str(line)


def test_the_questions_answer_each_other(parley: Parley) -> None:
    needed = parley("power", "--effect", "0.3", "--json").json
    assert needed["power"] >= 0.8
    assert needed["scenarios"] == 10 * needed["bases"]
    assert parley("power", "--bases", needed["bases"], "--json").json["effect"] <= 0.3
    assert parley("power", "--bases", needed["bases"] - 1, "--json").json["effect"] > 0.3
    both = parley("power", "--bases", needed["bases"], "--effect", "-0.3", "--json").json
    assert both["power"] == needed["power"]


def test_the_flags_reach_the_test(parley: Parley) -> None:
    flags = ("--sd-base", 0.3, "--sd-scenario", 0.6, "--sd-residual", 1, "--per-base", 5, "--judges", 2, "--repeats", 3)
    plan = parley("power", "--bases", 24, "--tests", 7, "--alpha", 0.1, "--power", 0.9, *flags, "--json").json
    sd = ScoreSpread(base=0.3, scenario=0.6, residual=1.0).of_base(scenarios=5, judges=2, repeats=3)
    assert plan["sd_of_base"] == pytest.approx(sd)
    assert plan["effect"] == pytest.approx(detectable(24, sd, tests=7, alpha=0.1, power=0.9))
    assert (plan["bases"], plan["scenarios"], plan["tests"], plan["note"]) == (24, 120, 7, "")


def test_the_older_flags_for_standard_deviations(parley: Parley) -> None:
    """The paired t test of 122 scenarios had a power of 80%; so has the sign-flip test, if it is the only one."""
    flags = ("--sd", "1.7", "--icc", "0.3", "--judges", "4", "--sd-base", "0", "--per-base", "1", "--tests", "1")
    plan = parley("power", "--effect", "0.3", *flags, "--json").json
    assert (plan["scenarios"], plan["sd"], plan["icc"]) == (122, pytest.approx(1.7), pytest.approx(0.3))
    assert plan["design_effect"] == pytest.approx(1.9)
    assert plan["sd_of_base"] == pytest.approx(1.7 * math.sqrt(1.9 / 4))
    assert parley("power", "--bases", "122", *flags, "--json").json["effect"] == pytest.approx(0.3, abs=0.002)
    assert "one test, α 0.05" in parley("power", "--bases", "122", *flags).out


def test_alike_needs_29_bases(parley: Parley) -> None:
    """A report does not say "alike" with fewer, however little bases vary."""
    little = ("--sd-base", "0.001", "--sd-scenario", "0", "--sd-residual", "0")
    few, enough = (parley("power", "--bases", bases, *little, "--json").json for bases in (28, 29))
    assert (few["equivalence_power"], enough["equivalence_power"]) == (0, 1)
    assert few["bases_for_equivalence"] == 29
    assert [row["equivalence_power"] for row in few["table"]] == [0, 0, 1, 1]


def test_an_effect_of_zero_cannot_be_found(parley: Parley) -> None:
    plan = parley("power", "--effect", "0", "--json").json
    assert (plan["scenarios"], plan["power"]) == (None, None)
    assert "cannot be detected" in plan["note"]
    assert parley("power", "--effect", "1e-9").out.startswith("More than 10,000,000 bases would be needed.")


def pilot_run(path: str, **settings: Any) -> str:
    options = library.Options(cache=False, out=path)
    settings = {"suite": "full", "phases": [1], "rounds": 1, "identities": ["gender"], "yardstick": "off"} | settings
    assert library.run("malibu", options=options, **in_design(settings)).complete
    return path


JUDGE = "sim/judge?noise=1.0"


def test_the_standard_deviation_of_a_pilot_run(parley: Parley) -> None:
    run = pilot_run("pilot.sqlite", model=JUDGE, per_base=2)
    plan = parley("power", "--from", run, "--bases", "20", "--json").json
    assert (plan["bases"], plan["per_base"], plan["tests"]) == (20, 2, 1)
    sd = plan["sd_of_base"]
    assert sd > 0
    assert plan["effect"] == pytest.approx(detectable(20, sd))
    more = parley("power", "--from", run, "--per-base", "10", "--effect", "0.3", "--tests", "13", "--json").json
    wider = math.hypot(plan["sd_between_bases"], plan["sd_within_bases"] / math.sqrt(10))
    assert more["pilot_sd"] == pytest.approx(wider)
    upper = more["pilot_sd_upper"]
    assert more["sd_of_base"] == upper > wider, "sized by an upper confidence limit"
    assert more["bases"] == clusters_needed(0.3, upper, tests=13)
    assert more["power"] == pytest.approx(sign_flip_power(more["bases"], 0.3, upper, tests=13))
    alone = parley("power", "--from", run).out
    assert "the power to detect a difference of 0.10 points is 80%" in alone, "the margin, not the pilot's estimate"
    assert "upper 90% confidence limit" in alone
    assert "20 bases of 2.0 scenarios, pooled over 1 pair of identities" in alone
    (difference,) = [row for row in parley("report", run, "--json").json["differences"] if row["metric"] == "all"]
    caution = "is about the largest difference of the pilot run"
    assert caution in parley("power", "--from", run, "--effect", difference["estimate"]).out
    assert caution not in parley("power", "--from", run, "--effect", 2 * difference["estimate"]).out


def test_runs_that_are_not_pilots(parley: Parley) -> None:
    two = pilot_run("two.sqlite", model=[JUDGE, "sim/other?noise=2"], suite="tiny")
    assert "--model NAME" in complaint(parley("power", "--from", two))
    assert "--model NAME" in complaint(parley("power", "--from", two, "--model", "sim/unknown"))
    pairs = pilot_run("pairs.sqlite", model=JUDGE, suite="tiny", phases=[2])
    assert "phase-1 scores" in complaint(parley("power", "--from", pairs))


@pytest.mark.parametrize(
    "arguments",
    [
        "--bases 1000000000 --tests 1000000000",
        "--bases 2 --alpha 0.99 --tests 1 --effect 1",
        "--bases 20 --sd-base 1e308",
        "--bases 20 --effect 1e308 --margin 1e308",
        "--bases 400 --alpha 1e-49 --tests 1",
        "--bases 20 --sd-base 1e-200 --sd-scenario 0 --sd-residual 0",
    ],
)
def test_extremes_are_answered(parley: Parley, arguments: str) -> None:
    result = parley("power", *arguments.split())
    assert (result.status, result.err) == (0, "")
    assert max(map(len, result.out.splitlines())) < 300
    assert "nan" not in result.out


def verdicts(differences: Mapping[str, Sequence[float]], *, base: bool = True) -> pd.DataFrame:
    """Female minus male by base, one value per scenario; male has 5 points everywhere."""
    rows = [
        single(f"{name}-{n}", identity, 5.0 + (difference if identity == "female" else 0.0))
        | ({"base": name} if base else {})
        for name, values in differences.items()
        for n, difference in enumerate(values)
        for identity in ("female", "male")
    ]
    return pd.DataFrame(rows)


def dyestuff() -> dict[str, list[float]]:
    return {batch: [(value - 1500) / 100 for value in values] for batch, values in DYESTUFF.items()}


def test_variance_components_as_in_lme4() -> None:
    found = pilot(verdicts(dyestuff()))
    assert (found.bases, found.pairs, found.scenarios) == (6, 1, 5)
    assert found.between == pytest.approx(0.4200, abs=5e-5)
    assert found.within == pytest.approx(0.4951, abs=5e-5)
    # the six batches' means: 1505, 1528, 1564, 1498, 1600, 1470
    assert found.sd == pytest.approx(pd.Series([1505, 1528, 1564, 1498, 1600, 1470]).std() / 100)
    assert found.of_base() == found.sd == pytest.approx(found.of_base(5)), "a balanced run is its own prediction"
    assert found.of_base(1) == pytest.approx(math.hypot(found.between, found.within))


def test_unequal_bases_by_hand() -> None:
    # differences 1, 3 | 2 | 6, 6, 9: means 2, 2, 7; grand mean 4.5; within 2 + 0 + 6 = 8 on 3 degrees of freedom;
    # between 2·6.25 + 6.25 + 3·6.25 = 37.5 on 2; n0 = (6 - 14/6)/2 = 11/6
    found = pilot(verdicts({"a": [1, 3], "b": [2], "c": [6, 6, 9]}))
    assert found.within**2 == pytest.approx(8 / 3)
    assert found.between**2 == pytest.approx((18.75 - 8 / 3) / (11 / 6))
    assert found.sd**2 == pytest.approx((25 / 9 * 2 + 100 / 9) / 2)


def test_without_bases_scenarios_are_the_clusters() -> None:
    found = pilot(verdicts(dyestuff(), base=False))
    assert (found.bases, found.scenarios) == (30, 1)
    assert found.sd == pytest.approx(pd.Series([x for values in dyestuff().values() for x in values]).std())
    assert math.isnan(found.within)
    assert math.isnan(found.of_base(10)), "one scenario per base does not say what ten would give"


def test_a_few_bases_with_most_of_the_variance_have_few_degrees_of_freedom() -> None:
    even, skewed = (
        pilot(verdicts({str(n): [value] for n, value in enumerate(values)}))
        for values in ([1.0, -1.0] * 10, [0.0] * 19 + [9.0])
    )
    assert even.df == 19
    assert skewed.df < 3
    assert skewed.upper() / skewed.sd > 2 * even.upper() / even.sd
    assert (even.skewed, skewed.skewed) == (False, True)
    assert (even.planning_sd(), skewed.planning_sd()) == (even.upper(), skewed.upper() * 2.5**0.5)
