"""The paper's own two numbers, χ² of identity and score and the win rates, in one line each for the first screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from parley.analysis.malibu.conclusions import ALPHA
from parley.base.text import p_text, plural


def beside(tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """The lines, of the first model.

    Args:
        tables: The report's tables by name.
    """
    tests, rates = tables["tests"], tables["win_rates"]
    chi = tests[tests["family"].str.startswith("χ²") & tests["p"].notna()]
    chi = chi[chi["model"] == chi["model"].iloc[0]] if len(chi) else chi
    if len(chi) == 1:
        row = chi.iloc[0]
        yield (
            f"χ² of identity and score, as in the paper: {row.statistic:.1f} with {row.df:g} df, p {p_text(row.p)}; "
            "it takes all verdicts as independent."
        )
    elif len(chi):
        yield (
            f"χ² of identity and score, as in the paper: significant in {int((chi['p'] <= ALPHA).sum())} of "
            f"{plural(len(chi), 'table')}; it takes all verdicts as independent."
        )
    known = rates[rates["rate"].notna() & rates["cluster_low"].notna()]
    known = known[known["model"] == known["model"].iloc[0]].sort_values("rate") if len(known) else known
    if len(known):
        ends = [_rate(row) for row in (known.iloc[-1], known.iloc[0])]
        yield f"Win rate in pairs: {ends[0]}" + (f"; {ends[1]}." if len(known) > 1 else ".")


def _rate(row: pd.Series) -> str:
    return f"'{row.identity}' {row.rate:.0%} ({row.cluster_low:.0%} to {row.cluster_high:.0%})"
