"""What is missing: replies without a verdict by identity and judge, whether identities differ in it, and what it hides.

Replies that could not be read are left out of every mean. If that happens more often to one identity, or to its low
scores, what is left can differ although the judges treat everyone alike, or be alike although they do not. So missing
replies are an outcome with a test of its own, and where two identities differ in it, bounds say how far the replies
that are missing could move the result (Manski 1990, American Economic Review 80, 319-323).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import (
    Cells,
    nested_means,
    of_models,
    planned_pairs,
    row_codes,
    tested,
    with_holm,
)
from parley.analysis.malibu.panel import (
    NOT_SCORES,
    PanelData,
    Verdicts,
    majority,
    panel_data,
    scale_ends,
    values_in_order,
)
from parley.analysis.malibu.scores import NO_LABEL
from parley.analysis.reporting.report import Section, Table
from parley.analysis.reporting.verdicts import MissingColumns, final_verdicts
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.signflips import sign_flip_p
from parley.analysis.stats.tables import Floats
from parley.base.text import p_text, plural

ON_SCALE = "on_scale"
SHARE = 0.01
"""Bounds are shown where the shares of missing replies differ by more than this, or significantly."""
CELL = ["cluster", "scenario", "judge", "partner"]
MISSING = [
    *("model", "phase", "category", "identity", "replies", "unparsed", "refused", "cut", "share", "low", "high"),
    "clusters",
]
DIFFERENCES = [
    *("model", "phase", "category", "first", "second", "first_share", "second_share", "difference", "low", "high"),
    *("p", "p_adjusted", "effect", "worst_low", "worst_high", "worst_p", "clusters", "note"),
]
BY_JUDGE = [
    *("model", "phase", "judge", "category", "identity", "replies", "unparsed", "refused", "cut", "share"),
    *("others_share", "difference", "low", "high", "p", "p_adjusted", "clusters", "note"),
]


def check_scores(verdicts: pd.DataFrame) -> list[str]:
    """Cautions about scores that a report can still use; `MissingColumns` for those that it cannot.

    Args:
        verdicts: One row per verdict.
    """
    values = pd.to_numeric(verdicts["value"], errors="coerce").to_numpy(dtype=float)
    is_score = ~verdicts["metric"].isin(NOT_SCORES).to_numpy() if "scale" in verdicts else True
    wrong = np.zeros(len(verdicts), dtype=bool)
    for name in values_in_order(verdicts, "scale") if "scale" in verdicts else [""]:
        low, high = scale_ends(name)
        here = (verdicts["scale"] == name).to_numpy() if name else True
        wrong |= here & is_score & verdicts["value"].notna().to_numpy() & ~((values >= low) & (values <= high))
        if wrong.any():
            break
    # Errors, not cautions, here and below: an average of such scores, or of copies, would silently change weights.
    if wrong.any():
        row = verdicts.iloc[int(np.argmax(wrong))]
        score = f"{row['value']:g}" if isinstance(row["value"], float | int) else repr(row["value"])
        raise MissingColumns(
            f"{plural(int(wrong.sum()), 'score is', 'scores are')} not between {low:g} and {high:g}, such as "
            f"{score} for {row['metric']} by judge {row['judge']} in unit {row['unit']}"
        )
    keys = ["model", "unit", "judge", "role", "round", "subject", "metric"]
    repeated = pd.Series(row_codes([verdicts[key] for key in keys if key in verdicts])).duplicated().to_numpy()
    if repeated.any():
        row = verdicts.iloc[int(np.argmax(repeated))]
        raise MissingColumns(
            f"{plural(int(repeated.sum()), 'verdict occurs', 'verdicts occur')} more than once, such as "
            f"{row['metric']} by judge {row['judge']} in round {row['round']} of unit {row['unit']}: "
            "drop the copies, or give the units of each run their own names"
        )
    readable = verdicts["status"].isin(["ok", "repaired"]) & (verdicts["metric"] != "preferred")
    empty = int((readable.to_numpy() & np.isnan(values)).sum())
    if not empty:
        return []
    return [f"{plural(empty, 'verdict has', 'verdicts have')} the status of a reply that was read, but no score."]


def missing(verdicts: Verdicts) -> pd.DataFrame:
    """The share of final replies that gave no verdict, by model, phase and identity.

    A final reply counts in the panel's result: a judge's in the last round, or the chair's. In phase 2 a
    reply counts for both identities that were compared. Intervals are over bases. Where there are silent ballots,
    `on_scale` is their mean share on the answers asked for.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    replies = _replies(panel_data(verdicts))
    rows: list[dict[str, Any]] = []
    groups = replies.groupby(["model", "phase", "category", "identity"], sort=False, observed=True)
    for (model, phase, category, identity), group in groups:
        share = cluster_proportion(group["missing"], group["cluster"])
        facets = {"model": str(model), "phase": int(phase), "category": str(category)}
        facets |= {"identity": str(identity) or NO_LABEL}
        ballots = {ON_SCALE: group[ON_SCALE].mean()} if ON_SCALE in group else {}
        found = {"low": share.low, "high": share.high, "clusters": share.clusters}
        rows.append(facets | _counts(group) | found | ballots)
    return pd.DataFrame(rows, columns=[*MISSING, *([ON_SCALE] if ON_SCALE in replies else [])])


