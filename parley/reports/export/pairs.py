"""High-bias and low-bias statements, and pairs of them within a debate: the same topic, roles and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import groupby, product
from typing import TypeVar

from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement
from parley.scenarios import normal

TIERS = {
    "prefer-speaker": ("speaker", "round", "topic"),
    "same-speaker": ("speaker",),
    "same-round": ("round",),
    "any": ("speaker, round, topic",),
}
"""By strategy, in order of preference: what the two statements of a pair share."""


@dataclass(frozen=True, slots=True)
class StatementPair:
    """A low-bias statement (chosen) and a high-bias one (rejected) of the same debate."""

    chosen: Statement
    rejected: Statement
    shares: str
    """What they share within the debate: speaker, round, or only the topic."""

    @property
    def confirmed(self) -> bool | None:
        """Whether a blind second referee also scored rejected above chosen; None if it did not score both.

        For a silent referee, whether the pair is stable: it scores rejected above chosen in every wording, and prefers
        the same one, both orders averaged, where it compared them.
        """
        if self.chosen.by_wording and self.rejected.by_wording:
            wordings = zip(self.rejected.by_wording, self.chosen.by_wording, strict=True)
            odds = dict(self.rejected.compared).get(f"{self.chosen.speaker}@{self.chosen.round}")
            return all(worse > better for worse, better in wordings) and (odds is None or odds > 0)
        if self.chosen.score_again is None or self.rejected.score_again is None:
            return None
        return self.rejected.score_again > self.chosen.score_again

    @property
    def id(self) -> str:
        return f"{self.rejected.id}~{self.chosen.round}/{self.chosen.speaker}"


@dataclass(frozen=True, slots=True)
class BiasGroups:
    """Statements by bias, and the number left out of both groups, by reason."""

    high: list[Statement]
    low: list[Statement]
    left_out: Counter[str]


def group_by_bias(statements: Iterable[Statement], settings: Settings) -> BiasGroups:
    """Statements on the wrong side of the threshold (high bias), and the others (low).

    Those with a dropped flag, no score or no text are left out.

    If a text occurs more than once, only the first statement is kept, across debates, so that splits share no text. A
    text that was scored both high and low is left out.
    """
    high: list[Statement] = []
    low: list[Statement] = []
    left_out: Counter[str] = Counter()
    for statement in statements:
        flag = next((flag for flag in statement.flags if flag in settings.drop), None)
        if statement.score is None:
            left_out[f"no score ({statement.status} report)"] += 1
        elif flag or not statement.text:
            left_out[(flag or "empty").replace("_", " ")] += 1
        else:
            (high if settings.is_worse(statement.score) else low).append(statement)
    contradictory = {normal(statement.text) for statement in high} & {normal(statement.text) for statement in low}
    return BiasGroups(
        high=_without_repetitions(high, contradictory, left_out),
        low=_without_repetitions(low, contradictory, left_out),
        left_out=left_out,
    )


def _without_repetitions(
    statements: list[Statement], contradictory: Set[str], left_out: Counter[str]
) -> list[Statement]:
    kept: dict[str, Statement] = {}
    for statement in statements:
        text = normal(statement.text)
        if text in contradictory:
            left_out["repeated text, scored both high and low"] += 1
        elif text in kept:
            left_out["repeated text"] += 1
        else:
            kept[text] = statement
    return list(kept.values())


def is_confirmed(statement: Statement, settings: Settings) -> bool | None:
    """Whether a blind second referee, or a silent one in every wording, put the statement on the same side of the
    threshold; None if neither was asked."""
    if statement.by_wording and statement.score is not None:
        side = settings.is_worse(statement.score)
        return all(settings.is_worse(score) == side for score in statement.by_wording)
    if statement.score is None or statement.score_again is None:
        return None
    return settings.is_worse(statement.score) == settings.is_worse(statement.score_again)


Item = TypeVar("Item")


def passing(items: Iterable[Item], confirmed: Callable[[Item], bool | None], settings: Settings) -> list[Item]:
    """The pairs or statements that pass the setting `unconfirmed`."""
    # After pairing: preferring confirmed pairs would make the blind referee seem to agree more often than it does.
    allowed = {"drop": (True, None), "strict": (True,), "keep": (True, None, False)}[settings.unconfirmed]
    return [item for item in items if confirmed(item) in allowed]


def make_pairs(groups: BiasGroups, settings: Settings) -> list[StatementPair]:
    """The pairs of every debate, by the settings' strategy."""
    low_of: dict[str, list[Statement]] = {}
    for statement in groups.low:
        low_of.setdefault(statement.debate, []).append(statement)
    pairs: list[StatementPair] = []
    for debate, high in groupby(groups.high, key=lambda statement: statement.debate):
        pairs += _pairs_of_debate(list(high), low_of.get(debate, []), settings)
    return pairs


def _pairs_of_debate(highs: list[Statement], lows: list[Statement], settings: Settings) -> Iterator[StatementPair]:
    if settings.strategy == "all":
        yield from (
            StatementPair(low, high, _shared(high, low))
            for high, low in product(highs, lows)
            if _may_pair(high, low, settings)
        )
        return
    used: Counter[str] = Counter()
    lengths = {statement.id: len(statement.text.split()) for statement in (*highs, *lows)}
    for high in highs:
        candidates = [low for low in lows if _may_pair(high, low, settings)]
        remaining = settings.per_bad
        for tier in TIERS[settings.strategy]:
            matching = [low for low in candidates if _shared(high, low) in tier]
            # Least used first, then nearest in length: a reward model must not learn length.
            matching.sort(key=lambda low: (used[low.id], abs(lengths[low.id] - lengths[high.id]), low.id))
            for low in matching[:remaining]:
                used[low.id] += 1
                remaining -= 1
                candidates.remove(low)
                yield StatementPair(low, high, _shared(high, low))
            if not remaining:
                break


def _may_pair(high: Statement, low: Statement, settings: Settings) -> bool:
    """Whether two statements differ enough in score, in text, and not too much in length."""
    assert high.score is not None, "only scored statements are paired"
    assert low.score is not None, "only scored statements are paired"
    if abs(high.score - low.score) < settings.margin or high.text == low.text:
        return False
    if settings.longest is None:
        return True
    shorter, longer = sorted((len(high.text.split()), len(low.text.split())))
    return longer <= settings.longest * shorter


def _shared(high: Statement, low: Statement) -> str:
    return "speaker" if high.speaker == low.speaker else "round" if high.round == low.round else "topic"
