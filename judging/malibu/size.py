"""What a study of so many bases can show, before it is run: a table for --dry-run and `parley scenarios validate`.

print(*size_table([(8, 6)], "silent ballots"), sep="\\n")
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from parley.analysis.stats.results import ALPHA, clusters_to_reject
from parley.base.text import p_text
from parley.judging.malibu.plan import MARGIN

SPREADS = {"silent ballots": (0.043, 0.098), "debates": (0.42, 1.56)}
"""The smallest and the largest SD of a base's difference, of one judge: Qwen2.5-Coder-1.5B. They are those of the table
mde of `parley report --example`: silent ballots on 60 bases, and debates of one scenario per base (with ten: 0.42)."""
MOST_FLIPPED = 24
COLUMNS = ("bases", "tests", "smallest p", "bases that must agree", "points found", "bases for {:g}")


def size_table(designs: Sequence[tuple[int, int]], ballots: str, margin: float = MARGIN) -> Iterator[str]:
    """What each of some designs can show, one line each, below a heading.

    Args:
        designs: The bases and tests of each.
        ballots: "silent ballots" or "debates", whose spread is assumed.
        margin: The difference, in points, for which the last column has the number of bases.
    """
    rows = [[str(bases), str(tests), *_signs(bases, tests)] for bases, tests in designs]
    spread = SPREADS[ballots]
    if find_spec("scipy"):  # of the extra `analysis`
        rows = [row + _sizes(*design, spread, margin) for row, design in zip(rows, designs, strict=True)]
    titles = [title.format(margin) for title in COLUMNS[: len(rows[0])]]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for cells in (titles, *rows):
        yield "  " + "   ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    yield (
        f"  Points found: in 80% of studies, if bases vary as for Qwen2.5-Coder-1.5B ({ballots}: SD {spread[0]:.2g} to "
        f"{spread[1]:.2g}); your judge may vary more."
    )


def _signs(bases: int, tests: int) -> list[str]:
    """The smallest p after Holm's first step, and how many bases must agree for any finding."""
    least = clusters_to_reject(ALPHA, tests)
    p = min(1.0, tests * 2.0 ** (1 - bases))
    agree = "too few" if bases < least else "all" if bases == least else f"{least} or more"
    return [p_text(p).removeprefix("= "), agree if bases <= MOST_FLIPPED else "–"]


def _sizes(bases: int, tests: int, spread: tuple[float, float], margin: float) -> list[str]:
    """The differences found in 80% of studies, and the bases that find the margin."""
    from parley.analysis.stats.power import clusters_needed, detectable

    sizes = [detectable(bases, sd, tests=tests) for sd in spread]
    needed = dict.fromkeys(clusters_needed(margin, sd, tests=tests) for sd in spread)
    points = " to ".join(f"{size:.2f}" for size in sizes) if math.isfinite(sizes[0]) else "none"
    return [points, " to ".join(f"{count:,}" if count else "many" for count in needed)]
