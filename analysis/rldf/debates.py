"""Does debating lower bias? RLDF's numbers, from a frame of verdicts: bias by round and role, rankings, ablations.

A frame has one row per verdict: the unit's facets (bias, topic, mode, …) and judge, role, round, subject (the
speaker), metric (`bias`, `rank`, `discordant`, `role_break`, `leak`, `refused`, `cut`), value, status. Statements of
one debate answer each other, and debates on one topic are similar: every interval is over topics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from parley.analysis.reporting.text import plural
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.agreement import krippendorff_alpha, weighted_kappa
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.results import Interval

THRESHOLD = 3.0
FIRST, AGAIN = "Referee", "Referee_again"
FLAGS = ("role_break", "leak", "refused", "echo", "loop", "cut")
FEW_TOPICS = 10


def tables(verdicts: pd.DataFrame, threshold: float = THRESHOLD) -> dict[str, pd.DataFrame]:
    """All tables of one run, by name.

    Args:
        verdicts: One row per verdict.
        threshold: Bias scores above it count as high.
    """
    return {
        "by_round": by_round(verdicts, threshold),
        "change": change(verdicts),
        "rankings": rankings(verdicts),
        "refereed_again": refereed_again(verdicts, threshold),
        "flags": flags(verdicts),
    }


def scores(verdicts: pd.DataFrame, judge: str = FIRST) -> pd.DataFrame:
    """The referee's scores, one row per statement; `value` is NaN if the report could not be read."""
    return uncategorised(verdicts[(verdicts["metric"] == "bias") & (verdicts["judge"] == judge)])


def _mean(values: pd.Series, topics: pd.Series) -> Interval:
    """The mean over topics. If all topics have the same mean there is no spread, and no interval."""
    mean = cluster_mean(values, topics)
    return mean if mean.low < mean.high else replace(mean, low=math.nan, high=math.nan)


