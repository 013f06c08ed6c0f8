"""Echo: whether judges repeat words of justifications or whole sets of scores that they heard, against a control.

    echo(verdicts, repeated_remarks(path, units), blind=True)

Judges hear the others' statements and scores of the blind first round. A later statement repeats one of them if at
least `NEARLY` of its five-word sequences are in it: five words in a row are rarely shared by chance, while four of them
are often a phrase of the judged text. Repeating one's own words is not an echo. Scores are repeated if all are the
same.

Judges that share a model say the same about the same text without hearing each other. So the measure is the rate
in excess of chance (what these judges said in round 1 on the same text under another label) and of the same excess in
the blind round. It is still above 0 if scores move towards the middle, which makes them more alike. So the test
compares it with randomly drawn units whose judges heard ballots on another label.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from parley.analysis.effects import Question, corrected
from parley.analysis.page.report import ReportContext, Section, section
from parley.analysis.say import Forest, stated
from parley.analysis.stats.results import Estimate, Line
from parley.analysis.stats.tables import Floats, factorize, row_codes, unique_rows
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.panel_data import PanelData, Verdicts, panel_data
from parley.judging.malibu.rounds import (
    about_units,
    against_control,
    before_and_after,
    heard_own,
    partners,
    prefix_of,
    same_text,
    with_control,
)

NEARLY = 0.8
SEQUENCE = 5
"""Length of the compared word sequences; pages that mark single passages use eight."""
WORDS, SCORES = "words, nearly or fully", "all scores the same"
REPEATED = Question(
    name="echo",
    ask="Do judges repeat what they heard more often than where they did not hear it?",
    measures={"echo": "difference in the share of repeated statements and scores"},
    cluster="unit",
    null=0.0,
    scale="share",
    note="Share of statements, and of pairs of judges' scores, that repeat what another judge said in round 1. blind: "
    "in round 1; later: in the last round. chance: the same share, for what was said about another label. echo: the "
    "excess over chance in the last round minus the excess in round 1. estimate: echo minus the echo of the control "
    "units, whose judges heard ballots on another label.",
)
REMARKS = ["judge", "round", "near", "near_chance"]
FIRST = 1
"""The round that is heard."""


class Statement(NamedTuple):
    """A judge's statement in one round, reduced to what is compared."""

    judge: str
    round: int
    words: str
    sequences: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, judge: str, round: int, text: str) -> Statement:
        words = re.findall(r"\w+", text.casefold())
        length = min(SEQUENCE, len(words))
        runs = zip(*(words[start:] for start in range(length)), strict=False)
        return cls(judge, round, " ".join(words), frozenset(runs))

    def overlap(self, other: Statement) -> float:
        """The share of this statement's five-word sequences that the other has too; 1 if the words are the same."""
        if self.words == other.words:
            return 1.0
        return len(self.sequences & other.sequences) / len(self.sequences) if self.sequences else 0.0


def repeats(statement: Statement, others: Sequence[Statement], before: Sequence[Statement]) -> float:
    """Whether a statement repeats one of some others (1 or 0); NaN where there is none.

    Args:
        statement: The statement.
        others: Statements of other judges.
        before: The judge's earlier statement; repeating it is not an echo.
    """
    if not others:
        return math.nan
    near = any(statement.overlap(other) >= NEARLY for other in others)
    return float(near and all(statement.overlap(earlier) < NEARLY for earlier in before))


def unit_repeats(
    spoken: Sequence[Statement], elsewhere: Sequence[Statement] | None
) -> Iterator[tuple[str, int, float, float]]:
    """A row (see `REMARKS`) for every statement of a unit: whether it repeats another judge's statement of round 1.

    Args:
        spoken: The unit's statements, in order; those without a word are left out.
        elsewhere: Statements of another unit on the same text; without them, chance is NaN.
    """
    unheard = [statement for statement in elsewhere or () if statement.words and statement.round == FIRST]
    spoken = [statement for statement in spoken if statement.words]
    for place, statement in enumerate(spoken):
        others = [other for other in spoken if other.round == FIRST and other.judge != statement.judge]
        earlier = [other for other in spoken[:place] if other.judge == statement.judge]
        names = {other.judge for other in others}
        if not others:
            continue
        same = [other for other in unheard if other.judge in names]
        chance = repeats(statement, same, earlier) if len(same) == len(others) else math.nan
        yield statement.judge, statement.round, repeats(statement, others, earlier), chance


