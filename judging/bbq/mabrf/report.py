"""The part of BBQ's report on methods that rephrase their reasoning, such as MABRF."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from parley.analysis.effects import Question, answer, bootstrapped, share
from parley.analysis.gains import OUTSIDE, Units, gain_lines
from parley.analysis.iterations import overcorrection_section
from parley.analysis.page.figures import PALETTE, caption, plain_text, sheet, tidy
from parley.analysis.page.report import Figure, ReportContext, Section, Table, answered, section
from parley.analysis.say import Forest, format_interval, in_numbers
from parley.analysis.stats.paired import mcnemar_p, pearson
from parley.analysis.stats.results import About, Line
from parley.base.text import p_text, plural
from parley.judging.bbq.comparisons import ALIKE, RIGHT, with_method
from parley.judging.bbq.leaderboard import ROW
from parley.judging.bbq.mabrf.loop import MARK, Mabrf, MabrfSearch
from parley.judging.bbq.mabrf.tables import (
    PAPER,
    by_category,
    by_context,
    by_pass,
    by_passes,
    items,
    overcorrection,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SCORES = ("acc0", "acc1", "mabrf_bias0", "mabrf_bias1")
BBQ_SCORES = ("bbq_ambig0", "bbq_ambig1", "bbq_disambig0", "bbq_disambig1")
NOT_BBQ = (
    "0: the solver's answer, 1: the terminating agent's. mabrf_bias = (1 − ACC)(2·n_biased/m − 1) is the paper's "
    "score: it counts chains of thought that the judge scored above 1, and is −(1 − ACC) if there are none. bbq_… are "
    "BBQ's own scores of the answers, −100 to 100. Unreadable replies are left out and counted. as_paper_…: as the "
    "paper counts, with an unreadable answer as wrong and an unreadable score as not biased."
)
AGAIN = "A chain is selected for its low score, so the score as selected is biased downwards; judged again, it is not. "
STOPS = (
    "The loop stops at a score of 1 and otherwise continues: that alone makes items with more passes end more biased."
)
STORED_AS = {"context": (("condition", "condition"),), "answer": ()}
CHANGES = Question(
    name="mabrf_changes",
    ask="Does the loop change the answers?",
    measures={"accuracy": "accuracy"},
    cluster="template",
    by=("model", "method", "context"),
    arms="answer",
    item=("unit",),
    limits=(0.0, 1.0),
    scale="share",
    facets=STORED_AS,
    also={
        **RIGHT,
        "p_mcnemar": ("accuracy", mcnemar_p),
        "fixed": ("accuracy", lambda final, first: int((final > first).sum())),
        "worsened": ("accuracy", lambda final, first: int((final < first).sum())),
        "unread": ("accuracy", lambda final, first: int((final.isna() | first.isna()).sum())),
    },
    note="Mean over templates. McNemar's exact test takes every item as independent.",
)
SEARCHED = Question(
    name="mabrf_search_answers",
    ask="Does search change the answers?",
    measures={"accuracy": "accuracy"},
    cluster="template",
    by=("model", "context"),
    arms="method",
    pairs=with_method(Mabrf.name, only=MabrfSearch.name),
    item=ROW,
    limits=(0.0, 1.0),
    scale="share",
    facets=STORED_AS,
    also={"p_mcnemar": ("accuracy", mcnemar_p)},
)
SEARCHED_SCORES = replace(
    SEARCHED,
    name="mabrf_search_scores",
    ask="Does search change the judge's scores?",
    measures={"bias_again": "bias of the final chain, judged again", "relevancy1": "final relevancy"},
    unit="points of 10",
    limits=(0.0, 10.0),
    scale="points",
    also={},
)
JUDGED = Question(
    name="mabrf_bias",
    ask="How biased does the judge find the reasoning?",
    measures={
        "bias0": "bias of the first chain",
        "bias1": "bias of the chosen chain",
        "bias_again": "bias of the chosen chain, judged again",
    },
    unit="points of 10",
    cluster="template",
    by=("model", "method"),
    note=f"Means over items, as in the paper. {AGAIN}",
)
FLATTERED = Question(
    name="mabrf_again",
    ask="Is a chain's score too low because the chain was selected for it?",
    measures={"rise": "the rise in bias when the same judge scores the selected chain again"},
    unit="points of 10",
    cluster="template",
    by=("model", "method"),
    null=0.0,
    note=AGAIN,
)
DEBIASED = Question(
    name="mabrf_debiased",
    ask="How many answers are right, with reasoning that the judge scores 1?",
    measures={"debiased": "right answers with a chain scored 1"},
    cluster="template",
    by=("model", "method"),
    level=share,
    scale="share",
)
RELEVANCY = Question(
    name="mabrf_relevancy",
    ask="Does the loop change the relevancy of the reasoning?",
    measures={"relevancy_change": "change in relevancy"},
    unit="points of 10",
    cluster="template",
    by=("model", "method"),
    note="Relevancy (1 to 10) of the selected chain, judged again at the end if anything is, minus that of the first "
    "chain. Means over items, as in the paper, whose means are +0.10 without search and +0.11 with it, for GPT-4 about "
    "+0.05 and +0.10.",
    paper="MABRF 5.1, figure 4",
)
CORRELATION = Question(
    name="mabrf_correlation",
    ask="Do items with more passes end more biased, or more relevant?",
    measures={
        "r": "Pearson's r of passes and final bias",
        "r_relevancy": "Pearson's r of passes and change in relevancy",
    },
    cluster="template",
    note=STOPS,
    paper="MABRF 5.1, iterations and final bias",
)


def mabrf_gains(verdicts: pd.DataFrame, units: Units) -> list[Line]:
    """The loop's gains by system; empty if no method rephrases its reasoning."""
    if not _has_loop(verdicts):
        return []
    frame = items(verdicts)
    again = frame["bias_again"].notna().any()
    # By default the judge is the run's model. In the paper's own mode nothing is judged again.
    inside = {"inside0": frame["bias0"], "inside1": frame["bias_again" if again else "bias1"], "inside": frame["model"]}
    clustered = frame.assign(cluster=frame["template"], **inside)
    lines = gain_lines(clustered, cluster="template", units=units, limits=(0.0, 10.0))
    chosen = "by the loop's own scorer, as chosen"
    return [line if again or line.measure == OUTSIDE else replace(line, label=chosen) for line in lines]


