"""A scheduler's signal ends a run with Ray by the status that says it can be resumed."""

from __future__ import annotations

import pytest

from tests.chaos.ray_ends import try_once


@pytest.mark.nightly
def test_a_run_with_ray_ends_by_a_signal_in_time() -> None:
    """Ray's own handler would abort the process after three seconds, and units take six."""
    pytest.importorskip("ray")
    ending = try_once("SIGTERM", 16.0)
    assert ending.right, ending
