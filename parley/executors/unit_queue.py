"""The units of a run that no worker has: taken one by one as there is room, and returned by workers that die."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from parley.judging import Unit


class UnitQueue:
    """Units to run. Those that come back are taken last, so that a unit that kills workers does not delay others.

    Args:
        units: The units, read only as far as they are taken.
    """

    def __init__(self, units: Iterator[Unit]) -> None:
        self._units = units
        self._next = deque[Unit]()
        self._returned = deque[Unit]()

    @property
    def empty(self) -> bool:
        if not self._next and not self._returned:
            self._next.extend(islice(self._units, 1))
        return not self._next and not self._returned

    def take(self, count: int) -> list[Unit]:
        """At most this many units."""
        units: list[Unit] = []
        while self._next and len(units) < count:
            units.append(self._next.popleft())
        units.extend(islice(self._units, max(0, count - len(units))))
        while self._returned and len(units) < count:
            units.append(self._returned.popleft())
        return units

    def give_back(self, units: Iterable[Unit]) -> None:
        self._returned.extend(units)
