"""A report as data: sentences, tables and figures, independent of how they are shown. `render` writes it to files.

A study's report is a function that turns verdicts and a `ReportContext` into a `Report`:

    def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report: ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from parley.analysis.decide import is_test, undecided_yet
from parley.analysis.effects import Question, answer
from parley.analysis.say import Forest, Headline, Sentence, headline, json_values, sentence
from parley.analysis.stats.results import Line
from parley.analysis.unread import WHATEVER
from parley.base.text import as_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SIMULATED = "SIMULATED"
_NEGATIVE_ZERO = re.compile(r"(?<![\w.])[-−](0(?:\.0+)?)(?![\d.]\d|\d)")
_TEST = re.compile(r"\bp [=<] ")
_MINUS = re.compile(r"(?<![^\s(])-(?=\.?\d)")
"""A hyphen before a number, at the beginning of a word: gpt-4 and 2026-11-17 keep theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """Data for a report besides the verdicts. Reports use the fields that they need.

    Args:
        title: Title of the report and its figures; "": the study's own.
        units: One row per unit with its calls, tokens and cost; None: costs are not reported.
        draws: Draws of each bootstrap. Tests and intervals of differences need none.
        seed: Seed of all draws.
        margin: The difference that still counts as none; None: the study's own.
        plans: The analysis plans that the runs stored, without those that were changed since.
        cautions: What every reader must know about the models.
        model_cautions: Those of `cautions` that say what is known of the models as judges, by model. A report that
            measures the same leaves them out.
        paper: Whether only what the study's paper has will be shown.
        runs: The runs that the verdicts are from, as `Report.runs`.
    """

    title: str = ""
    units: pd.DataFrame | None = None
    draws: int = 2000
    seed: int = 0
    margin: float | None = None
    plans: Sequence[Mapping[str, Any]] = ()
    cautions: Sequence[str] = ()
    model_cautions: Mapping[str, str] = field(default_factory=dict)
    paper: bool = False
    runs: Sequence[Mapping[str, Any]] = ()

    @property
    def small_print(self) -> str:
        """The cautions as one text, for the captions of figures."""
        return " ".join(self.cautions)


NO_CONTEXT = ReportContext()
"""The context of verdicts only."""


