"""The audit of an export: what its pairs would teach a reward model, and how often a blind referee agrees with them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parley.base.text import plural
from parley.reports.export.pairs import StatementPair

if TYPE_CHECKING:
    import pandas as pd

NOT_INSTALLED = "Not audited: that needs pip install 'parley-autogen[analysis]'; then `parley audit FOLDER`."
NO_PAIRS = "Not audited: there are no pairs."
UNCONFIRMED_ELSEWHERE = "The pairs are unconfirmed: no blind second referee was asked."
UNCONFIRMED = (
    "The pairs are unconfirmed: no blind second referee was asked, so they rest on one referee that knew the round "
    "(`parley run rldf --rereferee 1` asks one)."
)


def audited(pairs: Sequence[StatementPair], made: Sequence[StatementPair], instructions: str) -> dict[str, Any]:
    """Sentences and a table for the card and the manifest.

    Args:
        pairs: The pairs of the dataset.
        made: All pairs that could be made, also those that the blind referee did not confirm: its agreement is theirs.
        instructions: What the writers of the texts were told.
    """
    if not pairs:
        return {"sentences": [NO_PAIRS]}
    try:
        from parley.analysis.preferences.audit import blind_agreement
        from parley.analysis.preferences.report import preference_report
        from parley.analysis.reporting.report import json_values
    except ModuleNotFoundError:
        return {"sentences": [NOT_INSTALLED]}
    blind = blind_agreement(_frame(made))
    report = preference_report(_frame(pairs), instructions=instructions, blind=blind)
    return {"sentences": list(report.words), "shortcuts": json_values(report.table("shortcuts")), "seed": 0}


def confirmation(pairs: Sequence[StatementPair]) -> dict[str, int]:
    """The number of pairs that a blind referee confirmed, did not confirm, or was not asked about."""
    counts = Counter(pair.confirmed for pair in pairs)
    return {"confirmed": counts[True], "not_confirmed": counts[False], "not_asked": counts[None]}


def confirmation_line(counts: dict[str, int], unconfirmed: str, *, is_rldf: bool) -> str:
    """What became of the pairs that were not confirmed, in one sentence."""
    confirmed, not_confirmed, not_asked = (counts[key] for key in ("confirmed", "not_confirmed", "not_asked"))
    if not confirmed and not not_confirmed:
        return UNCONFIRMED if is_rldf else UNCONFIRMED_ELSEWHERE
    kept = "kept, with meta.confirmed"
    fate = f"{kept} false" if unconfirmed == "keep" else "left out"
    line = (
        f"A blind second referee confirmed {plural(confirmed, 'pair')}; it did not confirm {not_confirmed:,} ({fate})"
    )
    if not_asked:
        line += f" and was not asked about {not_asked:,} ({'left out' if unconfirmed == 'strict' else f'{kept} null'})"
    return f"{line}."


def _frame(pairs: Sequence[StatementPair]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for pair in pairs:
        row: dict[str, Any] = {"topic": pair.rejected.topic}
        for side, statement in (("chosen", pair.chosen), ("rejected", pair.rejected)):
            again = math.nan if statement.score_again is None else statement.score_again
            row |= {side: statement.text, f"round_{side}": statement.round, f"speaker_{side}": statement.speaker}
            row[f"blind_{side}"] = again
        rows.append(row)
    return pd.DataFrame(rows)
