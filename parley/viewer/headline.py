"""The report's figures for the viewer's pages: the report that `parley report` writes, with fewer bootstrap draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parley.agents import ParleyError
from parley.reports import cautions, make_report
from parley.runs import RunFile

if TYPE_CHECKING:
    from parley.analysis.reporting.report import Report

MAX_VERDICTS = 4_000_000
"""With more verdicts than this, the report takes too long for a page."""
DRAWS = 400


def headline(file: RunFile) -> dict[str, Any]:
    """Cautions, the report's sentences, mean scores and differences over all metrics, win rates.

    Without figures, "unavailable" gives the reason.
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
        report = make_report([file.path], draws=DRAWS)
    except (ParleyError, ValueError) as error:
        return {**page, "unavailable": str(error)}
    page |= {"cautions": list(report.cautions), "sentences": list(report.words)}
    tables = {table.name for table in report.tables}
    if "means" in tables and "differences" in tables:
        scores = _overall(_rows(report, "means", {"mean": "estimate"}))
        differences = _overall(_rows(report, "differences", {"difference": "estimate", "p_adjusted": "p_holm"}))
        if scores:
            page |= {"scores": scores, "differences": [row for row in differences if row.get("within", True)]}
    if "win_rates" in tables:
        rates = _rows(report, "win_rates", {"rate": "estimate"})
        if rates:
            page["win_rates"] = [{**row, "low": row["cluster_low"], "high": row["cluster_high"]} for row in rates]
    page["largest"] = _largest(page)
    return page


def _rows(report: Report, table: str, names: dict[str, str]) -> list[dict[str, Any]]:
    from parley.analysis.reporting.report import json_values

    rows: list[dict[str, Any]] = json_values(report.table(table).rename(columns=names))
    return rows


def _overall(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows over all metrics, or the last round's if there is one metric; none if several have no overall row."""
    if any(row.get("metric", "all") == "all" for row in rows):
        return [row for row in rows if row.get("metric", "all") == "all"]
    if len({row["metric"] for row in rows}) != 1:
        return []
    last = max(row.get("round", 0) for row in rows)
    return [{**row, "metric": "all"} for row in rows if row.get("round", 0) == last]


def _largest(page: dict[str, Any]) -> dict[str, Any] | None:
    """The figure on the runs page: the largest difference, or the win rate furthest from one half."""
    differences = [row for row in page.get("differences", ()) if row["estimate"] is not None]
    if differences:
        row = max(differences, key=lambda row: abs(row["estimate"]))
        return {
            "label": f"{row['first']} − {row['second']}",
            "unit": "points",
            "count": len(differences),
            **{key: row[key] for key in ("estimate", "low", "high")},
            "p_holm": row.get("p_holm"),
        }
    rates = [row for row in page.get("win_rates", ()) if row["estimate"] is not None]
    if rates:
        row = max(rates, key=lambda row: abs(row["estimate"] - 0.5))
        values = {key: row[key] for key in ("estimate", "low", "high")}
        return {"label": f"{row['identity']} wins", "unit": "share", "count": len(rates), **values, "p_holm": None}
    return None
