"""`parley.run` with a study's name and settings, or with its config: the same run, resumed, with the same errors."""

from __future__ import annotations

from typing import Any

import pytest

import parley
from parley.agents import ConfigError, ParleyError
from parley.judging.malibu import MalibuConfig
from parley.judging.rldf.topics import TopicsConfig
from parley.runs.options import Options
from parley.runs.studies import STUDIES, find_study, study_of_config
from tests.panels import ONE_CELL

SETTINGS: dict[str, Any] = {"suite": "tiny", **ONE_CELL}


def test_a_run_is_stopped_resumed_and_refused_as_on_the_command_line(place, run_file):
    settings = {**SETTINGS, "model": "sim/judge", "out": "a.sqlite"}
    with pytest.raises(ConfigError, match="unknown key 'round'"):
        parley.run("malibu", **settings, round=3)
    cut = parley.run("malibu", options=Options(budget_calls=20, concurrency=1), **settings)
    assert (cut.complete, cut.stopped) == (False, "the budget of 20 calls is spent")
    assert (cut.progress.done, cut.progress.total) == (2, 9)
    result = parley.run("malibu", **settings)
    assert (result.complete, result.stopped, result.first_error) == (True, None, None)
    assert (result.progress.done, result.progress.total, result.progress.failed) == (9, 9, 0)
    assert result.progress.calls == 72 - 16
    with pytest.raises(ParleyError, match="rounds: 2 in the file, 3 requested"):
        parley.run("malibu", **settings, rounds=3)
    assert parley.run("malibu", **settings).complete, "the file can be used again"
    assert run_file("a.sqlite").count() == 9


def test_a_config_has_all_settings_and_is_the_same_run(place):
    settings = {**SETTINGS, "model": "sim/judge"}
    first, again = parley.run("malibu", **settings), parley.run(MalibuConfig(**settings))
    assert (first.progress.calls > 0, again.progress.calls, again.complete) == (True, 0, True), "it was resumed"
    assert len(list(place.glob("runs/*.sqlite"))) == 1
    with pytest.raises(ConfigError, match="put suite into the MalibuConfig"):
        parley.run(MalibuConfig(), suite="tiny")
    with pytest.raises(ConfigError, match="no study has the config Options"):
        parley.run(Options())
    for name in STUDIES:
        assert find_study(name).Config is find_study(study_of_config(find_study(name).Config.model_construct())).Config
    assert study_of_config(TopicsConfig()) == "topics"


async def test_a_run_in_a_notebook_is_awaited():
    with pytest.raises(ConfigError, match=r"await parley\.run_async"):
        parley.run("malibu", model="sim/judge", out="a.sqlite", **SETTINGS)
    assert (await parley.run_async("malibu", suite="tiny", model="sim/judge", out="a.sqlite")).complete
