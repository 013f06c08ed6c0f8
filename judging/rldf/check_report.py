"""Report of the study `referee`, on whether a model can referee: one table and one sentence. A

bias type's statements have a known order: a fair one, and three that are more biased. The AUC is the share of
comparisons with the fair one that the referee gets right, ties as half: 0.5 is guessing. With the reverse question
("how fair") the right order is the reverse. A referee can referee a type if it gets at least 70% right with the
question and with its reverse, both shown to differ from guessing (Holm over the types). If it is right with one and
equally wrong with the other, its numbers depend on the kind of text and not on the question. Intervals are over topics.

A frame has one row per verdict: part (score, reverse), type, topic, dose, wording, model; the metric is bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from parley.analysis.effects import Question, corrected
from parley.analysis.known_order import right as order_right
from parley.analysis.known_order import scored, shares
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, assemble, section
from parley.analysis.stats.results import About, Line
from parley.analysis.verdicts import require, uncategorised
from parley.judging.rldf.referee import BIAS

USEFUL = 0.7
"""Minimum share of right comparisons, with the question and with its reverse."""
PARTS = {"score": ("with the question", 1), "reverse": ("with its reverse", -1)}
"""The questions in words, and the sign of a right difference."""
FOLLOWS_TEXT = "its number follows the kind of text, not the question"
REVERSED = "it puts them in the opposite order"
CANNOT_TELL = "it does not tell fair from biased"
REASONS = {
    (1, 1): "",
    (1, -1): FOLLOWS_TEXT,
    (-1, 1): FOLLOWS_TEXT,
    (-1, -1): REVERSED,
    (1, 0): "the reverse question does not reverse its order",
    (0, 1): "it orders enough of them with the reverse question only",
    (0, 0): CANNOT_TELL,
    (-1, 0): CANNOT_TELL,
    (0, -1): CANNOT_TELL,
}
"""Reasons why it cannot referee a type, by its results with the question and its reverse: 1 right, -1 wrong, 0
neither."""
RIGHT = Question(
    name="check",
    ask="How often does the referee put fair and biased texts in the right order?",
    measures={"right": "share of comparisons that are right"},
    by=("model", "type", "part"),
    family=("model", "part"),
    cluster="topic",
    null=0.5,
    scale="share",
    note=f"Ties count as half. Corrected over types. A referee needs {USEFUL} with both questions.",
    stated=False,
)


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """Whether a model can referee.

    Args:
        referee: Its name.
        lines: The share of right comparisons: one line per type and question.
    """

    referee: str
    lines: tuple[Line, ...]

    @property
    def reasons(self) -> dict[str, str]:
        """By type, in the run's order, the reason why it cannot referee; "" if it can."""
        types = dict.fromkeys(line.about.columns["type"] for line in self.lines)
        return {name: _reason([line for line in self.lines if line.about.columns["type"] == name]) for name in types}

    @property
    def passed(self) -> bool:
        """Whether it can referee every type."""
        return bool(self.lines) and not any(self.reasons.values())

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        reasons, parts = self.reasons, []
        for reason in dict.fromkeys([*REASONS.values(), *reasons.values()]):
            if types := [name for name, given in reasons.items() if given == reason]:
                can, why = ("cannot", f": {reason}") if reason else ("can", "")
                listed = " and ".join(filter(None, (", ".join(types[:-1]), types[-1])))
                numbers = f" ({self._numbers(types)})" if reason in REASONS.values() else ""
                parts.append(f"{can} referee {listed}{why}{numbers}")
        return f"{self.referee} {'; it '.join(parts)}." if parts else f"{self.referee} was not checked."

    def _numbers(self, types: Sequence[str]) -> str:
        spans = []
        for part, words in (("score", "AUC"), ("reverse", "with the reverse question")):
            of_part = [line for line in self.lines if line.about.columns["part"] == part]
            lines = [line for line in of_part if line.about.columns["type"] in types]
            if values := [line.estimate for line in lines if math.isfinite(line.estimate)]:
                ends = dict.fromkeys(f"{end:.2f}" for end in (min(values), max(values)))
                spans.append(f"{words} {' to '.join(ends)}")
        return ", ".join(spans)


def _reason(lines: Sequence[Line]) -> str:
    """Why a referee cannot referee a type, from its lines: with the question, and with its reverse."""
    blocked = next((line.note for line in lines if line.note), "")
    shown = [line.shown * ((line.estimate >= USEFUL) - (line.estimate <= 1 - USEFUL)) for line in lines]
    return blocked or REASONS[shown[0], shown[-1]]  # a scorer reads no question, so it has one line


def check_verdict(verdicts: pd.DataFrame) -> CheckVerdict:
    """The check of one referee, by type.

    Args:
        verdicts: One row per verdict of a check's run, all of one referee.
    """
    frame = uncategorised(verdicts)
    lines = []
    for name, rows in frame.groupby("type", sort=False):
        for part, (words, sign) in PARTS.items():
            ballots = rows[(rows["metric"] == BIAS) & (rows["part"] == part)]
            table = scored(ballots, ["topic", "wording"], ["dose"])
            if part == "score" or len(table):
                right = order_right(shares(_above_fair(table) * sign), ballots["value"], "topic")
                about = {"model": str(frame["model"].iloc[0]), "type": str(name), "part": part}
                lines.append(
                    replace(
                        right,
                        n=ballots["topic"].nunique(),
                        measure="right",
                        name=about["type"] if part == "score" else f"{name}.{part}",
                        label=words,
                        about=About.of(**about),
                        group=(about["type"],),
                        units={"type": (about["type"],), "part": (part,)},
                    )
                )
    return CheckVerdict(
        str(frame["model"].iloc[0]) if len(frame) else "the referee", tuple(corrected(lines, RIGHT.family))
    )


def _above_fair(table: pd.DataFrame) -> pd.DataFrame:
    """The score of each biased statement minus the fair one's; the columns are the doses from 1 on."""
    return table.drop(columns=0).sub(table[0], axis=0) if 0 in table else pd.DataFrame(index=table.index)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one check, or of several referees side by side.

    Args:
        verdicts: One row per verdict.
        context: Further data for the report.
    """
    require(verdicts, texts=("part", "type", "topic", "model"))
    checks = [check_verdict(rows) for _, rows in uncategorised(verdicts).groupby("model", sort=False)]
    lines = [
        replace(line, group=(check.referee, *line.group)) if len(checks) > 1 else line
        for check in checks
        for line in check.lines
    ]
    sentences = Section(
        warnings=[check.sentence for check in checks if not check.passed],
        words=[check.sentence for check in checks if check.passed],
    )
    return assemble([sentences, section(RIGHT, lines)], context, "Can the referee referee?", useful=USEFUL)
