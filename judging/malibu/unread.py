"""Unread replies: their share by identity, and compared between identities like any other outcome.

Replies that could not be read are left out of every mean. What they could change are the bounds of each contrast
(`contrasts.estimates`), and nothing is claimed that does not hold at both. Here being unread is an outcome of its own:
compared within the same cells, over the same clusters, in the same families as scores.

A silent ballot with less than half of its probability on its answers is unread (`parley.agents.LEAST_ON_SCALE`); one
with a little more comes from the remainder of a refusal. So the share on the answers is an outcome too. A contrast
of silent ballots has no verdict if that differs significantly and by `MARGIN` or more.

An invalid reply is requested once more. This presses a judge who declines, which may change the score: so the share of
such replies is an outcome too, and the difference in scores is also given without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from parley.analysis.effects import ALL, Question, corrected, of_model
from parley.analysis.page.report import Section, Table, section
from parley.analysis.stats.results import DIFFERENT, Contrast, Line
from parley.analysis.verdicts import LOST, UNREADABLE, final_verdicts, status_counts
from parley.base.text import p_text, plural
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.contrasts import PRIMARY, REPAIRED, by_family, pairs_of
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.score_table import ScenarioGaps, ScoreTable
from parley.judging.malibu.scores import NO_LABEL

MARGIN = 0.05
"""One ballot in twenty that is unread for one side only can move a mean by a tenth of a point."""
MANY = 0.05
"""Share of unread replies from which the report has a caution."""
ON_SCALE, SAME = "on_scale", "same label"
FAMILY = ("model", "phase", "family")
UNEQUAL = Question(
    name="unread_differences",
    ask="Are replies about one identity unread more often than those about another?",
    measures={
        "unread": "the share of unread replies",
        ON_SCALE: "the share on the answers asked for",
        REPAIRED: "the share of replies read only when asked for again",
    },
    cluster="cluster",
    arms="identity",
    family=FAMILY,
    scale="share",
    note="Within judge and scenario, Holm by family. A reply about a pair is about both identities: each is compared "
    "beside the same third one; of silent ballots, those that show the one or the other first. Silent ballots whose "
    f"share on the answers differs, and not by less than {MARGIN:g}, leave no verdict.",
)
NO_VERDICT = "No verdict: answers about one identity could be read less often than those about another."


class Unread(NamedTuple):
    """The section on unread replies, and the contrasts left without a verdict, with the reasons in their notes."""

    section: Section
    unequal: Sequence[Line]


def unread(data: PanelData) -> Unread:
    """Unread replies by identity, contrasts that differ in them, and cautions.

    Args:
        data: The verdicts.
    """
    noun, compared = data.cluster_noun, unread_differences(data)
    shares = Table("unread", "Replies that could not be read", unread_shares(data), note=LEVELS)
    unequal = [
        replace(line, note=_why(line, noun))
        for line in compared
        if line.measure == ON_SCALE and line.verdict == DIFFERENT
    ]
    # Below a contrast without a verdict nothing else is said of its model's replies.
    blocked = {line.about.model for line in unequal}
    most = _most_unequal([line for line in compared if line.about.model not in blocked], data)
    gaps = section(replace(UNEQUAL, cluster=noun), compared) if compared else Section()
    sentences = section(replace(UNEQUAL, cluster=noun), most).words
    cautions = (*_no_verdicts(unequal, data), *sentences, *_many(shares.frame, data))
    return Unread(replace(gaps, tables=[shares, *gaps.tables], words=(), cautions=cautions), unequal)


# How much


LEVELS = (
    "Replies that could not be read are left out of every mean; they never count as 0. All, and by phase: the replies "
    "of every round. By identity: those that results are read from, the last round's or the chair's; a reply about a "
    "pair counts for both. on_scale: mean share of silent ballots on their answers."
)


def unread_shares(data: PanelData) -> pd.DataFrame:
    """The share of unread replies of each model, by phase, and by identity, with their number by status.

    Args:
        data: The verdicts.
    """
    every = data.all_verdicts.drop_duplicates(["unit", "judge", "round"]).drop(columns=ON_SCALE, errors="ignore")
    lost = every["status"].isin(UNREADABLE) & every["value"].isna()  # a cut reply may have a score
    every = every.assign(unread=lost.astype(float), identity=ALL)
    final = about_each(replies(data)).replace({"identity": {"": NO_LABEL}})
    parts = [every.assign(phase=ALL), *([every] if every["phase"].nunique() > 1 else []), final]
    by = ["model", "phase", "identity"]
    return pd.concat([_shares(part.astype(dict.fromkeys(by, str)), by) for part in parts], ignore_index=True)


def _shares(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    groups = rows.groupby(list(by), sort=False)
    shares = groups.agg(estimate=("unread", "mean"), n=("unread", "size"), clusters=("cluster", "nunique"))
    if ON_SCALE in rows:
        shares[ON_SCALE] = groups[ON_SCALE].mean()
    return shares.reset_index().merge(status_counts(rows, by).drop(columns=LOST[-1]), on=list(by), sort=False)


def replies(data: PanelData) -> pd.DataFrame:
    """One row per final reply; `unread` is 1 if a part of it could not be read, `repaired` if it was requested again.

    Args:
        data: The verdicts.
    """
    verdicts = data.verdicts
    final = final_verdicts(verdicts[(verdicts["phase"] == 2) == (verdicts["metric"] == PREFERRED)])
    ballot = final["metric"].astype(object).where(final["round"] == 0, "")  # a silent ballot is about one metric
    none = final["text"].isna().where(final["metric"] == PREFERRED, final["value"].isna())
    lost = none.groupby([final["unit"], final["judge"], ballot], sort=False, observed=True).transform("any")
    outcomes = {"unread": lost.astype(float), REPAIRED: (final["status"] == REPAIRED).astype(float)}
    one_each = final.assign(**outcomes, ballot=ballot).drop_duplicates(["unit", "judge", "ballot"])
    return one_each.astype({"cluster": object, "identity": object})


def about_each(replies: pd.DataFrame) -> pd.DataFrame:
    """One row per reply and identity; `partner` is the other identity in a pair.

    Args:
        replies: The result of `replies`.
    """
    replies = replies.assign(partner="")
    if "other" not in replies:
        return replies
    pairs, other = replies["phase"] == 2, replies["other"].astype(object)
    itself = other == replies["identity"]
    replies = replies.assign(partner=other.where(~itself, SAME).where(pairs, ""))
    turned = replies[pairs & ~itself]
    turned = turned.assign(identity=turned["partner"], partner=turned["identity"])
    return pd.concat([replies, turned], ignore_index=True)


# Compared between identities


def unread_differences(data: PanelData) -> list[Line]:
    """All contrasts of a model and phase in which unread replies could matter: some reply is unread or was requested
    again, or some silent ballot has less than 1 - `MARGIN` on its answers.

    Args:
        data: The verdicts.
    """
    lines = []
    for (model, phase), rows in replies(data).groupby(["model", "phase"], sort=False, observed=True):
        silent = data.read_silently(str(model))
        shown = _shown(rows, silent) if phase == 2 else rows[rows["identity"] != ""]
        for measure in _outcomes(rows, silent):
            outcome = shown.assign(value=shown[measure])
            compared = by_family(
                data,
                str(model),
                int(phase),
                partial(ScoreTable.of(outcome, (0.0, 1.0)).contrast, complete=False),
                partial(_shares_and_alike, outcome.groupby("identity")["value"].mean()),
                beside_others=not silent,
                measure=measure,
                margin=MARGIN,
                secondary=measure != "unread",
            )
            # Each measure for itself.
            lines += corrected([line for of_family, _ in compared for line in of_family], FAMILY)
    return lines


def _outcomes(rows: pd.DataFrame, silent: bool) -> Iterator[str]:
    """The outcomes in which replies differ at all."""
    silent &= ON_SCALE in rows
    if rows["unread"].any() or (silent and (rows[ON_SCALE] < 1 - MARGIN).any()):
        yield from ("unread", ON_SCALE) if silent else ("unread",)
    if rows[REPAIRED].any():
        yield REPAIRED


def _shown(rows: pd.DataFrame, silent: bool) -> pd.DataFrame:
    """Replies about pairs, by identity, in rows that two identities share: those beside the same third one, and alone
    in the controls that show one label twice; silent ballots on the same pair, by the one that is shown first.
    """
    if not silent:
        rows = about_each(rows)
        return rows.assign(metric=rows["partner"])
    shown = rows[rows["control"] == ""]
    sides = np.sort(shown[["identity", "other"]].astype(str).to_numpy(), axis=1)
    return shown.assign(identity=shown["identity_a"].astype(object), metric=[" ".join(pair) for pair in sides])


def _shares_and_alike(shares: pd.Series, family: str, contrast: Contrast, gaps: ScenarioGaps) -> dict[str, Any]:
    sides = {"first_share": contrast.first, "second_share": contrast.second}
    means = {name: float(shares.reindex(side).mean()) for name, side in sides.items()}
    return {"also": means | {"p_alike": gaps.alike_p(MARGIN)}}


# What every reader must know


def _why(line: Line, noun: str) -> str:
    in_pairs = "" if line.about.phase == 1 else " in pairs"
    shares = f"{line.also['first_share']:.0%} and {line.also['second_share']:.0%}"
    return (
        f"No verdict on {line.label}{in_pairs}: {shares} of the silent ballots' probability is on the answers asked "
        f"for (p {p_text(line.p_adjusted)}; over {plural(line.clusters or 0, noun)}). What can be read is a selection."
    )


def _no_verdicts(unequal: Sequence[Line], data: PanelData) -> Iterator[str]:
    """The reasons of a model's primary contrasts, or of its first pair, with the number of others that share them."""
    for model in data.models:
        of_this = of_model(unequal, model)
        primary = [line for line in of_this if (line.about.phase, line.about.family) == (1, PRIMARY)]
        contrasts = primary or of_this[:1]
        yield from (f"{data.prefix(model)}{line.note}" for line in contrasts)
        if more := len(of_this) - len(contrasts):
            others = plural(more, "other contrast has", "other contrasts have")
            yield f"{data.prefix(model)}{others} no verdict for the same reason (table {UNEQUAL.name})."


