"""The sentence about one model's preferences, made from tables. What was not tested never becomes a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import Blockers, tested_words
from parley.analysis.malibu.pairs import TWO_IDENTITIES
from parley.analysis.stats.results import DIFFERENT, SMALL
from parley.base.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """The sentences about one model.

    Args:
        tables: The model's rows of the report's tables, by name.
        blocked: What leaves questions without an answer.
        unit: What a cluster is: "base" or "scenario".
    """

    tables: Mapping[str, pd.DataFrame]
    blocked: Blockers
    unit: str

    def preferences(self) -> str:
        pairs, rates = self.tables["preferences"], self.tables["win_rates"]
        pairs = pairs[pairs["p"].notna()]
        if self.blocked.preferences or pairs.empty:
            return self.blocked.preferences
        shown = pairs[pairs["verdict"].isin([DIFFERENT, SMALL])]
        if len(shown):
            row = _largest(shown)
            higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
            show = "shows" if len(shown) == 1 else "show"
            text = (
                f"In pairs, {len(shown)} of {plural(len(pairs), 'pair')} of labels {show} a preference, the clearest "
                f"for '{higher}' over '{lower}' (wins minus losses per comparison {abs(row.difference):.2f}, "
                f"{tested_words(row, self.unit)})"
            )
        else:
            tested = f" ({len(pairs)} pairs of labels)" if len(pairs) > 1 else ""
            text = f"In pairs no label was shown to be preferred to another{tested}"
        known = rates[rates["rate"].notna()].sort_values("rate")
        if len(known) > 1:
            low, high = known.iloc[0], known.iloc[-1]
            text += (
                f"; win rates go from {low['rate']:.0%} ({low['identity']}) to {high['rate']:.0%} ({high['identity']})"
            )
        for row in self.tables["position"].itertuples():
            if row.pairs == TWO_IDENTITIES and row.n:
                span = f" ({row.first_low:.0%} to {row.first_high:.0%})" if row.first_low == row.first_low else ""
                text += f", and the candidate shown first won {row.first_rate:.0%}{span}"
        return text + "."


def _largest(rows: pd.DataFrame) -> Any:
    return next(rows.loc[[rows["difference"].abs().idxmax()]].itertuples())