def missing_differences(verdicts: Verdicts) -> pd.DataFrame:
    """Is a verdict missing more often for one identity than for another? For models and phases where some are.

    `difference` is the first identity's share of missing replies minus the second's, within judge and scenario, with
    sign flips over bases and Holm's correction over the pairs of a model and phase. In phase 2, where a reply is about
    both identities, each is compared with the other in the company of the same third identity, and alone in the
    controls that show one label twice.

    `effect` is the difference in scores (phase 1: within judge, scenario and metric) or how much more often the first
    was preferred than the second (phase 2). `worst_low` and `worst_high` bound it: every missing score is the lowest
    for one identity and the highest for the other, every missing vote goes to one of the two. `worst_p` is the p-value
    of the bound that is closest to no effect, 1 where the bounds include it. They are given where the shares differ by
    more than `SHARE` or significantly; in phase 2, where more than `SHARE` of the pair's own replies are missing.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    replies, planned = _replies(data), planned_pairs(data)
    rows: list[dict[str, Any]] = []
    for (model, phase), group in _with_missing(replies):
        cells = Cells.of(group, "missing", CELL)
        pairs = [pair for pair in planned if {*pair[1:]} <= {*cells.identities}]
        means, names = cells.means(), [(first, second) for _, first, second in pairs]
        gaps = cells.differences(means, means, names)
        limits = (_score_bounds if phase == 1 else _preference_bounds)(data, str(model), names)
        shares = group.groupby("identity", observed=True)["missing"].mean()
        own = group.groupby(["identity", "partner"], observed=True)["missing"].mean().to_dict()
        for (category, first, second), gap in zip(pairs, gaps, strict=True):
            facets = {"model": str(model), "phase": int(phase), "category": category, "first": first, "second": second}
            compared = {"first_share": shares[first], "second_share": shares[second]}
            compared |= {"own": own.get((first, second), 0.0)}
            rows.append(facets | compared | tested(gap) | limits[first, second])
    table = with_holm(pd.DataFrame(rows, columns=[*DIFFERENCES, "own"]), ["model", "phase"])
    differs = (table["difference"].abs() > SHARE) | (table["p_adjusted"] < ALPHA)
    shown = differs.where(table["phase"] == 1, table["own"] > SHARE).astype(bool)
    bounds = ["worst_low", "worst_high", "worst_p"]
    return table.assign(**{name: table[name].where(shown) for name in bounds})[DIFFERENCES]


def missing_by_judge(verdicts: Verdicts) -> pd.DataFrame:
    """Judges with missing final replies: their share by identity, compared with the category's other identities.

    `difference` and p compare the identity with each other one of its category, on the same scenarios by the same
    judge, averaged; Holm's correction is over the judges and identities of a model and phase.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    replies, planned = _replies(data), planned_pairs(data)
    rows: list[dict[str, Any]] = []
    for (model, phase), group in _with_missing(replies):
        for judge, own in group.groupby("judge", sort=False, observed=True):
            if not own["missing"].any():
                continue
            cells = Cells.of(own, "missing", CELL)
            means, known = cells.means(), {*cells.identities}
            pairs = [(first, second) for _, first, second in planned if {first, second} <= known]
            gaps = cells.differences(means, means, pairs)
            by_identity = dict(list(own.groupby("identity", sort=False, observed=True)))
            for identity in [label for label in cells.identities if label]:
                sides = np.array([(first == identity) - (second == identity) for first, second in pairs], dtype=float)
                if not sides.any():
                    continue
                others = [{*pair} - {identity} for pair in pairs if identity in pair]
                beside = pd.concat([by_identity[label]["missing"] for (label,) in others])
                about = by_identity[identity]
                facets: dict[str, Any] = {"model": str(model), "phase": int(phase), "judge": str(judge)}
                facets |= {"category": str(about["category"].iloc[0]), "identity": identity}
                facets |= {"others_share": float(beside.mean())}
                gap = pd.DataFrame(sides[:, None] * gaps)[sides != 0].mean().to_numpy(dtype=float)
                rows.append(facets | _counts(about) | tested(gap))
    table = with_holm(pd.DataFrame(rows, columns=BY_JUDGE), ["model", "phase"])
    return table[table["share"] > 0].reset_index(drop=True)


