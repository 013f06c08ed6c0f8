"""The report's own figures for the viewer's pages: the same report that `parley report` writes, with fewer draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parley.agents import ParleyError
from parley.reports import cautions, make_report
from parley.runs import RunFile

if TYPE_CHECKING:
    from parley.analysis.reporting.report import Report

LARGE = 4_000_000
"""Verdicts beyond which the figures are left to `parley report`."""
DRAWS = 400


def headline(file: RunFile) -> dict[str, Any]:
    """Cautions and sentences; mean scores and differences between identities over all metrics; win rates."""
    found: dict[str, Any] = {"cautions": cautions(file.info()["models"])}
    if file.counts()["done"] == 0:
        return {**found, "why_none": "no unit is finished yet"}
    verdicts = file.rows("SELECT count(*) FROM verdicts")[1][0][0]
    if verdicts == 0:
        return {**found, "why_none": "nothing was scored in it"}
    if verdicts > LARGE:
        return {**found, "why_none": "the run is large: parley report gives its figures"}
    try:
        report = make_report([file.path], draws=DRAWS)
    except (ParleyError, ValueError) as error:
        return {**found, "why_none": str(error)}
    found["in_words"] = list(report.words)
    tables = {table.name for table in report.tables}
    if "means" in tables and "differences" in tables:
        scores = _overall(_renamed(report, "means", {"mean": "estimate"}))
        gaps = _overall(_renamed(report, "differences", {"difference": "estimate", "p_adjusted": "p_holm"}))
        if scores:
            found |= {"scores": scores, "differences": [row for row in gaps if row.get("within", True)]}
    if "win_rates" in tables:
        wins = _renamed(report, "win_rates", {"rate": "estimate"})
        found["win_rates"] = [{**row, "low": row["cluster_low"], "high": row["cluster_high"]} for row in wins]
    found["in_short"] = _in_short(found)
    return found


def _renamed(report: Report, table: str, names: dict[str, str]) -> list[dict[str, Any]]:
    from parley.analysis.reporting.report import json_values

    rows: list[dict[str, Any]] = json_values(report.table(table).rename(columns=names))
    return rows


def _overall(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows over all metrics, or those of the last round's only metric; none where metrics stand side by side."""
    if any(row.get("metric", "all") == "all" for row in rows):
        return [row for row in rows if row.get("metric", "all") == "all"]
    if len({row["metric"] for row in rows}) != 1:
        return []
    last = max(row.get("round", 0) for row in rows)
    return [{**row, "metric": "all"} for row in rows if row.get("round", 0) == last]


def _in_short(found: dict[str, Any]) -> dict[str, Any] | None:
    """The one line of the runs page: the difference (or win rate) furthest from nothing, with its interval."""
    gaps = [row for row in found.get("differences", ()) if row["estimate"] is not None]
    if gaps:
        row = max(gaps, key=lambda one: abs(one["estimate"]))
        return {
            "what": f"{row['first']} − {row['second']}",
            "unit": "points",
            "of": len(gaps),
            **{key: row[key] for key in ("estimate", "low", "high")},
            "p_holm": row.get("p_holm"),
        }
    rates = [row for row in found.get("win_rates", ()) if row["estimate"] is not None]
    if rates:
        row = max(rates, key=lambda one: abs(one["estimate"] - 0.5))
        values = {key: row[key] for key in ("estimate", "low", "high")}
        return {"what": f"{row['identity']} wins", "unit": "share", "of": len(rates), **values, "p_holm": None}
    return None
