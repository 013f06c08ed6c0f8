"""What RLDF's claims are about: debates by round, admitted biases by framing, judged answers, and accuracy on BBQ."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from parley.analysis.claims.contrasts import VALUES
from parley.analysis.effects import by_cluster
from parley.analysis.verdicts import uncategorised
from parley.judging.bbq.scores import MISSING
from parley.judging.framing.report import replies
from parley.judging.rldf.debates import scores
from parley.judging.rldf.report import IN_OVERALL, OVERALL, printed_cells

WHOLE = "all"
SYSTEMS = {"default": "Default", "cot": "CoT", "fairthinking": "FairThinking"}
"""The prompting methods of table 1, by BBQ's names."""
ACCURACY = "accuracy on BBQ"
MEASURES = {"accuracy": ACCURACY}


def debates(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The referee's scores of the first and of the last round, one row per statement.

    Args:
        verdicts: One row per verdict.
    """
    frame = scores(verdicts).dropna(subset="value")
    ends = {"first round": frame["round"].min(), "last round": frame["round"].max()}
    rows = pd.concat([frame[frame["round"] == number].assign(method=name) for name, number in ends.items()])
    return _tidy(
        rows.assign(
            measure="bias score by the referee, 0 to 10",
            cluster=rows["bias"] + "/" + rows["topic"],
            item=rows["unit"] + " " + rows["subject"].astype(str),
        )
    )


def framings(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The number of biases admitted in an answer, by framing.

    Args:
        verdicts: One row per verdict.
    """
    rows = replies(verdicts).rename(columns={"framing": "method", "topic": "cluster", "unit": "item"})
    return _tidy(rows.assign(measure="biases admitted", value=rows["biases"]))


def judged(verdicts: pd.DataFrame) -> pd.DataFrame:
    """BS, CE and LS from 0 to 100, by group: a system's answers to held-out topics.

    Args:
        verdicts: One row per verdict, whose models are the judges.
    """
    rows = uncategorised(verdicts)
    topic = rows["topic"] if "topic" in rows else rows["item"].str.partition("/")[2]
    return _tidy(
        rows.assign(
            model="", measure=rows["metric"], method=rows["group"], value=10 * rows["value"], cluster=topic, item=topic
        )
    )


def _tidy(rows: pd.DataFrame) -> pd.DataFrame:
    model = rows["model"].str.partition("?")[0]
    return rows.assign(set=WHOLE, model=model).dropna(subset="value")[list(VALUES)]


def accuracies(answers: pd.DataFrame) -> Iterator[tuple[str, str, str, str, str, str, float]]:
    """The accuracy with both contexts together, by category and overall, one value per template.

    Overall is the mean of the five categories without Race, as in the paper.

    Args:
        answers: One row per answer, from `leaderboard.answers`.
    """
    read = answers[answers["prediction"] != MISSING]
    right = (read["prediction"] == read["label"]).astype(float)
    template = read["category"] + "/" + read["question"].astype(str)
    for (model, method), part in read.groupby(["model", "method"], sort=False):
        by_category = {
            str(name): by_cluster(right[rows.index], template[rows.index], float(right[rows.index].mean()))
            for name, rows in part.groupby("category", sort=False)
        }
        whole = [by_category[name] for name in IN_OVERALL if name in by_category]
        if len(whole) == len(IN_OVERALL):
            means = [sum(values.values()) / len(values) for values in whole]
            overall, count = sum(means) / len(means), sum(map(len, whole))
            by_category[OVERALL] = {
                name: overall + count / len(whole) / len(values) * (value - mean)
                for values, mean in zip(whole, means, strict=True)
                for name, value in values.items()
            }
        for category, values in by_category.items():
            for name, value in values.items():
                yield str(model).partition("?")[0], ACCURACY, category, SYSTEMS[str(method)], name, "", value


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