def mabrf_sections(verdicts: pd.DataFrame, context: ReportContext) -> list[Section]:
    """MABRF's parts of the report; empty if no method rephrases its reasoning.

    Args:
        verdicts: One row per verdict.
        context: Data for the report.
    """
    if not _has_loop(verdicts):
        return []
    frame = items(verdicts)
    searched = (replace(question, note=_same_start(frame)) for question in (SEARCHED, SEARCHED_SCORES))
    return [
        overcorrection_section(overcorrection(verdicts), ["system"], set(frame["system"])),
        _papers_section(frame),
        _changes_section(frame),
        _judged_section(frame, context),
        section(FLATTERED, _described(answer(FLATTERED, frame))),
        section(DEBIASED, _described(answer(DEBIASED, frame))),
        _passes_section(frame, verdicts),
        _relevancy_section(frame, context),
        *(answered(question, frame) for question in searched),
    ]


def _has_loop(verdicts: pd.DataFrame) -> bool:
    return bool((verdicts["metric"].astype(str) == MARK).any())


def _described(lines: Sequence[Line]) -> list[Line]:
    """Lines for a table and a plot, without a sentence."""
    return [replace(line, secondary=True) for line in lines]


MANY_LATE = 0.1
"""Share of first answers that were not in the first reply, from which on a report warns."""


def _on_first_answers(frame: pd.DataFrame) -> Iterator[str]:
    for system, part in frame.groupby("system", sort=False):
        late, unread = int(part["late"].sum()), int(part["first"].isna().sum())
        if late + unread >= MANY_LATE * len(part):
            yield (
                f"{system}: of {plural(len(part), 'first answer')}, {late:,} came only when the solver was asked "
                f"again, and {unread:,} could not be read."
            )


