"""What comes out of runs: reports and comparisons for people here, datasets and logs for other tools in `export`."""

from parley.reports.making import LoadedRun, cautions, load_run, make_report

__all__ = ["LoadedRun", "cautions", "load_run", "make_report"]
