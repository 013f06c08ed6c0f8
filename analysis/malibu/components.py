"""Phase 1: where the noise comes from, what an interval generalises to, and where the next calls are best spent.

    components, next_calls = variance_tables(verdicts)

A score is a judge's final one, averaged over metrics after each metric's mean is subtracted. Every identity is judged
on the same scenarios by the same judges, so what a base, a scenario or a judge adds to all scores cancels in a
difference of two identities. What does not cancel is how an identity's effect varies: by base, by scenario, from one
conversation to the next, and by judge. Judges are fixed in every interval of the report: it generalises to more bases
of this kind, not to more judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.malibu.next_calls import BY_JUDGE, NOISE, Design, contribution, design_of, plan_row, plans_of
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.reporting.figures import LINE, PALETTE, caption, plain_text, sheet, tidy
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats import components as stats
from parley.analysis.stats.components import RESIDUAL, VarianceComponent
from parley.analysis.stats.tables import factorize

COMPONENTS = [
    "model",
    "component",
    "variance",
    "sd",
    "share",
    "share_of_noise",
    "levels",
    "includes",
    "generalises_to",
    "note",
]
PLANS = [
    "model",
    "spent_on",
    "calls",
    "bases",
    "scenarios_per_base",
    "repeats",
    "judges",
    "standard_error",
    "at_best",
    "with_new_judges",
    "note",
]
TERMS = [
    ("base",),
    ("scenario",),
    ("judge",),
    ("identity",),
    ("order",),
    ("wording",),
    ("question",),
    ("judge", "scenario"),
    ("wording", "scenario"),
    ("identity", "base"),
    ("identity", "wording"),
    ("identity", "base", "wording"),
    ("identity", "scenario"),
    ("identity", "judge"),
    ("identity", "order"),
    ("conversation",),
]
WORDINGS = ("wording", "question")
"""Facets for wordings; a factor only if the run has more than one."""
GENERALISES_TO = {
    "base": "more bases of this kind; cancels in a difference of identities",
    "scenario": "more scenarios of these bases; cancels in a difference of identities",
    "judge": "more judges like these; cancels in a difference of identities",
    "identity": "none: the identities are those that were asked about",
    "order": "both orders; cancels where both were run",
    "wording": "more label wordings; cancels in a difference of identities",
    "question": "more question wordings; cancels in a difference of identities",
    "wording × scenario": "more label wordings and scenarios; cancels in a difference of identities",
    "identity × wording": "more label wordings of this kind: the report's intervals cover it",
    "identity × base × wording": "more bases and label wordings: the report's intervals cover it",
    "judge × scenario": "more judges and scenarios; cancels in a difference of identities",
    "identity × base": "more bases of this kind: what the report's intervals are over",
    "identity × scenario": "more scenarios of the same bases",
    BY_JUDGE: "more judges like these; the report's intervals leave it out, judges are fixed in them",
    "identity × order": "both orders; cancels where both were run",
    "conversation": "the same scenarios, discussed again",
    RESIDUAL: "the same conversations, judged again",
}
CALLS = 1000
"""How many more calls the plans spend."""


class VarianceTables(NamedTuple):
    """Where the noise comes from, and what more calls would change.

    Args:
        components: Variance of the scores by component, with its share of the scores' spread and of the noise of a
            difference. `share_of_noise` is the share of the squared standard error of a difference of two identities.
            It is missing for the identities' own spread, which is what is measured, and for identity × judge, as
            judges are fixed.
        next_calls: The standard error of a difference of two identities, as run and with more calls spent in different
            ways. It is predicted from the components, as if the design were balanced and divided evenly. `at_best`
            differs where components could not be told apart (without repeats, noise between conversations and
            identity × scenario): the standard error is then between the two. `with_new_judges` takes the judges as a
            sample of such judges.
    """

    components: pd.DataFrame
    next_calls: pd.DataFrame


def variance_tables(verdicts: Verdicts) -> VarianceTables:
    """The variance components of each model's scores, and where its next calls are best spent.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    scores = data.labelled_verdicts
    scores = scores[np.isfinite(scores["value"].astype(float))]
    asked = data.verdicts[data.verdicts["phase"] == 1]
    components: list[dict[str, Any]] = []
    plans: list[dict[str, Any]] = []
    for model in data.models:
        part = scores[scores["model"] == model]
        if part.empty:
            continue
        replies, has_bases = _replies(part)
        factors = {name: replies[name] for name in replies if name != "value"}
        terms = [term for term in TERMS if set(term) <= set(factors) and (has_bases or "base" not in term)]
        parts = stats.variance_components(replies["value"], factors, terms)
        if not any(math.isfinite(part.variance) for part in parts.values()):
            # A small run may not separate its wordings; the rest is then estimated without them.
            terms = [term for term in terms if not {*term} & {*WORDINGS}]
            parts = stats.variance_components(replies["value"], factors, terms)
        design = design_of(replies, asked[asked["model"] == model])
        components += [{"model": model} | row for row in _component_rows(parts, design)]
        for spent_on, plan in plans_of(design, CALLS, has_bases, silent=data.read_silently(model)).items():
            spent = {"model": model, "spent_on": spent_on, "calls": 0 if plan is design else CALLS}
            plans.append(spent | plan_row(parts, plan))
    return VarianceTables(pd.DataFrame(components, columns=COMPONENTS), pd.DataFrame(plans, columns=PLANS))


