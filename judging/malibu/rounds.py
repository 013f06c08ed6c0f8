"""Every judge's verdicts in the first and the last round: what it thought before and after talking."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parley.analysis.stats.tables import Floats, Ints, row_codes
from parley.judging.malibu.panel_data import PanelData

Bools = NDArray[np.bool_]

VOTES = {"A": 1.0, "tie": 0.0, "B": -1.0}


def before_and_after(data: PanelData, *, controls: bool = False) -> pd.DataFrame:
    """The judges' verdicts of each unit's first round, with columns `before` and `after` (that of its last round).

    A preference is a number: 1 for A, 0 for a tie, -1 for B. Units with a single round and verdicts that could not be
    read in both rounds are left out, and so is the chair, who speaks once.

    Args:
        data: The verdicts.
        controls: Whether units whose judges heard ballots on another label are included: what they changed is not
            what talking changes.
    """
    both = data.shared("before and after", lambda: _before_and_after(data))
    return both if controls else both[heard_own(both)]


def heard_own(verdicts: pd.DataFrame) -> Bools:
    """Whether the judges of each row's unit heard each other, and not ballots on the same text under another label."""
    if "heard" not in verdicts:
        return np.ones(len(verdicts), dtype=bool)
    heard = verdicts["heard"].astype(object).fillna("")
    own: Bools = ((heard == "") | (heard == verdicts["identity"].astype(object))).to_numpy(dtype=bool)
    return own


def with_control(verdicts: pd.DataFrame) -> Bools:
    """The rows to compare with the control: where control units stand beside others, those and their counterparts.

    Then every text and label is there as often with its own ballots heard as with others'. Pairs have no
    control. In runs without such counterparts, controls were drawn among the units: all rows.
    """
    own = heard_own(verdicts)
    names = "model", "phase", "scenario", "identity", "wording", "repeat"
    keys = [verdicts[name] for name in names if name in verdicts]
    groups = np.unique(row_codes(keys), return_inverse=True)[1] if len(verdicts) else np.zeros(0, dtype=np.int64)
    both = np.isin(groups, groups[own]) & np.isin(groups, groups[~own])
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
    known = np.isfinite(before) & np.isfinite(after)
    rows = judged[is_first].iloc[place[in_first]][known]
    return rows.assign(before=before[known], after=after[known])


def as_numbers(verdicts: pd.DataFrame) -> Floats:
    """Scores, and preferences as numbers; NaN where a reply could not be read."""
    votes = verdicts["text"].astype(object).map(VOTES).to_numpy(dtype=float)
    numbers: Floats = np.where(
        (verdicts["metric"] == "preferred").to_numpy(), votes, verdicts["value"].to_numpy(dtype=float)
    )
    return numbers


def same_text(verdicts: pd.DataFrame) -> Ints:
    """The same code for rows on the same text, shown in the same places: they differ in labels (and repeats) only."""
    return row_codes(
        [verdicts[name] for name in ("scenario", "metric", "response_a", "response_b") if name in verdicts]
    )


def same_labels(verdicts: pd.DataFrame) -> Ints:
    """The same code for rows with the same labels in the same places, on the same metric."""
    return row_codes(
        [verdicts[name] for name in ("metric", "identity", "identity_a", "identity_b") if name in verdicts]
    )


def partners(groups: Ints) -> list[Ints]:
    """Up to ten other rows of each row's group, as lists of row numbers: list k has the k-th row after it, cyclically.

    Args:
        groups: The group of each row.

    Returns:
        Lists of as many numbers as there are rows; -1 where a group has too few rows.
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
