"""Counts a study's calls and tokens by running units on simulated models, for `--dry-run`, prices and the time left.

Nothing is sent or stored. A small plan is rehearsed completely; a large one by a sample with every value of every facet
that has few, scaled up by the facets on which the length of a unit depends.

A conversation may end early, depending on what is said. Units are therefore rehearsed with the lowest and with the
highest scores, and the longer result is used: calls are then an upper estimate. Simulated models keep to the requested
format; a model that does not is asked twice for some replies.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Any, TypeVar

from parley.agents.models.stand_in import HIGHEST, LOWEST, Stage
from parley.agents.models.wire import UNREAD
from parley.agents.providers import provider_of
from parley.base.tasks import blocking
from parley.judging import Study, Unit
from parley.runs.executor import RunStopped, run_unit

MOST_CALLS = 600
"""Maximum calls of a rehearsal, some 0.4 s of CPU time."""
FEW_VALUES = 16
PAGES = json.dumps([["A page", "https://example.org/page", "word " * 120]] * 5)
"""Search results in a rehearsal."""
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Usage:
    """Calls and tokens: of a unit, or of a whole plan."""

    calls: int = 0
    reads: int = 0
    """Calls whose reply is one token, as a silent ballot's."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    """The error of a unit that failed in a rehearsal, whose calls may be undercounted."""

    @property
    def length(self) -> int:
        """A measure of a unit's length, mainly calls."""
        return 100_000 * self.calls + self.prompt_tokens


NUMBERS = ("calls", "reads", "prompt_tokens", "completion_tokens")


class _Counted:
    """Counts the calls of one unit; also its reply cache, which answers every search."""

    def __init__(self, stage: Stage) -> None:
        self.usage, self._stage = Usage(), stage

    async def send(self, client: Any, request: Any) -> Any:
        """Reply as a stand-in, also for clients that the study made itself."""
        stand_in = client if self._stage.name_of(client) else self._stage[client.name]
        reply = await stand_in.send(request)
        if UNREAD in request.prompt()[-1].text and not getattr(stand_in, "simulated", False):
            return reply  # a stand-in need not know the form
        usage, written = self.usage, reply.usage.completion_tokens
        usage.calls += 1
        usage.reads += written <= 1
        usage.prompt_tokens += reply.usage.prompt_tokens
        usage.completion_tokens += written
        return reply

    async def find(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        return parse(PAGES)

    def put_text(self, address: bytes, model: str, text: str) -> None:
        """Nothing is stored."""

    def commit(self) -> None:
        """Nothing is stored."""


async def rehearse_async(study: Study) -> Usage:
    """The calls and tokens of a study's whole plan."""
    if not study.models():
        return Usage()
    simulated = all(provider_of(name).simulated for name in study.models())
    stages = [Stage(LOWEST), *([] if simulated else [Stage(HIGHEST)])]
    units = list(study.plan())
    random.Random(0).shuffle(units)  # the first units with a value are then like the others with it
    rehearsed: list[tuple[Unit, Usage]] = []
    calls = 0
    few = _few(units)
    cover = {place for values in few.values() for place in values.values()}
    for unit in dict.fromkeys([*cover, *range(len(units))]):
        if calls >= MOST_CALLS and unit not in cover:
            break
        tried = [await rehearse_unit(study, units[unit], stage) for stage in stages]
        calls += sum(usage.calls for usage in tried)
        rehearsed.append((units[unit], max(tried, key=lambda usage: usage.length)))
    return _scaled_up(rehearsed, units, list(few))


rehearse = blocking(rehearse_async)


async def rehearse_unit(study: Study, unit: Unit, stage: Stage) -> Usage:
    """The calls and tokens of one unit."""
    counted = _Counted(stage)
    try:
        rows = await run_unit(
            study, unit, stage, cache=counted, budget=None, on_call=lambda call: None, sender=counted.send
        )
        counted.usage.error = rows.error or ""
    except RunStopped as error:
        counted.usage.error = str(error)
    return counted.usage


def _few(units: Sequence[Unit]) -> Mapping[str, Mapping[Any, int]]:
    """The facets with few values, and the first unit with each value."""
    by_name: dict[str, dict[Any, int]] = defaultdict(dict)
    for place, unit in enumerate(units):
        for name, value in unit.facets.items():
            if len(values := by_name[name]) <= FEW_VALUES:
                values.setdefault(value, place)
    return {name: values for name, values in by_name.items() if 1 < len(values) <= FEW_VALUES}


def _scaled_up(rehearsed: Sequence[tuple[Unit, Usage]], units: Sequence[Unit], few: Sequence[str]) -> Usage:
    """The usage of all units, each counted as the mean of rehearsed ones of its kind."""
    names = list(_telling(rehearsed, few)) if len(rehearsed) < len(units) else []
    kinds: dict[tuple[Any, ...], list[Usage]] = defaultdict(list)
    for unit, usage in rehearsed:
        for depth in range(len(names) + 1):
            kinds[_kind(unit, names[:depth])].append(usage)
    weights: Counter[tuple[Any, ...]] = Counter()
    for unit in units:
        depths = range(len(names), -1, -1)
        weights[next(kind for depth in depths if (kind := _kind(unit, names[:depth])) in kinds)] += 1
    error = next((usage.error for _, usage in rehearsed if usage.error), "")
    whole, sums = Usage(error=error), dict.fromkeys(NUMBERS, 0.0)
    for kind, number in weights.items():
        share = number / len(kinds[kind])
        for usage in kinds[kind]:
            for name in NUMBERS:
                sums[name] += share * getattr(usage, name)
    for name, value in sums.items():
        setattr(whole, name, round(value))
    return whole


def _kind(unit: Unit, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(unit.facets.get(name) for name in names)


def _telling(rehearsed: Sequence[tuple[Unit, Usage]], names: Sequence[str]) -> Iterator[str]:
    """The facets on which the length of units depends, most important first."""

    def spread(by: Sequence[str]) -> float:
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for unit, usage in rehearsed:
            groups[_kind(unit, by)].append(usage.length)
        means = {kind: fmean(group) for kind, group in groups.items()}
        squares = sum((length - means[kind]) ** 2 for kind, group in groups.items() for length in group)
        # As in generalised cross-validation, with twice the penalty: many small groups differ less by chance.
        return squares / (len(rehearsed) - 2 * len(groups)) ** 2 if len(rehearsed) > 2 * len(groups) else inf

    chosen: list[str] = []
    left = spread(chosen)
    while left and len(chosen) < len(names):
        best = min((name for name in names if name not in chosen), key=lambda name: spread([*chosen, name]))
        if (rest := spread([*chosen, best])) > 0.8 * left:
            return
        chosen, left = [*chosen, best], rest
        yield best
