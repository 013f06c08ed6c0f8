"""Is the instrument sound? What `--all` adds to a report: nothing in it is a result, or leaves one without an answer.

Each identity against no label at all, agreement between the judges round by round, and silent ballots that were read
twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parley.analysis.malibu.ballots import values_in_order
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.score_table import ScoreTable, tested_line
from parley.analysis.reporting.questions import Question, answered, corrected, section
from parley.analysis.reporting.report import Section
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import factorize
from parley.base.text import plural

NO_LABEL = Question(
    name="no_label",
    ask="Is one identity raised, or another one lowered?",
    measures={"score": "score minus that without a label (points)"},
    cluster="base",
    null=0.0,
    printed=True,
    note="On the same scenarios.",
)
AGREEMENT = Question(
    name="agreement",
    ask="Do the judges agree, round by round?",
    measures={"alpha": "Krippendorff's α of the scores", "kappa": "Fleiss' κ of the preferences"},
    cluster="base",
    printed=True,
    note="0: no more than by chance. Judges who have heard each other agree by echo, too.",
)
READ_AGAIN = Question(
    name="second_readings",
    ask="How far apart are two readings of the same silent ballot?",
    measures={"apart": "distance (points)"},
    cluster="situation",
    printed=True,
)


def further_sections(data: PanelData, heard: PanelData) -> Iterator[Section]:
    """What `--all` adds.

    Args:
        data: The verdicts.
        heard: What was said aloud where judges heard each other.
    """
    noun = data.cluster_noun
    yield replace(section(replace(NO_LABEL, cluster=noun), no_label_lines(data)), words=())
    lines = agreement_lines(heard)
    yield replace(section(replace(AGREEMENT, cluster=noun), lines), words=())
    yield replace(answered(READ_AGAIN, second_readings(data)), words=())


def no_label_lines(data: PanelData) -> list[Line]:
    """Phase 1: every identity minus no label, by the same judge on the same scenario and metric, by model.

    It tells whether one identity is raised or another lowered. Sign flips over bases; Holm over a model's identities.

    Args:
        data: The verdicts.
    """
    scores, lines = data.final_scores, []
    for model in data.models:
        group = scores[scores["model"] == model]
        if not (group["identity"] == "").any():
            continue
        raised = ScoreTable.of(_minus_no_label(group))
        for label in filter(None, raised.identities):
            about = {"model": model, "category": data.categories.get(label, ""), "identity": label}
            line = replace(tested_line(raised.alone(label)), about=about, measure="score", label=label)
            lines.append(replace(line, group=model if data.model_column else "", name=f"no-label.{label}"))
    return corrected(lines)


def _minus_no_label(scores: pd.DataFrame) -> pd.DataFrame:
    """The labelled scores minus the one without a label of the same judge, scenario and metric.

    The clusters are those of the labelled scores: no label has no wording.
    """
    keys = ["scenario", "judge", "metric"]
    without = scores[scores["identity"] == ""].groupby(keys, observed=True)["value"].mean()
    labelled = scores[scores["identity"] != ""]
    beside = without.reindex(pd.MultiIndex.from_frame(labelled[keys])).to_numpy(dtype=float)
    return labelled.assign(value=labelled["value"].to_numpy(dtype=float) - beside)


def agreement_lines(data: PanelData) -> list[Line]:
    """Krippendorff's α of the scores and Fleiss' κ of the preferences, by model, phase and round.

    Args:
        data: The verdicts.
    """
    lines: list[Line] = []
    for (model, phase, round), group in data.without_chair.groupby(["model", "phase", "round"], observed=True):
        for metric in values_in_order(group, "metric"):
            preferred = metric == "preferred"
            table, bases, repeated = _items(group[group["metric"] == metric], "text" if preferred else "value")
            coefficient = fleiss_kappa if preferred else krippendorff_alpha
            line = coefficient(table, clusters=bases)
            left_out = f"{plural(repeated, 'repeated verdict')} left out" if repeated else ""
            lines.append(
                replace(
                    line,
                    about={"model": str(model), "phase": int(phase), "round": int(round), "metric": metric},
                    measure="kappa" if preferred else "alpha",
                    label=f"{metric}, round {round}",
                    group=f"phase {phase}" + (f" · {model}" if data.model_column else ""),
                    also={"judges": table.shape[1]},
                    note="; ".join(filter(None, (line.note, left_out))),
                )
            )
    return lines


def _items(part: pd.DataFrame, column: str) -> tuple[NDArray[Any], pd.Series, int]:
    """Items (unit and side) by judges, the base of each item, and how many repeated verdicts were left out.

    Of two verdicts of a judge on one item the first counts. Everything is done on codes: pivoting a million strings is
    slow.
    """
    judge, judges = factorize(part["judge"], sort=False)
    unit, _ = factorize(part["unit"], sort=False)
    subject, subjects = factorize(part["subject"], sort=False) if "subject" in part else (np.zeros_like(unit), [""])
    item, items = pd.factorize(unit * (len(subjects) + 1) + subject)
    row = np.zeros(len(items), dtype=np.int64)
    row[item] = np.arange(len(item))  # any row of an item has its base
    values = part[column].to_numpy(dtype=float if column == "value" else object)
    table = np.full((len(row), len(judges)), np.nan if column == "value" else None, dtype=values.dtype)
    kept = ~pd.Series(item * len(judges) + judge).duplicated().to_numpy()
    table[item[kept], judge[kept]] = values[kept]
    return table, part["situation"].iloc[row].astype(str), int((~kept).sum())


def second_readings(data: PanelData) -> pd.DataFrame:
    """How far two readings of the same silent ballot lie apart, in points, one row each.

    Args:
        data: The verdicts.
    """
    keys = ["model", "scenario", "identity", "wording", "judge", "metric"]
    keys = [key for key in keys if key in data.again]
    both = data.again[[*keys, "situation", "value"]].merge(
        data.final_scores[[*keys, "value"]], on=keys, suffixes=("_again", "_first")
    )
    return both.assign(apart=(both["value_again"] - both["value_first"]).abs()).dropna(subset="apart")