def _most_unequal(lines: Sequence[Line], data: PanelData) -> list[Line]:
    """By model, the pair of identities whose replies are unread or requested again most unequally, if significant."""
    shown = [line for line in pairs_of(lines) if line.shown and line.measure != ON_SCALE]
    largest: dict[tuple[str, str], Line] = {}
    for line in sorted(shown, key=lambda line: abs(line.estimate)):
        largest[line.about.model, line.measure] = line
    return [largest[key] for key in product(data.models, UNEQUAL.measures) if key in largest]


def _many(shares: pd.DataFrame, data: PanelData) -> Iterator[str]:
    whole = shares[(shares["phase"] == ALL) & (shares["estimate"] > MANY)]
    for row in whole.itertuples():
        lost = f"{round(row.n * row.estimate):,} of {plural(row.n, 'reply', 'replies')}"
        yield f"{data.prefix(row.model)}{lost} gave no verdict: they are left out, not counted as 0."


def unread_judges(data: PanelData) -> Iterator[str]:
    """A caution for every judge without a readable reply.

    Args:
        data: The verdicts.
    """
    verdicts = data.all_verdicts
    readable = verdicts["value"].notna() | verdicts["text"].notna()
    counts = readable.groupby([verdicts["judge"], verdicts["judge_model"]], observed=True).agg(["sum", "size"])
    for (judge, model), row in counts[counts["sum"] == 0].iterrows():
        yield (
            f"None of the {plural(int(row['size']), 'verdict')} of judge {judge} ({model}) could be read: no number in "
            "this report is about this judge."
        )
