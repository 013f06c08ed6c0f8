"""The part of a report about a run with a stopping rule: the rule, its interim looks, and what was decided when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd
from scipy.special import ndtri

from parley.analysis.reporting.report import Report, Table
from parley.analysis.reporting.text import plural
from parley.analysis.stats.sequential import ASSUMES, InterimResult, StoppingRule
from parley.analysis.stats.spending import median_unbiased

SPENDING_NAMES = {"obrien-fleming": "O'Brien and Fleming's", "pocock": "Pocock's"}
BIASED = (
    "Stopping early biases estimates: an effect that was decided early looks larger than it is, one that was given up "
    "looks smaller. Read the median-unbiased estimate and the repeated interval. Other means, tests and intervals in "
    "this report are not corrected for the looks."
)
FIRST = ["comparison", "decision", "look", "clusters", "planned", "estimate", "repeated_low", "repeated_high"]
SHOWN = ("comparison", "decision", "look", "estimate", "repeated_interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredRun:
    """A run with a stopping rule.

    Args:
        run: Name of the run.
        rule: Its stopping rule.
        results: The results of all interim looks, in order.
    """

    run: str
    rule: StoppingRule
    results: tuple[InterimResult, ...]


def with_interim_looks(report: Report, runs: Sequence[MonitoredRun]) -> Report:
    """The report with sentences and tables about the stopping rules of its runs.

    Args:
        report: The report to add to; returned unchanged if there are no such runs.
        runs: Those of its runs that have a stopping rule.
    """
    if not runs:
        return report
    several = len(runs) > 1
    words = [f"{run.run}: {line}" if several else line for run in runs for line in in_words(run)]
    decided = pd.concat([_with_run(decisions(run), run, several) for run in runs], ignore_index=True)
    looks = pd.concat([_with_run(_looks(run), run, several) for run in runs], ignore_index=True)
    tables = (
        Table(
            "decisions",
            "Stopping rule: the state of each comparison",
            decided,
            shown=("run", *SHOWN) if several else SHOWN,
            note=(
                "Repeated confidence intervals are valid over all looks together, each for its own comparison. A "
                f"comparison that is not decided is no evidence of no difference. Assumed: {ASSUMES}."
            ),
            printed=True,
        ),
        Table(
            "looks",
            "Stopping rule: interim looks",
            looks,
            note=(
                "level: the nominal level that p had to reach, given the comparison's share of alpha. power: "
                "conditional power."
            ),
        ),
    )
    return replace(
        report,
        words=(*words, *report.words),
        tables=(*report.tables, *(table for table in tables if len(table.frame))),
    )


def decisions(run: MonitoredRun) -> pd.DataFrame:
    """One row per comparison: its last result, and an estimate that is not biased by the stopping."""
    last = {result.comparison: result for result in run.results}
    finished = bool(run.results) and run.results[-1].look == run.rule.looks
    rows = [
        {
            **_row(result),
            "decision": result.decision or ("not decided" if finished else "open"),
            "repeated_interval": "–" if math.isnan(result.low) else f"{result.low:.2f} to {result.high:.2f}",
            "median_unbiased": unbiased([other for other in run.results if other.comparison == result.comparison]),
        }
        for result in last.values()
    ]
    frame = pd.DataFrame(rows, columns=list(rows[0]) if rows else FIRST)
    return frame[[*FIRST, *(name for name in frame if name not in FIRST)]]


def unbiased(results: Sequence[InterimResult]) -> float:
    """The median-unbiased estimate of one comparison, from the normal approximation of its p-values.

    Args:
        results: The comparison's results at all its looks, in order.
    """
    tested = [result for result in results if not math.isnan(result.level)]
    if not tested:
        return math.nan
    last = tested[-1]
    z = float(-ndtri(last.p / 2))
    if not z > 0:
        return last.estimate
    bounds = [float(-ndtri(result.level / 2)) for result in tested[:-1]]
    information = [result.clusters / last.planned for result in tested]
    return last.estimate * median_unbiased(bounds, information, z) * math.sqrt(information[-1]) / z


def in_words(run: MonitoredRun) -> Iterator[str]:
    """Sentences about the stopping rule and what it decided."""
    rule, results = run.rule, run.results
    decided = decisions(run)
    family = f"all {len(decided)} comparisons together (Holm)" if len(decided) != 1 else "the only comparison"
    futility = f"; comparisons are given up below a conditional power of {rule.futility:g}" if rule.futility else ""
    yield (
        f"Stopping rule: at most {plural(rule.looks, 'look')}, evenly spaced over scenarios in random order, "
        f"α {rule.alpha:g} for {family}, spent by {SPENDING_NAMES.get(rule.spending, rule.spending)} "
        f"function{futility}. Looks made: {max((result.look for result in results), default=0)}."
    )
    for row in decided[decided["decision"] == "different"].itertuples():
        yield (
            f"{row.comparison}: decided at look {row.look} on {row.clusters} of {plural(row.planned, 'scenario')}, "
            f"{row.estimate:+.2f} (repeated {100 * (1 - rule.alpha):.4g}% interval {row.repeated_low:.2f} to "
            f"{row.repeated_high:.2f}; median-unbiased {row.median_unbiased:+.2f})."
        )
    for decision, what in (("given up", "Given up as futile"), ("not decided", "Not decided at the last look")):
        if count := int((decided["decision"] == decision).sum()):
            yield (
                f"{what}: {count} of {plural(len(decided), 'comparison')}. "
                "That is no evidence that there is no difference."
            )
    if any(result.decision and result.look < rule.looks for result in results):
        yield BIASED


def _looks(run: MonitoredRun) -> pd.DataFrame:
    return pd.DataFrame([_row(result) for result in run.results])


def _row(result: InterimResult) -> dict[str, Any]:
    """The result, its interval named as a repeated one: `low` and `high` are 95% intervals in other tables."""
    names = {"low": "repeated_low", "high": "repeated_high"}
    return {names.get(key, key): value for key, value in asdict(result).items()}


def _with_run(frame: pd.DataFrame, run: MonitoredRun, several: bool) -> pd.DataFrame:
    if several:
        frame.insert(0, "run", run.run)
    return frame
