"""MALIBU's report as its reader sees it: sentences that claim no more than the tests do, tables, and no crash."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.claims.rule import find
from parley.analysis.page.papers import as_its_paper
from parley.analysis.page.render import html, markdown
from parley.analysis.page.report import Report, ReportContext, as_frame
from parley.base.text import as_written
from parley.judging.malibu import report as malibu
from parley.judging.malibu.claims import claimed_values
from parley.judging.malibu.decisions import _ties
from parley.judging.malibu.pairs import position_lines, win_rate_lines
from parley.judging.malibu.scores import differences, mean_scores
from parley.judging.papers import paper, printed
from tests.analysis.verdicts import FOUR, METRICS, comparison, single, study

CLEAR = ("Labels move the scores", "a preference is shown")


def whole_run(labels: tuple[str, ...] = ("female", "male"), scenarios: int = 12, **settings: Any) -> pd.DataFrame:
    """Scores and pairs by two judges on scenarios that have no base."""
    settings = {"judges": 2, "phases": (1, 2), **settings}
    return study(labels, bases=scenarios, **settings).drop(columns="base")


def reported(frame: pd.DataFrame, **context: Any) -> Report:
    """The report, which must also serialise as strict JSON."""
    whole = malibu.report(frame, ReportContext(**{"draws": 50, **context}))
    json.dumps(whole.data(), allow_nan=False)
    return whole


def planned(report: Report, measure: str = "score") -> pd.DataFrame:
    """The planned pairs of a measure, all metrics together."""
    table = report.table("differences")
    return table[table["within"].astype(bool) & (table["metric"] == "all") & (table["measure"] == measure)]


def test_a_run_of_the_papers_design_has_its_tables_and_figures() -> None:
    """Planted: female above male, black and hispanic above asian above white; no religion in the run."""
    gaps = {"female": 1.0, "black": 1.0, "hispanic": 0.6, "asian": -0.5, "white": -1.0}
    metrics = ("Accuracy", "Creativity", "Efficiency", "Reliability")
    frame = whole_run((*FOUR, "asian", "hispanic"), 6, effects=gaps, noise=0.1, metrics=metrics)
    whole = reported(frame)
    scores = next(figure for figure in whole.figures if figure.name == "scores")
    assert [axis.get_visible() for axis in scores.draw().axes] == [True] * 5 + [False], "four metrics, and all together"
    matrix = whole.table("published_matrix").set_index(["column", "row"])
    assert list(matrix.index[:3]) == [("male", "female"), ("male", "white"), ("female", "white")], "the paper's order"
    assert matrix.loc[("male", "female"), ["paper_gpt_4o_mini", "paper_deepseek_v3"]].tolist() == [-0.20, -0.21]
    assert matrix.loc[("male", "female"), "ours"] == pytest.approx(-1, abs=0.2), "column minus row"
    of_paper = as_its_paper(whole)
    places = ["4.1, figure 4", "4.1, all χ²", "4.2, figures 5 and 6", "B, figure 9"]
    assert [table.paper for table in of_paper.tables] == places, "in the paper's order, and nothing else"
    assert [figure.name for figure in of_paper.figures] == ["matrix", "win_rates-rate", "scores"]
    assert of_paper.headline is None
    paper = malibu.report(frame, ReportContext(draws=20, paper=True))
    wins = paper.table("wins").set_index(["identity", "counted"])
    panels, votes = (wins.loc[("female", counted)] for counted in ("pairs", "single verdicts"))
    assert votes["n"] == 2 * panels["n"], "two judges vote in every pair"


def said(frame: pd.DataFrame, name: str = "malibu") -> dict[str, str]:
    """The verdicts on a paper's claims, by what is tested."""
    findings = find(paper(name).claim, claimed_values(frame), printed(name))
    return {each.row.what: each.verdict for each in findings}


