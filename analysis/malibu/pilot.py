"""What a small run says about the design of a larger one: how much differences between identities vary over bases."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from parley.analysis.malibu.panel import Verdicts, panel_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """Standard deviations of the difference between two identities in phase 1, pooled over pairs of identities.

    Args:
        bases: Bases with a difference.
        pairs: Pairs of identities within a category.
        scenarios: Mean number of scenarios per base.
        sd: Of a base's mean difference, as the run has it.
        between: Of a base's true difference (one-way analysis of variance); NaN where no base has two scenarios.
        within: Of a scenario's difference, within a base; NaN where no base has two scenarios.
    """

    bases: int
    pairs: int
    scenarios: float
    sd: float
    between: float
    within: float

    def of_base(self, scenarios: int | None = None) -> float:
        """The standard deviation of a base's mean difference with this many scenarios per base; None: as in the run."""
        return self.sd if scenarios is None else math.sqrt(self.between**2 + self.within**2 / scenarios)


def pilot(verdicts: Verdicts, pairs: Collection[tuple[str, str]] | None = None) -> Pilot:
    """The variation over bases in a run of one model; without a base a scenario is a base of its own.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        pairs: The pairs of identities that are compared; None: all within a category.
    """
    data = panel_data(verdicts)
    scores = data.labelled_scores
    means = scores.groupby([scores["scenario"].astype(str), "identity"], observed=True)["value"].mean().unstack()
    within_category = ((x, y) for x, y in combinations(means.columns, 2) if data.categories[x] == data.categories[y])
    bases = _bases(data.verdicts, means.index)
    squares = pd.DataFrame(
        [_squares(means[x] - means[y], bases) for x, y in pairs or within_category if {x, y} <= {*means.columns}],
        columns=list(_SQUARES),
    )
    squares = squares[squares["bases"] > 1]
    total = squares.sum()
    df, df_within = total["bases"] - len(squares), total["scenarios"] - total["bases"]
    within2 = total["within"] / df_within if df_within else math.nan
    # The expected mean square between bases is that within, plus n0 times the variance between them.
    between2 = (total["between"] / df - within2) / (total["n0"] / len(squares)) if df else math.nan
    return Pilot(
        bases=int(squares["bases"].max()) if len(squares) else 0,
        pairs=len(squares),
        scenarios=float(total["scenarios"] / total["bases"]) if df else math.nan,
        sd=math.sqrt(total["of_means"] / df) if df else math.nan,
        between=math.sqrt(max(between2, 0.0)) if between2 == between2 else math.nan,
        within=math.sqrt(within2),
    )


_SQUARES = ("bases", "scenarios", "of_means", "between", "within", "n0")


def _squares(differences: pd.Series, bases: pd.Series) -> dict[str, float]:
    """Sums of squares of one pair's differences: of the bases' means (each counted once), between and within bases."""
    known = differences.dropna()
    groups = known.groupby(bases[known.index])
    means, sizes = groups.mean(), groups.size()
    values = (
        len(means),
        len(known),
        ((means - means.mean()) ** 2).sum(),
        (sizes * (means - known.mean()) ** 2).sum(),
        ((known - groups.transform("mean")) ** 2).sum(),
        (len(known) - (sizes**2).sum() / len(known)) / (len(means) - 1) if len(means) > 1 else 0.0,
    )
    return dict(zip(_SQUARES, map(float, values), strict=True))


def _bases(verdicts: pd.DataFrame, scenarios: pd.Index) -> pd.Series:
    """The base of each scenario; the scenario itself where it has none."""
    own = pd.Series(scenarios, index=scenarios)
    if "base" not in verdicts:
        return own
    known = verdicts[["scenario", "base"]].drop_duplicates("scenario").dropna().astype(str)
    bases = known[known["base"] != ""].set_index("scenario")["base"].reindex(scenarios)
    return bases.fillna(own)
