"""The report of RLDF's debates: one run, or several that differ in one setting; and the paper's printed tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.page.papers import read_published, without_run
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Table, assemble
from parley.analysis.verdicts import require
from parley.judging.rldf.ablation import ablation_section
from parley.judging.rldf.debates import THRESHOLD, change_section, rounds_section
from parley.judging.rldf.second_referee import agreement_section, flags_section

HERE = Path(__file__).parent
CELL = ["table", "measure", "system", "part"]
OVERALL = "overall"
IN_OVERALL = ("Age", "Disability_status", "Gender_identity", "Nationality", "Physical_appearance")
"""The categories whose accuracies the paper's `overall` averages, in 16 of 24 rows to the last decimal."""
NOTE = (
    "Theirs: four models of 6 to 7 billion parameters, trained on GPT-3.5-turbo's debates (T-S) unless the row has "
    "another teacher or their own (S-R). Accuracy is a share, and table 1's overall, theirs and ours, is the mean of "
    "the five columns without Race; BS, CE and LS are points of 100, scored by GPT-3.5-turbo (table 4; 3, 5, 11 and "
    "14 share its numbers), by people (2, 10), or the "
    "paper does not say by whom (12, 13). Ours: this base, its debates, judges and topics. A level may differ by any "
    "of these: compare the order of systems, modes or teachers. The printed standard deviations over three runs are in "
    "the files, as paper_sd_…; 27 of 920 are cut in our copy."
)


def debates(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """Bias by round and role; for several runs that differ in one setting, first the ablation.

    Args:
        verdicts: One row per verdict; units of several runs have the run's number as a prefix, in the order of `runs`.
        context: Further data for the report.
    """
    require(verdicts, texts=("topic",))
    runs = _by_run(verdicts, context.runs)
    sections = [
        change_section(runs),
        rounds_section(runs),
        agreement_section(runs),
        flags_section(runs),
    ]
    if len(runs) > 1:
        configs = {name: (run["config"], part) for (name, part), run in zip(runs.items(), context.runs, strict=True)}
        sections.insert(0, ablation_section(configs))
    return assemble(sections, context, "RLDF", threshold=THRESHOLD)


def _by_run(verdicts: pd.DataFrame, runs: Sequence[Mapping[str, Any]]) -> dict[str, pd.DataFrame]:
    """The frame of each run, by file name. With several runs, unit ids begin with the run's number and a colon."""
    if len(runs) < 2:
        return {str(runs[0]["file"]) if runs else "run": verdicts}
    number = verdicts["unit"].astype(str).str.partition(":")[0]
    return {f"{run['file']}": verdicts[number == str(nth)] for nth, run in enumerate(runs)}


def printed_cells() -> pd.DataFrame:
    """The cells of the paper's tables, one row each."""
    bbq = read_published(HERE / "published_bbq.txt", ("model", "system"), "part").assign(table=1, measure="accuracy")
    rubric = read_published(HERE / "published_rubric.txt", ("table", "measure", "model", "system"), "part")
    return pd.concat([bbq, rubric], ignore_index=True)


def published() -> pd.DataFrame:
    """The paper's tables 1 (accuracy on BBQ), 3 and 12 (BS), 10 (CE) and 11 (LS) by system; 2 and 4 by mode, 5, 13 and
    14 by teacher, each a policy trained on its own debates (`parley train ablate`).

    Columns: table, measure, system (or mode, or teacher), part (category or bias type), and for each model its mean
    and the standard deviation over three runs, where our copy of the paper has it."""
    cells = printed_cells()
    models = list(dict.fromkeys(cells["model"]))
    order = cells[CELL].drop_duplicates()
    wide = {value: cells.pivot(index=CELL, columns="model", values=value)[models] for value in ("paper", "sd")}
    printed = wide["paper"].add_prefix("paper_").join(wide["sd"].add_prefix("paper_sd_"))
    return order.merge(printed.reset_index(), on=CELL)


def published_table(pooled: pd.DataFrame, by_bias: pd.DataFrame) -> Table:
    """The paper's numbers of the systems, modes or teachers that were evaluated, next to ours.

    Args:
        pooled: Accuracy by system and category, as in the table `bbq_pooled`; may be empty.
        by_bias: Scores by system, metric and bias type, as in the table `rubric_by_bias`; may be empty.
    """
    accuracy = pooled.rename(columns={"category": "part", "accuracy": "ours"}).assign(measure="accuracy")
    if len(accuracy):
        accuracy = pd.concat([accuracy[accuracy["part"] != OVERALL], _overall(accuracy)])
    judged = by_bias.rename(columns={"metric": "measure", "bias": "part", "mean": "ours"})
    evaluated = [part for part in (accuracy, judged) if "part" in part]
    if not evaluated:
        return Table("published", "The paper's tables, next to ours", pd.DataFrame(), note=NOTE)
    ours = pd.concat(evaluated)[[*CELL[1:], "ours", "low", "high"]]
    printed = published()
    frame = printed.merge(ours, on=CELL[1:])
    shown = tuple(name for name in frame if not name.startswith("paper_sd_"))
    note = without_run(printed[printed["table"].isin(frame["table"])], frame, "system") + NOTE
    return Table("published", "RLDF's tables, next to ours", frame, shown, note, "4.2, tables 1 to 5 and 10 to 14")


def _overall(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 1's overall: the mean of its columns without Race, for the systems that have all five."""
    columns = accuracy[accuracy["part"].isin(IN_OVERALL)]
    means = columns.groupby("system", sort=False)["ours"].sum(min_count=len(IN_OVERALL)) / len(IN_OVERALL)
    return means.reset_index().assign(part=OVERALL, measure="accuracy", low=np.nan, high=np.nan)