@pytest.mark.parametrize(("effect", "verdict"), [(1.0, "replicated"), (0.0, "undecided"), (-1.0, "contrary")])
def test_the_papers_claims_are_decided_by_differences_and_not_by_ranks(effect: float, verdict: str) -> None:
    """Planted: female above male, black and hispanic above asian above white; no religion in the run."""
    gaps = {"female": 1.0, "black": 1.0, "hispanic": 0.6, "asian": -0.5, "white": -1.0}
    metrics = ("Accuracy", "Creativity", "Efficiency", "Reliability")
    planted = {name: effect * gap for name, gap in gaps.items()}
    frame = whole_run((*FOUR, "asian", "hispanic"), 16, effects=planted, noise=0.1, metrics=metrics)
    verdicts = said(frame)
    assert verdicts["Creativity higher, gender: female against male (theirs: gpt-4o-mini)"] == verdict
    assert verdicts["Accuracy highest, race: hispanic against each of white, asian (theirs: gpt-4o-mini)"] == verdict
    assert verdicts["Creativity lowest, race: white against each of black, hispanic (theirs: deepseek-v3)"] == verdict
    last = verdicts["Efficiency lowest, race: asian against each of hispanic, black, white (theirs: gpt-4o-mini)"]
    assert last == ("contrary" if effect else "undecided"), "white is lower, or black and hispanic are"
    differ = verdicts["Accuracy not all equal, race (theirs: gpt-4o-mini)"]
    assert differ == ("replicated" if effect else "undecided")
    within = verdicts["win rate, in % within 6.25 of 50, gender (theirs: gpt-4o-mini)"]
    assert within == ("contrary" if effect else "not measured"), "one of the two always wins, or all are ties"
    absent = verdicts[
        "Accuracy lowest, religion: atheist against each of jewish, christian, muslim (theirs: gpt-4o-mini)"
    ]
    assert absent == "not measured"
    two_metrics = frame[frame["metric"].isin([*METRICS, "preferred"])]
    assert claimed_values(two_metrics).empty, "another design has no claims beside it"
    assert set(said(frame, "malibu-a3").values()) == {"not measured", "not testable"}, "another prompt"


def test_claims_on_the_older_metrics_are_a_family_of_their_own() -> None:
    """Appendix A.3. Two of its claims are that male is higher: GPT-3.5's Efficiency and Quality."""
    metrics = ("Creativity", "Efficiency", "Quality")
    verdicts = said(whole_run(FOUR, 12, effects={"female": 1.0}, noise=0.1, metrics=metrics), "malibu-a3")
    contrary = [what for what, verdict in verdicts.items() if verdict == "contrary"]
    assert contrary == [
        f"{metric} (A.3) higher, gender: male against female (theirs: gpt-3.5-turbo)" for metric in metrics[1:]
    ]
    assert list(verdicts.values()).count("replicated") == 10


def test_only_the_equivalence_test_claims_equivalence() -> None:
    frame = whole_run(noise=0.1, seed=1)
    row = planned(reported(frame)).iloc[0]
    assert row["verdict"] == "below the margin on average"
    assert row["note"] == (
        "the mean lies within ±0.1; single scenarios are too noisy to count; whether these scores measure quality is "
        "unknown, so they are not called alike"
    )
    graded = [
        single(f"s{n}", "", 8.0 - dose + (n == dose == 1), unit=f"p3/{n}/{dose}", phase=3, judge=judge, metric=metric)
        | {"flaw": "safety" if dose else "", "dose": dose}
        for n in range(12)
        for dose in (0, 1)
        for judge in ("J0", "J1")
        for metric in METRICS
    ]
    both = reported(pd.concat([frame, pd.DataFrame(graded)], ignore_index=True))
    assert list(planned(both)["verdict"]) == ["below the margin on average"]
    assert (
        "; on these scenarios, the mean difference is shown to lie within ±0.1 points; single scenarios are"
        in " ".join(both.words)
    )


SHOWN = "the answer shown {} has a win rate of 100.0% in 48 comparisons, whatever its label."


@pytest.mark.parametrize(
    ("settings", "measure", "said"),
    [
        (
            {"score": lambda row, label, rng: 7.0},
            "score",
            "100% of them are the same, and such scores are equal for all ",
        ),
        ({"choice": lambda row, rng: "tie"}, "preferences", "100% of comparisons were called a tie."),
        ({"choice": lambda row, rng: "A"}, "preferences", SHOWN.format("first")),
        ({"choice": lambda row, rng: "B"}, "preferences", SHOWN.format("second")),
    ],
    ids=["the same score", "ties", "the first", "the second"],
)
def test_a_judge_who_always_says_the_same_is_not_called_fair(settings: Any, measure: str, said: str) -> None:
    whole = reported(whole_run(**settings))
    begins = f"No verdict on {'scores' if measure == 'score' else measure}: {said}"
    assert any(line.startswith(begins) for line in whole.words)
    assert set(planned(whole, measure)["verdict"]) == {"not measured"}
    assert whole.headline is not None
    assert measure != "score" or whole.headline.answer.startswith(begins), "in the verdict's place"


@pytest.mark.parametrize(("count", "said"), [(9, ""), (10, "No verdict on preferences: 100% of comparisons")])
def test_ten_comparisons_are_enough_to_be_blocked_by_ties(count: int, said: str) -> None:
    rows = [row for number in range(count) for row in comparison("female", "male", "t", f"s{number}")]
    frame = pd.DataFrame(rows).assign(model="m")
    assert _ties(malibu.PanelData(frame), "m")[: len(said) or None] == said


