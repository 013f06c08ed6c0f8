"""BBQ's values for papers' claims: accuracy and bias in percent by context, one value per question template."""

from __future__ import annotations

import pandas as pd

from parley.analysis.claims.contrasts import VALUES
from parley.analysis.systems import without_files
from parley.analysis.verdicts import require
from parley.judging.bbq.iterations import answers_at
from parley.judging.bbq.leaderboard import MACRO, answers, scored
from parley.judging.bbq.mabrf.claims import claimed_values as loop_values
from parley.judging.bbq.mabrf.loop import MARK

PERCENT = {"accuracy": 100.0, "bias": 1.0}


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
    of_answers = pd.DataFrame(rows, columns=list(VALUES))
    loops = verdicts["metric"].astype(str) == MARK
    return pd.concat([of_answers, loop_values(verdicts)], ignore_index=True) if loops.any() else of_answers
