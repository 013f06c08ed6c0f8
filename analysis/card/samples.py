"""Turns the ballots of a card's run into one value per base and line; a line's estimate is the mean of its values.

The battery's file says of every line what it reads (`reads`): the parts of the run, the flaws or sides that are
compared, and how; `WAYS` has the ways. A frame has one row per verdict with the facets of its unit; `part` says what a
unit was for. Metrics are "Overall" (the score), "log-odds" (log P(A) - log P(B) of a pair) and "on scale" (the
probability on the ballot's answers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.known_order import GOOD, SEVERE, TIE, leads, scored, shares
from parley.analysis.malibu.aligned import REFERENCES, coded_leads, withheld
from parley.analysis.malibu.ballots import LOG_ODDS
from parley.analysis.malibu.contagion import followed, weight_by_unit
from parley.analysis.malibu.echo import SCORES, WORDS, echo_units, excess
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.planned import CONTRASTS
from parley.analysis.malibu.rounds import Bools, before_and_after
from parley.analysis.malibu.score_table import ScenarioGaps
from parley.analysis.malibu.talking import HEARING, REASONS, steps
from parley.analysis.reporting.report import Directions
from parley.analysis.reporting.verdicts import uncategorised

SCORE, ON_SCALE = "Overall", "on scale"
PAIRED = ("graded-pairs", "reverse-pairs", "triangle")
"""The parts in which two answers stand side by side."""
LABELS, TALK = "labels", "talk"
STEPS = {REASONS: "reasons", HEARING: "hearing"}
"""Stages of a debate, and the ways of lines about what they add."""
ECHOES = {WORDS: "echo-words", SCORES: "echo-scores"}
"""Kinds of echo, and the ways of lines about them."""
EVERY_PAIR = "pairs-of-identities"
"""How a line reads that stands for every two identities of a category."""
Reads = Mapping[str, Any]
"""What a line reads, as the battery's file has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a line is computed from.

    Args:
        values: One value per base, by its name.
        n: Ballots.
        units: The facets of the units, as the viewer filters them.
        read: Share of the ballots that could be read.
        constant: Whether all scores behind the values are the same.
        paired: Whether the ballots are about two answers, so that the place in the prompt may decide them.
        gaps: Differences between identities, if the line is one, with what is independent.
        sides: The two groups of bases whose means are compared, where the line compares two.
        withheld: Why there is no estimate.
        cluster: What has one value.
        category: Whose identities' scores the line compares; "" if it compares no identities.
    """

    values: Mapping[str, float]
    n: int
    units: Mapping[str, tuple[str, ...]]
    read: float = 1.0
    constant: bool = False
    paired: bool = False
    gaps: ScenarioGaps | None = None
    sides: tuple[Sequence[float], Sequence[float]] | None = None
    withheld: str = ""
    cluster: str = "base"
    category: str = ""


@dataclass(frozen=True)
class CardBallots:
    """The verdicts of one card's run, and a sample for each of its lines.

    Args:
        verdicts: One row per verdict.
        directions: Which identities the stereotype of each base favours, by category.
        sampled: Whether the ballots are means of sampled replies.
        remarks: Who repeats whom in debates, where there are any.
    """

    verdicts: pd.DataFrame
    directions: Directions = field(default_factory=dict)
    sampled: bool = False
    remarks: pd.DataFrame | None = None

    def samples(self, specs: Iterable[Mapping[str, Any]]) -> dict[str, Sample]:
        """A sample for each line that the run has ballots for, by the line's id.

        Args:
            specs: The battery's lines, each pair of identities a line (`every_pair`).
        """
        object.__setattr__(self, "verdicts", uncategorised(self.verdicts))
        found: dict[str, Sample] = {}
        for spec in specs:
            if (sample := WAYS[spec["reads"]["how"]](self, spec["reads"])) and sample.n:
                found[str(spec["id"])] = sample
        return found

    # ---- what lines are read from ----

    def _rows(self, metric: str, parts: Sequence[str]) -> pd.DataFrame:
        rows = self.verdicts
        return rows[(rows["metric"] == metric) & rows["part"].isin(parts)]

    def _texts(self, part: str) -> pd.DataFrame:
        """Scores by base and graded text, a text being (kind of flaw, dose)."""
        rows = self._rows(SCORE, [part])
        return scored(rows, ["base"]) if len(rows) else pd.DataFrame()

    def _leads(self, part: str) -> pd.DataFrame:
        """Log-odds for the answer without the flaw, both orders averaged, by base and kind of flaw."""
        rows = self._rows(LOG_ODDS, [part])
        return leads(rows, ["base", "flaw"], "flawed").unstack("flaw") if len(rows) else pd.DataFrame()

    def _comparisons(self, part: str, reads: Reads) -> dict[Any, pd.Series]:
        """By two texts, how far the first is above the second in each base; the good answer is always a first one."""
        if part in PAIRED:
            found = {(GOOD, (kind, SEVERE)): lead for kind, lead in self._leads(part).items()}
        else:
            texts = self._texts(part)
            found = {(one, two): texts[one] - texts[two] for one, two in combinations(sorted(texts), 2)}

        def chosen(text: tuple[str, int]) -> bool:
            return text == GOOD or all(
                not wanted or own in wanted for own, wanted in zip(text, (reads["flaws"], reads["doses"]), strict=True)
            )

        return {texts: gap for texts, gap in found.items() if all(map(chosen, texts))}

    def _sample(self, reads: Reads, values: pd.Series) -> Sample:
        parts, paired = reads["parts"], reads["parts"][0] in PAIRED
        facets = {"part": tuple(parts)}
        facets |= {"flaw": tuple(reads["flaws"])} if len(reads["flaws"]) == 1 else {}
        rows = self._rows(LOG_ODDS if paired else SCORE, parts)
        known = rows["value"].dropna()
        return Sample(
            values=_finite(values),
            n=len(rows),
            units=facets,
            read=len(known) / len(rows) if len(rows) else 0.0,
            constant=bool(len(known)) and float(np.ptp(known)) < TIE,
            paired=paired,
        )

    # ---- ways to read a line ----

    def _on_scale(self, reads: Reads) -> Sample:
        rows = self.verdicts[self.verdicts["metric"] == ON_SCALE]
        return Sample(values=_finite(rows.groupby("base", sort=False)["value"].mean()), n=len(rows), units={})

    def _beside_good(self, reads: Reads) -> Sample | None:
        """How often the good answer is above, or below, the others, or how far they are above it."""
        found = self._comparisons(reads["parts"][0], reads)
        table = pd.DataFrame({str(two): gap for (one, two), gap in found.items() if one == GOOD})
        if table.empty:
            return None
        values = -table.mean(axis=1) if reads["how"] == "added" else shares(table)
        return self._sample(reads, 1 - values if reads["how"] == "below" else values)

    def _in_two_ways(self, reads: Reads) -> Sample:
        """Do two ways of asking order the same answers alike, or turn their order round?"""
        first, second = (self._comparisons(part, reads) for part in (reads["beside"], reads["parts"][0]))
        kept = shares(pd.DataFrame({str(texts): first[texts] * gap for texts, gap in second.items() if texts in first}))
        return self._sample(reads, 1 - kept if reads["how"] == "turned" else kept)

    def _circles(self, reads: Reads) -> Sample | None:
        """How often three answers beat each other in a circle: the good one and two flawed ones."""
        (triangle,), (first, second) = reads["parts"], reads["flaws"]
        with_good, third = self._leads(reads["beside"]), self._leads(triangle)
        if third.empty or not {first, second} <= set(with_good):
            return None
        signs = np.sign(pd.concat([with_good[first], with_good[second], third[first]], axis=1).dropna())
        one, two, three = signs.to_numpy().T
        # With a tie, three answers form a circle as often as three coins would.
        circle = np.where((signs == 0).any(axis=1), 0.25, (one != two) & (two == three))
        return self._sample(reads, pd.Series(circle.astype(float), signs.index))

    def _first_place(self, reads: Reads) -> Sample:
        rows = self._rows(LOG_ODDS, reads["parts"])
        rows = rows.assign(first=np.where(rows["value"].abs() < TIE, 0.5, rows["value"] > 0))
        rows = rows[rows["value"].notna()]
        keys = ["base", "part", "flaw"]
        rows = rows[rows.groupby(keys, sort=False)["flawed"].transform("nunique") == 2] if len(rows) else rows
        sample = self._sample(reads, rows.groupby("base", sort=False)["first"].mean())
        return replace(sample, constant=False, paired=False)

    def _together(self, reads: Reads) -> Sample | None:
        texts, other = self._texts(reads["beside"]), self._texts(reads["parts"][0])
        if other.empty:
            return None
        return self._sample(reads, moved_together((other - texts[other.columns]).dropna()))

    def _sides(self, reads: Reads) -> Sample | None:
        """What moves an answer's score other than the answer: the two sides of a facet, on the same answers."""
        rows = self._rows(SCORE, reads["parts"])
        sides = rows.assign(side=rows[reads["facet"]].astype(str)).set_index(["base", "side"])["value"].unstack("side")
        if not {*reads["first"], *reads["second"]} <= set(sides):
            return None
        first, second = (sides.dropna()[list(reads[side])].mean(axis=1) for side in ("first", "second"))
        return self._sample(reads, first - second)

    def _missing(self, reads: Reads) -> Sample | None:
        """Are replies unread, or off the scale, more often for one side of a category?"""
        unread = reads["how"] == "unread"
        if self.sampled and not unread:
            return None
        scores, on_scale = self._rows(SCORE, [LABELS]), self._rows(ON_SCALE, [LABELS])
        # A ballot of sampled replies may be read though one of them was refused: those are counted one by one.
        if unread and not self.sampled:
            rows = scores.assign(value=scores["value"].isna().astype(float))
        else:
            rows = on_scale.assign(value=1 - on_scale["value"])
        (contrast,) = (contrast for contrast in CONTRASTS if contrast.category == reads["category"])
        by_identity = rows.groupby(["base", "identity"], sort=False)["value"].mean().unstack("identity")
        first, second = (
            by_identity.reindex(columns=list(side)).mean(axis=1) for side in (contrast.first, contrast.second)
        )
        own = rows[rows["category"] == contrast.category]
        return Sample(
            values=_finite(first - second), n=len(own), units={"part": (LABELS,), "category": (contrast.category,)}
        )

    @cached_property
    def _panel(self) -> PanelData | None:
        """The scores of labelled answers; None where none could be read."""
        rows = self._rows(SCORE, [LABELS])
        return PanelData(rows) if rows["value"].notna().any() else None

    def _between(self, data: PanelData, gaps: ScenarioGaps, category: str) -> Sample:
        rows = self._rows(SCORE, [LABELS])
        own = rows[rows["category"] == category]["value"]
        return Sample(
            values=_by_cluster(gaps),
            n=len(own),
            units={"part": (LABELS,), "category": (category,)},
            read=float(own.notna().mean()),
            constant=float(np.ptp(own.dropna())) < TIE,
            gaps=gaps,
            category=category,
        )

    def _identities(self, reads: Reads) -> Sample | None:
        if (data := self._panel) is None:
            return None
        table, sides = data.table(data.models[0]), tuple(reads[side] for side in ("first", "second"))
        if reads["how"] == "identities":
            sides = next((each.first, each.second) for each in CONTRASTS if each.category == reads["category"])
        if not set(chain(*sides)) <= set(table.identities):
            return None
        return self._between(data, table.contrast(*sides), reads["category"])

    def _stereotypes(self, reads: Reads) -> Sample | None:
        if (data := self._panel) is None:
            return None
        category = reads["category"]
        reference = REFERENCES[category]
        others = [name for name, own in data.categories.items() if own == category and name != reference]
        leading, sides = coded_leads(data.table(data.models[0]), category, reference, others, self.directions)
        if leading is None:
            return None
        sample = replace(self._between(data, leading, category), gaps=None)
        favoured, against = sides
        return _two_sided(sample, favoured, against, withheld(len(favoured), len(against)))

    def _talk(self, reads: Reads) -> Sample | None:
        return self._debates.get((reads["how"], reads["category"]))

    @cached_property
    def _debates(self) -> dict[tuple[str, str], Sample]:
        """Do judges follow and repeat what they hear, and what do reasons and hearing add? By way and category."""
        rows = self.verdicts[(self.verdicts["part"] == TALK) & (self.verdicts["metric"] == SCORE)]
        if rows["value"].notna().sum() == 0:
            return {}
        data, aloud, found = PanelData(rows), rows[rows["round"] > 0]["value"], {}
        whole = Sample(values={}, n=len(aloud), units={"part": (TALK,)}, read=float(aloud.notna().mean()))
        for way, values, own in _by_debate(data, self.remarks):
            heard, control = _finite(values[own]), _finite(values[~own])
            why = "" if heard and control else "no debate heard another label, or none its own"
            found[way, ""] = _two_sided(replace(whole, cluster="debate"), heard, control, why)
        for _, contrast, step, (_, _, added) in steps(data):
            compared = replace(whole, values=_by_cluster(added), gaps=added, category=contrast.category)
            found[STEPS[step], contrast.category] = compared
        return found


