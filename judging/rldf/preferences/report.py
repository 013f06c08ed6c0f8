"""The audit of a preference dataset as a report: sentences, tables and a forest plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from parley.analysis.page.report import Report, Table, as_frame
from parley.analysis.say import Forest
from parley.analysis.stats.results import Line
from parley.base.text import p_text, plural
from parley.judging.rldf.preferences import audit
from parley.judging.rldf.preferences.audit import BLIND, TOGETHER, WORDS

WEAK = 0.75
"""Agreement of the blind referee below which there is a warning: one pair in four or more is then doubtful."""
METHOD = (
    "Accuracy: share of pairs in which a ridge logistic regression, fitted to the other topics, ranks the chosen text "
    "first (10 folds by topic; chance is 0.5). The 95% intervals are clustered by topic, and widened because the folds "
    "share training pairs. p: sign flips over topics, Holm-corrected for the shortcuts. words_minus: accuracy "
    "of the predictor 'all words' minus this row's, on the same pairs."
)


def preference_report(
    pairs: pd.DataFrame,
    *,
    instructions: str = "",
    title: str = "Audit",
    seed: int = 0,
    blind: Line | None = None,
    **about: Any,
) -> Report:
    """The audit of a dataset; `audit` has the columns that the frame may have.

    Args:
        pairs: One row per pair.
        instructions: The writers' instructions; "" if unknown.
        title: Title of the report and its figure.
        seed: Seed of the folds, sign flips and bootstrap.
        blind: As in `audit.shortcuts`.
        about: Passed on to `Report` (cautions).
    """
    lines = audit.shortcuts(pairs, instructions=instructions, seed=seed, blind=blind)
    repeated = audit.repetitions(pairs)
    shown = ("predictor", "estimate", "low", "high", "p_adjusted", "words_minus")
    rows = as_frame(lines).drop(columns="family")
    tables = [
        Table("shortcuts", "What predicts which text was chosen", rows, shown, METHOD),
        Table("repetitions", "Repeated pairs and texts", repeated),
    ]
    return Report(
        title=title,
        words=(*sentences(lines), on_repetitions(repeated)),
        tables=tuple(table for table in tables if len(table.frame)),
        forests=(_forest(lines),),
        settings={"seed": seed, "pairs": len(pairs), "topics": int(pairs["topic"].nunique())},
        **about,
    )


def _forest(lines: Sequence[Line]) -> Forest:
    return Forest(
        name="shortcuts",
        question="What predicts which text was chosen?",
        axis="accuracy on held-out topics",
        lines=tuple(line for line in lines if line.n),
        reference=0.5,
        scale="share",
        table="shortcuts",
        note="0.5 is chance. 95% intervals over topics; p-values: sign flips, Holm-corrected for the shortcuts.",
    )


def sentences(lines: Sequence[Line]) -> list[str]:
    """Conclusions from `audit.shortcuts`: above all, which shortcut predicts as well as the content does."""
    *predictors, blind = lines
    content = next(line for line in predictors if line.label == WORDS)
    shown = sorted((line for line in predictors if line.shown and not line.secondary), key=lambda line: -line.estimate)
    words = [_on_shortcut(line, content) for line in shown]
    if content.n and not content.shown:
        words.append(
            f"The words do not clearly predict the choice ({_interval(content)}; p {p_text(content.p)}): "
            "these pairs do not show that their content can be learnt."
        )
    words += on_blind_referee(blind)
    unchecked = [
        line.note.partition(": ")[2] if line.label == BLIND else f"{line.label}: {line.note.partition(': ')[2]}"
        for line in lines
        if line.label != TOGETHER and line.note.startswith("not checked")
    ]
    return [*words, f"Not checked: {'; '.join(unchecked)}."] if unchecked else words


def _on_shortcut(line: Line, content: Line) -> str:
    name = f"{line.label[0].upper()}{line.label[1:]}"
    says = f"{name} alone predicts the choice in {_percent(line)} of pairs on held-out topics"
    if line.also["words_minus_low"] > 0:
        return f"{says}; all words of the texts predict better, {_percent(content)}."
    beside = "better than" if line.also["words_minus_high"] < 0 else "as well as"
    return (
        f"{says}, {beside} all words of the texts ({_interval(content)}): a reward model can learn this instead of the "
        "content."
    )


def on_blind_referee(line: Line) -> Iterator[str]:
    """The agreement of the blind referee with the pairs, with a warning if it is weak."""
    if not line.n:
        return
    says = f"A second, blind referee agrees with {_percent(line)} of the {plural(line.n, 'pair')} that it scored."
    if not line.bounded and line.estimate > 0.5:
        warning = " These are too few topics for an interval."
    elif line.low <= 0.5 and line.estimate >= WEAK:
        warning = " These are too few pairs to tell that from chance."
    elif line.estimate <= 0.5 or line.low <= 0.5:
        warning = " That is no better than chance, so the pairs may be noise, including those that it confirms."
    else:
        warning = " That is weak: many of the pairs may be noise." if line.estimate < WEAK else ""
    yield says + warning


def on_repetitions(counted: pd.DataFrame) -> str:
    """The counts of `audit.repetitions`, in words."""
    repetitions = [f"{count} {what}" for what, count in zip(counted["what"], counted["count"], strict=True) if count]
    return f"Repetitions: {'; '.join(repetitions) or 'none'}."


def _percent(line: Line) -> str:
    return f"{line.estimate:.0%}" + (f" ({line.low:.0%} to {line.high:.0%})" if line.bounded else "")


def _interval(line: Line) -> str:
    return f"{line.estimate:.0%}" + (f", {line.low:.0%} to {line.high:.0%}" if line.bounded else "")
