"""`parley power`: three questions, a pilot run, and what cannot be planned."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parley as library
from parley.analysis.stats.power import ScoreSpread, clusters_needed, detectable, sign_flip_power
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


# Three questions


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


def test_the_sentence_names_test_and_family(parley: Parley) -> None:
    result = parley("power", "--bases", "20")
    lines = result.out.splitlines()
    effect = detectable(
        20, ScoreSpread(base=0.15, scenario=0.65, residual=1.0).of_base(scenarios=10, judges=4), tests=3
    )
    assert lines[0] == f"With 20 bases of 10 scenarios, the power to detect a difference of {effect:.2f} points is 80%."
    assert lines[1] == ("Test: sign flips over bases, Holm over 3 tests (MALIBU's primary contrasts), α 0.05.")
    assert "t test" not in result.out
    assert "the power to show this within ±0.1 points is" in lines[3]
    assert re.search(r"^ 40 +400 ", result.out, re.M), "a table with other numbers of bases"
    assert "one test, α 0.05" in parley("power", "--bases", "20", "--tests", "1").out


def test_the_older_flags_for_standard_deviations(parley: Parley) -> None:
    """The paired t test of 122 scenarios had a power of 80%; so has the sign-flip test, if it is the only one."""
    flags = ("--sd", "1.7", "--icc", "0.3", "--judges", "4", "--sd-base", "0", "--per-base", "1", "--tests", "1")
    plan = parley("power", "--effect", "0.3", *flags, "--json").json
    assert (plan["scenarios"], plan["sd"], plan["icc"]) == (122, pytest.approx(1.7), pytest.approx(0.3))
    assert plan["design_effect"] == pytest.approx(1.9)
    assert plan["sd_of_base"] == pytest.approx(1.7 * math.sqrt(1.9 / 4))
    assert parley("power", "--bases", "122", *flags, "--json").json["effect"] == pytest.approx(0.3, abs=0.002)


# Too few


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


# A pilot run


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


def test_a_pilot_run_of_two_models(parley: Parley) -> None:
    run = pilot_run("two.sqlite", model=[JUDGE, "sim/other?noise=2"], suite="tiny")
    assert "--model NAME" in complaint(parley("power", "--from", run))
    assert "--model NAME" in complaint(parley("power", "--from", run, "--model", "sim/unknown"))


def test_runs_that_are_not_pilots(parley: Parley) -> None:
    assert "phase-1 scores" in complaint(
        parley("power", "--from", pilot_run("b.sqlite", model=JUDGE, suite="tiny", phases=[2]))
    )
    constant = pilot_run("c.sqlite", model="sim/judge?noise=0", per_base=1)
    plan = parley("power", "--from", constant)
    assert plan.status == 0 or "do not vary over bases" in complaint(plan)
    assert "no run file" in complaint(parley("power", "--from", "absent.sqlite"))
    with open("text.sqlite", "w") as file:
        file.write("not a run")
    assert parley("power", "--from", "text.sqlite").status != 0


# What cannot be planned


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--bases 99999999999999999999", "--bases must be at most 1000000000"),
        ("--effect 0.3 --judges 99999999999999999999", "--judges must be at most 1000000000"),
        ("--effect 0.3 --alpha 2", "alpha must lie between 0 and 1"),
        ("--effect 0.3 --alpha 1e-60", "alpha divided by the number of tests"),
        ("--effect 0.3 --power 1", "power must lie between 0 and 1"),
        ("--effect 0.3 --judges 0", "judges must be at least 1"),
        ("--effect 0.3 --tests 0", "tests must be at least 1"),
        ("--effect 0.3 --per-base 0", "per-base must be at least 1"),
        ("--bases 0", "bases must be at least 1"),
        ("--effect nan", "--effect must be a finite number"),
        ("--bases 20 --sd-base inf", "--sd-base must be a finite number"),
        ("--bases 20 --margin 0", "margin must be above 0"),
        ("--bases 20 --sd 0", "sd must be above 0"),
        ("--bases 20 --icc 1.5", "--icc must be at most 1"),
        ("--bases 20 --sd-base -1", "--sd-base must be at least 0"),
        ("--bases 20 --sd-base 0 --sd-scenario 0 --sd-residual 0", "at least one standard deviation must be above 0"),
        ("--bases 20 --sd 1 --sd-residual 1", "leave out --sd-residual: it has no effect with --sd"),
        ("--bases 20 --model sim/judge", "--model needs --from"),
        ("--from x.sqlite --judges 2", "leave out --judges: it has no effect with --from"),
        ("--from x.sqlite --sd-base 2", "leave out --sd-base: it has no effect with --from"),
    ],
)
def test_one_line_on_what_cannot_be_planned(parley: Parley, arguments: str, words: str) -> None:
    assert words in complaint(parley("power", *arguments.split()))


@pytest.mark.parametrize(
    "arguments",
    [
        "--bases 1000000000 --tests 1000000000",
        "--bases 1 --alpha 0.9 --tests 1",
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
