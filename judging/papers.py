"""The papers whose claims Parley knows, each with its file of claims and its printed tables.

A study's values for them are made by the function that its class names as `claims`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from parley.analysis.claims.claim import Paper, read_paper
from parley.base.plugins import load_object


class Source(NamedTuple):
    """Where a paper's claims are: its file below `judging`, and the function that reads its printed tables."""

    file: str
    printed: str


PAPERS: Mapping[str, Source] = {
    "malibu": Source("malibu/claims.toml", "parley.judging.malibu.claims:printed"),
    "malibu-a3": Source("malibu/claims_a3.toml", "parley.judging.malibu.claims:printed"),
    "mabrf": Source("bbq/mabrf/claims.toml", "parley.judging.bbq.mabrf.claims:printed"),
    "rldf": Source("rldf/claims.toml", "parley.judging.rldf.claims:printed"),
    "stardtox": Source("stardtox/claims.toml", "parley.judging.stardtox.claims:printed"),
}


def paper(name: str) -> Paper:
    """A paper's claims.

    Args:
        name: The paper's name in PAPERS.
    """
    return read_paper(Path(str(files("parley.judging").joinpath(PAPERS[name].file))))


def printed(name: str) -> pd.DataFrame:
    """The values of a paper's tables, with the columns `parley.analysis.claims.rule.PRINTED`.

    Args:
        name: The paper's name in PAPERS.
    """
    read = load_object(PAPERS[name].printed)
    assert read is not None
    frame: pd.DataFrame = read()
    return frame
