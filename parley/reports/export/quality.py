"""Quality of a dataset: how much a reward model could learn from something other than bias.

Length: how often the length alone separates chosen from rejected. Persona leakage: words that reveal the speaker on one
side only. And the audit: what the pairs would teach a reward model, which of them and of their texts are repeated, and
whether a blind referee agrees with them.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parley.base.errors import install
from parley.base.text import plural
from parley.reports.export.pairs import StatementPair
from parley.reports.export.statements import Statement
from parley.scenarios import normal

if TYPE_CHECKING:
    import pandas as pd

Figures = dict[str, Any]
NOT_INSTALLED = f"Not audited: {install('analysis')}, then run `parley report FOLDER`."
NO_PAIRS = "Not audited: there are no pairs."
UNCONFIRMED = "The pairs are unconfirmed: no blind second referee was asked"
ONE_REFEREE = ", so they rest on one referee that knew the round (`parley run rldf --rereferee 1` asks one)"


def length_balance(pairs: Sequence[StatementPair]) -> Figures:
    """`by_length_alone`: accuracy of the better of two rules, "the shorter is chosen" and "the longer is"."""
    chosen = [len(pair.chosen.text.split()) for pair in pairs]
    rejected = [len(pair.rejected.text.split()) for pair in pairs]
    shorter = sum(ours < theirs for ours, theirs in zip(chosen, rejected, strict=True))
    longer = sum(ours > theirs for ours, theirs in zip(chosen, rejected, strict=True))
    n = len(pairs)
    return {
        "words_chosen": statistics.fmean(chosen) if n else math.nan,
        "words_rejected": statistics.fmean(rejected) if n else math.nan,
        "chosen_longer": longer / n if n else math.nan,
        "chosen_shorter": shorter / n if n else math.nan,
        "by_length_alone": (max(shorter, longer) + (n - shorter - longer) / 2) / n if n else math.nan,
    }


def leakage(pairs: Sequence[StatementPair]) -> Figures:
    """Pairs with words that reveal the role, or with another speaker's name, on one side only or on both."""
    figures: Figures = {}
    for what, leaks in (("role", lambda statement: "leak" in statement.flags), ("names", _names_a_speaker)):
        sides = Counter((leaks(pair.chosen), leaks(pair.rejected)) for pair in pairs)
        figures |= {
            f"{what}_in_chosen_only": sides[True, False],
            f"{what}_in_rejected_only": sides[False, True],
            f"{what}_in_both": sides[True, True],
        }
    return figures


def _names_a_speaker(statement: Statement) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", statement.text) for name in statement.others)


def audited(
    pairs: Sequence[StatementPair], made: Sequence[StatementPair], instructions: str, split_of: Mapping[str, str]
) -> dict[str, Any]:
    """Sentences and tables for the card and the manifest: the same that `parley report` gives on the folder.

    Args:
        pairs: The pairs of the dataset.
        made: All possible pairs, including those that the blind referee did not confirm: its agreement is over these.
        instructions: What the writers of the texts were told.
        split_of: The split of each topic, in its normal form.
    """
    if not pairs:
        return {"sentences": [NO_PAIRS]}
    try:
        from parley.analysis.say import json_values
        from parley.judging.rldf.preferences.audit import blind_agreement
        from parley.judging.rldf.preferences.report import preference_report
    except ModuleNotFoundError:
        return {"sentences": [NOT_INSTALLED]}
    blind = blind_agreement(_frame(made, split_of))
    report = preference_report(_frame(pairs, split_of), instructions=instructions, blind=blind)
    tables = {name: json_values(report.table(name)) for name in ("shortcuts", "repetitions")}
    return {"sentences": list(report.words), **tables, "seed": 0}


def confirmation(pairs: Sequence[StatementPair]) -> dict[str, int]:
    """The number of pairs that a blind referee confirmed, did not confirm, or was not asked about."""
    counts = Counter(pair.confirmed for pair in pairs)
    return {"confirmed": counts[True], "not_confirmed": counts[False], "not_asked": counts[None]}


def confirmation_line(counts: dict[str, int], unconfirmed: str, *, refereed: bool, silent: bool = False) -> str:
    """One sentence on what was done with unconfirmed pairs."""
    confirmed, not_confirmed, not_asked = (counts[key] for key in ("confirmed", "not_confirmed", "not_asked"))
    if silent:
        fate = "kept, with meta.confirmed false" if unconfirmed == "keep" else "left out"
        return (
            f"Of {plural(confirmed + not_confirmed, 'pair')}, {confirmed:,} are stable: the referee scores rejected "
            "above chosen in every wording, and also where it compared the two in both orders. The others are "
            f"{fate}."
        )
    if not confirmed and not not_confirmed:
        return f"{UNCONFIRMED}{ONE_REFEREE * refereed}."
    kept = "kept, with meta.confirmed"
    fate = f"{kept} false" if unconfirmed == "keep" else "left out"
    line = (
        f"A blind second referee confirmed {plural(confirmed, 'pair')}; it did not confirm {not_confirmed:,} ({fate})"
    )
    if not_asked:
        line += f" and was not asked about {not_asked:,} ({'left out' if unconfirmed == 'strict' else f'{kept} null'})"
    return f"{line}."


def _frame(pairs: Sequence[StatementPair], split_of: Mapping[str, str]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for pair in pairs:
        row: dict[str, Any] = {"topic": pair.rejected.topic, "split": split_of[normal(pair.rejected.topic)]}
        for side, statement in (("chosen", pair.chosen), ("rejected", pair.rejected)):
            again = math.nan if statement.score_again is None else statement.score_again
            row |= {side: statement.text, f"round_{side}": statement.round, f"speaker_{side}": statement.speaker}
            row[f"blind_{side}"] = again
        rows.append(row)
    return pd.DataFrame(rows)