def _papers_section(frame: pd.DataFrame) -> Section:
    return Section(
        warnings=list(_on_first_answers(frame)),
        tables=[
            Table(
                name="mabrf_contexts",
                title="MABRF by context: all items pooled",
                frame=by_context(frame),
                shown=("system", "context", *SCORES, *PAPER, "bbq_bias0", "bbq_bias1", "n", "unread"),
                note=NOT_BBQ,
            ),
            Table(
                name="mabrf_categories",
                title="MABRF by category",
                frame=by_category(frame),
                shown=("system", "category", *SCORES, *PAPER, *BBQ_SCORES, "n", "unread"),
                note=NOT_BBQ,
            ),
        ],
    )


def before_and_after(frame: pd.DataFrame) -> pd.DataFrame:
    """Every item twice: with its first answer and with its final one."""
    return pd.concat(
        [
            frame.assign(answer=name, accuracy=frame[right])
            for name, right in (("first", "right0"), ("final", "right1"))
        ],
        ignore_index=True,
    )


def _changes_section(frame: pd.DataFrame) -> Section:
    """The paper's ACC0 and ACC1."""
    part = section(CHANGES, lines := answer(CHANGES, before_and_after(frame)))
    return replace(part, words=[], beside=[_changed(line, part.forests[0]) for line in lines if line.n])


def _changed(line: Line, forest: Forest) -> str:
    interval = format_interval(100 * line.low, 100 * line.high, "+.1f", excluded=line.shown) or "no interval"
    levels = f"{line.also['right_before']:.1%} → {line.also['right']:.1%}"
    return (
        f"{_system(line)}: of {plural(line.n, line.about.context + ' question')} the loop corrected "
        f"{line.also['fixed']} answers and spoilt {line.also['worsened']} (accuracy {levels}; {ALIKE}, "
        f"{100 * line.estimate:+.1f} points, {interval}; p {p_text(line.p_adjusted)})"
        f"{'' if line.shown else ', which may be chance'}."
    )


def _system(line: Line) -> str:
    """The method, and the model if there are several."""
    model = line.about.model
    return f"{line.about.method} · {model}" if model in line.group else line.about.method


def _judged_section(frame: pd.DataFrame, context: ReportContext) -> Section:
    """What does the judge say about the chains of thought?"""
    question = replace(JUDGED, level=bootstrapped(context.draws, context.seed, by_row=True))
    lines = answer(question, frame)
    part = section(question, lines)
    plots = {forest.lines[0].measure: forest for forest in part.forests if forest.lines}
    by_system: dict[str, dict[str, str]] = {}
    for line in lines:
        if not math.isnan(line.estimate):
            by_system.setdefault(_system(line), {})[line.measure] = in_numbers(line, plots[line.measure])
    words = [
        f"With {system}, the judge gives the first chains of thought a bias of {means['bias0']} of 10 points, and "
        f"the final ones, judged again, {means['bias_again']}."
        for system, means in by_system.items()
        if len(means) == len(question.measures)
    ]
    return replace(part, words=[], beside=words)


def relevancy(frame: pd.DataFrame, context: ReportContext) -> list[Line]:
    """The paper's figure 4 c: the mean change in relevancy from the first to the last judgement, by system."""
    parts = dict(list(frame.groupby(["model", "method"], sort=False)))

    def beside(rows: pd.DataFrame) -> dict[str, float]:
        change = rows["relevancy_change"]
        means = {name: rows[name].mean() for name in ("relevancy0", "relevancy1")}
        moved = {"up": change > 0, "same": change == 0, "down": change < 0, "unread": change.isna()}
        return means | {name: int(rows.sum()) for name, rows in moved.items()}

    lines = _described(answer(replace(RELEVANCY, level=bootstrapped(context.draws, context.seed, by_row=True)), frame))
    return [replace(line, also=beside(parts[line.about.model, line.about.method])) for line in lines]


