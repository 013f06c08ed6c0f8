"""The gains of loops by their own scorer and by an outside measure, and what is said of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from parley.analysis.gains import INSIDE, OUTSIDE, gain_forest, gain_lines, gain_sentences
from parley.analysis.iterations import by_iteration, overcorrection_section
from parley.analysis.say import headline
from parley.analysis.stats.results import Line
from parley.training.evaluation.metrics import quantiles, reward_gains

SYSTEMS = ("Default", "Flattering", "Better")


def gains(items: pd.DataFrame) -> dict[str, Line]:
    return {line.measure: line for line in gain_lines(items)}


def sentences(items: pd.DataFrame) -> list[str]:
    lines = gain_lines(items, cluster="prompt")
    return list(gain_sentences(lines, "toxicity", "points of 100"))


def test_both_gains_stand_side_by_side_and_a_shared_family_is_named() -> None:
    fall = np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    items = pd.DataFrame({"inside0": 2 * fall, "inside1": 0.0, "outside0": fall, "outside1": 0.0, "cluster": range(6)})
    items = items.assign(system="loop", inside="vllm/qwen2.5-1.5b", outside="Auditor, local/Qwen3-4B")
    (line,) = sentences(items)
    assert line == (
        "With loop, toxicity is 5.5 points of 100 lower than in the first draft, by Auditor, local/Qwen3-4B. The "
        "reduction is +11.00 (+6.00 to +16.00) by the loop's own scorer and +5.50 (+3.00 to +8.00) by Auditor, "
        "local/Qwen3-4B, over 6 prompts. The two share a model or a scorer family, so they may err alike."
    )
    (line,) = sentences(items.assign(inside="gpt-6"))
    alike = "Their scores of the first drafts correlate at 1.00: errors that the two scorers share are not excluded."
    assert line.endswith(f"6 prompts. {alike}")
    (line,) = sentences(items.assign(inside="gpt-6", outside0=4.0, outside1=items["outside1"] + fall))
    assert line.endswith("6 prompts. Errors that the two scorers share are not excluded."), "a constant has no r"
    lines = gain_lines(items.assign(inside="gpt-6"))
    answered = headline(gain_forest(lines, "toxicity", "points of 100")).answer
    assert answered.endswith("by Auditor, local/Qwen3-4B (errors that the two scorers share are not excluded).")
    by_prompt = gain_lines(items.assign(inside="gpt-6", against="default"), by=("system", "against"))
    assert "excluded" not in headline(gain_forest(by_prompt, "toxicity", "points of 100")).answer, "nothing is chosen"


def test_quantiles_by_hand() -> None:
    assert quantiles([0, 1, 2, 5], [1, 2, 2, 4]).tolist() == [0.0, 12.5, 50.0, 100.0]


def test_by_hand_and_missing_scores_are_counted() -> None:
    rows = [(5, 1, 4, 2, "a"), (5, 3, 4, 3, "a"), (3, 1, 3, 3, "b"), (9, 1, 9, np.nan, "b")]
    items = pd.DataFrame(rows, columns=["inside0", "inside1", "outside0", "outside1", "cluster"])
    lines = gains(items.assign(system="loop", outside="x"))
    # gains of the loop 4, 2 and 2: 3 in a, 2 in b; of the other 2, 1 and 0
    assert [lines[name].estimate for name in (INSIDE, OUTSIDE)] == [2.5, 0.75]
    assert (lines[OUTSIDE].n, lines[OUTSIDE].also["missing"], lines[OUTSIDE].clusters) == (3, 1, 2)
    assert "an interval needs 6" in lines[OUTSIDE].note


def test_a_policy_that_only_its_reward_model_finds_better() -> None:
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
    policies = reward_gains(pd.DataFrame(rewards), pd.DataFrame(verdicts), "Default")
    lines = {(line.about.system, line.measure): line for line in policies}
    assert lines["Flattering", INSIDE].estimate == pytest.approx(50), (
        "from the median of Default's answers to beyond the best"
    )
    assert lines["Flattering", OUTSIDE].estimate == 0
    assert 0 < lines["Better", OUTSIDE].low < lines["Better", OUTSIDE].estimate < 50


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
    assert (table["revised"].tolist(), table["copied"].sum()) == ([0, 3, 0, 3, 1], 0)
    (warning,) = overcorrection_section(table, ["system"]).warnings
    assert warning == (
        "bad: revisions leave next to nothing of the first drafts. On average, 3 revised items have 3% of their "
        "content words and 3% of their length."
    )


@pytest.mark.parametrize(("copied", "warned"), [(1, False), (2, True)])
def test_copies_of_drafts_are_counted_and_a_tenth_of_them_is_a_caution(copied: int, warned: bool) -> None:
    """Eleven revisions of ten items; one item is revised twice."""
    rows = [
        {"system": "loop", "unit": n, "cluster": n, "metric": metric, "round": k, "value": 50.0}
        | {"status": "copied" if k and n < copied else "ok"}
        for n in range(10)
        for k in range(3 if n == 9 else 2)
        for metric in ("words_kept", "length", "refusal")
    ]
    table = by_iteration(pd.DataFrame(rows), ["system"])
    assert table[["revised", "copied"]].to_numpy().tolist() == [[0, 0], [10, copied], [1, 0]]
    sentence = "loop: 2 of 11 revisions (18%) equal the draft before them, so the loop changed nothing there."
    assert overcorrection_section(table, ["system"]).warnings == ([sentence] if warned else [])
