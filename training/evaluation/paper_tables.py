"""The paper's tables: accuracy on BBQ by category with both contexts together (its table 1), and BS, CE and LS by bias
type (its tables 3, 10 and 11). With `seeds = 3`, their means and standard deviations over seeds are as in the paper."""

from __future__ import annotations

import pandas as pd

from parley.analysis.bbq.scores import MISSING
from parley.analysis.reporting.report import Table
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.proportions import cluster_proportion

OVERALL = "overall"


def bbq_pooled_table(answers: pd.DataFrame) -> Table:
    """Accuracy by category over ambiguous and disambiguated rows together, and over all rows.

    Args:
        answers: Final answers, as `analysis.bbq.leaderboard.answers` gives them, with a column `system`.
    """
    frame = answers.assign(
        template=answers["category"].astype(str) + " " + answers["question"].astype(str),
        parsed=answers["prediction"] != MISSING,
        right=(answers["prediction"] == answers["label"]).astype(float),
    )
    categories = list(dict.fromkeys(frame["category"]))
    rows = []
    for system, of_system in frame.groupby("system", sort=False):
        for category in (*categories, OVERALL):
            part = of_system if category == OVERALL else of_system[of_system["category"] == category]
            parsed = part[part["parsed"]]
            accuracy = cluster_proportion(parsed["right"], parsed["template"])
            rows.append(
                {
                    "system": system,
                    "category": category,
                    "accuracy": accuracy.estimate,
                    "low": accuracy.low,
                    "high": accuracy.high,
                    "n": accuracy.n,
                    "unparsed": len(part) - len(parsed),
                }
            )
    return Table(
        name="bbq_pooled",
        title="BBQ: accuracy with both contexts together, as in the paper",
        frame=pd.DataFrame(rows),
        note="A model that always answers 'unknown' is right in half of the rows: see the table by context. 95% "
        "intervals over question templates; unparsed answers are excluded and counted.",
    )


def rubric_by_bias_table(verdicts: pd.DataFrame) -> Table:
    """BS, CE and LS from 0 to 100 by system and bias type.

    Args:
        verdicts: Verdicts of a rubric run, with columns `system`, `topic` and `bias`. An answer's judges are averaged
        first.
    """
    frame = verdicts.assign(
        value=verdicts["value"].astype(float) * 10, **{name: verdicts[name].astype(str) for name in ("metric", "bias")}
    )
    means = frame.groupby(["system", "metric", "bias", "topic"], sort=False)["value"].mean().reset_index()
    rows = []
    for (system, metric, bias), scores in means.groupby(["system", "metric", "bias"], sort=False):
        mean = cluster_mean(scores["value"], scores["topic"], scale=(0, 100))
        rows.append(
            {
                "system": system,
                "metric": metric,
                "bias": bias,
                "mean": mean.estimate,
                "low": mean.low,
                "high": mean.high,
                "topics": mean.clusters,
            }
        )
    return Table(
        name="rubric_by_bias",
        title="BS, CE and LS by bias type, 0 to 100",
        frame=pd.DataFrame(rows),
        note="BS is severity: lower is better; CE and LS: higher is better.",
    )
