"""What the stories of this folder share: an empty place, and a server that fails on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faults import FaultServer


@pytest.fixture(autouse=True)
def _begin_in_an_empty_place(place: Path) -> None:
    """See `place`."""


@pytest.fixture
def faulty() -> Iterator[FaultServer]:
    """It begins well-behaved; each story says what goes wrong."""
    server = FaultServer(seed=1, share=0.0, odd=0.0)
    yield server
    server.close()