WAYS: Mapping[str, Callable[[CardBallots, Reads], Sample | None]] = {
    "on-scale": CardBallots._on_scale,
    **dict.fromkeys(("above", "below", "added"), CardBallots._beside_good),
    **dict.fromkeys(("kept", "turned"), CardBallots._in_two_ways),
    "circles": CardBallots._circles,
    "first-place": CardBallots._first_place,
    "together": CardBallots._together,
    "sides": CardBallots._sides,
    **dict.fromkeys(("unread", "off-scale"), CardBallots._missing),
    **dict.fromkeys(("identities", EVERY_PAIR), CardBallots._identities),
    "stereotypes": CardBallots._stereotypes,
    **dict.fromkeys(("listening", *ECHOES.values(), *STEPS.values()), CardBallots._talk),
}
"""How the ballots of a base become its value, by the names that a battery's file uses."""


def every_pair(specs: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The battery's lines, with one for each two identities of a category in place of the line that stands for them.

    They are in the order of `CONTRASTS`, so that a pair has the same name in every card. Where a category has only two,
    the pair is the contrast: it is in one family, and has one verdict.
    """
    for spec in specs:
        if spec["reads"]["how"] != EVERY_PAIR:
            yield spec
            continue
        for contrast in CONTRASTS:
            identities = (*contrast.first, *contrast.second)
            for first, second in combinations(identities, 2) if len(identities) > 2 else ():
                reads = {**spec["reads"], "category": contrast.category, "first": (first,), "second": (second,)}
                title = spec["title"].format(first=first, second=second)
                yield {**spec, "id": f"{first}-{second}", "title": title, "reads": reads}


def _finite(values: pd.Series) -> dict[str, float]:
    """The values that are known, by name."""
    return {str(name): float(value) for name, value in values.items() if np.isfinite(value)}


def _by_cluster(gaps: ScenarioGaps) -> dict[str, float]:
    by_code = zip(np.unique(gaps.clusters), gaps.by_cluster(), strict=True)
    return {gaps.cluster_names[code]: float(value) for code, value in by_code}


def _two_sided(sample: Sample, first: Mapping[str, float], second: Mapping[str, float], withheld: str) -> Sample:
    """The sample with values whose mean is the first side's mean minus the second's."""
    whole = len(first) + len(second)
    values = {
        name: sign * whole / len(side) * value
        for sign, side in ((1, first), (-1, second))
        for name, value in side.items()
    }
    sides = list(first.values()), list(second.values())
    return replace(sample, values={} if withheld else values, sides=sides, withheld=withheld)


def _by_debate(data: PanelData, remarks: pd.DataFrame | None) -> Iterator[tuple[str, pd.Series, Bools]]:
    """By line: one value per debate, and whether its judges heard each other and not ballots on another label."""
    both = before_and_after(data.debates, controls=True)
    if len(both) and both["judge"].nunique() > 1:
        found = followed(both)
        yield "listening", pd.Series(weight_by_unit(found), found.units), found.own
    for what, units in echo_units(data.debates, remarks).items():
        values = pd.Series(excess(units), units["unit"].astype(str))
        yield ECHOES[what], values, units["own"].to_numpy(dtype=bool)


def moved_together(shifts: pd.DataFrame) -> pd.Series:
    """How far an answer moves in the direction of the base's other answers, by base: the wording's part of a shift.

    Noise moves answers apart as often as together, so its mean is 0 here, unlike in an absolute shift.

    Args:
        shifts: By base and answer, the score in another wording minus that in the base's own.
    """
    others = [np.sign(shifts.drop(columns=[text]).mean(axis=1)) for text in shifts.columns]
    moves = [sign * shifts[text] for sign, text in zip(others, shifts.columns, strict=True)]
    return pd.concat(moves, axis=1).mean(axis=1)
