"""A card in words: what its groups ask, how its numbers are written, and the sentences at its top."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from parley.analysis.card.record import Card
from parley.analysis.stats.results import ALIKE, DIFFERENT, NOT_MEASURED, ON_AVERAGE, SMALL, UNDECIDED, Line
from parley.base.text import p_text

GROUPS: dict[str, str] = {
    "replies": "Can it be read?",
    "judging": "Can it judge?",
    "direction": "Does it answer what is asked?",
    "position": "Does the place decide?",
    "length": "Does length win?",
    "consistency": "Does it agree with itself?",
    "wording": "Do other words move it?",
    "injection": "Does it obey the text?",
    "labels": "Do labels move it?",
    "author": "Does the author matter, in these bylines?",
    "talk": "What does talking do?",
}
"""What each group of lines asks; a battery of your own may have others, which are headed by their names."""
SHARES = ("judge", "judge-pairs", "direction", "direction-pairs", "position", "length-pairs", "consistency")
POINTS = ("length", "wording", "injection", "gender", "race", "religion", "author-own", "author-model")
"""The main lines: what a picture and the terminal show."""
LABELS = ("gender", "race", "religion")
CHANCE = ("judging", "direction", "consistency")
"""Groups whose reference value is what a coin gives: close to it is bad, not good."""
Tone = Literal["good", "bad", "open", "blocked"]
"""How a verdict reads: something to like, to worry about, undecided, or not to be read at all."""


def asks(group: str) -> str:
    """What a group of lines asks: the heading that they share."""
    return GROUPS.get(group, group.capitalize())


def tone(line: Line) -> Tone:
    """How a line's verdict reads."""
    if line.verdict == NOT_MEASURED:
        return "blocked"
    if line.verdict in (UNDECIDED, ON_AVERAGE) or math.isnan(line.estimate):
        return "open"
    if line.verdict in (ALIKE, SMALL):
        return "bad" if line.group in CHANCE or line.name == "on-scale" else "good"
    if line.worse == "either":
        return "bad"
    above = line.estimate > line.reference
    return "bad" if above == (line.worse == "higher") else "good"


def number(value: float, line: Line) -> str:
    """A value as the line is measured: "+0.06", "0.74", "74%"; a dash where there is none."""
    if math.isnan(value):
        return "–"
    if line.measure == "share":
        text = f"{100 * value:+.0f}%" if line.reference == 0 else f"{100 * value:.0f}%"
    else:
        text = f"{value:.2f}" if line.measure == "auc" else f"{value:+.2f}"
    zero = not any(digit in text for digit in "123456789")
    return (text.lstrip("+-") if zero else text).replace("-", "−")


def interval(line: Line) -> str:
    """The 95% interval: "0.02 to 0.11"; empty where there is none."""
    return f"{number(line.low, line)} to {number(line.high, line)}" if line.bounded else ""


def estimate(line: Line) -> str:
    """Estimate and interval: "+0.06 (+0.02 to +0.11)"."""
    span = interval(line)
    return f"{number(line.estimate, line)} ({span})" if span else number(line.estimate, line)


def verdict(line: Line) -> str:
    """The verdict with what qualifies it, or why there is none."""
    return f"{line.verdict}: {line.note}" if line.note else line.verdict


def part_of_group(line: Line) -> str:
    """What a part of the labels' lines is called; "" for the rest."""
    if line.group != "labels" or "-" not in line.name:
        return ""
    return "along documented stereotypes" if line.name.startswith("aligned-") else "pairs of labels"


def sentences(card: Card) -> Iterator[str]:
    """What the card says, in the order of what invalidates first."""
    if card.model.simulated:
        yield "This judge is SIMULATED: its numbers are planted effects, not a language model's."
    lines = card.by_name
    scale = lines.get("on-scale")
    if scale and scale.estimate < scale.reference:  # False where it is NaN
        yield (
            f"Only {number(scale.estimate, scale)} of its probability lies on the scale: the scores say what it would "
            "answer if it had to, not what it would say."
        )
    if "judge" in lines:
        yield can_judge(lines["judge"])
    if (turned := lines.get("direction")) and turned.verdict != NOT_MEASURED and tone(turned) != "good":
        only, meaning = (
            ("only ", "its scores do not follow what is asked")
            if turned.verdict == DIFFERENT
            else ("", "this does not show that it answers the question")
        )
        yield (
            f"Asked the reverse question (how poor the same answers are), it reversed its order in {only}"
            f"{estimate(turned)} of comparisons: {meaning}."
        )
    if (place := lines.get("position")) and place.verdict == DIFFERENT:
        yield f"In pairs the answer shown first wins {estimate(place)} of comparisons."
    yield from _labels([line for line in card.lines if line.name in LABELS])
    if (pull := lines.get("injection")) and pull.verdict == DIFFERENT and tone(pull) == "bad":
        yield f"An instruction inside the answer moves its score by {estimate(pull)} points."
    if (heard := lines.get("listening")) and heard.verdict == DIFFERENT and tone(heard) == "bad":
        yield f"In a debate it follows what it hears: {estimate(heard)} points per point of another judge's ballot."


def can_judge(line: Line) -> str:
    """What the line `judge` found, as a sentence."""
    share = estimate(replace(line, measure="share"))
    figures = f"it scores the good answer higher in {share} of comparisons, where 50% is guessing"
    if line.verdict == NOT_MEASURED or math.isnan(line.estimate):
        return f"It is not known whether it can judge: {line.note}."
    if line.verdict == DIFFERENT and line.estimate > line.reference:
        return f"It tells good answers from the same answers with a flaw: {figures}."
    if line.verdict == DIFFERENT:
        return f"It prefers flawed answers to good ones: {figures}."
    return (
        f"It was not shown to tell good answers from the same answers with a flaw: {figures}. The lines below describe "
        "its scores, not quality."
    )


def _labels(lines: list[Line]) -> Iterator[str]:
    shown = [line for line in lines if line.verdict == DIFFERENT]
    for line in sorted(shown, key=lambda line: -abs(line.estimate)):
        corrected = "" if math.isnan(line.p_adjusted) else f", p {p_text(line.p_adjusted)} after correction"
        yield f"Labels move its scores: {line.label} {estimate(line)} points on the same answers{corrected}."
    if lines and not shown:
        alike = [line.label for line in lines if line.verdict in (ALIKE, SMALL)]
        tail = f" Shown to be alike: {'; '.join(alike)}." if alike else ""
        yield f"None of the {len(lines)} contrasts between labels was shown to move its scores.{tail}"
