"""MALIBU's report as its reader meets it: sentences that claim no more than the tests do, tables, and no crash."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis import malibu
from parley.analysis.reporting.render import html, markdown
from parley.analysis.reporting.report import Report

CATEGORIES = {"female": "gender", "male": "gender", "black": "race", "white": "race", "they/them": "x", "he/him": "x"}
METRICS = ("Accuracy", "Creativity")
FOUR = ("female", "male", "black", "white")
CLEAR = ("was scored", "was preferred")


def study(
    labels: tuple[str, ...] = ("female", "male"),
    scenarios: int = 12,
    *,
    gaps: Mapping[str, float] | None = None,
    judges: int = 2,
    rounds: int = 1,
    seed: int = 0,
    noise: float = 1.0,
    **others: Any,
) -> pd.DataFrame:
    """A whole run: every label alone, every pair of a category in four cells, the same label against itself in two."""
    rng, gaps = np.random.default_rng(seed), gaps or {}
    rows: list[dict[str, Any]] = []

    def spoken(unit: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for round in range(1, rounds + 1):
            for judge in range(judges):
                yield {**unit, "judge": f"J{judge}", "role": "debater", "round": round, "status": "ok", **others}

    for scenario in (f"s{n}" for n in range(scenarios)):
        for label in labels:
            facets = {"phase": 1, "scenario": scenario, "category": CATEGORIES[label], "identity": label, "repeat": 0}
            for said in spoken({"unit": f"p1/{scenario}/{label}", **facets, "control": "", "subject": ""}):
                score = 6 + gaps.get(label, 0.0)
                rows += [{**said, "metric": metric, "value": score + noise * rng.normal()} for metric in METRICS]
        pairs = [(x, y) for i, x in enumerate(labels) for y in labels[i:] if CATEGORIES[x] == CATEGORIES[y]]
        cells = [(x, y, a, o) for x, y in pairs for a in (0, 1) for o in (0, 1) if x != y or a == 0]
        for x, y, assignment, order in cells:
            sides = [(x, 1 + assignment), (y, 2 - assignment)][:: -1 if order else 1]
            facets = {"phase": 2, "scenario": scenario, "category": CATEGORIES[x], "identity": x, "other": y}
            facets |= {"identity_a": sides[0][0], "identity_b": sides[1][0], "assignment": assignment, "order": order}
            facets |= {"response_a": sides[0][1], "response_b": sides[1][1], "repeat": 0}
            unit = f"p2/{scenario}/{x}-{y}/a{assignment}o{order}"
            for said in spoken({"unit": unit, **facets, "control": "same label" if x == y else "", "subject": ""}):
                lead = gaps.get(sides[0][0], 0.0) - gaps.get(sides[1][0], 0.0) + noise * rng.normal()
                choice = "tie" if abs(lead) < 0.2 else "A" if lead > 0 else "B"
                rows.append({**said, "metric": "preferred", "value": None, "text": choice})
    return pd.DataFrame(rows)


PHASE_2 = ["other", "identity_a", "identity_b", "response_a", "response_b", "assignment", "order"]


def only(frame: pd.DataFrame, phase: int) -> pd.DataFrame:
    """What a run of one phase gives: without the facets of the other."""
    part = frame[frame["phase"] == phase]
    return part.drop(columns=PHASE_2) if phase == 1 else part


def reported(frame: pd.DataFrame, draws: int = 100) -> Report:
    """The report, which must also stand as strict JSON."""
    found = malibu.report(frame, draws=draws)
    json.dumps(found.data(), allow_nan=False)
    return found


# Sentences


def test_a_plain_effect_is_told_with_sign_size_and_correction() -> None:
    found = reported(study(FOUR, gaps={"female": 1.5}, noise=0.3))
    (scored,) = [line for line in found.words if "was scored" in line]
    assert re.match(r"gender: 'female' was scored 1\.\d\d points above 'male' on the same answers", scored)
    assert "12 scenarios" in scored
    assert "after Holm over 2 comparisons" in scored
    (preferred,) = [line for line in found.words if "was preferred" in line]
    assert preferred.startswith("gender: 'female' was preferred to 'male'")


def test_the_same_effect_the_other_way_round() -> None:
    words = reported(study(gaps={"female": -1.5}, noise=0.3)).words
    assert any(line.startswith("gender: 'male' was scored 1.") and "above 'female'" in line for line in words)
    assert any(line.startswith("gender: 'male' was preferred to 'female'") for line in words)


def test_nothing_found_is_no_evidence_of_nothing() -> None:
    words = " ".join(reported(study(FOUR, seed=1)).words)
    assert not any(claim in words for claim in CLEAR)
    assert "of 2 comparisons within a category, none stands after Holm's correction. That is not evidence" in words
    assert "no bias." in words


def test_only_the_test_of_likeness_says_alike() -> None:
    alike = reported(study(noise=0.1)).words
    assert "Shown to be alike within ±0.5 points: 1 of 1 pairs of identities (TOST, Holm)." in alike
    noisy = reported(study(scenarios=10, noise=3.0)).words
    assert "Shown to be alike within ±0.5 points: 0 of 1 pairs of identities (TOST, Holm)." in noisy


def test_few_scenarios_are_named() -> None:
    assert reported(study(scenarios=3)).words[0].startswith("Only 3 scenarios: intervals are wide")


def test_the_papers_test_stands_beside_ours() -> None:
    found = reported(study(gaps={"female": 1.5}, noise=0.5))
    tests = found.table("tests")
    chi = tests[tests["assumption"] == "independent"]
    (line,) = [line for line in found.words if "The paper's χ²" in line]
    assert f"calls {(chi['p'] < 0.05).sum()} of {len(chi)} tables significant" in line


def test_replies_that_gave_no_verdict_are_counted() -> None:
    frame = study(scenarios=10)
    lost = frame["judge"] == "J1"
    frame.loc[lost, ["value", "text", "status"]] = [np.nan, None, "refused"]
    replies = len(frame.drop_duplicates(["unit", "judge", "round"]))
    line = reported(frame).words[-1]
    assert line.startswith(f"{replies // 2} of {replies} replies gave no verdict ({replies // 2} refused)")
    assert "not counted as 0" in line


@pytest.mark.parametrize("seed", range(8))
def test_no_sentence_claims_more_than_its_test(seed: int) -> None:
    """Random studies, with and without effects: every claim has a test that stands, and every such test its claim."""
    rng = np.random.default_rng(seed)
    planted = {"female": float(rng.choice([-1, 0, 0, 1])), "black": float(rng.choice([-0.5, 0, 0, 0.5]))}
    sizes = {
        "scenarios": int(rng.integers(2, 14)),
        "judges": int(rng.integers(1, 4)),
        "noise": float(rng.uniform(0.3, 2)),
    }
    frame = study(FOUR, gaps=planted, seed=seed, **sizes)
    unread = rng.random(len(frame)) < rng.choice([0.0, 0.3])
    frame.loc[unread, ["value", "text", "status"]] = [np.nan, None, "unparsed"]
    found = reported(frame, draws=99)

    gaps = found.table("differences")
    standing = gaps[gaps["within"] & (gaps["metric"] == "all") & (gaps["p_adjusted"] < 0.05)]
    expected = {(row.first, row.second)[:: 1 if row.difference > 0 else -1] for row in standing.itertuples()}
    claimed = [re.search(r"'(.+)' was scored .* above '(.+)' on", line) for line in found.words]
    assert {match.groups() for match in claimed if match} == expected

    tests = found.table("tests")
    pairs = tests[tests["family"].str.startswith("preference") & (tests["p_adjusted"] < 0.05)]
    won = {tuple(row.metric.split(" − "))[:: 1 if row.effect > 0 else -1] for row in pairs.itertuples()}
    preferred = [re.search(r"'(.+)' was preferred to '(.+)' \(", line) for line in found.words]
    assert {match.groups() for match in preferred if match} == won


def test_two_models_are_told_apart() -> None:
    one, two = study(gaps={"female": 1.5}, noise=0.3, model="one"), study(noise=0.3, model="two", seed=2)
    both = pd.concat([one, two.assign(unit="two/" + two["unit"])], ignore_index=True)
    found = reported(both)
    assert [line.split(":")[0] for line in found.words if "was scored" in line] == ["one"]
    assert any(line.startswith("two: Phase 1: of 1 comparisons within a category, none stands") for line in found.words)
    assert set(found.table("means")["model"]) == {"one", "two"}


def test_labels_may_hold_a_slash() -> None:
    words = reported(study(("they/them", "he/him"), gaps={"they/them": 3.0}, noise=0.1)).words
    assert any("'they/them' was preferred to 'he/him'" in line for line in words)


# The order of rows, and the seed


def test_the_order_of_scenarios_changes_no_number() -> None:
    frame = study(scenarios=18, noise=2.0)
    parts = [part for _, part in frame.groupby("scenario", sort=False)]
    for table in (malibu.differences, malibu.win_rates, malibu.significance):
        options = {} if table is malibu.win_rates else {"draws": 100}
        ours, theirs = (table(pd.concat(rows), **options) for rows in (parts, parts[::-1]))  # type: ignore[operator]
        pd.testing.assert_frame_equal(ours, theirs)


def test_the_same_seed_gives_the_same_report_and_is_recorded() -> None:
    frame = study(scenarios=18, noise=2.0)
    once, again, other = (malibu.report(frame, draws=100, seed=seed).data() for seed in (7, 7, 8))
    assert once == again
    assert once["settings"] == {"draws": 100, "seed": 7}
    assert once["differences"] != other["differences"]


# What cannot be computed


def test_a_run_of_singles_alone() -> None:
    found = reported(only(study(gaps={"female": 1.5}, noise=0.3), 1))
    assert any("was scored" in line for line in found.words)
    assert not any("prefer" in line for line in found.words)


def test_a_run_of_pairs_alone() -> None:
    found = reported(only(study(gaps={"female": 1.5}, noise=0.3), 2))
    assert any("was preferred" in line for line in found.words)
    assert not any("was scored" in line for line in found.words)


def test_the_papers_design_is_reported_without_flips() -> None:
    frame = study(scenarios=10)
    cell = frame["scenario"].str[1:].astype(int) % 2
    paper = frame[(frame["phase"] == 1) | ((frame["order"] == cell) & (frame["assignment"] == 0))]
    found = reported(paper)
    assert found.table("position")["flip_rate"].isna().all()
    assert any("Shown first and preferred" in line for line in found.words)
    assert not any("changed with the order" in line for line in found.words)


def test_an_empty_frame_is_said_to_be_empty() -> None:
    found = reported(study(scenarios=1).iloc[:0])
    assert found.words[0].startswith("Only 0 scenarios")
    assert all(len(table.frame) == 0 for table in found.tables)


def test_replies_nobody_could_read_give_no_numbers() -> None:
    found = reported(study(scenarios=10).assign(value=np.nan, text=None, status="unparsed"))
    data = found.data()
    assert {row["mean"] for row in data["means"]} == {None}
    assert {row["difference"] for row in data["differences"]} == {None}
    assert {row["p"] for row in data["tests"]} == {None}
    assert all(row["note"] for row in data["tests"])
    assert all(row["value"] is None and row["note"] for row in data["agreement"])
    (line,) = found.words
    assert "replies gave no verdict" in line
    assert "| female | all | – | – | – | 0 | 0 |" in markdown(found.tables[0])


def test_one_identity_alone_cannot_be_compared() -> None:
    found = reported(study(("female",)))
    assert {row["identity"] for row in found.data()["means"]} == {"female"}
    tests = found.table("tests")
    assert tests["p"].isna().all()
    assert all(tests["note"])
    assert not any(claim in " ".join(found.words) for claim in (*CLEAR, "none stands", "alike"))


def test_equal_scores_everywhere_are_no_result() -> None:
    frame = study()
    found = reported(frame.assign(value=frame["value"].where(frame["phase"] == 2, 7.0)))
    gaps = found.table("differences")
    assert (gaps["difference"] == 0).all()
    assert gaps[["low", "high", "p", "p_adjusted"]].isna().all(axis=None)
    assert all("no spread" in note for note in gaps["note"])
    assert not any("was scored" in line or "alike" in line or "Phase 1" in line for line in found.words)


def test_a_single_scenario_has_estimates_and_no_intervals() -> None:
    found = reported(study(scenarios=1))
    for name in ("means", "differences"):
        assert found.table(name)[["low", "high"]].isna().all(axis=None)
    clustered = found.table("tests").query("assumption == 'clustered'")
    assert clustered["p"].isna().all()
    assert all(clustered["note"])
    assert found.table("win_rates")[["cluster_low", "cluster_high"]].isna().all(axis=None)


def test_missing_columns_are_named() -> None:
    with pytest.raises(malibu.MissingColumns, match="lacks the columns scenario, metric"):
        malibu.report(study(scenarios=1).drop(columns=["scenario", "metric"]))


@pytest.mark.parametrize("cell", ["one phase", "one identity"])
def test_every_promised_key_is_there_even_if_empty(cell: str) -> None:
    frame = study(scenarios=3)
    kept = frame[frame["phase"] == 2] if cell == "one phase" else study(("female",), scenarios=3)
    keys = ("means", "differences", "win_rates", "tests", "agreement", "position", "parsing")
    found = set(malibu.report(kept, draws=50).data())
    assert [key for key in keys if key not in found] == []


@pytest.mark.parametrize(("cell", "why"), [("one identity", "fewer than two"), ("all equal", "no spread")])
def test_the_page_says_why_there_is_no_number(cell: str, why: str) -> None:
    frame = study(("female",), scenarios=3) if cell == "one identity" else study(scenarios=3).assign(value=7.0)
    page = html(replace(malibu.report(frame, draws=50), figures=()), {})
    assert page.count(why) > 0
