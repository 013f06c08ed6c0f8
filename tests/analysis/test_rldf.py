"""Debates, framings, rubrics and the check of a referee in numbers, on frames small enough to work out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.calibration.referee import simulated_check
from parley.analysis.page.report import ReportContext
from parley.analysis.say import format_cells
from parley.judging.framing import report as framing
from parley.judging.rldf import ablation
from parley.judging.rldf import debates as rldf
from parley.judging.rldf import second_referee as referee
from parley.judging.rldf.check_report import check_verdict, report
from parley.judging.rldf.report import debates as debates_report
from parley.judging.rldf.report import published
from parley.judging.rubric import report as rubrics
from parley.judging.rubric.claims import claimed_values


def row(topic: str, round: int, subject: str, value: float | None, **more: Any) -> dict[str, Any]:
    usual = {"unit": topic, "judge": "Referee", "role": "referee", "metric": "bias", "status": "ok", "text": None}
    usual |= {"model": "m", "bias": "age"}
    return usual | {"topic": topic, "round": round, "subject": subject, "value": value} | more


def debates(scores: dict[str, list[tuple[float | None, float | None]]], **more: Any) -> pd.DataFrame:
    """Topics with the scores of A and B, round by round."""
    return pd.DataFrame(
        [
            row(topic, number, name, value, **more)
            for topic, rounds in scores.items()
            for number, pair in enumerate(rounds, 1)
            for name, value in zip("AB", pair, strict=True)
        ]
    )


THREE = debates({"x": [(6, 4), (2, 2)], "y": [(5, 5), (3, 1)], "z": [(4, 6), (4, 2)]})


def by_round(frame: pd.DataFrame, name: str = "by_round") -> pd.DataFrame:
    table = debates_report(frame).table(name)
    return table.assign(round=table["round"].astype(int)).set_index(["role", "round"])


def change(frame: pd.DataFrame) -> pd.DataFrame:
    return debates_report(frame).table("change").set_index(["judge", "role"])


def test_bias_by_round_is_a_mean_over_topics() -> None:
    table = by_round(THREE)
    # Round 1: every topic has mean 5, so there is no spread to judge by. Round 2: topics 2, 2, 3.
    assert table.loc[("all", 1), "estimate"] == 5
    assert math.isnan(table.loc[("all", 1), "low"]), "no spread is no certainty"
    assert table.loc[("all", 2), "estimate"] == pytest.approx(7 / 3)
    # t(2 df, 97.5%) = 4.302653; sd of 2, 2, 3 is 0.577350; over sqrt(3): 0.333333; half width 1.434218
    assert table.loc[("all", 2), "high"] - table.loc[("all", 2), "estimate"] == pytest.approx(1.434218, abs=1e-5)
    assert table.loc[("all", 2), "clusters"] == 3
    assert table.loc[("all", 2), "n"] == 6
    high = by_round(THREE, "high_bias")["estimate"]
    assert high["all", 1] == 1
    assert high["all", 2] == pytest.approx(1 / 6), "only z's A, with 4; 3 is low"
    assert table.loc[("A", 2), "estimate"] == 3


def test_change_is_taken_within_debates() -> None:
    table = change(THREE)
    # x: 2 - 5, y: 2 - 5, z: 3 - 5
    assert table.loc[("Referee", "all"), "estimate"] == pytest.approx(-8 / 3)
    assert table.loc[("Referee", "A"), "estimate"] == -2
    assert ("Referee_again", "all") not in table.index
    one = debates({"x": [(6, 4)], "y": [(5, 5)]})
    assert rldf.changes({"run": one}) == []
    assert not any(" scores " in line or "hange" in line for line in debates_report(one).words[1:])


def test_agreement_of_both_referees() -> None:
    agreeing = debates_report(pd.concat([THREE, THREE.assign(judge="Referee_again")]))
    table = agreeing.table("refereed_again").set_index("measure")
    assert table.loc[["kappa", "sides", "shift"], "estimate"].tolist() == pytest.approx([1, 1, 0])
    assert table.loc["shift", "n"] == 12
    assert not any("may be mostly noise" in line for line in agreeing.words)
    assert referee.refereed_again(referee.both_scores(THREE)) == []
    first = debates({"x": [(6, 1)], "y": [(6, 1)]})
    again = debates({"x": [(6, 1)], "y": [(1, 1)]}, judge="Referee_again")
    found = referee.refereed_again(referee.both_scores(pd.concat([first, again])))
    # Observed: 3 of 4 agree; chance 1/2*1/4 + 1/2*3/4 = 1/2; kappa (0.75 - 0.5) / 0.5 = 0.5
    assert next(line.estimate for line in found if line.measure == "sides") == pytest.approx(0.5)


def test_scores_that_could_not_be_read_are_counted_before_any_result() -> None:
    lost = THREE.assign(value=THREE["value"].where(THREE.index != 0), status=["unparsed", *["ok"] * (len(THREE) - 1)])
    assert f"1 of {len(THREE)} scores could not be read." in debates_report(lost).cautions
    assert not any("could not be read" in line for line in debates_report(THREE).cautions)


def config(**settings: Any) -> dict[str, Any]:
    return {"roles": 3, "rounds": 5, "mode": "self-reflection", "teacher": None, **settings}


def test_an_ablation_is_of_one_setting() -> None:
    assert ablation.differing_setting({"a": config(), "b": config(roles=4)}) == "roles"
    both = {"a": config(), "b": config(mode="teacher-student", teacher="t")}
    assert ablation.differing_setting(both) == "mode", "a mode brings its teacher"
    with pytest.raises(ValueError, match="differ in roles, rounds"):
        ablation.differing_setting({"a": config(), "b": config(roles=4, rounds=1)})
    with pytest.raises(ValueError, match="differ in nothing"):
        ablation.differing_setting({"a": config(), "b": config()})


def test_runs_are_compared_on_the_topics_they_share() -> None:
    ten = debates({"x": [(8, 8), (6, 6)], "y": [(8, 8), (4, 4)], "w": [(0, 0), (0, 0)]})
    two = debates({"x": [(8, 8), (4, 4)], "y": [(8, 8), (3, 3)]})
    table, levels = ablated({"many": (config(rounds=10), ten), "few": (config(rounds=2), two)})
    assert list(levels["setting"]) == ["rounds 2", "rounds 10"] * 2, "in the order of the setting's value"
    (only,) = table.to_dict("records")
    assert (only["first"], only["second"], only["clusters"]) == ("rounds 10", "rounds 2", 2)
    assert only["estimate"] == pytest.approx(1.5), "6 - 4 on x, 4 - 3 on y; w is only in one run"
    assert change_of(levels, "rounds 2") == pytest.approx(-4.5)
    assert "p_adjusted" not in levels, "levels are described; only differences are tested"


def ablated(runs: dict[str, tuple[dict[str, Any], pd.DataFrame]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The differences from the first setting, and the levels."""
    tables = {table.name: table.frame for table in ablation.ablation_section(runs).tables}
    return tables["ablation"], tables["last_round"]


