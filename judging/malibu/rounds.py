"""Whether judges follow what they hear: the weight of another judge's ballot, compared with units that did not hear it.

Judges who share an opinion of a text under a label move alike when asked again, even without hearing each other:
together if scores move to the middle, apart if they become more extreme. So in some units, drawn at random, the judges
hear ballots on the same text under another label. In every unit, moves are compared with that unit's *own* first
ballots, which some units heard and others did not; all else is equal. The weight is the slope where they were heard
minus the slope where they were not; the test is Welch's. (Slopes on what was heard give false alarms in half of all
studies in which nobody listens.)

Control units are affected too: with two labels, one is as far above the text's mean as the other is below, so judges
who follow the other label move away from their own. With K labels on a text the difference of slopes is up to K / (K
- 1) times the weight, and is divided by that. If judges would vote differently when asked again, the weight is too
small, by at most the same factor.

A blind first round and the control are required. Without them the table has only the slope, without a test.

`before_and_after` has every judge's verdicts in the first and the last round, before and after talking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parley.analysis.effects import ALL, Question, corrected
from parley.analysis.page.report import ReportContext, Section, section
from parley.analysis.say import stated
from parley.analysis.stats.paired import group_difference
from parley.analysis.stats.results import About, Estimate, Line
from parley.analysis.stats.tables import Floats, Ints, factorize, row_codes
from parley.base.text import signed
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.panel_data import PanelData, Verdicts, panel_data

Bools = NDArray[np.bool_]
VOTES = {"A": 1.0, "tie": 0.0, "B": -1.0}
NO_CONTROL = (
    "not tested: no unit heard ballots on another label, so listening cannot be told from opinions that judges share"
)
NOT_BLIND = "not tested: round 1 was not blind"
FOLLOWED = Question(
    name="contagion",
    ask="Do judges follow what they hear?",
    measures={"weight": "points moved per point of another's ballot"},
    cluster="unit",
    null=0.0,
    family=("model", "phase"),
    note="Another judge's first ballot may be higher than that judge's usual score for the text and the label. The "
    "slopes say how many points a judge moves for each point of this surplus. heard_slope: where the ballot was "
    "heard. control_slope: where ballots on another label were heard instead. estimate: their difference, divided by "
    "K / (K − 1) where a text has K labels. p: Welch's t over units.",
)


def before_and_after(data: PanelData, *, controls: bool = False) -> pd.DataFrame:
    """The judges' verdicts of each unit's first round, with columns `before` and `after` (that of its last round).

    A preference is a number: 1 for A, 0 for a tie, -1 for B. Units with a single round and verdicts that could not be
    read in both rounds are left out, and so is the chair, who speaks once.

    Args:
        data: The verdicts.
        controls: Whether to include units whose judges heard ballots on another label; their change is not an
            effect of talking.
    """
    both = data.shared("before and after", lambda: _before_and_after(data))
    return both if controls else both[heard_own(both)]


def heard_own(verdicts: pd.DataFrame) -> Bools:
    """Whether the judges of each row's unit heard each other, rather than ballots under another label."""
    if "heard" not in verdicts:
        return np.ones(len(verdicts), dtype=bool)
    heard = verdicts["heard"].astype(object).fillna("")
    heard_each_other: Bools = ((heard == "") | (heard == verdicts["identity"].astype(object))).to_numpy(dtype=bool)
    return heard_each_other


def with_control(verdicts: pd.DataFrame) -> Bools:
    """The rows to compare with the control: control units and their counterparts, if they have any.

    Then each text and label occurs equally often with its own ballots heard and with others'. Pairs have no
    control. In runs without such counterparts, controls were drawn among the units: all rows.
    """
    heard_each_other = heard_own(verdicts)
    names = "model", "phase", "scenario", "identity", "wording", "repeat"
    keys = [verdicts[name] for name in names if name in verdicts]
    groups = np.unique(row_codes(keys), return_inverse=True)[1] if len(verdicts) else np.zeros(0, dtype=np.int64)
    both = np.isin(groups, groups[heard_each_other]) & np.isin(groups, groups[~heard_each_other])
    return both if both.any() else np.ones(len(verdicts), dtype=bool)


def _before_and_after(data: PanelData) -> pd.DataFrame:
    judged = data.without_chair
    by_unit = judged.groupby("unit", observed=True)["round"]
    first, last = (by_unit.transform(end).to_numpy() for end in ("min", "max"))
    round = judged["round"].to_numpy()
    used = (first < last) & ((round == first) | (round == last))
    judged, is_first = judged[used], (round == first)[used]
    keys = row_codes([judged[name] for name in ("unit", "judge", "metric", "subject") if name in judged])
    values = as_numbers(judged)
    codes, place = np.unique(keys[is_first], return_index=True)
    later, later_place = np.unique(keys[~is_first], return_index=True)
    _, in_first, in_last = np.intersect1d(codes, later, assume_unique=True, return_indices=True)
    before, after = values[is_first][place[in_first]], values[~is_first][later_place[in_last]]
    read_twice = np.isfinite(before) & np.isfinite(after)
    rows = judged[is_first].iloc[place[in_first]][read_twice]
    return rows.assign(before=before[read_twice], after=after[read_twice])


