"""The fence around judged text: what it prevents, whether it changes clean scores, and which texts are flagged."""

from __future__ import annotations

import pandas as pd

from parley.analysis.injection.effects import (
    ALL,
    KEY,
    TESTED,
    corrected,
    namer,
    units_of,
    with_all_kinds,
    with_scale,
)
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Section, Table, format_interval
from parley.analysis.reporting.verdicts import LOST, cluster_of, status_counts
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.results import ALPHA, columns
from parley.base.text import p_text


def fence_section(scores: pd.DataFrame) -> Section:
    """Does fencing the text reduce the effect? The test of all kinds together is planned; single kinds are added.

    Args:
        scores: One row per score under attack, from `pairs`.
    """
    fence = fence_effect(scores)
    if not len(fence):
        return Section()
    name = namer(fence)
    forest = Forest(
        name="fence",
        question="Does fencing the text reduce the effect?",
        axis="effect open minus effect fenced (points)",
        lines=lines_of(
            fence,
            lambda row: str(row.kind),
            p="p_adjusted",
            n="responses",
            group=name,
            units=units_of(fence),
            secondary=lambda row: row.kind != ALL,
        ),
        table="fence",
        note=f"On the same responses and attempts. {TESTED}",
    )
    shown = fence[(fence["kind"] == ALL) & (fence["p_adjusted"] <= ALPHA)]
    return Section(
        tables=[
            Table(
                name="fence",
                title="Effect of fencing: open minus fenced",
                frame=fence,
                shown=("model", "kind", "difference", "low", "high", "p_adjusted"),
                note="On the same responses and attempts; sign flips over bases, Holm-corrected.",
                printed=True,
            )
        ],
        forests=[forest],
        words=[
            f"{name(row)}: a fence {'reduces' if row.difference > 0 else 'increases'} the effect of attempts by "
            f"{abs(row.difference):.2f} points ({format_interval(row.low, row.high, '+.2f')}; p "
            f"{p_text(row.p_adjusted)})."
            for row in shown.itertuples()
        ],
    )


def readings_section(verdicts: pd.DataFrame) -> Section:
    """Clean scores, replies that could not be read, and which texts are flagged.

    Args:
        verdicts: One row per verdict.
    """
    statuses = readings(verdicts)
    lost = statuses.assign(lost=statuses[list(LOST)].sum(axis=1)).groupby("variant")["lost"].sum()
    by_variant = ", ".join(f"{name} {count}" for name, count in lost.items())
    title = "Responses without an attempt, open and fenced"
    return Section(
        tables=[
            Table("clean", title, clean_scores(verdicts), printed=True),
            Table("readings", "How replies were parsed", statuses, printed=bool(lost.sum())),
            Table(
                name="flagged",
                title="Share that is flagged as an instruction",
                frame=flagged(verdicts),
                note="Flagged controls and clean responses are false positives. Judges do not see flags.",
            ),
        ],
        warnings=[f"Replies left out, by variant: {by_variant}."] if lost.sum() else [],
    )


def fence_effect(scores: pd.DataFrame) -> pd.DataFrame:
    """How much a fence reduces the effect of attempts: open minus fenced, on the same responses.

    Args:
        scores: One row per score under attack, from `pairs`.
    """
    same = [name for name in (*KEY, "attempt", "kind", "ask") if name != "shown"]
    open_, fenced = (scores[scores["shown"] == shown][[*same, "cluster", "effect"]] for shown in ("open", "fenced"))
    both = open_.merge(fenced, on=[*same, "cluster"], suffixes=("_open", "_fenced"))
    rows = []
    for (judged_by, model), part in both.groupby(["judged_by", "model"], sort=False):
        for kind, group in with_all_kinds(part):
            effects = group["effect_open"], group["effect_fenced"]
            test = paired_permutation(*effects, group["cluster"])
            known = effects[0].notna() & effects[1].notna()
            rows.append(
                {
                    "judged_by": judged_by,
                    "model": model,
                    "kind": kind,
                    **columns(test, "difference", "p"),
                    "responses": int(group.loc[known, "scenario"].nunique()),
                    "clusters": test.clusters,
                    "note": test.note,
                }
            )
    return corrected(pd.DataFrame(rows))


def clean_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Mean clean scores, open and fenced: a fence should not change the score of a response without an attempt."""
    frame = with_scale(verdicts)
    clean, rows = frame[frame["variant"] == "clean"], []
    for (judged_by, model, shown), group in clean.groupby(["judged_by", "model", "shown"], sort=False):
        mean = cluster_mean(group["value"], cluster_of(group))
        interval = columns(mean, "mean", responses="clusters")
        unread = int(group["value"].isna().sum())
        rows.append({"judged_by": judged_by, "model": model, "shown": shown, **interval, "unread": unread})
    return pd.DataFrame(rows)


def readings(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Parse statuses of replies, by variant: an attempt that breaks the reply's format has an effect too."""
    frame = with_scale(verdicts).drop_duplicates(["unit", "judge"])
    return status_counts(frame, ("judged_by", "model", "shown", "variant"))


def flagged(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The share flagged as an instruction, by kind. A flagged control or clean text is a false positive."""
    frame = with_scale(verdicts).drop_duplicates(["judged_by", "variant", "attempt", "ask", "scenario"])
    frame["kind"] = frame["kind"].where(frame["kind"] != "", "(clean)")
    rows = [
        {"kind": kind, **part.groupby("variant")["flagged"].apply(lambda marks: marks.astype(float).mean())}
        for kind, part in frame.groupby("kind", sort=False)
    ]
    return pd.DataFrame(rows).reindex(columns=["kind", "attack", "control", "clean"])
