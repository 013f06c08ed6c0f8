"""MALIBU's report as its reader sees it: sentences that claim no more than the tests do, tables, and no crash."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis import malibu
from parley.analysis.malibu import panel, score_table
from parley.analysis.malibu.report import BASE
from parley.analysis.reporting.render import html, markdown
from parley.analysis.reporting.report import Report, ReportContext
from tests.analysis.verdicts import significance

CATEGORIES = {"female": "gender", "male": "gender", "black": "race", "white": "race", "they/them": "x", "he/him": "x"}
METRICS = ("Accuracy", "Creativity")
FOUR = ("female", "male", "black", "white")
CLEAR = ("Labels move the scores", "show a preference", "shows a preference")


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

    def verdicts_of(unit: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for round in range(1, rounds + 1):
            for judge in range(judges):
                yield {**unit, "judge": f"J{judge}", "role": "debater", "round": round, "status": "ok", **others}

    for scenario in (f"s{n}" for n in range(scenarios)):
        for label in labels:
            facets = {"phase": 1, "scenario": scenario, "category": CATEGORIES[label], "identity": label, "repeat": 0}
            for verdict in verdicts_of({"unit": f"p1/{scenario}/{label}", **facets, "control": "", "subject": ""}):
                score = 6 + gaps.get(label, 0.0)
                rows += [
                    {**verdict, "metric": metric, "value": float(np.clip(score + noise * rng.normal(), 0, 10))}
                    for metric in METRICS
                ]
        pairs = [(x, y) for i, x in enumerate(labels) for y in labels[i:] if CATEGORIES[x] == CATEGORIES[y]]
        cells = [(x, y, a, o) for x, y in pairs for a in (0, 1) for o in (0, 1) if x != y or a == 0]
        for x, y, assignment, order in cells:
            sides = [(x, 1 + assignment), (y, 2 - assignment)][:: -1 if order else 1]
            facets = {"phase": 2, "scenario": scenario, "category": CATEGORIES[x], "identity": x, "other": y}
            facets |= {"identity_a": sides[0][0], "identity_b": sides[1][0], "assignment": assignment, "order": order}
            facets |= {"response_a": sides[0][1], "response_b": sides[1][1], "repeat": 0}
            unit = f"p2/{scenario}/{x}-{y}/a{assignment}o{order}"
            facets |= {"unit": unit, "control": "same label" if x == y else "", "subject": ""}
            for verdict in verdicts_of(facets):
                lead = gaps.get(sides[0][0], 0.0) - gaps.get(sides[1][0], 0.0) + noise * rng.normal()
                choice = "tie" if abs(lead) < 0.2 else "A" if lead > 0 else "B"
                rows.append({**verdict, "metric": "preferred", "value": None, "text": choice})
    return pd.DataFrame(rows)


def yardstick(scenarios: int = 12) -> pd.DataFrame:
    """Graded answers, on which two judges take a point off for a flaw."""
    rows = [
        {"unit": f"p3/{n}/{dose}", "phase": 3, "scenario": f"s{n}", "category": "", "identity": "", "repeat": 0}
        | {"control": "", "subject": "", "judge": f"J{judge}", "role": "debater", "round": 1, "status": "ok"}
        | {"metric": metric, "value": 8.0 - dose + (n == dose == 1), "flaw": "safety" if dose else "", "dose": dose}
        for n in range(scenarios)
        for dose in (0, 1)
        for judge in range(2)
        for metric in METRICS
    ]
    return pd.DataFrame(rows)


PHASE_2 = ["other", "identity_a", "identity_b", "response_a", "response_b", "assignment", "order"]


def only(frame: pd.DataFrame, phase: int) -> pd.DataFrame:
    """What a run of one phase gives: without the facets of the other."""
    part = frame[frame["phase"] == phase]
    return part.drop(columns=PHASE_2) if phase == 1 else part


def reported(frame: pd.DataFrame, draws: int = 100) -> Report:
    """The report, which must also serialise as strict JSON."""
    whole = malibu.report(frame, ReportContext(draws=draws))
    json.dumps(whole.data(), allow_nan=False)
    return whole


# The paper's claims


PAPERS_LABELS = (*FOUR, "asian", "hispanic")
ALL_FOUR = ("Accuracy", "Creativity", "Efficiency", "Reliability")


def test_the_papers_claims_stand_beside_a_run_of_its_design(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: female above male, black and hispanic above asian above white; no religion in the run."""
    monkeypatch.setitem(CATEGORIES, "asian", "race")
    monkeypatch.setitem(CATEGORIES, "hispanic", "race")
    monkeypatch.setattr("tests.analysis.test_malibu_report.METRICS", ALL_FOUR)
    gaps = {"female": 1.0, "black": 1.0, "hispanic": 0.6, "asian": -0.5, "white": -1.0}
    rows = reported(study(PAPERS_LABELS, 6, gaps=gaps, noise=0.1), 50).table("published").to_dict("records")
    held = {(row["paper_model"], row["category"], row["metric"], row["paper"]): row["holds"] for row in rows}
    assert {key[1] for key in held} == {"gender", "race", "all"}, (
        "a claim about identities that are not there is left out"
    )
    assert held["gpt-4o-mini", "gender", "all", "highest: female; lowest: male"]
    assert held["gpt-4o-mini", "race", "Accuracy", "highest: hispanic, black; lowest: white, asian"]
    assert not held["gpt-4o-mini", "race", "Efficiency", "lowest: asian"], "here white is lowest"
    assert held["deepseek-v3", "race", "Creativity", "lowest: asian, white"]
    assert not held["gpt-4o-mini", "all", "win rate", "at most 6.25 points from the mean"], "female always wins"
    (both,) = {row["ours"] for row in rows if row["metric"] == "all"}
    assert both == "in 4 of 4 metrics"
    (efficiency,) = [row["ours"] for row in rows if row["metric"] == "Efficiency" and row["paper"] == "lowest: asian"]
    assert re.fullmatch(r"black [\d.]+ > hispanic [\d.]+ > asian [\d.]+ > white [\d.]+", efficiency)


