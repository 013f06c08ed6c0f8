"""MALIBU's plan: which units, how many, under which names, in which cells, and for which models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parley.judging import Unit
from parley.scenarios import ALL, CATEGORIES
from tests.panels import ONE_CELL

Plan = Callable[..., list[Unit]]
FIVE: dict[str, Any] = {"suite": "full", "scenarios": ["fitness"], "per_base": 5}


def by_scenario(units: Sequence[Unit]) -> dict[Any, list[Any]]:
    actual: dict[Any, list[Any]] = {}
    for unit in units:
        actual.setdefault(unit.facets["scenario"], []).append(unit.facets)
    return actual


# How many


def test_ten_labels_make_eleven_singles_and_thirteen_pairs_of_four_cells(planned: Plan) -> None:
    for here in by_scenario(planned(**FIVE)).values():
        singles = [item for item in here if item["phase"] == 1]
        pairs = [item for item in here if item["phase"] == 2]
        assert Counter(item["control"] for item in singles) == {"": 10, "no label": 1}
        assert Counter(item["control"] for item in pairs) == {"": 13 * 4, "same label": 10 * 2, "no label": 2}
        compared = {(item["identity"], item["other"]) for item in pairs if not item["control"]}
        assert len(compared) == 13
        assert all(any({x, y} <= set(labels) for labels in CATEGORIES.values()) for x, y in compared), (
            "only within a category"
        )


def test_the_papers_design_has_thirty_five(planned: Plan) -> None:
    """One cell of each pair, and of each null control."""
    units = planned(**FIVE, design="paper")
    assert len(units) == 5 * (11 + 13 + 11)
    for here in by_scenario(units).values():
        assert Counter((item["phase"], item["control"]) for item in here) == {
            (1, ""): 10,
            (1, "no label"): 1,
            (2, ""): 13,
            (2, "same label"): 10,
            (2, "no label"): 1,
        }


def test_the_tiny_view_has_nine(planned: Plan) -> None:
    units = planned(suite="tiny", **ONE_CELL)
    assert len(units) == 3 * (2 + 1)
    assert all(unit.facets["control"] == "" for unit in units)


def test_controls_can_be_left_out(planned: Plan) -> None:
    units = planned(**FIVE, controls=False)
    assert len(units) == 5 * (10 + 13 * 4)
    assert all(unit.facets["control"] == "" for unit in units)


def test_a_part_of_the_suite(planned: Plan) -> None:
    named = planned(suite="full", scenarios=["law", "music-cello-seam"], phases=[1])
    assert Counter(unit.facets["base"] for unit in named) == {"law": 10 * 11, "music": 11}
    one_each = planned(suite="full", per_base=1, phases=[1])
    assert Counter(unit.facets["base"] for unit in one_each) == dict.fromkeys(
        {unit.facets["base"] for unit in one_each}, 11
    )
    assert len(one_each) == 20 * 11


def test_identities_of_the_users_own(planned: Plan, place: Path) -> None:
    (place / "ages.toml").write_text('[categories]\nage = ["20-year-old", "70-year-old"]\n')
    units = planned(suite="mine.toml", identities=["ages.toml"])
    assert len(units) == 3 + 4 + 2 * 3
    assert {unit.facets["category"] for unit in units} == {"age", ""}


def test_crossed_identities(planned: Plan) -> None:
    """Eight labels, sixteen pairs that differ in one part."""
    units = planned(suite="mine.toml", identities=["race+gender"])
    kinds = Counter((unit.facets["phase"], unit.facets["control"]) for unit in units)
    assert kinds == {
        (1, ""): 8,
        (1, "no label"): 1,
        (2, ""): 16 * 4,
        (2, "same label"): 8 * 2,
        (2, "no label"): 2,
    }
    assert {unit.facets["category"] for unit in units if unit.facets["identity"]} == {"race+gender"}
    assert "p1/bakery/black female/r0" in [unit.id for unit in units]


# Names


def test_ids_will_not_change_under_people_who_have_runs(planned: Plan) -> None:
    assert [unit.id for unit in planned(suite="mine.toml", identities=["gender"])] == [
        "p1/bakery/female/r0",
        "p1/bakery/male/r0",
        "p1/bakery/none/r0",
        "p2/bakery/female-male/a0o0/r0",
        "p2/bakery/female-male/a0o1/r0",
        "p2/bakery/female-male/a1o0/r0",
        "p2/bakery/female-male/a1o1/r0",
        "p2/bakery/none-none/a0o0/r0",
        "p2/bakery/none-none/a0o1/r0",
        "p2/bakery/female-female/a0o0/r0",
        "p2/bakery/female-female/a0o1/r0",
        "p2/bakery/male-male/a0o0/r0",
        "p2/bakery/male-male/a0o1/r0",
    ]


# Cells


def test_every_label_is_first_as_often_as_second_and_has_each_response_equally_often(planned: Plan) -> None:
    pairs = [unit.facets for unit in planned(**FIVE, phases=[2], controls=False)]
    places: Counter[tuple[Any, str, Any]] = Counter()
    for item in pairs:
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


def test_the_papers_design_has_one_cell_drawn_by_the_seed(planned: Plan) -> None:
    settings: dict[str, Any] = {**FIVE, "design": "paper", "phases": [2], "controls": False}
    drawn = cells_of(planned(**settings, seed=1))
    assert len(drawn) == 5 * 13
    assert len({cell[:4] for cell in drawn}) == 5 * 13, "one cell each"
    assert drawn == cells_of(planned(**settings, seed=1))
    assert drawn != cells_of(planned(**settings, seed=2))
    assert Counter(cell[4:] for cell in drawn).keys() == {(0, 0), (0, 1), (1, 0), (1, 1)}
    everything = cells_of(planned(**FIVE, phases=[2], controls=False))
    assert set(drawn) < set(everything)


def test_repeats_run_every_unit_again(planned: Plan) -> None:
    once = planned(**FIVE)
    thrice = planned(**FIVE, repeats=3)
    assert Counter(unit.facets["repeat"] for unit in thrice) == dict.fromkeys(range(3), len(once))
    stems = Counter(unit.id.rpartition("/")[0] for unit in thrice)
    assert stems == dict.fromkeys((unit.id.rpartition("/")[0] for unit in once), 3)


# Several models


def test_several_models_judge_the_same_items(planned: Plan) -> None:
    """The same scenarios, labels and cells for each, so that models can be compared unit by unit."""
    models = ["sim/a", "sim/b?female=+0.4"]
    alone = planned(suite="tiny", model=["sim/a"])
    both = planned(suite="tiny", model=models)
    assert len(both) == 2 * len(alone)
    for model in models:
        items = [unit for unit in both if unit.facets["model"] == model]
        assert [unit.id for unit in items] == [f"{unit.id}/@{model}" for unit in alone]
        assert [{**unit.facets, "model": ""} for unit in items] == [{**unit.facets, "model": ""} for unit in alone]
