"""`parley report` and `compare` on real runs: JSON for scripts, files, and what is compared."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from math import inf, nan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

import parley as library
from parley.cli.tables import plain_table
from parley.reports import make_report
from parley.reports.cautions import judging_cautions
from parley.runs import RunFile
from parley.viewer.open_run import OpenRun
from parley.viewer.reporter import Reporter, comparison, headline
from tests.panels import ONE_CELL, PANEL, TINY_PANEL, in_design

FEW = ("--draws", "50")
EARLY = ("--concurrency", "1", "--out", "early.sqlite")


def record_run(path: Path, model: Any = "sim/judge?female=+0.4", **settings: Any) -> Path:
    options = library.Options(cache=False, out=str(path))
    assert library.run(
        "malibu", model=model, options=options, **in_design({"suite": "tiny", **settings}, ONE_CELL)
    ).complete
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return record_run(tmp_path_factory.mktemp("run") / "a.sqlite", **PANEL, controls=True)


@pytest.fixture(scope="module")
def data(run):
    """The report from Python."""
    return make_report([run], draws=50, seed=5).data()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two models in one run: on sixteen texts, only the second favours an identity."""
    models = ["sim/judge?noise=0.5&seed=1", "sim/fan?female=+1.5&noise=0.5"]
    texts = {"suite": "full", "per_base": 1, "rounds": 1, "identities": ["gender"], "controls": False, **PANEL}
    return record_run(tmp_path_factory.mktemp("both") / "both.sqlite", models, phases=[1], **texts)


def strict(text: str) -> Any:
    """Parse standard JSON, without NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_report_is_one_object_the_same_from_python_and_the_command_line(parley, run, place, data):
    """Its tables and columns are in tests/golden."""
    result = parley("report", run, "--json", *FEW, "--seed", 5)
    assert (result.status, result.err) == (0, "")
    assert strict(result.out) == data
    assert data["settings"] == {"margin": 0.1}
    assert list(place.iterdir()) == [], "no files with --json"
    (made_from,) = data["runs"]
    assert made_from["versions"]["parley-autogen"] == library.__version__
    assert made_from["config"]["suite"] == "tiny"
    assert made_from["sources"]


def test_cautions_are_one_list_wherever_they_are_shown(parley, place):
    """JSON lacked what says why the numbers should not be believed, and all but the page that a run is unfinished."""
    assert parley(*TINY_PANEL, "--model", "sim/judge", "--budget-calls", "50", *EARLY).status == 1
    cautions = parley("report", "early.sqlite", "--json", "--out", "files", *FEW).json["cautions"]
    simulated, unfinished = cautions
    assert "SIMULATED" in simulated
    assert unfinished.startswith("This run is not finished: ")
    assert unfinished.endswith(" of 9 units are done. All of its numbers may still change.")

    page = unescape((place / "files" / "report.html").read_text("utf-8"))
    assert re.findall('<p class="caution">(.*?)</p>', page) == cautions
    assert page.rindex('class="caution"') < page.index("<h1>"), "a caution comes before the headline"
    before = sorted(place.rglob("*"))
    shown = parley("report", "early.sqlite", "--no-files", *FEW).out
    assert (sorted(place.rglob("*")), "page:" in shown) == (before, False)
    assert "Caution: sim/judge is SIMULATED" in shown
    for line in cautions:
        assert line in flat(shown), "a caution is never cut"
    with RunFile.open(place / "early.sqlite") as file:
        viewed = headline(file)
    assert viewed["cautions"] == cautions
    for line in cautions:
        assert page.count(line) == 1, "said once"
        assert line not in viewed["sentences"]

    assert parley(*TINY_PANEL, "--model", "sim/judge?female=+1", "--out", "whole.sqlite").status == 0
    compared = parley("compare", "early.sqlite", "whole.sqlite", "--json").json["cautions"]
    assert compared[-1].startswith("early.sqlite is not finished: ")
    assert comparison(place / "early.sqlite", place / "whole.sqlite")["cautions"] == compared


def p_and_verdicts(report: Any) -> list[tuple[str, Any]]:
    """Everything in a report's data that is a p-value or a verdict: its name, and what it says."""
    if isinstance(report, list):
        return [each for part in report for each in p_and_verdicts(part)]
    if not isinstance(report, dict):
        return []
    of_report = {name: value for name, value in report.items() if name not in ("runs", "values")}
    named = [(name, value) for name, value in of_report.items() if re.search(r"\bp\b|verdict", name.replace("_", " "))]
    return [each for each in named if each[1] not in (None, "")] + p_and_verdicts(list(of_report.values()))


