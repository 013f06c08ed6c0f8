"""Simulated values for claims: a paper's printed numbers as the truth, nothing, half of it, or its opposite.

python -m tests.analysis.claimed [STUDIES [PAPER]]   # how often a page says "replicated" falsely, and the power
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from parley.analysis.claims.claim import Claim
from parley.analysis.claims.contrasts import VALUES
from parley.analysis.claims.rule import Finding, find
from parley.judging.papers import PAPERS, paper, printed

NOTHING = pd.DataFrame(columns=[*VALUES, "table"])
Truth = Callable[[pd.DataFrame], pd.DataFrame]
"""Changes the true means of methods, one row per measure, set and method."""


def values(means: pd.DataFrame, clusters: int, sd: float | pd.Series, seed: int) -> pd.DataFrame:
    """Values of items with these true means: a cluster's level, its own effect of each method, and noise.

    Args:
        means: The true means: measure, set, method, value.
        clusters: Number of clusters.
        sd: The spread of a cluster's value around the mean.
        seed: The seed.
    """
    rng = np.random.default_rng(seed)
    wide = means.loc[means.index.repeat(clusters)].reset_index(drop=True)
    wide["cluster"] = np.tile(np.arange(clusters), len(means)).astype(str)
    spread = sd if isinstance(sd, float) else sd.loc[means.index].repeat(clusters).to_numpy()
    place = wide.groupby(["measure", "set", "cluster"], sort=False).ngroup().to_numpy()
    wide["value"] += spread * (0.7 * rng.normal(size=place.max() + 1)[place] + 0.7 * rng.normal(size=len(wide)))
    return wide.assign(model="m", item="")[list(VALUES)]


def arms(clusters: int = 40, sd: float = 1.0, seed: int = 0, measure: str = "score", **means: float) -> pd.DataFrame:
    """Values of one measure in one set, from the true mean of each method."""
    rows = [(measure, "", method.replace("_", " "), value) for method, value in means.items()]
    return values(pd.DataFrame(rows, columns=["measure", "set", "method", "value"]), clusters, sd, seed)


def found(given: pd.DataFrame, *claims: Claim, theirs: pd.DataFrame = NOTHING) -> list[Finding]:
    return find(claims, given, theirs)


def truth_of(name: str) -> pd.DataFrame:
    """A paper's printed means, of its first model."""
    cells = printed(name)
    first = cells["model"].iloc[0]
    return cells[cells["model"].isin((first, ""))].drop_duplicates(["measure", "set", "method"]).reset_index(drop=True)


def without_effect(means: pd.DataFrame) -> pd.DataFrame:
    """Every method has the mean of all."""
    return means.assign(value=means.groupby(["measure", "set"])["value"].transform("mean"))


def scaled(by: float) -> Truth:
    """Differences between methods times `by`: 0.5 for half of them, -1 for the opposite."""

    def change(means: pd.DataFrame) -> pd.DataFrame:
        middle = means.groupby(["measure", "set"])["value"].transform("mean")
        return means.assign(value=middle + by * (means["value"] - middle))

    return change


def verdicts(name: str, change: Truth, studies: Iterable[int], clusters: int = 100) -> list[list[Finding]]:
    """The findings of simulated runs of a paper.

    Args:
        name: The paper.
        change: Changes the paper's means into the truth.
        studies: The seed of each run.
        clusters: Number of clusters.
    """
    claims, means = paper(name).claim, change(truth_of(name))
    spread = 0.5 * means["value"].abs().clip(lower=means["value"].abs().median() * 0.2)
    return [find(claims, values(means, clusters, spread, seed), printed(name)) for seed in studies]


def falsely(name: str, change: Truth, runs: Sequence[Sequence[Finding]]) -> float:
    """The share of pages with a "replicated" that is not true of the changed means."""
    cells = change(truth_of(name)).assign(model="", table="")
    true = [each.papers_models_that_hold == [True] for each in find(paper(name).claim, NOTHING, cells)]
    wrong = [
        any(each.verdict == "replicated" and not holds for each, holds in zip(run, true, strict=True)) for run in runs
    ]
    return float(np.mean(wrong))


def main(studies: int, names: Sequence[str]) -> None:
    for name in names:
        for truth, change in (("no effect", without_effect), ("half", scaled(0.5)), ("the paper's", scaled(1.0))):
            runs = verdicts(name, change, range(studies))
            held = [each for run in runs for each in run if each.papers_models_that_hold == [True] and each.evidence]
            wrong = falsely(name, change, runs)
            print(f"{name}, {truth}: {wrong:.1%} of {studies} pages falsely replicate something", end="")
            if truth == "the paper's":
                shown = np.mean([each.verdict == "replicated" for each in held])
                expected = np.nanmean([each.power for each in held])
                print(f"; what its table holds is replicated in {shown:.0%} (its power: {expected:.0%})", end="")
            print(flush=True)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 200,
        sys.argv[2:] or [name for name in PAPERS if "malibu" not in name],
    )
