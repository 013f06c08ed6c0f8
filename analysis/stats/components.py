"""Variance components: how much of the spread of scores is due to bases, scenarios, judges, identities and the rest.

    parts = variance_components(
        frame["value"],
        {"base": frame["base"], "identity": frame["identity"]},
        [("base",), ("identity",), ("identity", "base")],
    )
    parts["identity × base"].variance

Henderson's first method (Biometrics 9, 1953, 226-252): for every term the sum over its cells of (sum of values)² / size
is set equal to its expectation, which is linear in the components. There is no iteration, rows are only counted and
summed, cells may be missing or of different sizes, and on balanced data the result is that of the analysis of variance.
Estimates are unbiased as they come; a negative one is set to 0, and its record keeps what it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from parley.analysis.stats.tables import Column, Floats, Ints, as_floats, factorize

RESIDUAL = "residual"
Factors = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponent:
    """One component. What the data do not give is NaN, and `note` says why.

    Args:
        name: The term: its factors, joined by " × ".
        variance: The estimate; 0 where it is negative.
        estimate: The estimate as it comes, which may be negative.
        levels: Number of cells of the term; of the residual, number of rows.
        includes: Terms that cannot be told apart from this one in these data, and are part of it.
        note: Why a number is missing, was set to 0, or includes other terms; "" otherwise.
    """

    name: str
    variance: float
    estimate: float
    levels: int
    includes: tuple[str, ...] = ()
    note: str = ""


def term_name(term: Sequence[str]) -> str:
    """The name of a term: its factors, joined by " × "."""
    return " × ".join(term)


def variance_components(
    values: Column, factors: Mapping[str, Column], terms: Sequence[Sequence[str]]
) -> dict[str, VarianceComponent]:
    """Estimate the variance of every term, and of what remains.

    Args:
        values: One value per row; rows where it is missing are left out.
        factors: Columns by name; rows where one is missing are left out. A factor may be nested in another.
        terms: The factors of each term, main effects first. A term whose cells are those of an earlier one, or the
            single rows, cannot be estimated apart from it and is included in it. All are taken as random.

    Returns:
        The components by name in the order of `terms`, the residual last.
    """
    y = as_floats(values)
    codes = {name: factorize(column)[0] for name, column in factors.items()}
    valid = np.isfinite(y)
    for code in codes.values():
        valid &= code >= 0
    cells = _Cells({name: code[valid] for name, code in codes.items()}, int(valid.sum()))
    y = y[valid]
    names = [term_name(term) for term in terms]
    kept, includes, notes = _estimable(cells, terms)
    known = _solve(y - y.mean(), cells, kept) if len(kept) + 2 <= len(y) else {}
    if not known:
        reason = "there are too few values" if len(y) <= len(kept) + 1 else "the terms cannot be told apart"
        notes = dict.fromkeys([*names, RESIDUAL], reason) | notes
    found: dict[str, VarianceComponent] = {}
    for name in [*names, RESIDUAL]:
        estimate = known.get(name, math.nan)
        note = notes.get(name, "")
        if name in includes:
            note = f"includes {', '.join(includes[name])}: these data cannot tell them apart"
        if estimate < 0:
            note = f"estimate {estimate:.2g}, set to 0" + (f"; {note}" if note else "")
        found[name] = VarianceComponent(
            name=name,
            variance=max(0.0, estimate) if math.isfinite(estimate) else math.nan,
            estimate=estimate,
            levels=len(y) if name == RESIDUAL else cells.count(kept.get(name, frozenset())) if name in kept else 0,
            includes=tuple(includes.get(name, ())),
            note=note,
        )
    return found


class _Cells:
    """The rows divided by any set of factors; every division is made once."""

    def __init__(self, codes: Mapping[str, Ints], rows: int) -> None:
        self.rows = rows
        self._divisions: dict[Factors, tuple[Ints, int]] = {frozenset(): (np.zeros(rows, dtype=np.int64), min(rows, 1))}
        for name, code in codes.items():
            distinct, dense = np.unique(code, return_inverse=True)
            self._divisions[frozenset({name})] = dense.astype(np.int64), len(distinct)
        self._within = {
            (inner, outer): self._nested(inner, outer) for inner in codes for outer in codes if inner != outer
        }

    def _nested(self, inner: str, outer: str) -> bool:
        """Whether every level of `inner` occurs in one level of `outer` only."""
        (fine, count), (coarse, _) = self._divisions[frozenset({inner})], self._divisions[frozenset({outer})]
        first = np.zeros(count, dtype=np.int64)
        first[fine] = coarse
        return bool(np.array_equal(first[fine], coarse))

    def reduced(self, factors: Factors) -> Factors:
        """The factors except those that contain a nested one, since they do not divide the rows further."""
        left = sorted(factors)
        for name in sorted(factors):
            if any(other != name and self._within[other, name] for other in left):
                left.remove(name)
        return frozenset(left)

    def of(self, factors: Factors) -> tuple[Ints, int]:
        """The cell of each row, and the number of cells."""
        factors = self.reduced(factors)
        if factors not in self._divisions:
            *others, last = sorted(factors)
            (code, count), (more, levels) = self.of(frozenset(others)), self._divisions[frozenset({last})]
            both = code * levels + more
            if count * levels <= max(4 * self.rows, 1000):  # counting is faster than hashing
                present = np.bincount(both, minlength=count * levels) > 0
                self._divisions[factors] = (np.cumsum(present) - 1)[both], int(present.sum())
            else:
                dense, distinct = pd.factorize(both)
                self._divisions[factors] = np.asarray(dense, dtype=np.int64), len(distinct)
        return self._divisions[factors]

    def count(self, factors: Factors) -> int:
        return self.of(factors)[1]

    def sizes(self, factors: Factors) -> Floats:
        code, count = self.of(factors)
        return np.bincount(code, minlength=count).astype(float)


def _estimable(
    cells: _Cells, terms: Sequence[Sequence[str]]
) -> tuple[dict[str, Factors], dict[str, list[str]], dict[str, str]]:
    """The terms that can be estimated, those that each of them includes, and why others cannot be."""
    kept: dict[str, Factors] = {}
    includes: dict[str, list[str]] = {}
    notes: dict[str, str] = {}
    for term in terms:
        name, factors = term_name(term), frozenset(term)
        single = [factor for factor in term if cells.count(frozenset({factor})) < 2]
        same = [other for other, division in kept.items() if _same(cells, factors, division)]
        if single:
            notes[name] = f"only one {single[0]}"
        elif same:
            includes.setdefault(same[0], []).append(name)
            notes[name] = f"included in {same[0]}"
        else:
            kept[name] = factors
    for name, factors in kept.items():
        if cells.count(factors) == cells.rows:  # the cells are the single rows: at most one term is left here
            includes.setdefault(name, []).append(RESIDUAL)
            notes[RESIDUAL] = f"included in {name}"
    return kept, includes, notes


def _same(cells: _Cells, first: Factors, second: Factors) -> bool:
    return cells.count(first) == cells.count(second) == cells.count(first | second)


def _solve(y: Floats, cells: _Cells, kept: Mapping[str, Factors]) -> dict[str, float]:
    """Henderson's equations; {} where they have no single solution. `y` is centred, so that no digits are lost."""
    divisions = {"": frozenset[str](), **kept}
    totals, coefficients = [], []
    for factors in divisions.values():
        code, count = cells.of(factors)
        sizes = cells.sizes(factors)
        totals.append(float((np.bincount(code, y, minlength=count) ** 2 / sizes).sum()))
        row = [float(cells.rows)]
        for other in kept.values():
            both = factors | other
            fine, fine_count = cells.of(both)
            own = np.zeros(fine_count, dtype=np.int64)
            own[fine] = code  # the cell of this term that each cell of both lies in
            row.append(float((cells.sizes(both) ** 2 / sizes[own]).sum()))
        coefficients.append([*row, float(count)])
    totals.append(float(y @ y))
    coefficients.append([float(cells.rows)] * (len(kept) + 2))
    matrix, right = np.array(coefficients), np.array(totals)
    names = [*kept, RESIDUAL]
    if any(cells.count(factors) == cells.rows for factors in kept.values()):  # a term of single rows is the residual
        matrix, right, names = matrix[:-1, :-1], right[:-1], names[:-1]
    if np.linalg.matrix_rank(matrix) < len(matrix):
        return {}
    solution = np.linalg.solve(matrix, right)
    return dict(zip(names, (float(value) for value in solution[1:]), strict=True))
