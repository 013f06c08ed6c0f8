"""STARDTOX's report: table II, tests between iterations and against `default`, figure 3, and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import bounded, caption, colours, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.iterations import COUNTED_TWICE, refined_figure
from parley.analysis.reporting.optimism import NO_MEASURE, gap_forests, gap_sentences, gap_table, optimism_gaps
from parley.analysis.reporting.overcorrection import overcorrection_section
from parley.analysis.reporting.report import (
    NO_CONTEXT,
    Figure,
    Report,
    ReportContext,
    Section,
    Table,
    assemble,
    format_interval,
)
from parley.analysis.reporting.systems import cost_sentence, costs, system_facets
from parley.analysis.reporting.verdicts import LOST
from parley.analysis.stardtox import scores as stardtox
from parley.analysis.stats.resampling import words_on_draws
from parley.analysis.stats.results import ALPHA
from parley.base.text import p_text, plural

OVER_PROMPTS = "Intervals are 95%, over prompts: completions of one prompt are not independent."
CARRIED = "Iteration 0 is the first draft; items that were not revised carry over."
Facets = dict[str, tuple[str, ...]]
MISSING = "Missing scores are left out and counted; none counts as 0."


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What else the report is given.
    """
    frame = stardtox.tidy_scores(verdicts)
    facets = system_facets(frame)
    sections = [
        Section(warnings=words_on_draws(context.draws)),
        _gains_section(frame, facets),
        _toxicity_section(frame, context, facets),
        _tests_section(frame),
        overcorrection_section(stardtox.overcorrection(verdicts), ["set", "system"]),
        _refined_section(verdicts, context),
        _readings_section(verdicts),
        _cost_section(context.units),
    ]
    return assemble(sections, context, "STARDTOX", draws=context.draws, seed=context.seed, toxic_from=stardtox.TOXIC)


def _units(row: Any, facets: Mapping[str, Facets]) -> Facets:
    return {"set": (row.set,), **facets[row.system]}


def _gains_section(frame: pd.DataFrame, facets: Mapping[str, Facets]) -> Section:
    """What does revising gain, and does an outside measure see it?"""
    gaps = optimism_gaps(stardtox.gap_items(frame), ["set", "system", "against"])
    by = ("set", "system")
    said = list(gap_sentences(gaps, by, "points of toxicity"))
    return Section(
        tables=[gap_table(gaps, "Clusters are prompts.")],
        forests=list(gap_forests(gaps, "toxicity (points of 100)", by=by, units=lambda row: _units(row, facets))),
        warnings=[line for line in said if line == NO_MEASURE],
        words=[line for line in said if line != NO_MEASURE],
    )


def _toxicity_section(frame: pd.DataFrame, context: ReportContext, facets: Mapping[str, Facets]) -> Section:
    """How toxic, and how good, are the completions of each iteration? The paper's table II."""
    measures = stardtox.table_two(frame, draws=context.draws, seed=context.seed)
    paper, qualities = stardtox.wide(measures), stardtox.qualities(frame)
    small_print = f"{CARRIED} Means over prompts, with 95% intervals of toxicity. {context.small_print}"
    title = context.title or "STARDTOX"
    figure = Figure(
        name="toxicity_against_quality",
        caption=f"Toxicity against quality. {small_print}",
        table="table_2",
        draw=lambda: toxicity_against_quality(paper, qualities, title, small_print),
    )
    toxicity = Forest(
        name="toxicity",
        question="How toxic are the completions?",
        axis="toxicity (%)",
        lines=lines_of(
            measures[measures["measure"] == stardtox.TOXICITY],
            lambda row: f"{row.system}, iteration {row.iteration}" if row.iteration else f"{row.system}, first draft",
            value="estimate",
            group=lambda row: f"{row.set} set",
            units=lambda row: _units(row, facets),
        ),
        reference=None,
        table="measures",
        note=f"{CARRIED} {OVER_PROMPTS}",
    )
    return Section(
        tables=[
            Table(
                name="table_2",
                title="Toxicity (%) and quality (0 to 100) by set, method and iteration",
                frame=paper,
                note=f"{CARRIED} The interval is that of toxicity. {OVER_PROMPTS} {MISSING}",
            ),
            *_printed(paper, qualities),
            Table("measures", "Every measure with its interval", measures, note=f"{CARRIED} {OVER_PROMPTS}"),
        ],
        figures=[figure] if qualities and stardtox.TOXICITY in paper else [],
        forests=[toxicity],
        words=list(_courses(measures[measures["measure"] == stardtox.TOXICITY])),
    )


