"""What a pilot run says about how much differences vary over bases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import pytest

from parley.analysis.malibu.pilot import pilot
from tests.analysis.test_heterogeneity import DYESTUFF
from tests.analysis.verdicts import single


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
