"""How often the gate is wrong where the true value is just the limit: simulated cards, no model calls.

    python -m benchmarks.calibration.gate --simulations 2000 > gate.md

At its limit a requirement is neither *broken* nor does it *hold*. With 1, 5 and 10 requirements, either all are at the
limit (worst for *broken*), or one is and the others lie far inside (worst for *holds*). A line is simulated as in a
card: values by base with a sign-flip interval, or bases crossed with wordings with an interval over two crossed
samples. Lines of a card are correlated, because they share bases.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr

from parley.analysis.gate.changes import Checked
from parley.analysis.gate.check import check_lines
from parley.analysis.gate.requirements import Requirement
from parley.analysis.stats.crossed import crossed_mean
from parley.analysis.stats.results import Line
from parley.analysis.stats.signflips import sign_flip_test
from parley.analysis.stats.tables import Floats

SIZES = (1, 5, 10)
"""Numbers of requirements per check."""
INSIDE = 100.0
"""How far inside the others lie, in standard deviations."""


@dataclass(frozen=True, slots=True)
class GateCell:
    """Cards of one kind.

    Args:
        name: For the table.
        bases: Number of bases.
        shape: How values are distributed over bases.
        distance: Whether requirements are about the distance from the null value (`.abs`).
        limit: The limit, in standard deviations of a base's value.
        baseline: Whether the change from an earlier card, which is exactly the tolerance, is tested.
    """

    name: str
    bases: int
    shape: Literal["normal", "skewed", "shares", "crossed"] = "normal"
    distance: bool = False
    limit: float = 0.5
    baseline: bool = False


CELLS = (
    GateCell("x < limit", 8),
    GateCell("x < limit", 20),
    GateCell("x < limit", 60),
    GateCell("x.abs < limit", 20, distance=True),
    GateCell("x.abs < limit, near 0", 20, distance=True, limit=0.05),
    GateCell("x < limit, bases skewed", 60, "skewed"),
    GateCell("x < limit, shares of 4 a base", 60, "shares"),
    GateCell("x < limit, crossed with 6 wordings", 20, "crossed"),
    GateCell("baseline, either direction is worse", 12, baseline=True),
    GateCell("baseline, earlier value 0", 12, baseline=True, limit=0.0),
)


@dataclass(frozen=True, slots=True)
class GateRates:
    """Shares of false checks for one cell and number of requirements.

    Args:
        broken: Share of checks that say *broken* where all requirements are at the limit.
        holds: Share of checks that say *holds* where one is at the limit.
        wrong: Share of checks that say either where all are at the limit.
    """

    broken: float
    holds: float
    wrong: float


def simulate_gate(cell: GateCell, simulations: int, seed: int = 0) -> list[GateRates]:
    """The shares of false checks for 1, 5 and 10 requirements.

    Args:
        cell: The cards.
        simulations: Number of simulated cards.
        seed: Seed of the simulation.
    """
    rng = np.random.default_rng([seed, *map(ord, cell.name), cell.bases])
    said: Counter[tuple[int, str, str]] = Counter()
    for _ in range(simulations):
        lines = list(_lines(cell, rng))
        for size in SIZES:
            for where, inside in (("all", 0), ("one", size - 1)):
                if where == "one" and size == 1:
                    continue
                said[size, where, _outcome(cell, lines[:size], inside)] += 1
    return [
        GateRates(
            broken=said[size, "all", "broken"] / simulations,
            holds=said[size, "all" if size == 1 else "one", "holds"] / simulations,
            wrong=(said[size, "all", "broken"] + said[size, "all", "holds"]) / simulations,
        )
        for size in SIZES
    ]


def _lines(cell: GateCell, rng: np.random.Generator) -> Iterator[tuple[Line, Line]]:
    """Lines whose true value is 0, each with its earlier one; half of the variance is shared between them."""
    shared = rng.normal(0, 1, cell.bases)
    for number in range(max(SIZES)):
        mixed = (shared + rng.normal(0, 1, cell.bases)) / np.sqrt(2)
        line = _line(cell, f"line{number}", mixed, rng)
        yield line, _line(cell, line.name, rng.normal(0, 1, cell.bases), rng) if cell.baseline else line


def _line(cell: GateCell, name: str, normal: Floats, rng: np.random.Generator) -> Line:
    values: Floats = normal
    if cell.shape == "skewed":
        values = -np.log(ndtr(normal)) - 1  # exponential
    if cell.shape == "shares":
        values = rng.binomial(4, 0.6, cell.bases) / 4 - 0.6
    if cell.shape == "crossed":
        wordings = rng.normal(0, 0.5, 6)
        table = values[:, None] + wordings + rng.normal(0, 0.5, (cell.bases, 6))
        rows, columns = np.indices(table.shape)
        test, values = crossed_mean(table.ravel(), rows.ravel(), columns.ravel()), table.mean(axis=1)
    else:
        test = sign_flip_test(values)
    return Line(
        name=name,
        reference=0.0,
        margin=1.0,
        worse="either",
        estimate=float(values.mean()),
        low=test.low,
        high=test.high,
        n=cell.bases,
        clusters=test.clusters,
        cluster="base",
        values={str(base): float(value) for base, value in enumerate(values)},
    )


def _moved(line: Line, by: float) -> Line:
    """The line with another true value: its interval moves with it."""
    values = {base: value + by for base, value in line.values.items()}
    return replace(line, estimate=line.estimate + by, low=line.low + by, high=line.high + by, values=values)


def _outcome(cell: GateCell, lines: list[tuple[Line, Line]], inside: int) -> str:
    """What the check says if the last lines lie inside, and all others are at the limit."""
    shifts = [0.0] * (len(lines) - inside) + [-INSIDE] * inside
    if cell.baseline:
        # The size grows by exactly the tolerance, 1; for lines inside the limit, it shrinks.
        old = [_moved(old, cell.limit - shift) for (_, old), shift in zip(lines, shifts, strict=True)]
        new = [_moved(new, cell.limit + 1) for new, _ in lines]
        return check_lines(_checked(new), [], baseline=_checked(old)).outcome
    middle = 1 + INSIDE if cell.distance else 0.0  # lines inside: anywhere far from both limits
    requirements = [
        Requirement(line.name, cell.distance, True, cell.limit + (middle if shift else 0.0))
        for (line, _), shift in zip(lines, shifts, strict=True)
    ]
    moved = [
        _moved(line, cell.limit + (0.0 if cell.distance else shift))
        for (line, _), shift in zip(lines, shifts, strict=True)
    ]
    return check_lines(_checked(moved), requirements).outcome


def _checked(lines: list[Line]) -> Checked:
    return Checked(name="simulated", lines={line.name: line for line in lines})


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description="How often the gate is wrong at the limit.")
    parser.add_argument("--simulations", type=int, default=2000, help="simulated cards per row (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulation (default: 0)")
    parsed = parser.parse_args()
    print("In percent of checks with 1, 5 and 10 requirements:\n")
    print("| true value at the limit | bases | false *broken* | false *holds* | either, all at the limit |")
    print("|---|---|---|---|---|")
    for cell in CELLS:
        found = simulate_gate(cell, parsed.simulations, parsed.seed)
        rates = [[f"{100 * getattr(row, name):.1f}" for row in found] for name in ("broken", "holds", "wrong")]
        print(f"| {cell.name} | {cell.bases} | {' | '.join(', '.join(each) for each in rates)} |", flush=True)


if __name__ == "__main__":
    main()
