"""BBQ's values for papers' claims: accuracy and bias in percent by context, one value per question template."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from parley.analysis.claims.contrasts import VALUES
from parley.analysis.effects import by_cluster
from parley.analysis.systems import without_files
from parley.analysis.verdicts import require
from parley.judging.bbq.iterations import answers_at
from parley.judging.bbq.leaderboard import MACRO, answers, scored
from parley.judging.bbq.mabrf.claims import claimed_values as loop_values
from parley.judging.bbq.mabrf.loop import MARK
from parley.judging.bbq.scores import MISSING
from parley.judging.rldf.claims import ACCURACY
from parley.judging.rldf.report import IN_OVERALL, OVERALL

PERCENT = {"accuracy": 100.0, "bias": 1.0}
SYSTEMS = {"default": "Default", "cot": "CoT", "fairthinking": "FairThinking"}
"""The prompting methods of RLDF's table 1, by BBQ's names."""


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Our values: accuracy and bias by context and method, with each earlier iteration as a method of its own.

    A bias is a ratio of sums: a template's value is what it adds to it (linearised), so that the mean over templates is
    the macro mean over categories.

    Args:
        verdicts: One row per verdict.
    """
    require(verdicts, texts=("method", "model"))
    verdicts = without_files(verdicts)
    frames = [answers(verdicts)]
    earlier = answers_at(verdicts)
    if len(earlier):
        earlier = earlier[earlier["iteration"] < earlier.groupby("method")["iteration"].transform("max")]
        names = earlier["method"] + ", iteration " + earlier["iteration"].astype(str)
        frames += [part for _, part in earlier.assign(method=names).groupby("iteration")]
    lines = [
        line for frame in frames if len(frame) for line in scored(frame, tested=False) if line.about.category == MACRO
    ]
    rows = [
        (line.about.model.partition("?")[0], line.measure, line.about.context, line.about.method, template, "",
         PERCENT[line.measure] * value)
        for line in lines
        for template, value in line.values.items()
    ]  # fmt: skip
    if set(frames[0]["method"]) <= set(SYSTEMS):  # RLDF's table 1, and not a run of another paper
        rows += _accuracies(frames[0])
    of_answers = pd.DataFrame(rows, columns=list(VALUES))
    loops = verdicts["metric"].astype(str) == MARK
    return pd.concat([of_answers, loop_values(verdicts)], ignore_index=True) if loops.any() else of_answers


def _accuracies(answered: pd.DataFrame) -> Iterator[tuple[str, str, str, str, str, str, float]]:
    """The accuracy with both contexts together, by category and overall, one value per template.

    Overall is the mean of the five categories without Race, as in the paper.

    Args:
        answered: One row per answer, from `answers`.
    """
    read = answered[answered["prediction"] != MISSING]
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
