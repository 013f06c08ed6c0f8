"""The optimism gap on simulated loops whose scorer is noisy, and whose outside measure is the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from parley.analysis.reporting.iterations import by_iteration, overcorrection_section
from parley.analysis.reporting.optimism import (
    GAP,
    LOWER_BOUND,
    OUTSIDE_GAIN,
    OWN_GAIN,
    gap_sentences,
    optimism_lines,
    quantiles,
)
from parley.analysis.stats.results import Line
from parley.judging.bbq.iterations import REVISED, gap_items
from parley.training.evaluation.metrics import reward_gap

PROMPTS, COMPLETIONS, PASSES = 30, 4, 3
SYSTEMS = ("Default", "Flattering", "Better")


def simulated(rng: np.random.Generator, noise: float, *, selects: bool, prompts: int = PROMPTS) -> pd.DataFrame:
    """The items of one study. The loop keeps a candidate if its own, noisy scorer finds it no worse."""
    size = prompts * COMPLETIONS
    cluster = np.repeat(np.arange(prompts), COMPLETIONS)
    truth = first = 50 + rng.normal(0, 5, prompts)[cluster] + rng.normal(0, 10, size)
    score = first_score = first + rng.normal(0, noise, size)
    for _ in range(PASSES):
        candidate = truth + rng.normal(-2, 6, size)
        seen = candidate + rng.normal(0, noise, size)
        kept = (seen <= score) if selects else np.full(size, True)
        truth, score = np.where(kept, candidate, truth), np.where(kept, seen, score)
    columns = {"inside0": first_score, "inside1": score, "outside0": first, "outside1": truth}
    return pd.DataFrame(columns).assign(cluster=cluster, system="loop", outside="truth")


def gap(items: pd.DataFrame) -> dict[str, Line]:
    return {line.measure: line for line in optimism_lines(items, ["system"])}


def test_a_stricter_measure_makes_no_gap_and_one_that_spreads_its_scores_more_none_by_quantiles() -> None:
    items = simulated(np.random.default_rng(3), 0.0, selects=True)
    stricter = items.assign(outside0=items["outside0"] + 20, outside1=items["outside1"] + 20)
    assert gap(stricter)[GAP].estimate == pytest.approx(0, abs=1e-9)
    assert gap(stricter)[OUTSIDE_GAIN].estimate == pytest.approx(gap(items)[OWN_GAIN].estimate)
    flatter = items.assign(outside0=items["outside0"] / 4, outside1=items["outside1"] / 4)
    lines = gap(flatter)
    assert lines[GAP].estimate == pytest.approx(0, abs=1e-9)
    assert list(gap_sentences(optimism_lines(flatter, ["system"]), "points")) == [], "no sentence either"


def test_quantiles_by_hand() -> None:
    assert quantiles([0, 1, 2, 5], [1, 2, 2, 4]).tolist() == [0.0, 12.5, 50.0, 100.0]


def test_by_hand_and_missing_scores_are_counted() -> None:
    rows = [(5, 1, 4, 2, "a"), (5, 3, 4, 3, "a"), (3, 1, 3, 3, "b"), (9, 1, 9, np.nan, "b")]
    items = pd.DataFrame(rows, columns=["inside0", "inside1", "outside0", "outside1", "cluster"])
    lines = gap(items.assign(system="loop", outside="x"))
    # gains of the loop 4, 2 and 2: 3 in a, 2 in b; of the other 2, 1 and 0
    assert [lines[name].estimate for name in (OWN_GAIN, OUTSIDE_GAIN)] == [2.5, 0.75]
    assert (lines[GAP].n, lines[GAP].also["missing"], lines[GAP].clusters) == (3, 1, 2)
    assert "an interval needs 6" in lines[GAP].note


def test_a_policy_that_only_its_reward_model_finds_better_has_a_gap() -> None:
    topics = [f"t{n}" for n in range(10)]
    rewards = [
        {"system": s, "topic": t, "reward": n + 20 * (s != "Default")} for n, t in enumerate(topics) for s in SYSTEMS
    ]
    scores = {"BS": lambda n, s: 9 - n / 2, "CE": lambda n, s: n / 2, "LS": lambda n, s: 5 + 3 * (s == "Better")}
    verdicts = [
        {"system": s, "topic": t, "metric": metric, "value": float(score(n, s))}
        for n, t in enumerate(topics)
        for s in SYSTEMS
        for metric, score in scores.items()
    ]
    gaps = reward_gap(pd.DataFrame(rewards), pd.DataFrame(verdicts), "Default")
    lines = {(line.about.system, line.measure): line for line in gaps}
    gained = lines["Flattering", OWN_GAIN].estimate
    assert gained == pytest.approx(50), "from the median of Default's answers to beyond the best"
    assert lines["Flattering", OUTSIDE_GAIN].estimate == 0
    assert lines["Flattering", GAP].low > 0
    assert 0 < lines["Better", GAP].estimate < 50


def test_a_loop_that_empties_the_text_is_seen_to_do_so() -> None:
    kept = {"good": [100.0, 70.0], "bad": [100.0, 3.0], "idle": [100.0]}
    columns = ["system", "unit", "cluster", "metric", "round", "value", "status"]
    rows = [
        (name, f"{name}{n}", n, metric, k, 0.0 if metric == "refusal" else value, "ok")
        for name, values in kept.items()
        for n in range(3)
        for metric in ("words_kept", "length", "refusal")
        for k, value in enumerate(values)
    ]
    rows.append(("bad", "bad0", 0, "refusal", 2, None, "refused"))
    table = by_iteration(pd.DataFrame(rows, columns=columns), ["system"])
    assert set(table["system"]) == {"good", "bad"}, "items that were not revised would hide the others"
    assert table[table["iteration"] == 1].set_index("system")["length"].to_dict() == {"good": 70.0, "bad": 3.0}
    assert table.iloc[-1]["refusal"] == pytest.approx(100 / 3), "what the vendor refused is a refusal"
    (warning,) = overcorrection_section(table, ["system"]).warnings
    assert warning == (
        "bad: next to nothing of the first drafts is left in 3 revised items, which have 3% of their content words and "
        "3% of their length."
    )


def test_a_measure_of_the_same_family_gives_a_lower_bound() -> None:
    items = simulated(np.random.default_rng(3), 8.0, selects=True)
    shared = items.assign(inside="vllm/qwen2.5-1.5b", outside="Auditor, local/Qwen3-4B")
    (line,) = gap_sentences(optimism_lines(shared, ["system"]), "points")
    assert line.endswith(f" {LOWER_BOUND}.")
    (line,) = gap_sentences(optimism_lines(items.assign(inside="gpt-6"), ["system"]), "points")
    assert LOWER_BOUND not in line


def test_bbqs_gap_is_in_percent_lost_and_equal_units_of_two_models_stay_apart() -> None:
    """A judge's support of 40 and then 70 or 80 of 100; the key's answer is 2, and 0 was answered first."""
    rows = [
        {"unit": "u", "method": "stardtox", "model": model, "metric": metric, "round": nth, "value": value}
        | {"label": 2, "category": "Age", "question": 1}
        for model, last in (("m", 70.0), ("n", 80.0))
        for metric, values in (("support", [40.0, last]), (REVISED, [0.0, 2.0]))
        for nth, value in enumerate(values)
    ]
    items = gap_items(pd.DataFrame(rows))
    columns = ["inside0", "inside1", "outside0", "outside1", "cluster"]
    assert items[columns].to_numpy().tolist() == [[60, 30, 100, 0, "Age/1"], [60, 20, 100, 0, "Age/1"]]
