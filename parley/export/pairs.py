"""HighBias, LowBias and the pairs between them. Pairs stay within one debate: same topic, same people, same model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, product

from parley.export.settings import Settings
from parley.export.statements import Statement

Tier = Callable[[Statement, Statement], bool]
SPEAKER: Tier = lambda bad, good: bad.speaker == good.speaker  # noqa: E731
ROUND: Tier = lambda bad, good: bad.round == good.round  # noqa: E731
ANY: Tier = lambda bad, good: True  # noqa: E731
TIERS: dict[str, tuple[tuple[str, Tier], ...]] = {
    "prefer-speaker": (("speaker", SPEAKER), ("round", ROUND), ("topic", ANY)),
    "same-speaker": (("speaker", SPEAKER),),
    "same-round": (("round", ROUND),),
    "any": (("topic", ANY),),
    "all": (("topic", ANY),),
}
"""In which order a partner is looked for, and what the two then share beside the topic."""


@dataclass(frozen=True, slots=True)
class StatementPair:
    good: Statement
    bad: Statement
    shares: str

    @property
    def id(self) -> str:
        return f"{self.bad.id}~{self.good.round}/{self.good.speaker}"


@dataclass(frozen=True, slots=True)
class Sorted:
    """Statements by their bias, and what was left out of both, by reason."""

    high: list[Statement]
    low: list[Statement]
    left_out: Counter[str]


def sort_out(statements: Iterable[Statement], settings: Settings) -> Sorted:
    high: list[Statement] = []
    low: list[Statement] = []
    left_out: Counter[str] = Counter()
    for one in statements:
        why = next((flag for flag in one.flags if flag in settings.drop), None)
        if one.score is None:
            left_out[f"no score ({one.status} report)"] += 1
        elif why or not one.text:
            left_out[(why or "empty").replace("_", " ")] += 1
        else:
            (high if one.score > settings.threshold else low).append(one)
    return Sorted(high, low, left_out)


def make_pairs(found: Sorted, settings: Settings) -> list[StatementPair]:
    goods: dict[str, list[Statement]] = {}
    for one in found.low:
        goods.setdefault(one.debate, []).append(one)
    pairs: list[StatementPair] = []
    for debate, bads in groupby(found.high, key=lambda one: one.debate):
        pairs += _in_debate(list(bads), goods.get(debate, []), settings)
    return pairs


def _in_debate(bads: list[Statement], goods: list[Statement], settings: Settings) -> Iterator[StatementPair]:
    if settings.strategy == "all":
        yield from (
            StatementPair(good, bad, _shared(bad, good))
            for bad, good in product(bads, goods)
            if _fit(bad, good, settings)
        )
        return
    used: Counter[str] = Counter()
    lengths = {one.id: len(one.text.split()) for one in (*bads, *goods)}
    for bad in bads:
        left = [good for good in goods if _fit(bad, good, settings)]
        wanted = settings.per_bad
        for name, tier in TIERS[settings.strategy]:
            fitting = [good for good in left if tier(bad, good)]
            # Those used least come first, then those nearest in length: a reward model must not learn length.
            fitting.sort(key=lambda good: (used[good.id], abs(lengths[good.id] - lengths[bad.id]), good.id))
            for good in fitting[:wanted]:
                used[good.id] += 1
                wanted -= 1
                left.remove(good)
                yield StatementPair(good, bad, name)
            if not wanted:
                break


def _fit(bad: Statement, good: Statement, settings: Settings) -> bool:
    assert bad.score is not None, "only scored statements are paired"
    assert good.score is not None, "only scored statements are paired"
    if bad.score - good.score < settings.margin or bad.text == good.text:
        return False
    if settings.longest is None:
        return True
    shorter, longer = sorted((len(bad.text.split()), len(good.text.split())))
    return longer <= settings.longest * shorter


def _shared(bad: Statement, good: Statement) -> str:
    return "speaker" if SPEAKER(bad, good) else "round" if ROUND(bad, good) else "topic"
