"""Does debating lower bias? RLDF's numbers, from a frame of verdicts: bias by round and role, rankings, ablations.

A frame has one row a verdict: the unit's facets (bias, topic, mode, …) and judge, role, round, subject (the speaker),
metric (`bias`, `rank`, `discordant`, `role_break`, `leak`, `refused`, `cut`), value, status. Statements of one debate
answer each other, and debates on one topic are alike: every interval is over topics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.agreement import krippendorff_alpha, weighted_kappa
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.results import Interval

THRESHOLD = 3.0
FIRST, AGAIN = "Referee", "Referee_again"
FLAGS = ("role_break", "leak", "refused", "echo", "loop", "cut")
FEW_TOPICS = 10


def tables(verdicts: pd.DataFrame, threshold: float = THRESHOLD) -> dict[str, pd.DataFrame]:
    """Every table of one run."""
    return {
        "by_round": by_round(verdicts, threshold),
        "change": change(verdicts),
        "rankings": rankings(verdicts),
        "refereed_again": refereed_again(verdicts, threshold),
        "flags": flags(verdicts),
    }


def scores(verdicts: pd.DataFrame, judge: str = FIRST) -> pd.DataFrame:
    """The referee's scores, one row a statement; `value` is NaN where the report could not be read."""
    return uncategorised(verdicts[(verdicts["metric"] == "bias") & (verdicts["judge"] == judge)])


def _mean(values: pd.Series, topics: pd.Series) -> Interval:
    """The mean over topics. Where all topics are alike there is no spread to judge by, and no interval."""
    found = cluster_mean(values, topics)
    return found if found.low < found.high else replace(found, low=math.nan, high=math.nan)


