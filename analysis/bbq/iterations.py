"""BBQ by iteration, for methods that revise their answers (`stardtox`): the paper's table III.

Such a method stores its answer of every iteration as a verdict `answer_at`; an answer that is not revised carries over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.bbq.comparisons import TESTED, compared, paired
from parley.analysis.bbq.leaderboard import CLUSTERED, UNREAD, answers, by_category
from parley.analysis.bbq.scores import CONTEXTS
from parley.analysis.reporting.iterations import COUNTED_TWICE, at_each_iteration, refined_figure, shares_refined
from parley.analysis.reporting.optimism import BY, optimism_gaps
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.reporting.systems import systems
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.multiplicity import with_holm
from parley.analysis.stats.resampling import DRAWS

REVISED = "answer_at"
"""The metric of an iteration's answer."""
SCORES = (
    "accuracy", "accuracy_low", "accuracy_high", "bias", "low", "high", "n", "clusters", "unparsed", "refused", "cut"
)  # fmt: skip
CHANGES = ("system", "baseline", "context", "measure", "difference", "low", "high", "p", "p_adjusted", "n", "note")


def iterations_section(verdicts: pd.DataFrame, context: ReportContext) -> Section:
    """What each revision did; empty if no method revises its answers.

    Args:
        verdicts: One row per verdict.
        context: What the report is given.
    """
    revised = answers_at(verdicts)
    if not len(revised):
        return Section()
    shares = refined(verdicts)
    note = (
        f"Answers revised at each iteration; those that were not revised carry over. {COUNTED_TWICE} "
        f"{context.small_print}"
    )
    by, title = ["system", "condition"], context.title or "BBQ"
    figure = Figure("refined", note, "refined", lambda: refined_figure(shares, by, title, note))
    return Section(
        tables=[
            Table(
                name="iterations",
                title="By iteration: macro means over categories",
                frame=table_three(revised),
                shown=("system", "context", "iteration", *SCORES),
                note=f"Iteration 0 is the first answer; answers that were not revised carry over. {CLUSTERED} {UNREAD}",
            ),
            Table(
                name="between_iterations",
                title="Each iteration compared with the one before",
                frame=between_iterations(revised, draws=context.draws, seed=context.seed),
                shown=CHANGES,
                note=f"Later minus earlier. {TESTED}",
            ),
            Table(name="refined", title="Answers revised at each iteration", frame=shares),
        ],
        figures=[figure] if len(shares) else [],
    )


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
    """The most revisions that any item of the same method and model had."""
    return revisions.groupby(["method", "model"])["round"].transform("max")


def table_three(frame: pd.DataFrame) -> pd.DataFrame:
    """Systems × iterations × contexts, as macro means over categories."""
    parts = []
    for (system, k), part in frame.groupby(["system", "iteration"], sort=False):
        scores = by_category(part)
        macro = scores[scores["category"] == "macro mean"].drop(columns="category")
        parts.append(macro.assign(system=system, iteration=k))
    table = pd.concat(parts, ignore_index=True)
    names = ["system", "context", "iteration"]
    return table[[*names, *[name for name in table.columns if name not in names]]].sort_values(names, kind="stable")


def between_iterations(frame: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Every iteration against the one before, on the rows readable in both; Holm-corrected over the table."""
    return with_holm(pd.DataFrame(list(_steps(frame, draws, seed))))


def _steps(frame: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    for system, answered in frame.groupby("system", sort=False):
        for k in range(1, int(answered["iteration"].max()) + 1):
            both = paired(answered[answered["iteration"] == k], answered[answered["iteration"] == k - 1])
            for context in CONTEXTS:
                rows = both[both["condition"] == context]
                if len(rows):
                    yield from compared(
                        rows, f"{system}, iteration {k}", f"iteration {k - 1}", context, draws=draws, seed=seed
                    )


def supported_gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The optimism gap of methods whose judge says how well an answer is supported; empty without one."""
    revises = (verdicts["metric"].astype(str) == REVISED).any()
    return optimism_gaps(gap_items(verdicts), BY) if revises else pd.DataFrame()


def gap_items(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per revised answer's unit, for the optimism gap: the judge's support, and BBQ's key, which no loop saw.

    Both are in percent, and lower is better: 100 − support, and 100 if the answer is wrong.
    """
    metric = verdicts["metric"].astype(str)
    scored = verdicts[metric.isin(["support", REVISED])].assign(metric=metric).reset_index(drop=True)
    scored["unit"] = scored["unit"].astype(str) + " " + scored["model"].astype(str)
    wrong = 100.0 * (scored["value"] != scored["label"])
    scored["lost"] = (100 - scored["value"]).where(scored["metric"] == "support", wrong).where(scored["value"].notna())
    ordered = scored.sort_values("round", kind="stable")
    ends = {0: ordered.drop_duplicates(["unit", "metric"]), 1: ordered.drop_duplicates(["unit", "metric"], keep="last")}
    columns = {
        f"{who}{place}": end[end["metric"] == name].set_index("unit")["lost"]
        for who, name in (("inside", "support"), ("outside", REVISED))
        for place, end in ends.items()
    }
    units = scored.assign(system=systems(scored)).drop_duplicates("unit").set_index("unit")
    clusters = units["category"].astype(str) + "/" + units["question"].astype(str)
    return pd.DataFrame(columns).assign(system=units["system"], cluster=clusters, outside="BBQ's key").reset_index()


def refined(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The share of answers revised at each iteration, by system and context."""
    revisions = answers(_revisions(verdicts).assign(metric="answer"))
    return shares_refined(revisions, _planned(revisions), ["system", "condition"])
