"""Running a study where an event loop runs already, as in a notebook."""

from __future__ import annotations

import pytest

import parley
from parley.agents import ConfigError


async def test_in_a_notebook_one_awaits() -> None:
    with pytest.raises(ConfigError, match=r"await parley\.run_async"):
        parley.run("malibu", suite="quick", model="sim/judge", out="a.sqlite")
    result = await parley.run_async("malibu", suite="quick", model="sim/judge", out="a.sqlite")
    assert result.complete