def judge_statements(spoken: Iterable[tuple[str, int, Mapping[str, Any] | None]]) -> list[Statement]:
    """Statements from judges' parsed replies, in order; unreadable ones (None) are left out.

    The free text of a reply is its strings of more than one word, so not the choice of a candidate.

    Args:
        spoken: Judge, round and parsed reply.
    """
    return [
        Statement.of(
            judge, round, " ".join(text for text in reply.values() if isinstance(text, str) and " " in text.strip())
        )
        for judge, round, reply in spoken
        if reply is not None
    ]


def echo(verdicts: Verdicts, remarks: pd.DataFrame | None = None, *, blind: bool | None = None) -> list[Line]:
    """Rates at which judges repeat others' words or scores of round 1, in that round and in the last, by model and
    phase.

    The estimate is the echo minus that in control units, by Welch's t. The further number `echo` is the excess over
    chance in the last round minus that in the first.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        remarks: The result of `parley.reports.loading.repeated_remarks`; without it, only scores are compared.
        blind: Whether round 1 was blind; if unknown, nothing is tested.
    """
    data = panel_data(verdicts)
    lines = [
        about_units(_compared(part, bool(blind)), data, str(model), int(phase), what=what)
        for what, units in ((WORDS, _words(remarks)), (SCORES, _scores(data)))
        for (model, phase), part in units.groupby(["model", "phase"], sort=True, observed=True)
    ]
    return corrected(sorted(lines, key=lambda line: (line.about.model, line.about.phase)))


RATES = ["blind", "blind_chance", "later", "later_chance"]
"""Rates of each unit: the first two from round 1, the others from the last round."""


def excess(units: pd.DataFrame) -> Floats:
    """By unit: repetition beyond chance in the last round minus that in the first."""
    rates = units[RATES].to_numpy(dtype=float)
    beyond_chance: Floats = (rates[:, 2] - rates[:, 3]) - (rates[:, 0] - rates[:, 1])
    return beyond_chance


def _words(remarks: pd.DataFrame | None) -> pd.DataFrame:
    if remarks is None or remarks.empty:
        return pd.DataFrame(columns=["model", "phase", "unit", "heard_own", *RATES])
    keys = [name for name in ("model", "phase", "unit", "scenario", "identity", "heard") if name in remarks]
    last = remarks["round"].max()
    means = remarks.assign(**dict.fromkeys(RATES, np.nan))
    for names, number in ((RATES[:2], FIRST), (RATES[2:], last)):
        for name, column in zip(names, ("near", "near_chance"), strict=True):
            means[name] = remarks[column].where((remarks["round"] == number) & (last > FIRST))
    units = means.groupby(keys, observed=True, dropna=False)[RATES].mean().reset_index()
    return units[with_control(units)].assign(heard_own=lambda kept: heard_own(kept))


def _scores(data: PanelData) -> pd.DataFrame:
    both = before_and_after(data, controls=True)
    both = both[with_control(both) & (both["metric"] != PREFERRED).to_numpy()]
    tables = [_same_scores(part) for _, part in both.groupby(["model", "phase"], observed=True, sort=False)]
    return pd.concat(tables) if tables else pd.DataFrame(columns=["model", "phase", "unit", "heard_own", *RATES])


