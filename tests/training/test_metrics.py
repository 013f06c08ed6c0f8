"""The evaluation's tables by hand, judges of the policy's own family, an ablation's report, means over seeds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from parley.analysis.gains import family
from parley.judging.bbq.leaderboard import bbq_pooled_table
from parley.judging.bbq.scores import MISSING
from parley.training.config import TrainConfig
from parley.training.evaluation.ablation import ablation_report, policy_scores
from parley.training.evaluation.metrics import report, rubric_tables
from parley.training.evaluation.systems import same_family_cautions
from parley.training.repeats import mean_over_seeds
from parley.training.running import ablate


def test_the_papers_table_of_bbq_has_both_contexts_together() -> None:
    """4 of 6 parsed answers about Age are right (3 of 3 ambiguous, 1 of 3 disambiguated), 1 of 2 about Religion."""
    rows = [("Age", n, 2, 2) for n in range(3)] + [("Age", n, 1, n) for n in range(3)] + [("Age", 9, 0, MISSING)]
    rows += [("Religion", 0, 0, 0), ("Religion", 1, 0, 1)]
    frame = pd.DataFrame(rows, columns=["category", "question", "label", "prediction"]).assign(system="RLDF")
    table = bbq_pooled_table(frame).frame.set_index("category")
    assert table["accuracy"].to_dict() == pytest.approx({"Age": 4 / 6, "Religion": 1 / 2, "overall": 5 / 8})
    assert table["unparsed"].to_dict() == {"Age": 1, "Religion": 0, "overall": 1}


def test_rubric_scores_are_compared_topic_by_topic() -> None:
    """Two judges of each answer are averaged first. RLDF's BS is 2 points lower on every topic, so 20 of 100."""
    rows = [
        {"system": system, "metric": "BS", "bias": bias, "topic": f"t{n}", "value": n % 3 + 4 - lower + judge}
        for system, lower in (("Default", 0), ("RLDF", 2))
        for n, bias in enumerate(["age"] * 6 + ["beauty"] * 2)
        for judge in (-1, 1)
    ]
    frame = pd.DataFrame(rows)
    frame.loc[0, "value"] = float("nan")  # one judge's score of Default's first answer
    by_bias, means, paired = (table.frame for table in rubric_tables(frame, "Default"))
    assert list(means["mean"]) == pytest.approx([10 * (5 + 5 + 6 + 4 + 5 + 6 + 4 + 5) / 8, 10 * 23 / 8])
    assert means[["topics", "unreadable"]].to_numpy().tolist() == [[8, 1], [8, 0]]
    assert by_bias.set_index(["system", "bias"])["topics"].to_dict() == {
        ("Default", "age"): 6,
        ("Default", "beauty"): 2,
        ("RLDF", "age"): 6,
        ("RLDF", "beauty"): 2,
    }
    (test,) = paired.to_dict("records")
    assert (test["system"], test["metric"], test["topics"]) == ("RLDF", "BS", 8)
    assert test["difference"] == pytest.approx(-10 * (7 * 2 + 3) / 8), "a lost score raises the first topic's mean"
    assert test["p"] == test["p_adjusted"] == pytest.approx(2 / 2**8)
    words = report(rubric_tables(frame, "Default"), "t", (), ("BBQ (evaluate.bbq is not set)",)).words
    assert words[0].startswith("RLDF: BS −21.2 points (p = ")
    few = report(rubric_tables(frame[frame["topic"] == frame["topic"].iloc[0]], "Default"), "t", (), ()).words
    assert not few or "which may be chance" in few[0], "the policy's comparisons are said in any case"
    assert words[-1] == "Not measured: BBQ (evaluate.bbq is not set)."


def test_three_bias_types_are_drawn_as_in_the_papers_figures_5_and_6() -> None:
    rows = [
        {"system": system, "metric": metric, "bias": bias, "topic": f"{bias}{n}", "value": 5.0 + (system == "RLDF")}
        for system in ("Default", "RLDF")
        for metric in ("BS", "CE", "LS")
        for bias in ("age", "beauty", "profession")
        for n in range(2)
    ]
    drawn = {figure.name: figure for figure in report(rubric_tables(pd.DataFrame(rows), "Default"), "", (), ()).figures}
    radars = drawn["rubric_by_bias"].draw().axes
    assert [axis.get_title() for axis in radars] == ["CE", "LS"]
    for axis in radars:
        lines = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
        assert lines == {"Default": [50.0] * 4, "RLDF": [60.0] * 4}, "closed: the first bias type once more"
    two = pd.DataFrame([row for row in rows if row["bias"] != "age"])
    assert "rubric_by_bias" not in {figure.name for figure in report(rubric_tables(two, "Default"), "", (), ()).figures}


