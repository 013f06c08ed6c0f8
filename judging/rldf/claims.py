"""What RLDF's claims are about, of debates: the referee's scores by round; and the paper's printed tables.

Its other values are those of BBQ, `framing` and `rubric`.
"""

from __future__ import annotations

import pandas as pd

from parley.analysis.claims.contrasts import tidy
from parley.judging.rldf.debates import scores
from parley.judging.rldf.report import printed_cells

WHOLE = "all"
ACCURACY = "accuracy on BBQ"
MEASURES = {"accuracy": ACCURACY}


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The referee's scores of the first and of the last round, one row per statement.

    Args:
        verdicts: One row per verdict.
    """
    frame = scores(verdicts).dropna(subset="value")
    ends = {"first round": frame["round"].min(), "last round": frame["round"].max()}
    rows = pd.concat([frame[frame["round"] == number].assign(method=name) for name, number in ends.items()])
    return tidy(
        rows.assign(
            set=WHOLE,
            measure="bias score by the referee, 0 to 10",
            cluster=rows["bias"] + "/" + rows["topic"],
            item=rows["unit"] + " " + rows["subject"].astype(str),
        )
    )


def printed() -> pd.DataFrame:
    """The paper's tables 1 to 5 and 10 to 14, and for each table of scores the mean over the five bias types."""
    cells = printed_cells().rename(columns={"part": "set", "system": "method", "paper": "value"})
    cells = cells.assign(table="table_" + cells["table"].astype(str), measure=cells["measure"].replace(MEASURES))
    judged_cells = cells[cells["measure"] != ACCURACY]
    # Tables 3, 10 and 11 compare methods; 4 compares modes, scored by GPT-3.5-turbo as those of 3 are.
    used = judged_cells[judged_cells["table"].isin(("table_3", "table_4", "table_10", "table_11"))]
    means = used.groupby(["table", "model", "measure", "method"], sort=False)["value"].mean().reset_index()
    return pd.concat([cells, means.assign(table="", set=WHOLE)], ignore_index=True)[
        ["table", "model", "measure", "set", "method", "value"]
    ]