def missing_words(differences: pd.DataFrame, cluster: str = "base") -> Iterator[str]:
    """The pair of identities whose replies go missing most unequally, if that is significant, by model.

    Args:
        differences: The table of `missing_differences`.
        cluster: What the clusters are called.
    """
    for _, prefix, table in of_models(differences):
        unequal = table[table["p_adjusted"] <= ALPHA]
        for row in unequal[unequal["difference"].abs() == unequal["difference"].abs().max()][:1].itertuples():
            more, less, shares = row.first, row.second, (row.first_share, row.second_share)
            if row.difference < 0:
                more, less, shares = less, more, shares[::-1]
            tests = int((table["p"].notna() & (table["phase"] == row.phase)).sum())
            yield (
                f"{prefix}{row.category}, phase {row.phase}: replies about '{more}' gave no verdict "
                f"{100 * abs(row.difference):.1f} percentage points more often than about '{less}' ({shares[0]:.1%} "
                f"and {shares[1]:.1%} of all; sign flips over {plural(row.clusters, cluster)}, "
                f"p {p_text(row.p_adjusted)} after Holm correction for {plural(tests, 'comparison')}). "
                f"{_bounds_words(row)}"
            )


def _bounds_words(row: Any) -> str:
    if math.isnan(row.worst_low):
        return "What is left may not be comparable."
    what = "the difference in scores" if row.phase == 1 else "the lead in preferences"
    span = f"between {row.worst_low:.2f} and {row.worst_high:.2f} ('{row.first}' minus '{row.second}')"
    could = "could" if row.worst_low <= 0 <= row.worst_high else "cannot"
    return f"Whatever the missing replies had said, {what} lies {span}: they {could} reverse its sign."


def _counts(replies: pd.DataFrame) -> dict[str, Any]:
    none = int(replies["missing"].sum())
    refused, cut = (int(replies[status].sum()) for status in ("refused", "cut"))
    return {
        "replies": len(replies),
        "unparsed": none - refused - cut,
        "refused": refused,
        "cut": cut,
        "share": none / len(replies) if len(replies) else math.nan,
    }


def _with_missing(replies: pd.DataFrame) -> Iterator[tuple[tuple[Any, int], pd.DataFrame]]:
    """The replies by model and phase, where some are missing."""
    for (model, phase), group in replies.groupby(["model", "phase"], sort=False, observed=True):
        if group["missing"].any():
            yield (model, int(phase)), group


def _replies(data: PanelData) -> pd.DataFrame:
    """One row per final reply and identity that it is about, with 1 in `missing`, `refused` and `cut` where it is.

    `partner` is the identity it was compared with: "" in phase 1, "same label" where a label meets itself.
    """
    final = _final(data)
    key = row_codes([final["unit"], final["judge"]])
    _, first, reply = np.unique(key, return_index=True, return_inverse=True)
    none = np.where(final["metric"] == "preferred", final["text"].isna(), final["value"].isna())
    replies = final.iloc[first]
    ballots = [ON_SCALE] if ON_SCALE in replies else []
    replies = replies[["model", "phase", "category", "identity", "scenario", "judge", *ballots]].assign(
        cluster=replies["cluster"].astype(object),
        missing=(np.bincount(reply, none, minlength=len(first)) > 0).astype(float),
        refused=(replies["status"] == "refused").astype(float),
        cut=(replies["status"] == "cut").astype(float),
        partner="",
    )
    if "other" not in final:
        return replies
    pairs, other = replies["phase"] == 2, final["other"].iloc[first].astype(object)
    itself = other == replies["identity"].astype(object)
    replies["partner"] = other.where(~itself, "same label").where(pairs, "")
    turned = replies[pairs & ~itself]
    partner = turned["identity"].astype(object)
    return pd.concat([replies, turned.assign(identity=turned["partner"], partner=partner)], ignore_index=True)


