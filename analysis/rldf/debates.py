"""Does debating lower bias? RLDF's numbers, from a frame of verdicts: bias by round and role, and rankings.

A frame has one row per verdict: the unit's facets (bias, topic, mode, …) and judge, role, round, subject (the
speaker), metric (`bias`, `rank`, `discordant`, `role_break`, `leak`, `refused`, `cut`), value, status. Statements of
one debate answer each other, and debates on one topic are similar: every interval is over topics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.agreement import krippendorff_alpha, weighted_kappa
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.results import Interval
from parley.base.text import plural

THRESHOLD = 3.0
FIRST, AGAIN = "Referee", "Referee_again"
SAME_DEBATES = "Referee, debates of Referee_again"
FLAGS = ("role_break", "leak", "refused", "echo", "loop", "cut")
FEW_TOPICS = 10
WEAK_AGREEMENT, WEAK_CORRELATION = 0.75, 0.5
"""A blind referee below either gives a warning."""


def tables(verdicts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All tables of one run, by name.

    Args:
        verdicts: One row per verdict.
    """
    return {
        "by_round": pd.concat([by_round(verdicts), *blind_rounds(verdicts)], ignore_index=True),
        "change": change(verdicts),
        "rankings": rankings(verdicts),
        "refereed_again": refereed_again(verdicts),
        "flags": flags(verdicts),
    }


def scores(verdicts: pd.DataFrame, judge: str = FIRST) -> pd.DataFrame:
    """The referee's scores, one row per statement; `value` is NaN if the report could not be read."""
    return uncategorised(verdicts[(verdicts["metric"] == "bias") & (verdicts["judge"] == judge)])


def mean_over_topics(values: pd.Series, topics: pd.Series) -> Interval:
    """The mean over topics. If all topics have the same mean there is no spread, and no interval."""
    mean = cluster_mean(values, topics)
    return mean if mean.low < mean.high else replace(mean, low=math.nan, high=math.nan)


def by_round(verdicts: pd.DataFrame, judge: str = FIRST) -> pd.DataFrame:
    """Mean bias score by round, for all roles and for each, and the share of statements above the threshold.

    Args:
        verdicts: One row per verdict.
        judge: Whose scores.
    """
    rows: list[dict[str, Any]] = []
    scored = scores(verdicts, judge)
    for role, part in [("all", scored), *scored.groupby("subject", sort=False)]:
        for number, statements in part.groupby("round"):
            mean = mean_over_topics(statements["value"], statements["topic"])
            known = statements["value"].dropna()
            rows.append(
                {
                    "judge": judge,
                    "role": role,
                    "round": number,
                    **asdict(mean),
                    "high_share": float((known > THRESHOLD).mean()) if len(known) else math.nan,
                    "unreadable": int(statements["value"].isna().sum()),
                }
            )
    return pd.DataFrame(rows)


def blind_rounds(verdicts: pd.DataFrame) -> list[pd.DataFrame]:
    """`by_round` of the blind referee over all roles, and of the first on the same debates; empty without a blind one.

    A run may have only some of its debates scored again: the two referees are compared on those.
    """
    refereed = scored_again(verdicts)
    if refereed.empty:
        return []
    frames = [by_round(refereed, AGAIN)]
    if refereed["unit"].nunique() < verdicts["unit"].nunique():
        frames.append(by_round(refereed).assign(judge=SAME_DEBATES))
    return [frame[frame["role"] == "all"] for frame in frames]


