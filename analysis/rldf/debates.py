"""Does debating lower bias? RLDF's numbers, from a frame of verdicts: bias by round and role, and rankings.

A frame has one row per verdict: the unit's facets (bias, topic, mode, …) and judge, role, round, subject (the
speaker), metric (`bias`, `rank`, `discordant`, `role_break`, `leak`, `refused`, `cut`), value, status. Statements of
one debate answer each other, and debates on one topic are similar: every interval is over topics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import PALETTE, caption, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Figure, Section, Table, format_interval
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import with_holm
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.results import ALPHA, MADE, Line, columns
from parley.base.text import p_text, plural

THRESHOLD = 3.0
FIRST, AGAIN = "Referee", "Referee_again"
SAME_DEBATES = "Referee, debates of Referee_again"
FEW_TOPICS = 10


Runs = Mapping[str, pd.DataFrame]
"""The verdicts of each run by its file name; a report of one run has one."""
OVER_TOPICS = "Intervals are 95%, over topics: statements of one debate are not independent, topics are."
JUDGES = {
    FIRST: "referee, who knows the round",
    AGAIN: "second referee, blind",
    SAME_DEBATES: "first referee, on the blind one's debates",
}
POINTS = "bias score (points of 10)"
FLIPPED = (
    "95% intervals and p: sign flips over topics. p_adjusted: Holm-corrected over the runs' rows of all roles by the "
    "first referee, the planned ones, and over all other rows."
)
CHANGED = "Within debates; below 0 the score fell."
MARKERS = "os^Dv"


def of_runs(runs: Runs, table: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """A table of every run; with the column `run` if there are several.

    Args:
        runs: The verdicts by run.
        table: Makes the table of one run.
    """
    frames = {name: frame for name, verdicts in runs.items() if len(frame := table(verdicts))}
    listed = [frame.assign(run=name) if len(runs) > 1 else frame for name, frame in frames.items()]
    return pd.concat(listed, ignore_index=True) if listed else pd.DataFrame()


def table_of(name: str, title: str, frame: pd.DataFrame, shown: tuple[str, ...], **more: Any) -> Table:
    """A table of the report, with a column for the run where there are several."""
    run = ("run",) if "run" in frame else ()
    return Table(name=name, title=title, frame=frame, shown=(*run, *shown), **{"note": OVER_TOPICS, **more})


def _group(row: Any) -> str:
    return f"{row.run} · {JUDGES[row.judge]}" if hasattr(row, "run") else JUDGES[row.judge]


def _role(role: str) -> str:
    return "all roles" if role == "all" else role


def change_section(runs: Runs) -> Section:
    """Does debating lower the score? The referee's scores over all roles are planned; the rest is added."""
    changes = of_runs(runs, change)
    if len(changes):
        changes = with_holm(changes, pd.Series([_planned(row) for row in changes.itertuples()]))
    forest = Forest(
        name="change",
        question="Does debating lower the bias score?",
        axis=f"change of the {POINTS}, last round minus first",
        lines=lines_of(
            changes,
            lambda row: _role(row.role),
            value="estimate",
            p="p_adjusted",
            group=_group,
            secondary=lambda row: not _planned(row),
        ),
        table="change",
        note=f"{CHANGED} {FLIPPED}",
    )
    shown = ("judge", "role", "first", "last", "estimate", "low", "high", "p_adjusted", "clusters")
    table = table_of("change", "Last round minus first, within debates", changes, shown, note=FLIPPED, printed=True)
    few = [name for name, verdicts in runs.items() if verdicts["topic"].nunique() < FEW_TOPICS]
    return Section(
        tables=[table],
        forests=[forest],
        warnings=[
            f"{prefix(runs, name)}Only {plural(runs[name]['topic'].nunique(), 'topic')}: intervals are wide, and a "
            "real change may have been missed."
            for name in few
        ],
        words=[sentence for row in changes.itertuples() for sentence in _on_change(row, changes)],
    )


def _planned(row: Any) -> bool:
    return bool(row.role == "all" and row.judge == FIRST)


def prefix(runs: Runs, name: str) -> str:
    """What a sentence begins with: the run's name where there are several."""
    return f"{name}: " if len(runs) > 1 else ""


def _on_change(row: Any, changes: pd.DataFrame) -> Iterator[str]:
    """One sentence on the planned row of a run, one on the blind referee, and one per role that was shown to change."""
    run = f"{row.run}: " if hasattr(row, "run") else ""
    rounds = f"from round {row.first} to round {row.last}"
    points = f"{row.estimate:+.2f} points ({format_interval(row.low, row.high, '+.2f') or 'no interval'})"
    test = f"p {p_text(row.p_adjusted)}, {plural(row.clusters, 'topic')}"
    verb = "fell" if row.estimate < 0 else "rose"
    is_shown = row.p_adjusted <= ALPHA
    if _planned(row) and is_shown:
        yield f"{run}The referee's bias score {verb} {rounds}: {points}, {test}."
        own = changes[changes["run"] == row.run] if run else changes
        if AGAIN not in set(own["judge"]):
            yield (
                f"{run}The referee knows which round it scores, so part of the change may be its own expectation "
                "(--rereferee adds a blind one)."
            )
    elif _planned(row):
        none = "That does not show that there is none."
        yield f"{run}No change in the bias score {rounds} was shown: {points}, {test}. {none}"
    elif row.role == "all" and row.judge == AGAIN:
        shown = f"the score {verb}" if is_shown else "no change was shown"
        yield f"{run}By a second referee that did not know the round, {shown}: {points}, {test}."
    elif row.judge == FIRST and is_shown:
        yield f"{run}The score of {row.role} {verb} {rounds}: {points}, {test}."


