"""What a report says of a run that was looked at as it grew: the rule, the looks, what was decided when, and how to
read numbers that were stopped on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd
from scipy.special import ndtri

from parley.analysis.reporting.report import Report, Table
from parley.analysis.stats.sequential import ASSUMES, InterimResult, StoppingRule
from parley.analysis.stats.spending import median_unbiased

NAMES = {"obrien-fleming": "O'Brien and Fleming's", "pocock": "Pocock's"}
BIASED = (
    "Stopping by what was seen pulls estimates: what was decided early looks larger than it is, what was given up "
    "smaller. Read the median-unbiased estimate and the repeated interval. Means, tests and intervals elsewhere in "
    "this report do not know of the looks."
)
FIRST = ["comparison", "decision", "look", "clusters", "planned", "estimate", "repeated_low", "repeated_high"]
SHORT = ("comparison", "decision", "look", "estimate", "repeated_interval")


@dataclass(frozen=True, slots=True)
class MonitoredRun:
    """A run with a stopping rule: its name, the rule, and every look that was made."""

    run: str
    rule: StoppingRule
    seen: tuple[InterimResult, ...]


def with_interim_looks(report: Report, runs: Sequence[MonitoredRun]) -> Report:
    """The report with the stopping rules of its runs; unchanged where there was none."""
    if not runs:
        return report
    several = len(runs) > 1
    words = [f"{one.run}: {line}" if several else line for one in runs for line in in_words(one)]
    stands = pd.concat([_framed(decisions(one), one, several) for one in runs], ignore_index=True)
    looks = pd.concat([_framed(_looks(one), one, several) for one in runs], ignore_index=True)
    note = (
        "Repeated confidence intervals hold over all looks together, each for its own comparison. Not decided is no "
        f"evidence of no difference. Assumed: {ASSUMES}."
    )
    shown = ("run", *SHORT) if several else SHORT
    tables = (
        Table("decisions", "Stopping rule: where each comparison stands", stands, shown, note, printed=True),
        Table(
            "looks",
            "Stopping rule: the looks that were made",
            looks,
            note="level: what p had to reach, from the share of alpha the comparison had by then. power: conditional.",
        ),
    )
    return replace(
        report,
        words=(*words, *report.words),
        tables=(*report.tables, *(table for table in tables if len(table.frame))),
    )


def decisions(watched: MonitoredRun) -> pd.DataFrame:
    """One row a comparison: the last that was seen of it, and an estimate that stopping does not pull away from 0."""
    last = {one.comparison: one for one in watched.seen}
    finished = bool(watched.seen) and watched.seen[-1].look == watched.rule.looks
    rows = [
        {
            **_row(one),
            "decision": one.decision or ("not decided" if finished else "open"),
            "repeated_interval": "–" if math.isnan(one.low) else f"{one.low:.2f} to {one.high:.2f}",
            "median_unbiased": unbiased([seen for seen in watched.seen if seen.comparison == one.comparison]),
        }
        for one in last.values()
    ]
    frame = pd.DataFrame(rows, columns=list(rows[0]) if rows else FIRST)
    return frame[[*FIRST, *(name for name in frame if name not in FIRST)]]


def unbiased(seen: Sequence[InterimResult]) -> float:
    """The median-unbiased estimate of one comparison from its looks, by the normal approximation of its p-values."""
    tested = [one for one in seen if not math.isnan(one.level)]
    if not tested:
        return math.nan
    last = tested[-1]
    z = float(-ndtri(last.p / 2))
    if not z > 0:
        return last.estimate
    bounds = [float(-ndtri(one.level / 2)) for one in tested[:-1]]
    information = [one.clusters / last.planned for one in tested]
    return last.estimate * median_unbiased(bounds, information, z) * math.sqrt(information[-1]) / z


def in_words(watched: MonitoredRun) -> Iterator[str]:
    rule, seen = watched.rule, watched.seen
    made = max((one.look for one in seen), default=0)
    stands = decisions(watched)
    many = f"all {len(stands)} comparisons together (Holm)" if len(stands) != 1 else "the one comparison"
    futility = f"; given up below a conditional power of {rule.futility:g}" if rule.futility else ""
    yield (
        f"Stopping rule: at most {rule.looks} looks, evenly spaced over scenarios in random order, α {rule.alpha:g} "
        f"for {many}, spent by {NAMES.get(rule.spending, rule.spending)} function{futility}. {made} looks were made."
    )
    for row in stands[stands["decision"] == "different"].itertuples():
        yield (
            f"{row.comparison}: decided at look {row.look} on {row.clusters} of {row.planned} scenarios, "
            f"{row.estimate:+.2f} (repeated {100 * (1 - rule.alpha):.4g}% interval {row.repeated_low:.2f} to "
            f"{row.repeated_high:.2f}; median-unbiased "
            f"{row.median_unbiased:+.2f})."
        )
    for decision, what in (("given up", "given up as futile"), ("not decided", "not decided at the last look")):
        if count := int((stands["decision"] == decision).sum()):
            yield f"{count} of {len(stands)} comparisons were {what}, which is no evidence that there is no difference."
    if any(one.decision and one.look < rule.looks for one in seen):
        yield BIASED


def _looks(watched: MonitoredRun) -> pd.DataFrame:
    return pd.DataFrame([_row(one) for one in watched.seen])


def _row(seen: InterimResult) -> dict[str, Any]:
    """The interval is named for what it is: tables call other intervals low and high, and say 95% of them."""
    names = {"low": "repeated_low", "high": "repeated_high"}
    return {names.get(key, key): value for key, value in asdict(seen).items()}


def _framed(frame: pd.DataFrame, watched: MonitoredRun, several: bool) -> pd.DataFrame:
    if several:
        frame.insert(0, "run", watched.run)
    return frame
