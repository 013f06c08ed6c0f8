"""A design is a few settings under one name: it fills in what was not given, and the run stores all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from parley.agents import ConfigError
from parley.judging.config import with_design
from parley.judging.malibu.config import DESIGNS, MalibuConfig
from parley.judging.malibu.study import Malibu


class Tea(BaseModel):
    design: str | None = None
    minutes: int = 3
    sugar: bool = False
    cups: int = 1


TEAS = {"strong": {"minutes": 7}, "sweet": {"minutes": 4, "sugar": True}}


def test_a_design_fills_in_what_was_not_given() -> None:
    assert with_design(Tea(), TEAS, "sweet") == Tea(design="sweet", minutes=4, sugar=True, cups=1)


def test_what_was_given_wins_even_where_it_is_the_default() -> None:
    assert with_design(Tea(minutes=3, cups=2), TEAS, "strong") == Tea(design="strong", minutes=3, cups=2)


def test_what_was_filled_in_is_kept_when_the_config_is_read_again() -> None:
    """As workers and resumed runs do, also if the design should mean something else by then."""
    stored = with_design(Tea(), TEAS, "sweet").model_dump_json()
    assert with_design(Tea.model_validate_json(stored), {"sweet": {"minutes": 99}}, "sweet").minutes == 4


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_has_values_that_the_config_takes(name: Any) -> None:
    checked = MalibuConfig(design=name, **DESIGNS[name])
    assert checked.model_dump() == with_design(MalibuConfig(), DESIGNS, name).model_dump()


@pytest.mark.parametrize("suite", ["quick", "tiny", "wide", "full", "mine.toml"])
def test_the_default_is_staged_for_every_suite(suite: str) -> None:
    study = Malibu(MalibuConfig(suite=suite, limit=1))
    assert study.config.design == "staged"
    stages = {unit.facets["stage"] for unit in study.plan()}
    assert stages == {"silent", "talk"}


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"readout": "expected"}, "--readout expected"),
        ({"consensus": "chair"}, "--consensus chair"),
        ({"reasons_first": False}, "--no-reasons-first"),
    ],
)
def test_what_only_the_papers_panel_has_is_refused_elsewhere(settings: dict[str, Any], flag: str) -> None:
    with pytest.raises(ConfigError, match=f"^{flag} is for --design paper only$"):
        Malibu(MalibuConfig(**settings))
    Malibu(MalibuConfig(design="paper", **settings))


def test_a_run_stores_all_that_its_design_means(parley: Callable[..., Any], run_file: Any) -> None:
    flags = ("--design", "paper", "--ties", "--limit", "1", "--yardstick", "off", "--phases", "1", "--rounds", "1")
    assert parley("run", "malibu", *flags, "--model", "sim/judge", "--out", "a.sqlite").status == 0
    config = json.loads(run_file("a.sqlite").one("SELECT value FROM run WHERE key = 'config'"))
    assert {key: config[key] for key in DESIGNS["paper"]} == DESIGNS["paper"]
    assert (config["design"], config["ties"], config["cells"]) == ("paper", True, "one")
