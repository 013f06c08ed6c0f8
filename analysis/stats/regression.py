"""Model-based twins of the permutation test: generalised estimating equations and a mixed model.

Both work on cells (means within cluster and identity; the mixed model, if judges are given, within judge as well),
and both are judged by F with degrees of freedom counted in clusters: z would promise too much with few of them.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.genmod.cov_struct import Exchangeable
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.regression.mixed_linear_model import MixedLM

from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Column, Floats, codes, numbers

GEE_ASSUMES = "clusters are independent; the mean is right, whatever the correlation within a cluster"
MIXED_ASSUMES = "clusters, cells and judges within a cluster are random and normal; the rest is independent noise"
SIZES = "more than two identities: sizes stand with the pairwise tests"


def gee(values: Column, identities: Column, clusters: Column, *, level: float = 0.95) -> Test:
    """Identity effect by GEE: exchangeable correlation, bias-reduced robust errors (Mancl and DeRouen)."""
    frame = _cells(values, identities, clusters, None)
    name = "GEE, exchangeable, bias-reduced errors"
    note = _why_not(frame)
    if note:
        return _none(name, frame, GEE_ASSUMES, note, level)
    y, x, group, labels = _design(frame)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = GEE(y, x, groups=group, cov_struct=Exchangeable()).fit(cov_type="bias_reduced")
            found = np.asarray(fit.params, dtype=float), np.asarray(fit.cov_params(), dtype=float)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError) as error:
        return _none(name, frame, GEE_ASSUMES, f"the model could not be fitted: {error}", level)
    clusters_seen = int(frame["cluster"].nunique())
    return _wald(name, *found, clusters_seen - 1, labels, frame, GEE_ASSUMES, level)


def mixed_model(
    values: Column,
    identities: Column,
    clusters: Column,
    judges: Column | None = None,
    *,
    level: float = 0.95,
) -> Test:
    """Identity effect by a mixed model: random cluster; with `judges` also random cell and judge within cluster.

    The random cell (cluster and identity) is what a panel's talk about one candidate has in common: without it the
    judges of a panel would pass for independent. Denominator df: (clusters - 1)(identities - 1).
    """
    frame = _cells(values, identities, clusters, judges)
    name = "mixed model, random cluster" + ("" if judges is None else ", cell and judge")
    note = _why_not(frame)
    if note:
        return _none(name, frame, MIXED_ASSUMES, note, level)
    y, x, group, labels = _design(frame)
    unit = float(np.std(y))  # the optimiser stops too early on small numbers
    y = y / unit
    parts = None if judges is None else {"cell": "0 + C(identity)", "judge": "0 + C(judge)"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if parts is None:
                model = MixedLM(y, x, groups=group)
            else:
                terms = " + ".join(f"Q('x{number}')" for number in range(1, x.shape[1]))
                wide = frame.assign(y=y, **{f"x{number}": x[:, number] for number in range(1, x.shape[1])})
                model = MixedLM.from_formula(f"y ~ {terms}", wide, groups="cluster", vc_formula=parts, re_formula="1")
            fit = model.fit(reml=True, method=["powell"])  # gradients fail where a variance is near 0
            size = x.shape[1]
            spread = np.asarray(fit.cov_params(), dtype=float)[:size, :size] * unit**2
            found = np.asarray(fit.fe_params, dtype=float) * unit, spread
    except (np.linalg.LinAlgError, ValueError, FloatingPointError) as error:
        return _none(name, frame, MIXED_ASSUMES, f"the model could not be fitted: {error}", level)
    if not fit.converged:
        return _none(name, frame, MIXED_ASSUMES, "the model did not converge", level)
    df = (int(frame["cluster"].nunique()) - 1) * (len(labels) - 1)
    return _wald(name, *found, df, labels, frame, MIXED_ASSUMES, level)


def _cells(values: Column, identities: Column, clusters: Column, judges: Column | None) -> pd.DataFrame:
    """One row a cell, its mean as `value` and how many rows it holds as `size`."""
    label, labels = codes(identities, sort=False)
    columns = {"value": numbers(values), "identity": label, "cluster": codes(clusters)[0]}
    if judges is not None:
        columns["judge"] = codes(judges)[0]
    frame = pd.DataFrame(columns)
    keys = list(columns)[1:]
    frame = frame[np.isfinite(frame["value"]) & (frame[keys] >= 0).all(axis=1)]
    cells = frame.groupby(keys, as_index=False)["value"].agg(value="mean", size="size")
    cells.attrs["labels"] = labels
    return cells.sort_values("cluster", kind="stable").reset_index(drop=True)


def _why_not(cells: pd.DataFrame) -> str:
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
    """Score, intercept and identity contrasts (against the first identity seen), cluster, and identity names.

    With two identities the contrast is first minus second, like everywhere else.
    """
    present = sorted(cells["identity"].unique())
    labels = [str(cells.attrs["labels"][one]) for one in present]
    identity = cells["identity"].to_numpy()
    if len(present) == 2:
        contrasts = [(identity == present[0]).astype(float)]
    else:
        contrasts = [(identity == one).astype(float) for one in present[1:]]
    x = np.column_stack([np.ones(len(cells)), *contrasts])
    return cells["value"].to_numpy(dtype=float), x, cells["cluster"].to_numpy(), labels


def _wald(
    name: str,
    params: Floats,
    cov: Floats,
    df: int,
    labels: list[str],
    cells: pd.DataFrame,
    assumes: str,
    level: float,
) -> Test:
    """F test of all identity contrasts (`df` is the denominator's); for two also their difference with its interval."""
    beta, error = params[1:], cov[1:, 1:]
    rank = len(beta)
    if not np.all(np.isfinite(error)) or np.any(np.diag(error) <= 0):
        return _none(name, cells, assumes, "the model gives no standard error", level)
    name = f"{name}, F({rank}, {df})"
    f = float(beta @ np.linalg.pinv(error) @ beta) / rank
    p = float(stats.f.sf(f, rank, df))
    n, clusters = int(cells["size"].sum()), int(cells["cluster"].nunique())
    if rank > 1:
        nan, effect = math.nan, "mean difference"
        return Test(name, f, df, p, nan, effect, nan, nan, level, n, clusters, "clustered", assumes, SIZES)
    half = float(stats.t.ppf((1 + level) / 2, df) * math.sqrt(error[0, 0]))
    mean, effect = float(beta[0]), f"mean difference, {labels[0]} − {labels[1]}"
    ends = mean - half, mean + half
    return Test(name, f, df, p, mean, effect, *ends, level, n, clusters, "clustered", assumes)


def _none(name: str, cells: pd.DataFrame, assumes: str, note: str, level: float) -> Test:
    n, clusters = (int(cells["size"].sum()), int(cells["cluster"].nunique())) if len(cells) else (0, 0)
    return no_test(name, "mean difference", "clustered", assumes, note, level, n, clusters)
