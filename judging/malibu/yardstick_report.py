"""Whether judges' scores measure quality, tested on graded responses without labels (the yardstick).

A graded set has one good response, and the same response with one stated flaw in two doses, or with needless length.
The questions: whether the judge can tell good from flawed (AUC), how many points each flaw costs, and how many length
adds. Each compares responses to the same situation by the same judge, with intervals over bases.

In a frame of verdicts the yardstick is phase 3, with the facets `flaw` ("" for the good response) and `dose` (0).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from parley.analysis.effects import Estimand, Question, corrected
from parley.analysis.known_order import CHANCE, FLAWS, GOOD, LENGTH, NEEDED, SEVERE, auc_words, right, scored, shares
from parley.analysis.page.report import Section, joined, section
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.results import About, Estimate, Line
from parley.base.text import plural
from parley.judging.malibu.plan import GRADED
from parley.judging.malibu.score_table import ALL, nested_means, values_in_order

PANEL = "panel"
NAMES = {
    ("safety", 1): "a missing safety step",
    ("figure", 1): "a wrong figure",
    ("unanswered", 1): "an unanswered part",
    ("safety", 2): "unsafe advice",
    ("figure", 2): "grossly wrong figures",
    ("unanswered", 2): "two unanswered parts",
    (LENGTH, 1): "needless length, a third more words",
    (LENGTH, 2): "needless length, twice the words",
}
"""Names of the texts."""
PARTS = {
    (ALL, ALL): ("judge", "all flaws"),
    (ALL, "1"): ("judge-slight", "slight flaws"),
    (ALL, "2"): ("judge-severe", "severe flaws"),
    ("safety", ALL): ("judge-safety", "unsafe advice"),
    ("figure", ALL): ("judge-figure", "wrong figures"),
    ("unanswered", ALL): ("judge-unanswered", "parts unanswered"),
}
"""The flaws and doses of an AUC, with the key and the name of its line."""


def _of_panel(line: Line) -> bool:
    """Whether a line is about the whole panel, all metrics together."""
    return (line.about.judge or PANEL, line.about.metric or ALL) == (PANEL, ALL)


def _whole(line: Line) -> bool:
    """Whether an AUC is over all flaws and doses."""
    return (line.about.columns["flaw"], line.about.columns["dose"]) == (ALL, ALL)


def _plotted(lines: Iterable[Line]) -> Iterator[Line]:
    return (line for line in lines if _of_panel(line) or (_whole(line) and line.about.metric == ALL))


READER = ("model", "judge", "metric")
AUC = Question(
    name="yardstick_auc",
    ask="Can the judges tell good responses from flawed ones?",
    measures={"auc": "how often the good response scores higher (AUC)"},
    by=READER,
    family=READER,
    cluster="base",
    null=CHANCE,
    scale="share",
    note="Ties count as half, 0.5 is guessing. Needless length is no flaw. Corrected over kinds and doses.",
    plotted=_plotted,
    stated=False,
)
COSTS = Question(
    name="yardstick_flaws",
    ask="What does each flaw cost, and what does needless length add?",
    measures={
        "cost": Estimand(words="points that the flaw costs (good − flawed)", ask="What does each flaw cost?"),
        "length": Estimand(
            words="points that needless length adds (padded − good)", ask="Does needless length raise the score?"
        ),
    },
    by=READER,
    family=(*READER, "measure"),
    cluster="base",
    null=0.0,
    note="Without labels. Corrected over the flaws, and over the two lengths.",
    plotted=_plotted,
    stated=False,
)
NOT_SHOWN = "Nothing shows that these scores measure quality."
"""The consequence if judges do not pass."""
Lines = Mapping[str, Sequence[Line]]
"""The yardstick's lines, by the name of their question."""
Reading = tuple[dict[str, str], pd.DataFrame, pd.DataFrame]
"""Model, judge and metric; their verdicts; and the good response minus each other one, by base."""


