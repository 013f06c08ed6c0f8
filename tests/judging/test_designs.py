"""A design is a few settings under one name: it fills in what was not given, and the run stores all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.judging.malibu.config import PAPER, MalibuConfig
from parley.judging.malibu.study import Malibu


def test_a_design_fills_in_what_was_not_given() -> None:
    assert MalibuConfig(design="paper").in_full() == MalibuConfig(design="paper", **PAPER).in_full()
    assert {key: getattr(MalibuConfig(design="paper").in_full(), key) for key in PAPER} == PAPER
    talk = MalibuConfig(design="talk")
    assert {key: getattr(talk.in_full(), key) for key in PAPER} == {key: getattr(talk, key) for key in PAPER}


def test_what_was_given_wins_even_where_it_is_the_default() -> None:
    given = MalibuConfig(design="paper", blind=True).in_full()
    assert (given.blind, given.speaking_order) == (True, "fixed")


def test_what_was_filled_in_is_kept_when_the_config_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As workers and resumed runs do, also if the design should mean something else by then."""
    stored = MalibuConfig(design="paper").in_full().model_dump_json()
    monkeypatch.setattr("parley.judging.malibu.config.PAPER", {"speaking_order": "shuffled"})
    assert MalibuConfig.model_validate_json(stored).in_full().speaking_order == "fixed"


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
    flags = ("--design", "paper", "--ties", "--limit", "1", "--phases", "1", "--rounds", "1")
    assert parley("run", "malibu", *flags, "--model", "sim/judge", "--out", "a.sqlite").status == 0
    config = json.loads(run_file("a.sqlite").one("SELECT value FROM run WHERE key = 'config'"))
    assert {key: config[key] for key in PAPER} == PAPER
    assert (config["design"], config["ties"], config["cells"]) == ("paper", True, "one")
