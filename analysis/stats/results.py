"""The two result types: a statistic's `Estimate`, and a report's `Line`.

A statistic gives an `Estimate`: a number, its interval and its test, and how they were made. A report makes a `Line` of
it, adds what it is about, and corrects its p-value in its family. Tables, plots, sentences, headlines and JSON are all
made from lines. Unknown values are NaN, and `note` says why; `dataclasses.replace` fills in what the data give.

statsmodels' names for the fields: `n` is `nobs`, `p` is `pvalue`, `low` and `high` are `conf_int()`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from parley.base.text import as_written, plural

Assumption = Literal["independent", "clustered"]
Conclusion = Literal[
    "", "different", "different but below the margin", "alike", "below the margin on average", "undecided",
    "judges differ", "not measured", "undecided (unread)",
]  # fmt: skip
DIFFERENT, SMALL, ALIKE, ON_AVERAGE, UNDECIDED, JUDGES_DIFFER, NOT_MEASURED, UNREAD = get_args(Conclusion)[1:]
"""What a line concludes, in every report, check and page. "" where a value is only described.

"different": from the reference value. "different but below the margin": shown to differ, and to lie within the margin.
"alike": shown to lie within the margin, in all clusters but for kinds that are too rare to be in the sample; "below the
margin on average" where the clusters are not known one by one, or too few to include a rare kind. "not measured": the
data give no test, or something leaves it without an answer; `note` says what. "undecided (unread)": it would be one of
the first four, but not whatever the unread replies had said.
"""
ALPHA = 0.05
"""Significance level of every test, after correction for several tests."""
LEVEL = 1 - ALPHA
"""Confidence level of intervals, where a caller does not correct it for several tests."""


def clusters_to_reject(alpha: float, tests: int = 1) -> int:
    """The fewest clusters with which a test of a Holm-corrected family can be significant, since p ≥ 2^(1−k).

    Args:
        alpha: Significance level of the family.
        tests: Number of tests in the family.
    """
    return math.ceil(1 - math.log2(alpha / tests) - 1e-9)


def needed_words(tests: int, cluster: str) -> str:
    """Such as "15 tests need at least 10 bases", wherever a plan or a report counts both."""
    return f"{plural(tests, 'test needs', 'tests need')} at least {plural(clusters_to_reject(ALPHA, tests), cluster)}"


@dataclass(frozen=True, slots=True)
class Contrast:
    """The mean of some arms minus the mean of others.

    Args:
        category: What the arms are values of: "religion", "method".
        first: The arms of the first mean.
        second: Those of the second.
    """

    category: str
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        """Names of both sides."""
        return ", ".join(self.first), ", ".join(self.second)

    @property
    def sides(self) -> dict[str, str]:
        """Both sides as columns of a table."""
        return dict(zip(("first", "second"), self.names, strict=True))

    @property
    def label(self) -> str:
        """Such as "Muslim, Jewish − Christian"."""
        return as_written(" − ".join(self.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a line is about, made by `of`; "" or 0 where nothing is said.

    Args:
        model: The model whose results these are.
        run: The run, where there are several.
        system: A model with its method.
        method: How the model was asked.
        context: The kind of question: "ambiguous".
        phase: The phase of a study, from 1.
        family: The family of the test.
        step: What happened between two measurements.
        category: What labels are values of: "religion".
        judge: Who judged.
        role: Who was judged.
        metric: What was judged.
        contrast: What is compared; None if nothing is.
        columns: All of this as columns of a table, in order. What only one study says is only here.
    """

    model: str = ""
    run: str = ""
    system: str = ""
    method: str = ""
    context: str = ""
    phase: int = 0
    family: str = ""
    step: str = ""
    category: str = ""
    judge: str = ""
    role: str = ""
    metric: str = ""
    contrast: Contrast | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, contrast: Contrast | None = None, /, **columns: Any) -> About:
        """Make it from columns of a table.

        Args:
            contrast: What is compared.
            columns: The columns, in order.
        """
        typed = {
            field.name: columns[field.name]
            for field in fields(cls)
            if field.name in columns and isinstance(columns[field.name], type(field.default))
        }
        return cls(**typed, contrast=contrast, columns=columns)

    def plus(self, **columns: Any) -> About:
        """A copy with further columns."""
        return About.of(self.contrast, **self.columns, **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A statistic's result: the estimate, its interval and its test, with their methods.

    Args:
        estimate: The point estimate.
        low: Lower end of the interval; -inf where the data exclude no low value.
        high: Upper end of the interval; inf where the data exclude no high value.
        p: The p-value, two-sided where the test has sides.
        n: Number of observations.
        clusters: Number of clusters; None where observations are taken as independent.
        level: Confidence level of the interval.
        method: How interval and p-value were computed.
        assumes: What must be true for them to be valid.
        note: Why a number is missing; "" where none is.
        statistic: The test statistic.
        df: Degrees of freedom; None where the p-value comes from a permutation or an exact distribution.
        standard_error: Standard error of the estimate, where the method has one.
        measure: What was estimated, such as "mean difference" or "Cramér's V".
    """

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    n: int = 0
    clusters: int | None = None
    level: float = LEVEL
    method: str = ""
    assumes: str = ""
    note: str = ""
    statistic: float = math.nan
    df: float | None = None
    standard_error: float = math.nan
    measure: str = ""

    @property
    def bounded(self) -> bool:
        """Whether the interval has two ends."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def assumption(self) -> Assumption:
        """Whether observations, or clusters of them, are taken as independent."""
        return "independent" if self.clusters is None else "clustered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Estimate):
    """A result in a report: an estimate with its subject and its verdict. `measure` is a name that its question gives.

    Args:
        p_adjusted: The p-value corrected in the line's family. Where a plot has a reference value, a line without one
            is never the headline.
        tests: How many tests it is corrected for; None where that is not known.
        label: What the line is about, in words: "female − male".
        group: What heads this line and others, the widest first: ("race", "gpt-4o").
        about: What the line is about.
        units: The facets of the units behind it, and their values, as the viewer filters them:
            {"identity": ("female", "male")}.
        secondary: Whether it only accompanies the planned lines and is never the headline. Secondary lines are a
            separate family.
        simultaneous: The interval that covers all planned lines at once, for the headline, which is chosen among
            them; None: `low` and `high`.
        also: Further numbers by name: {"p_mcnemar": 0.03}.
        verdict: What it concludes.
        missing: The note of the estimate alone, without the reason of the verdict.
        margin: The distance from the reference value that still counts as none; NaN where "alike" is not asked.
        reference: The value that means "no difference"; NaN where the value is only described.
        name: How a program finds it: "gender", "ambiguous.accuracy"; "": made from its plot, group and label.
        values: The value of each cluster, by the cluster's name, where a check or a comparison may ask for them.
        cluster: The noun for a cluster: "base".
    """

    p_adjusted: float = math.nan
    tests: int | None = None
    label: str = ""
    group: tuple[str, ...] = ()
    about: About = About()
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secondary: bool = False
    simultaneous: tuple[float, float] | None = None
    also: Mapping[str, float] = field(default_factory=dict)
    verdict: Conclusion = ""
    missing: str = ""
    margin: float = math.nan
    reference: float = math.nan
    name: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    cluster: str = ""

    @classmethod
    def of(cls, result: Estimate, **given: Any) -> Line:
        """A line of an estimate, with the line's own fields."""
        return cls(**{**{each.name: getattr(result, each.name) for each in fields(Estimate)}, **given})

    @property
    def heading(self) -> str:
        """The heading of this line and others: "race · gpt-4o"."""
        return " · ".join(self.group)

    @property
    def shown(self) -> bool:
        """Whether the line's test is significant after correction."""
        return self.p_adjusted <= ALPHA

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that plots and sentences give: where one holds for all planned lines, that one."""
        return self.simultaneous or (self.low, self.high)

    @property
    def bounded(self) -> bool:
        """Whether that interval has two ends."""
        return all(map(math.isfinite, self.interval))

    def data(self) -> dict[str, Any]:
        """All non-empty fields by name; `about` as columns."""
        begins = dict.fromkeys(("estimate", "low", "high", "p", "p_adjusted", "tests"))
        inner = ("values", "missing")
        given = begins | {each.name: getattr(self, each.name) for each in fields(self) if each.name not in inner}
        given |= {"about": self.about.columns, "group": self.heading}
        empty: tuple[Any, ...] = ("", None, {})
        return {
            name: value for name, value in given.items() if name in PLOTTED or (value not in empty and value == value)
        }


PLOTTED = ("estimate", "low", "high", "p_adjusted", "n", "label", "group", "units", "secondary", "simultaneous")
"""Fields that a plot reads, and that JSON therefore always has."""


def columns(line: Estimate | Line, value: str, *names: str, **renamed: str) -> dict[str, Any]:
    """A line as columns of a table: the estimate, low, high, and further fields.

    Args:
        line: The line, or the estimate.
        value: Name of the column with the estimate.
        names: Fields whose columns have the same names.
        renamed: Columns with other names, each with its field.
    """
    field_of = {**dict(zip(names, names, strict=True)), **renamed}
    further = {column: getattr(line, name) for column, name in field_of.items()}
    return {value: line.estimate, "low": line.low, "high": line.high, **further}


def simultaneous(line: Line, test: Estimate) -> tuple[float, float] | None:
    """The interval that holds for all tests of a family at once; None where it has not two ends.

    It is Bonferroni's, and ends at 0 where Holm's correction excludes 0: a rejected hypothesis adds that its effect has
    this sign (Guilbaud, 2008, Biometrical Journal 50, 678-692).

    Args:
        line: The line, with its corrected p-value.
        test: Its differences from 0, at the level 1 - alpha / tests.
    """
    low, high = test.low, test.high
    if line.shown:
        low, high = (max(low, 0.0), high) if test.estimate > 0 else (low, min(high, 0.0))
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
