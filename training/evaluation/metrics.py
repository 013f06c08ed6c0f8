"""Systems before and after training, compared with a baseline on the same rows of BBQ and the same topics.

The caller names the systems (Default, CoT, SFT, RLDF, …). Every comparison is paired and clustered by question
template (BBQ) or by topic (BS, CE, LS), with Holm's correction over each table. Accuracy on BBQ with both contexts
together, and BS, CE and LS by bias type, are the paper's tables 1, 3, 10 and 11, which `published` has too; with
`seeds = 3`, their means and standard deviations over seeds are as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from parley.analysis.effects import Question, against, answer, corrected, estimates
from parley.analysis.gains import SCORES, gain_lines
from parley.analysis.page.report import Figure, Report, Table, as_frame
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.resampling import DRAWS
from parley.analysis.stats.results import ALPHA, Line, columns
from parley.analysis.stats.tables import Column, Floats, as_floats
from parley.analysis.verdicts import uncategorised
from parley.base.text import p_text
from parley.judging.bbq.comparisons import changes
from parley.judging.bbq.leaderboard import answers, bbq_pooled_table, scored, side_by_side
from parley.judging.rldf.report import published_table
from parley.training.evaluation.figures import differences_figure, radar_figure

LOWER_IS_BETTER = "BS is severity: lower is better; CE and LS: higher is better."
RADAR_AXES = 3
"""Minimum number of bias types for a radar: fewer enclose no area."""
RADAR = (
    "Means by bias type, 0 to 100, as the paper's figures 5 (CE) and 6 (LS) draw them. A line's area depends on the "
    "order of the bias types, and the intervals are in the table: compare systems by their differences."
)


def bbq_tables(verdicts: pd.DataFrame, baseline: str, *, draws: int = DRAWS, seed: int = 0) -> list[Table]:
    """Accuracy and bias by category, and each system against the baseline.

    Args:
        verdicts: Verdicts of BBQ runs, with a column `system`.
        baseline: The system that the others are compared with.
        draws: Draws of the bootstrap of each difference in bias.
        seed: Seed of the draws.
    """
    final = verdicts[verdicts["metric"].astype(str) == "answer"]  # in the order of `answers`
    frame = answers(verdicts).assign(system=final["system"].astype(str).to_list())
    contrasts = changes(frame, draws=draws, seed=seed, by=("context",), arms="system", pairs=against(baseline))
    lines = [line for question, rows in contrasts for line in estimates(question, rows)]
    tests = as_frame(corrected(lines, ()))  # bias and accuracy are one family here
    named = scored(frame.assign(method=frame["system"], model=""), tested=False)
    shown = ("system", "context", "category", "accuracy", "accuracy_low", "accuracy_high", "bias", "low", "high", "n")
    note = "95% intervals over question templates; unparsed answers are excluded and counted."
    return [
        Table(
            name="bbq",
            title="BBQ: accuracy and bias",
            frame=side_by_side(named).drop(columns="model").rename(columns={"method": "system"}),
            shown=(*shown, "unparsed"),
            note=note,
        ),
        bbq_pooled_table(frame),
        Table(
            name="bbq_paired",
            title=f"BBQ: each against {baseline}, on the rows with a parsed answer from both",
            frame=tests.rename(columns={"first": "system", "estimate": "difference"}),
            shown=(
                "system", "context", "measure", "difference", "low", "high", "p", "p_adjusted", "n", "clusters", "note",
            ),
            note="System minus baseline; Holm correction over the table.",
        ),
    ]  # fmt: skip


def rubric_tables(verdicts: pd.DataFrame, baseline: str) -> list[Table]:
    """BS, CE and LS from 0 to 100 by system, and each system against the baseline by topic.

    Args:
        verdicts: Verdicts of a rubric run, with columns `system` and `topic`, and `bias` for a table by bias type. The
            judges of an answer are averaged first.
        baseline: The system that the others are compared with.
    """
    frame = uncategorised(verdicts).assign(value=lambda scores: scores["value"] * 10)
    rows = _rubric_means(frame, ["system", "metric"])
    missing = frame["value"].isna().groupby([frame["system"], frame["metric"]], sort=False).sum()
    rows["unreadable"] = [int(missing[key]) for key in zip(rows["system"], rows["metric"], strict=True)]
    topics = frame.groupby(["system", "metric", "topic"], sort=False)["value"].mean().reset_index()
    compared = Question(
        name="rubric_paired",
        ask=f"How does each differ from {baseline}?",
        measures={"value": "score"},
        cluster="topic",
        by=("metric",),
        arms="system",
        pairs=against(baseline),
        item=("topic",),
        family=(),
    )
    tests = as_frame(answer(compared, topics)) if len(topics) else pd.DataFrame()
    by_bias = Table(
        name="rubric_by_bias",
        title="BS, CE and LS by bias type, 0 to 100",
        frame=_rubric_means(frame, ["system", "metric", "bias"]) if "bias" in frame else pd.DataFrame(),
        note=LOWER_IS_BETTER,
    )
    return [
        *([by_bias] if "bias" in frame else []),
        Table(
            name="rubric",
            title="BS, CE and LS on held-out topics, 0 to 100",
            frame=rows,
            note=LOWER_IS_BETTER,
        ),
        Table(
            name="rubric_paired",
            title=f"Each against {baseline}, topic by topic",
            frame=tests.rename(columns={"first": "system", "estimate": "difference", "clusters": "topics"}),
            shown=("system", "metric", "difference", "low", "high", "p", "p_adjusted", "topics", "note"),
            note=LOWER_IS_BETTER,
        ),
    ]


def _rubric_means(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The mean of each group, with its interval over topics."""
    means = frame.groupby([*by, "topic"], sort=False)["value"].mean().reset_index()
    rows = []
    for key, scores in means.groupby(by, sort=False):
        mean = cluster_mean(scores["value"], scores["topic"], scale=(0, 100))
        rows.append({**dict(zip(by, key, strict=True)), **columns(mean, "mean", topics="clusters")})
    return pd.DataFrame(rows)


