"""`parley report` and `compare` on real runs: JSON for scripts, files, and what is compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import parley as library
from parley.analysis.card.record import read_card
from parley.reports import make_report
from parley.reports.cautions import judging_cautions, scale_cautions
from parley.runs import RunFile, frames
from parley.viewer.headline import comparison, headline
from tests.panels import ONE_CELL, PANEL, TINY_PANEL, in_design

EFFECT = (
    "measure estimate low high p p_adjusted verdict pointwise_low pointwise_high p_flips_adjusted t_p skewness "
    "largest_base p_alike base_sd base_sd_high p_bases scenario_low scenario_high scenario_p t_p_adjusted "
    "p_alike_adjusted p_bases_adjusted"
)
MALIBU = {
    "means": "model category identity metric mean low high n clusters",
    "differences": f"model phase family category first second metric within {EFFECT} gpt_4o_mini deepseek_v3 n "
    "clusters note",
    "aligned": "model category reference measure estimate low high p p_adjusted favoured_lead other_lead "
    "favoured_bases other_bases n clusters note",
    "by_base": "model category first second base difference",
    "win_rates": "model category identity measure estimate low high wins losses ties wilson_low wilson_high "
    "rate_ties_half half_low half_high n clusters note",
    "tests": "model family category metric assumption measure estimate low high p p_adjusted statistic df n clusters "
    "note",
    "published": "paper_model model category metric paper ours holds",
    "position": "model pairs measure estimate low high p p_adjusted ties n clusters note",
    "unread": "model phase measure estimate low high ok repaired unparsed refused cut n clusters note identity",
    "analysis_plan": "run item plan",
    "planned": "run table part status",
}
MORE = {*("mde", "talking", "contagion", "echo")}
FEW = ("--draws", "50")
EARLY = ("--concurrency", "1", "--out", "early.sqlite")

Parley = Callable[..., Any]


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


# For scripts


def test_a_report_is_one_object_with_the_promised_keys(parley, run, place, data):
    result = parley("report", run, "--json", *FEW, "--seed", 5)

    assert (result.status, result.err) == (0, "")
    assert strict(result.out) == data, "the same from Python and from the command line"
    assert set(data) == {
        "title",
        "extent",
        "runs",
        "cautions",
        "summary",
        "settings",
        "headline",
        "forests",
        *MALIBU,
        *MORE,
    }
    for key, columns in MALIBU.items():
        assert data[key], key
        assert {tuple(row) for row in data[key]} == {tuple(columns.split())}, key
    assert {test["assumption"] for test in data["tests"]} == {"independent", "clustered"}
    assert data["settings"] == {"draws": 50, "seed": 5, "margin": 0.1}
    assert list(place.iterdir()) == [], "no files with --json"


def test_cautions_are_one_list_wherever_they_are_shown(parley, place, monkeypatch):
    """JSON lacked what says why the numbers should not be believed, and all but the page that a run is unfinished."""
    assert parley(*TINY_PANEL, "--model", "sim/judge", "--budget-calls", "50", *EARLY).status == 1
    cautions = parley("report", "early.sqlite", "--json", "--out", "files", *FEW).json["cautions"]
    simulated, unfinished, unmeasured = cautions
    assert "SIMULATED" in simulated
    assert unfinished.startswith("This run is not finished: ")
    assert unfinished.endswith(" of 9 units are done. All of its numbers may still change.")
    assert unmeasured.startswith("This run did not measure whether these judges can tell a good answer from a flawed")

    page = unescape((place / "files" / "report.html").read_text("utf-8"))
    assert re.findall('<p class="caution">(.*?)</p>', page) == cautions
    before = sorted(place.rglob("*"))
    everything = flat(parley("report", "early.sqlite", "--all", "--no-files", *FEW).out)
    assert (sorted(place.rglob("*")), "page:" in everything) == (before, False)
    assert everything.count("Caution: ") == 3
    monkeypatch.setattr("parley.viewer.headline._pictures", lambda report, tell: [])  # they take seconds
    with RunFile.open(place / "early.sqlite") as file:
        viewed = headline(file)
    assert viewed["cautions"] == cautions
    for line in cautions:
        assert everything.count(line) == page.count(line) == 1, "said once"
        assert line not in viewed["sentences"]
    first = parley("report", "early.sqlite", "--no-files", *FEW).out
    assert "Caution: sim/judge is SIMULATED" in first
    assert "and 2 more cautions: parley report early.sqlite --draws 50 --all" in first

    assert parley(*TINY_PANEL, "--model", "sim/judge?female=+1", "--out", "whole.sqlite").status == 0
    compared = parley("compare", "early.sqlite", "whole.sqlite", "--json").json["cautions"]
    assert compared[-1].startswith("early.sqlite is not finished: ")
    assert comparison(place / "early.sqlite", place / "whole.sqlite")["cautions"] == compared


def flat(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def test_every_line_of_a_forest_plot_has_its_numbers_and_its_units(both):
    """The identities and models as the file has them, so that a page can link a line to its units."""
    report = make_report([both], draws=50)
    forest = report.forests[0]
    with RunFile.open(both) as file:
        facets = [json.loads(row[0]) for row in file.rows("SELECT facets FROM units")[1]]

    table = report.table(forest.table)
    planned = table[(table["metric"] == "all") & table["within"]]
    assert [line.estimate for line in forest.lines] == list(planned["estimate"])
    assert [line.p_adjusted for line in forest.lines] == list(planned["p_adjusted"])
    for line in forest.lines:
        units = [unit for unit in facets if all(str(unit[name]) in values for name, values in line.units.items())]
        assert len(units) == 2 * line.n, "each scenario under two identities"


def test_the_object_has_the_run_it_was_made_from(data):
    (run,) = data["runs"]
    assert (run["file"], run["study"], run["seed"]) == ("a.sqlite", "malibu", 0)
    assert run["models"] == ["sim/judge?female=+0.4"]
    assert run["units"]["failed"] == run["units"]["planned"] == 0
    assert run["versions"]["parley-autogen"] == library.__version__
    assert run["config"]["suite"] == "tiny"
    assert run["sources"]
    assert data["cautions"][0].startswith("sim/judge?female=+0.4 is SIMULATED")


# Files


def test_a_report_writes_a_page_tables_and_figures_beside_the_run(parley, run, place):
    (place / "b.sqlite").write_bytes(run.read_bytes())

    result = parley(
        *("report", "b.sqlite", *FEW, "--seed", 6, "--all"),
        *("--figures", "all", "--formats", "svg", "--width", "single"),
    )

    assert result.status == 0
    page = place / "b-report" / "report.html"
    assert "page: b-report/report.html" in result.out
    assert "Settings: draws 50, seed 6, margin 0.1." in page.read_text("utf-8")
    assert {file.stem for file in (page.parent / "tables").glob("*.csv")} == {*MALIBU, *MORE, "agreement", "no_label"}
    assert {file.stem for file in (page.parent / "figures").glob("*.svg")} == {
        "scores",
        "matrix",
        "by-base",
        "win-rates",
        *(
            f"forest-{name}"
            for name in (
                "differences-score",
                "differences-preferences",
                "win_rates-rate",
                "position-first",
                "position-swapped",
                "agreement-alpha",
                "agreement-kappa",
                "no_label-score",
                "echo",
                "talking-score",
                "talking-preference",
            )
        ),
    }
    drawing = (page.parent / "figures" / "forest-differences-score.svg").read_text("utf-8")
    assert 'width="252pt"' in drawing, "3.5 inches"
    assert "Phase 1: mean scores" in result.out
    assert "How often does each identity win?" in result.out


# Several models, several runs


def test_models_lose_their_options_if_their_names_still_differ(parley, both):
    data = strict(parley("report", both, "--json", *FEW).out)
    assert {row["model"] for row in data["means"]} == {"sim/judge", "sim/fan"}
    assert data["title"] == "malibu full · sim/judge, sim/fan"
    assert data["runs"][0]["models"] == ["sim/judge?noise=0.5&seed=1", "sim/fan?female=+1.5&noise=0.5"]
    (claim,) = [line for line in data["summary"] if "Labels move the scores" in line]
    assert claim.startswith("sim/fan: Labels move the scores")
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
    assert data["title"] == "b.sqlite (sim/judge) compared with a.sqlite (sim/judge?female=+0.4)"
    assert data["summary"][0].startswith(
        f"Compared on {data['runs'][1]['units']['done']} shared units; differences are "
    )
    assert data["summary"][0].endswith("differences are b.sqlite minus a.sqlite.")
    assert data["summary"][1].startswith("With 3 bases no difference could be significant")
    in_browser = comparison(run, place / "b.sqlite")
    assert [plot["table"] for plot in data["forests"]] == ["gaps", "values"]
    for plot, shown in zip(data["forests"], in_browser["forests"], strict=True):
        assert shown["lines"] == plot["lines"], "one sign everywhere"
        assert [line["also"]["second"] for line in plot["lines"]] == [row["second"] for row in data[plot["table"]]]
    assert (in_browser["headline"], in_browser["units"]) == (data["headline"], data["largest"])
    assert data["settings"] == {}, "nothing is drawn"
    assert len(data["cautions"]) == 2
    shown = parley("compare", run, "b.sqlite").out
    assert re.search(r"what +first +second +estimate", shown), "two values, and not a pair of labels"


def test_a_comparison_with_an_unfinished_run(parley, both, place):
    """Stopped in the order of its plan, its units were not chosen by their scores; with gaps, they may have been."""

    def without(name, chosen):
        shutil.copy(both, place / name)
        with closing(sqlite3.connect(place / name)) as file, file:
            file.execute(f"UPDATE units SET status = 'planned' WHERE position {chosen}")
        result = parley("compare", both, name, "--models", "sim/fan?female=+1.5&noise=0.5", "--json").json
        assert any(line.startswith(f"{name} is not finished: ") for line in result["cautions"])
        return list(result["summary"])

    stopped = without("stopped.sqlite", "> 29")
    assert len(stopped) == 1
    assert stopped[0].startswith("Compared on 15 shared units; "), "of two models, the first 30 units"
    shared, missing, *_ = without("gaps.sqlite", "% 7 = 3")
    assert shared.startswith("Compared on ")
    assert missing.endswith(
        "missing on one side: a difference counts as shown only if it would be one whatever these had scored."
    )


def test_a_comparison_of_two_models_of_one_run(parley, both, place):
    result = parley("compare", both, "--out", "c")
    assert result.status == 0
    assert "gender: female − male" in result.out
    assert (place / "c" / "report.html").exists()
    data = strict(parley("compare", both, "--models", "sim/fan,sim/judge", "--json").out)
    gap = next(row for row in data["gaps"] if row["what"] == "gender: female − male")
    assert gap["low"] < -1.5 < gap["high"], "the second minus the first"
    assert gap["p_adjusted"] < 0.05
    assert any(line.startswith("gender: female − male: ") for line in data["summary"])


@pytest.mark.parametrize("width", [200, 80, 60, 40, 30])
def test_a_table_is_never_cut_without_saying_so(width):
    import pandas as pd
    from rich.console import Console

    from parley.cli.tables import plain_table

    frame = pd.DataFrame(
        {
            "run": ["roles-2.sqlite", "roles-5.sqlite"],
            "estimate": [3.901, 3.934],
            "low": [3.67, -10.81],
            "high": [4.13, 10.06],
            "against_first": [float("nan"), -0.234],
            "against_low": [float("nan"), -0.201],
            "against_high": [float("nan"), 10.267],
            "reports_that_were_unreadable": [12345678, 2],
        }
    )
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(plain_table("A table", frame, width))
    text = console.export_text()
    cells = ["3.90", "3.93", "3.67 to 4.13", "−10.81 to 10.06", "−0.23", "−0.20 to 10.27", "12345678"]
    assert max(map(len, text.splitlines())) <= width
    missing = [cell for cell in cells if cell not in text]
    assert ("Not shown" in text) == bool(missing) == ("…" in text)
    assert not missing or width < 80
    said = " ".join(text.split())
    for cell, head in (
        ("−0.23", "against first"),
        ("−0.20 to 10.27", "against 95% interval"),
        ("12345678", "unreadable"),
    ):
        assert cell in text or head in said.partition("Not shown")[2]
    assert "−10.81 to 10.06" in text or width < 60, "an estimate keeps its interval"


# Silent ballots


def test_a_panel_of_models_that_lean_opposite_ways_is_not_called_undecided(parley, place):
    personas = "\n".join(
        f'[[persona]]\nname = "{name}"\nabout = "You are {name}."\nmodel = "sim/judge?female={lean}"\n'
        for name, lean in (("Ada", "+1"), ("Ben", "-1"))
    )
    Path("panel.toml").write_text(personas, "utf-8")
    ran = parley(
        *("run", "malibu", "--suite", "full", "--per-base", "1", "--design", "silent", "--phases", "1", "--judges"),
        *("panel.toml", "--identities", "gender", "--yardstick", "off", "--model", "sim/judge", "--quiet"),
        *("--out", "own.sqlite"),
    )
    assert ran.status == 0, ran.err
    report = make_report([Path("own.sqlite")], draws=20)
    assert any("The models differ on 'female' against 'male'" in line for line in report.words)
    (named,) = report.table("primary")["model"]
    assert named == "sim/judge?female=+1, sim/judge?female=-1", "those who spoke, not the run's default"
    assert report.headline is not None
    assert report.headline.verdict == "judges differ"
    assert any("female − male · sim/judge?female=" in line.label for line in report.forests[0].lines)


def test_a_model_that_hardly_uses_the_scale_is_named_in_a_caution(parley, place):
    ran = parley(
        *("run", "malibu", "--suite", "full", "--per-base", "1", "--design", "silent", "--phases", "1"),
        *("--identities", "gender", "--yardstick", "off", "--model", "sim/judge", "--quiet", "--out", "a.sqlite"),
    )
    assert ran.status == 0, ran.err
    whole = make_report([Path("a.sqlite")], draws=20)
    assert not any("with a probability of" in line for line in whole.cautions)
    (line,) = scale_cautions([{("local/small", "Overall"): 0.11, ("local/other", "Overall"): 0.97}])
    assert line.startswith("local/small answers silent ballots (Overall) as asked with a probability of 11%: those ")
    assert frames.ballots(Path("a.sqlite"))["on_scale"].to_numpy() == pytest.approx(1.0)


def test_a_model_that_was_not_shown_to_judge_is_named_with_the_auc_of_its_card():
    """Nothing but the card says what a model is worth: the numbers are its own, and its weights are the card's."""
    judge = read_card(Path(library.__file__).parent / "analysis/card/shipped/hf-smollm2.json").line("judge")
    found = judging_cautions(["local/smollm2?silent=false", "hf/smollm2", "sim/judge", "openai/smollm2", "hf/unknown"])
    assert list(found) == ["local/smollm2?silent=false", "hf/smollm2"]
    assert found["hf/smollm2"] == (
        "Practice run: hf/smollm2 was not shown to tell good answers from flawed ones (on its card, which ships with "
        f"Parley, the good one scored higher in {judge.estimate:.0%} of comparisons, 95% interval {judge.low:.0%} to "
        f"{judge.high:.0%}; guessing: 50%)."
    )