def scored_again(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts on debates that a blind referee scored too."""
    units = scores(verdicts, AGAIN).dropna(subset=["value"])["unit"]
    return verdicts[verdicts["unit"].isin(set(units))]


def change(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Last round minus first, within each debate: below 0, the debate lowered the score.

    The second referee, if there is one, does not know which round it scores. If it scored only some of the debates, the
    first referee has a second row on those.

    Args:
        verdicts: One row per verdict.
    """
    first, last = verdicts["round"].min(), verdicts["round"].max()
    rows: list[dict[str, Any]] = []
    if verdicts["round"].nunique() < 2:
        return pd.DataFrame()
    for judge in (FIRST, AGAIN):
        scored = scores(verdicts, judge)
        for role, part in [("all", scored), *scored.groupby("subject", sort=False)]:
            mean = mean_over_topics(*_gaps(part, first, last))
            rows.append({"judge": judge, "role": role, "first": first, "last": last, **asdict(mean)})
    refereed = scored_again(verdicts)
    if refereed["unit"].nunique() < verdicts["unit"].nunique():
        mean = mean_over_topics(*_gaps(scores(refereed), first, last))
        rows.append({"judge": SAME_DEBATES, "role": "all", "first": first, "last": last, **asdict(mean)})
    table = pd.DataFrame(rows)
    return table[table["n"] > 0]


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
        mean = mean_over_topics(consistent, valid["topic"])
        counts = {
            "reports": len(part),
            "unreadable": len(part) - len(readable),
            "no_ranking": len(readable) - len(valid),
        }
        rows.append({"judge": judge, **counts, "contradicted": int((valid["value"] > 0).sum()), **asdict(mean)})
    return pd.DataFrame(rows)


def refereed_again(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Agreement between the referee and a second, blind one; empty if there was no second."""
    both = _both_scores(verdicts)
    if both.empty:
        return both
    sides = (both[[FIRST, AGAIN]] > THRESHOLD).astype(int)
    points = both[[FIRST, AGAIN]].round().astype(int)
    scale = list(range(11))
    estimates = {
        "weighted kappa of scores, quadratic": weighted_kappa(
            points[FIRST], points[AGAIN], weights="quadratic", categories=scale, clusters=both["topic"]
        ),
        "Krippendorff's alpha of scores": krippendorff_alpha(both[[FIRST, AGAIN]], clusters=both["topic"]),
        f"Cohen's kappa of high and low (threshold {THRESHOLD:g})": weighted_kappa(
            sides[FIRST], sides[AGAIN], weights="none", categories=[0, 1], clusters=both["topic"]
        ),
        "second minus first score": mean_over_topics(both[AGAIN] - both[FIRST], both["topic"]),
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
            mean = mean_over_topics(statements["value"], statements["topic"])
            rows.append({"role": role, "flag": metric, "count": int(statements["value"].sum()), **asdict(mean)})
    return pd.DataFrame(rows)


def _points(row: Any) -> str:
    interval = f"{row.low:+.2f} to {row.high:+.2f}" if row.low < row.high else "no interval"
    return f"{row.estimate:+.2f} points ({interval})"


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
            same = [first for first in changes.itertuples() if first.judge == SAME_DEBATES]
            beside = f"; the first referee, on the same debates: {_points(same[0])}" if same else ""
            yield f"Change according to a second referee that did not know the round: {_points(second)}{beside}."
        if blind.empty:
            yield (
                "The referee knows which round it scores, so part of a change may be its own expectation "
                "(--rereferee adds a blind one)."
            )
    yield from _on_agreement(verdicts)
    for ranks in rankings(verdicts).to_dict("records"):
        if ranks["judge"] != FIRST:
            continue
        count = ranks["reports"] - ranks["unreadable"] - ranks["no_ranking"]
        yield (
            f"{plural(ranks['reports'], 'referee report')}: {ranks['unreadable']:,} unreadable, "
            f"{ranks['no_ranking']:,} without a ranking; {ranks['contradicted']:,} of {plural(count, 'ranking')} "
            "contradicted the referee's own scores."
        )


def _on_agreement(verdicts: pd.DataFrame) -> Iterator[str]:
    """How well the blind referee agrees with the first, with a warning where it hardly does."""
    both = _both_scores(verdicts)
    if both.empty:
        return
    sides = (both[FIRST] > THRESHOLD) == (both[AGAIN] > THRESHOLD)
    correlation = both[FIRST].corr(both[AGAIN]) if both[FIRST].nunique() > 1 and both[AGAIN].nunique() > 1 else math.nan
    shown = "" if math.isnan(correlation) else f", with a correlation of {correlation:.2f}"
    weak = sides.mean() < WEAK_AGREEMENT or correlation < WEAK_CORRELATION
    yield (
        f"The blind referee puts {sides.mean():.0%} of {plural(len(both), 'statement')} on the same side of the "
        f"threshold{shown}."
        + (" WARNING: that is weak; scores, and pairs made from them, may be mostly noise." if weak else "")
    )