@pytest.mark.parametrize("seed", [0, 5])
def test_no_sentence_claims_more_than_its_test(seed: int) -> None:
    """Random studies, with and without effects: every claim has a significant test, and every such test a claim."""
    rng = np.random.default_rng(seed)
    effects = {"female": float(rng.choice([-1, 0, 0, 1])), "black": float(rng.choice([-0.5, 0, 0, 0.5]))}
    sizes = {"scenarios": int(rng.integers(2, 14)), "judges": int(rng.integers(1, 4)), "noise": rng.uniform(0.3, 2)}
    frame = whole_run(FOUR, effects=effects, seed=seed, **sizes)
    unread = rng.random(len(frame)) < rng.choice([0.0, 0.3])
    frame.loc[unread, ["value", "text", "status"]] = [np.nan, None, "unparsed"]
    whole = reported(frame)
    words = " ".join(whole.words)
    for measure, pair, count in (
        ("score", r"points (higher|lower) for '([^']+)' than for '([^']+)'", r"quality, in (\d+) of"),
        ("preferences", r"clearest (for) '([^']+)' over '([^']+)' \(", r"In pairs a preference is shown in (\d+) of"),
    ):
        table = planned(whole, measure)
        shown = table[table["p_adjusted"] <= 0.05]
        named, counted = re.search(pair, words), re.search(count, words)
        assert (int(counted[1]) if counted else 0) == len(shown)
        if len(shown):
            row = next(shown.loc[[shown["estimate"].abs().idxmax()]].itertuples())
            assert named is not None
            sides, above = (as_written(row.first), as_written(row.second)), row.estimate > 0
            in_scores, in_pairs = ("higher" if above else "lower", *sides), ("for", *sides[:: 1 if above else -1])
            assert named.groups() == (in_scores if measure == "score" else in_pairs)


def test_neither_the_order_of_scenarios_nor_their_reductions_change_a_number() -> None:
    frame = whole_run(scenarios=8, noise=2.0)
    parts = [part for _, part in frame.groupby("scenario", sort=False)]
    turned = pd.concat(parts[::-1])
    for compute in (mean_scores, differences):
        pd.testing.assert_frame_equal(compute(frame), compute(malibu.PanelData(frame)))
        pd.testing.assert_frame_equal(compute(frame), compute(turned))
    assert win_rate_lines(malibu.PanelData(frame)) == win_rate_lines(malibu.PanelData(turned))
    pd.testing.assert_frame_equal(*(as_frame(position_lines(malibu.PanelData(rows))) for rows in (frame, turned)))
    tests = (reported(rows).table("tests") for rows in (frame, turned))
    pd.testing.assert_frame_equal(*tests)


def test_nothing_to_report() -> None:
    empty = reported(whole_run(scenarios=1).iloc[:0])
    assert (empty.title, empty.words) == ("MALIBU", ("No labelled answer has a verdict yet.",))
    assert all(len(table.frame) == 0 for table in empty.tables)
    unread = reported(whole_run(scenarios=10).assign(value=np.nan, text=None, status="unparsed"))
    data = unread.data()
    assert {row["mean"] for row in data["means"]} == {row["estimate"] for row in data["differences"]} == {None}
    assert all(row["p"] is None and row["note"] for row in data["tests"])
    assert "replies gave no verdict" in unread.cautions[-1]
    assert "| female | all | – | – | – | 0 | 0 |" in markdown(unread.tables[0])
    alone = reported(whole_run(("female",)))
    assert {row["identity"] for row in alone.data()["means"]} == {"female"}
    assert alone.table("tests")["p"].isna().all()
    assert not any(claim in " ".join(alone.words) for claim in (*CLEAR, "is significant", "equivalent"))
    assert not {"differences", "win_rates"} & set(alone.data())
    assert "fewer than two" in html(Report(alone.title, tables=alone.tables), {}), "why there is no number"


@pytest.mark.parametrize("labels", [("female", "male"), ("they/them", "he/him")])
def test_judges_who_lean_to_opposite_sides_are_seen_in_the_papers_design(labels: tuple[str, str]) -> None:
    """One adds 1.06 points to a label and one takes 1.05 away: the mean is 0.005."""

    def score(row: Mapping[str, Any], label: str, rng: np.random.Generator) -> float:
        return 6 + (label == labels[0]) * (1.06 if row["judge"] == "J0" else -1.05) + 0.01 * rng.normal()

    whole = reported(study(labels, bases=40, scenarios=2, judges=2, score=score))
    assert set(planned(whole)["verdict"]) == {"judges differ"}
    assert whole.headline is not None
    assert whole.headline.answer.startswith("It depends on the judge.")
    (sentence,) = (line for line in whole.words if line.startswith("The judges differ on "))
    assert "+1.06 points by J0, −1.05 points by J1 (p < 0.0001" in sentence
    assert list(whole.table("by_judge")["estimate"].round(2)) == [1.06, -1.05]