def test_an_unfinished_run_has_estimates_and_no_verdicts(parley, place):
    """With a report after each sixth of the units and no effect, "different" was once said in 18% of studies. Here the
    effect is so large that all but the first two looks would say it."""
    one_by_one = ("--concurrency", "1", "--out", "early.sqlite", "--no-cache", "--quiet")
    texts = (
        "--suite",
        "full",
        "--per-base",
        "1",
        "--phases",
        "1",
        "--identities",
        "gender",
        "--yardstick",
        "off",
        "--design",
        "silent",
    )
    run = ("run", "malibu", "--model", "sim/judge?female=+1&seed=1", *texts, *one_by_one)
    looks = []
    for calls in (10, 20, 30, 40, 50):
        assert parley(*run, "--budget-calls", calls).status == 1
        looks.append(make_report([place / "early.sqlite"]))
    for look in looks:
        assert look.headline.answer.startswith("No verdict yet: ")
        assert (look.headline.verdict, look.headline.line) == ("", None)
        assert p_and_verdicts(look.data()) == []
        assert not [line for line in look.cautions if "not shown" in line], (
            "whether its judges can judge is a verdict, too"
        )
    assert looks[-1].forests[0].lines[0].bounded, "its interval stays"

    unfinished = f"No verdict yet: {looks[-1].runs[0]['units']['planned']} of 60 units are to come."
    with RunFile.open(place / "early.sqlite") as file:
        viewed = headline(file)
    assert (viewed["headline"]["answer"], viewed["also"], p_and_verdicts(viewed)) == (unfinished, [], [])
    assert unfinished in flat(parley("report", "early.sqlite").out)
    assert unfinished in (place / "early-report" / "report.html").read_text("utf-8")
    assert unfinished in flat(parley("show", "early.sqlite", "--finding", "1").out)
    as_is = flat(parley("report", "early.sqlite", "--as-is", "--no-files").out)
    assert unfinished.replace("No verdict yet", "No verdict").replace("are to come", "were not run") in as_is
    assert ("may still change" in as_is, "This run ended early: " in as_is) == (False, True)

    (place / "first.sqlite").write_bytes((place / "early.sqlite").read_bytes())
    assert parley(*run).status == 0
    whole = make_report([place / "early.sqlite"])
    assert whole.headline.verdict == "different"
    assert p_and_verdicts(whole.data())
    compared = parley("compare", "early.sqlite", "first.sqlite")
    assert (compared.status, "No verdict yet: 10 of 120 units are to come." in flat(compared.out)) == (0, True)
    assert p_and_verdicts(parley("compare", "early.sqlite", "first.sqlite", "--json").json) == []


def test_the_viewer_shows_the_report_that_the_command_line_made(parley, place, monkeypatch):
    monkeypatch.setattr(Reporter, "request", lambda *arguments, **options: None)  # nothing is computed
    assert parley(*TINY_PANEL, "--model", "sim/judge?female=+1", "--out", "run.sqlite").status == 0
    run = OpenRun(place / "run.sqlite")
    assert parley("report", "run.sqlite", *FEW).status == 0
    early = run.report(reporter=Reporter())
    assert (early["pending"], ["is SIMULATED" in line for line in early["cautions"]]) == (True, [True])
    assert parley("report", "run.sqlite").status == 0
    with RunFile.open(place / "run.sqlite") as file:
        assert run.report(reporter=Reporter()) == json.loads(json.dumps(headline(file)))


