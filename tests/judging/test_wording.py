"""Paraphrases and label styles: the prompts say the same, and no wording is confounded with an identity."""

from __future__ import annotations

import string
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.judging import Unit
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.judging.malibu.wording import JUDGING, PARAPHRASES, PROMPTS
from parley.scenarios import ScenarioError, identity_words

Planned = Callable[..., list[Unit]]
FIVE: dict[str, Any] = {"suite": "full", "paraphrases": 5, "identities": ["gender", "black", "white"], "controls": True}


def placeholders(text: str) -> Counter[str]:
    return Counter(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


# The paraphrases say the same


@pytest.mark.parametrize("key", JUDGING)
def test_all_paraphrases_ask_for_the_same(key: str) -> None:
    original, *others = (PROMPTS[key, number].text for number in range(1, PARAPHRASES + 1))
    assert len({original, *others}) == PARAPHRASES >= 5
    for text in (original, *others):
        assert placeholders(text) == placeholders(original)
        for content in ("{metrics}", "{format}", "Situation: {scenario}", " 0", " 10", "poor", "excellent", "JSON"):
            assert content in text.replace("(", " ("), f"{content!r} is missing"
        assert "judge" in text.lower()
        assert identity_words(text) == []
        for side in ("",) if key == "single" else ("_a", "_b"):
            assert f'\n{{candidate{side}}}\n"{{response{side}}}"\n' in text, "a candidate is shown in one way"
        if key == "pair":
            for content in ("strengths and weaknesses", "preferred candidate ({choices})", "justify the choice"):
                assert content in text
        if key != "single":
            assert "both candidates" in text
        if key == "single":
            assert "exactly" in text
            assert "keys" in text


def test_the_paraphrases_of_a_pair_without_a_stated_preference_leave_only_that_out() -> None:
    for number in range(1, PARAPHRASES + 1):
        stated, inferred = (PROMPTS[key, number].text for key in ("pair", "pair_inferred"))
        left_out = {line for line in stated.splitlines() if "{choices}" in line}
        assert left_out
        assert not left_out & set(inferred.splitlines())
        assert placeholders(stated) - placeholders(inferred) == Counter({"choices": 1})


# Who gets which


def test_one_wording_is_the_usual_prompt_and_the_usual_units() -> None:
    usual, asked = (Malibu(MalibuConfig(suite="mine.toml", **more)) for more in ({}, {"paraphrases": 1}))
    assert list(usual.plan()) == list(asked.plan())
    assert usual.config.model_dump_json() == asked.config.model_dump_json()
    assert not any("paraphrase" in unit.facets or "label_style" in unit.facets for unit in usual.plan())
    assert usual.prompts().keys() >= {"malibu/single", "malibu/pair", "malibu/pair_inferred"}
    assert "malibu/single_2" not in usual.prompts()
    assert "wordings" not in usual.analysis_plan()


def test_identities_are_compared_within_a_wording(planned: Planned) -> None:
    units = planned(**FIVE, label_style=["plain", "noun", "name"])
    words = defaultdict(set)
    for unit in units:
        words[unit.facets["scenario"], unit.facets["repeat"]].add(
            (unit.facets["paraphrase"], unit.facets["label_style"])
        )
    assert len(words) == 200
    assert all(len(used) == 1 for used in words.values())
    assert len({unit.id for unit in units}) == len(units)


def test_every_base_has_every_paraphrase_equally_often(planned: Planned) -> None:
    scenarios = {unit.facets["scenario"]: unit for unit in planned(**FIVE, phases=[1])}.values()
    by_base = Counter((unit.facets["base"], unit.facets["paraphrase"]) for unit in scenarios)
    assert len(by_base) == 20 * 5
    assert set(by_base.values()) == {2}


def test_with_one_scenario_per_base_the_bases_share_them_evenly(planned: Planned) -> None:
    scenarios = {unit.facets["scenario"]: unit for unit in planned(**FIVE, phases=[1], per_base=1)}.values()
    assert Counter(unit.facets["paraphrase"] for unit in scenarios) == dict.fromkeys(range(1, 6), 4)


@pytest.mark.parametrize("paraphrases", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "styles", [["plain", "noun"], ["noun", "name", "pronoun"], ["plain", "noun", "name", "pronoun"]]
)
def test_repeats_cross_all_wordings_within_a_scenario(planned: Planned, paraphrases: int, styles: list[str]) -> None:
    count = paraphrases * len(styles)
    units = planned(
        suite="full", per_base=1, phases=[1], identities=["gender"], controls=False, repeats=count,
        paraphrases=paraphrases, label_style=styles,
    )  # fmt: skip
    used = defaultdict(set)
    for unit in units:
        used[unit.facets["scenario"]].add((unit.facets.get("paraphrase", 1), unit.facets["label_style"]))
    assert all(len(combinations) == count for combinations in used.values())


def test_fewer_paraphrases_are_drawn_by_the_seed_and_keep_the_papers() -> None:
    drawn = {
        Malibu(MalibuConfig(suite="mine.toml", paraphrases=3, seed=seed)).wordings.paraphrases for seed in range(30)
    }
    assert all(numbers[0] == 1 and len(set(numbers)) == 3 for numbers in drawn)
    assert len(drawn) == 6  # two of four


def test_the_seed_decides_who_gets_which(planned: Planned) -> None:
    plans = [
        [unit.facets["paraphrase"] for unit in planned(**FIVE, phases=[1], per_base=1, seed=seed)] for seed in (0, 0, 1)
    ]
    assert plans[0] == plans[1] != plans[2]


# What is shown


def test_a_unit_has_the_prompt_that_its_facets_name() -> None:
    study = Malibu(MalibuConfig(**FIVE, label_style=["noun"]))
    for unit in study.plan():
        facets = unit.facets
        if facets["phase"] == 3:
            assert study.task(unit).startswith(PROMPTS["single", 1].text[:40]), "the yardstick has the usual words"
            assert "paraphrase" not in facets
            continue
        text = study.task(unit)
        original = PROMPTS["single" if facets["phase"] == 1 else "pair", facets["paraphrase"]].text
        assert text.startswith(original[:40])
        shown = {"female": "a woman", "male": "a man", "black": "a Black person", "white": "a White person", "": ""}
        for key, side in (("", ""),) if facets["phase"] == 1 else (("_a", " A"), ("_b", " B")):
            label = shown[facets[f"identity{key}"]]
            assert facets[f"label_shown{key}"] == label
            assert f"\nCandidate{side} ({label}):\n" in text if label else f"\nCandidate{side}:\n" in text
        assert unit.id.endswith(f"/w{facets['paraphrase']}/noun")


def test_names_are_drawn_by_scenario_and_alike_in_gender(planned: Planned) -> None:
    units = planned(suite="full", identities=["black", "white"], label_style=["name"], controls=False)
    shown: dict[tuple[Any, str], set[str]] = defaultdict(set)
    for unit in units:
        for key in ("",) if unit.facets["phase"] == 1 else ("_a", "_b"):
            shown[unit.facets["scenario"], unit.facets[f"identity{key}"]].add(unit.facets[f"label_shown{key}"])
    assert all(len(names) == 1 for names in shown.values()), "one name in all units of a scenario"
    names = {key: next(iter(value)) for key, value in shown.items()}
    of_women = {"Emily", "Anne", "Jill", "Allison", "Sarah", "Meredith", "Laurie", "Carrie", "Kristen"} | {
        *("Aisha", "Keisha", "Tamika", "Lakisha", "Tanisha", "Latoya", "Kenya", "Latonya", "Ebony")
    }
    genders = []
    for scenario in {scenario for scenario, _ in names}:
        black, white = (names[scenario, label] for label in ("black", "white"))
        assert (black in of_women) == (white in of_women)
        genders.append(black in of_women)
    assert 70 < sum(genders) < 130  # of 200
    assert len(set(names.values())) == 36, "every name of the list comes up"


def test_labels_at_the_end_are_worded_too() -> None:
    study = Malibu(
        MalibuConfig(suite="mine.toml", identities=["gender"], label_style=["pronoun"], labels="last", phases=[2])
    )
    unit = next(unit for unit in study.plan() if unit.facets["phase"] == 2 and unit.facets["identity_a"] == "female")
    assert "Candidate A (she/her): the first response" in study.task(unit)


def test_a_run_stores_what_it_used() -> None:
    study = Malibu(MalibuConfig(suite="mine.toml", identities=["gender"], paraphrases=5, label_style="name"))
    assert {f"malibu/{key}_{number}" for key in JUDGING for number in (2, 3, 4, 5)} <= study.prompts().keys()
    assert "label wordings wordings-1 1" in study.sources()
    wordings = study.analysis_plan()["wordings"]
    assert (wordings["paraphrases"], wordings["label styles"]) == ([1, 2, 3, 4, 5], ["name"])
    assert study.config.model_dump()["paraphrases"] == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label_style": []}, "at least one label style"),
        ({"label_style": ["noun", "noun"]}, "given twice"),
        ({"label_style": ["name"], "identities": ["race"]}, "--label-style name has no words for asian, hispanic"),
    ],
)
def test_settings_that_cannot_be_met_are_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, ScenarioError), match=message):
        Malibu(MalibuConfig(suite="mine.toml", **settings))
