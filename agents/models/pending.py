"""Replies of a unit that is not done, where there is no reply cache to keep them.

They are collected here and written to the run file about once a second, where they stay until the unit is done: a
resumed run gets back what it has already paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from parley.agents.models.reply import Reply

T = TypeVar("T")


class PendingReplies:
    """The replies of one unit, by the same addresses as in the reply cache.

    Args:
        earlier: those of an earlier attempt at the unit, as JSON.
    """

    def __init__(self, earlier: Mapping[bytes, str] = MappingProxyType({})) -> None:
        self._earlier = earlier
        self._new: list[tuple[bytes, Reply | str]] = []

    def get(self, address: bytes) -> Reply | None:
        """The reply of an earlier attempt, marked as `cached`; None if there is none."""
        reply = self.read(address, Reply.model_validate_json) if self._earlier else None
        if reply is not None:
            reply.cached = True
        return reply

    def read(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        """What `parse` makes of the stored text; None if there is none, or if it cannot be parsed."""
        text = self._earlier.get(address)
        try:
            return None if text is None else parse(text)
        except (ValueError, TypeError, RecursionError):
            return None

    def put(self, address: bytes, reply: Reply | str) -> None:
        """Add a reply, or a text. It is made into JSON only if it is written: most units are done before that."""
        self._new.append((address, reply))

    def take(self) -> list[tuple[bytes, str]]:
        """What was added since the last time, as texts."""
        new, self._new = self._new, []
        return [(address, reply if isinstance(reply, str) else reply.model_dump_json()) for address, reply in new]
