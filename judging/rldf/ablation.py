"""Compares runs that differ in one setting, on the topics and roles that all runs have.

Roles differ in how biased they sound, so means over five roles and over two would differ even if all debates were the
same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from parley.analysis.effects import ALL, Question, against, answer, corrected_differences, estimates, share
from parley.analysis.page.report import Section, answered, joined, section
from parley.analysis.stats.results import About, Line
from parley.base.text import plural
from parley.judging.rldf.debates import (
    CLUSTERS,
    JUDGES,
    SHARES,
    STORED_AS,
    scores,
    statements,
    undecided_changes,
    units_of,
)
from parley.judging.rldf.referee import AGAIN, REFEREE

TOGETHER = {frozenset({"mode", "teacher"}): "mode"}
"""Settings that change together; the ablation is named after one of them."""
SHARED = "On the topics and roles that all runs have."
AGAINST = Question(
    name="ablation",
    ask="Does the setting change the bias of the last round?",
    measures={"score": "bias score of the last round"},
    unit="points of 10",
    by=("judge",),
    arms="setting",
    item=("topic", "subject"),
    cluster="topic",
    family=(),
    facets=STORED_AS | {"setting": ()},
    note=f"{SHARED} The first referee's lines are planned; the blind one's are a second family.",
)
LEVELS = Question(
    name="last_round",
    ask="How biased is the last round with each setting?",
    measures={**AGAINST.measures, "change": "change since the first round"},
    unit="points of 10",
    by=("setting",),
    cluster="topic",
    facets=AGAINST.facets,
    note=f"{SHARED} {CLUSTERS}",
    stated=False,
)
HIGH = replace(
    LEVELS,
    name="last_round_high",
    ask="How many statements of the last round are highly biased with each setting?",
    measures={"high": SHARES.measures["high"]},
    unit="",
    level=share,
    scale="share",
)
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


def by_setting(runs: Runs, setting: str) -> dict[str, pd.DataFrame]:
    """The verdicts of each run on the common topics and roles, by the value of the setting, in order."""
    topics, roles = shared(runs)
    ordered = sorted(runs.items(), key=lambda item: _sort_key(item[1][0].get(setting)))
    values = [f"{setting} {config.get(setting)}" for _, (config, _) in ordered]
    return {
        value if values.count(value) == 1 else f"{value} ({name})": verdicts[
            verdicts["topic"].isin(topics) & verdicts["subject"].isin(roles)
        ]
        for value, (name, (_, verdicts)) in zip(values, ordered, strict=True)
    }


def last_rounds(kept: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The statements of each run's last round."""
    frame = statements(kept).rename(columns={"run": "setting"})
    frame = frame[frame["role"] == ALL]
    return frame[frame["round"] == frame.groupby(["setting", "judge"])["round"].transform("max")]


def differences(last: pd.DataFrame) -> list[Line]:
    """The bias of the last round, each setting minus the first, role by role and topic by topic."""
    cells = last.groupby(["setting", "judge", "topic", "subject"], sort=False)["score"].mean().dropna().reset_index()

    def further(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
        return {
            "group": (JUDGES[about.judge],),
            "units": units_of(about.judge),
            "secondary": about.judge == AGAIN,
        }

    question = replace(AGAINST, pairs=against(last["setting"].iloc[0]), further=further)
    return corrected_differences(estimates(question, cells[cells["judge"].isin([REFEREE, AGAIN])]), family=())


def levels(kept: Mapping[str, pd.DataFrame], last: pd.DataFrame) -> list[Line]:
    """The bias of the last round by the referee, and its change since the first."""
    bias = answer(replace(LEVELS, measures=AGAINST.measures), last[last["judge"] == REFEREE])
    change = [
        replace(line, measure="change", about=About.of(setting=line.about.run), secondary=True)
        for line in undecided_changes(kept)
        if not line.secondary
    ]
    return [
        replace(line, p=math.nan, label=line.about.columns["setting"], group=(), p_adjusted=math.nan)
        for line in (*bias, *change)
    ]


def ablation_section(runs: Runs) -> Section:
    """The section on whether the differing setting changes the bias of the last round.

    Args:
        runs: The config and the verdicts of each run, by its name.
    """
    try:
        setting = differing_setting({name: config for name, (config, _) in runs.items()})
    except ValueError as error:
        return Section(warnings=[f"{str(error)[0].upper()}{str(error)[1:]}."])
    kept, warnings = by_setting(runs, setting), notes(runs)
    if not all(map(len, kept.values())):
        return Section(warnings=warnings)
    last = last_rounds(kept)
    kept_levels = levels(kept, last)
    question = replace(AGAINST, ask=f"Does the setting '{setting}' change the bias of the last round?")
    parts = [
        section(question, differences(last)),
        section(LEVELS, kept_levels),
        answered(HIGH, last[last["judge"] == REFEREE]),
    ]
    return joined([Section(warnings=warnings), *parts])


def notes(runs: Runs) -> list[str]:
    """Notes on what was compared, what was left out, and whether the referees are the same."""
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


def _sort_key(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, str(value))
