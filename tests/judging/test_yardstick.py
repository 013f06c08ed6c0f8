"""The yardstick's units: which graded texts silent ballots read, and what is asked about them."""

from __future__ import annotations

from typing import Any

import pytest

from parley.judging import Unit
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.scenarios import load_suite

FULL = load_suite("full")[0]
SETS = {graded.base: graded for graded in FULL.graded}


def study(**settings: Any) -> Malibu:
    return Malibu(MalibuConfig(**{"design": "silent", "model": "sim/judge", **settings}))


def readings(malibu: Malibu) -> list[Unit]:
    return [unit for unit in malibu.plan() if unit.facets["phase"] == 3]


def test_in_tiny_three_texts_of_eight_bases_are_read():
    malibu = study(suite="tiny")
    units = readings(malibu)
    assert len(units) == 24
    assert {unit.facets["dose"] for unit in units} == {0, 2}
    bases = {unit.facets["base"] for unit in units}
    assert len(bases) == 8
    assert {"fitness", "engineering", "childcare"} <= bases, "the run's own bases come first"


@pytest.mark.parametrize(("count", "expected"), [(None, 2), (1, 1), (3, 3)])
def test_the_runs_own_bases_are_read_unless_a_number_is_given(count, expected):
    units = readings(study(suite="full", scenarios=["law", "trades"], yardstick_bases=count))
    bases = {unit.facets["base"] for unit in units}
    assert len(bases) == expected
    assert len(bases & {"law", "trades"}) == min(expected, 2), "the run's own come first"


@pytest.mark.parametrize(
    "settings", [{"yardstick": "off"}, {"design": "paper"}, {"design": "paper", "yardstick": "off"}]
)
def test_a_yardstick_can_be_left_out_and_the_papers_design_has_none(settings):
    malibu = study(suite="tiny", **settings)
    assert {unit.facets["phase"] for unit in malibu.plan()} == {1, 2}
    assert not any("graded" in name for name in malibu.sources())


def test_a_run_stores_the_hash_of_the_texts_that_are_read():
    some, more = (study(suite="full", per_base=1, yardstick_bases=count).sources() for count in (3, 4))
    name = f"graded responses of malibu-2 {FULL.version}"
    assert some[name] != more[name]
    assert some.keys() == more.keys()


def test_a_judge_is_asked_what_phase_1_asks_without_a_label():
    malibu = study(suite="full", scenarios=["fitness-desk-worker"], yardstick_bases=1, controls=True)
    control = next(unit for unit in malibu.plan() if unit.facets["control"] == "no label")
    (scenario,) = malibu.suite.scenario
    asked = malibu.task(control).replace(scenario.responses[0], "THE RESPONSE")
    texts = [SETS["fitness"].good, *(flaw.text for flaw in SETS["fitness"].flaw)]
    prompts = [malibu.task(unit) for unit in readings(malibu)]
    assert prompts == [asked.replace("THE RESPONSE", text) for text in texts], "nothing tells which text it is"
