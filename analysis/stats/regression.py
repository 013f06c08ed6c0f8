"""Model-based counterparts of the permutation test: generalised estimating equations (GEE) and a mixed model.

Both work on cells (means within cluster and identity; the mixed model, if judges are given, within judge as well). Both
use F with degrees of freedom counted in clusters: z would be anti-conservative with few of them.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.genmod.cov_struct import Exchangeable
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.regression.mixed_linear_model import MixedLM

from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Column, Floats, as_floats, factorize

GEE_ASSUMES = "clusters are independent; the mean is right, whatever the correlation within a cluster"
MIXED_ASSUMES = "clusters, cells and judges within a cluster are random and normal; the rest is independent noise"
NO_SINGLE_EFFECT = "more than two identities: see the pairwise tests for effect sizes"


def gee(values: Column, identities: Column, clusters: Column, *, level: float = 0.95) -> Test:
    """Identity effect by GEE: exchangeable correlation, bias-reduced robust errors (Mancl and DeRouen).

    Args:
        values: One value per row; rows where it is missing are left out.
        identities: The identity of each row.
        clusters: The cluster of each row. Clusters are taken as independent.
        level: Confidence level of the mean difference (two identities only).
    """
    cells = _cells(values, identities, clusters, None)
    unknown = _unknown("GEE, exchangeable, bias-reduced errors", GEE_ASSUMES, cells, level)
    if note := _why_not_fitted(cells):
        return replace(unknown, note=note)
    y, x, group, labels = _design(cells)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = GEE(y, x, groups=group, cov_struct=Exchangeable()).fit(cov_type="bias_reduced")
            params, cov = np.asarray(fit.params, dtype=float), np.asarray(fit.cov_params(), dtype=float)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError) as error:
        return replace(unknown, note=f"the model could not be fitted: {error}")
    return _wald_test(unknown, params, cov, df=int(cells["cluster"].nunique()) - 1, labels=labels)


def mixed_model(
    values: Column,
    identities: Column,
    clusters: Column,
    judges: Column | None = None,
    *,
    level: float = 0.95,
) -> Test:
    """Identity effect by a mixed model: random cluster; with `judges` also random cell and judge within cluster.

    The random cell (cluster and identity) is what a panel's discussion of one candidate has in common: without it the
    judges of a panel would count as independent. Denominator df: (clusters - 1)(identities - 1).

    Args:
        values: One value per row; rows where it is missing are left out.
        identities: The identity of each row.
        clusters: The cluster of each row. Clusters are taken as independent, all effects as normal.
        judges: The judge of each row; None: judges are averaged.
        level: Confidence level of the mean difference (two identities only).
    """
    cells = _cells(values, identities, clusters, judges)
    name = "mixed model, random cluster" + ("" if judges is None else ", cell and judge")
    unknown = _unknown(name, MIXED_ASSUMES, cells, level)
    if note := _why_not_fitted(cells):
        return replace(unknown, note=note)
    y, x, group, labels = _design(cells)
    unit = float(np.std(y))  # y is standardised: the optimiser stops too early on small numbers
    y = y / unit
    variances = None if judges is None else {"cell": "0 + C(identity)", "judge": "0 + C(judge)"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if variances is None:
                model = MixedLM(y, x, groups=group)
            else:
                terms = " + ".join(f"Q('x{number}')" for number in range(1, x.shape[1]))
                wide = cells.assign(y=y, **{f"x{number}": x[:, number] for number in range(1, x.shape[1])})
                model = MixedLM.from_formula(
                    f"y ~ {terms}", wide, groups="cluster", vc_formula=variances, re_formula="1"
                )
            fit = model.fit(reml=True, method=["powell"])  # gradients fail where a variance is near 0
            size = x.shape[1]
            params = np.asarray(fit.fe_params, dtype=float) * unit
            cov = np.asarray(fit.cov_params(), dtype=float)[:size, :size] * unit**2
    except (np.linalg.LinAlgError, ValueError, FloatingPointError) as error:
        return replace(unknown, note=f"the model could not be fitted: {error}")
    if not fit.converged:
        return replace(unknown, note="the model did not converge")
    df = (int(cells["cluster"].nunique()) - 1) * (len(labels) - 1)
    return _wald_test(unknown, params, cov, df=df, labels=labels)


def _cells(values: Column, identities: Column, clusters: Column, judges: Column | None) -> pd.DataFrame:
    """One row per cell, with its mean as `value` and its number of rows as `size`."""
    label, labels = factorize(identities, sort=False)
    columns = {"value": as_floats(values), "identity": label, "cluster": factorize(clusters)[0]}
    if judges is not None:
        columns["judge"] = factorize(judges)[0]
    frame = pd.DataFrame(columns)
    keys = list(columns)[1:]
    frame = frame[np.isfinite(frame["value"]) & (frame[keys] >= 0).all(axis=1)]
    cells = frame.groupby(keys, as_index=False)["value"].agg(value="mean", size="size")
    cells.attrs["labels"] = labels
    return cells.sort_values("cluster", kind="stable").reset_index(drop=True)


def _unknown(name: str, assumes: str, cells: pd.DataFrame, level: float) -> Test:
    return no_test(
        name=name,
        effect_name="mean difference",
        assumption="clustered",
        assumes=assumes,
        level=level,
        n=int(cells["size"].sum()),
        clusters=int(cells["cluster"].nunique()),
    )


def _why_not_fitted(cells: pd.DataFrame) -> str:
    if cells.empty:
        return "there are no values"
    if cells["identity"].nunique() < 2:
        return "fewer than two identities have values"
    if cells["cluster"].nunique() < 3:
        return "fewer than three clusters"
    if np.ptp(cells["value"].to_numpy()) == 0:
        return "all values are equal"
    return ""


def _design(cells: pd.DataFrame) -> tuple[Floats, Floats, Floats, list[str]]:
    """Score, intercept with identity contrasts (against the first identity), cluster, and identity names.

    With two identities the contrast is first minus second, as in the other tests.
    """
    present = sorted(cells["identity"].unique())
    labels = [str(cells.attrs["labels"][code]) for code in present]
    identity = cells["identity"].to_numpy()
    if len(present) == 2:
        contrasts = [(identity == present[0]).astype(float)]
    else:
        contrasts = [(identity == code).astype(float) for code in present[1:]]
    x = np.column_stack([np.ones(len(cells)), *contrasts])
    return cells["value"].to_numpy(dtype=float), x, cells["cluster"].to_numpy(), labels


def _wald_test(unknown: Test, params: Floats, cov: Floats, *, df: int, labels: list[str]) -> Test:
    """F test of all identity contrasts; with two identities also their difference and its interval.

    Args:
        unknown: The test before it is made.
        params: Coefficients, the intercept first.
        cov: Covariance matrix of the coefficients.
        df: Degrees of freedom of the denominator.
        labels: The identities.
    """
    beta, error = params[1:], cov[1:, 1:]
    rank = len(beta)
    if not np.all(np.isfinite(error)) or np.any(np.diag(error) <= 0):
        return replace(unknown, note="the model gives no standard error")
    f = float(beta @ np.linalg.pinv(error) @ beta) / rank
    test = replace(
        unknown, name=f"{unknown.name}, F({rank}, {df})", statistic=f, df=df, p=float(stats.f.sf(f, rank, df))
    )
    if rank > 1:
        return replace(test, note=NO_SINGLE_EFFECT)
    half = float(stats.t.ppf((1 + test.level) / 2, df) * math.sqrt(error[0, 0]))
    mean = float(beta[0])
    effect_name = f"mean difference, {labels[0]} − {labels[1]}"
    return replace(test, effect=mean, effect_name=effect_name, low=mean - half, high=mean + half)
