"""`parley power`: three questions and extremes; how much the differences of a run vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parley.analysis.stats.power import detectable
from parley.judging.malibu.bases import StudySize
from parley.judging.malibu.panel_data import PanelData
from tests.analysis.test_known_values import DYESTUFF
from tests.analysis.verdicts import single

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
    assert parley("power", "--bases", needed["bases"], "--json").json["effect"] <= 0.3
    assert parley("power", "--bases", needed["bases"] - 1, "--json").json["effect"] > 0.3
    both = parley("power", "--bases", needed["bases"], "--effect", "-0.3", "--json").json
    assert both["power"] == needed["power"]


def test_the_flags_reach_the_test(parley: Parley) -> None:
    flags = ("--tests", 7, "--power", 0.9, "--sd", 0.6)
    plan = parley("power", "--bases", 24, *flags, "--json").json
    assert plan["effect"] == pytest.approx(detectable(24, 0.6, tests=7, power=0.9))
    assert (plan["bases"], plan["sd"], plan["tests"], plan["note"]) == (24, 0.6, 7, "")


def test_the_standard_deviation_of_a_base(parley: Parley) -> None:
    """The paired t test of 122 scenarios had a power of 80%; so has the sign-flip test, if it is the only one."""
    flags = ("--sd", 1.7 * math.sqrt(1.9 / 4), "--tests", "1")
    assert parley("power", "--effect", "0.3", *flags, "--json").json["bases"] == 122
    assert parley("power", "--bases", "122", *flags, "--json").json["effect"] == pytest.approx(0.3, abs=0.002)
    assert "one test, α 0.05" in parley("power", "--bases", "122", *flags).out


def test_an_effect_of_zero_cannot_be_found(parley: Parley) -> None:
    plan = parley("power", "--effect", "0", "--json").json
    assert (plan["bases"], plan["power"]) == (None, None)
    assert "cannot be detected" in plan["note"]
    assert parley("power", "--effect", "1e-9").out.startswith("More than 10,000,000 bases would be needed.")


@pytest.mark.parametrize(
    "arguments",
    [
        "--bases 1000000000 --tests 1000000000",
        "--bases 2 --tests 1 --effect 1",
        "--bases 20 --sd 1e308",
        "--bases 20 --effect 1e308",
        "--bases 400 --tests 1000000",
        "--bases 20 --sd 1e-200",
    ],
)
def test_extremes_are_answered(parley: Parley, arguments: str) -> None:
    result = parley("power", *arguments.split())
    assert (result.status, result.err) == (0, "")
    assert max(map(len, result.out.splitlines())) < 300
    assert "nan" not in result.out


def spread(by_base: Mapping[str, Sequence[float]], *, base: bool = True) -> StudySize:
    """The spread of female minus male by base, given one value per scenario; male has 5 points everywhere."""
    rows = [
        single(f"{name}-{n}", identity, 5.0 + (difference if identity == "female" else 0.0))
        | ({"base": name} if base else {})
        for name, values in by_base.items()
        for n, difference in enumerate(values)
        for identity in ("female", "male")
    ]
    data = PanelData(pd.DataFrame(rows))
    return StudySize.of(data.table(data.models[0]).gaps("female", "male"))


def test_the_spread_is_that_of_the_means_of_bases_or_of_scenarios_without_one() -> None:
    # the means of Davies' six batches of dyestuff: 1505, 1528, 1564, 1498, 1600, 1470
    batches = {batch: [(value - 1500) / 100 for value in values] for batch, values in DYESTUFF.items()}
    by_base, by_scenario = spread(batches), spread(batches, base=False)
    assert by_base.clusters == 6
    assert by_base.sd == pytest.approx(pd.Series([1505, 1528, 1564, 1498, 1600, 1470]).std() / 100)
    assert by_scenario.clusters == 30
    assert by_scenario.sd == pytest.approx(pd.Series([x for values in batches.values() for x in values]).std())


def test_a_few_bases_with_most_of_the_variance_have_few_degrees_of_freedom() -> None:
    even, uneven = (
        spread({str(n): [value] for n, value in enumerate(values)}) for values in ([1.0, -1.0] * 10, [0.0] * 19 + [9.0])
    )
    assert even.df == 19
    assert uneven.df < 3
    (_, low, high), (_, wide_low, wide_high) = even.mde(1), uneven.mde(1)
    assert wide_high / wide_low > 2 * high / low
    assert all(math.isnan(number) for number in spread({"a": [1.0], "b": [1.0]}).mde(1)), "nothing varies"
