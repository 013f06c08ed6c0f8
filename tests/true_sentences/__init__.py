"""How often are the sentences of a report false? Simulators that know the truth, one `Cell` a sentence and setting.

They are written from what a sentence claims, not from the code that prints it. Each simulates data of which the truth
is known, has the product analyse them, and says whether the sentence came out wrong.

    python -m tests.true_sentences --simulations 400 --jobs 16       # writes tests/TRUE_SENTENCES.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A sentence in one setting, and how often it may fail.

    Args:
        sentence: What is claimed, or what the interval is of.
        setting: What is true in the simulated data.
        trial: Simulates one study and says whether the sentence failed; None where it rightly said nothing.
        limit: The largest share of failures that is acceptable.
        before: What was measured before the sentence was corrected.
    """

    sentence: str
    setting: str
    trial: Callable[[np.random.Generator], bool | None]
    limit: float
    before: str = ""


def cells(
    sentence: str,
    setting: str,
    trial: Callable[..., bool | None],
    *rows: Mapping[str, Any],
    limit: float = 0.07,
    before: str = "",
) -> list[Cell]:
    """A cell for each row, which has arguments of the trial; the setting names them.

    A row's own `limit` and `before` stand in place of those of all rows, and its `words` are of the setting alone.
    """
    shared = {"limit": limit, "before": before, "words": ""}
    return [
        Cell(
            sentence=sentence,
            setting=setting.format(**shared | row),
            trial=partial(trial, **{name: value for name, value in row.items() if name not in shared}),
            limit=row.get("limit", limit),
            before=row.get("before", before),
        )
        for row in rows or ({},)
    ]


def verdicts(frame: pd.DataFrame, **more: Any) -> pd.DataFrame:
    """The table with all columns of verdicts of one judge, whose scenarios are their bases, where it lacks them."""
    usual = {"phase": 1, "judge": "Ann", "role": "debater", "round": 1, "metric": "Overall", "status": "ok"}
    usual |= {"text": None, "model": "m", "control": "", "repeat": 0, "subject": "", "scenario": frame["base"]}
    return frame.assign(**{name: value for name, value in usual.items() if name not in frame} | more)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How often a cell's sentence failed.

    Args:
        failures: Studies in which it did.
        spoken: Studies in which it was said.
        studies: All simulated studies.
    """

    failures: int
    spoken: int
    studies: int

    @property
    def rate(self) -> float:
        return self.failures / self.spoken if self.spoken else 0.0

    def above(self, limit: float, doubt: float = 1e-3) -> bool:
        """Whether so many failures would hardly occur if the rate were the limit."""
        return bool(stats.binom.sf(self.failures - 1, self.spoken, limit) < doubt)


def simulate(cell: Cell, studies: Sequence[int], seed: int = 0) -> list[bool | None]:
    """The outcomes of some of a cell's studies. Each has a generator of its own, so any process may simulate it."""
    return [cell.trial(np.random.default_rng([seed, study])) for study in studies]


def counted(drawn: Sequence[bool | None]) -> Outcome:
    """The rate of failures among the studies that said the sentence."""
    spoken = [failed for failed in drawn if failed is not None]
    return Outcome(sum(spoken), len(spoken), len(drawn))


def measure(cell: Cell, simulations: int, seed: int = 0) -> Outcome:
    """Simulate a cell's study this often."""
    return counted(simulate(cell, range(simulations), seed))


@cache
def all_cells() -> list[Cell]:
    """The cells of all modules of this folder, in the order of their names."""
    from importlib import import_module
    from pathlib import Path

    names = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    return [cell for name in names for cell in import_module(f"{__name__}.{name}").CELLS]
