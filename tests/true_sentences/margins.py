"""What is said of single bases beside a small mean, and of preferences, whose truth is known.

A sentence is read as its reader does: by the share of bases that it names, and by the rate that it gives a label.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from parley.judging.malibu.report import report
from tests.true_sentences import cells, verdicts
from tests.true_sentences.levels_report import SILENT

MARGIN = 0.1
CLAIMS = re.compile(r"at least (\d+)% of such")
EXCEPT = re.compile(r"but for kinds of \w+ rarer than (\d+)%")
"""What it was before: a share of at least 100% minus this was claimed."""
MOST = re.compile(r"Preferred most[^:]*: (\w+) ([\d.]+)% \(([\d.]+) to ([\d.]+)\)")
Effects = Callable[[np.random.Generator, int], np.ndarray]


def ballots(rng: np.random.Generator, effects: np.ndarray, noise: float = 0.02) -> pd.DataFrame:
    """Silent ballots on 'female' and 'male' in two scenarios of each base, whose effects are known.

    Args:
        rng: Of all draws.
        effects: What each base adds to 'female'.
        noise: SD of a scenario's difference.
    """
    base = np.repeat(np.arange(len(effects)), 2)
    quality = rng.normal(6, 0.5, len(base))
    added = effects[base] + rng.normal(0, noise, len(base))
    parts = []
    for label, value in (("female", quality + added), ("male", quality)):
        parts.append(pd.DataFrame({"base": base, "value": value, "identity": label, "scenario": np.arange(len(base))}))
    frame = pd.concat(parts, ignore_index=True).astype({"base": str, "scenario": str})
    frame = frame.assign(category="gender", wording="w" + frame["base"])
    return verdicts(frame, unit="s1/" + frame["scenario"] + "/" + frame["identity"], **SILENT)


def _overstates(rng: np.random.Generator, effects: Effects, bases: int, within: float, says: str) -> bool | None:
    """Whether a sentence claims more bases within the margin than there are, or is silent about them.

    Args:
        rng: Of all draws.
        effects: The effects of bases.
        bases: Number of bases.
        within: The true share of bases within the margin.
        says: What the sentence begins with.
    """
    made = report(_that_can_judge(rng, ballots(rng, effects(rng, bases))))
    assert made.headline is not None
    answer = made.headline.answer
    if not answer.startswith(says):
        return None
    least = [int(share) for share in CLAIMS.findall(answer)] + [100 - int(share) for share in EXCEPT.findall(answer)]
    return not least or max(least) > 100 * within


def _that_can_judge(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """The ballots with those on graded answers, of which the good one scores higher: else nothing is called alike."""
    bases = [f"g{n}" for n in range(12)]
    graded = [(base, flaw, dose, 7 - 2 * dose + rng.normal(0, 0.1)) for base in bases for flaw, dose in TEXTS]
    texts = pd.DataFrame(graded, columns=["base", "flaw", "dose", "value"])
    unit = "s3/" + texts["base"] + "/" + texts["flaw"] + texts["dose"].astype(str)
    yardstick = verdicts(texts, unit=unit, phase=3, category="", identity="", wording="", **SILENT)
    return pd.concat([frame.assign(flaw="", dose=0), yardstick], ignore_index=True)


TEXTS = (("", 0), ("safety", 2), ("figure", 2), ("unanswered", 2))


def normal(sd: float) -> Effects:
    return lambda rng, bases: rng.normal(0, sd, bases)


def some(share: float, size: float, *, both: bool) -> Effects:
    """A share of bases with an effect of this size, of one sign or of both; the others have hardly any."""

    def drawn(rng: np.random.Generator, bases: int) -> np.ndarray:
        kind = np.where(rng.random(bases) < (0.5 if both else 0.0), size, -size)
        return np.where(rng.random(bases) < share, kind, 0.0) + rng.normal(0, 0.02, bases)

    return drawn


def pairs(rng: np.random.Generator, leads: dict[str, float], bases: int = 60, step: float = 0.125) -> pd.DataFrame:
    """Silent comparisons of four labels in both orders, by a judge who prefers the first place.

    Args:
        rng: Of all draws.
        leads: What a label adds to the log-odds of being preferred.
        bases: Number of bases.
        step: Log-odds come in these steps, as those of a model in half precision do.
    """
    rows = []
    for base in range(bases):
        for first, second in PAIRS:
            own, place = rng.normal(0, VARIES), rng.normal(*PLACE)
            for order in (0, 1):
                shown = (second, first) if order else (first, second)
                odds = place + leads.get(shown[0], 0.0) - leads.get(shown[1], 0.0) + own * (1 - 2 * order)
                rows.append((f"b{base}", first, second, order, *shown, step * np.round(odds / step)))
    names = ["base", "identity", "other", "order", "identity_a", "identity_b", "odds"]
    frame = pd.DataFrame(rows, columns=names).assign(category="religion", assignment=0, control="")
    frame = frame.assign(wording="w" + frame["base"], response_a=1 + frame["order"], response_b=2 - frame["order"])
    unit = "s2/" + frame["base"] + frame["identity"] + frame["other"] + frame["order"].astype(str)
    chance = 1 / (1 + np.exp(-frame["odds"]))
    chosen = frame.assign(metric="preferred", value=chance, text=np.where(chance > 0.5, "A", "B"))
    both = [chosen, frame.assign(metric="log-odds", value=frame["odds"])]
    return pd.concat([verdicts(part, unit=unit, phase=2, **SILENT) for part in both], ignore_index=True)


VARIES = 0.25
"""SD of what a base adds to the log-odds of two labels."""
PLACE = 0.5, 0.8
"""Mean and SD of what the first place adds to them."""
LABELS = ("muslim", "jewish", "atheist", "christian")
PAIRS = [(first, second) for place, first in enumerate(LABELS) for second in LABELS[place + 1 :]]


def _rate_misses(rng: np.random.Generator, lead: float) -> bool | None:
    """Whether the interval of the label that is preferred most misses its true rate, the mean probability."""
    words = " ".join(report(pairs(rng, {"christian": lead})).words)
    if not (named := MOST.search(words.replace("−", "-"))):
        return None
    own, place = np.random.default_rng(0).standard_normal((2, 100_000)) * [[VARIES], [PLACE[1]]]
    truth = 100 * np.mean([1 / (1 + np.exp(side * (PLACE[0] + place) - lead - own)) for side in (1, -1)])
    return named[1] != "Christian" or not float(named[3]) <= truth <= float(named[4])


CELLS = [
    *cells(
        "alike, and so do that many bases",
        "{words}, {bases} bases",
        lambda rng, **truth: _overstates(rng, says="Alike", **truth),
        *(
            {"words": f"effects N(0, {sd:g}), {1 - share:.0%} beyond the margin", "effects": normal(sd), "bases": bases,
             "within": share, "before": before}
            for sd, share, bases, before in ((0.1, 0.683, 60, "94%"), (0.14, 0.525, 40, "90%"))
        ),
        *(
            {"words": f"{1 - share:.0%} of bases at ±{size:g}", "effects": some(1 - share, size, both=True),
             "bases": bases, "within": share, "before": before}
            for share, size, bases, before in ((0.8, 0.3, 40, "83%"), (0.88, 0.4, 60, "77%"))
        ),
        {"words": "effects N(0, 0.05), 5% beyond the margin", "effects": normal(0.05), "bases": 60, "within": 0.9545},
    ),
    *cells(
        "below our margin, and so are that many bases",
        "10% of 60 bases lose 0.4",
        lambda rng: _overstates(rng, some(0.1, 0.4, both=False), 60, 0.9, "Below our margin"),
        before="100%",
    ),
    *cells(
        "the rate of the label that is preferred most",
        "a lead of {lead:g} in log-odds, beside 0.5 ± 0.8 for the first place",
        _rate_misses,
        {"lead": 0.1, "before": "100%"},
        {"lead": 0.3, "before": "100%"},
    ),
]  # fmt: skip
