"""Can a debate's referee be trusted? Compares its rankings with its scores and with a second, blind referee, and counts
statements that break the rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.reporting.report import Section
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.rldf.debates import AGAIN, FIRST, THRESHOLD, Runs, mean_over_topics, of_runs, prefix, table_of
from parley.analysis.stats.agreement import krippendorff_alpha, weighted_kappa
from parley.analysis.stats.results import MADE, columns
from parley.base.text import plural

FLAGS = ("role_break", "leak", "refused", "echo", "loop", "cut")
WEAK_AGREEMENT, WEAK_CORRELATION = 0.75, 0.5
"""A warning is given for a blind referee below either value."""


def rankings_section(runs: Runs) -> Section:
    """Do the referee's rankings follow from its scores?"""
    table = of_runs(runs, rankings)
    warnings = []
    for row in table.itertuples():
        count = row.reports - row.unreadable - row.no_ranking
        if row.judge == FIRST and (row.unreadable or row.contradicted):
            run = f"{row.run}: " if hasattr(row, "run") else ""
            warnings.append(
                f"{run}{row.unreadable:,} of {plural(row.reports, 'referee report')} could not be read, and "
                f"{row.contradicted:,} of {plural(count, 'ranking')} contradict the referee's own scores."
            )
    columns = ("judge", "reports", "unreadable", "no_ranking", "contradicted", "estimate", "low", "high")
    title = "Do the referee's rankings follow from its scores?"
    return Section(tables=[table_of("rankings", title, table, columns)], warnings=warnings)


def agreement_section(runs: Runs) -> Section:
    """Does a second, blind referee agree?"""
    shown, title = ("what", "estimate", "low", "high", "n", "note"), "Agreement with a second, blind referee"
    return Section(
        tables=[table_of("refereed_again", title, of_runs(runs, refereed_again), shown)],
        warnings=[f"{prefix(runs, name)}{line}" for name, verdicts in runs.items() for line in _on_agreement(verdicts)],
    )


def rankings(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Do the referee's ranks follow from its scores? Pairs with equal scores may be ranked either way."""
    rows: list[dict[str, Any]] = []
    for judge, part in uncategorised(verdicts[verdicts["metric"] == "discordant"]).groupby("judge", sort=False):
        readable = part[part["status"].isin(["ok", "repaired"])]
        valid = readable[readable["value"].notna()]
        consistent = (valid["value"] == 0).astype(float)
        mean = mean_over_topics(consistent, valid["topic"])
        counts = {
            "reports": len(part),
            "unreadable": len(part) - len(readable),
            "no_ranking": len(readable) - len(valid),
        }
        rows.append(
            {
                "judge": judge,
                **counts,
                "contradicted": int((valid["value"] > 0).sum()),
                **columns(mean, "estimate", *MADE),
            }
        )
    return pd.DataFrame(rows)


def refereed_again(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Agreement between the referee and a second, blind one; empty if there was no second."""
    both = _both_scores(verdicts)
    if both.empty:
        return both
    sides = (both[[FIRST, AGAIN]] > THRESHOLD).astype(int)
    points = both[[FIRST, AGAIN]].round().astype(int)
    scale = list(range(11))
    found = {
        "weighted kappa of scores, quadratic": weighted_kappa(
            points[FIRST], points[AGAIN], weights="quadratic", categories=scale, clusters=both["topic"]
        ),
        "Krippendorff's alpha of scores": krippendorff_alpha(both[[FIRST, AGAIN]], clusters=both["topic"]),
        f"Cohen's kappa of high and low (threshold {THRESHOLD:g})": weighted_kappa(
            sides[FIRST], sides[AGAIN], weights="none", categories=[0, 1], clusters=both["topic"]
        ),
        "second minus first score": mean_over_topics(both[AGAIN] - both[FIRST], both["topic"]),
    }
    return pd.DataFrame([{"what": what, **columns(estimate, "estimate", *MADE)} for what, estimate in found.items()])


def _both_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    bias = uncategorised(verdicts[verdicts["metric"] == "bias"])
    table = bias.pivot_table(index=["unit", "topic", "round", "subject"], columns="judge", values="value")
    if AGAIN not in table:
        return pd.DataFrame()
    return table.dropna(subset=[FIRST, AGAIN]).reset_index()


def flags(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Share of statements, by role, that broke role, revealed it, refused, repeated text, or were cut off."""
    rows: list[dict[str, Any]] = []
    flagged = uncategorised(verdicts[verdicts["metric"].isin(FLAGS)])
    groups = [("all", flagged), *flagged.groupby("subject", sort=False)] if len(flagged) else []
    for role, part in groups:
        for metric in FLAGS:
            statements = part[part["metric"] == metric]
            mean = mean_over_topics(statements["value"], statements["topic"])
            rows.append(
                {
                    "role": role,
                    "flag": metric,
                    "count": int(statements["value"].sum()),
                    **columns(mean, "estimate", *MADE),
                }
            )
    return pd.DataFrame(rows)


def _on_agreement(verdicts: pd.DataFrame) -> Iterator[str]:
    """A warning where the blind referee hardly agrees with the first."""
    both = _both_scores(verdicts)
    if both.empty:
        return
    sides = (both[FIRST] > THRESHOLD) == (both[AGAIN] > THRESHOLD)
    correlation = both[FIRST].corr(both[AGAIN]) if both[FIRST].nunique() > 1 and both[AGAIN].nunique() > 1 else math.nan
    if sides.mean() < WEAK_AGREEMENT or correlation < WEAK_CORRELATION:
        shown = "" if math.isnan(correlation) else f", with a correlation of {correlation:.2f}"
        yield (
            f"The two referees agree weakly: they put {sides.mean():.0%} of {plural(len(both), 'statement')} on the "
            f"same side of the threshold{shown}. Scores, and pairs made from them, may be mostly noise."
        )


def flags_section(runs: Runs) -> Section:
    """Which statements broke the rules of the debate?"""
    title = "Statements that broke role, revealed it, refused, repeated instructions or themselves, or were cut off"
    shown = ("role", "flag", "count", "estimate", "low", "high")
    return Section(tables=[table_of("flags", title, of_runs(runs, flags), shown)])