def reward_gains(rewards: pd.DataFrame, verdicts: pd.DataFrame, baseline: str) -> list[Line]:
    """The gains of policies that the reward model and that judges see.

    A reward has no unit, so everything is in quantiles of the baseline's answers: the reward, and the mean of BS, CE
    and LS (the last two reversed).

    Args:
        rewards: One row per answer: system, topic, reward.
        verdicts: Verdicts of a rubric run, with columns `system` and `topic`.
        baseline: The system that the others are compared with.
    """
    frame = uncategorised(verdicts)
    faults = (10 * frame["value"]).where(frame["metric"] == "BS", 100 - 10 * frame["value"])
    by_metric = frame.assign(faults=faults).groupby(["system", "topic", "metric"], sort=False)["faults"].mean()
    judged = by_metric.groupby(["system", "topic"]).mean()
    scores = pd.DataFrame({"inside": -rewards.set_index(["system", "topic"])["reward"], "outside": judged})
    before = scores.xs(baseline, level="system")
    parts = []
    for system in dict.fromkeys(rewards["system"]):
        if system != baseline:
            after = scores.xs(system, level="system")
            items = before.add_suffix("0").join(after.add_suffix("1"), how="inner").reset_index()
            parts.append(items.assign(system=system, against=baseline, cluster=items["topic"], outside="the judges"))
    items = (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=[*SCORES, "system", "against", "cluster"])
    )
    complete = items.dropna(subset=list(SCORES))
    ranked = {name: quantiles(complete[name], before[name[:-1]].dropna()) for name in SCORES}
    return gain_lines(complete.assign(**ranked), ["system", "against"], cluster="topic")


def quantiles(values: Column, reference: Column) -> Floats:
    """The share of the reference, in percent, that is below each value; equal ones count half.

    Args:
        values: Scores.
        reference: Scores by the same measure.
    """
    ordered = np.sort(as_floats(reference))
    below, up_to = (np.searchsorted(ordered, as_floats(values), side=side) for side in ("left", "right"))
    share: Floats = 50.0 * (below + up_to) / max(1, len(ordered))
    return share


def answers_table(texts: pd.DataFrame) -> Table:
    """Length and variety of answers: a policy may have learnt to give short, empty or identical ones.

    Args:
        texts: One row per answer: system, topic, text.
    """
    rows = []
    for system, of_system in texts.groupby("system", sort=False):
        answers = of_system["text"].str.strip()
        words = cluster_mean(answers.str.split().str.len(), of_system["topic"], scale=(0, math.inf))
        rows.append(
            {
                "system": system,
                "answers": len(answers),
                "empty": int((answers == "").sum()),
                **columns(words, "words"),
                "distinct": answers.nunique() / len(answers),
            }
        )
    return Table(
        name="answers",
        title="Length and variety of the answers",
        frame=pd.DataFrame(rows),
        note="Words per answer with 95% intervals; `distinct` is the share of different texts. Empty answers have no "
        "scores.",
    )


