"""All targets: what is typed, what is brought, what models say, run files, and requests to a viewer that is up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.fuzz import files, replies
from tests.fuzz.loop import Target


@contextmanager
def all_targets() -> Iterator[list[Target]]:
    yield [*replies.TARGETS, *files.TARGETS]
