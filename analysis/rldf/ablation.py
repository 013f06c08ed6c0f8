"""Runs that differ in one setting, compared on what all of them have: the same topics and the same roles.

Roles differ in how biased they sound: with five roles against two, the means over all roles differ although no debate
went differently. So a role that only some runs have is left out, and so is a topic.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import PALETTE, caption, dots, sheet
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Figure, Section, Table, format_interval
from parley.analysis.rldf.debates import (
    AGAIN,
    FIRST,
    OVER_TOPICS,
    POINTS,
    THRESHOLD,
    change,
    flipped_mean,
    mean_over_topics,
    scores,
)
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALPHA, MADE, columns
from parley.base.text import p_text, plural

TOGETHER = {frozenset({"mode", "teacher"}): "mode"}
"""Settings that cannot change independently; the ablation is named after one of them."""
AGAINST = (
    "against_first: this run's last round minus that of the first row, on the topics and roles that all runs have; "
    "against_blind: the same by the blind referee. p: sign flips over topics, Holm-corrected over the runs. "
    + OVER_TOPICS
)
SHOWN = (
    "estimate", "low", "high", "high_share", "change", "against_first", "against_low", "against_high", "against_p",
    "against_blind", "blind_low", "blind_high", "blind_p", "clusters",
)  # fmt: skip
Runs = Mapping[str, tuple[Mapping[str, Any], pd.DataFrame]]
"""The config and the verdicts of each run, by its name."""


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


def shared(runs: Runs) -> tuple[list[str], list[str]]:
    """The topics and the roles that all runs have."""
    frames = [scores(verdicts).dropna(subset=["value"]) for _, verdicts in runs.values()]
    topics, roles = (
        [value for value in dict.fromkeys(frames[0][key]) if all((frame[key] == value).any() for frame in frames)]
        for key in ("topic", "subject")
    )
    return topics, roles


def ablation(runs: Runs) -> tuple[str, pd.DataFrame]:
    """The bias of the last round and its change since the first, on the topics and roles that all runs have.

    `against_first` is the difference from the run with the lowest value of the setting, and `against_blind` the same by
    the blind referee. `all_roles` is the mean over every role of the run, which is not comparable between runs.

    Args:
        runs: The config and the verdicts of each run, by its name.
    """
    setting = differing_setting({name: config for name, (config, _) in runs.items()})
    ordered = sorted(runs.items(), key=lambda item: _sort_key(item[1][0].get(setting)))
    topics, roles = shared(runs)
    rows: list[dict[str, Any]] = []
    firsts: dict[str, pd.Series] = {}
    for name, (config, verdicts) in ordered:
        kept = verdicts[verdicts["topic"].isin(topics) & verdicts["subject"].isin(roles)]
        last, whole = (_last_round(scores(frame)) for frame in (kept, verdicts))
        known = last["value"].dropna()
        row: dict[str, Any] = {
            "run": name,
            setting: config.get(setting),
            **columns(mean_over_topics(last["value"], last["topic"]), "estimate", *MADE),
            "high_share": float((known > THRESHOLD).mean()) if len(known) else math.nan,
            **_change_columns(change(kept)),
        }
        for key, judge in (("against", FIRST), ("blind", AGAIN)):
            cells = _last_round(scores(kept, judge)).groupby(["topic", "subject"])["value"].mean().dropna()
            gap = (cells - firsts[judge]).dropna() if judge in firsts else pd.Series(dtype=float)
            by_topic = gap.index.get_level_values("topic").to_series(gap.index) if len(gap) else gap
            difference = flipped_mean(gap, by_topic)
            firsts.setdefault(judge, cells)
            row["against_first" if judge == FIRST else "against_blind"] = difference["estimate"]
            row |= {f"{key}_{name}": difference[name] for name in ("low", "high", "p")}
        row |= {"shared_topics": len(topics), "shared_roles": ", ".join(roles)}
        row["all_roles"] = mean_over_topics(whole["value"], whole["topic"]).estimate
        rows.append(row)
    table = pd.DataFrame(rows)
    for name in ("against_p", "blind_p"):  # the referee's are planned; the blind one's are added
        table[name] = holm(table[name])
    return setting, table


def ablation_section(runs: Runs, title: str) -> Section:
    """Does the one setting in which the runs differ change the bias of the last round?

    Args:
        runs: The config and the verdicts of each run, by its name.
        title: Title of the figure.
    """
    try:
        setting, table = ablation(runs)
    except ValueError as error:
        return Section(warnings=[f"{str(error)[0].upper()}{str(error)[1:]}."])
    figure = Figure(
        name="ablation",
        caption=f"Bias of the last round by {setting}, on the topics and roles that all runs have.",
        table="ablation",
        draw=lambda: ablation_figure(setting, table, title, OVER_TOPICS),
    )
    return Section(
        tables=[
            Table("ablation", f"One setting varied: {setting}", table, (setting, *SHOWN), note=AGAINST, printed=True)
        ],
        figures=[figure],
        forests=[ablation_forest(setting, table)],
        warnings=notes(runs),
        words=[
            f"With {setting} {getattr(row, setting, row.run)}, the bias of the last round is "
            f"{abs(row.against_first):.2f} points {'higher' if row.against_first > 0 else 'lower'} than with "
            f"{setting} {table[setting].iloc[0]} ({format_interval(row.against_low, row.against_high, '+.2f')}; p "
            f"{p_text(row.against_p)})."
            for row in table[table["against_p"] <= ALPHA].itertuples()
        ],
    )


def notes(runs: Runs) -> list[str]:
    """What was compared, what was left out, and whether the referees are the same."""
    topics, roles = shared(runs)
    if not topics or not roles:
        return ["The runs have no topic or no role in common, so nothing is compared."]
    lines = [f"Compared on what all runs have: {plural(len(topics), 'topic')}, the roles {', '.join(roles)}."]
    for name, (_, verdicts) in runs.items():
        scored = scores(verdicts)
        others = [role for role in dict.fromkeys(scored["subject"]) if role not in roles]
        rest = scored["topic"].nunique() - len(topics)
        parts = [*([f"roles {', '.join(others)}"] if others else []), *([plural(rest, "topic")] if rest else [])]
        if parts:
            lines.append(f"Left out of {name}: {' and '.join(parts)}, which another run does not have.")
    referees = {name: _referee(config) for name, (config, _) in runs.items()}
    if len(set(referees.values())) > 1:
        listed = ", ".join(f"{name} {referee}" for name, referee in referees.items())
        lines.append(
            f"The referees are different models ({listed}), so a difference may be theirs and not the debates'; "
            "--referee gives all runs the same one."
        )
    return lines


def _referee(config: Mapping[str, Any]) -> str:
    return str(config.get("referee") or config.get("teacher") or config.get("model") or "")


def _last_round(scored: pd.DataFrame) -> pd.DataFrame:
    return scored[scored["round"] == scored["round"].max()]


def _change_columns(table: pd.DataFrame) -> dict[str, float]:
    """The change over all roles; NaN in a run of one round."""
    rows = [row for row in table.to_dict("records") if (row["judge"], row["role"]) == (FIRST, "all")]
    columns = {"change": "estimate", "change_low": "low", "change_high": "high"}
    return {name: rows[0][key] if rows else math.nan for name, key in columns.items()}


def _sort_key(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, str(value))


def ablation_figure(setting: str, table: pd.DataFrame, title: str, note: str) -> Drawing:
    """Bias of the last round by the setting that was varied."""
    figure, axes = sheet(5.4, 1.5 + 0.3 * len(table))
    axis = axes.flat[0]
    names = [f"{setting} {value}" for value in table[setting]]
    dots(axis, names, table["estimate"], table["low"], table["high"], [PALETTE[0]] * len(table))
    axis.set(xlabel="bias score of the last round (0 to 10)")
    note = f"On {table['shared_topics'].iloc[0]} topics and the roles that all runs have. {note}"
    caption(figure, title, note)
    return figure


def ablation_forest(setting: str, table: pd.DataFrame) -> Forest:
    """Runs that differ in one setting, each against the first.

    Args:
        setting: The setting.
        table: One row per run.
    """
    first = table[setting].iloc[0]
    against = [("referee", "against_first", "against"), ("second referee, blind", "against_blind", "blind")]
    lines = [
        line
        for judge, value, ends in against
        for line in lines_of(
            table,
            lambda row: f"{setting} {getattr(row, setting, row.run)}",
            value=value,
            ends=(f"{ends}_low", f"{ends}_high"),
            p=f"{ends}_p",
            secondary=lambda row, ends=ends: ends == "blind",  # type: ignore[misc]
            group=lambda row, judge=judge: judge,  # type: ignore[misc]
        )
    ]
    return Forest(
        name="ablation",
        question=f"Does the setting '{setting}' change the bias of the last round?",
        axis=f"difference in {POINTS} from {setting} = {first}",
        lines=tuple(lines),
        table="ablation",
        note="On the topics and roles that all runs have. Intervals (95%) and p: sign flips over topics, p corrected.",
    )