def change_of(levels: pd.DataFrame, setting: str) -> float:
    return float(levels.set_index(["measure", "setting"]).loc[("change", setting), "estimate"])


def with_roles(means: dict[str, float], topics: int = 12) -> pd.DataFrame:
    """Debates of one round in which each role has its own mean, and every topic its own shift."""
    return pd.DataFrame([row(f"t{n}", 1, role, mean + n % 3) for n in range(topics) for role, mean in means.items()])


def test_roles_that_only_one_run_has_make_no_difference() -> None:
    two, five = with_roles({"A": 5, "B": 5}), with_roles({"A": 5, "B": 5, "C": 2, "D": 2, "E": 2})
    runs = {"two": (config(roles=2, rounds=1), two), "five": (config(roles=5, rounds=1), five)}
    table, levels = ablated(runs)
    assert list(table["estimate"]) == [0]
    assert list(levels["estimate"]) == [6, 6]
    assert by_round(five).loc[("all", 1), "estimate"] == pytest.approx(4.2), "(2 × 5 + 3 × 2) / 5, 1 for the topics"
    assert ablation.notes(runs) == [
        "Compared on what all runs have: 12 topics, the roles A, B.",
        "Left out of five: roles C, D, E, which another run does not have.",
    ]
    apart = {"a": (config(rounds=1), two), "b": (config(rounds=2), two.assign(topic="elsewhere"))}
    assert ablation.notes(apart) == ["The runs have no topic or no role in common, so nothing is compared."]
    assert ablation.ablation_section(apart).tables == ()


