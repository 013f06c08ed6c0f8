"""The report in at most ten sentences, which claim no more than the tests do.

Their order: can these judges judge, and what that blocks; scores; what a study of this size finds; preferences;
stereotypes; where effects differ; what talking changed; a label in units of a flaw; and what it all generalises to. The
last three before the end are said only where something is shown. What was not tested never becomes a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from parley.analysis.malibu.blockers import Blockers
from parley.analysis.malibu.conclusions import SPREAD, rare_kind_rate
from parley.analysis.malibu.contagion import ANYONE
from parley.analysis.malibu.echo import SCORES
from parley.analysis.malibu.pairs import TWO_IDENTITIES
from parley.analysis.malibu.panel import ALL
from parley.analysis.malibu.stages import HEARING
from parley.analysis.malibu.talking import AMPLIFIED, APPEARED, MOVED, REDUCED, REVERSED, UNSHOWN
from parley.analysis.malibu.yardstick import Lines, can_judge, worth
from parley.analysis.stats.results import ALIKE, ALPHA, DIFFERENT, ON_AVERAGE, SMALL
from parley.analysis.stats.signflips import clusters_to_reject
from parley.base.text import p_text, plural, signed

ENOUGH_BASES = 60
"""With this many bases, nearly all samples include a rare kind of base that reverses a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """The sentences about one model.

    Args:
        tables: The model's rows of the report's tables, by name.
        yardstick: The model's lines of the yardstick.
        blocked: What leaves questions without an answer.
        unit: What a cluster is: "base" or "scenario".
        margin: Points within which two identities count as alike.
        silent: Whether scores are those of silent ballots.
    """

    tables: Mapping[str, pd.DataFrame]
    yardstick: Lines
    blocked: Blockers
    unit: str
    margin: float
    silent: bool

    def all(self) -> Iterator[str]:
        """The sentences in their order."""
        parts = (
            *(can_judge(self.yardstick), self.scores(), self.detectable(), self.preferences(), self.stereotypes()),
            *(self.where_it_differs(), self.talking(), self.flaws()),
        )
        return (text for text in parts if text)

    @property
    def planned(self) -> pd.DataFrame:
        gaps = self.tables["differences"]
        return gaps[(gaps["metric"] == ALL) & gaps["within"].astype(bool) & gaps["p"].notna()]

    @property
    def different(self) -> pd.DataFrame:
        return self.planned[self.planned["verdict"].isin([DIFFERENT, SMALL])]

    def scores(self) -> str:
        planned, different = self.planned, self.different
        if self.blocked.scores or planned.empty:
            return self.blocked.scores
        tests = len(planned)
        alike = int(planned["verdict"].isin([ALIKE, ON_AVERAGE]).sum())
        alike_text = f"{alike} {'is' if alike == 1 else 'are'} alike within ±{self.margin:g} points"
        quality = ", which were not shown to measure quality" if self.blocked.quality else ""
        if len(different):
            row = _largest(different)
            verb = "differs" if len(different) == 1 else "differ"
            text = f"Labels move the scores{quality}: {len(different)} of {plural(tests, 'pair')} {verb}"
            text += f" and {alike_text}. " if alike else ". "
            higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
            text += (
                f"The largest difference: '{higher}' scored {abs(row.difference):.2f} points above '{lower}' on the "
                f"same answers ({self._tested(row)}{self._asymmetry(row)})."
            )
        elif (least := clusters_to_reject(ALPHA, tests)) > (clusters := int(planned["clusters"].max())) and (
            planned["note"].str.contains("can be significant").all()
        ):
            text = (
                f"With {plural(clusters, self.unit)} no difference between labels could be shown, whatever its size: "
                f"the correction for {plural(tests, 'pair')} needs at least {least} {self.unit}s."
            )
        else:
            left = tests - alike
            if not alike:
                which = f"None of {tests} pairs of labels was" if tests > 1 else "The two labels were not"
                nor = "and none to be alike" if tests > 1 else "nor to be alike"
                return (
                    f"{which} shown to differ, {nor}; this does not show that the judges are fair.{self._chi_square()}"
                )
            text = f"No difference between labels was shown in {plural(tests, 'pair')}"
            text += f"; {alike_text}"
            text += (
                f"; {left} {'is' if left == 1 else 'are'} undecided, which does not show that the judges are fair."
                if left
                else "."
            )
        return text + self._chi_square()

    def _tested(self, row: Any) -> str:
        ends = sorted(abs(end) for end in (row.low, row.high))
        several = "simultaneous " if row.tests > 1 else ""
        span = f"{several}95% interval {ends[0]:.2f} to {ends[1]:.2f} " if math.isfinite(ends[1]) else ""
        span = span if ends[0] < ends[1] else "the same on all of them, "  # without spread there is no interval
        return f"{span}over {plural(row.clusters, self.unit)}, p {p_text(row.p_adjusted)} after Holm's correction"

    def _asymmetry(self, row: Any) -> str:
        if math.isnan(row.skewness):
            return ""
        share = f"one {self.unit} makes up {row.largest_base:.0%} of it"
        return f"; over {self.unit}s it has a skewness of {signed(row.skewness, 1)}, and {share}"

    def _chi_square(self) -> str:
        tests = self.tables["tests"]
        paper = tests[(tests["assumption"] == "independent") & tests["p"].notna()]
        if paper.empty:
            return ""
        called = int((paper["p"] < ALPHA).sum())
        return (
            f" The paper's χ², which treats all verdicts as independent, calls {called} of "
            f"{plural(len(paper), 'table')} significant."
        )

    def detectable(self) -> str:
        rows = self.tables["mde"]
        if self.blocked.scores or rows.empty or not math.isfinite(rows["mde"].iloc[0]):
            return ""
        row = next(rows.itertuples())
        digits = 2 if row.mde >= 0.1 else 3
        corrected = f", after the correction for {row.tests} pairs" if row.tests > 1 else ""
        return (
            f"A study of this size finds a difference of {row.mde:.{digits}f} points in 80% of cases (95% interval "
            f"{row.low:.{digits}f} to {row.high:.{digits}f}){corrected}."
        )

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
                f"{self._tested(row)})"
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

    def stereotypes(self) -> str:
        rows = self.tables["aligned"]
        rows = rows[rows["p"].notna()]
        if rows.empty or self.blocked.scores or self.blocked.quality:
            return ""
        shown = rows[rows["p_adjusted"] <= ALPHA]
        if shown.empty:
            named = " and ".join(rows["category"])
            return f"Scores were not shown to follow documented stereotypes ({named})."
        parts = []
        for row in shown.itertuples():
            ends = sorted(abs(end) / 2 for end in (row.low, row.high))
            side, way = ("higher", "as") if row.difference > 0 else ("lower", "the opposite of what")
            parts.append(
                f"{row.category}: groups that stereotypes favour scored {abs(row.difference) / 2:.2f} points {side}, "
                f"net of what their label adds everywhere ({ends[0]:.2f} to {ends[1]:.2f}, p "
                f"{p_text(row.p_adjusted)}): {way} the stereotype says"
            )
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}."

    def where_it_differs(self) -> str:
        planned, texts = self.planned, []
        # Silent ballots have hardly any noise: bases always differ a little, so only large differences are news.
        wide = planned[planned["base_sd_high"] >= SPREAD * self.margin] if self.silent else planned
        varying = wide[wide["p_bases_adjusted"] <= ALPHA] if not self.blocked.scores else wide[:0]
        if len(varying):
            row = varying.loc[varying["base_sd"].idxmax()]
            texts.append(
                f"In {len(varying)} of {plural(len(planned), 'pair')} the difference varies from base to base"
                f"{', most' if len(varying) > 1 else ':'} between '{row['first']}' and '{row['second']}' (SD of "
                f"{row['base_sd']:.2f} points, p {p_text(row['p_bases_adjusted'])} after Holm's correction). The mean "
                "does not describe every base."
            )
        by_judge = self.tables.get("by_judge")
        if by_judge is not None and not self.blocked.scores:
            texts += judges_differ(by_judge)
        return " ".join(texts)

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
        steps = self.tables.get("stages", self.planned[:0])
        for row in steps[steps["p_adjusted"] <= ALPHA].itertuples() if "step" in steps else ():
            what = "Hearing others" if row.step == HEARING else "Giving reasons"
            yield (
                f"{what} changed the gap between '{row.first}' and '{row.second}' from {signed(row.before)} to "
                f"{signed(row.after)} points (p {p_text(row.p_adjusted)} after Holm's correction)."
            )

    def flaws(self) -> str:
        if self.blocked.quality or self.blocked.scores or self.different.empty:
            return ""
        pair = _largest(self.different)
        return worth(self.yardstick["exchange"], pair.first, pair.second)

    def reversible(self) -> str:
        """Says that a rare kind of base could reverse a claimed difference; "" without one, or with many bases."""
        if self.blocked.scores or self.different.empty:
            return ""
        bases = int(self.different["clusters"].max())
        if bases >= ENOUGH_BASES:
            return ""
        return (
            f" A rare kind of {self.unit} that was not drawn could reverse a difference: if a tenth of all did, "
            f"{rare_kind_rate(bases):.0%} of samples of {bases} would still show one."
        )


def judges_differ(by_judge: pd.DataFrame) -> Iterator[str]:
    """A sentence for every contrast on which judges, or models, were shown to differ.

    Args:
        by_judge: The table of `by_judge`, or some of its rows.
    """
    shown = by_judge[by_judge["p_differ_adjusted"] <= ALPHA]
    for (by, _), rows in shown.groupby(["by", "category"], sort=False):
        named = [
            f"{signed(value)} {'with' if by == 'model' else 'by'} {name}"
            for name, value in zip(rows["name"], rows["difference"], strict=True)
        ]
        p = p_text(float(rows["p_differ_adjusted"].iloc[0]))
        contrast = f"'{rows['first'].iloc[0]}' against '{rows['second'].iloc[0]}'"
        yield f"The {by}s differ on {contrast}: {', '.join(named)} points (p {p} after Holm's correction)."


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
