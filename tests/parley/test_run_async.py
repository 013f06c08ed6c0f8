"""Running a study while an event loop is running, as in a notebook."""

from __future__ import annotations

import pytest

import parley
from parley.agents import ConfigError
from tests.panels import ONE_CELL


async def test_a_run_in_a_notebook_is_awaited() -> None:
    with pytest.raises(ConfigError, match=r"await parley\.run_async"):
        parley.run("malibu", suite="tiny", model="sim/judge", out="a.sqlite", **ONE_CELL)
    result = await parley.run_async("malibu", suite="tiny", model="sim/judge", out="a.sqlite")
    assert result.complete
