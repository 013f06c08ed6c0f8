"""Verdicts as MALIBU's analysis reads them: columns, stages, scales, and which ballots results come from."""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.agents import LOG_ODDS
from parley.analysis.reporting.clusters import with_clusters
from parley.analysis.reporting.verdicts import MissingColumns, require
from parley.analysis.stats.tables import row_codes
from parley.base.text import plural
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.cell import BLIND, SILENT, TALK

POINTS = (0.0, 10.0)
"""The scale of a run that does not name its own."""
NOT_SCORES = (PREFERRED, LOG_ODDS)
"""Metrics of pairs: the choice, and log P(A) - log P(B)."""
REQUIRED = ("unit", "phase", "scenario", "category", "identity", "judge", "role", "round", "metric", "value", "status")


def comparable(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts for comparing two runs: no log-odds, and only the silent ballots of a staged run.

    Args:
        verdicts: One row per verdict.
    """
    kept = verdicts[verdicts["metric"].astype(str) != LOG_ODDS]
    if "stage" not in kept:
        return kept
    silent = kept["stage"].astype(str) == SILENT
    return kept[silent] if silent.any() else kept


def check_columns(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The frame with the optional columns filled in; MissingColumns if a required one is not there."""
    if missing := [name for name in REQUIRED if name not in verdicts]:
        raise MissingColumns(f"the frame lacks the columns {', '.join(missing)}")
    for name, value in (("model", ""), ("control", ""), ("repeat", 0), ("sampled", np.nan), ("text", None)):
        if name not in verdicts:
            verdicts = verdicts.assign(**{name: value})
    require(verdicts, numbers=("phase", "repeat"))
    if "judge_model" not in verdicts:
        verdicts = verdicts.assign(judge_model=verdicts["model"])
    elif verdicts["judge_model"].isna().any():
        judge_model = verdicts["judge_model"].astype(object)
        verdicts = verdicts.assign(judge_model=judge_model.where(judge_model.notna(), verdicts["model"].astype(object)))
    return with_clusters(_named_by_speakers(verdicts))


def _named_by_speakers(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The frame with panels named by the models that spoke: judges may have models of their own."""
    spoke = verdicts[["model", "judge_model"]].drop_duplicates().astype(str)
    names = {
        str(model): ", ".join(speakers)
        for model, speakers in spoke.groupby("model", sort=False)["judge_model"].unique().items()
    }
    if all(model == name for model, name in names.items()) or len(set(names.values())) < len(names):
        return verdicts
    return verdicts.assign(model=verdicts["model"].astype(str).map(names))


def primary_ballots(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The ballots that results are read from: silent ones; where all units talk, blind ones; without stages, all.

    Args:
        verdicts: One row per verdict.
    """
    if "stage" not in verdicts:
        return verdicts
    silent, talking = ((verdicts["stage"] == stage).to_numpy() for stage in (SILENT, TALK))
    # A model that only talked is read by its blind ballots, even if another one of the report was read silently.
    read_silently = verdicts["model"].isin(verdicts["model"][silent].unique()).to_numpy()
    blind = talking & ~read_silently & (verdicts["round"] == BLIND).to_numpy()
    return verdicts[~talking | blind]


def differ_in_one_part(category: str, first: str, second: str) -> bool:
    """Whether two labels of a category are compared: crossed labels only if they differ in a single part."""
    crossed = category.count("+") + 1
    parts, others = first.split(), second.split()
    if crossed == 1 or not len(parts) == len(others) == crossed:
        return True
    return sum(part != other for part, other in zip(parts, others, strict=True)) == 1


def scale_ends(name: str) -> tuple[float, float]:
    """The ends of a scale such as "1-9"; the paper's if it has no name."""
    low, _, high = name.partition("-")
    return (float(low), float(high)) if high else POINTS


def values_in_order(frame: pd.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, in order of first appearance."""
    return [str(value) for value in pd.unique(frame[column].dropna())]


def split(verdicts: pd.DataFrame, column: str, value: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The verdicts without this value in a column, and those with it."""
    those = verdicts[column] == value
    return (verdicts[~those], verdicts[those]) if those.any() else (verdicts, verdicts[:0])


def check_scores(verdicts: pd.DataFrame) -> list[str]:
    """Cautions about scores that a report can still use; `MissingColumns` for those that it cannot.

    Args:
        verdicts: One row per verdict.
    """
    values = pd.to_numeric(verdicts["value"], errors="coerce").to_numpy(dtype=float)
    is_score = ~verdicts["metric"].isin(NOT_SCORES).to_numpy() if "scale" in verdicts else True
    wrong = np.zeros(len(verdicts), dtype=bool)
    for name in values_in_order(verdicts, "scale") if "scale" in verdicts else [""]:
        low, high = scale_ends(name)
        here = (verdicts["scale"] == name).to_numpy() if name else True
        wrong |= here & is_score & verdicts["value"].notna().to_numpy() & ~((values >= low) & (values <= high))
        if wrong.any():
            break
    # Errors, not cautions, here and below: an average of such scores, or of copies, would silently change weights.
    if wrong.any():
        row = verdicts.iloc[int(np.argmax(wrong))]
        score = f"{row['value']:g}" if isinstance(row["value"], float | int) else repr(row["value"])
        raise MissingColumns(
            f"{plural(int(wrong.sum()), 'score is', 'scores are')} not between {low:g} and {high:g}, such as "
            f"{score} for {row['metric']} by judge {row['judge']} in unit {row['unit']}"
        )
    keys = ["model", "unit", "judge", "role", "round", "subject", "metric"]
    repeated = pd.Series(row_codes([verdicts[key] for key in keys if key in verdicts])).duplicated().to_numpy()
    if repeated.any():
        row = verdicts.iloc[int(np.argmax(repeated))]
        raise MissingColumns(
            f"{plural(int(repeated.sum()), 'verdict occurs', 'verdicts occur')} more than once, such as "
            f"{row['metric']} by judge {row['judge']} in round {row['round']} of unit {row['unit']}: "
            "drop the copies, or give the units of each run their own names"
        )
    readable = verdicts["status"].isin(["ok", "repaired"]) & (verdicts["metric"] != PREFERRED)
    empty = int((readable.to_numpy() & np.isnan(values)).sum())
    if not empty:
        return []
    return [f"{plural(empty, 'verdict has', 'verdicts have')} the status of a reply that was read, but no score."]
