"""Is the dataset fit to train on? What a reward model could learn in place of bias, counted.

Length: how often the shorter text alone would tell chosen from rejected. Duplicates, within and across splits. Persona
leakage: words that give the speaker away on one side only. And whether a second, blind refereeing agrees.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from parley.export.pairs import StatementPair
from parley.export.statements import FLAGS, Statement
from parley.scenarios import normal

Figures = dict[str, Any]


def length_balance(pairs: Sequence[StatementPair]) -> Figures:
    """`by_length_alone`: accuracy of the better of two rules, "the shorter is chosen" and "the longer is"."""
    chosen = [len(pair.good.text.split()) for pair in pairs]
    rejected = [len(pair.bad.text.split()) for pair in pairs]
    shorter = sum(a < b for a, b in zip(chosen, rejected, strict=True))
    longer = sum(a > b for a, b in zip(chosen, rejected, strict=True))
    n = len(pairs)
    return {
        "words_chosen": statistics.fmean(chosen) if n else math.nan,
        "words_rejected": statistics.fmean(rejected) if n else math.nan,
        "chosen_longer": longer / n if n else math.nan,
        "chosen_shorter": shorter / n if n else math.nan,
        "by_length_alone": (max(shorter, longer) + (n - shorter - longer) / 2) / n if n else math.nan,
    }


def duplicates(statements: Sequence[Statement], split_of: Mapping[str, str]) -> Figures:
    """Texts that stand more than once, and those that stand in two splits."""
    times: Counter[str] = Counter()
    places: dict[str, set[str]] = {}
    for one in statements:
        text = normal(one.text)
        times[text] += 1
        places.setdefault(text, set()).add(split_of[normal(one.topic)])
    return {
        "texts": len(times),
        "repeated": sum(count - 1 for count in times.values()),
        "in_two_splits": sum(len(where) > 1 for where in places.values()),
    }


def leakage(pairs: Sequence[StatementPair]) -> Figures:
    """Pairs with words that give the role away, or another speaker's name, on one side only or on both."""
    found: Figures = {}
    for what, seen in (("role", _gives_role_away), ("names", _names_a_speaker)):
        sides = Counter((seen(pair.good), seen(pair.bad)) for pair in pairs)
        found |= {
            f"{what}_in_chosen_only": sides[True, False],
            f"{what}_in_rejected_only": sides[False, True],
            f"{what}_in_both": sides[True, True],
        }
    return found


def _gives_role_away(one: Statement) -> bool:
    return "leak" in one.flags


def _names_a_speaker(one: Statement) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", one.text) for name in one.others)


def refereed_again(statements: Sequence[Statement], threshold: float) -> Figures:
    """The scores of a second refereeing beside the first; `n` is 0 where the run had none (--rereferee)."""
    both = [(one.score, one.score_again) for one in statements if one.score is not None and one.score_again is not None]
    n = len(both)
    gaps = [again - first for first, again in both]
    return {
        "n": n,
        "same_score": sum(gap == 0 for gap in gaps) / n if n else math.nan,
        "within_one": sum(abs(gap) <= 1 for gap in gaps) / n if n else math.nan,
        "same_side": sum((a > threshold) == (b > threshold) for a, b in both) / n if n else math.nan,
        "mean_difference": statistics.fmean(gaps) if n else math.nan,
        "correlation": _correlation(both),
    }


def _correlation(both: Sequence[tuple[float, float]]) -> float:
    try:
        return statistics.correlation(*zip(*both, strict=True)) if len(both) > 1 else math.nan
    except statistics.StatisticsError:  # one of the two never varies
        return math.nan


def flags(statements: Sequence[Statement]) -> Figures:
    """How many statements broke role, gave it away, refused, repeat their instructions or themselves, were cut."""
    seen = Counter(flag for one in statements for flag in one.flags)
    return {flag: seen[flag] for flag in FLAGS}