def _printed(paper: pd.DataFrame, qualities: list[str]) -> Iterator[Table]:
    """Table II as two narrower ones that fit a terminal."""
    keys = ["set", "system", "iteration"]
    if stardtox.TOXICITY in paper:
        outside = [stardtox.OUTSIDE] if stardtox.OUTSIDE in paper else []
        yield Table(
            name="toxicity",
            title="Toxicity (%)",
            frame=paper[[*keys, stardtox.TOXICITY, "low", "high", *outside]],
            note=f"{CARRIED} {OVER_PROMPTS} {MISSING}",
            printed=True,
        )
    if qualities:
        yield Table(
            name="quality", title="Quality (0 to 100)", frame=paper[[*keys, *qualities]], note=CARRIED, printed=True
        )


def _courses(toxicity: pd.DataFrame) -> Iterator[str]:
    """Toxicity of the first drafts and at the end, of each set and system."""
    for (name, system), rows in toxicity.groupby(["set", "system"], sort=False):
        first, last = rows.iloc[0], rows.iloc[-1]
        if last["estimate"] != last["estimate"]:
            continue
        revised = f"after {plural(last['iteration'], 'revision')}"
        course = f"{_estimate(first)} in the first drafts and {_estimate(last)} {revised}"
        levels = _estimate(last) if len(rows) == 1 else course
        yield f"{name} prompts, {system}: toxicity is {levels}, over {plural(last['prompts'], 'prompt')}."


def _estimate(row: Any) -> str:
    interval = format_interval(row["low"], row["high"], ".1f")
    return f"{row['estimate']:.1f}%{f' ({interval})' if interval else ''}"


def _tests_section(frame: pd.DataFrame) -> Section:
    """Does an iteration differ from the one before, and the last one from `default`?"""
    tests = stardtox.comparisons(frame)
    title = "Paired tests: between iterations, and the last iteration against default"
    note = "On items scored in both. p: sign flips over prompts; p_adjusted: Holm over the family."
    forest = Forest(
        name="toxicity-changes",
        question="Is toxicity lower than before, and lower than without a method?",
        axis="change of toxicity (points of 100)",
        lines=lines_of(
            tests[tests["metric"] == stardtox.TOXICITY],
            lambda row: f"{row.what} − {row.against}",
            p="p_adjusted",
            group=lambda row: f"{row.set} set",
            units=lambda row: {"set": (row.set,)},
        )
        if len(tests)
        else (),
        table="tests",
        note="95% intervals and p-values: sign flips over prompts; p-values Holm-corrected over the family.",
    )
    shown = tests[tests["p_adjusted"] <= ALPHA] if len(tests) else tests
    words = [
        f"{row.set} prompts, {row.what}: {row.metric} {'rises' if row.difference > 0 else 'falls'} by "
        f"{abs(row.difference):.1f} points compared with {row.against} (p {p_text(row.p_adjusted)})."
        for row in shown.itertuples()
    ]
    return Section(tables=[Table("tests", title, tests, note=note)], forests=[forest], words=words)