def rounds_section(runs: Runs, title: str) -> Section:
    """How biased is each round?"""

    def rounds(verdicts: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([by_round(verdicts), *blind_rounds(verdicts)], ignore_index=True)

    table = of_runs(runs, rounds)
    forest = Forest(
        name="by-round",
        question="How biased is each round?",
        axis=POINTS,
        lines=lines_of(
            table,
            lambda row: f"round {row.round}",
            value="estimate",
            group=lambda row: f"{_group(row)} · {_role(row.role)}",
        ),
        reference=None,
        table="by_round",
        note=OVER_TOPICS,
    )
    figures = [
        Figure(
            name=f"rounds-{number}" if len(runs) > 1 else "rounds",
            caption=f"{prefix(runs, name)}Mean bias score by round ({plural(part['topic'].nunique(), 'topic')}).",
            table="by_round",
            draw=partial(rounds_figure, rounds(part), f"{title} · {name}" if len(runs) > 1 else title, OVER_TOPICS),
        )
        for number, (name, part) in enumerate(runs.items(), 1)
    ]
    shown = ("judge", "role", "round", "estimate", "low", "high", "high_share", "unreadable", "clusters")
    return Section(
        tables=[table_of("by_round", "Bias score by round and role", table, shown, printed=True)],
        figures=figures if len(table) else [],
        forests=[forest],
    )


def scores(verdicts: pd.DataFrame, judge: str = FIRST) -> pd.DataFrame:
    """The referee's scores, one row per statement; `value` is NaN if the report could not be read."""
    return uncategorised(verdicts[(verdicts["metric"] == "bias") & (verdicts["judge"] == judge)])


def mean_over_topics(values: pd.Series, topics: pd.Series) -> Line:
    """The mean over topics. If all topics have the same mean there is no spread, and no interval."""
    mean = cluster_mean(values, topics)
    return mean if mean.low < mean.high else replace(mean, low=math.nan, high=math.nan)


def flipped_mean(differences: pd.Series, topics: pd.Series) -> dict[str, Any]:
    """The mean difference over topics, with the interval and the p-value of sign flips.

    Args:
        differences: One per debate or statement.
        topics: The topic of each.
    """
    test = paired_permutation(differences, 0 * differences, topics)
    return columns(test, "estimate", "p", "n", "clusters", "note")


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
                    **columns(mean, "estimate", *MADE),
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
            names = {"judge": judge, "role": role, "first": first, "last": last}
            rows.append(names | flipped_mean(*_gaps(part, first, last)))
    refereed = scored_again(verdicts)
    if refereed["unit"].nunique() < verdicts["unit"].nunique():
        names = {"judge": SAME_DEBATES, "role": "all", "first": first, "last": last}
        rows.append(names | flipped_mean(*_gaps(scores(refereed), first, last)))
    table = pd.DataFrame(rows)
    return table[table["n"] > 0]


def _gaps(scored: pd.DataFrame, first: int, last: int) -> tuple[pd.Series, pd.Series]:
    """The difference in each debate that has both rounds, and the debate's topic."""
    table = scored.pivot_table(index=["topic", "unit"], columns="round", values="value", aggfunc="mean")
    table = table.reindex(columns=[first, last])
    gap = (table[last] - table[first]).dropna()
    return gap, gap.index.get_level_values("topic").to_series(gap.index)


def rounds_figure(rounds: pd.DataFrame, title: str, note: str) -> Drawing:
    """Mean bias by round: all roles and the blind referee on the left, each role on the right, with 95% intervals over
    topics."""
    figure, axes = sheet(8.6, 3.6, 2, sharey=True)
    left, right = axes.flat
    judges = list(dict.fromkeys(rounds["judge"]))
    for n, judge in enumerate(judges):
        rows = rounds[(rounds["role"] == "all") & (rounds["judge"] == judge)]
        _line(left, rows, n, JUDGES[judge], 0.06 * (n - (len(judges) - 1) / 2))
    if len(judges) == 1:
        note += " No blind referee scored these debates."
    roles = list(dict.fromkeys(rounds.loc[rounds["role"] != "all", "role"]))
    for n, role in enumerate(roles):
        _line(right, rounds[rounds["role"] == role], n + len(judges), str(role), 0.06 * (n - (len(roles) - 1) / 2))
    for axis, heading in ((left, "all roles"), (right, "by role")):
        axis.axhline(THRESHOLD, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
        axis.set(xlabel="round", ylim=(-0.2, 10.2), xticks=sorted(set(rounds["round"])))
        axis.set_title(heading, fontsize=9)
        tidy(axis, "both")
    left.set_ylabel("referee's bias score (0 to 10)")
    legend_beside(figure, (left, right))
    caption(figure, title, f"{note} Dotted: the threshold ({THRESHOLD:g}) between low and high bias.")
    return figure


def _line(axis: Axes, rows: pd.DataFrame, nth: int, label: str, shift: float) -> None:
    tint, x = PALETTE[nth % len(PALETTE)], rows["round"] + shift
    axis.vlines(x, rows["low"], rows["high"], color=tint, linewidth=1.4)
    marker = MARKERS[(nth - 1) % len(MARKERS)]
    axis.plot(x, rows["estimate"], marker + "-", color=tint, markersize=5, linewidth=1.2, label=plain_text(label))
