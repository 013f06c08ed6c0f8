"""BBQ by iteration, for methods that revise their answers (`stardtox`): the paper's table III.

Such a method stores its answer of every iteration as a verdict `answer_at`; an answer that is not revised carries over.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from parley.analysis.effects import successive
from parley.analysis.iterations import COUNTED_TWICE, at_each_iteration, refined_figure, shares_refined
from parley.analysis.page.report import Figure, ReportContext, Section, Table, answered
from parley.analysis.systems import systems
from parley.analysis.verdicts import uncategorised
from parley.judging.bbq.comparisons import ACCURACY_CHANGE, changes
from parley.judging.bbq.leaderboard import MACRO, TEMPLATES, answers, scored, side_by_side
from parley.judging.bbq.methods import REVISED


def iterations_sections(verdicts: pd.DataFrame, context: ReportContext) -> list[Section]:
    """The effect of each revision; empty if no method revises its answers.

    Args:
        verdicts: One row per verdict.
        context: Data for the report.
    """
    revised = answers_at(verdicts)
    if not len(revised):
        return []
    shares = refined(verdicts)
    note = (
        f"Answers revised at each iteration; those that were not revised carry over. {COUNTED_TWICE} "
        f"{context.small_print}"
    )
    by, title = ["system", "condition"], context.title or "BBQ"
    figure = Figure("refined", note, "refined", lambda: refined_figure(shares, by, title, note))
    steps = changes(
        revised.assign(step="iteration " + revised["iteration"].astype(str)),
        draws=context.draws,
        seed=context.seed,
        name="{}_between_iterations",
        ask="Does an iteration change the {}, compared with the one before?",
        by=("model", "method", "context"),
        arms="step",
        pairs=successive,
        facets={**ACCURACY_CHANGE.facets, "step": ()},
    )
    return [
        Section(
            tables=[
                Table(
                    name="iterations",
                    title="By iteration: macro means over categories",
                    frame=table_three(revised),
                    note="Iteration 0 is the first answer; answers that were not revised carry over. low and high are "
                    f"the bias's. {TEMPLATES}",
                ),
                Table(
                    name="refined",
                    title="Answers revised at each iteration",
                    frame=shares,
                    paper="STARDTOX V, figure 3",
                ),
            ],
            figures=[figure] if len(shares) else [],
        ),
        *(answered(question, rows) for question, rows in steps),
    ]


def answers_at(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per answer and iteration; none if no method revises its answers."""
    revisions = _revisions(verdicts)
    if not len(revisions):
        return revisions.assign(iteration=0, carried=False)
    by_iteration = at_each_iteration(revisions, _planned(revisions))
    return answers(by_iteration.assign(metric="answer"))


def _revisions(verdicts: pd.DataFrame) -> pd.DataFrame:
    return uncategorised(verdicts[verdicts["metric"].astype(str) == REVISED])


def _planned(revisions: pd.DataFrame) -> pd.Series:
    """The largest number of revisions of any item of the same method and model."""
    return revisions.groupby(["method", "model"])["round"].transform("max")


def table_three(frame: pd.DataFrame) -> pd.DataFrame:
    """Systems × contexts × iterations, as macro means over categories."""
    lines = [
        replace(line, about=line.about.plus(iteration=iteration))
        for iteration, part in frame.groupby("iteration", sort=False)
        for line in scored(part, tested=False)
        if line.about.category == MACRO
    ]
    table = side_by_side(lines).drop(columns="category")
    table.insert(0, "system", systems(table))
    return table.sort_values(["system", "context", "iteration"], kind="stable", ignore_index=True)


def refined(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The share of answers revised at each iteration, by system and context."""
    revisions = answers(_revisions(verdicts).assign(metric="answer"))
    return shares_refined(revisions, _planned(revisions), ["system", "condition"])
