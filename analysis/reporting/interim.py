"""The part of a report about a run with a stopping rule: the rule, its interim looks, and what was decided when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd
from scipy.special import ndtri

from parley.analysis.reporting.report import Report, Table
from parley.analysis.stats.sequential import ASSUMES, InterimResult, StoppingRule, adjusted_p, cluster_noun, stages
from parley.analysis.stats.signflips import clusters_to_reject
from parley.analysis.stats.spending import median_unbiased
from parley.base.text import plural

SPENDING_NAMES = {"obrien-fleming": "O'Brien and Fleming's", "pocock": "Pocock's"}
BIASED = (
    "Stopping early biases estimates: an effect that was decided early looks larger than it is, one that was given up "
    "looks smaller. Read the median-unbiased estimate, the repeated interval and the stage-wise p-value. Other means, "
    "p-values and intervals in this report are not corrected for the looks, unless their table says so."
)
UNCORRECTED = "p-values and intervals of this table are not corrected for the interim looks."
EARLIER_VERSION = (
    "The looks of this run are those of an earlier version: t tests, with scenarios as clusters. If several scenarios "
    "come from one base or template, these tests find too many differences."
)
FIRST = [
    "comparison", "decision", "look", "clusters", "planned", "estimate", "p_stagewise", "repeated_low", "repeated_high",
]  # fmt: skip
SHOWN = ("comparison", "decision", "look", "estimate", "p_stagewise", "repeated_interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredRun:
    """A run with a stopping rule.

    Args:
        run: Name of the run.
        rule: Its stopping rule.
        results: The results of all interim looks, in order.
        models: Its models, as the report's tables name them; (): all models of the report are the run's.
    """

    run: str
    rule: StoppingRule
    results: tuple[InterimResult, ...]
    models: tuple[str, ...] = ()


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
                "p_stagewise is corrected for the looks, not for the other comparisons; decisions are (Holm). Repeated "
                "confidence intervals are valid over all looks together, each for its own comparison. A comparison "
                f"that is not decided is no evidence of no difference. Assumed: {_assumptions(runs)}."
            ),
            printed=True,
        ),
        Table(
            "looks",
            "Stopping rule: interim looks",
            looks,
            note=(
                "p: not corrected for the looks. level: the nominal level that it had to reach, given the comparison's "
                "share of alpha; none where nothing was tested, since too few clusters were there to reach it, or no "
                "new ones. power: conditional power."
            ),
        ),
    )
    return replace(
        report,
        words=(*words, *report.words),
        tables=(
            *(_uncorrected(table) if any(run.results for run in runs) else table for table in report.tables),
            *(table for table in tables if len(table.frame)),
        ),
    )


def _uncorrected(table: Table) -> Table:
    """The table with a note that its p-values ignore the looks; unless it has stage-wise ones, or none at all."""
    names = {str(name) for name in table.frame}
    if "p" not in names or names & {"p_stagewise", "p_unadjusted"}:
        return table
    return replace(table, note=f"{table.note} {UNCORRECTED}".strip())


def _assumptions(runs: Sequence[MonitoredRun]) -> str:
    return "; ".join(dict.fromkeys(ASSUMES[result.test] for run in runs for result in run.results))


def decisions(run: MonitoredRun) -> pd.DataFrame:
    """One row per comparison: its last result, with a p-value and an estimate that the stopping does not bias.

    `p_stagewise` is missing while the comparison is open.
    """
    looks: dict[str, list[InterimResult]] = {}
    for result in run.results:
        looks.setdefault(result.comparison, []).append(result)
    finished = bool(run.results) and run.results[-1].look == run.rule.looks
    rows = [
        {
            **_row(result),
            "decision": result.decision or ("not decided" if finished else "open"),
            "p_stagewise": adjusted_p(looks[name]) if result.decision or finished else math.nan,
            "repeated_interval": _interval(result),
            "median_unbiased": unbiased(looks[name]),
        }
        for name, (*_, result) in looks.items()
    ]
    frame = pd.DataFrame(rows, columns=list(rows[0]) if rows else FIRST)
    return frame[[*FIRST, *(name for name in frame if name not in FIRST)]]


def _interval(result: InterimResult) -> str:
    return f"{result.low:.2f} to {result.high:.2f}" if math.isfinite(result.low) else "−∞ to ∞"


def stagewise(runs: Sequence[MonitoredRun], models: Sequence[str]) -> dict[tuple[str, str], float]:
    """The stage-wise p-values by model and comparison ("female − male, scores"), of comparisons that are not open.

    Args:
        runs: Runs with a stopping rule.
        models: The models that a table has, by the names it has for them: perhaps without options, or with a file.
    """
    known: dict[tuple[str, str], float] = {}
    for run in runs:
        decided = decisions(run)
        for name, p in zip(decided["comparison"], decided["p_stagewise"], strict=True):
            comparison, _, full = str(name).partition(" · ")
            for model in models:
                bare = model.partition(" (")[0]
                shown_as = ("", bare, f"{bare}?{full.partition('?')[2]}")
                if full in shown_as and (not run.models or model in run.models):
                    known[model, comparison] = float(p)
    return {key: p for key, p in known.items() if not math.isnan(p)}


def unbiased(results: Sequence[InterimResult]) -> float:
    """The median-unbiased estimate of one comparison, from the normal approximation of its p-values.

    Args:
        results: The comparison's results at all its looks, in order.
    """
    bounds, clusters, last = stages(results)
    if last is None:
        return math.nan
    z = float(-ndtri(last.p / 2))
    if not z > 0:
        return last.estimate
    information = [count / last.planned for count in clusters]
    return last.estimate * median_unbiased(bounds, information, z) * math.sqrt(information[-1]) / z


def in_words(run: MonitoredRun) -> Iterator[str]:
    """Sentences about the stopping rule and what it decided."""
    rule, results = run.rule, run.results
    decided = decisions(run)
    noun = cluster_noun(results[0].cluster) if results else "cluster"
    family = f"all {len(decided)} comparisons together (Holm)" if len(decided) != 1 else "the only comparison"
    futility = f"; comparisons are given up below a conditional power of {rule.futility:g}" if rule.futility else ""
    yield (
        f"Stopping rule: at most {plural(rule.looks, 'look')}, evenly spaced over {noun}s in random order, "
        f"α {rule.alpha:g} for {family}, spent by {SPENDING_NAMES.get(rule.spending, rule.spending)} "
        f"function{futility}. Looks made: {max((result.look for result in results), default=0)}."
    )
    if results and results[0].test == "t":
        yield EARLIER_VERSION
    elif results and (most := int(decided["planned"].max())) < (least := clusters_to_reject(rule.alpha, len(decided))):
        yield (
            f"With {plural(most, noun)} no comparison can be decided, however large: {family} at α {rule.alpha:g} "
            f"{'need' if len(decided) > 1 else 'needs'} at least {plural(least, noun)}."
        )
    for row in decided[decided["decision"] == "different"].itertuples():
        yield (
            f"{row.comparison}: decided at look {row.look} on {row.clusters} of {plural(row.planned, noun)}, "
            f"{row.estimate:+.2f} (stage-wise p = {row.p_stagewise:.2g}; repeated {100 * (1 - rule.alpha):.4g}% "
            f"interval {row.repeated_low:.2f} to {row.repeated_high:.2f}; median-unbiased "
            f"{row.median_unbiased:+.2f})."
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