def as_numbers(verdicts: pd.DataFrame) -> Floats:
    """Scores, and preferences as numbers; NaN if a reply is unreadable."""
    votes = verdicts["text"].astype(object).map(VOTES).to_numpy(dtype=float)
    numbers: Floats = np.where(
        (verdicts["metric"] == PREFERRED).to_numpy(), votes, verdicts["value"].to_numpy(dtype=float)
    )
    return numbers


def same_text(verdicts: pd.DataFrame) -> Ints:
    """A code for each text in its places: rows with the same code differ only in labels (and repeats)."""
    return row_codes(
        [verdicts[name] for name in ("scenario", "metric", "response_a", "response_b") if name in verdicts]
    )


def partners(groups: Ints) -> list[Ints]:
    """Up to ten other rows of each row's group, as lists of row numbers: list k has the k-th row after it, cyclically.

    Args:
        groups: The group of each row.

    Returns:
        Lists of as many numbers as there are rows; -1 if a group has too few rows.
    """
    order = np.argsort(groups, kind="stable")
    _, start, member, size = np.unique(groups[order], return_index=True, return_inverse=True, return_counts=True)
    place, size = np.arange(len(order)) - start[member], size[member]
    lists = []
    for shift in range(1, min(11, int(size.max()) if len(size) else 0)):
        other = np.full(len(order), -1, dtype=np.int64)
        other[order] = np.where(shift < size, order[start[member] + (place + shift) % size], -1)
        lists.append(other)
    return lists


def contagion(verdicts: Verdicts, *, blind: bool | None = None) -> list[Line]:
    """Points that others moved per point of a judge's first ballot, for all judges together and for each.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        blind: Whether round 1 was blind; if unknown, nothing is tested.
    """
    data = panel_data(verdicts)
    both = before_and_after(data, controls=True)
    both = both[with_control(both)]
    both = both[(both["phase"] == 1) == (both["metric"] != PREFERRED)]  # in pairs, the preference is the verdict
    lines: list[Line] = []
    for (model, phase), group in both.groupby(["model", "phase"], sort=True, observed=True):
        if group["judge"].nunique() > 1:
            sums = followed(group)
            for place, towards in enumerate([ALL, *sums.judges]):
                judges = slice(place - 1, place) if place else slice(None)
                line = replace(_weight(sums, judges, bool(blind)), secondary=place > 0)
                lines.append(about_units(line, data, str(model), int(phase), towards=towards))
    return corrected(lines, FOLLOWED.family)