@dataclass(frozen=True, slots=True)
class Table:
    """A frame with a title.

    Args:
        name: File name without suffix, and key in `Report.data`.
        title: What the table shows.
        frame: The rows.
        shown: Columns that a page or terminal has room for; (): all. Files always have all of them.
        note: Explanation below the table.
        paper: Where the study's paper has it, with the paper's number: "4.1, figure 4"; "": it is ours alone.
        layout: How it is shown, if not row by row: its index, then its columns. Files and JSON have `frame`.
    """

    name: str
    title: str
    frame: pd.DataFrame
    shown: tuple[str, ...] = ()
    note: str = ""
    paper: str = ""
    layout: pd.DataFrame | None = None

    @property
    def headings(self) -> int:
        """The number of columns that say what a row is about, of those to show."""
        return 1 if self.layout is None else self.layout.index.nlevels

    def view(self) -> pd.DataFrame:
        """The columns to show; `note` only if some row has one."""
        if self.layout is not None:
            return self.layout.reset_index()
        names = [name for name in self.shown or self.frame.columns if name in self.frame]
        empty_notes = "note" in names and not self.frame["note"].fillna("").astype(bool).any()
        return self.frame[[name for name in names if not (empty_notes and name == "note")]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a report.

    Args:
        name: File name without suffix.
        caption: What it shows, and from how much data.
        table: Name of the table that it was drawn from.
        draw: Makes the drawing.
    """

    name: str
    caption: str
    table: str
    draw: Callable[[], Drawing]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report, which answers one question.

    Args:
        tables: The tables, in order.
        figures: The figures, in order.
        forests: The forest plots, in order.
        cautions: What every reader must know before any number.
        warnings: Sentences on what invalidates results; they are cautions too.
        words: Sentences that state the results.
        beside: Sentences for the first screen, below the main plot: what a gain cost.
    """

    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    forests: Sequence[Forest] = ()
    cautions: Sequence[str] = ()
    warnings: Sequence[str] = ()
    words: Sequence[str] = ()
    beside: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a study, to be printed, written to files or read as data.

    Args:
        title: Title of the page.
        words: Sentences that state the results.
        cautions: What every reader must know before any number, the severest first: one list for screens, pages and
            JSON. Some of them are also among `words`.
        tables: The tables, in order.
        figures: The figures, in order.
        forests: The estimates that the viewer draws and links to units, one forest plot a question; the first one
            answers the study's main question. Plots without a line are left out.
        runs: The runs that this was made from: file, study, models, seed, versions, counts.
        settings: Bootstrap and permutation settings, such as draws and seed.
        blocked: What leaves the main question without an answer, such as fewer than six bases. It replaces the answer
            in the headline.
        beside: Sentences below the main plot on the first screen: what a gain cost; MALIBU's are the paper's χ², win
            rates, and whether talking changes the answer.
        extent: The extent, in words: "43 silent ballots, 1 debate"; "": number of calls.
        families: Number of tests per model in each family, by the plan's names.
        plan: The plan that was executed, as a run stores one; {}: none.
        papers: The study's citations.
        subject: What it is about, if that is not these runs alone: its page replaces one on fewer runs.
    """

    title: str
    words: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    forests: tuple[Forest, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    blocked: str = ""
    beside: tuple[str, ...] = ()
    extent: str = ""
    families: Mapping[str, int] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    papers: tuple[str, ...] = ()
    subject: str = ""

    def __post_init__(self) -> None:
        words, beside, cautions = (
            tuple(as_written(_MINUS.sub("−", _NEGATIVE_ZERO.sub(r"\1", line))) for line in lines)
            for lines in (self.words, self.beside, self.cautions)
        )
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "beside", beside)
        object.__setattr__(self, "cautions", tuple(dict.fromkeys(cautions)))
        object.__setattr__(self, "forests", tuple(forest for forest in self.forests if forest.lines))

    def without_verdicts(self, why: str) -> Report:
        """The estimates and intervals of an unfinished run. Its tests, and all sentences and figures, are left out.

        Args:
            why: What the headline says instead.
        """
        return replace(
            self,
            words=(),
            beside=(),
            cautions=tuple(line for line in self.cautions if line not in self.words and not _TEST.search(line)),
            blocked="",
            figures=(),
            tables=tuple(map(_without_tests, self.tables)),
            forests=tuple(
                replace(forest, constant=why, lines=tuple(map(undecided_yet, forest.lines))) for forest in self.forests
            ),
        )

    @property
    def sentences(self) -> list[str]:
        """Those of `words` that are not among the cautions, for a reader who has read these."""
        return [line for line in self.words if line not in self.cautions]

    @property
    def simulated(self) -> str:
        """The caution that a model is simulated; "" if none is. Every figure and table then says so."""
        return " ".join(line for line in self.cautions if SIMULATED in line)

    @property
    def headline(self) -> Headline | None:
        """The main question and its answer; None without a forest plot."""
        if not self.forests:
            return None
        return headline(self.forests[0], blocked=self.blocked, prefix=f"{SIMULATED}. " if self.simulated else "")

    def table(self, name: str) -> pd.DataFrame:
        """The frame of the table with this name."""
        return next(table.frame for table in self.tables if table.name == name)

    def data(self) -> dict[str, Any]:
        """Everything as JSON values: frames as lists of rows, missing values as None."""
        return {
            "title": self.title,
            **({"extent": self.extent} if self.extent else {}),
            "runs": [json_values(run) for run in self.runs],
            "headline": json_values(self.headline.data()) if self.headline else None,
            "cautions": list(self.cautions),
            "summary": list(self.words),
            "settings": json_values(self.settings),
            "forests": [json_values(forest.data()) for forest in self.forests],
            **{table.name: json_values(table.frame) for table in self.tables},
        }


def _without_tests(table: Table) -> Table:
    """The table without columns of tests and of what follows from them."""

    def untested(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[[name for name in frame if not is_test(str(name))]]

    layout = None if table.layout is None else untested(table.layout)
    return replace(table, frame=untested(table.frame), layout=layout)


MAX_SENTENCES = 10


def assemble(sections: Sequence[Section], context: ReportContext, title: str, **settings: Any) -> Report:
    """Assemble a report from sections, without empty tables.

    It has at most ten sentences, by rank: warnings, those beside the main plot, results. Tables have the rest.

    Args:
        sections: In order; the first forest plot answers the main question.
        context: What the report was given.
        title: The study's own title.
        settings: As `Report.settings`.
    """
    ranks = {
        rank: [line for part in sections for line in getattr(part, rank)] for rank in ("warnings", "beside", "words")
    }
    return Report(
        title=context.title or title,
        words=tuple(line for rank in ranks.values() for line in rank)[:MAX_SENTENCES],
        beside=tuple(ranks["beside"]),
        cautions=(*context.cautions, *(caution for part in sections for caution in part.cautions), *ranks["warnings"]),
        tables=tuple(table for part in sections for table in part.tables if len(table.frame)),
        figures=tuple(figure for part in sections for figure in part.figures),
        forests=tuple(forest for part in sections for forest in part.forests),
        runs=tuple(context.runs),
        settings=settings,
    )


def answered(question: Question, frame: pd.DataFrame, say: Sentence | None = None) -> Section:
    """The question's table, a plot for each measure, and its sentences.

    Args:
        question: The question.
        frame: One row per item and arm.
        say: Puts a line in words; None: default words.
    """
    return section(question, answer(question, frame) if len(frame) else [], say)


def section(question: Question, lines: Sequence[Line], say: Sentence | None = None) -> Section:
    """The section of a question's lines: every line is in the table and its measure's plot.

    Sentences say the lines that are shown, the planned ones first; without tests, all planned lines.

    Args:
        question: The question.
        lines: Its lines.
        say: Puts a line in words; None: default words.
    """
    tested = question.reference is not None
    methods = "; ".join(dict.fromkeys(line.method for line in lines if line.method))
    note = f"95% intervals: {methods}{', p Holm-corrected' if tested else ''}. " * bool(methods)
    note = (note + question.note).strip()
    if any(line.simultaneous not in (None, (line.low, line.high)) for line in lines):
        note += " Plots and sentences have simultaneous intervals of all planned lines, where clusters suffice."
    if any("worst_low" in line.also for line in lines):
        note += f" {WHATEVER}"
    plotted = list(question.plotted(lines) if question.plotted else lines)
    forests: dict[str, Forest] = {}
    for measure in question.measures:
        estimand = question.estimand(measure)
        forests[measure] = Forest(
            name=estimand.plot or f"{question.name}-{measure}",
            question=estimand.ask,
            axis=f"{estimand.words} ({question.unit})" if question.unit else estimand.words,
            lines=tuple(line for line in plotted if line.measure == measure and math.isfinite(line.estimate)),
            reference=estimand.reference,
            scale=estimand.scale or question.scale,
            table=question.name,
            note=estimand.note or note,
            says=estimand.says,
        )
    rows, speak = as_frame(lines), say or partial(sentence, question)
    named = [line for line in lines if question.stated and (line.shown if tested else not line.secondary and line.n)]
    return Section(
        tables=[Table(question.name, question.ask, rows, question.shown or _telling(rows), note, question.paper)],
        forests=list(forests.values()),
        words=[speak(line, forests[line.measure]) for line in sorted(named, key=lambda line: line.secondary)],
    )


def joined(parts: Iterable[Section]) -> Section:
    """Several sections as one."""
    together = list(parts)
    return Section(
        **{each.name: [x for part in together for x in getattr(part, each.name)] for each in fields(Section)}
    )


def as_frame(lines: Sequence[Line]) -> pd.DataFrame:
    """Lines as rows: subject, measure, numbers, and verdict if "alike" is tested."""
    with_margin = any(not math.isnan(line.margin) for line in lines)
    numbers = ("estimate", "low", "high", "p", "p_adjusted", *(["verdict"] if with_margin else []))
    frame = pd.DataFrame(
        [
            {
                **line.about.columns,
                "measure": line.measure,
                **{name: getattr(line, name) for name in numbers},
                **line.also,
                "n": line.n,
                "clusters": line.clusters,
                "note": line.note,
            }
            for line in lines
        ]
    )
    described = not any(line.verdict for line in lines)  # else a test is asked for, and a missing p-value is told
    empty = [name for name in ("p", "p_adjusted") if described and name in frame and frame[name].isna().all()]
    return frame.drop(columns=empty)


def _telling(rows: pd.DataFrame) -> tuple[str, ...]:
    """The columns that a page shows: numbers, p-values only corrected, and texts that differ between rows."""
    numbers = rows.select_dtypes("number").columns
    return tuple(name for name in rows if name != "p" and (name in numbers or rows[name].nunique() > 1))
