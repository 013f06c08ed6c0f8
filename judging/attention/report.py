"""The report of an attention run: how much attention the words of each framing get (RLDF's figure 2)."""

from __future__ import annotations

import pandas as pd

from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, Table, assemble
from parley.analysis.verdicts import require, uncategorised

NOTE = (
    "Attention from the end of the prompt to the framing's words, without the first token. even: the share under even "
    "attention. It does not explain an answer: read it together with the counts of the framing run's report."
)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: Further data for the report.
    """
    require(verdicts, texts=("framing", "weights"))
    keys = ["weights", "framing"]
    wide = uncategorised(verdicts).pivot_table("value", [*keys, "unit"], "metric", sort=False).reset_index()
    means = wide.groupby(keys, sort=False).agg(
        answers=("unit", "size"), tokens=("phrase_tokens", "mean"), share=("share", "mean"), even=("even", "mean")
    )
    frame = means.assign(ratio=means["share"] / means["even"]).reset_index()
    words = [
        f"{row.framing}: the framing gets {row.share:.2%} of the attention, {row.ratio:.2f} times its share under even "
        "attention."
        for row in frame.itertuples()
    ]
    return assemble(
        [Section(tables=[Table("attention", "Attention", frame, note=NOTE, paper="1, figure 2")], words=words)],
        context,
        "Attention",
    )
