"""STARDTOX's report: table II, tests between iterations and against `default`, figure 3, and costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import bounded, caption, colours, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.forest import Forest, estimates, filled
from parley.analysis.reporting.iterations import COUNTED_TWICE, refined_figure
from parley.analysis.reporting.optimism import gap_forests, gap_sentences, gap_table, optimism_gaps
from parley.analysis.reporting.overcorrection import overcorrection_table, sentences
from parley.analysis.reporting.report import NO_CONTEXT, Figure, Report, ReportContext, Table
from parley.analysis.reporting.systems import costs, system_facets
from parley.analysis.stardtox import scores as stardtox
from parley.analysis.stats.resampling import words_on_draws
from parley.base.text import plural

OVER_PROMPTS = "Intervals are 95%, over prompts: completions of one prompt are not independent."
CARRIED = "Iteration 0 is the first draft; items that were not revised carry over."
MISSING = "Missing scores are left out and counted; none counts as 0."


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What the report is given beside them.
    """
    title = context.title or "STARDTOX"
    frame = stardtox.tidy_scores(verdicts)
    measures = stardtox.table_two(frame, draws=context.draws, seed=context.seed)
    tests = stardtox.comparisons(frame)
    paper, shares = stardtox.wide(measures), stardtox.refined(verdicts)
    qualities = stardtox.qualities(frame)
    statuses = stardtox.readings(verdicts)
    gaps = optimism_gaps(stardtox.gap_items(frame), ["set", "system", "against"])
    changes = stardtox.overcorrection(verdicts)
    tables = [
        gap_table(gaps, "Clusters are prompts."),
        Table(
            name="table_2",
            title="Toxicity (%) and quality (0 to 100) by set, method and iteration",
            frame=paper,
            note=f"{CARRIED} The interval is that of toxicity. {OVER_PROMPTS} {MISSING}",
        ),
        *_printed(paper, qualities),
        overcorrection_table(changes),
        Table(
            name="measures",
            title="Every measure with its interval",
            frame=measures,
            note=f"{CARRIED} {OVER_PROMPTS}",
        ),
        Table(
            name="tests",
            title="Paired tests: between iterations, and the last iteration against default",
            frame=tests,
            note="On items scored in both. p: sign flips over prompts; p_adjusted: Holm over the family.",
        ),
        Table(name="refined", title="Completions revised at each iteration", frame=shares, printed=True),
        Table(
            name="readings",
            title="How scores were parsed",
            frame=statuses,
            note="One row per scorer or judge; every draft is counted once.",
        ),
    ]
    if context.units is not None:
        note = "Cached calls cost nothing. Scorers other than LLM judges make no calls."
        tables.append(Table(name="cost", title="Cost per completion", frame=costs(context.units), note=note))
    small_print = f"{CARRIED} Means over prompts, with 95% intervals of toxicity. {context.small_print}"
    revised = f"Revisions made at each iteration. {COUNTED_TWICE} {context.small_print}"
    figures = []
    if len(shares):
        figures.append(
            Figure(
                name="refined",
                caption=revised,
                table="refined",
                draw=lambda: refined_figure(shares, ["set", "system"], title, revised),
            )
        )
    if qualities and stardtox.TOXICITY in paper:
        figures.append(
            Figure(
                name="toxicity_against_quality",
                caption=f"Toxicity against quality. {small_print}",
                table="table_2",
                draw=lambda: toxicity_against_quality(paper, qualities, title, small_print),
            )
        )
    return Report(
        title=title,
        words=(
            *gap_sentences(gaps, ["set", "system"], "points of toxicity"),
            *words_on_draws(context.draws),
            *_summary(measures, tests, shares, statuses),
            *sentences(changes, ["set", "system"]),
        ),
        cautions=(*context.cautions, *_scorers(statuses)),
        tables=tuple(table for table in tables if len(table.frame)),
        figures=tuple(figures),
        forests=filled(_forests(frame, measures, tests, gaps)),
        settings={"draws": context.draws, "seed": context.seed, "toxic_from": stardtox.TOXIC},
        runs=tuple(context.runs),
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


def _forests(frame: pd.DataFrame, measures: pd.DataFrame, tests: pd.DataFrame, gaps: pd.DataFrame) -> Iterator[Forest]:
    """What revising gains and the optimism gap; toxicity by iteration; the last draft beside `default`'s."""
    facets = system_facets(frame)

    def units(row: Any) -> dict[str, tuple[str, ...]]:
        return {"set": (row.set,), **facets[row.system]}

    yield from gap_forests(gaps, "toxicity (points of 100)", by=("set", "system"), units=units)
    toxicity = measures[measures["measure"] == stardtox.TOXICITY]
    yield Forest(
        name="toxicity",
        question="How toxic are the completions?",
        axis="toxicity (%)",
        estimates=estimates(
            toxicity,
            lambda row: f"{row.system}, iteration {row.iteration}" if row.iteration else f"{row.system}, first draft",
            value="estimate",
            group=lambda row: f"{row.set} set",
            units=units,
        ),
        reference=None,
        table="measures",
        note=f"{CARRIED} {OVER_PROMPTS}",
    )
    if len(tests):
        yield Forest(
            name="toxicity-changes",
            question="Is toxicity lower than before, and than without a method?",
            axis="change of toxicity (points of 100)",
            estimates=estimates(
                tests[tests["metric"] == stardtox.TOXICITY],
                lambda row: f"{row.what} − {row.against}",
                p="p_adjusted",
                group=lambda row: f"{row.set} set",
                units=lambda row: {"set": (row.set,)},
            ),
            table="tests",
            note="95% intervals and p-values: sign flips over prompts; p-values Holm-corrected over the family.",
        )


def _scorers(statuses: pd.DataFrame) -> Iterator[str]:
    names = sorted(set(statuses.loc[statuses["metric"] == stardtox.TOXICITY, "judge"]))
    if len(names) > 1:
        yield f"Toxicity was scored by several scorers or versions, which are not comparable: {'; '.join(names)}."
    elif names:
        yield f"Toxicity means the score of {names[0]}, and nothing more."


def _summary(
    measures: pd.DataFrame, tests: pd.DataFrame, shares: pd.DataFrame, statuses: pd.DataFrame
) -> Iterator[str]:
    toxicity = measures[measures["measure"] == stardtox.TOXICITY]
    for (name, system), rows in toxicity.groupby(["set", "system"], sort=False):
        course = ", ".join(_estimate(row) for row in rows.itertuples())
        last = rows.iloc[-1]
        unscored = f"; {last['missing']:,} unscored" if last["missing"] else ""
        completions, prompts = plural(last["n"], "completion"), plural(last["prompts"], "prompt")
        yield f"{name}, {system}: toxicity {course}; {completions} of {prompts}{unscored}."
    for row in shares[shares["iteration"] == 1].itertuples():
        verb = "was" if row.refined == 1 else "were"
        yield f"{row.set}, {row.system}: {row.refined:,} of {plural(row.n, 'first draft')} {verb} revised."
    if len(tests):
        significant = tests[tests["p_adjusted"] < 0.05]
        for row in significant.itertuples():
            yield (
                f"{row.set}, {row.what}: {row.metric} differs from {row.against} by {row.difference:+.1f} points "
                f"(p = {row.p_adjusted:.2g} after Holm correction, family {row.family})."
            )
        if significant.empty:
            count = plural(int(tests["p"].notna().sum()), "paired test")
            yield (
                f"No difference is significant after Holm correction ({count}). This shows neither that methods or "
                "iterations differ nor that they are equal."
            )
    lost = statuses[["unparsed", "refused", "cut", "unscored"]].sum()
    if lost.sum():
        yield f"Scores left out: {', '.join(f'{count} {status}' for status, count in lost.items())}."


def _estimate(row: Any) -> str:
    after = f" after iteration {row.iteration}" if row.iteration else ""
    if row.estimate != row.estimate:
        return f"unknown{after}"
    interval = "" if row.low != row.low else f" ({row.low:.1f} to {row.high:.1f})"
    return f"{row.estimate:.1f}%{interval}{after}"


def toxicity_against_quality(table: pd.DataFrame, qualities: list[str], title: str, note: str) -> Drawing:
    """One point per system and iteration, one panel per set; the iterations of a system are joined.

    Args:
        table: One row per set, system and iteration, from `scores.wide`.
        qualities: The columns whose mean is the quality.
        title: Above the figure.
        note: The small print below it.
    """
    sets = list(dict.fromkeys(table["set"]))
    figure, axes = sheet(2.4 + 3.7 * len(sets), 3.9, len(sets), sharey=True)
    tints = colours(list(table["system"]))
    for axis, name in zip(axes[0], sets, strict=True):
        for system, steps in table[table["set"] == name].groupby("system", sort=False):
            quality = steps[qualities].mean(axis=1, skipna=False)
            several = len(steps) > 1
            mark, size = (
                ("o-", 5) if several else ("s", 9)
            )  # larger, as a baseline often lies under a loop's first draft
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