def cases_table(texts: pd.DataFrame, verdicts: pd.DataFrame, baseline: str, policy: str) -> Table:
    """The answers of the untrained model and of the policy side by side, as in the paper's figure 7.

    Args:
        texts: One row per answer: system, topic, text.
        verdicts: Verdicts of a rubric run, with columns `system` and `topic`.
        baseline: The untrained model's system.
        policy: The trained one.
    """
    severity = uncategorised(verdicts[verdicts["metric"].astype(str) == "BS"])
    means = severity.assign(BS=10 * severity["value"]).groupby(["system", "topic"])["BS"].mean().reset_index()
    scored = texts.merge(means, on=["system", "topic"], how="left")
    sides = [scored[scored["system"] == system].drop(columns="system") for system in (baseline, policy)]
    both = sides[0].merge(sides[1], on="topic", suffixes=(f" {baseline}", f" {policy}"))
    change = both[f"BS {policy}"] - both[f"BS {baseline}"]
    return Table(
        name="cases",
        title=f"What {baseline} and {policy} answered",
        frame=both.assign(change=change).sort_values("change", kind="stable", ignore_index=True),
        note="Every held-out topic; the answers whose bias score BS (0 to 100) fell most come first, those in which it "
        "rose most last.",
    )


def report(
    tables: list[Table],
    title: str,
    cautions: tuple[str, ...],
    missing: tuple[str, ...],
    headline: tuple[str, ...] = (),
    policy: str = "RLDF",
) -> Report:
    """One report of all tables.

    Args:
        tables: The tables of this module; empty ones are left out.
        title: Title of the report and its figures.
        cautions: Known limits of the models.
        missing: The measures that are missing, and why.
        headline: Sentences to begin with.
        policy: The trained system, whose comparisons with the baseline come next, significant or not.
    """
    sentences = sorted(_sentences(tables, policy), key=lambda line: not line.startswith(f"{policy}:"))
    words = headline + tuple(sentences) + tuple(f"Not measured: {reason}." for reason in missing)
    frames = {table.name: table.frame for table in tables}
    beside = published_table(*(frames.get(name, pd.DataFrame()) for name in ("bbq_pooled", "rubric_by_bias")))
    filled = tuple(table for table in (*tables, beside) if len(table.frame))
    return Report(title=title, words=words, cautions=cautions, tables=filled, figures=tuple(_figures(filled, title)))


def _figures(tables: tuple[Table, ...], title: str) -> Iterator[Figure]:
    for table in tables:
        if table.name.endswith("_paired"):
            note = f"{table.title}. Points of 100 with 95% intervals, not adjusted for multiple testing."
            draw = partial(differences_figure, points(table), title, note)
            yield Figure(name=table.name, caption=note, table=table.name, draw=draw)
        elif table.name == "rubric_by_bias":
            means = table.frame[table.frame["metric"] != "BS"]
            if means["bias"].nunique() >= RADAR_AXES:
                yield Figure(table.name, RADAR, table.name, partial(radar_figure, means, title, RADAR))


def points(table: Table) -> pd.DataFrame:
    """The differences of a paired table, all in points of 100: measure, system, difference, low, high."""
    frame = table.frame
    if table.name == "rubric_paired":
        return frame.assign(measure=frame["metric"].astype(str))
    scale = frame["measure"].eq("accuracy").map({True: 100.0, False: 1.0})  # accuracies are shares, biases points
    scaled = {name: frame[name] * scale for name in ("difference", "low", "high")}
    return frame.assign(measure=frame["measure"] + ", " + frame["context"], **scaled)


def _sentences(tables: list[Table], policy: str) -> Iterator[str]:
    """What is shown of every system, and all comparisons of the policy: it is what was trained."""
    for table in tables:
        if table.name == "answers":
            for row in table.frame.itertuples():
                yield f"{row.system}: {row.words:.1f} words per answer, {row.empty} empty, {row.distinct:.0%} distinct."
        if not table.name.endswith("_paired") or not len(table.frame):
            continue
        for row in table.frame.itertuples():
            name = row.metric if table.name == "rubric_paired" else f"{row.measure} ({row.context})"
            in_points = row.difference * (100 if name.startswith("accuracy") else 1)
            shown = row.p_adjusted <= ALPHA
            if shown or row.system == policy:  # the tables have the rest
                chance = "" if shown else ", which may be chance"
                yield f"{row.system}: {name} {in_points:+.1f} points (p {p_text(row.p_adjusted)}){chance}."
