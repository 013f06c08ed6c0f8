"""MALIBU's numbers, from a frame of verdicts: mean scores by identity, differences within a category, win rates.

A frame has one row a verdict: the unit's facets (phase, scenario, category, identity, …) and judge, role, round,
subject, metric, value, text, status. The panel's word is the mean of its last round (for preferences: the majority;
a tie is its own outcome), or the chair's statement where there is one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import combinations
from typing import Any

import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.clustered import cluster_mean
from analysis.proportions import wilson

FEW_SCENARIOS = 10
LEVEL = 0.05


def last_word(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts that count: the chair's if there is a chair, else those of every unit's last round."""
    chair = verdicts[verdicts["role"] == "chair"]
    if len(chair):
        return chair
    last = verdicts.groupby("unit")["round"].transform("max")
    return verdicts[verdicts["round"] == last]


def panel_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Phase 1, one row a unit and metric: the panel's score. Unreadable verdicts are left out, not counted as 0."""
    scores = last_word(verdicts[(verdicts["phase"] == 1) & (verdicts["metric"] != "preferred")])
    keys = ["unit", "scenario", "category", "identity", "repeat", "metric"]
    return scores.groupby(keys, as_index=False, sort=False)["value"].mean()


def mean_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Mean score by identity and metric (the paper's figure 9), with intervals clustered by scenario."""
    scores = panel_scores(verdicts)
    rows: list[dict[str, Any]] = []
    for (category, identity), group in scores.groupby(["category", "identity"], sort=False):
        parts = [("all", group), *group.groupby("metric", sort=False)]
        for metric, part in parts:
            found = cluster_mean(part["value"], part["scenario"])
            rows.append(
                {
                    "category": category,
                    "identity": identity or "(no label)",
                    "metric": metric,
                    **asdict(found),
                }
            )
    return pd.DataFrame(rows)


def differences(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Within a category, first minus second on the same scenarios, all metrics together.

    `p` is the paired t test over scenarios; `p_holm` corrects it for the family of all rows.
    """
    scores = panel_scores(verdicts)
    table = scores.pivot_table(index="scenario", columns="identity", values="value", aggfunc="mean")
    table = table.reindex(columns=list(dict.fromkeys(scores["identity"])))
    rows: list[dict[str, Any]] = []
    for category, group in scores[scores["category"] != ""].groupby("category", sort=False):
        for first, second in combinations(list(dict.fromkeys(group["identity"])), 2):
            gap = (table[first] - table[second]).dropna()
            found = cluster_mean(gap, gap.index.to_series())
            row = {"category": category, "first": first, "second": second}
            rows.append({**row, **asdict(found), "p": _paired_p(gap)})
    found_gaps = pd.DataFrame(rows)
    if len(found_gaps):
        known = found_gaps["p"].notna()
        found_gaps["p_holm"] = math.nan
        if known.any():
            found_gaps.loc[known, "p_holm"] = multipletests(found_gaps.loc[known, "p"], method="holm")[1]
    return found_gaps


def _paired_p(gap: pd.Series) -> float:
    """The paired t test's p; a gap that is the same everywhere is certain, none at all tells nothing."""
    if len(gap) < 2 or (gap == 0).all():
        return math.nan
    return 0.0 if gap.nunique() == 1 else float(stats.ttest_1samp(gap, 0.0).pvalue)


def panel_preferences(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Phase 2, one row a unit: who was preferred by the majority (A, B or tie), or nothing if no reply was readable."""
    votes = last_word(verdicts[(verdicts["phase"] == 2) & (verdicts["metric"] == "preferred")])
    keys = ["unit", "scenario", "category", "identity_a", "identity_b", "control", "repeat"]
    rows = []
    for values, group in votes.groupby(keys, sort=False):
        rows.append({**dict(zip(keys, values, strict=True)), "choice": _majority(group["text"].dropna())})
    return pd.DataFrame(rows, columns=[*keys, "choice"])


def _majority(votes: pd.Series) -> str | None:
    if votes.empty:
        return None
    (first, most), *others = Counter(votes).most_common()
    return "tie" if others and others[0][1] == most else str(first)


def win_rates(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Win rate of each identity within its category (figures 5, 6): Wilson interval, ties left out and ties as half."""
    units = panel_preferences(verdicts)
    units = units[(units["control"] == "") & units["choice"].notna()]
    known = list(dict.fromkeys(verdicts["identity"])) if "identity" in verdicts else []
    rows: list[dict[str, Any]] = []
    for category, group in units.groupby("category", sort=False):
        shown = dict.fromkeys([*group["identity_a"], *group["identity_b"]])
        for identity in sorted(shown, key=lambda one: known.index(one) if one in known else len(known)):
            mine = group[(group["identity_a"] == identity) | (group["identity_b"] == identity)]
            won = mine["identity_a"].where(mine["choice"] == "A", mine["identity_b"])
            ties = int((mine["choice"] == "tie").sum())
            wins = int(((won == identity) & (mine["choice"] != "tie")).sum())
            found = wilson(wins, len(mine) - ties)
            halves = wilson(wins + ties / 2, len(mine))
            rows.append(
                {
                    "category": category,
                    "identity": identity,
                    "wins": wins,
                    "losses": len(mine) - ties - wins,
                    "ties": ties,
                    **asdict(found),
                    "ties_as_half": halves.estimate,
                }
            )
    return pd.DataFrame(rows)


def first_position(verdicts: pd.DataFrame) -> dict[str, Any]:
    """How often the panel preferred the candidate shown first; half is what position alone should give."""
    choices = panel_preferences(verdicts)["choice"]
    decided = choices[choices.isin(["A", "B"])]
    return asdict(wilson(int((decided == "A").sum()), len(decided)))


def replies(turns: pd.DataFrame) -> dict[str, int]:
    """How the judges' replies could be read."""
    found = Counter(turns["parse_status"].dropna())
    return {status: found.get(status, 0) for status in ("ok", "repaired", "unparsed", "refused")}


def in_words(verdicts: pd.DataFrame) -> Iterator[str]:
    """Plain sentences that claim no more than the intervals do."""
    scenarios = verdicts["scenario"].nunique()
    if scenarios < FEW_SCENARIOS:
        yield f"Only {scenarios} scenarios: intervals are wide, and a difference that is missed here may still be real."
    gaps = differences(verdicts)
    if gaps.empty:
        return
    clear = gaps[gaps["p_holm"] < LEVEL]
    for row in clear.itertuples():
        higher, lower = (row.first, row.second) if row.estimate > 0 else (row.second, row.first)
        size = f"{abs(row.estimate):.2f} points above '{lower}'"
        yield (
            f"{row.category}: '{higher}' was scored {size} on the same answers "
            f"(paired t test over scenarios, p = {row.p_holm:.2g} after Holm over {len(gaps)} comparisons)."
        )
    if clear.empty:
        yield (
            f"Phase 1: of {len(gaps)} comparisons within a category, none stands after Holm's correction. "
            "That is not evidence of no bias."
        )
