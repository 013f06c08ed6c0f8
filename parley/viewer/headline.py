"""What a run found, for the viewer's pages: the report that `parley report` writes by default, as data.

Cautions, sentences, forest plots and figures are the report's own, with the same draws and seed, so that a p-value is
the same wherever it is shown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.agents import ParleyError
from parley.comparisons import compare_sides
from parley.reports import cautions, load_run, make_report
from parley.runs import RunFile

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.forest import Forest
    from parley.analysis.reporting.report import Report

MAX_VERDICTS = 4_000_000
"""With more verdicts than this, the report takes too long for a page."""


def headline(file: RunFile) -> dict[str, Any]:
    """Cautions, sentences, forest plots, names and captions of the figures, and the largest estimate of the first plot.

    Figures also have their picture, as SVG. Without a report, "unavailable" gives the reason.
    """
    page: dict[str, Any] = {"cautions": cautions(file.info()["models"])}
    if file.counts()["done"] == 0:
        return {**page, "unavailable": "no unit is done yet"}
    verdicts = file.rows("SELECT count(*) FROM verdicts")[1][0][0]
    if verdicts == 0:
        return {**page, "unavailable": "this run has no verdicts"}
    if verdicts > MAX_VERDICTS:
        return {**page, "unavailable": "this run is too large for figures here: use parley report"}
    try:
        report = make_report([file.path])
    except (ParleyError, ValueError) as error:
        return {**page, "unavailable": str(error)}
    from parley.analysis.reporting.report import json_values

    forests = report.forests or tuple(_malibu_forests(report))
    plots = [json_values(asdict(forest)) for forest in forests if forest.estimates]
    page |= {"cautions": list(report.cautions), "sentences": list(report.words), "forests": plots}
    page["figures"] = _pictures(report)
    page["largest"] = next(
        filter(None, (largest_estimate(plot) for plot in plots if plot["reference"] is not None)), None
    )
    return page


def comparison(path: Path, other: Path) -> dict[str, Any]:
    """The other run minus the first on the units that both have, as `parley compare OTHER RUN` gives it.

    Args:
        path: the first run.
        other: the run that is compared with it.
    """
    from parley.analysis.reporting.report import json_values

    try:
        runs = [load_run(file) for file in (other, path)]
        names = (other.name, path.name) if other.name != path.name else (str(other), str(path))
        report = compare_sides(runs, runs[0].verdicts, runs[1].verdicts, names)
    except (ParleyError, ValueError) as error:
        return {"unavailable": str(error)}
    rows = json_values(report.table("comparison"))
    forests = [json_values(asdict(forest)) for forest in report.forests] or list(_comparison_forests(rows, names))
    return {"cautions": list(report.cautions), "sentences": list(report.words), "rows": rows, "forests": forests}


def _comparison_forests(rows: list[dict[str, Any]], names: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """One plot for each family of comparisons, the gaps between identities first."""
    families = sorted({row["family"] for row in rows}, key=lambda family: not family.startswith("gaps"))
    for family in families:
        own = [row for row in rows if row["family"] == family and row["difference"] is not None]
        lines = [
            {**{key: row[key] for key in ("low", "high")}, "label": row["what"], "value": row["difference"],
             "p": row["p_adjusted"], "group": "", "n": row["n"], "units": {}}
            for row in own
        ]  # fmt: skip
        yield {
            "name": family.replace(" ", "-"),
            "question": f"{family[0].upper()}{family[1:]}: do the two differ?",
            "axis": f"{names[0]} minus {names[1]}",
            "estimates": lines,
            "reference": 0.0,
            "scale": "points",
            "note": "95% intervals and p-values from sign flips over clusters; p-values adjusted by Holm.",
        }


def _pictures(report: Report) -> list[dict[str, str]]:
    from parley.analysis.reporting.figures import save

    pictures = []
    with tempfile.TemporaryDirectory() as folder:
        for figure in report.figures:
            (path,) = save(figure.draw(), Path(folder) / "figure", formats=("svg",))
            picture = path.read_text("utf-8")
            pictures.append({"name": figure.name, "caption": figure.caption, "svg": picture})
    return pictures


def _malibu_forests(report: Report) -> list[Forest]:
    """Means, differences and win rates, where the report has these tables and no plots of its own."""
    from parley.analysis.reporting.forest import Estimate, Forest

    tables = {table.name: table.frame for table in report.tables}
    if not {"means", "differences", "win_rates"} <= set(tables):
        return []

    def lines(rows: pd.DataFrame, value: str, ends: tuple[str, str], label: Any, units: Any) -> tuple[Estimate, ...]:
        known = rows[rows[value].notna()] if len(rows) else rows
        return tuple(
            Estimate(
                label=label(row),
                value=row[value],
                low=row[ends[0]],
                high=row[ends[1]],
                p=row.get("p_adjusted"),
                group=row["category"],
                units=units(row),
            )
            for row in known.to_dict("records")
        )

    differences, means, rates = (tables[name] for name in ("differences", "means", "win_rates"))
    if len(differences):
        differences = differences[(differences["metric"] == "all") & differences["within"].astype(bool)]
    means = means[means["metric"] == "all"] if len(means) else means
    own, points = (lambda row: str(row["identity"])), "points of 10"
    return [
        Forest(
            "differences",
            "Do scores depend on the identity?",
            f"difference in score ({points})",
            lines(
                differences,
                "difference",
                ("low", "high"),
                lambda row: f"{row['first']} − {row['second']}",
                lambda row: {"identity": (row["first"], row["second"])},
            ),
            note="95% intervals, unadjusted; p-values adjusted by Holm.",
        ),
        Forest(
            "means",
            "How does each identity score?",
            f"mean score ({points})",
            lines(means, "mean", ("low", "high"), own, lambda row: {"identity": (row["identity"],)}),
            reference=None,
        ),
        Forest(
            "win_rates",
            "How often does each identity win?",
            "win rate (without ties)",
            lines(rates, "rate", ("cluster_low", "cluster_high"), own, lambda row: {"identity": (row["identity"],)}),
            reference=0.5,
            scale="share",
        ),
    ]


def largest_estimate(forest: dict[str, Any]) -> dict[str, Any] | None:
    """The line of the runs page: the estimate furthest from the reference, of those with an interval.

    A difference without one, as from a run that was stopped early, may be anything.
    """
    known = [line for line in forest["estimates"] if line["low"] is not None and line["high"] is not None]
    if not known:
        return None
    line = max(known, key=lambda line: abs(line["value"] - forest["reference"]))
    return {
        **{key: line[key] for key in ("label", "value", "low", "high", "p")},
        "axis": forest["axis"],
        "scale": forest["scale"],
        "reference": forest["reference"],
        "question": forest["question"],
        "count": len(forest["estimates"]),
    }
