"""MALIBU's plan: which units, how many, under which names, in which cells, and for which models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from parley.judging import Unit
from parley.scenarios import ALL, CATEGORIES
from tests.panels import ONE_CELL

Plan = Callable[..., list[Unit]]
FIVE: dict[str, Any] = {"suite": "full", "scenarios": ["fitness"], "per_base": 5}
MINE: dict[str, Any] = {"suite": "mine.toml"}


@pytest.mark.parametrize(
    ("settings", "scenarios", "singles", "pairs"),
    [
        # The labels; their pairs within a category, in four cells; the same label twice, and no label, in two orders.
        (FIVE, 5, {"": 10, "no label": 1}, {"": 13 * 4, "same label": 10 * 2, "no label": 2}),
        ({**FIVE, "design": "paper"}, 5, {"": 10, "no label": 1}, {"": 13, "same label": 10, "no label": 1}),
        ({**FIVE, "controls": False}, 5, {"": 10}, {"": 13 * 4}),
        ({"suite": "tiny", **ONE_CELL}, 3, {"": 2}, {"": 1}),
        ({**MINE, "identities": ["ages.toml"]}, 1, {"": 2, "no label": 1}, {"": 4, "same label": 4, "no label": 2}),
        # Crossed: eight labels, sixteen pairs that differ in one part.
        (
            {**MINE, "identities": ["race+gender"]},
            1,
            {"": 8, "no label": 1},
            {"": 16 * 4, "same label": 8 * 2, "no label": 2},
        ),
    ],
)
def test_every_scenario_has_the_same_singles_pairs_and_controls(planned, place, settings, scenarios, singles, pairs):
    (place / "ages.toml").write_text('[categories]\nage = ["20-year-old", "70-year-old"]\n')
    units = planned(**settings)
    ids = [unit.id for unit in units]
    assert ids == [unit.id for unit in planned(**settings)]
    assert len(set(ids)) == len(ids)
    here = Counter((unit.facets["scenario"], unit.facets["phase"], unit.facets["control"]) for unit in units)
    names = {unit.facets["scenario"] for unit in units}
    assert len(names) == scenarios
    for name in names:
        assert {control: here[name, 1, control] for _, phase, control in here if phase == 1} == singles
        assert {control: here[name, 2, control] for _, phase, control in here if phase == 2} == pairs
    pairs_of_labels = [unit.facets for unit in units if unit.facets["phase"] == 2 and not unit.facets["control"]]
    if "identities" not in settings:
        within = [set(labels) for labels in CATEGORIES.values()]
        assert all(any({item["identity"], item["other"]} <= labels for labels in within) for item in pairs_of_labels)
    else:
        assert {item["category"] for item in pairs_of_labels} == {settings["identities"][0].replace("ages.toml", "age")}


def test_ids_will_not_change_under_people_who_have_runs(planned):
    assert [unit.id for unit in planned(suite="mine.toml", identities=["gender"])] == [
        *(f"p1/bakery/{label}/r0" for label in ("female", "male", "none")),
        *(f"p2/bakery/female-male/{cell}/r0" for cell in ("a0o0", "a0o1", "a1o0", "a1o1")),
        *(
            f"p2/bakery/{labels}/{cell}/r0"
            for labels in ("none-none", "female-female", "male-male")
            for cell in ("a0o0", "a0o1")
        ),
    ]


def test_every_label_is_first_as_often_as_second_and_has_each_response_equally_often(planned):
    places: Counter[tuple[Any, str, Any]] = Counter()
    for unit in planned(**FIVE, phases=[2], controls=False):
        item = unit.facets
        places[item["identity_a"], "A", item["response_a"]] += 1
        places[item["identity_b"], "B", item["response_b"]] += 1
        assert {item["response_a"], item["response_b"]} == {1, 2}
    for label in ALL:
        counts = {places[label, side, response] for side in "AB" for response in (1, 2)}
        opponents = len(next(labels for labels in CATEGORIES.values() if label in labels)) - 1
        assert counts == {5 * opponents}, label


def cells_of(units: Sequence[Unit]) -> list[tuple[Any, ...]]:
    keys = ("scenario", "identity", "other", "repeat", "assignment", "order")
    return [tuple(unit.facets[key] for key in keys) for unit in units]


def test_the_papers_design_has_one_cell_drawn_by_the_seed(planned):
    settings: dict[str, Any] = {**FIVE, "design": "paper", "phases": [2], "controls": False}
    drawn = cells_of(planned(**settings, seed=1))
    assert len(drawn) == len({cell[:4] for cell in drawn}) == 5 * 13, "one cell each"
    assert drawn == cells_of(planned(**settings, seed=1))
    assert drawn != cells_of(planned(**settings, seed=2))
    assert Counter(cell[4:] for cell in drawn).keys() == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert set(drawn) < set(cells_of(planned(**FIVE, phases=[2], controls=False)))


def test_repeats_run_every_unit_again(planned):
    once = planned(**FIVE)
    thrice = planned(**FIVE, repeats=3)
    assert Counter(unit.facets["repeat"] for unit in thrice) == dict.fromkeys(range(3), len(once))
    stems = Counter(unit.id.rpartition("/")[0] for unit in thrice)
    assert stems == dict.fromkeys((unit.id.rpartition("/")[0] for unit in once), 3)


def test_several_models_judge_the_same_items_one_after_the_other(planned):
    """The same scenarios, labels and cells for each, so that models can be compared unit by unit."""
    models = ["sim/a", "sim/b?female=+0.4"]
    alone = planned(suite="tiny", model="sim/a")
    assert alone == planned(suite="tiny", model=["sim/a"])
    both = planned(suite="tiny", model=models)
    assert [unit.facets["model"] for unit in both] == models * len(alone)
    for model in models:
        items = [unit for unit in both if unit.facets["model"] == model]
        assert [unit.id for unit in items] == [f"{unit.id}/@{model}" for unit in alone]
        assert [{**unit.facets, "model": ""} for unit in items] == [{**unit.facets, "model": ""} for unit in alone]
