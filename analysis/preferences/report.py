"""The audit of a preference dataset as a report: sentences, tables and a forest plot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from parley.analysis.preferences import audit
from parley.analysis.preferences.audit import BLIND, SHORTCUTS, TOGETHER, WORDS
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Report, Table
from parley.base.text import p_text, plural

WEAK = 0.75
"""A blind referee who agrees with fewer pairs than this gives a warning: one pair in four or more is then doubtful."""
METHOD = (
    "Accuracy: share of pairs in which a ridge logistic regression, fitted to the other topics, ranks the chosen text "
    "first (10 folds by topic; chance is 0.5). The 95% intervals are clustered by topic, and widened because the folds "
    "share training pairs. p: sign flips over topics; p_holm: Holm-corrected for the shortcuts. words_minus: accuracy "
    "of the predictor 'all words' minus this row's, on the same pairs."
)


def preference_report(
    pairs: pd.DataFrame,
    *,
    instructions: str = "",
    title: str = "Audit",
    seed: int = 0,
    blind: Mapping[str, Any] | None = None,
    **about: Any,
) -> Report:
    """The audit of a dataset; `audit` has the columns that the frame may have.

    Args:
        pairs: One row per pair.
        instructions: What the writers of the texts were told; "" if that is not known.
        title: Title of the report and its figure.
        seed: Seed of the folds, sign flips and bootstrap.
        blind: As in `audit.shortcuts`.
        about: Passed on to `Report` (cautions).
    """
    found = list(audit.predictors(pairs, instructions))
    table = audit.shortcuts(pairs, instructions=instructions, seed=seed, blind=blind, known=found)
    repeated = audit.repetitions(pairs)
    shown = ("predictor", "accuracy", "low", "high", "p_holm", "words_minus")
    tables = [
        Table("shortcuts", "What predicts which text was chosen", table, shown, METHOD, printed=True),
        Table(
            "rounds", "Round of the chosen text, against that of the rejected one", audit.by_round(pairs), printed=True
        ),
        Table("speakers", "Who was chosen over whom", audit.by_speaker(pairs), printed=True),
        Table("repetitions", "Repeated pairs and texts", repeated, printed=True),
        Table("features", "Strongest features of each predictor", audit.strongest(found)),
    ]
    return Report(
        title=title,
        words=(*sentences(table), *_on_repetitions(repeated)),
        tables=tuple(table for table in tables if len(table.frame)),
        forests=(_forest(table),),
        settings={"seed": seed, "pairs": len(pairs), "topics": int(pairs["topic"].nunique())},
        **about,
    )


def _forest(table: pd.DataFrame) -> Forest:
    return Forest(
        name="shortcuts",
        question="What predicts which text was chosen?",
        axis="accuracy on held-out topics",
        lines=lines_of(
            table,
            lambda row: str(row.predictor),
            value="accuracy",
            p="p_holm",
            secondary=lambda row: row.predictor not in SHORTCUTS,
        ),
        reference=0.5,
        scale="share",
        table="shortcuts",
        note="0.5 is chance. 95% intervals over topics; p-values: sign flips, Holm-corrected for the shortcuts.",
    )


def sentences(table: pd.DataFrame) -> list[str]:
    """What the table of `audit.shortcuts` shows: above all, which shortcut predicts as well as the content does."""
    rows = {row.predictor: row for row in table.itertuples()}
    checked = [rows[name] for name in SHORTCUTS if not math.isnan(rows[name].accuracy)]
    named = sorted((row for row in checked if row.predicts), key=lambda row: -row.accuracy)
    lines = [_on_shortcut(row, rows[WORDS]) for row in named]
    content = rows[WORDS]
    if not math.isnan(content.accuracy) and not content.predicts:
        lines.append(
            f"All words of the texts do not clearly predict the choice ({_interval(content)}; p {p_text(content.p)}): "
            "these pairs do not show that their content can be learnt."
        )
    lines += on_blind_referee(rows[BLIND])
    unchecked = [f"{row.predictor}: {row.note.partition(': ')[2]}" for row in rows.values() if _is_unchecked(row)]
    return [*lines, f"Not checked: {'; '.join(unchecked)}."] if unchecked else lines


def _on_shortcut(row: Any, content: Any) -> str:
    name = f"{row.predictor[0].upper()}{row.predictor[1:]}"
    line = f"{name} alone predicts the choice in {_percent(row)} of pairs on held-out topics"
    if row.words_minus_low > 0:
        return f"{line}; all words of the texts predict better, {_percent(content)}."
    beside = "better than" if row.words_minus_high < 0 else "as well as"
    return (
        f"{line}, {beside} all words of the texts ({_interval(content)}): a reward model can learn this instead of the "
        "content."
    )


def on_blind_referee(row: Any) -> list[str]:
    """The agreement of the blind referee with the pairs, with a warning where it is weak."""
    if math.isnan(row.accuracy):
        return []
    line = f"A second, blind referee agrees with {_percent(row)} of the {plural(row.n, 'pair')} that it scored."
    if math.isnan(row.low):
        return [f"{line} These are too few topics for an interval."]
    if row.low <= 0.5 and row.accuracy >= WEAK:
        return [f"{line} These are too few pairs to tell that from chance."]
    if row.low <= 0.5:
        return [f"{line} That is no better than chance, so the pairs may be noise, including those that it confirms."]
    if row.accuracy < WEAK:
        return [f"{line} That is weak: many of the pairs may be noise."]
    return [line]


def _is_unchecked(row: Any) -> bool:
    return row.predictor != TOGETHER and str(row.note).startswith("not checked")


def _on_repetitions(table: pd.DataFrame) -> list[str]:
    found = [f"{count} {what}" for what, count in zip(table["what"], table["count"], strict=True) if count]
    return [f"Repetitions: {'; '.join(found)}."] if found else []


def _percent(row: Any) -> str:
    interval = "" if math.isnan(row.low) else f" ({row.low:.0%} to {row.high:.0%})"
    return f"{row.accuracy:.0%}{interval}"


def _interval(row: Any) -> str:
    return f"{row.accuracy:.0%}" if math.isnan(row.low) else f"{row.accuracy:.0%}, {row.low:.0%} to {row.high:.0%}"
