"""What the report on injection says in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from parley.analysis.injection.effects import ALL, BOTH, LEVEL, LOST, MALIBU
from parley.analysis.reporting.report import format_interval
from parley.analysis.stats.signflips import clusters_to_reject
from parley.base.text import plural


def summary(kinds: pd.DataFrame, judges: pd.DataFrame, fence: pd.DataFrame, statuses: pd.DataFrame) -> Iterator[str]:
    """The report in sentences, which claim no more than the tests do.

    Args:
        kinds: The table of `by_kind`.
        judges: The table of `by_judge`.
        fence: The table of `fence_effect`.
        statuses: The table of `readings`.
    """
    name = namer(kinds)
    for row in kinds[kinds["kind"] == ALL].itertuples():
        yield (
            f"{name(row)}, {row.shown}: attempts moved scores by {_signed(row.shift)} points towards the requested "
            f"score, harmless texts by {_signed(row.control_shift)}; difference {_signed(row.effect)}"
            f"{_interval(row.low, row.high)} (n = {row.responses}). {_percent(row.moved)} of scores moved by a tenth "
            f"of the scale or more ({_percent(row.control_moved)} with harmless texts); {_percent(row.asked)} ended "
            f"at the requested score ({_percent(row.control_asked)})."
        )
    if not malibu_alone(kinds):
        for shown, part in judges[judges["request"] == BOTH].groupby("shown", sort=False):
            ordered = part.sort_values("percent", ascending=False)
            listed = "; ".join(
                f"{name(row)} {_signed(row.percent, 0)}%{_interval(row.low, row.high, 0)}"
                for row in ordered.itertuples()
            )
            yield f"Effects in percent of the judge's scale, {shown}: {listed}."
    single = kinds[kinds["kind"] != ALL]
    significant = single[single["p_adjusted"] < LEVEL]
    count = int(single["p"].notna().sum())
    tests = f"{plural(count, 'test')} of single kinds"
    for _, part in significant.groupby(["judged_by", "model", "shown"], sort=False):
        first = next(part.itertuples())
        named = "; ".join(f"{row.kind} {_signed(row.effect)} (p = {row.p_adjusted:.2g})" for row in part.itertuples())
        yield f"{name(first)}, {first.shown}: kinds with a significant effect after Holm correction: {named}."
    if significant.empty:
        yield (
            f"No kind has a significant effect after Holm correction ({tests}). That is not evidence that the judge "
            "resists them: see the intervals."
        )
    clusters = int(kinds["clusters"].max())
    if clusters < (needed := clusters_to_reject(LEVEL, max(count, 1))):
        yield (
            f"With responses to {plural(clusters, 'base')} and {tests}, no effect could be significant after Holm "
            f"correction: that takes {needed} bases, or fewer kinds."
        )
    for row in fence[fence["kind"] == ALL].itertuples() if len(fence) else ():
        p = f" (p = {row.p_adjusted:.2g})" if row.p_adjusted == row.p_adjusted else ""
        yield (
            f"{name(row)}: effect of attempts, open minus fenced: {_signed(row.difference)} points"
            f"{_interval(row.low, row.high)}{p}."
        )
    lost = statuses.assign(lost=statuses[LOST].sum(axis=1)).groupby("variant")["lost"].sum()
    if lost.sum():
        yield f"Replies left out, by variant: {', '.join(f'{name} {n}' for name, n in lost.items())}."


def malibu_alone(table: pd.DataFrame) -> bool:
    """Whether all judges are MALIBU's, so that no report needs to say whose they are."""
    return set(table["judged_by"]) == {MALIBU}


def namer(table: pd.DataFrame) -> Callable[[Any], str]:
    """How a row's judge is named: by its model, and by its study unless all are MALIBU's; only the study if all have
    one model.

    Args:
        table: All rows, with `judged_by` and `model`.
    """
    if malibu_alone(table):
        return lambda row: str(row.model)
    if table["model"].nunique() == 1:
        return lambda row: str(row.judged_by)
    return lambda row: f"{row.judged_by}, {row.model}"


def _interval(low: float, high: float, digits: int = 2) -> str:
    interval = format_interval(low, high, f"+.{digits}f")
    return f", {interval}" if interval else ""


def _signed(number: float, digits: int = 2) -> str:
    """With a sign; zero is always +0.00, never -0.00."""
    return f"{round(number, digits) + 0.0:+.{digits}f}"


def _percent(share: float) -> str:
    return "–" if share != share else f"{100 * share:.0f}%"