def components_figure(parts: pd.DataFrame, title: str, note: str) -> Drawing:
    """Standard deviations by component, one panel per model. Orange: what does not cancel in a difference."""
    models = list(pd.unique(parts["model"]))
    longest = int(parts.groupby("model", sort=False).size().max())
    figure, axes = sheet(3.6 * len(models) + 1.4, 1.6 + LINE * longest, len(models), sharex=True)
    for axis, model in zip(axes.flat, models, strict=True):
        rows = parts[(parts["model"] == model) & parts["sd"].notna()]
        tints = [PALETTE[1] if name in (*NOISE, BY_JUDGE) else PALETTE[0] for name in rows["component"]]
        axis.barh(range(len(rows)), rows["sd"], color=tints, height=0.6)
        axis.set_yticks(range(len(rows)), list(rows["component"]), fontsize=8)
        axis.set_ylim(len(rows) - 0.4, -0.6)
        axis.set_xlabel("standard deviation (points)", fontsize=8)
        axis.set_title(plain_text(str(model)) if len(models) > 1 else "", fontsize=9)
        tidy(axis)
    caption(figure, title, note)
    return figure


def _replies(scores: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """One row per unit and judge, and whether scenarios have bases.

    A row has the mean of its scores around each metric's mean, and integer codes for all factors.
    """
    names = ["unit", "judge", "metric", "scenario", "situation", "identity"]
    if "order" in scores and scores["order"].notna().all() and scores["order"].nunique() > 1:
        names.append("order")
    names += [name for name in WORDINGS if name in scores and scores[name].notna().all() and scores[name].nunique() > 1]
    codes = {name: factorize(scores[name], sort=False)[0] for name in names}
    value = scores["value"].to_numpy(dtype=float)
    metric = codes.pop("metric")
    value = value - (np.bincount(metric, value) / np.bincount(metric))[metric]
    reply = pd.factorize(codes["unit"] * (codes["judge"].max() + 1) + codes["judge"])[0]
    row = np.zeros(reply.max() + 1, dtype=np.int64)
    row[reply] = np.arange(len(reply))  # any row of a reply has its factors
    factors = {name: code[row] for name, code in codes.items()}
    replies = pd.DataFrame({"value": np.bincount(reply, value) / np.bincount(reply), **factors})
    has_bases = bool((scores["situation"].astype(str) != scores["scenario"].astype(str)).any())
    return replies.rename(columns={"unit": "conversation", "situation": "base"}), has_bases


def _component_rows(parts: Mapping[str, VarianceComponent], design: Design) -> Iterator[dict[str, Any]]:
    total = sum(part.variance for part in parts.values() if math.isfinite(part.variance))
    noise = {name: contribution(parts[name], design) for name in NOISE if name in parts}
    error = sum(value for value in noise.values() if math.isfinite(value))
    for name, part in parts.items():
        own = noise.get(name, math.nan if name in ("identity", BY_JUDGE) else 0.0)
        yield {
            "component": name,
            "variance": part.variance,
            "sd": math.sqrt(part.variance),
            "share": part.variance / total if total else math.nan,
            "share_of_noise": own / error if error and math.isfinite(part.variance) else math.nan,
            "levels": part.levels,
            "includes": ", ".join(part.includes),
            "generalises_to": GENERALISES_TO[name],
            "note": part.note,
        }


def components_section(data: PanelData, context: ReportContext) -> Section:
    """Where the noise comes from and where more calls are best spent: tables and a figure."""
    parts, plans = variance_tables(data)
    counts = data.counts(data.labelled_verdicts)
    figure = Figure(
        name="variance-components",
        caption=f"Standard deviations of the scores by component ({counts}).",
        table="variance_components",
        draw=lambda: components_figure(parts, context.title, f"{counts}. Orange: does not cancel in a difference."),
    )
    return Section(
        tables=(
            Table(
                name="variance_components",
                title="Phase 1: whose noise is it? Variance components of the scores",
                frame=parts,
                note="share_of_noise: share of the squared standard error of a difference between two identities.",
            ),
            Table(
                name="next_calls",
                title=f"Phase 1: where the next {CALLS:,} calls are best spent",
                frame=plans,
                note="Predicted standard error of a difference between two identities, from the variance components.",
            ),
        ),
        figures=(figure,),
    )
