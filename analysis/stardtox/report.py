"""STARDTOX's report: table II, tests between iterations and against `default`, figure 3, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.reporting.iteration_figures import COUNTED_TWICE, refined_figure
from parley.analysis.reporting.report import Figure, Report, Table
from parley.analysis.reporting.systems import costs
from parley.analysis.stardtox import scores as stardtox
from parley.analysis.stardtox.figures import toxicity_against_quality

OVER_PROMPTS = "Intervals are 95%, over prompts: completions of one prompt are not independent."
CARRIED = "Iteration 0 is the first draft; items that were not revised carry over."
MISSING = "Scores that are missing are left out and counted; none counts as 0."


def report(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "STARDTOX",
    draws: int = 2000,
    seed: int = 0,
    cautions: tuple[str, ...] | list[str] = (),
    **about: Any,
) -> Report:
    """All of it from a frame of verdicts, over one run or several; `about` is handed on (runs)."""
    frame = stardtox.tidy_scores(verdicts)
    long = stardtox.table_two(frame, draws=draws, seed=seed)
    found = stardtox.comparisons(frame, draws=draws, seed=seed)
    paper, shares = stardtox.wide(long), stardtox.refined(verdicts)
    at = ["set", "system", "iteration"]
    qualities = stardtox.qualities(frame)
    read = stardtox.readings(verdicts)
    tables = [
        Table(
            "table_2",
            "Toxicity (%) and quality (0 to 100) by set, method and iteration",
            paper,
            note=f"{CARRIED} The interval is that of toxicity. {OVER_PROMPTS} {MISSING}",
        ),
        *_printed(paper, at, qualities),
        Table("measures", "Every measure with its interval", long, note=f"{CARRIED} {OVER_PROMPTS}"),
        Table(
            "tests",
            "Paired tests: between iterations, and the last one against default",
            found,
            note="On items scored in both. p: sign flips over prompts; p_adjusted: Holm over the family.",
        ),
        Table("refined", "Completions revised at each iteration", shares, printed=True),
        Table("readings", "How the scores could be read", read, note="One row a scorer or judge; every draft once."),
    ]
    if units is not None:
        note = "Calls from the cache cost nothing. Scorers other than LLM judges make no calls."
        tables.append(Table("cost", "What a completion takes", costs(units), note=note))
    warned = " ".join(cautions)
    small_print = f"{CARRIED} Means over prompts, with 95% intervals of toxicity. {warned}"
    revised = f"Revisions made at each iteration. {COUNTED_TWICE} {warned}"
    figures = [
        Figure("refined", revised, "refined", lambda: refined_figure(shares, ["set", "system"], title, revised)),
        Figure("toxicity_against_quality", f"Toxicity against quality. {small_print}", "table_2",
               lambda: toxicity_against_quality(paper, qualities, title, small_print)),
    ]  # fmt: skip
    drawn = [figures[0]] * bool(len(shares)) + [figures[1]] * bool(qualities and stardtox.TOXICITY in paper)
    return Report(
        title,
        tuple(_words(long, found, shares, read)),
        cautions=(*cautions, *_scorers(read)),
        tables=tuple(table for table in tables if len(table.frame)),
        figures=tuple(drawn),
        settings={"draws": draws, "seed": seed, "toxic_from": stardtox.TOXIC},
        **about,
    )


def _printed(paper: pd.DataFrame, at: list[str], qualities: list[str]) -> Iterator[Table]:
    """Table II in two, as a terminal has room for it."""
    if stardtox.TOXICITY in paper:
        note = f"{CARRIED} {OVER_PROMPTS} {MISSING}"
        yield Table("toxicity", "Toxicity, %", paper[[*at, stardtox.TOXICITY, "low", "high"]], note=note, printed=True)
    if qualities:
        yield Table("quality", "Quality, 0 to 100", paper[[*at, *qualities]], note=CARRIED, printed=True)


def _scorers(read: pd.DataFrame) -> Iterator[str]:
    names = sorted(set(read.loc[read["metric"] == stardtox.TOXICITY, "judge"]))
    if len(names) > 1:
        yield f"Toxicity was scored by more than one scorer or version, which do not compare: {'; '.join(names)}."
    elif names:
        yield f"Toxicity is what {names[0]} says, and no more than that."


def _words(long: pd.DataFrame, tests: pd.DataFrame, shares: pd.DataFrame, read: pd.DataFrame) -> Iterator[str]:
    toxicity = long[long["measure"] == stardtox.TOXICITY]
    for (name, system), here in toxicity.groupby(["set", "system"], sort=False):
        course = ", ".join(_amount(row) for row in here.itertuples())
        last = here.iloc[-1]
        gone = f"; {last['missing']} unscored" if last["missing"] else ""
        yield f"{name}, {system}: toxicity {course}; {last['n']} completions of {last['prompts']} prompts{gone}."
    for row in shares[shares["iteration"] == 1].itertuples():
        yield f"{row.set}, {row.system}: {row.refined} of {row.n} first drafts were revised."
    if len(tests):
        sure = tests[tests["p_adjusted"] < 0.05]
        for row in sure.itertuples():
            yield (
                f"{row.set}, {row.what}: {row.metric} differs from {row.against} by {row.difference:+.1f} points "
                f"(p = {row.p_adjusted:.2g} after Holm, family {row.family})."
            )
        if not len(sure):
            yield (
                f"None of the {int(tests['p'].notna().sum())} paired tests stands after Holm: nothing here shows that "
                "one method or iteration differs from another, nor that they are equal."
            )
    lost = read[["unparsed", "refused", "unscored"]].sum()
    if lost.sum():
        yield f"Left out: {lost['unparsed']} scores unparsed, {lost['refused']} refused, {lost['unscored']} unscored."


def _amount(row: Any) -> str:
    at = f" after iteration {row.iteration}" if row.iteration else ""
    if row.estimate != row.estimate:
        return f"unknown{at}"
    ends = "" if row.low != row.low else f" ({row.low:.1f} to {row.high:.1f})"
    return f"{row.estimate:.1f}%{ends}{at}"
