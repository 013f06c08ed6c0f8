"""People's labels that correct a judge: chosen texts, raters of one arm only, and raters who differ in strictness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from parley.analysis.reporting.corrected import JudgedTexts, corrected_lines
from parley.analysis.stats.results import Line
from tests.true_sentences import cells

TEXTS, BASES, DRAWN = 600, 60, 200
ARMS = ("a", "b")
Labelled = Mapping[str, Sequence[int]]
"""The drawn texts that each rater labels."""


class Study:
    """Texts of two equal arms with a quality, a judge that sees it badly, and a draw."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.base, self.arm = np.arange(TEXTS) % BASES, np.arange(TEXTS) // BASES % 2
        self.quality = 5 + rng.normal(0, 0.3, BASES)[self.base] + rng.normal(0, 1, TEXTS)
        self.judged = 6 + 0.5 * self.quality + rng.normal(0, 1, TEXTS)
        self.drawn = rng.permutation(TEXTS)[:DRAWN]

    def lines(self, labelled: Labelled, leniency: Mapping[str, float]) -> dict[str, Line]:
        """The corrected lines, by label. Each rater's place in its own order is known, whatever it labelled."""
        place = {int(text): position for position, text in enumerate(self.drawn)}
        drawn = pd.DataFrame({"draw": 1, "unit": np.arange(TEXTS), "text_id": np.arange(TEXTS)})
        drawn = drawn.assign(probability=DRAWN / TEXTS, position=drawn["unit"].map(place))
        rows = []
        for rater, texts in labelled.items():
            order = {int(text): position for position, text in enumerate(self.order(rater))}
            values = self.quality[texts] + leniency[rater] + self.rng.normal(0, 0.5, len(texts))
            rows += [(rater, text, value, order[text]) for text, value in zip(texts, values, strict=True)]
        labels = pd.DataFrame(rows, columns=["rater", "unit", "value", "position"])
        constant = {"draw": 1, "question": "score", "subject": "", "simulated": False, "probability": DRAWN / TEXTS}
        labels = labels.assign(text_id=labels["unit"], text=None, judge_value=np.nan, **constant)
        judged = pd.DataFrame({"metric": "score", "text_id": np.arange(TEXTS), "subject": "", "judged": self.judged})
        judged = judged.assign(cluster=self.base, method=np.array(ARMS)[self.arm])
        found = corrected_lines(JudgedTexts(labels=labels, drawn=drawn, judged=judged, arms=("method",)))
        return {line.label: line for line in found}

    def order(self, rater: str) -> np.ndarray:
        """The order in which a rater is shown the draw."""
        return np.random.default_rng([*self.drawn[:3], *rater.encode()]).permutation(self.drawn)

    def mean(self, arm: int) -> float:
        """The true mean quality of an arm."""
        return float(np.mean([self.quality[(self.arm == arm) & (self.base == base)].mean() for base in range(BASES)]))


def misses(line: Line | None, truth: float) -> bool | None:
    """Whether the interval misses the truth; None where there is none."""
    return not line.low <= truth <= line.high if line and line.bounded else None


def _chosen(rng: np.random.Generator) -> bool | None:
    """Half of the draw is labelled elsewhere, the better texts first, and imported."""
    study = Study(rng)
    liked = study.drawn[np.argsort(-study.quality[study.drawn] - rng.normal(0, 1, DRAWN))][: DRAWN // 2]
    return misses(study.lines({"Ann": liked}, {"Ann": 0.0}).get("a"), study.mean(0))


def one_rater(rng: np.random.Generator, labelled: int) -> bool | None:
    """One rater labels so many texts of the draw."""
    study = Study(rng)
    lines = study.lines({"Ann": study.order("Ann")[:labelled]}, {"Ann": 0.0})
    return misses(lines.get("a"), study.mean(0))


def _of_one_arm(rng: np.random.Generator) -> bool | None:
    """Each arm has a rater of its own, and one may be stricter."""
    study = Study(rng)
    labelled = {rater: study.drawn[study.arm[study.drawn] == arm] for arm, rater in enumerate(("Ann", "Ben"))}
    return misses(study.lines(labelled, {rater: rng.normal(0, 0.7) for rater in labelled}).get("a − b"), 0.0)


def _lenient(rng: np.random.Generator, raters: int) -> bool | None:
    """Raters who differ in strictness label as much each; the estimate is about these raters."""
    study = Study(rng)
    names = [f"rater {number}" for number in range(raters)]
    leniency = {rater: rng.normal(0, 0.7) for rater in names}
    labelled = {rater: study.order(rater)[: DRAWN // 2] for rater in names}
    return misses(study.lines(labelled, leniency).get("a"), study.mean(0) + float(np.mean([*leniency.values()])))


MEAN = "mean by the judge, corrected by labels, 95% interval"
CELLS = [
    *cells(MEAN, "one rater stops after 100 of 200 drawn texts", partial(one_rater, labelled=DRAWN // 2)),
    *cells(MEAN, "100 of 200 drawn texts were chosen, labelled and imported", _chosen, before="44%"),
    *cells(
        "difference by the judge, corrected by labels, 95% interval",
        "each arm has a rater of its own, whose leniency has an SD of 0.7",
        _of_one_arm,
        before="71%",
    ),
    *cells(
        MEAN,
        "about these raters ({raters}), whose leniency has an SD of 0.7",
        _lenient,
        *({"raters": raters} for raters in (1, 3)),
        before="36 to 65%, as a sentence on people",
    ),
]