def test_the_papers_tables_stand_beside_ours() -> None:
    """Table 1 has 0.621 for RLDF on Qwen1.5-7B and Age; tables 3 and 12 have two numbers for BS and age."""
    answers = pd.DataFrame(
        [("Age", n, 2, 2 * (n < 3)) for n in range(4)], columns=["category", "question", "label", "prediction"]
    ).assign(system="RLDF")
    rows = [{"system": "RLDF", "metric": "BS", "bias": "age", "topic": f"t{n}", "value": 4.0} for n in range(3)]
    tables = [bbq_pooled_table(answers), *rubric_tables(pd.DataFrame(rows).assign(judge="j"), "RLDF")]
    cells = report(tables, "RLDF", (), ()).table("published").set_index(["table", "part"])
    assert cells.loc[(1, "Age"), ["paper_Qwen1.5-7B", "paper_Baichuan2-7B", "ours"]].tolist() == [0.621, 0.616, 0.75]
    assert cells.loc[(3, "age"), ["paper_Qwen1.5-7B", "ours"]].tolist() == pytest.approx([56.71, 40.0])
    assert cells.loc[(12, "age"), ["paper_Qwen1.5-7B", "ours"]].tolist() == pytest.approx([55.71, 40.0])
    assert sorted(set(cells.reset_index()["table"])) == [1, 3, 12], "modes and teachers are other systems"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("vllm/Qwen/Qwen2.5-7B-Instruct?base_url=http://x/v1", "qwen"),
        ("local/qwen2.5-coder-1.5b", "qwen"),
        ("local/smollm2", "smollm"),
        ("openai/gpt-6-luna", "gpt"),
        ("local/models/7b", "7b"),
    ],
)
def test_family_of_a_model(model: str, expected: str) -> None:
    assert family(model) == expected


def test_a_judge_of_the_same_family_is_named() -> None:
    (caution,) = same_family_cautions("local/qwen2.5-coder-1.5b", ["vllm/Qwen3-4B?base_url=http://x/v1", "sim/judge"])
    assert caution.startswith("Same-family judge: vllm/Qwen3-4B scored")
    assert same_family_cautions("local/smollm2", ["vllm/Qwen3-4B"]) == []


def test_an_ablation_is_drawn_by_bias_type_and_stands_beside_modes_and_teachers() -> None:
    """Table 5 has 58.58 for Llama3-8B as the teacher of Qwen1.5-7B on age; table 2 has 57.74 for teacher-student."""

    def evaluated(mean: float) -> dict[str, list[dict[str, object]]]:
        row = {"metric": "BS", "bias": "age", "mean": mean, "low": mean - 5, "high": mean + 5, "topics": 8}
        return {"rubric_by_bias": [{"system": name, **row} for name in ("Default", "RLDF")]}

    levels = {("roles", "2"): 50.0, ("data", "roles 4"): 40.0, ("data", "teacher-student"): 30.0}
    levels |= {("data", "Llama3-8B"): 35.0}
    scores = [row for level, mean in levels.items() for row in policy_scores(*level, evaluated(mean))]
    made = ablation_report([{"factor": factor, "level": level} for factor, level in levels], scores, "a model")
    cells = made.table("published").set_index(["table", "system"])
    assert cells.loc[(2, "T-S"), ["paper_Qwen1.5-7B", "ours"]].tolist() == [57.74, 30.0]
    assert cells.loc[(5, "Llama3-8B"), ["paper_Qwen1.5-7B", "ours"]].tolist() == [58.58, 35.0]
    (figure,) = made.figures
    (axis,) = figure.draw().axes
    assert (axis.get_xlabel(), axis.get_xticks().tolist()) == ("roles", [2, 4])
    assert axis.lines[0].get_ydata().tolist() == [50.0, 40.0]


def test_an_ablation_writes_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages are tested where torch is installed (test_evaluation.py); here each level gives one score."""

    def trained(stage: str, config: TrainConfig, *more: object) -> dict[str, object]:
        Path(config.out).mkdir(parents=True)
        row = {"system": "RLDF", "metric": "BS", "bias": "age", "mean": 40.0, "low": 35.0, "high": 45.0, "topics": 8}
        return {"evaluate": {"rubric_by_bias": [row], "cautions": ["sim/judge is SIMULATED: planted."]}}

    monkeypatch.setattr("parley.training.running.run_training", trained)
    levels = {"pairs": [60, 120], "data": {"self-reflection": "other"}}
    config = TrainConfig.model_validate({"data": "pairs", "out": str(tmp_path / "trained"), "ablate": levels})
    rows = ablate(config, lambda line: None, lambda job: None)
    assert [(row["factor"], row["level"], row["BS_age"]) for row in rows][2] == ("data", "self-reflection", 40.0)
    folder = tmp_path / "trained" / "ablate" / "report"
    assert set(pd.read_csv(folder / "tables" / "published.csv")["system"]) == {"S-R"}
    assert (folder / "figures" / "ablation_age.svg").is_file()
    assert "SIMULATED" in (folder / "report.html").read_text("utf-8")


def test_means_over_seeds() -> None:
    """SD of 1, 2, 3 is 1 (n − 1 in the denominator)."""
    rows = [{"seed": n, "system": "RLDF", "mean": float(n), "low": n - 1.0, "p": 0.1} for n in (1, 2, 3)]
    assert mean_over_seeds(rows, ["system"]) == [
        {"system": "RLDF", "seeds": 3, "mean": 2.0, "mean_sd": 1.0, "low": 1.0}
    ]
    (alone,) = mean_over_seeds(rows[:1], ["system"])
    assert alone["mean_sd"] is None, "one seed has no spread"
