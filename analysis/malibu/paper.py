"""The paper's numbers next to a run's own: the differences that it prints, its χ² test, and its win rates.

The differences are those of figure 4 of Mirza et al. (2025, arXiv:2507.01019).

Its figures 5 and 6 print no win rates; the text says that no group of GPT-4o mini is more than 6.25% from the mean. The
paper's scores run from 0 to 10, over four metrics, after a discussion: only runs of that design are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from parley.analysis.malibu.panel import POINTS, PanelData
from parley.analysis.malibu.significance import papers_tests
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.results import ALPHA, Line
from parley.base.text import p_text, plural

METRICS = {"Creativity", "Accuracy", "Efficiency", "Reliability"}
# The scan lost the sign of white − hispanic (DeepSeek-V3): −0.2 by white − black and black − hispanic.
PRINTED = {
    ("female", "male"): (0.20, 0.21),
    ("black", "white"): (0.03, 0.30),
    ("black", "asian"): (0.05, 0.18),
    ("black", "hispanic"): (0.00, 0.10),
    ("white", "asian"): (0.03, -0.12),
    ("white", "hispanic"): (-0.03, -0.20),
    ("asian", "hispanic"): (-0.05, -0.08),
    ("muslim", "jewish"): (0.01, 0.01),
    ("muslim", "atheist"): (0.09, 0.18),
    ("muslim", "christian"): (0.02, 0.06),
    ("jewish", "atheist"): (0.07, 0.17),
    ("jewish", "christian"): (0.01, 0.04),
    ("atheist", "christian"): (-0.06, -0.13),
}
"""First minus second identity, for GPT-4o mini and DeepSeek-V3."""
COLUMNS = ["model", "first", "second", "gpt_4o_mini", "deepseek_v3", "ours", "low", "high"]


def paper_section(data: PanelData, planned: Iterable[Line]) -> Section:
    """The paper's differences next to ours, as a table; nothing for runs of another design.

    Args:
        data: The verdicts.
        planned: The planned lines.
    """
    if data.staged or data.scale() != POINTS or set(data.final_scores["metric"].astype(str)) != METRICS:
        return Section()
    printed = PRINTED | {(second, first): (-x, -y) for (first, second), (x, y) in PRINTED.items()}
    rows = [
        (line.about["model"], *pair, *printed[pair], line.estimate, line.low, line.high)
        for line in planned
        if (pair := (line.about["first"], line.about["second"])) in printed
    ]
    table = Table(
        name="paper",
        title="Phase 1: the paper's differences, next to ours",
        frame=pd.DataFrame(rows, columns=COLUMNS),
        note="First minus second, all metrics together, as figure 4 prints them (Mirza et al. 2025).",
    )
    return Section(tables=(table,))


def beside(tests: Sequence[Line], rates: pd.DataFrame) -> Iterator[str]:
    """The paper's χ² test and win rates in one line each, for the first screen; those of the first model.

    Args:
        tests: What `significance_lines` returned.
        rates: The table of win rates.
    """
    chi = papers_tests(tests)
    chi = [line for line in chi if line.about["model"] == chi[0].about["model"]]
    if len(chi) == 1:
        yield (
            f"The paper's χ² test of identity and score: {chi[0].statistic:.1f} with {chi[0].df:g} df, p "
            f"{p_text(chi[0].p)}; it treats all verdicts as independent."
        )
    elif chi:
        yield (
            f"The paper's χ² test of identity and score is significant in {sum(line.p <= ALPHA for line in chi)} of "
            f"{plural(len(chi), 'table')}; it treats all verdicts as independent."
        )
    known = rates[rates["rate"].notna() & rates["cluster_low"].notna()]
    known = known[known["model"] == known["model"].iloc[0]].sort_values("rate") if len(known) else known
    if len(known):
        ends = [_rate(row) for row in (known.iloc[-1], known.iloc[0])]
        several = f"Highest and lowest win rate in pairs: {ends[0]}, {ends[1]}."
        yield several if len(known) > 1 else f"Win rate in pairs: {ends[0]}."


def _rate(row: pd.Series) -> str:
    return f"'{row.identity}' {row.rate:.0%} ({row.cluster_low:.0%} to {row.cluster_high:.0%})"
