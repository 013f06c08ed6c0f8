"""Runs as pandas frames: `verdicts(file)` and `turns(file)`, each row with the facets of its unit."""

from __future__ import annotations

import json

import pandas as pd

from parley.runs import RunFile


def verdicts(file: RunFile) -> pd.DataFrame:
    """One row a verdict of a finished unit."""
    return _with_facets(
        file,
        "SELECT v.unit, u.facets, v.judge, v.role, v.round, v.subject, v.metric, v.value, v.sampled, v.text, v.status "
        "FROM verdicts v JOIN units u ON u.id = v.unit WHERE u.status = 'done' ORDER BY u.position, v.nth",
    )


def turns(file: RunFile) -> pd.DataFrame:
    """One row a message of a finished unit."""
    return _with_facets(
        file,
        "SELECT t.unit, u.facets, t.seq, t.round AS round, t.speaker, t.role, t.text, t.parse_status "
        "FROM transcript t JOIN units u ON u.id = t.unit WHERE u.status = 'done' ORDER BY u.position, t.seq",
    )


def _with_facets(file: RunFile, sql: str) -> pd.DataFrame:
    columns, rows = file.rows(sql)
    frame = pd.DataFrame(rows, columns=columns)
    facets = pd.DataFrame([json.loads(text) for text in frame.pop("facets")], index=frame.index)
    return pd.concat([frame, facets[[c for c in facets.columns if c not in frame.columns]]], axis=1)
