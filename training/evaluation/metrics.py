"""Before and after training, side by side: systems against a baseline on the same rows of BBQ and the same topics.

Systems are named by whoever calls (Default, CoT, SFT, RLDF, …); every comparison is paired, clustered by scenario (BBQ)
or by topic (BS, CE, LS), and Holm runs over each table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from parley.analysis.bbq.leaderboard import against, answers, by_category
from parley.analysis.reporting.report import Figure, Report, Table
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.resampling import DRAWS

LOWER_IS_BETTER = "BS is severity: lower is better; CE and LS: higher is better."


def bbq_tables(verdicts: pd.DataFrame, baseline: str, *, draws: int = DRAWS, seed: int = 0) -> list[Table]:
    """Accuracy and bias by category, and each system against the baseline. `verdicts` has a column `system`."""
    frame = answers(verdicts).assign(system=verdicts_system(verdicts))
    others = [name for name in dict.fromkeys(frame["system"]) if name != baseline]
    tests = against(frame, [(name, baseline) for name in others], draws=draws, seed=seed)
    shown = ("system", "context", "category", "accuracy", "accuracy_low", "accuracy_high", "bias", "low", "high", "n")
    note = "95% intervals clustered by scenario; answers that could not be read are left out and counted."
    return [
        Table("bbq", "BBQ: accuracy and bias", by_category(frame), (*shown, "unparsed"), note),
        Table(
            "bbq_paired",
            f"BBQ: each against {baseline}, on the rows both answered readably",
            tests,
            ("system", "context", "measure", "difference", "low", "high", "p", "p_adjusted", "n", "clusters", "note"),
            "System minus baseline; Holm over the table.",
            printed=True,
        ),
    ]


def verdicts_system(verdicts: pd.DataFrame) -> list[str]:
    """The system of each final answer, in the order `answers` gives them."""
    kept = verdicts[verdicts["metric"].astype(str) == "answer"]
    return [str(name) for name in kept["system"]]


def rubric_tables(verdicts: pd.DataFrame, baseline: str, *, draws: int = DRAWS, seed: int = 0) -> list[Table]:
    """BS, CE and LS from 0 to 100 by system, and each against the baseline by topic.

    `verdicts` are a rubric run's, with columns `system` and `topic`; all judges of an answer are averaged first.
    """
    frame = uncategorised(verdicts).assign(value=lambda one: one["value"] * 10)
    means = frame.groupby(["system", "metric", "topic"], sort=False)["value"].mean().reset_index()
    rows, tests = [], []
    for (system, metric), here in means.groupby(["system", "metric"], sort=False):
        found = cluster_mean(here["value"], here["topic"], scale=(0, 100))
        unread = frame[(frame["system"] == system) & (frame["metric"] == metric)]["value"].isna().sum()
        rows.append(
            {
                "system": system,
                "metric": metric,
                "mean": found.estimate,
                "low": found.low,
                "high": found.high,
                "topics": found.clusters,
                "unreadable": int(unread),
            }
        )
        if system != baseline:
            tests += list(_against(means, str(system), baseline, str(metric), draws, seed))
    table = pd.DataFrame(tests)
    if len(table):
        table.insert(
            list(table.columns).index("p") + 1, "p_adjusted", list(holm(table["p"], "systems × metrics").adjusted)
        )
    return [
        Table("rubric", "BS, CE and LS on held-out topics, 0 to 100", pd.DataFrame(rows), (), LOWER_IS_BETTER, True),
        Table("rubric_paired", f"Each against {baseline}, topic by topic", table, (), LOWER_IS_BETTER, True),
    ]


def answers_table(said: pd.DataFrame) -> Table:
    """What the scores do not show: a policy may have learnt to say little, nothing, or always the same.

    `said` has a row for each answer: system, topic, text.
    """
    rows = []
    for system, here in said.groupby("system", sort=False):
        texts = here["text"].str.strip()
        found = cluster_mean(texts.str.split().str.len(), here["topic"], scale=(0, math.inf))
        rows.append(
            {
                "system": system,
                "answers": len(here),
                "empty": int((texts == "").sum()),
                "words": found.estimate,
                "low": found.low,
                "high": found.high,
                "distinct": texts.nunique() / len(texts),
            }
        )
    note = (
        "Words of an answer with 95% intervals; `distinct` is the share of different texts. Empty ones have no scores."
    )
    return Table("answers", "What was answered", pd.DataFrame(rows), (), note, True)


def _against(
    means: pd.DataFrame, system: str, baseline: str, metric: str, draws: int, seed: int
) -> Iterator[dict[str, Any]]:
    here = means[means["metric"] == metric]
    both = here[here["system"] == system].merge(here[here["system"] == baseline], on="topic", suffixes=("", "_base"))
    found = paired_permutation(both["value"], both["value_base"], both["topic"], draws=draws, seed=seed)
    yield {
        "system": system,
        "metric": metric,
        "difference": found.effect,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "topics": found.clusters,
        "note": found.note,
    }


def report(tables: list[Table], title: str, cautions: tuple[str, ...], missing: tuple[str, ...]) -> Report:
    """One report; what was not measured is said."""
    words = tuple(_words(tables)) + tuple(f"Not measured: {one}." for one in missing)
    kept = tuple(one for one in tables if len(one.frame))
    return Report(title, words, cautions, kept, tuple(_figures(kept, title)))


def _figures(tables: tuple[Table, ...], title: str) -> Iterator[Figure]:
    from parley.training.figures import differences_figure

    for table in tables:
        if table.name.endswith("_paired"):
            measures = points(table)
            note = f"{table.title}. Points of 100 with 95% intervals, not adjusted for their number."
            yield Figure(table.name, note, table.name, partial(differences_figure, measures, title, note))


def points(table: Table) -> pd.DataFrame:
    """The differences of a paired table, all in points of 100: measure, system, difference, low, high."""
    frame = table.frame
    if table.name == "rubric_paired":
        return frame.assign(measure=frame["metric"].astype(str))
    shares = frame["measure"].eq("accuracy").map({True: 100.0, False: 1.0})
    scaled = {name: frame[name] * shares for name in ("difference", "low", "high")}
    contexts = frame["context"].map({"ambig": "ambiguous", "disambig": "disambiguated"})
    return frame.assign(measure=frame["measure"] + ", " + contexts, **scaled)


def _words(tables: list[Table]) -> Iterator[str]:
    for table in tables:
        if table.name == "answers":
            for row in table.frame.itertuples():
                yield f"{row.system}: {row.words:.1f} words an answer, {row.empty} empty, {row.distinct:.0%} distinct."
        if not table.name.endswith("_paired") or not len(table.frame):
            continue
        for row in table.frame.itertuples():
            name = row.metric if table.name == "rubric_paired" else f"{row.measure} ({row.context})"
            points = row.difference * (100 if name.startswith("accuracy") else 1)
            sure = "" if row.p_adjusted != row.p_adjusted else f", p = {row.p_adjusted:.2g} after Holm"
            if row.difference == row.difference:
                yield f"{row.system}: {name} {points:+.1f} points{sure}."
