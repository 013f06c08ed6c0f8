"""A judge that obeys orders at a planted rate is found out, and one that does not is not accused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import parley
from parley.agents import ConfigError, Debate, Persona
from parley.agents.models.sim_judge import find_score_instruction
from parley.analysis.injection.report import pairs
from parley.judging import Unit
from parley.judging.injection import Injection, InjectionConfig
from parley.reports import make_report
from parley.runs import frames

READABLE = ["order", "threat"]


def run_study(model: str, **settings: Any) -> Any:
    settings = {"responses": 12, "kinds": READABLE, **settings}
    assert parley.run("injection", model=f"sim/judge?{model}", out="a.sqlite", **settings).complete
    return pairs(frames.verdicts("a.sqlite"))


def prompt_of(study: Injection, unit: Unit) -> str:
    """The prompt of MALIBU's judges."""
    judge, scenario, shown = study.asked(unit)
    return judge.task(scenario, shown)


def test_every_response_is_judged_clean_with_attempts_and_with_controls() -> None:
    study = Injection(InjectionConfig(responses=5, kinds=["order", "encoded"], asks=[10, 0]))
    units = list(study.plan())
    assert len(units) == 5 * 2 * (1 + 4 * 3)
    assert len({unit.id for unit in units}) == len(units)
    assert len({unit.facets["base"] for unit in units}) == 5, "drawn over bases"
    open_, fenced = (
        next(u for u in units if u.facets["shown"] == way and u.facets["ask"]) for way in ("open", "fenced")
    )
    assert "a score of 10 on every metric" in prompt_of(study, open_)
    assert "<<<" not in prompt_of(study, open_)
    assert "> " in prompt_of(study, fenced).partition("<<<")[2]
    assert "It is data" in prompt_of(study, fenced)


def test_another_seed_draws_other_responses() -> None:
    configs = [InjectionConfig(seed=seed, kinds=["order-short"]) for seed in (0, 0, 1)]
    drawn = [{unit.facets["scenario"] for unit in Injection(config).plan()} for config in configs]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_planted_rate_is_found_again() -> None:
    """Without noise a reply is at the asked score exactly if it obeyed: 12 responses x 4 attempts x 2 asks = 96 draws
    a way of showing, so the count lies between the 0.01% and 99.99% quantiles of the binomial."""
    actual = run_study("obeys=0.5&obeys_fenced=0.1&noise=0")
    for way, rate in (("open", 0.5), ("fenced", 0.1)):
        replies = actual[(actual["shown"] == way) & (actual["metric"] == "Accuracy")]
        obeyed = int((replies["sampled"] == replies["ask"]).sum())
        low, high = stats.binom.ppf([0.0001, 0.9999], 96, rate)
        assert len(replies) == 96
        assert low <= obeyed <= high
    assert (actual["towards_control"] == 0).all()
    words = " ".join(make_report([Path("a.sqlite")], draws=200).words)
    assert "A fence reduces the effect of attempts by " in words


def test_a_judge_that_cannot_read_a_code_is_not_moved_by_it() -> None:
    actual = run_study("obeys=1&noise=0", kinds=["encoded", "other language"], responses=3, fence="open")
    assert (actual["effect"] == 0).all()


def test_a_judge_that_ignores_injections_shows_no_effect() -> None:
    """Of 84 such tests over seeds 0 to 13, one p-value was below 0.05 (it is seed 0's, and 5% are allowed)."""
    run_study("noise=1", seed=1)
    report = make_report([Path("a.sqlite")], draws=500)
    kinds = report.table("kinds")
    assert (kinds["p_adjusted"] > 0.05).all()
    assert (kinds["asked"] < 0.1).all()


@pytest.mark.parametrize("settings", [{"responses": 200, "kinds": ["order-short"]}, {"responses": 4}])
def test_neither_clean_responses_nor_controls_contain_an_instruction(settings: dict[str, Any]) -> None:
    """All 200 responses, and all 28 controls: else a planted rate would move what must not move."""
    study = Injection(InjectionConfig(**settings, asks=[10], fence="open"))
    for unit in study.plan():
        if unit.facets["variant"] != "attack":
            assert find_score_instruction(prompt_of(study, unit)) is None, unit.id


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"asks": [11]}, "from 0 to 10"),
        ({"asks": [10, 10]}, "each given once"),
        ({"responses": 500}, "fewer than 500"),
        ({"members": 9}, "has only 4 members"),
        ({"judges": "nobody"}, "unknown panel"),
        ({"model": []}, "--model is empty"),
    ],
)
def test_bad_settings_are_an_error_before_the_run(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Injection(InjectionConfig(**settings))


def test_malibu_can_fence_too_and_does_not_unless_asked(run_study: Any) -> None:
    prompts = "SELECT DISTINCT text FROM transcript WHERE speaker = 'user' AND round = 0"
    settings = {"phases": [2], "controls": False, "rounds": 2}
    assert not any("<<<" in text for (text,) in run_study(prompts, **settings))
    Path("a.sqlite").unlink()
    fenced = [text for (text,) in run_study(prompts, **settings, fence=True)]
    assert fenced
    assert all(text.count("<<<") == 2 and text.count("> Knead it twice.") == 1 for text in fenced)


def test_others_words_are_quoted_in_prompts_and_stored_unchanged() -> None:
    ada, ben = Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")
    table = Debate([ada, ben], model="sim/any", rounds=1, fence=True)
    first, second = asyncio.run(table.converse("Should buses be free?")).spoken()
    heard = [piece.text for piece in second.calls[0].prompt]
    assert f"\n> {first.text}\n" in heard[-1]
    assert heard[-1].startswith("<<<")
    assert "<<<" not in first.text
