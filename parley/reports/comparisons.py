"""Two runs of a study, or two models of one, compared on the same units: for `parley compare` and the viewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parley.agents import ConfigError
from parley.reports.making import LoadedRun, all_models, cautions
from parley.runs.studies import find_comparable

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.report import Report


def compare_sides(
    runs: Sequence[LoadedRun], first: pd.DataFrame, second: pd.DataFrame, names: tuple[str, str]
) -> Report:
    """First minus second on the units that both have, by the measures of their study.

    Args:
        runs: The runs that the two are from; of the same study.
        first: Verdicts of the first.
        second: Verdicts of the second.
        names: What to call the two.
    """
    from parley.analysis.reporting.compare import NothingShared, compare
    from parley.analysis.reporting.verdicts import MissingColumns

    if len({run.study for run in runs}) > 1:
        raise ConfigError("only runs of the same study can be compared")
    try:
        if comparable := find_comparable(runs[0].study):
            first, second = comparable(first), comparable(second)
        return compare(
            first,
            second,
            names,
            measures={name for measure in runs[0].measures for name in (measure.metric, measure.label)},
            runs=tuple(run.record() for run in runs),
            cautions=tuple(cautions(all_models(runs))),
        )
    except (NothingShared, MissingColumns) as error:
        raise ConfigError(str(error)) from None
