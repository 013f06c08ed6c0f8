"""A paper's printed numbers, kept as text files beside the report that shows them next to ours.

The first line that is no comment names the columns: what a row is about, then the columns of numbers; `-` is a number
that the paper does not print.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd


def read_published(path: Path, about: Sequence[str], columns: str = "measure") -> pd.DataFrame:
    """The numbers of a file, one row each: what it is about, and the number as `paper`.

    Args:
        path: The file.
        about: The columns that say what a row is about.
        columns: What the columns of numbers are.
    """
    printed = pd.read_csv(path, sep=" ", na_values="-", comment="#")
    return printed.melt(id_vars=list(about), var_name=columns, value_name="paper").dropna(ignore_index=True)
