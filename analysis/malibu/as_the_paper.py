"""The paper's own two numbers, χ² of identity and score and the win rates, in one line each for the first screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from parley.analysis.malibu.conclusions import ALPHA
from parley.base.text import p_text, plural


def beside(tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """The lines for the first model.

    Args:
        tables: The report's tables by name.
    """
    tests, rates = tables["tests"], tables["win_rates"]
    chi = tests[tests["family"].str.startswith("χ²") & tests["p"].notna()]
    chi = chi[chi["model"] == chi["model"].iloc[0]] if len(chi) else chi
    if len(chi) == 1:
        row = chi.iloc[0]
        yield (
            f"The paper's χ² test of identity and score: {row.statistic:.1f} with {row.df:g} df, p {p_text(row.p)}; "
            "it treats all verdicts as independent."
        )
    elif len(chi):
        yield (
            f"The paper's χ² test of identity and score is significant in {int((chi['p'] <= ALPHA).sum())} of "
            f"{plural(len(chi), 'table')}; it treats all verdicts as independent."
        )
    known = rates[rates["rate"].notna() & rates["cluster_low"].notna()]
    known = known[known["model"] == known["model"].iloc[0]].sort_values("rate") if len(known) else known
    if len(known):
        ends = [_rate(row) for row in (known.iloc[-1], known.iloc[0])]
        several = len(known) > 1
        yield (
            f"Highest and lowest win rate in pairs: {ends[0]}, {ends[1]}."
            if several
            else f"Win rate in pairs: {ends[0]}."
        )


def _rate(row: pd.Series) -> str:
    return f"'{row.identity}' {row.rate:.0%} ({row.cluster_low:.0%} to {row.cluster_high:.0%})"
