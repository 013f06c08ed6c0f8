"""`parley.run` with a study's name and settings, or with its config: the same run."""

from __future__ import annotations

from pathlib import Path

import pytest

import parley
from parley.agents import ConfigError
from parley.judging.malibu import MalibuConfig
from parley.judging.rldf.topics import TopicsConfig
from parley.runs.options import Options
from parley.runs.studies import STUDIES, find_study, study_of_config
from tests.panels import PANEL


def test_a_config_and_its_settings_are_the_same_run(place: Path) -> None:
    settings = {"model": "sim/judge", "suite": "tiny", **PANEL}
    first = parley.run("malibu", **settings)
    again = parley.run(MalibuConfig(**settings))
    assert (first.progress.calls > 0, again.progress.calls, again.complete) == (True, 0, True), "it was resumed"
    assert len(list(place.glob("runs/*.sqlite"))) == 1


def test_a_config_has_all_settings() -> None:
    with pytest.raises(ConfigError, match="put suite into the MalibuConfig"):
        parley.run(MalibuConfig(), suite="tiny")
    with pytest.raises(ConfigError, match="no study has the config Options"):
        parley.run(Options())


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_found_by_its_config(name: str) -> None:
    assert find_study(name).Config is find_study(study_of_config(find_study(name).Config.model_construct())).Config


def test_the_config_of_a_writing_study() -> None:
    assert study_of_config(TopicsConfig()) == "topics"
