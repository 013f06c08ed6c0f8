"""Outputs of runs: reports and comparisons here, datasets and logs for other tools in `export`."""

from typing import TYPE_CHECKING

from parley.base.lazy import import_on_first_use
from parley.reports.cautions import cautions

if TYPE_CHECKING:  # imported when first used: these load pandas and matplotlib
    from parley.reports.loading import LoadedRun, load_run
    from parley.reports.making import compare_runs, make_report
else:
    __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "parley.reports.loading": ("LoadedRun", "load_run"),
            "parley.reports.making": ("compare_runs", "make_report"),
        },
    )

__all__ = ["LoadedRun", "cautions", "compare_runs", "load_run", "make_report"]