def _same_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """By unit: the share of pairs of judges with the same scores, and, for chance, with those on another label."""
    judge, names = factorize(verdicts["judge"], sort=False)
    _, first_row, unit = np.unique(row_codes([verdicts["unit"]]), return_index=True, return_inverse=True)
    units = verdicts.iloc[first_row]
    column = np.unique(
        row_codes([verdicts[name] for name in ("metric", "subject") if name in verdicts]), return_inverse=True
    )[1]
    scores = np.full((2, len(units), len(names), int(column.max()) + 1), np.nan)
    for moment, name in enumerate(("before", "after")):
        scores[moment, unit, judge, column] = verdicts[name].to_numpy(dtype=float).round(6)
    code = unique_rows(scores.reshape(-1, scores.shape[-1]))[1].reshape(scores.shape[:3]).astype(float)
    code[np.isnan(scores).any(axis=3)] = np.nan
    lists = partners(same_text(units.assign(metric="")))
    rates: dict[str, Floats] = {}
    for name, codes in zip(("blind", "later"), code, strict=True):
        repeated, by_chance = [], []
        for first in range(len(names)):
            for second in set(range(len(names))) - {first}:
                repeated.append(_equal(codes[:, first], code[0, :, second]))
                by_chance += [np.where(at >= 0, _equal(codes[:, first], code[0, at, second]), np.nan) for at in lists]
        rates |= {name: _row_means(repeated, len(units)), f"{name}_chance": _row_means(by_chance, len(units))}
    return units[["model", "phase", "unit"]].assign(heard_own=heard_own(units), **rates)


def _equal(first: Floats, second: Floats) -> Floats:
    both = np.isfinite(first) & np.isfinite(second)
    return np.where(both, first == second, np.nan)


def _row_means(columns: Sequence[Floats], rows: int) -> Floats:
    """Means of each row without missing values; NaN if all are missing."""
    table = np.stack(columns) if columns else np.full((1, rows), np.nan)
    counts = np.isfinite(table).sum(axis=0)
    means: Floats = np.divide(np.nansum(table, axis=0), counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means


def _compared(units: pd.DataFrame, blind: bool) -> Line:
    heard_each_other, echoed = units["heard_own"].to_numpy(dtype=bool), excess(units)
    finite = np.isfinite(echoed)
    heard, control = echoed[heard_each_other & finite], echoed[~heard_each_other & finite]
    also = {name: float(units.loc[heard_each_other, name].astype(float).mean()) for name in RATES}
    also |= {
        "echo": float(heard.mean()) if len(heard) else math.nan,
        "control_echo": float(control.mean()) if len(control) else math.nan,
        "units": int(heard_each_other.sum()),
        "control_units": int((~heard_each_other).sum()),
    }
    return replace(against_control(heard, control, blind), measure="echo", also=also)


def echo_section(data: PanelData, context: ReportContext) -> Section:
    """The section on echo: a table, rates, the excess over the control, and sentences.

    Args:
        data: The debates.
        context: Data for the report.
    """
    lines = echo(data, context.remarks() if context.remarks else None, blind=context.blind)
    made = section(REPEATED, lines)
    (plot,) = made.forests
    rates = Forest(
        name="echo",
        question="How often do judges repeat each other?",
        axis="share of statements, and of pairs of judges with the same scores",
        lines=tuple(
            Line(
                result=Estimate(estimate=rate, n=int(line.also["units"])),
                label=f"{line.label}, {when}",
                group=line.group,
                units=line.units,
            )
            for line in lines
            for when, rate in (("last round", line.also["later"]), ("last round, by chance", line.also["later_chance"]))
            if not math.isnan(rate)
        ),
        reference=None,
        scale="share",
        table="echo",
        note="What another judge had said or scored in round 1. By chance: the same with another label's units.",
    )
    words = [
        stated(
            prefix_of(line, data),
            f"judges repeat the {'scores' if line.label == SCORES else 'words'} that they heard "
            f"{100 * line.estimate:.0f} percentage points more often than where they did not hear them: an echo is not "
            "a further opinion",
            line,
            plot,
            "unit",
        )
        for line in lines
        if line.shown and line.estimate > 0
    ]
    return replace(made, forests=[rates, plot], words=words)
