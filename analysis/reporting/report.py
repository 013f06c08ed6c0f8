"""A report as data: sentences, tables and figures, independent of how they are shown. `render` writes it to files.

A study's report is a function that turns verdicts and a `ReportContext` into a `Report`:

    def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report: ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas.api.types import is_float_dtype

from parley.analysis.reporting.decide import is_test, undecided_yet
from parley.analysis.reporting.forest import Forest, interval
from parley.analysis.reporting.headline import Headline, headline
from parley.analysis.stats.results import ALPHA
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
    """

    name: str
    title: str
    frame: pd.DataFrame
    shown: tuple[str, ...] = ()
    note: str = ""
    paper: str = ""

    def view(self) -> pd.DataFrame:
        """The columns to show; `note` only if some row has one."""
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
        costs: Sentences on what it cost.
    """

    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    forests: Sequence[Forest] = ()
    cautions: Sequence[str] = ()
    warnings: Sequence[str] = ()
    words: Sequence[str] = ()
    costs: Sequence[str] = ()


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
        beside: Sentences below the main plot on the first screen: MALIBU's are the paper's χ², win rates, and whether
            talking changes the answer.
        extent: The extent, in words: "43 silent ballots, 1 debate"; "": number of calls.
        families: Number of tests per model in each family, by the plan's names.
        plan: The plan that was executed, as a run stores one; {}: none.
        papers: The study's citations.
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
            tables=tuple(
                replace(table, frame=table.frame[[name for name in table.frame if not is_test(str(name))]])
                for table in self.tables
            ),
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


MAX_SENTENCES = 10


def assemble(sections: Sequence[Section], context: ReportContext, title: str, **settings: Any) -> Report:
    """Assemble a report from sections, without empty tables.

    It has at most ten sentences, by rank: warnings, results, costs. Tables have the rest.

    Args:
        sections: In order; the first forest plot answers the main question.
        context: What the report was given.
        title: The study's own title.
        settings: As `Report.settings`.
    """
    ranks = {
        rank: [line for part in sections for line in getattr(part, rank)] for rank in ("warnings", "words", "costs")
    }
    return Report(
        title=context.title or title,
        words=tuple(line for rank in ranks.values() for line in rank)[:MAX_SENTENCES],
        cautions=(*context.cautions, *(caution for part in sections for caution in part.cautions), *ranks["warnings"]),
        tables=tuple(table for part in sections for table in part.tables if len(table.frame)),
        figures=tuple(figure for part in sections for figure in part.figures),
        forests=tuple(forest for part in sections for forest in part.forests),
        runs=tuple(context.runs),
        settings=settings,
    )


def json_values(value: Any) -> Any:
    """The value in JSON's types: frames as lists of rows, NaN and infinity as None, numpy's numbers as Python's."""
    if isinstance(value, pd.DataFrame):
        return [{str(k): json_values(v) for k, v in row.items()} for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(key): json_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_interval(low: float, high: float, form: str = ".2f", *, excluded: bool = False) -> str:
    """An interval for a sentence, as in "0.10 to 0.30"; "" where there is none.

    Args:
        low: Lower end; -inf where it is not bounded.
        high: Upper end; inf where it is not bounded.
        form: Format of the numbers.
        excluded: As in `interval`.
    """
    if math.isnan(low) or math.isnan(high):
        return ""

    def written(end: float) -> str:
        return format_cell(end) if math.isinf(end) else format(round(end, 9) + 0.0, form)

    return interval(low, high, written, excluded=excluded)


def format_cells(frame: pd.DataFrame) -> list[list[str]]:
    """The rows of a table for reading, a paper's numbers with all their decimals.

    The end of an interval that is 0, which the row's test excludes, says so.
    """
    rows = [[format_cell(value) for value in row] for row in frame.itertuples(index=False)]
    names = list(frame.columns)
    for place, name in enumerate(names):
        if str(name).startswith("paper_") and is_float_dtype(frame[name]):
            digits = max((2, *(len(f"{value:.9g}".partition(".")[2]) for value in frame[name].dropna())))
            for row, value in zip(rows, frame[name], strict=True):
                row[place] = "–" if math.isnan(value) else f"{value:.{digits}f}"
    if "p_adjusted" in names:
        for row, values in zip(rows, frame.itertuples(index=False), strict=True):
            for end, words in (("low", "above 0"), ("high", "below 0")):
                if end in names and values[names.index("p_adjusted")] <= ALPHA and values[names.index(end)] == 0:
                    row[names.index(end)] = words
    return rows


def format_cell(value: Any) -> str:
    """A cell for reading: two decimals (small numbers: two significant digits), "–" where there is nothing.

    The end of an interval that is not bounded is −∞ or ∞.
    """
    if isinstance(value, str):
        return value or "–"
    if isinstance(value, float):  # most cells
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return "–" if math.isnan(value) else f"{value:.2g}" if 0 < abs(value) < 0.01 else f"{value + 0.0:.2f}"
    value = json_values(value)
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def without_run(printed: pd.DataFrame, both: pd.DataFrame, by: str) -> str:
    """The systems of a paper's table that these runs do not have, as a sentence for the table's note.

    Args:
        printed: The paper's cells.
        both: Those with a number of ours.
        by: The column with the systems.
    """
    names = [str(name) for name in dict.fromkeys(printed[by]) if name not in set(both[by])]
    return f"Only in the paper: {', '.join(names)}. " if names and len(both) else ""


def read_published(path: Path, about: Sequence[str], columns: str = "measure") -> pd.DataFrame:
    """A paper's printed numbers, one row each: what it is about, the number as `paper`; `sd` if it has one.

    The first line that is no comment names the columns: what a row is about, then the columns of numbers; `-` is a
    number that the paper does not print. `0.5±0.1` has a standard deviation.

    Args:
        path: The file.
        about: The columns that say what a row is about.
        columns: What the columns of numbers are.
    """
    printed = pd.read_csv(path, sep=" ", na_values="-", comment="#")
    cells = printed.melt(id_vars=list(about), var_name=columns, value_name="paper", ignore_index=False)
    cells = cells.sort_index(kind="stable").dropna(ignore_index=True)
    parts = cells["paper"].astype(str).str.partition("±")
    numbers = cells.assign(paper=parts[0].astype(float))
    return numbers.assign(sd=pd.to_numeric(parts[2])) if parts[2].any() else numbers