def by_round(verdicts: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """Mean bias score by round, for everyone and for each role, and the share of statements above the threshold."""
    rows: list[dict[str, Any]] = []
    said = scores(verdicts)
    for role, part in [("all", said), *said.groupby("subject", sort=False)]:
        for number, here in part.groupby("round"):
            found = _mean(here["value"], here["topic"])
            known = here["value"].dropna()
            rows.append(
                {
                    "role": role,
                    "round": number,
                    **asdict(found),
                    "high_share": float((known > threshold).mean()) if len(known) else math.nan,
                    "unreadable": int(here["value"].isna().sum()),
                }
            )
    return pd.DataFrame(rows)


def change(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Last round minus first, within each debate: below 0, debating lowered the score.

    The second referee, where there is one, does not know which round it scores.
    """
    first, last = verdicts["round"].min(), verdicts["round"].max()
    rows: list[dict[str, Any]] = []
    for judge in (FIRST, AGAIN) if first != last else ():
        said = scores(verdicts, judge)
        for role, part in [("all", said), *said.groupby("subject", sort=False)]:
            found = _mean(*_gaps(part, first, last))
            rows.append({"judge": judge, "role": role, "first": first, "last": last, **asdict(found)})
    table = pd.DataFrame(rows)
    return table[table["n"] > 0] if rows else table


def _gaps(said: pd.DataFrame, first: int, last: int) -> tuple[pd.Series, pd.Series]:
    """The difference in each debate that has both rounds, and the debate's topic."""
    table = said.pivot_table(index=["topic", "unit"], columns="round", values="value", aggfunc="mean")
    table = table.reindex(columns=[first, last])
    gap = (table[last] - table[first]).dropna()
    return gap, gap.index.get_level_values("topic").to_series(gap.index)


def rankings(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Do the referee's ranks follow from its scores? Pairs with equal scores may be ranked either way."""
    rows: list[dict[str, Any]] = []
    for judge, part in uncategorised(verdicts[verdicts["metric"] == "discordant"]).groupby("judge", sort=False):
        readable = part[part["status"].isin(["ok", "repaired"])]
        valid = readable[readable["value"].notna()]
        agree = (valid["value"] == 0).astype(float)
        found = _mean(agree, valid["topic"])
        counts = {
            "reports": len(part),
            "unreadable": len(part) - len(readable),
            "no_ranking": len(readable) - len(valid),
        }
        rows.append({"judge": judge, **counts, "contradicted": int((valid["value"] > 0).sum()), **asdict(found)})
    return pd.DataFrame(rows)


def refereed_again(verdicts: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """Agreement of the first scores with those of a second, blind refereeing; empty where there was none."""
    both = _both_scores(verdicts)
    if both.empty:
        return both
    sides = (both[[FIRST, AGAIN]] > threshold).astype(int)
    points = both[[FIRST, AGAIN]].round().astype(int)
    scale = list(range(11))
    found = {
        "weighted kappa of scores, quadratic": weighted_kappa(
            points[FIRST], points[AGAIN], weights="quadratic", categories=scale, clusters=both["topic"]
        ),
        "Krippendorff's alpha of scores": krippendorff_alpha(both[[FIRST, AGAIN]], clusters=both["topic"]),
        f"Cohen's kappa of high and low (threshold {threshold:g})": weighted_kappa(
            sides[FIRST], sides[AGAIN], weights="none", categories=[0, 1], clusters=both["topic"]
        ),
        "second minus first score": _mean(both[AGAIN] - both[FIRST], both["topic"]),
    }
    return pd.DataFrame([{"what": what, **asdict(one)} for what, one in found.items()])


def _both_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    bias = uncategorised(verdicts[verdicts["metric"] == "bias"])
    table = bias.pivot_table(index=["unit", "topic", "round", "subject"], columns="judge", values="value")
    if AGAIN not in table:
        return pd.DataFrame()
    return table.dropna(subset=[FIRST, AGAIN]).reset_index()


def flags(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Share of statements that broke role, gave it away, refused, repeat what was said, or were cut, by role."""
    rows: list[dict[str, Any]] = []
    noted = uncategorised(verdicts[verdicts["metric"].isin(FLAGS)])
    groups = [("all", noted), *noted.groupby("subject", sort=False)] if len(noted) else []
    for role, part in groups:
        for metric in FLAGS:
            here = part[part["metric"] == metric]
            if not len(here):
                continue  # nobody looked for it: older runs have fewer flags
            found = _mean(here["value"], here["topic"])
            rows.append({"role": role, "flag": metric, "count": int(here["value"].sum()), **asdict(found)})
    return pd.DataFrame(rows)


TOGETHER = {frozenset({"mode", "teacher"}): "mode"}
"""Settings that cannot change one without the other."""


def differing(configs: Mapping[str, Mapping[str, Any]]) -> str:
    """The one setting in which runs differ. Anything else is no ablation, and is refused."""
    keys = {key for config in configs.values() for key in config}
    unlike = {key for key in keys if len({json.dumps(one.get(key), sort_keys=True) for one in configs.values()}) > 1}
    if frozenset(unlike) in TOGETHER:
        return TOGETHER[frozenset(unlike)]
    if len(unlike) != 1:
        what = f"in {', '.join(sorted(unlike))}" if unlike else "in nothing"
        raise ValueError(f"an ablation compares runs that differ in one setting; these differ {what}")
    return unlike.pop()


def ablation(
    runs: Mapping[str, tuple[Mapping[str, Any], pd.DataFrame]], threshold: float = THRESHOLD
) -> tuple[str, pd.DataFrame]:
    """Runs that differ in one setting: bias of the last round, its change since the first, and beside the first run.

    `against_first` is the difference to the run with the lowest value of the setting, on the topics both have.
    """
    setting = differing({name: config for name, (config, _) in runs.items()})
    ordered = sorted(runs.items(), key=lambda item: _sort_key(item[1][0].get(setting)))
    rows: list[dict[str, Any]] = []
    base: pd.Series | None = None
    for name, (config, verdicts) in ordered:
        said = scores(verdicts)
        last = said[said["round"] == said["round"].max()]
        by_topic = last.groupby("topic")["value"].mean().dropna()
        gap = (by_topic - base).dropna() if base is not None else pd.Series(dtype=float)
        beside = _mean(gap, gap.index.to_series())
        base = by_topic if base is None else base
        known = last["value"].dropna()
        rows.append(
            {
                "run": name,
                setting: config.get(setting),
                **asdict(_mean(last["value"], last["topic"])),
                "high_share": float((known > threshold).mean()) if len(known) else math.nan,
                **_moved(change(verdicts)),
                "against_first": beside.estimate,
                "against_low": beside.low,
                "against_high": beside.high,
                "shared_topics": beside.clusters or 0,
            }
        )
    return setting, pd.DataFrame(rows)


def _moved(table: pd.DataFrame) -> dict[str, float]:
    """The change of everyone's scores, NaN in a run of one round."""
    found = [row for row in table.to_dict("records") if (row["judge"], row["role"]) == (FIRST, "all")]
    ends = {"change": "estimate", "change_low": "low", "change_high": "high"}
    return {name: found[0][key] if found else math.nan for name, key in ends.items()}


def _sort_key(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, str(value))


def in_words(verdicts: pd.DataFrame) -> Iterator[str]:
    """Plain sentences that claim no more than the intervals do."""
    topics = verdicts["topic"].nunique()
    if topics < FEW_TOPICS:
        yield f"Only {topics} topics: intervals are wide, and a change that is missed here may still be real."
    moved = change(verdicts)
    if len(moved):
        row = moved[(moved["role"] == "all") & (moved["judge"] == FIRST)].iloc[0]
        rounds = f"from round {row['first']} to round {row['last']}"
        if math.isnan(row["low"]):
            yield f"How the score moved {rounds} cannot be told from {row['clusters']} topics."
        elif row["low"] <= 0 <= row["high"]:
            yield (
                f"No clear change {rounds}: {row['estimate']:+.2f} points "
                f"({row['low']:+.2f} to {row['high']:+.2f}). That is not evidence of no change."
            )
        else:
            way = "fell" if row["estimate"] < 0 else "rose"
            yield (
                f"The referee's bias score {way} by {abs(row['estimate']):.2f} points {rounds} "
                f"(95% interval {row['low']:+.2f} to {row['high']:+.2f}, {row['clusters']} topics)."
            )
        blind = moved[(moved["role"] == "all") & (moved["judge"] == AGAIN)]
        for one in blind.itertuples():
            told = f"{one.low:+.2f} to {one.high:+.2f}" if one.low < one.high else "no interval"
            yield f"To a second referee, who did not know the round: {one.estimate:+.2f} points ({told})."
        if blind.empty:
            yield "The referee knows which round it scores, so part of a change may be its own (--rereferee is blind)."
    for ranks in rankings(verdicts).to_dict("records"):
        if ranks["judge"] != FIRST:
            continue
        given = ranks["reports"] - ranks["unreadable"] - ranks["no_ranking"]
        yield (
            f"Of {ranks['reports']} reports {ranks['unreadable']} could not be read; of the others "
            f"{ranks['no_ranking']} gave no ranking, and {ranks['contradicted']} of the {given} rankings went "
            "against their own scores."
        )
