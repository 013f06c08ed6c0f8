"""Talking judges of whom it is known whether they listen: do reports say that they follow or repeat each other?

A judge's ballot is the text's quality, an opinion of this text under this label that all judges share, the judge's own
view of the text, and noise. In round 2 nobody listens, but scores shrink to the middle or spread from it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.judging.malibu.echo import SCORES, echo
from parley.judging.malibu.rounds import contagion
from tests.true_sentences import cells, verdicts

LABELS = {"gender": ("female", "male"), "race": ("black", "white", "asian", "hispanic")}
JUDGES = ("Ann", "Ben", "Cem", "Dua")


def debates(
    rng: np.random.Generator, *, factor: float, listening: float = 0.0, bases: int = 10, whole: bool = False
) -> pd.DataFrame:
    """Two rounds of four judges on labelled texts, in a third of the units after ballots on another label.

    Args:
        rng: Of all draws.
        factor: What the distance from the middle of the scale is multiplied by in round 2.
        listening: How far a judge then moves to the mean of what it heard.
        bases: Number of bases, with one text each.
        whole: Whether scores are whole numbers.
    """
    rows = []
    for base in range(bases):
        quality, tastes = rng.normal(6, 1), rng.normal(0, 0.5, len(JUDGES))
        for category, labels in LABELS.items():
            opinions = dict(zip(labels, rng.normal(0, 0.8, len(labels)), strict=True))

            def ballots(label: str, opinions: dict[str, float] = opinions) -> np.ndarray:
                own = quality + opinions[label] + tastes + rng.normal(0, 0.5, len(JUDGES))  # noqa: B023
                return np.clip(np.rint(own) if whole else own, 1, 9)

            for label in labels:
                others = [name for name in labels if name != label]
                heard = str(rng.choice(others)) if rng.random() < 1 / 3 else label
                first = ballots(label)
                told = first if heard == label else ballots(heard)
                means = (told.sum() - told) / (len(JUDGES) - 1)
                second = 5 + factor * (first - 5) + listening * (means - first) + rng.normal(0, 0.3, len(JUDGES))
                second = np.clip(np.rint(second) if whole else second, 1, 9)
                unit = f"t1/{base}/{label}"
                for number, scores in ((1, first), (2, second)):
                    rows += [
                        (unit, f"b{base}", category, label, heard, judge, number, score)
                        for judge, score in zip(JUDGES, scores, strict=True)
                    ]
    names = ["unit", "base", "category", "identity", "heard", "judge", "round", "value"]
    return verdicts(pd.DataFrame(rows, columns=names), judge_model="m")


def _follows(rng: np.random.Generator, **truth: float) -> bool:
    lines = contagion(debates(rng, **truth), blind=True)  # type: ignore[arg-type]
    return any(line.p <= 0.05 for line in lines if not line.secondary)


def _repeats(rng: np.random.Generator, **truth: float) -> bool:
    lines = echo(debates(rng, whole=True, **truth), blind=True)  # type: ignore[arg-type]
    return any(line.p <= 0.05 for line in lines if line.label == SCORES)


CELLS = [
    *(
        cell
        for sentence, trial, shrunk, spread in (
            ("judges follow what they hear", _follows, "96%", "55%"),
            ("judges repeat the scores they hear", _repeats, "50 to 90%", "50 to 90%"),
        )
        for cell in cells(
            sentence,
            "nobody listens, opinions of a text under a label are shared, scores {words}",
            trial,
            {"factor": 0.6, "words": "shrink to the middle", "before": shrunk},
            {"factor": 1.4, "words": "spread from it", "before": spread},
            {"factor": 1.0, "words": "are as before"},
            limit=0.06,
        )
    ),
    *cells(
        "that judges follow what they hear is missed",
        "they move by a half of the distance to what they hear",
        lambda rng: not _follows(rng, factor=1.0, listening=0.5),
        limit=0.2,
    ),
]
