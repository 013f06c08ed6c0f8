"""Unread replies: their share by identity, comparisons between identities, bounds, and contrasts left without a
verdict.

Replies that could not be read are left out of every mean. If this happens more often to one identity, or to its low
scores, the remaining scores can differ although the judges treat everyone alike, or be alike although they do not. So
being unread is an outcome that is compared between identities like scores: within the same cells, over the same
clusters, in the same families. Bounds show how far unread replies could move a difference (Manski 1990, American
Economic Review 80, 319-323).

A silent ballot with less than half of its probability on its answers is unread (`parley.agents.LEAST_ON_SCALE`); one
with a little more comes from the remainder of a refusal. So the share on the answers is a second outcome. A
contrast between silent ballots has no verdict if either outcome differs significantly and by `MARGIN` or more. A
contrast between written replies has none if they are unread unequally and the bounds include 0: with the lowest third
of one label's scores unread in 30% of cases, 12% of studies said "different".

An invalid reply is requested once more. This presses a judge who declines, which may change the score: so the
share of such replies is an outcome too, and the difference in scores is also given without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from parley.analysis.effects import ALL, Question, answer, corrected, of_model
from parley.analysis.page.report import Section, joined, section
from parley.analysis.stats.mean_test import mean_p
from parley.analysis.stats.results import DIFFERENT, About, Contrast, Estimate, Line
from parley.analysis.stats.tables import Floats
from parley.analysis.verdicts import STATUSES, UNREADABLE, final_verdicts
from parley.base.text import p_text, plural
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.contrasts import (
    PRIMARY,
    Differences,
    by_family,
    contrast_of,
    pairs_of,
)
from parley.judging.malibu.panel_data import VOTES, PanelData, majority
from parley.judging.malibu.score_table import PairTable, ScenarioGaps, ScoreTable
from parley.judging.malibu.scores import NO_LABEL

MARGIN = 0.05
"""One ballot in twenty that is unread for one side only can move a mean by a tenth of a point."""
SHARE = 0.01
"""Bounds are shown if the shares of unread replies differ by more than this, or significantly."""
MANY = 0.05
"""Share of unread replies from which the report has a caution."""
ON_SCALE, REPAIRED, SAME = "on_scale", "repaired", "same label"
FAMILY = ("model", "phase", "family")
UNREAD = Question(
    name="unread",
    ask="How many replies could not be read?",
    measures={"unread": "share of replies"},
    cluster="cluster",
    scale="share",
    note="Replies that could not be read are left out of every mean; they never count as 0.",
)
UNEQUAL = Question(
    name="unread_differences",
    ask="Are replies about one identity unread more often than those about another?",
    measures={
        "unread": "share of unread replies, first minus second",
        ON_SCALE: "share on the answers asked for",
        REPAIRED: "share of replies read only when asked for again",
    },
    cluster="cluster",
    arms="identity",
    family=FAMILY,
    scale="share",
    note="Within judge and scenario, Holm by family. A reply about a pair is about both identities: each is compared "
    "beside the same third one; of silent ballots, those that show the one or the other first. effect: the difference "
    "in scores (votes) that was read; worst_low, worst_high: its bounds, whatever the unread replies had said, where "
    f"shares differ; unpressed: without replies read only when asked for again. Silent ballots that differ, and not by "
    f"less than {MARGIN:g}, leave no verdict.",
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
    noun = data.cluster_noun
    shares, compared = unread_shares(data), unread_differences(data)
    unequal = list(_unequal(compared, data))
    blocked = {line.about.model for line in unequal}
    levels = section(replace(UNREAD, cluster=noun, note=f"{UNREAD.note} {LEVELS}", stated=False), shares)
    gaps = section(replace(UNEQUAL, cluster=noun, stated=False), compared) if compared else Section()
    cautions = (
        *_no_verdicts(unequal, data),
        *_unequal_words([line for line in compared if line.about.model not in blocked], data),
        *_many(shares),
    )
    return Unread(joined([levels, gaps, Section(cautions=cautions)]), unequal)


# How much


LEVELS = (
    "All, and by phase: the replies of every round. By identity: those that results are read from, the last round's "
    "or the chair's; a reply about a pair counts for both. on_scale: mean share of silent ballots on their answers."
)


def unread_shares(data: PanelData) -> list[Line]:
    """The share of unread replies of each model, by phase, and by identity.

    Args:
        data: The verdicts.
    """

    noun, facets = data.cluster_noun, {name: ((name, f"stored_{name}"),) for name in ("phase", "identity")}

    def prepared(replies: pd.DataFrame) -> pd.DataFrame:
        stored = {f"stored_{name}": replies[name].astype(str) for name in facets}
        phase, identity = "phase " + stored["stored_phase"], stored["stored_identity"].replace("", NO_LABEL)
        kept = replies[[name for name in ("model", "status", "unread", ON_SCALE) if name in replies]]
        return kept.assign(**{noun: replies["cluster"].astype(str)}, **stored, phase=phase, identity=identity)

    replies_read = prepared(data.all_verdicts.drop_duplicates(["unit", "judge", "round"])).drop(
        columns=ON_SCALE, errors="ignore"
    )
    replies_read = replies_read.assign(unread=replies_read["status"].isin(UNREADABLE).astype(float))
    each = "phase" if replies_read["phase"].nunique() > 1 else ""
    final = prepared(about_each(replies(data)))
    by_identity = unread_lines(final, cluster=noun, by=("model", "phase"), each="identity", facets=facets)
    phases = {"phase": tuple(replies_read["stored_phase"].unique())}  # the yardstick's replies are not counted
    whole = unread_lines(replies_read, cluster=noun, each=each, facets=facets)
    # The totals count the replies of every stage; those by identity are of the ballots that give the results.
    units = [{**phases, **line.units} for line in whole]
    of_identities = [line for line in by_identity if line.secondary]
    units += [{**line.units, **data.common_facets(line.units)} for line in of_identities]
    return [replace(line, units=those) for line, those in zip((*whole, *of_identities), units, strict=True)]


def unread_lines(replies: pd.DataFrame, **changes: Any) -> list[Line]:
    """The share of replies that could not be read, with the number of replies by status.

    It is an exact count of these replies, without an interval.

    Args:
        replies: One row per reply.
        changes: Fields that differ from `UNREAD`.
    """

    def level(values: pd.Series, clusters: pd.Series) -> Estimate:
        lost, method = float(values.mean()), "none, all replies are counted"
        ends: dict[str, Any] = {"low": lost, "high": lost, "standard_error": 0.0}
        return Estimate(estimate=lost, n=len(values), clusters=clusters.nunique(), method=method, **ends)

    def further(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
        by_status = rows["status"].value_counts()
        on_scale = {ON_SCALE: float(rows[ON_SCALE].mean())} if ON_SCALE in rows else {}
        counts = {status: int(by_status.get(status, 0)) for status in STATUSES if status != "unscored"}
        whole = about.columns.get(changes.get("each", ""), ALL) == ALL
        return {"also": counts | on_scale, "name": UNREAD.name if whole else ""}

    return answer(replace(UNREAD, level=level, further=further, **changes), replies) if len(replies) else []


def replies(data: PanelData) -> pd.DataFrame:
    """One row per final reply; `unread` is 1 if a part of it could not be read.

    Args:
        data: The verdicts.
    """
    verdicts = data.verdicts
    final = final_verdicts(verdicts[(verdicts["phase"] == 2) == (verdicts["metric"] == PREFERRED)])
    ballot = final["metric"].astype(object).where(final["round"] == 0, "")  # a silent ballot is about one metric
    none = final["text"].isna().where(final["metric"] == PREFERRED, final["value"].isna())
    lost = none.groupby([final["unit"], final["judge"], ballot], sort=False, observed=True).transform("any")
    one_each = final.assign(unread=lost.astype(float), ballot=ballot).drop_duplicates(["unit", "judge", "ballot"])
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
    final, lines = replies(data), []
    for (model, phase), of_phase in final.groupby(["model", "phase"], sort=False, observed=True):
        silent = data.read_silently(str(model))
        outcomes = {"unread": of_phase["unread"]}
        if silent and ON_SCALE in of_phase:
            outcomes[ON_SCALE] = of_phase[ON_SCALE]
        if not of_phase["unread"].any() and not (
            silent and (outcomes.get(ON_SCALE, of_phase["unread"] + 1) < 1 - MARGIN).any()
        ):
            outcomes = {}
        if (pressed := of_phase["status"] == REPAIRED).any():
            outcomes[REPAIRED] = pressed.astype(float)
        for measure, values in outcomes.items():
            differences, shares = _outcome(data, of_phase.assign(value=values), str(model), int(phase))
            compared = by_family(
                data,
                str(model),
                int(phase),
                differences,
                partial(_shares_and_alike, shares),
                beside_others=not silent,
                measure=measure,
                margin=MARGIN,
                secondary=measure != "unread",
            )
            # Each measure for itself.
            lines += corrected([line for of_family, _ in compared for line in of_family], FAMILY)
    return _with_bounds(data, final, lines)


def _shares_and_alike(
    shares: Callable[[Contrast], dict[str, float]], family: str, contrast: Contrast, gaps: ScenarioGaps
) -> dict[str, Any]:
    return {"also": shares(contrast) | {"p_alike": gaps.alike_p(MARGIN)}}


def _outcome(
    data: PanelData, outcomes: pd.DataFrame, model: str, phase: int
) -> tuple[Differences, Callable[[Contrast], dict[str, float]]]:
    """The differences of an outcome between identities, and the means of both sides of a contrast.

    Phase 1: as scores are compared. Silent pairs: those that show one side first, compared with those that show the
    other first. Other pairs: each identity beside the same third one, and alone in the controls that show one label
    twice.
    """
    if in_silent_pairs := phase == 2 and data.read_silently(model):
        shown = outcomes[(outcomes["control"] == "") & outcomes["value"].notna()]
        shown = shown.assign(side=shown["identity_a"].astype(object))
        # Doubled, since the mean over both orders halves the difference between them.
        leads = np.where(shown["side"] == shown["identity"], 2.0, -2.0) * shown["value"].to_numpy(dtype=float)
        differences: Differences = PairTable.of(shown, leads).contrast
    else:
        shown = about_each(outcomes) if phase == 2 else outcomes[outcomes["identity"] != ""]
        shown = shown.assign(side=shown["identity"].astype(object))
        scores = shown.assign(metric=shown["partner"]) if phase == 2 else shown
        differences = partial(ScoreTable.of(scores, (0.0, 1.0)).contrast, complete=phase == 1)

    def shares(contrast: Contrast) -> dict[str, float]:
        sides = {*contrast.first, *contrast.second}
        compared = shown[shown["identity"].isin(sides) & shown["other"].isin(sides)] if in_silent_pairs else shown
        means = compared.groupby("side")["value"].mean()
        places = {"first_share": contrast.first, "second_share": contrast.second}
        return {name: float(means.reindex(side).mean()) for name, side in places.items()}

    return differences, shares


# What the unread replies could change


def _with_bounds(data: PanelData, final: pd.DataFrame, lines: Sequence[Line]) -> list[Line]:
    """Add bounds on scores or votes to lines that differ enough in unread replies, and, if replies were requested
    again, the result without those.
    """
    beside = about_each(final).groupby(["model", "phase", "identity", "partner"], observed=True)["unread"].mean()
    lost_share, bounded = beside.to_dict(), list(lines)
    for place, line in enumerate(lines):
        model, phase, contrast = line.about.model, line.about.phase, contrast_of(line)
        if line.measure == ON_SCALE:
            continue
        in_pairs = lost_share.get((model, phase, *contrast.first, *contrast.second), 0.0) if phase == 2 else 0.0
        lost = max(in_pairs, abs(line.estimate))
        if line.measure == REPAIRED or lost > SHARE or (phase == 1 and line.shown):
            tables = _scores_with_bounds if phase == 1 else _votes_with_bounds
            ends = data.shared(f"bounds of {model} {phase}", partial(tables, data, model))
            effect, low, high, unpressed = (end(contrast.first, contrast.second).by_cluster() for end in ends)
            if line.measure == REPAIRED:
                also = {"effect": _mean(effect), "unpressed": _mean(unpressed)}
            else:
                also = _bounds(effect, low, high)
            bounded[place] = replace(line, also={**line.also, **also})
    return bounded


def _scores_with_bounds(data: PanelData, model: str) -> list[Differences]:
    """Phase 1: the difference in scores, its bounds, and the difference without replies requested again."""
    scores = data.labelled_verdicts[data.labelled_verdicts["model"] == model]
    low, high = (ScoreTable.of(scores.assign(value=scores["value"].fillna(end))) for end in data.scale(model))
    given = ScoreTable.of(scores.assign(value=scores["value"].mask(scores["status"] == REPAIRED)))
    bounds = partial(low.contrast, minus=high), partial(high.contrast, minus=low)
    return [data.table(model).contrast, *bounds, given.contrast]


def _votes_with_bounds(data: PanelData, model: str) -> list[Differences]:
    """Phase 2: the net preference for the first, its bounds, and the value without replies requested again."""
    votes = data.final_votes[data.final_votes["model"] == model]
    turned = votes["identity_a"].astype(object) != votes["identity"].astype(object)
    leads = votes["text"].astype(object).map(VOTES).astype(float) * np.where(turned, -1.0, 1.0)
    units = votes.drop_duplicates("unit")
    differences: list[Differences] = []
    # As they were read; the unread ones for the second, and for the first; without replies requested again.
    for given in (leads, leads.fillna(-1.0), leads.fillna(1.0), leads.mask(votes["status"] == REPAIRED)):
        counts = [(given == lead).groupby(votes["unit"], sort=False, observed=True).sum() for lead in VOTES.values()]
        # A unit without a vote has no majority.
        most = np.array([*VOTES.values(), math.nan])[majority(np.column_stack(counts))]
        differences.append(PairTable.of(units, most).contrast)
    return differences


def _bounds(read: Floats, lowest: Floats, highest: Floats) -> dict[str, float]:
    effect, low, high = map(_mean, (read, lowest, highest))
    p = math.nan if math.isnan(low) else 1.0 if low <= 0 <= high else mean_p(lowest if low > 0 else highest)
    return {"effect": effect, "worst_low": low, "worst_high": high, "worst_p": p}


def _mean(by_cluster: Floats) -> float:
    return float(by_cluster.mean()) if len(by_cluster) else math.nan


# What every reader must know


def _unequal(lines: Sequence[Line], data: PanelData) -> Iterator[Line]:
    """The contrasts without a verdict."""
    contrasts: dict[tuple[str, int, Contrast], dict[str, Line]] = {}
    for line in lines:
        if not data.read_silently(line.about.model):
            if line.measure == "unread" and (line.shown or abs(line.estimate) > MARGIN) and not _sure(line):
                yield replace(line, note=_why_aloud(line))
        elif line.measure != REPAIRED:
            key = line.about.model, line.about.phase, contrast_of(line)
            contrasts.setdefault(key, {})[line.measure] = line
    for outcomes in contrasts.values():
        if any(line.verdict == DIFFERENT for line in outcomes.values()):
            yield replace(outcomes["unread"], note=_why(outcomes, data.cluster_noun))


def _sure(line: Line) -> bool:
    """Whether the bounds have one sign."""
    return not line.also["worst_low"] <= 0 <= line.also["worst_high"]


def _why_aloud(line: Line) -> str:
    where = "" if line.about.phase == 1 else " in pairs"
    what = "the difference in scores" if line.about.phase == 1 else "the lead in preferences"
    low, high = line.also["worst_low"], line.also["worst_high"]
    return (
        f"No verdict on {line.label}{where}: depending on the unread replies ({_shares(line)}), {what} is between "
        f"{low:.2f} and {high:.2f}."
    )


def _why(outcomes: Mapping[str, Line], noun: str) -> str:
    lost = outcomes["unread"]
    in_pairs = ("", "") if lost.about.phase == 1 else (" in pairs", " that show the one or the other first")
    text = (
        f"No verdict on {lost.label}{in_pairs[0]}: {_shares(lost)} of the silent ballots{in_pairs[1]} are unread "
        f"(p {p_text(lost.p_adjusted)}"
    )
    if scale := outcomes.get(ON_SCALE):
        text += f"), and {_shares(scale)} of the probability is on the answers asked for (p {p_text(scale.p_adjusted)}"
    return f"{text}; over {plural(lost.clusters or 0, noun)}). What can be read is a selection."


def _shares(line: Line) -> str:
    return f"{line.also['first_share']:.0%} and {line.also['second_share']:.0%}"


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


def _unequal_words(lines: Sequence[Line], data: PanelData) -> Iterator[str]:
    """By model, the pair of identities whose replies are unread or requested again most unequally, if significant."""
    outcomes = {"unread": "unread", REPAIRED: "read only when asked for again"}
    for model, (measure, what) in product(data.models, outcomes.items()):
        shown = [line for line in pairs_of(of_model(lines, model), measure) if line.shown]
        for line in sorted(shown, key=lambda line: -abs(line.estimate))[:1]:
            (first,), (second,) = contrast_of(line).first, contrast_of(line).second
            sides = (first, line.also["first_share"]), (second, line.also["second_share"])
            (more, most), (less, least) = sides if line.estimate > 0 else sides[::-1]
            yield (
                f"{data.prefix(model)}{line.about.category}, phase {line.about.phase}: replies about '{more}' "
                f"were {what} {100 * abs(line.estimate):.1f} percentage points more often than those about '{less}' "
                f"({most:.1%} and {least:.1%} of all; p {p_text(line.p_adjusted)} over "
                f"{plural(line.clusters or 0, data.cluster_noun)}, Holm-corrected for "
                f"{plural(line.tests or 1, 'comparison')}). {_bounds_words(line)}"
            )


def _bounds_words(line: Line) -> str:
    (first,), (second,) = contrast_of(line).first, contrast_of(line).second
    what = "the difference in scores" if line.about.phase == 1 else "the lead in preferences"
    if "unpressed" in line.also:
        effect, without = line.also["effect"], line.also["unpressed"]
        return f"{what.capitalize()} ('{first}' minus '{second}') is {effect:.2f}, and {without:.2f} without them."
    if "worst_low" not in line.also:
        return "What is left may not be comparable."
    low, high = line.also["worst_low"], line.also["worst_high"]
    return (
        f"Depending on them, {what} is between {low:.2f} and {high:.2f} ('{first}' minus '{second}'): they "
        f"{'cannot' if _sure(line) else 'could'} reverse its sign."
    )


def _many(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        if line.name == UNREAD.name and line.estimate > MANY:
            model = f"{line.heading or line.label}: " if line.label != ALL else ""
            lost = f"{round(line.n * line.estimate):,} of {plural(line.n, 'reply', 'replies')}"
            yield f"{model}{lost} gave no verdict: they are left out, not counted as 0."


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