def flat(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def test_a_report_writes_a_page_tables_and_figures_beside_the_run(parley, run, place, monkeypatch):
    monkeypatch.setattr("parley.analysis.page.render.FORMATS", ("svg",))  # of three, which take thrice as long
    (place / "b.sqlite").write_bytes(run.read_bytes())
    result = parley("report", "b.sqlite", *FEW, "--seed", 6, "--figures", "all")
    assert result.status == 0
    page = place / "b-report" / "report.html"
    assert "page: b-report/report.html" in result.out
    assert "Settings: margin 0.1." in page.read_text("utf-8")
    assert {"means", "differences", "win_rates"} <= {file.stem for file in page.parent.rglob("*.csv")}
    drawings = {file.stem: file for file in (page.parent / "figures").glob("*.svg")}
    assert drawings.keys() > {"scores", "matrix", "forest-win_rates-rate"}


def test_models_lose_their_options_if_their_names_still_differ(parley, both):
    data = strict(parley("report", both, "--json", *FEW).out)
    assert {row["model"] for row in data["means"]} == {"sim/judge", "sim/fan"}
    (claim,) = [line for line in data["summary"] if "Labels move the scores" in line]
    assert claim.startswith("sim/fan, by itself: Labels move the scores")
    assert "the same answers score 1." in claim
    assert "points higher for 'female' than for 'male'" in claim


def test_one_model_in_two_runs_is_distinguished_by_its_file(parley, run, place, data):
    (place / "b.sqlite").write_bytes(run.read_bytes())
    same = strict(parley("compare", run, "b.sqlite", "--json").out)
    assert {(row["estimate"], row["p"]) for row in (*same["gaps"], *same["values"])} == {(0.0, 1.0)}
    two = strict(parley("report", run, "b.sqlite", "--json", *FEW).out)
    assert [run["file"] for run in two["runs"]] == ["a.sqlite", "b.sqlite"]
    names = [f"sim/judge?female=+0.4 ({file})" for file in ("a.sqlite", "b.sqlite")]
    assert list(dict.fromkeys(row["model"] for row in two["means"])) == names
    assert [row["n"] for row in two["means"]] == [row["n"] for row in data["means"]] * 2
    (place / "b.sqlite").rename(place / "a.sqlite")
    twins = strict(parley("report", run, "a.sqlite", "--json", *FEW).out)
    assert len({row["model"] for row in twins["means"]}) == 2, "two files of one name are two runs"


def test_a_comparison_of_two_runs(parley, run, place):
    record_run(place / "b.sqlite", "sim/judge", phases=[1])
    result = parley("compare", run, "b.sqlite", "--json")
    assert (result.status, result.err) == (0, "")
    data = strict(result.out)
    assert data["summary"][0] == "Compared on 6 shared units; differences are b.sqlite minus a.sqlite."
    assert data["summary"][1] == "Left out: 33 units with readable verdicts on one side only."
    assert data["summary"][2].startswith("With 3 bases no difference could be significant")
    in_browser = comparison(run, place / "b.sqlite")
    for plot, shown in zip(data["forests"], in_browser["forests"], strict=True):
        assert shown["lines"] == plot["lines"], "one sign everywhere"
    assert (in_browser["headline"], in_browser["units"]) == (data["headline"], data["largest"])
    shown = parley("compare", run, "b.sqlite").out
    assert re.search(r"what +first +second +estimate", shown), "two values, and not a pair of labels"


@pytest.mark.parametrize("width", [200, 80, 40])
def test_a_table_is_never_cut(width):
    columns = {"estimate": [3.901, 3.934, nan], "low": [3.67, -10.81, -inf], "high": [4.13, 10.06, inf]}
    counts = {"reports_that_were_unreadable": [12345678, 2, 0]}
    frame = pd.DataFrame({"run": ["two roles in the first run", "five in the second", "none"], **columns, **counts})
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(plain_table("A table", frame))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "∞" not in text, "an interval without ends is a dash"
    assert "…" not in text
    if width >= 80:
        for cell in ("3.90", "3.93", "3.67 to 4.13", "−10.81 to 10.06", "12345678"):
            assert cell in text


DECIMALS = {0.5: "0.50", 0.1: "0.10", 0.099: "0.099", 0.015: "0.015", 0.01: "0.010", 0.0099: "0.0099", 0.0: "0.00"}


@pytest.mark.parametrize("largest", DECIMALS)
def test_a_table_of_small_estimates_has_more_decimals(largest):
    console = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    frame = pd.DataFrame({"estimate": [largest], "low": [-largest], "high": [largest], "too_high": [12]})
    console.print(plain_table("A table", frame))
    *_, cells, _ = console.export_text().splitlines()
    low = f"−{DECIMALS[largest]}" if largest else DECIMALS[largest]
    assert cells.split() == [DECIMALS[largest], low, "to", DECIMALS[largest], "12"], "what is too high is no interval"


def test_a_model_that_was_not_shown_to_judge_is_named_with_its_auc():
    found = judging_cautions(["local/smollm2?silent=false", "hf/smollm2", "sim/judge", "openai/smollm2", "hf/unknown"])
    assert list(found) == ["local/smollm2?silent=false", "hf/smollm2"]
    assert found["hf/smollm2"] == (
        "Practice run: hf/smollm2 was not shown to tell good answers from flawed ones (in a run of 17 November 2026, "
        "the good one scored higher in 45% of comparisons, 95% interval 38% to 53%; guessing: 50%)."
    )