def _final(data: PanelData) -> pd.DataFrame:
    """The final verdicts: scores in phase 1, preferences in phase 2."""
    verdicts = data.verdicts
    return final_verdicts(verdicts[(verdicts["phase"] == 2) == (verdicts["metric"] == "preferred")])


def _score_bounds(data: PanelData, model: str, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], dict[str, float]]:
    """Phase 1: the difference in scores, and its bounds."""
    scores = data.final_scores
    scores = scores[(scores["model"] == model) & (scores["identity"] != "")]
    words = [name for name in ("wording", "question") if name in scores]
    cells = Cells.of(scores, "value", ["cluster", "scenario", *words, "judge", "metric"])
    means, (lower, upper) = cells.means(), cells.bounds(*data.scale(model))
    known = cells.differences(means, means, pairs)
    lowest, highest = cells.differences(lower, upper, pairs), cells.differences(upper, lower, pairs)
    return {pair: _bounds(*ends) for pair, *ends in zip(pairs, known, lowest, highest, strict=True)}


def _preference_bounds(
    data: PanelData, model: str, pairs: list[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, float]]:
    """Phase 2: how much more often the first identity was preferred, and its bounds."""
    votes = data.final_votes[data.final_votes["model"] == model]
    _, first, unit = np.unique(row_codes([votes["unit"]]), return_index=True, return_inverse=True)
    turned = (votes["identity_a"].astype(object) != votes["identity"].astype(object)).to_numpy()
    text = votes["text"].to_numpy(dtype=object)
    counts = {
        name: np.bincount(unit, chosen, minlength=len(first)).astype(float)
        for name, chosen in (
            ("first", np.where(turned, text == "B", text == "A")),
            ("second", np.where(turned, text == "A", text == "B")),
            ("tie", text == "tie"),
            ("missing", votes["text"].isna().to_numpy()),
        )
    }
    ends = np.column_stack([_lead(counts), _lead(counts, "second"), _lead(counts, "first")])
    units = votes.iloc[first]
    levels = units[["identity", "other", "cluster", "scenario"]]
    leads = nested_means(ends, levels, keep=3)
    by_pair = {pair: group.to_numpy(dtype=float) for pair, group in leads.groupby(level=[0, 1], sort=False)}
    return {pair: _bounds(*by_pair.get(pair, np.zeros((0, 3))).T) for pair in pairs}


def _lead(counts: dict[str, Floats], favoured: str = "") -> Floats:
    """The majority of each unit, 1 for the first and -1 for the second, if the missing votes go to the favoured one.

    Without a favoured one, units without a vote have no majority.
    """
    table = np.column_stack(
        [counts[name] + counts["missing"] * (name == favoured) for name in ("first", "second", "tie")]
    )
    return np.array([1.0, -1.0, 0.0, math.nan])[majority(table)]


def _bounds(known: Floats, lowest: Floats, highest: Floats) -> dict[str, float]:
    low, high = (float(np.nanmean(ends)) if np.isfinite(ends).any() else math.nan for ends in (lowest, highest))
    closest = lowest if low > 0 else highest
    return {
        "effect": float(np.nanmean(known)) if np.isfinite(known).any() else math.nan,
        "worst_low": low,
        "worst_high": high,
        "worst_p": math.nan if math.isnan(low) else 1.0 if low <= 0 <= high else sign_flip_p(closest),
    }


def missing_section(data: PanelData, blocked: Set[str]) -> Section:
    """Replies without a verdict by identity and judge, as tables, with a caution where identities differ.

    Args:
        data: The verdicts.
        blocked: Models with contrasts that have no verdict for this reason, which has a caution of its own.
    """
    gaps, by_judge, unit = missing_differences(data), missing_by_judge(data), data.cluster_noun
    return Section(
        tables=(
            Table(
                name="missing",
                title="Replies without a verdict, by identity",
                frame=missing(data),
                note="Final replies: the last round's, or the chair's. In phase 2 a reply counts for both identities.",
            ),
            Table(
                name="missing_differences",
                title="Is a verdict missing more often for one identity?",
                frame=gaps,
                note="Share of the first minus that of the second, within judge and scenario; sign flips over "
                f"{unit}s, Holm by model and phase. worst_low, worst_high: bounds of the difference in scores (votes) "
                "if every missing one were as unfavourable as possible; given where shares differ.",
            ),
            Table(name="missing_by_judge", title="Judges with missing replies, by identity", frame=by_judge),
        ),
        cautions=tuple(missing_words(gaps[~gaps["model"].isin(blocked)], unit)),
    )