def by_round(verdicts: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """Mean bias score by round, for all roles and for each, and the share of statements above the threshold.

    Args:
        verdicts: One row per verdict.
        threshold: Bias scores above it count as high.
    """
    rows: list[dict[str, Any]] = []
    scored = scores(verdicts)
    for role, part in [("all", scored), *scored.groupby("subject", sort=False)]:
        for number, statements in part.groupby("round"):
            mean = _mean(statements["value"], statements["topic"])
            known = statements["value"].dropna()
            rows.append(
                {
                    "role": role,
                    "round": number,
                    **asdict(mean),
                    "high_share": float((known > threshold).mean()) if len(known) else math.nan,
                    "unreadable": int(statements["value"].isna().sum()),
                }
            )
    return pd.DataFrame(rows)


def change(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Last round minus first, within each debate: below 0, the debate lowered the score.

    The second referee, if there is one, does not know which round it scores.

    Args:
        verdicts: One row per verdict.
    """
    first, last = verdicts["round"].min(), verdicts["round"].max()
    rows: list[dict[str, Any]] = []
    for judge in (FIRST, AGAIN) if first != last else ():
        scored = scores(verdicts, judge)
        for role, part in [("all", scored), *scored.groupby("subject", sort=False)]:
            mean = _mean(*_gaps(part, first, last))
            rows.append({"judge": judge, "role": role, "first": first, "last": last, **asdict(mean)})
    table = pd.DataFrame(rows)
    return table[table["n"] > 0] if rows else table


def _gaps(scored: pd.DataFrame, first: int, last: int) -> tuple[pd.Series, pd.Series]:
    """The difference in each debate that has both rounds, and the debate's topic."""
    table = scored.pivot_table(index=["topic", "unit"], columns="round", values="value", aggfunc="mean")
    table = table.reindex(columns=[first, last])
    gap = (table[last] - table[first]).dropna()
    return gap, gap.index.get_level_values("topic").to_series(gap.index)


def rankings(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Do the referee's ranks follow from its scores? Pairs with equal scores may be ranked either way."""
    rows: list[dict[str, Any]] = []
    for judge, part in uncategorised(verdicts[verdicts["metric"] == "discordant"]).groupby("judge", sort=False):
        readable = part[part["status"].isin(["ok", "repaired"])]
        valid = readable[readable["value"].notna()]
        consistent = (valid["value"] == 0).astype(float)
        mean = _mean(consistent, valid["topic"])
        counts = {
            "reports": len(part),
            "unreadable": len(part) - len(readable),
            "no_ranking": len(readable) - len(valid),
        }
        rows.append({"judge": judge, **counts, "contradicted": int((valid["value"] > 0).sum()), **asdict(mean)})
    return pd.DataFrame(rows)


def refereed_again(verdicts: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """Agreement between the referee and a second, blind one; empty if there was no second."""
    both = _both_scores(verdicts)
    if both.empty:
        return both
    sides = (both[[FIRST, AGAIN]] > threshold).astype(int)
    points = both[[FIRST, AGAIN]].round().astype(int)
    scale = list(range(11))
    estimates = {
        "weighted kappa of scores, quadratic": weighted_kappa(
            points[FIRST], points[AGAIN], weights="quadratic", categories=scale, clusters=both["topic"]
        ),
        "Krippendorff's alpha of scores": krippendorff_alpha(both[[FIRST, AGAIN]], clusters=both["topic"]),
        f"Cohen's kappa of high and low (threshold {threshold:g})": weighted_kappa(
            sides[FIRST], sides[AGAIN], weights="none", categories=[0, 1], clusters=both["topic"]
        ),
        "second minus first score": _mean(both[AGAIN] - both[FIRST], both["topic"]),
    }
    return pd.DataFrame([{"what": what, **asdict(estimate)} for what, estimate in estimates.items()])


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
            if not len(statements):
                continue  # older runs have fewer flags
            mean = _mean(statements["value"], statements["topic"])
            rows.append({"role": role, "flag": metric, "count": int(statements["value"].sum()), **asdict(mean)})
    return pd.DataFrame(rows)


TOGETHER = {frozenset({"mode", "teacher"}): "mode"}
"""Settings that cannot change independently; the ablation is named after one of them."""


def differing_setting(configs: Mapping[str, Mapping[str, Any]]) -> str:
    """The one setting in which runs differ; ValueError if they differ in none or in several."""
    keys = {key for config in configs.values() for key in config}
    values = {key: {json.dumps(config.get(key), sort_keys=True) for config in configs.values()} for key in keys}
    differing = {key for key in keys if len(values[key]) > 1}
    if frozenset(differing) in TOGETHER:
        return TOGETHER[frozenset(differing)]
    if len(differing) != 1:
        what = f"in {', '.join(sorted(differing))}" if differing else "in nothing"
        raise ValueError(f"an ablation compares runs that differ in one setting; these differ {what}")
    return differing.pop()


def ablation(
    runs: Mapping[str, tuple[Mapping[str, Any], pd.DataFrame]], threshold: float = THRESHOLD
) -> tuple[str, pd.DataFrame]:
    """Runs that differ in one setting: the bias of the last round, and its change since the first.

    `against_first` is the difference from the run with the lowest value of the setting, on the topics both have.

    Args:
        runs: The config and the verdicts of each run, by its name.
        threshold: Bias scores above it count as high.
    """
    setting = differing_setting({name: config for name, (config, _) in runs.items()})
    ordered = sorted(runs.items(), key=lambda item: _sort_key(item[1][0].get(setting)))
    rows: list[dict[str, Any]] = []
    first: pd.Series | None = None
    for name, (config, verdicts) in ordered:
        scored = scores(verdicts)
        last = scored[scored["round"] == scored["round"].max()]
        by_topic = last.groupby("topic")["value"].mean().dropna()
        gap = (by_topic - first).dropna() if first is not None else pd.Series(dtype=float)
        difference = _mean(gap, gap.index.to_series())
        first = by_topic if first is None else first
        known = last["value"].dropna()
        rows.append(
            {
                "run": name,
                setting: config.get(setting),
                **asdict(_mean(last["value"], last["topic"])),
                "high_share": float((known > threshold).mean()) if len(known) else math.nan,
                **_change_columns(change(verdicts)),
                "against_first": difference.estimate,
                "against_low": difference.low,
                "against_high": difference.high,
                "shared_topics": difference.clusters or 0,
            }
        )
    return setting, pd.DataFrame(rows)


def _change_columns(table: pd.DataFrame) -> dict[str, float]:
    """The change over all roles; NaN in a run of one round."""
    rows = [row for row in table.to_dict("records") if (row["judge"], row["role"]) == (FIRST, "all")]
    columns = {"change": "estimate", "change_low": "low", "change_high": "high"}
    return {name: rows[0][key] if rows else math.nan for name, key in columns.items()}


def _sort_key(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, str(value))


def summary(verdicts: pd.DataFrame) -> Iterator[str]:
    """One run in sentences, which claim no more than the intervals do."""
    topics = verdicts["topic"].nunique()
    if topics < FEW_TOPICS:
        yield f"Only {plural(topics, 'topic')}: intervals are wide, and a real change may have been missed."
    changes = change(verdicts)
    if len(changes):
        row = changes[(changes["role"] == "all") & (changes["judge"] == FIRST)].iloc[0]
        rounds = f"from round {row['first']} to round {row['last']}"
        if math.isnan(row["low"]):
            yield f"The change in the score {rounds} cannot be judged from {plural(row['clusters'], 'topic')}."
        elif row["low"] <= 0 <= row["high"]:
            yield (
                f"No clear change {rounds}: {row['estimate']:+.2f} points "
                f"({row['low']:+.2f} to {row['high']:+.2f}). That is not evidence of no change."
            )
        else:
            verb = "fell" if row["estimate"] < 0 else "rose"
            yield (
                f"The referee's bias score {verb} by {abs(row['estimate']):.2f} points {rounds} "
                f"(95% interval {row['low']:+.2f} to {row['high']:+.2f}, {plural(row['clusters'], 'topic')})."
            )
        blind = changes[(changes["role"] == "all") & (changes["judge"] == AGAIN)]
        for second in blind.itertuples():
            interval = f"{second.low:+.2f} to {second.high:+.2f}" if second.low < second.high else "no interval"
            yield (
                "Change according to a second referee that did not know the round: "
                f"{second.estimate:+.2f} points ({interval})."
            )
        if blind.empty:
            yield (
                "The referee knows which round it scores, so part of a change may be its own expectation "
                "(--rereferee adds a blind one)."
            )
    for ranks in rankings(verdicts).to_dict("records"):
        if ranks["judge"] != FIRST:
            continue
        count = ranks["reports"] - ranks["unreadable"] - ranks["no_ranking"]
        yield (
            f"{plural(ranks['reports'], 'referee report')}: {ranks['unreadable']:,} unreadable, "
            f"{ranks['no_ranking']:,} without a ranking; {ranks['contradicted']:,} of {plural(count, 'ranking')} "
            "contradicted the referee's own scores."
        )
