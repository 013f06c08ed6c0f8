"""Sentences about one model that are made from tables: preferences, and what talking changed. What was not tested never
becomes a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import Blockers, tested_words
from parley.analysis.malibu.contagion import ANYONE
from parley.analysis.malibu.echo import SCORES
from parley.analysis.malibu.pairs import TWO_IDENTITIES
from parley.analysis.malibu.stages import HEARING
from parley.analysis.malibu.talking import AMPLIFIED, APPEARED, MOVED, REDUCED, REVERSED, UNSHOWN
from parley.analysis.stats.results import ALPHA, DIFFERENT, SMALL
from parley.base.text import p_text, plural, signed


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

    def talking(self) -> str:
        texts = [*self._changed(), *self._steps()]
        heard, repeated = self.tables["contagion"], self.tables["echo"]
        for row in heard[(heard["towards"] == ANYONE) & (heard["p"] <= ALPHA)].itertuples():
            way = "follow" if row.weight > 0 else "move away from"
            texts.append(
                f"Judges {way} what they hear: {signed(row.weight)} points per point of another's ballot "
                f"({signed(row.low)} to {signed(row.high)}), compared with units that did not hear it "
                f"(p {p_text(row.p)})."
            )
        for row in repeated[(repeated["p_adjusted"] <= ALPHA) & (repeated["difference"] > 0)].itertuples():
            what = "scores" if row.what == SCORES else "words"
            texts.append(
                f"They repeat the {what} that they heard {100 * row.difference:.0f} percentage points more often than "
                f"where they did not hear them (p {p_text(row.p_adjusted)}): an echo is not a further opinion."
            )
        return " ".join(texts)

    def _changed(self) -> Iterator[str]:
        gaps = self.tables["talking"]
        for phase, rows in gaps[gaps["conclusion"] != UNSHOWN].groupby("phase"):
            row = _largest(rows)
            more = f", the largest of {len(rows)} shown changes" if len(rows) > 1 else ""
            yield (
                f"Talking changed the gap between '{row.first}' and '{row.second}' in phase {phase} from "
                f"{signed(row.before)} to {signed(row.after)} (p {p_text(row.p_adjusted)} after Holm's "
                f"correction{more}): {_change(row)}."
            )

    def _steps(self) -> Iterator[str]:
        steps = self.tables.get("stages", self.tables["talking"][:0])
        for row in steps[steps["p_adjusted"] <= ALPHA].itertuples() if "step" in steps else ():
            what = "Hearing others" if row.step == HEARING else "Giving reasons"
            yield (
                f"{what} changed the gap between '{row.first}' and '{row.second}' from {signed(row.before)} to "
                f"{signed(row.after)} points (p {p_text(row.p_adjusted)} after Holm's correction)."
            )


def _largest(rows: pd.DataFrame) -> Any:
    return next(rows.loc[[rows["difference"].abs().idxmax()]].itertuples())


def _change(row: Any) -> str:
    higher = row.first if row.difference > 0 else row.second
    return {
        AMPLIFIED: "it amplifies the bias",
        REDUCED: "it reduces the bias",
        REVERSED: "it reverses the bias",
        APPEARED: f"a bias in favour of '{higher}' appears, which was not shown before",
        MOVED: f"it moves the judges towards '{higher}', though no gap is shown before or after",
    }[row.conclusion]
