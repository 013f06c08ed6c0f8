"""How much Python runs per model call. Function calls are counted: unlike times, they do not depend on the machine.

The limits are about a quarter above what was counted. Where one is passed for a good reason, raise it.
"""

from __future__ import annotations

import cProfile
import pstats
from typing import Any

import pytest

import parley
from parley.runs.options import Options
from tests.panels import ONE_CELL

STUDIES: dict[str, tuple[dict[str, Any], int]] = {
    "rldf": ({"bias": "age", "topics": 8, "model": "sim/debate"}, 1200),
    "malibu": ({"suite": "tiny", "model": "sim/judge", **ONE_CELL}, 1100),
}


@pytest.mark.parametrize("study", STUDIES)
def test_a_model_call_takes_no_more_python_than_it_did(study, place):
    config, most = STUDIES[study]

    def run(name):
        options = Options(out=f"{name}.sqlite", cache=False, executor="asyncio")
        return parley.run(study, options=options, **config).progress.calls

    run("first")  # what is loaded and compiled once does not count
    profile = cProfile.Profile()
    profile.enable()
    calls = run("second")
    profile.disable()
    counted = pstats.Stats(profile).total_calls / calls  # type: ignore[attr-defined]
    assert counted < most, f"{counted:.0f} function calls per model call"