def test_the_headline_is_all_roles_and_never_a_single_one() -> None:
    one_role = debates({f"t{n}": [(5, 5), (1, 9.5 if n % 2 else 8.5)] for n in range(12)})
    whole = debates_report(one_role)
    table = whole.table("change").set_index("role")
    assert table.loc["A", "p_adjusted"] == pytest.approx(2 * 2 / 2**12), "Holm over two roles"
    assert table.loc["A", "p_adjusted"] <= 0.05 < table.loc["all", "p_adjusted"]
    assert whole.headline is not None
    assert whole.headline.answer.startswith("Undecided: the referee, who knows the round, scores all roles 0.00 points")
    assert any(" scores A " in line and "lower in round 2" in line for line in whole.words), "beside the headline"
    falls = debates({f"t{n}": [(5, 5), (4.5 if n % 6 else 5.2, 5)] for n in range(9)})  # p = 0.047 for all roles alone
    headline = debates_report(falls).headline
    assert headline is not None
    assert (headline.verdict, headline.tests) == ("different", 1), "roles are another family"


def framed(counts: dict[str, tuple[float | None, ...]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            row(topic, number, frame, value, metric=metric)
            for topic, values in counts.items()
            for number, (frame, value) in enumerate(zip(framing.FRAMES, values, strict=True), 1)
            for metric in ("biases", "named")
        ]
    )


def test_framings_are_compared_on_the_same_answers() -> None:
    frame = framed({"a": (0, 1, 2), "b": (0, 1, 3), "c": (1, 2, 4), "d": (0, None, 3)})
    whole = framing.report(frame)
    means = whole.table("frames").set_index(["framing", "measure"])["estimate"]
    assert means["our Q&A", "biases"] == 0.25
    assert [table.name for table in whole.tables] == ["readings", "differences", "frames", "any"]
    assert [forest.name for forest in whole.forests][:2] == ["differences-biases", "frames-biases"]
    assert whole.table("any").set_index(["framing", "measure"]).loc[("our Q&A", "any_biases"), "estimate"] == 0.25
    assert whole.words[0] == "Unreadable, and left out: 1 reply."
    gaps = whole.table("differences").set_index(["first", "second"])
    rival, model, ours = (framing.FRAMES[name] for name in ("rival", "model", "ours"))
    assert gaps.loc[(rival, ours), "estimate"] == pytest.approx(11 / 4)
    assert gaps.loc[(model, ours), "n"] == 3
    # 2, 3, 3, 3: mean 2.75, standard error 0.25, t = 11 on 3 degrees of freedom, p = 0.00161 (two-sided)
    assert gaps.loc[(rival, ours), "p"] == pytest.approx(0.00161, abs=1e-5)
    assert math.isnan(gaps.loc[(model, ours), "p"]), "a gap that never varies has no t test"
    said = f"{rival} compared with {ours}: number of biases admitted per answer is higher by 2.75 (+1.95 to +3.55; p = "
    assert any(line.startswith(said) for line in whole.words)


def rated(table: dict[str, list[float | None]], group: dict[str, str] | None = None) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"item": item, "group": (group or {}).get(item, ""), "model": "m", "judge": f"J{n}", "metric": "BS"}
            | {"value": value}
            for item, values in table.items()
            for n, value in enumerate(values)
        ]
    )


def test_rubric_scores_run_from_0_to_100_and_each_text_counts_once() -> None:
    frame = rated({"a": [2, 4], "b": [8, None]}, {"a": "before", "b": "after"})
    after, before = sorted(rubrics.scores(frame), key=lambda line: line.about.columns["group"])
    assert (before.estimate, after.estimate) == (30, 80)
    assert after.also == {"unreadable": 1}
    (whole,) = rubrics.scores(rated({"a": [2, 4], "b": [8, None]}))
    assert whole.estimate == 55, "(30 + 80) / 2"
    assert whole.clusters == 2


def test_kappa_is_taken_on_bands_and_on_points() -> None:
    # Bands: a low low, b high high, c low mid. Points never agree.
    frame = rated({"a": [1, 2], "b": [8, 9], "c": [3, 4]})
    found = {line.measure: line.estimate for line in rubrics.agreement(frame)}
    # Bands: P = (1 + 1 + 0) / 3; shares low 3/6, high 2/6, mid 1/6: Pe = 14/36; kappa = (24 - 14) / (36 - 14) = 10/22
    assert found["bands"] == pytest.approx(10 / 22)
    # Points: P = 0; six values once each: Pe = 6/36; kappa = (0 - 1/6) / (5/6) = -0.2
    assert found["points"] == pytest.approx(-0.2)