def _refined_section(verdicts: pd.DataFrame, context: ReportContext) -> Section:
    """How many completions were revised? The paper's figure 3."""
    shares, title = stardtox.refined(verdicts), context.title or "STARDTOX"
    note = f"Revisions made at each iteration. {COUNTED_TWICE} {context.small_print}"
    figure = Figure("refined", note, "refined", lambda: refined_figure(shares, ["set", "system"], title, note))
    return Section(
        tables=[Table("refined", "Completions revised at each iteration", shares, printed=True)],
        figures=[figure] if len(shares) else [],
    )


def _readings_section(verdicts: pd.DataFrame) -> Section:
    """Which scores are missing, and whose scores are they?"""
    statuses = stardtox.readings(verdicts)
    lost = statuses[list(LOST)].sum()
    kinds = ", ".join(f"{count} {status}" for status, count in lost.items() if count)
    note = "One row per scorer or judge; every draft is counted once."
    return Section(
        tables=[Table("readings", "How scores were parsed", statuses, note=note)],
        cautions=list(_scorers(statuses)),
        warnings=[f"Some scores are missing and left out: {kinds}."] if lost.sum() else [],
    )


def _scorers(statuses: pd.DataFrame) -> Iterator[str]:
    names = sorted(set(statuses.loc[statuses["metric"] == stardtox.TOXICITY, "judge"]))
    if len(names) > 1:
        yield f"Toxicity was scored by several scorers or versions, which are not comparable: {'; '.join(names)}."
    elif names:
        yield f"Toxicity means the score of {names[0]}, and nothing more."


def _cost_section(units: pd.DataFrame | None) -> Section:
    if units is None:
        return Section()
    note = "Cached calls cost nothing. Scorers other than LLM judges make no calls."
    return Section(
        tables=[Table("cost", "Cost per completion", costs(units), note=note)],
        costs=cost_sentence(units, "completion"),
    )


def toxicity_against_quality(table: pd.DataFrame, qualities: list[str], title: str, note: str) -> Drawing:
    """One point per system and iteration, one panel per set; the iterations of a system are joined.

    Args:
        table: One row per set, system and iteration, from `scores.wide`.
        qualities: The columns whose mean is the quality.
        title: Title of the figure.
        note: Small print below it.
    """
    sets = list(dict.fromkeys(table["set"]))
    figure, axes = sheet(2.4 + 3.7 * len(sets), 3.9, len(sets), sharey=True)
    tints = colours(list(table["system"]))
    for axis, name in zip(axes[0], sets, strict=True):
        for system, steps in table[table["set"] == name].groupby("system", sort=False):
            quality = steps[qualities].mean(axis=1, skipna=False)
            several = len(steps) > 1
            # A baseline's mark is larger, since it often lies under a loop's first draft.
            mark, size = ("o-", 5) if several else ("s", 9)
            label = plain_text(str(system))
            reach = np.abs(steps[["low", "high"]].to_numpy(dtype=float).T - steps["toxicity"].to_numpy(dtype=float))
            axis.errorbar(steps["toxicity"], quality, xerr=reach, fmt="none", color=tints[system], alpha=0.35, lw=1)
            axis.plot(steps["toxicity"], quality, mark, color=tints[system], markersize=size, label=label)
            if several:
                points: dict[tuple[float, float], list[str]] = {}
                for k, x, y in zip(steps["iteration"], steps["toxicity"], quality, strict=True):
                    if np.isfinite(x) and np.isfinite(y):
                        points.setdefault((x, y), []).append(str(k))
                for point, ks in points.items():
                    axis.annotate(", ".join(ks), point, textcoords="offset points", xytext=(4, 3), fontsize=7)
        axis.set_xlabel("toxicity (%; lower is better)")
        axis.set_title(plain_text(str(name)), fontsize=10)
        tidy(axis, "both")
        bounded(axis, "x")
    bounded(axes[0, 0], "y")
    axes[0, 0].set_ylabel(f"mean of {', '.join(qualities)}")
    legend_beside(figure, axes[0])
    caption(figure, title, note)
    return figure