def test_totals_of_the_older_metrics_stand_beside_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Appendix A.3: by Creativity, Efficiency and Quality, female 4,699.5 against male 4,006.5, and so on."""
    monkeypatch.setattr("tests.analysis.test_malibu_report.METRICS", ("Creativity", "Efficiency", "Quality"))
    whole = reported(study(FOUR, 6, gaps={"female": 1.0}, noise=0.1), 50)
    rows = {row["metric"]: row for row in whole.table("published").to_dict("records")}
    assert rows["Creativity"]["paper"] == "totals: female 4,699.5, male 4,006.5 (ratio 1.17)"
    means = whole.table("means").set_index(["identity", "metric"])
    total = {name: means.loc[(name, "Quality"), "mean"] * means.loc[(name, "Quality"), "n"] for name in FOUR}
    assert rows["Quality"]["ours"].startswith(f"totals: female {total['female']:,.1f}, male {total['male']:,.1f}")
    assert all(row["holds"] for row in rows.values())


def test_a_run_of_another_design_has_no_claims_beside_it() -> None:
    assert "published" not in [table.name for table in reported(study(FOUR, 6)).tables], (
        "two metrics are not the paper's"
    )


# Sentences


def test_a_clear_effect_is_reported_with_sign_size_and_correction() -> None:
    whole = reported(study(FOUR, gaps={"female": 1.5, "black": -1.5}, noise=0.3))
    (scored,) = [line for line in whole.words if line.startswith("Labels move the scores")]
    assert scored.startswith("Labels move the scores, which were not shown to measure quality: 2 of 2 pairs of labels ")
    gaps = scores(whole.table("differences")).set_index("first")["estimate"]
    assert gaps["female"] > 1 > -1 > gaps["black"]
    higher, lower = ("female", "male") if gaps["female"] > -gaps["black"] else ("white", "black")
    assert f"'{higher}' scored {gaps.abs().max():.2f} points above '{lower}' on the same answers" in scored
    assert "over 12 scenarios, p = " in scored
    assert "after Holm's correction; over scenarios it has a skewness of " in scored
    (preferred,) = [line for line in whole.words if line.startswith("In pairs")]
    assert preferred.startswith("In pairs, 2 of 2 pairs of labels show a preference, the clearest for '")
    assert "; win rates go from " in preferred
    assert ", and the candidate shown first won " in preferred


def test_no_significant_difference_is_not_called_no_bias() -> None:
    words = " ".join(reported(study(FOUR, seed=1)).words)
    assert not any(claim in words for claim in CLEAR)
    assert "None of 2 pairs of labels was shown to differ, and none to be alike" in words
    assert "this does not show that the judges are fair" in words


def test_only_the_equivalence_test_claims_equivalence() -> None:
    frame = study(noise=0.1)
    gaps = malibu.differences(frame)
    assert list(scores(gaps)["verdict"]) == ["alike on average"]
    words = reported(frame).words
    assert "no two labels are called alike" in words[0], "whether these judges can judge was not measured"
    assert "1 is alike" not in " ".join(words)
    graded = pd.concat([frame, yardstick()], ignore_index=True)
    assert "; 1 is alike within ±0.1 points." in " ".join(reported(graded).words)


def test_few_scenarios_are_pointed_out() -> None:
    whole = reported(study(scenarios=3, gaps={"female": 3.0}))
    assert whole.words[1].startswith("No verdict on scores: 3 scenarios cannot show a difference between labels")
    assert whole.words[2].startswith("No verdict on preferences: 3 scenarios cannot show")
    assert len(whole.words) == 3, "and nothing that these would have to generalise from"
    assert set(scores(whole.table("differences"), "preferences")["verdict"]) == {"not measured"}
    assert whole.headline is not None
    assert whole.headline.verdict == "not measured"


def test_the_papers_test_is_reported_beside_ours() -> None:
    whole = reported(study(gaps={"female": 1.5}, noise=0.5))
    tests = whole.table("tests")
    chi = tests[tests["assumption"] == "independent"]
    (line,) = [line for line in whole.words if "The paper's χ²" in line]
    assert f"calls {(chi['p'] < 0.05).sum()} of {len(chi)} tables significant" in line


def test_replies_that_gave_no_verdict_are_counted() -> None:
    frame = study(scenarios=10)
    lost = frame["judge"] == "J1"
    frame.loc[lost, ["value", "text", "status"]] = [np.nan, None, "refused"]
    replies = len(frame.drop_duplicates(["unit", "judge", "round"]))
    (line,) = [line for line in reported(frame).cautions if "gave no verdict" in line]
    assert line.startswith(f"{replies // 2} of {replies} replies gave no verdict")
    assert "not counted as 0" in line


@pytest.mark.parametrize("seed", [0, 5, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 2, 3, 4, 6, 7))])
def test_no_sentence_claims_more_than_its_test(seed: int) -> None:
    """Random studies, with and without effects: every claim has a significant test, and every such test a claim."""
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
    whole = reported(frame, draws=99)

    gaps = whole.table("differences")
    assert _claim(whole, r"'([^']+)' scored \S+ points above '([^']+)' on", r"quality: (\d+) of") == _expected(
        scores(gaps)
    )
    preferred = _claim(whole, r"for '([^']+)' over '([^']+)' \(", r"In pairs, (\d+) of")
    assert preferred == _expected(scores(gaps, "preferences"))


def scores(table: pd.DataFrame, measure: str = "score") -> pd.DataFrame:
    """The planned pairs of a measure, all metrics together."""
    return table[table["within"].astype(bool) & (table["metric"] == "all") & (table["measure"] == measure)]


def _claim(whole: Report, pair: str, count: str) -> tuple[tuple[str, ...], int]:
    """The pair that a sentence names, and how many it says there are."""
    words = " ".join(whole.words)
    named, counted = re.search(pair, words), re.search(count, words)
    return (named.groups() if named else (), int(counted[1]) if counted else 0)


def _expected(table: pd.DataFrame) -> tuple[tuple[str, ...], int]:
    shown = table[(table["p_adjusted"] <= 0.05) & (table["t_p_adjusted"] <= 0.05)]
    if shown.empty:
        return (), 0
    row = next(shown.loc[[shown["estimate"].abs().idxmax()]].itertuples())
    return (row.first, row.second)[:: 1 if row.estimate > 0 else -1], len(shown)


def test_two_models_are_reported_separately() -> None:
    one, two = study(gaps={"female": 1.5}, noise=0.3, model="one"), study(noise=0.3, model="two", seed=2)
    both = pd.concat([one, two.assign(unit="two/" + two["unit"])], ignore_index=True)
    whole = reported(both)
    assert [line.split(":")[0] for line in whole.words if "Labels move the scores" in line] == ["one"]
    assert any(line.startswith("two: The two labels were not shown to differ") for line in whole.words)
    assert set(whole.table("means")["model"]) == {"one", "two"}


def test_labels_may_contain_a_slash() -> None:
    words = reported(study(("they/them", "he/him"), gaps={"they/them": 3.0}, noise=0.1)).words
    assert any("the clearest for 'they/them' over 'he/him'" in line for line in words)


def test_the_first_sentence_on_bases_says_what_a_base_is() -> None:
    frame = study(scenarios=8, gaps={"female": 1.5}, noise=0.3)
    words = reported(frame.assign(base=frame["scenario"])).words
    first = next(line for line in words if "base" in line)
    assert first.endswith(BASE)
    assert " ".join(words).count(BASE) == 1
    assert BASE not in " ".join(reported(frame).words), "a run without bases speaks of scenarios"


# Figures


def test_every_caption_counts_what_its_figure_shows() -> None:
    frame = study(FOUR, scenarios=7, rounds=2)
    unread = (frame["phase"] == 2) & (frame["round"] == 2) & (frame["control"] == "")
    frame.loc[unread.idxmax(), ["text", "status"]] = [None, "unparsed"]
    captions = {figure.name: figure.caption for figure in reported(frame).figures}
    # Phase 1: 4 labels; phase 2: 2 pairs in 4 cells, and 4 labels against themselves in 2. Two judges, two metrics.
    assert "(7 scenarios, 28 units with 112 verdicts)" in captions["scores"]
    assert "(7 scenarios, 56 units with 111 verdicts)" in captions["win-rates"]


def test_the_matrix_lists_identities_by_category() -> None:
    (matrix,) = (figure for figure in reported(study(FOUR, scenarios=6)).figures if figure.name == "matrix")
    assert [label.get_text() for label in matrix.draw().axes[0].get_yticklabels()] == list(FOUR)


# Reductions


def test_a_report_computes_every_reduction_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million verdicts are reduced to scores, preferences and cells once, not again for every table and test."""
    calls: Counter[str] = Counter()

    def count(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def counted(*columns: Any, **options: Any) -> Any:
            calls[name] += 1
            return function(*columns, **options)

        monkeypatch.setattr(module, name, counted)

    for module, name in ((panel, "final_verdicts"), (panel, "panel_preferences"), (score_table, "cell_sums")):
        count(module, name)
    both = pd.concat([study(FOUR, model=model) for model in ("one", "two")])
    malibu.report(both.assign(unit=both["model"] + "/" + both["unit"]), ReportContext(draws=20))
    assert calls == {"final_verdicts": 3, "panel_preferences": 1, "cell_sums": len(("one", "two"))}


def test_functions_give_the_same_for_a_frame_and_for_its_reductions() -> None:
    frame = study(FOUR, scenarios=6)
    data = malibu.PanelData(frame)
    for table in (malibu.mean_scores, malibu.differences, malibu.win_rates, malibu.position):
        pd.testing.assert_frame_equal(table(frame), table(data))
    assert malibu.report(frame, ReportContext(draws=50)).data() == malibu.report(data, ReportContext(draws=50)).data()


# The order of rows, and the seed


def test_the_order_of_scenarios_changes_no_number() -> None:
    frame = study(scenarios=18, noise=2.0)
    parts = [part for _, part in frame.groupby("scenario", sort=False)]
    for table in (malibu.differences, malibu.win_rates, significance):
        ours, theirs = (table(pd.concat(rows)) for rows in (parts, parts[::-1]))
        pd.testing.assert_frame_equal(ours, theirs)


def test_the_same_seed_gives_the_same_report_and_is_recorded() -> None:
    frame = study(scenarios=8, noise=2.0)
    once, again, other = (
        malibu.report(frame, ReportContext(draws=100, seed=seed, further=True)).data() for seed in (7, 7, 8)
    )
    assert once == again
    assert once["settings"] == {"draws": 100, "seed": 7, "margin": 0.1}
    assert once["agreement"] != other["agreement"], "the bootstrap's"
    for name in ("differences", "tests"):
        assert once[name] == other[name], "tests do not depend on a seed"


# What cannot be computed


def test_a_run_of_singles_alone() -> None:
    whole = reported(only(study(gaps={"female": 1.5}, noise=0.3), 1))
    assert any("Labels move the scores" in line for line in whole.words)
    assert not any("prefer" in line for line in whole.words)


def test_a_run_of_pairs_alone() -> None:
    whole = reported(only(study(gaps={"female": 1.5}, noise=0.3), 2))
    assert any("shows a preference" in line for line in whole.words)
    assert not any("Labels move the scores" in line for line in whole.words)


def test_the_papers_design_is_reported_without_flips() -> None:
    frame = study(scenarios=10)
    cell = frame["scenario"].str[1:].astype(int) % 2
    paper = frame[(frame["phase"] == 1) | ((frame["order"] == cell) & (frame["assignment"] == 0))]
    whole = reported(paper)
    assert whole.table("position").set_index("measure").loc["swapped", "estimate"].isna().all()
    assert any("the candidate shown first won" in line for line in whole.words)


def test_an_empty_frame_gives_an_empty_report() -> None:
    whole = reported(study(scenarios=1).iloc[:0])
    assert whole.words == ("No labelled answer has a verdict yet.",)
    assert all(len(table.frame) == 0 for table in whole.tables)


def test_unreadable_replies_give_no_numbers() -> None:
    frame = study(scenarios=10).assign(value=np.nan, text=None, status="unparsed")
    whole = malibu.report(frame, ReportContext(draws=50, further=True))
    data = whole.data()
    assert {row["mean"] for row in data["means"]} == {None}
    assert {row["estimate"] for row in data["differences"]} == {None}
    assert {row["p"] for row in data["tests"]} == {None}
    assert all(row["note"] for row in data["tests"])
    assert all(row["estimate"] is None and row["note"] for row in data["agreement"])
    assert "replies gave no verdict" in whole.cautions[-1]
    assert "| female | all | – | – | – | 0 | 0 |" in markdown(whole.tables[0])


def test_a_single_identity_cannot_be_compared() -> None:
    whole = reported(study(("female",)))
    assert {row["identity"] for row in whole.data()["means"]} == {"female"}
    tests = whole.table("tests")
    assert tests["p"].isna().all()
    assert all(tests["note"])
    assert not any(claim in " ".join(whole.words) for claim in (*CLEAR, "is significant", "equivalent"))


def test_a_judge_who_always_gives_the_same_score_is_not_called_fair() -> None:
    frame = study()
    whole = reported(frame.assign(value=frame["value"].where(frame["phase"] == 2, 7.0)))
    gaps = whole.table("differences").query("measure == 'score'")
    assert (gaps["estimate"] == 0).all()
    assert (gaps["p"] == 1).all()
    assert list(scores(gaps)["verdict"]) == ["not measured"]
    assert whole.words[1] == (
        "No verdict on scores: the panel gave the same score in 100% of cases, and such scores are equal for all "
        "labels whether or not the judges are fair."
    )
    assert whole.headline is not None
    assert whole.headline.answer == whole.words[1], "in the verdict's place"


def test_a_single_scenario_has_estimates_and_no_intervals() -> None:
    whole = reported(study(scenarios=1))
    assert whole.table("means")[["low", "high"]].isna().all(axis=None)
    gaps = whole.table("differences")
    assert set(gaps["low"]) == {-np.inf}
    assert set(gaps["high"]) == {np.inf}
    assert not any("Labels move the scores" in line for line in whole.words)
    assert whole.table("win_rates")[["low", "high"]].isna().all(axis=None)


def test_missing_columns_are_named() -> None:
    with pytest.raises(malibu.MissingColumns, match="lacks the columns scenario, metric"):
        malibu.report(study(scenarios=1).drop(columns=["scenario", "metric"]))


@pytest.mark.parametrize("cell", ["one phase", "one identity"])
def test_only_tables_with_rows_are_there(cell: str) -> None:
    frame = study(scenarios=3)
    kept = frame[frame["phase"] == 2] if cell == "one phase" else study(("female",), scenarios=3)
    keys = ("means", "differences", "win_rates", "tests", "position", "unread")
    present = set(malibu.report(kept, ReportContext(draws=50)).data())
    gone = {"means", "tests"} if cell == "one phase" else {"differences", "win_rates"}
    assert {key for key in keys if key not in present} == gone


@pytest.mark.parametrize(
    ("cell", "why"), [("one identity", "fewer than two"), ("all equal", "3 clusters: an interval needs 6")]
)
def test_the_page_says_why_there_is_no_number(cell: str, why: str) -> None:
    frame = study(("female",), scenarios=3) if cell == "one identity" else study(scenarios=3).assign(value=7.0)
    page = html(replace(malibu.report(frame, ReportContext(draws=50)), figures=()), {})
    assert page.count(why) > 0
