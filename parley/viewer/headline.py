"""The report's own figures for the viewer's pages. The one file here that knows a study by name.

For a study without a report there are none, and the page says so.
"""

from __future__ import annotations

import json
import math
from typing import Any

from parley.runs import RunFile

LARGE = 4_000_000
"""Verdicts beyond which the figures are left to `parley report`."""

_NEEDED = """
SELECT v.unit, u.facets, v.judge, v.role, v.round, v.subject, v.metric, v.value, v.sampled, v.text, v.status
FROM verdicts v JOIN units u ON u.id = v.unit
WHERE u.status = 'done' AND (v.subject = '' OR v.metric = 'preferred') ORDER BY u.position, v.nth
"""
# Scores within pairs are in none of the figures, and are most of a large run's verdicts.


def headline(file: RunFile) -> dict[str, Any]:
    """Cautions, and for MALIBU mean scores, differences within a category, win rates and sentences."""
    info = file.info()
    found: dict[str, Any] = {"cautions": _cautions(info["models"])}
    if info["study"] != "malibu":
        return {**found, "why_none": f"there is no report for the study '{info['study']}' yet"}
    if file.counts()["done"] == 0:
        return {**found, "why_none": "no unit is finished yet"}
    try:
        import pandas as pd

        from analysis import malibu
    except ModuleNotFoundError:
        return {**found, "why_none": "figures need pandas and friends: pip install 'parley[analysis]'"}
    if file.rows("SELECT count(*) FROM verdicts")[1][0][0] > LARGE:
        return {**found, "why_none": "the run is large: parley report gives its figures"}
    columns, rows = file.rows(_NEEDED)
    verdicts = pd.DataFrame(rows, columns=columns)
    facets = pd.DataFrame([json.loads(text) for text in verdicts.pop("facets")], index=verdicts.index)
    verdicts = pd.concat([verdicts, facets[[name for name in facets if name not in verdicts]]], axis=1)
    if verdicts.empty:
        return {**found, "why_none": "no verdict is recorded yet"}
    phases = set(verdicts["phase"])
    if 1 in phases:
        found["scores"] = _plain(malibu.mean_scores(verdicts))
        found["differences"] = _plain(malibu.differences(verdicts))
        found["in_words"] = list(malibu.in_words(verdicts))
    if 2 in phases:
        found["win_rates"] = _plain(malibu.win_rates(verdicts))
        found["first_position"] = _plain(malibu.first_position(verdicts))
    found["in_short"] = _in_short(found)
    return found


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


def _cautions(models: list[str]) -> list[str]:
    from parley.cli.report import cautions

    return cautions(models)


def _plain(value: Any) -> Any:
    """Frames as lists of rows, NaN as None."""
    if hasattr(value, "to_dict"):
        return [{key: _plain(inner) for key, inner in row.items()} for row in value.to_dict("records")]
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value
