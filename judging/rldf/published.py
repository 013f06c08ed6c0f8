"""RLDF's printed tables next to ours: 1 (accuracy on BBQ), 3 and 12 (BS), 10 (CE) and 11 (LS) by system; 2 and 4 by
mode, 5, 13 and 14 by teacher, each a policy trained on debates of its own (`parley train ablate`).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from parley.analysis.reporting.published import read_published
from parley.analysis.reporting.report import Table

HERE = Path(__file__).parent
CELL = ["table", "measure", "system", "part"]
NOTE = (
    "Theirs: four models of 6 to 7 billion parameters, trained on GPT-3.5-turbo's debates (T-S) unless the row has "
    "another teacher or their own (S-R). Accuracy is a share, and table 1's overall leaves Race out; BS, CE and LS are "
    "points of 100, scored by GPT-3.5-turbo (table 4; 3, 5, 11 and 14 share its numbers), by people (2, 10), or the "
    "paper does not say by whom (12, 13). Ours: this base, its debates, judges and topics. A level may differ by any "
    "of these: compare the order of systems, modes or teachers."
)


def published() -> pd.DataFrame:
    """The paper's numbers: table, measure, system (or mode, or teacher), part (category or bias type), and a column a
    model."""
    bbq = read_published(HERE / "published_bbq.txt", ("model", "system"), "part").assign(table=1, measure="accuracy")
    rubric = read_published(HERE / "published_rubric.txt", ("table", "measure", "model", "system"), "part")
    cells = pd.concat([bbq, rubric], ignore_index=True)
    models = list(dict.fromkeys(cells["model"]))
    order = cells[CELL].drop_duplicates()
    return order.merge(cells.pivot(index=CELL, columns="model", values="paper")[models].reset_index(), on=CELL)


def published_table(pooled: pd.DataFrame, by_bias: pd.DataFrame) -> Table:
    """The paper's numbers of the systems, modes or teachers that were evaluated, next to ours.

    Args:
        pooled: Accuracy by system and category, as the table `bbq_pooled` has it; may be empty.
        by_bias: Scores by system, metric and bias type, as the table `rubric_by_bias` has them; may be empty.
    """
    accuracy = pooled.rename(columns={"category": "part", "accuracy": "ours"}).assign(measure="accuracy")
    judged = by_bias.rename(columns={"metric": "measure", "bias": "part", "mean": "ours"})
    evaluated = [part for part in (accuracy, judged) if "part" in part]
    if not evaluated:
        return Table("published", "The paper's tables, next to ours", pd.DataFrame(), note=NOTE)
    ours = pd.concat(evaluated)[[*CELL[1:], "ours", "low", "high"]]
    return Table("published", "The paper's tables, next to ours", published().merge(ours, on=CELL[1:]), note=NOTE)
