"""Who speaks when in a debate: an order fixed before each round.

    Debate(…, order=simultaneous)

An order is a function of the round and the names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parley.agents.transcripts import seed_from

Group = Sequence[str]
Order = Callable[[int, Sequence[str]], Sequence[Group]]
"""Divides the debaters into groups, by round. Groups speak in turn, the agents of a group concurrently."""


def round_robin(round: int, names: Sequence[str]) -> Sequence[Group]:
    """One after the other in the given order; each reads the turns before its own."""
    return [[name] for name in names]


def simultaneous(round: int, names: Sequence[str]) -> Sequence[Group]:
    """All concurrently: no agent reads the others' turns of the same round."""
    return [list(names)]


@dataclass(frozen=True, slots=True)
class shuffled:
    """A random order for each round, reproducible by the seed."""

    seed: int

    def __call__(self, round: int, names: Sequence[str]) -> Sequence[Group]:
        permuted = list(names)
        random.Random(seed_from(self.seed, round)).shuffle(permuted)
        return [[name] for name in permuted]