def test_groups_are_compared_by_topic() -> None:
    """Topics differ far more than groups, so separate intervals overlap; every topic's text loses a point or two."""
    levels = {f"topic {nth}": float(nth % 8) for nth in range(16)}
    frame = pd.concat(
        rated({f"{topic} {group}": [level + gain + (nth % 2) * (gain > 0)]}, {f"{topic} {group}": group}).assign(
            topic=topic
        )
        for nth, (topic, level) in enumerate(levels.items())
        for group, gain in (("after", 0.0), ("before", 1.0))
    )
    after, before = (line for line in rubrics.scores(frame))
    assert after.high > before.low, "separate intervals overlap"
    headline = rubrics.report(frame).headline
    assert headline is not None
    assert headline.verdict == "different"
    assert "Yes: BS is 15.0 points of 100 higher for 'before' than for 'after'." in headline.text
    without = rubrics.report(frame.drop(columns="topic"))
    assert any(line.startswith("Groups are not compared") for line in without.words)


def test_agreement_is_taken_over_topics() -> None:
    """Texts of one topic share their judges' errors, so copies of a text are no further evidence."""
    once = rated({f"t{nth}": [nth % 4, nth % 5] for nth in range(12)}).assign(topic=lambda frame: frame["item"])
    copies = [once.assign(item=once["item"] + f" copy {nth}") for nth in range(5)]
    alone, copied = ({line.measure: line for line in rubrics.agreement(part)} for part in (once, pd.concat(copies)))
    for measure in ("bands", "points"):
        assert copied[measure].interval == pytest.approx(alone[measure].interval), measure
    assert (copied["alpha"].clusters, copied["alpha"].n) == (12, 120)


def test_the_papers_deviations_and_kappas_stand_beside_ours() -> None:
    printed = published().set_index(["table", "measure", "system", "part"])
    deviations = printed[[name for name in printed if name.startswith("paper_sd_")]]
    assert deviations.count().sum() == 893, "of 920; 27 are cut in our copy"
    assert printed.loc[(3, "BS", "Default", "age")].filter(like="Qwen").tolist() == [71.09, 0.39]
    assert printed.loc[(10, "CE", "RLDF", "beauty")].filter(like="Baichuan2").tolist() == [71.65, 0.85]
    assert printed.loc[(12, "BS", "Default", "profession")].filter(like="Qwen").tolist() == [62.25, 0.74]
    assert printed.loc[(1, "accuracy", "RLDF", "overall")].filter(like="Qwen").dropna().tolist() == [0.634]
    frame = rated({"a": [1, 2], "b": [8, 9], "c": [3, 4]})
    assert "kappa_published" not in {table.name for table in rubrics.report(frame).tables}, "no system of the paper"
    systems = [frame.assign(group="RLAIF", bias="age"), rated({"d": [1, 1], "e": [8, 8]}).assign(group="RLDF")]
    whole = rubrics.report(pd.concat([*systems, rated({"f": [2, 3]}).assign(group="mine")], ignore_index=True))
    beside = whole.table("kappa_published").set_index("system")
    assert (beside["table"].tolist(), set(beside["metric"])) == ([9, 9], {"BS"}), "only what was scored"
    assert beside.loc["RLAIF", "paper_Llama2-7B"] == 0.67
    assert beside["ours"].to_dict() == {"RLAIF": pytest.approx(10 / 22), "RLDF": 1.0}, "each system's own"
    values = claimed_values(pd.concat(systems, ignore_index=True))
    assert values.groupby(["method", "set"])["value"].mean().to_dict() == {
        ("RLAIF", "age"): pytest.approx(45),
        ("RLAIF", "all"): pytest.approx(45),
        ("RLDF", "all"): pytest.approx(45),
    }, "by bias type, as in tables 3, 10 and 11, where it is known"
    shown = format_cells(pd.DataFrame({"paper_a": [0.634], "ours": [0.6341], "n": [3]}))
    assert shown == [["0.634", "0.634", "3"]], "as many decimals as the paper"


