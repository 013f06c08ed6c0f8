"""The model-based twin of the paper's χ² and win rates: generalised estimating equations (GEE) with clusters.

A cluster's verdicts may be correlated in any way: the covariance is Mancl and DeRouen's (2001, Biometrics 57, 126-134),
which is corrected for few clusters, and tests use the clusters' degrees of freedom. statsmodels takes 1.5 s of CPU to
import, so this is only part of `parley report --paper`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, fdtrc, stdtrit

from parley.analysis.page.report import Section, Table
from parley.analysis.stats.results import LEVEL
from parley.analysis.stats.tables import Floats
from parley.judging.malibu.panel_data import PanelData, by_metric
from parley.judging.malibu.score_table import values_in_order

NOTE = (
    "Generalised estimating equations by statsmodels. Scores (means of each scenario and identity): Gaussian, F of all "
    "differences between identities. Wins of an identity among decided pairs: binomial, tested against one half. "
    "Clusters are {}s; verdicts within one correlate equally, and the covariance is robust and bias-reduced."
)


def twin_section(data: PanelData) -> Section:
    """The paper's questions by GEE; empty without statsmodels, and for runs of another design."""
    try:
        import statsmodels  # noqa: F401
    except ModuleNotFoundError:
        return Section()
    rows = [] if data.staged else [row for model in data.models for row in (*_scores(data, model), *_wins(data, model))]
    frame, note = pd.DataFrame(rows), NOTE.format(data.cluster_noun)
    shown = (*data.model_column, *(name for name in frame if name != "model"))
    return Section(tables=[Table("gee", "The same with clusters: GEE", frame, shown, note, "4.1, beside χ²")])


def _scores(data: PanelData, model: str) -> Iterator[dict[str, Any]]:
    """Whether scores differ between identities, by category and metric."""
    scores = data.labelled_scores[data.labelled_scores["model"] == model]
    for category in values_in_order(scores, "category"):
        for metric, part in by_metric(scores[scores["category"] == category]):
            cells = part.groupby(["cluster", "scenario", "identity"], observed=True)["value"].mean().dropna()
            labels, clusters = (cells.index.get_level_values(name).astype(str) for name in ("identity", "cluster"))
            dummies = pd.get_dummies(labels, drop_first=True).to_numpy(dtype=float)
            df, groups = dummies.shape[1], clusters.nunique()
            row = {"model": model, "category": category, "metric": metric, "clusters": groups}
            if df and groups > df + 1:
                beta, covariance = gee(cells.to_numpy(), np.column_stack([np.ones(len(cells)), dummies]), clusters)
                f = float(beta[1:] @ np.linalg.pinv(covariance[1:, 1:]) @ beta[1:]) / df
                yield row | {"statistic": f, "df": df, "p": float(fdtrc(df, groups - df, f))}


def _wins(data: PanelData, model: str) -> Iterator[dict[str, Any]]:
    """The win rate of each identity among decided pairs."""
    pairs = data.decided_pairs[(data.decided_pairs["model"] == model) & (data.decided_pairs["winner"] != "tie")]
    for category in values_in_order(pairs, "category"):
        part = pairs[pairs["category"] == category]
        sides = part[["identity_a", "identity_b"]].astype(str)
        for identity in dict.fromkeys(sides.to_numpy().ravel()):
            fought = part[(sides == identity).any(axis=1)]
            won, groups = (fought["winner"].astype(str) == identity).to_numpy(dtype=float), fought["cluster"].nunique()
            if groups > 1 and 0 < won.mean() < 1:
                beta, covariance = gee(won, np.ones((len(won), 1)), fought["cluster"].astype(str), binomial=True)
                half = float(stdtrit(groups - 1, (1 + LEVEL) / 2)) * math.sqrt(covariance[0, 0])
                rate, low, high = (float(expit(beta[0] + shift)) for shift in (0.0, -half, half))
                f = float(beta[0] ** 2 / covariance[0, 0])
                row = {"model": model, "category": category, "metric": f"win rate of {identity}", "clusters": groups}
                yield (
                    row
                    | {"statistic": f, "df": 1, "p": float(fdtrc(1, groups - 1, f))}
                    | {
                        "estimate": rate,
                        "low": low,
                        "high": high,
                    }
                )


def gee(values: Floats, design: Floats, clusters: Any, *, binomial: bool = False) -> tuple[Floats, Floats]:
    """The coefficients and their bias-reduced covariance.

    Args:
        values: The outcomes.
        design: One row per outcome, one column per coefficient.
        clusters: The cluster of each outcome.
        binomial: Whether outcomes are 0 or 1, and coefficients log-odds.
    """
    from statsmodels.genmod.cov_struct import Exchangeable
    from statsmodels.genmod.families import Binomial, Gaussian
    from statsmodels.genmod.generalized_estimating_equations import GEE

    family = Binomial() if binomial else Gaussian()
    groups = np.asarray(pd.factorize(clusters)[0])
    order = np.argsort(groups, kind="stable")  # a cluster's rows must be together
    model = GEE(values[order], design[order], groups[order], family=family, cov_struct=Exchangeable())
    result = model.fit(cov_type="bias_reduced")
    return np.asarray(result.params), np.asarray(result.cov_params())
