"""A report's methods section, from the run files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from parley.analysis.page.report import Report
from parley.analysis.say import Forest
from parley.base.text import plural

MOST_VALUES = 12
"""A longer list is not printed, but counted."""


def methods(report: Report) -> list[str]:
    """Three paragraphs: what was run, what was estimated, and how.

    Args:
        report: With the runs that it was made from.
    """
    run = (sentence for run in report.runs for sentence in _run(run, report.papers))
    return list(filter(None, map(" ".join, (run, _estimated(report), _how(report)))))


def _run(run: Mapping[str, Any], papers: Sequence[str]) -> Iterator[str]:
    units = run.get("units") or {}
    study, total, done = str(run.get("study", "unknown")), sum(units.values()), units.get("done", 0)
    models = ", ".join(run.get("models") or ("an unknown model",))
    cited = f" ({'; '.join(papers)})" if papers else ""
    yield (
        f"We ran the study {study}{cited} with Parley (The Parley developers, 2026), which is built on AutoGen "
        f"(Wu et al., 2023), on {models}."
    )
    seed = f" (random seed {run['seed']})" if run.get("seed") is not None else ""
    failed = f"; {units['failed']:,} failed" if units.get("failed") else ""
    yield (
        f"Of {plural(total, 'planned unit')}, {done:,} {'was' if done == 1 else 'were'} completed with "
        f"{plural(run.get('calls') or 0, 'model call')}{seed}{failed}."
    )
    settings = [_setting(key.replace("_", " "), value) for key, value in run.get("design_settings", {}).items()]
    if settings:
        yield f"All settings were the defaults, apart from {_listed(settings)}."


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _setting(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    if isinstance(value, list):
        listed = ", ".join(map(str, value))
        return f"{name} ({listed if len(value) <= MOST_VALUES else f'{len(value):,} values'})"
    return f"{name} {'none' if value is None else value}"


def _estimated(report: Report) -> Iterator[str]:
    by_table: dict[str, list[Forest]] = {}
    for forest in report.forests:  # plots of several measures may answer one question
        by_table.setdefault(forest.table or forest.name, []).append(forest)
    questions = [
        f"“{forests[0].question}” ({plural(sum(len(forest.lines) for forest in forests), 'estimate')}"
        f"{_clusters(report, table)})"
        for table, forests in by_table.items()
    ]
    if questions:
        yield f"We asked: {'; '.join(questions)}."


def _how(report: Report) -> Iterator[str]:
    notes = [sentence.rstrip(".") for forest in report.forests for sentence in forest.note.split(". ")]
    made = dict.fromkeys(note.partition("intervals: ")[2].removesuffix(", p Holm-corrected") for note in notes)
    corrected = "; p-values are Holm-corrected" if any(note.endswith("Holm-corrected") for note in notes) else ""
    yield from [f"Intervals are 95% intervals ({'; '.join(filter(None, made))}){corrected}."] * any(made)
    if "draws" in report.settings:
        yield f"Bootstrap intervals rest on {report.settings['draws']:,} draws (seed {report.settings.get('seed', 0)})."
    if "margin" in report.settings:
        yield f"Our margin is {report.settings['margin']:g}: a smaller difference is always named with it."
    for replaced in dict.fromkeys((run.get("sources") or {}).get("replaced prompts") for run in report.runs):
        yield from [f"We put prompts of our own in place of Parley's: {replaced}."] if replaced else []
    if report.runs and all(run.get("analysis_plan_sha256") for run in report.runs):
        yield "The analysis plan was stored before the first unit."
    versions = {name: number for run in report.runs for name, number in (run.get("versions") or {}).items()}
    if versions:
        yield f"The software was {_listed([f'{name} {number}' for name, number in versions.items()])}."


def _clusters(report: Report, table: str) -> str:
    """The number of clusters in a table's rows: " over 20 clusters", " over 8 to 20 clusters"."""
    frame = next((each.frame for each in report.tables if each.name == table), pd.DataFrame())
    counts = next((frame[name].dropna() for name in ("clusters", "prompts", "bases") if name in frame), pd.Series())
    counts = counts[counts > 0]
    if counts.empty:
        return ""
    low, high = int(counts.min()), int(counts.max())
    return f" over {plural(high, 'cluster')}" if low == high else f" over {low:,} to {plural(high, 'cluster')}"