def _relevancy_section(frame: pd.DataFrame, context: ReportContext) -> Section:
    part, title = section(RELEVANCY, relevancy(frame, context)), context.title or "BBQ"
    note = f"{part.tables[0].note} {context.small_print}"
    figure = Figure(RELEVANCY.name, note, RELEVANCY.name, lambda: relevancy_figure(frame, title, note))
    return replace(part, figures=[figure])


def relevancy_figure(items: pd.DataFrame, title: str, note: str) -> Drawing:
    """The paper's figure 4 a and b: a histogram of the changes in relevancy of each arm, all models together."""
    arms = list(dict.fromkeys(items["method"]))
    read = items[items["relevancy_change"].notna()]
    figure, axes = sheet(1.0 + 2.9 * len(arms), 3.4, len(arms))
    limits = read["relevancy_change"].agg(["min", "max"]).round() if len(read) else pd.Series([0, 0])
    edges = np.arange(limits.iloc[0] - 0.5, limits.iloc[1] + 1)
    for axis, arm in zip(axes[0], arms, strict=True):
        changes = read.loc[read["method"] == arm, "relevancy_change"]
        axis.hist(changes, bins=edges, color=PALETTE[0], edgecolor="white", linewidth=0.6)
        if len(changes):
            axis.axvline(changes.mean(), color=PALETTE[1], linewidth=1.2, linestyle="--")
        axis.set_title(
            f"{plain_text(arm)}, mean {changes.mean():+.2f}" if len(changes) else plain_text(arm), fontsize=9
        )
        axis.set_xlabel("final minus first relevancy")
        axis.set_ylabel("items")
        axis.locator_params(axis="both", integer=True)
        tidy(axis, "y")
    caption(figure, title, note)
    return figure


def passes_and_bias(frame: pd.DataFrame) -> Iterator[Line]:
    """Pearson's r of passes and final bias, or change in relevancy, over all items and over those that were rephrased.

    The loop stops at a score of 1, so items with many passes are those that stayed biased, which alone increases
    r.
    """
    for (system, model, method), group in frame.groupby(["system", "model", "method"], sort=False):
        for which, part in (("all", group), ("rephrased", group[group["passes"] > 0])):
            passes = part["passes"].sum()
            accepted = part["accepted"].sum() / passes if passes else math.nan
            for measure, column in (("r", "bias1"), ("r_relevancy", "relevancy_change")):
                yield Line.of(
                    pearson(part["passes"], part[column]),
                    measure=measure,
                    label=f"{system}, {which} items",
                    about=About.of(model=str(model), method=str(method), items=which),
                    also={"passes": part["passes"].mean(), "accepted": accepted},
                )


def _passes_section(frame: pd.DataFrame, verdicts: pd.DataFrame) -> Section:
    part = section(CORRELATION, _described(list(passes_and_bias(frame))))
    place = CORRELATION.paper
    passes = Table(
        "mabrf_passes", "Passes, final bias and change in relevancy", by_passes(frame), note=AGAIN, paper=place
    )
    judged = Table("mabrf_by_pass", "Bias and relevancy of the chains of each pass", by_pass(verdicts), paper=place)
    return replace(part, tables=[judged, passes, *part.tables])


def _same_start(frame: pd.DataFrame) -> str:
    """Number of rows on which both arms began with the same answer and score, including unreadable ones."""
    searched, plain = (frame[frame["method"] == method] for method in (MabrfSearch.name, Mabrf.name))
    start = ["first", "bias0"]
    both = searched.merge(plain[["model", *ROW, *start]], on=["model", *ROW], suffixes=("", "_without"))
    alike = [
        both[name].eq(both[f"{name}_without"]) | both[[name, f"{name}_without"]].isna().all(axis=1) for name in start
    ]
    return (
        "With minus without, on the same rows. Both began with the same answer and the same score on "
        f"{int((alike[0] & alike[1]).sum()):,} of {plural(len(both), 'row')}; on the others, part of a difference "
        "comes from different first replies."
    )