def graded_gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The good response minus each other one: rows are base, judge and metric; columns are kind of flaw and dose.

    Args:
        verdicts: One model's verdicts on graded responses (`PanelData.graded`).
    """
    scores = scored(verdicts.assign(flaw=verdicts["flaw"].astype(str)), ["cluster", "judge", "metric"])
    good = scores[GOOD] if GOOD in scores else pd.Series(math.nan, scores.index)
    return pd.DataFrame({text: good - scores[text] for text in NAMES if text in scores}, scores.index)


def by_base(gaps: pd.DataFrame) -> pd.DataFrame:
    """Mean differences by base: over the metrics, then over the judges."""
    return nested_means(gaps).dropna(how="all")


def readings(graded: pd.DataFrame) -> Iterator[Reading]:
    """Readings of each model's panel and of each judge, on all metrics and on each.

    A single judge or a single metric has no separate reading.

    Args:
        graded: The verdicts on graded responses.
    """
    for model, rows in graded.groupby("model", sort=False, observed=True):
        gaps = graded_gaps(rows)
        judges, metrics = (values_in_order(rows, name) for name in ("judge", "metric"))
        for judge in (PANEL, *judges) if len(judges) > 1 else (PANEL,):
            for metric in (ALL, *metrics) if len(metrics) > 1 else (ALL,):
                ballots, cells = rows, gaps
                if judge != PANEL:
                    ballots, cells = rows[rows["judge"] == judge], gaps[gaps.index.isin([judge], "judge")]
                if metric != ALL:
                    ballots, cells = ballots[ballots["metric"] == metric], cells[cells.index.isin([metric], "metric")]
                yield {"model": str(model), "judge": judge, "metric": metric}, ballots, by_base(cells)


def aucs(read: Sequence[Reading]) -> list[Line]:
    """Whether a judge can tell good from flawed: the AUC over all flaws, by dose and by kind.

    Args:
        read: The result of `readings`.
    """
    lines = []
    for about, rows, gaps in read:
        for (flaw, dose), (name, words) in PARTS.items():
            chosen = [
                text for text in gaps if text[0] in FLAWS and flaw in (ALL, text[0]) and dose in (ALL, str(text[1]))
            ]
            if chosen:
                auc = right(shares(gaps[chosen]), rows["value"])
                subject = _subject(read, "auc", words, name, **about, flaw=flaw, dose=dose)
                lines.append(replace(auc, **subject, secondary=not flaw == dose == ALL))
    return corrected(lines, AUC.family)


def costs(read: Sequence[Reading]) -> list[Line]:
    """The points that each flaw costs and needless length adds.

    Args:
        read: The result of `readings`.
    """
    lines = []
    for about, _, gaps in read:
        for (flaw, dose), column in gaps.items():
            measure, test = ("length", mean_test(-column)) if flaw == LENGTH else ("cost", mean_test(column))
            name = f"cost.{flaw}-{dose}" if flaw != LENGTH else LENGTH if dose == SEVERE else f"{LENGTH}-{dose}"
            subject = _subject(read, measure, NAMES[flaw, dose], name, **about, flaw=flaw, dose=dose)
            lines.append(Line.of(_with_enough(test), reference=0.0, **subject))
    return corrected(lines, COSTS.family)


def _subject(read: Sequence[Reading], measure: str, words: str, name: str, **about: Any) -> dict[str, Any]:
    """What a line is about, as its fields; only a line of the panel has a name."""
    parts = [part for part, whole in ((about["judge"], PANEL), (about["metric"], ALL)) if part != whole]
    models = (about["model"],) if len({each["model"] for each, _, _ in read}) > 1 else ()
    return {
        "measure": measure,
        "about": About.of(**about, measure=measure),
        "label": f"{words}, {', '.join(parts)}" if parts else words,
        "name": "" if parts else name,
        "group": models,
        "units": {
            "phase": (str(GRADED),),
            **_texts(about["flaw"], str(about["dose"])),
            **({"model": models} if models else {}),
        },
        "cluster": "base",
    }


def _texts(flaw: str, dose: str) -> dict[str, tuple[str, ...]]:
    """The flaws and doses of the texts that a line is about, the good one among them."""
    flaws = FLAWS if flaw == ALL else (flaw,)
    doses = dict.fromkeys(str(each) for kind, each in NAMES if kind in flaws) if dose == ALL else (dose,)
    return {"flaw": ("", *flaws), "dose": ("0", *doses)}


def _with_enough(test: Estimate) -> Estimate:
    """The test, without an interval if the bases are too few."""
    if (test.clusters or 0) >= NEEDED:
        return test
    note = f"{plural(test.clusters or 0, 'base')}, and an interval needs {NEEDED}"
    return replace(test, low=math.nan, high=math.nan, p=math.nan, note=note)


def yardstick_lines(graded: pd.DataFrame) -> dict[str, list[Line]]:
    """Every line of the yardstick, by the name of its question.

    Args:
        graded: The verdicts on graded responses (`PanelData.graded`).
    """
    read = list(readings(graded)) if len(graded) else []
    return {AUC.name: aucs(read), COSTS.name: costs(read)}


def yardstick_section(lines: Lines) -> Section:
    """The section on the yardstick. Plots show the panel and the AUC of each judge; tables have every metric.

    Args:
        lines: The result of `yardstick_lines`.
    """
    return joined(section(question, lines[question.name]) for question in (AUC, COSTS))


def quality(lines: Sequence[Line]) -> str:
    """Why a model's scores may not measure quality; "" if they were shown to.

    Args:
        lines: The model's lines of `AUC`.
    """
    line = next((line for line in lines if _whole(line) and _of_panel(line)), None)
    if line is None:
        return (
            "This run did not measure whether these judges can tell a good answer from a flawed one (a new run with "
            "--design silent --yardstick full does, if its suite has graded responses)."
        )
    if line.note:
        few = (line.clusters or 0) < NEEDED
        read = f"{plural(line.clusters or 0, 'base')} {'was' if line.clusters == 1 else 'were'} read"
        why = f"{read}, and a test needs {NEEDED}" if few else line.note
        return f"It is not known whether these judges can tell a good answer from a flawed one: {why}."
    if line.shown and line.estimate > CHANCE:
        return ""
    if line.shown:
        return f"These judges score flawed answers above good ones ({auc_words(line)})."
    return f"These judges were not shown to tell good answers from flawed ones ({auc_words(line)})."


def can_judge(lines: Lines) -> str:
    """The sentence on whether one model's judges can judge.

    Args:
        lines: The model's lines.
    """
    padded = any(
        line.shown and line.estimate > 0 for line in lines[COSTS.name] if line.measure == "length" and _of_panel(line)
    )
    length = " They take length for quality: needless length raises the score." if padded else ""
    if why := quality(lines[AUC.name]):
        return f"{why}{length} {NOT_SHOWN}"
    line = next(line for line in lines[AUC.name] if _whole(line) and _of_panel(line))
    return f"These judges can tell good answers from flawed ones ({auc_words(line)}).{length}"