def scored(bias: list[float], quality: list[float | None], **columns: object) -> pd.DataFrame:
    rows = [
        {"item": f"t{n}", "group": "", "model": "m", "judge": "J", "metric": metric, "value": value}
        for metric, values in (("BS", bias), ("CE", quality))
        for n, value in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(**columns)


def test_a_severity_that_goes_with_quality_is_warned_of() -> None:
    # Deviations from the means: products sum to 8, squares to 10 and 10, so r = 0.8.
    # Fisher: atanh(0.8) = 1.0986, ± 1.96 / sqrt(5 - 3) = 1.3859: -0.279 to 0.986, which includes 0.
    five = [1.0, 2, 3, 4, 5], [1.0, 3, 2, 5, 4]
    assert rubrics.severity_warning(scored(*five)) == ""
    # Each text three times: n = 15, 1.0986 ± 1.96 / sqrt(12): 0.488 to 0.931.
    thrice = [five[0] * 3, five[1] * 3]
    apart = scored(*thrice).assign(topic=lambda frame: frame["item"])
    assert "r = 0.80 (0.49 to 0.93) over 15 topics" in rubrics.severity_warning(apart)
    assert rubrics.severity_warning(scored(*thrice)) == "", "which texts belong together is not known"
    opposite = scored(thrice[0], [6 - value for value in thrice[1]]).assign(topic=apart["topic"])
    assert rubrics.severity_warning(opposite) == ""
    assert rubrics.severity_warning(rated({"a": [1, 2], "b": [8, 9]})) == "", "there is no CE and no LS"
    of_topics = scored(*thrice).assign(topic=lambda frame: [int(item[1:]) % 5 for item in frame["item"]])
    assert rubrics.severity_warning(of_topics) == "", "five topics, not fifteen"
    assert rubrics.report(apart, ReportContext(draws=50)).words[0].startswith("BS is higher where CE")


def verdict_rows(scores: dict[str, list[float]], part: str = "score") -> list[dict[str, object]]:
    """Scores by topic, one a dose."""
    return [
        {"part": part, "type": "age", "topic": topic, "dose": dose, "wording": "w", "metric": "bias"}
        | {"value": value, "model": "hf/judge"}
        for topic, values in scores.items()
        for dose, value in enumerate(values)
    ]


def test_numbers_by_hand() -> None:
    # Three topics with three comparisons each: right 3, 2 and a tie counted as half.
    scores = {"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 1.0, 3.0, 4.0], "c": [1.0, 1.0, 0.0, 5.0]}
    scores |= {f"x{n}": [1.0, 2.0, 3.0, 4.0] for n in range(5)}
    reverse = {topic: [10 - value for value in values] for topic, values in scores.items()}
    frame = pd.DataFrame([*verdict_rows(scores), *verdict_rows(reverse, "reverse")])
    found = check_verdict(frame)
    question, reverse = (line.estimate for line in found.lines)
    assert question == pytest.approx((1 + 2 / 3 + 1.5 / 3 + 5) / 8)
    assert reverse == pytest.approx(question)
    assert found.reasons == {"age": ""}, "it can"


def test_a_scorer_has_no_reverse_question_and_equal_scores_are_said() -> None:
    scores = {f"t{n}": [1.0, 2.0, 3.0 + n, 4.0] for n in range(8)}
    able = check_verdict(pd.DataFrame(verdict_rows(scores)).assign(model="scorer/ngrams"))
    assert (able.passed, able.sentence) == (True, "scorer/ngrams can referee age (AUC 1.00).")
    equal = check_verdict(pd.DataFrame(verdict_rows({f"t{n}": [5.0] * 4 for n in range(8)})))
    assert (equal.passed, equal.sentence) == (False, "hf/judge cannot referee age: all scores are the same.")


def test_the_report_is_one_table_and_one_sentence() -> None:
    frame = simulated_check("halo", 1, np.random.default_rng(3))
    made = report(frame)
    assert [table.name for table in made.tables] == ["check"]
    assert made.words[0].startswith("sim cannot referee type0: its number follows the kind of text, not the question")
    assert made.forests[0].lines[0].units == {"type": ("type0",), "part": ("score",)}


def test_a_run_of_one_round_can_be_part_of_an_ablation_and_equal_values_are_not_pooled() -> None:
    one, two = debates({"x": [(8, 6)], "y": [(7, 6)]}), debates({"x": [(8, 6), (4, 4)], "y": [(7, 6), (3, 4)]})
    _, levels = ablated({"one": (config(rounds=1), one), "two": (config(rounds=2), two)})
    assert ("change", "rounds 1") not in set(zip(levels["measure"], levels["setting"], strict=True))
    assert change_of(levels, "rounds 2") == pytest.approx(-3)
    runs = {name: (config(roles=roles), one) for name, roles in (("a", 2), ("b", 3), ("c", 3))}
    assert list(ablated(runs)[0]["first"]) == ["roles 3 (b)", "roles 3 (c)"]


def test_different_referees_give_a_warning() -> None:
    part = with_roles({"A": 5, "B": 5})
    runs = {"a": (config(model="m"), part), "b": (config(model="m", mode="teacher-guides", teacher="t"), part)}
    assert "The referees are different models (a m, b t)" in ablation.notes(runs)[-1]
    same = {name: ({**settings, "referee": "r"}, frame) for name, (settings, frame) in runs.items()}
    assert not any("different models" in line for line in ablation.notes(same))
