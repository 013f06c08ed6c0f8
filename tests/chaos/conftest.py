"""Fixtures of this folder: an empty folder, and a server that fails on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faults import FaultServer


@pytest.fixture(autouse=True)
def _start_in_an_empty_folder(place: Path) -> None:
    """See `place`."""


@pytest.fixture
def faulty() -> Iterator[FaultServer]:
    """Without faults at first; each test sets its own."""
    server = FaultServer(seed=1, share=0.0, odd=0.0)
    yield server
    server.close()