def about_units(line: Line, data: PanelData, model: str, phase: int, **label: str) -> Line:
    """A line about units.

    Args:
        line: The line.
        data: The verdicts.
        model: The model.
        phase: 1 for single answers, 2 for pairs.
        label: The label's value, by the name of its column.
    """
    several = {"model": (model,)} if len(data.models) > 1 else {}
    return replace(
        line,
        about=About.of(model=model, phase=phase, **label),
        label=", ".join(label.values()),
        group=(f"phase {phase}", *([model] if several else [])),
        units={"phase": (str(phase),), **several},
        cluster="unit",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How judges moved with what each judge had said, summed by unit.

    Args:
        judges: The judges who were heard: the rows of both tables.
        units: The columns.
        heard_own: Whether a unit's judges heard each other, and not ballots on another label.
        products: The others' moves times the judge's unexpected score.
        squares: The squares of the latter, summed equally often.
        contrast: The factor by which the control can enlarge a difference of slopes.
    """

    judges: list[str]
    units: list[str]
    heard_own: Bools
    products: Floats
    squares: Floats
    contrast: float


def followed(verdicts: pd.DataFrame) -> Followed:
    """How judges moved with what they heard.

    Args:
        verdicts: The result of `before_and_after` with controls, for one model and phase.
    """
    judge, names = factorize(verdicts["judge"], sort=False)
    _, first, item = np.unique(
        row_codes([verdicts[name] for name in ("unit", "metric")]), return_index=True, return_inverse=True
    )
    items = verdicts.iloc[first]
    before, after = (np.full((len(items), len(names)), np.nan) for _ in range(2))
    before[item, judge], after[item, judge] = verdicts["before"], verdicts["after"]
    unit, units = factorize(items["unit"])
    heard_each_other = np.zeros(int(unit.max()) + 1, dtype=bool)
    heard_each_other[unit] = heard_own(items)
    shown = [items[name] for name in ("metric", "identity", "identity_a", "identity_b") if name in items]
    texts, labels = same_text(items), row_codes(shown)
    moves = after - before
    unexpected = np.stack([_unexpected(column, texts, labels) for column in before.T], axis=1)
    pairs = [(target, listener) for target in range(len(names)) for listener in range(len(names)) if target != listener]
    own_slope = _own_slope(moves, unexpected, pairs)
    products, squares = (np.zeros((len(names), len(heard_each_other))) for _ in range(2))
    for target, listener in pairs:
        moved = unexpected[:, target] * (moves[:, listener] - own_slope * unexpected[:, listener])
        finite = np.isfinite(moved)
        products[target] += np.bincount(unit[finite], moved[finite], minlength=len(heard_each_other))
        squares[target] += np.bincount(unit[finite], unexpected[finite, target] ** 2, minlength=len(heard_each_other))
    return Followed(
        judges=[str(name) for name in names],
        units=[str(name) for name in units],
        heard_own=heard_each_other,
        products=products,
        squares=squares,
        contrast=_largest_contrast(texts, labels),
    )


def weight_by_unit(sums: Followed, judges: slice = slice(None)) -> Floats:
    """Each unit's contribution; the weight is the mean of units whose own ballots were heard minus the mean of the
    others. Divided by the mean square over all units, which does not depend on the assignment; NaN if all scores were
    as expected.

    Args:
        sums: The units' sums.
        judges: Which rows of them.
    """
    products, squares = sums.products[judges].sum(axis=0), sums.squares[judges].sum(axis=0)
    counted = squares > 0
    return (
        np.where(counted, products / squares[counted].mean() / sums.contrast, np.nan)
        if counted.any()
        else products * np.nan
    )


def _own_slope(moves: Floats, unexpected: Floats, pairs: list[tuple[int, int]]) -> float:
    """Judges' movement per point of their own unexpected first ballot, given others' ballots, over all units.

    Regression to the mean is most of the noise in a move. The slope does not depend on which units are
    controls, so removing it changes nothing if nobody listens.
    """
    rows = np.concatenate([np.stack([moves[:, i], unexpected[:, i], unexpected[:, j]], axis=1) for j, i in pairs])
    rows = rows[np.isfinite(rows).all(axis=1)]
    return float(np.linalg.lstsq(rows[:, 1:], rows[:, 0], rcond=None)[0][0]) if len(rows) else 0.0


def _largest_contrast(texts: Ints, labels: Ints) -> float:
    """K / (K - 1) for K labels on a text: 2 for two labels, 10/9 for ten."""
    pairs = np.unique(np.stack([texts, labels]), axis=1)
    several = pairs.shape[1] / len(np.unique(texts))
    return several / (several - 1) if several > 1 else 1.0


def _weight(sums: Followed, judges: slice, blind: bool) -> Line:
    """The difference of the two slopes, without the control's contribution."""
    heard_each_other, products, squares = (
        sums.heard_own,
        sums.products[judges].sum(axis=0),
        sums.squares[judges].sum(axis=0),
    )
    heard, control = heard_each_other & (squares > 0), ~heard_each_other & (squares > 0)
    slopes = [
        float(products[part].sum() / squares[part].sum()) if part.any() else math.nan for part in (heard, control)
    ]
    also = {"heard_slope": slopes[0], "control_slope": slopes[1], "units": int(heard_each_other.sum())}
    values = weight_by_unit(sums, judges)
    line = against_control(values[heard], values[control], blind)
    return replace(line, measure="weight", also=also | {"control_units": int((~heard_each_other).sum())})


def against_control(heard: Floats, control: Floats, blind: bool) -> Line:
    """The increase in values if judges heard each other, or the reason why it is not tested.

    Args:
        heard: The values of units whose judges heard each other.
        control: The values of units whose judges heard ballots on another label.
        blind: Whether round 1 was blind.
    """
    if not blind or not len(control) or not len(heard):
        untested = Estimate(n=len(heard), clusters=len(heard), note=NO_CONTROL if blind else NOT_BLIND)
        return Line(result=untested, reference=0.0)
    return Line(result=group_difference(heard, control), reference=0.0)


def _unexpected(scores: Floats, texts: Ints, labels: Ints) -> Floats:
    """A judge's score minus its mean on the text and the label's average effect."""
    rest = scores - _group_means(scores, texts)
    return rest - _group_means(rest, labels)


def _group_means(values: Floats, groups: Ints) -> Floats:
    _, member = np.unique(groups, return_inverse=True)
    finite = np.isfinite(values)
    counts = np.bincount(member[finite], minlength=int(member.max()) + 1)
    sums = np.bincount(member[finite], values[finite], minlength=len(counts))
    means: Floats = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means[member]


def contagion_section(data: PanelData, context: ReportContext) -> Section:
    """The section on whether judges follow what they hear: a table, a plot, and a sentence if it is shown for all.

    Args:
        data: The debates.
        context: Data for the report.
    """
    lines = contagion(data, blind=context.blind)
    made = section(FOLLOWED, lines)
    (plot,) = made.forests
    words = [
        stated(
            prefix_of(line, data),
            f"judges {'follow' if line.estimate > 0 else 'move away from'} what they hear, compared with units that "
            f"did not hear it: {signed(line.estimate)} points per point of another's ballot",
            line,
            plot,
            "unit",
        )
        for line in lines
        if line.shown and not line.secondary
    ]
    return replace(made, words=words)


def prefix_of(line: Line, data: PanelData) -> str:
    """The model of a line, if there are several."""
    return line.about.model if len(data.models) > 1 else ""
