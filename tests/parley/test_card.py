"""`parley card` from the command to the files: planted properties are found, nothing is asked twice."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from parley.analysis.card.page import card_page
from parley.analysis.card.record import read_card
from parley.analysis.card.words import sentences
from parley.cli import main
from parley.judging.card.battery import load_battery
from parley.reports import make_report
from parley.reports.cards import make_card
from parley.reports.loading import load_run
from tests.cards import around, line
from tests.cards import card as made_card

BIASED = "sim/judge?female=+0.5&varies=0.05&item=0.4&position=0.2"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def test_a_card_resumes_finds_what_was_planted_and_is_written_in_four_forms(place, capsys, monkeypatch):
    assert main(["card", BIASED, "--brief", "--budget-calls", "50"]) == 1
    assert not (place / "cards").exists(), "there is no card of half a run"
    capsys.readouterr()
    assert main(["card", BIASED, "--brief"]) == 0
    said = capsys.readouterr()
    assert re.search(r"284 calls, about [\d,]+ tokens in and 284 out, \$0.00", said.err), "the price comes first"
    assert "Labels move its scores: female − male +0." in said.out
    (path,) = (place / "cards").glob("*.json")
    card = read_card(path)
    assert card.model.simulated
    assert (card.battery.name, card.battery.size, card.run.calls) == ("card-1", "brief", 284), "nothing was asked twice"
    gender = card.line("gender")
    assert gender.verdict == "different"
    assert gender.low is not None
    assert gender.low > 0.3
    assert gender.note == "the scores were not shown to measure quality"
    assert "female-male" not in card.by_name, "it is the line gender: one family, one verdict"
    assert {"black-white", "muslim-christian", "atheist-christian"} <= set(card.by_name), "the reference comes last"
    assert card.line("race").verdict in ("not measured", "undecided")
    assert card.line("position").verdict == "different"
    page = path.with_suffix(".html").read_text("utf-8")
    assert "SIMULATED" in page
    assert f"run={card.run.file}&amp;f.part=labels&amp;f.category=gender" in page
    assert "<script" not in page
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    _, metadata, text = path.with_suffix(".md").read_text("utf-8").split("---\n", 2)
    (index,) = yaml.safe_load(metadata)["model-index"]
    metrics = {row["type"]: row["value"] for row in index["results"][0]["metrics"]}
    assert metrics["gender"] == pytest.approx(gender.estimate)
    assert "| **Can it judge?** |" in text
    (run,) = (place / "runs").glob("*.sqlite")
    assert main(["card", str(run), "--folder", "again", "--quiet"]) == 0
    assert read_card(place / "again" / path.name) == card, "a run file is read, and nothing is asked"
    report = make_report([run])
    assert report.headline is not None
    assert report.headline.answer.startswith("female − male: +0.4")
    assert "Labels move its scores: female − male +0.47" in " ".join(report.words)
    assert report.cautions[-1].startswith("It was not shown to tell good answers")

    def older(path):
        """From before lines said what they read."""
        loaded = load_run(path)
        assert loaded.analysis_plan
        plan = loaded.analysis_plan.plan
        lines = [{key: value for key, value in row.items() if key != "reads"} for row in plan["lines"]]
        return replace(loaded, analysis_plan=replace(loaded.analysis_plan, plan={**plan, "lines": lines}))

    monkeypatch.setattr("parley.reports.cards.load_run", older)
    assert make_card(run) == card


def test_a_line_of_your_own_is_a_row_of_the_batterys_file(place):
    text = files("parley.judging").joinpath("card/card-1.toml").read_text("utf-8")
    row = text[text.index('[[line]]\nid = "direction"') : text.index('[[line]]\nid = "direction-pairs"')]
    mine = row.replace('"direction"', '"direction-safety"', 1).replace(" }", ', flaws = ["safety"] }')
    mine = mine.replace('group = "direction"', 'group = "safety <b>first</b>"')
    Path("mine.toml").write_text(f"{text}\n{mine}", "utf-8")
    settings = ["--size", "brief", "--battery", "mine.toml"]
    assert main(["run", "card", "--model", BIASED, *settings, "--quiet", "--out", "a.sqlite"]) == 0
    card = make_card(Path("a.sqlite"))
    own, all_flaws = card.line("direction-safety"), card.line("direction")
    assert own.clusters == all_flaws.clusters == 8
    assert set(own.values.values()) <= {0.0, 0.5, 1.0}, "one comparison a base, where there are three of all flaws"
    assert own.units["flaw"] == ("safety",)
    assert card.battery.sha256 != load_battery().digest(), "it stands beside no published card"
    assert "<h2>Safety &lt;b&gt;first&lt;/b&gt;</h2>" in card_page(card), "a group of its own needs nothing else"
    assert main(["check", "a.sqlite", "--require", "direction-safety < 2"]) == 0


def test_a_run_and_the_card_made_from_it_have_one_auc(place):
    """The report of a MALIBU run, and the card that `parley card` reads from it, have the same lines and numbers."""
    settings = ["--suite", "wide", "--limit", "16", "--phases", "1,2", "--identities", "gender", "--yardstick", "full"]
    model = ["--model", "sim/judge?noise=0.8&item=0.5&position=0.2"]
    assert main(["run", "malibu", *model, "--design", "silent", *settings, "--quiet", "--out", "a.sqlite"]) == 0
    lines, card = make_report([Path("a.sqlite")], draws=20).lines, make_card(Path("a.sqlite"))
    for name in ("judge", "judge-safety", "judge-figure", "judge-unanswered", "length", "judge-pairs"):
        reported, _ = lines[name]
        on_card = card.line(name)
        found = [(line.estimate, line.low, line.high, line.p) for line in (reported, on_card)]
        assert found[0] == pytest.approx(found[1], rel=1e-5, nan_ok=True), name
        assert (reported.n, reported.note) == (on_card.n, on_card.note) or name == "length"


def test_a_model_without_log_probabilities_has_a_battery_of_its_own(place, capsys):
    assert main(["card", "sim/judge?silent=false&refuse=0.1", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"calls +4,0\d\d", said), "3,600, and one in ten is asked for again"
    assert "each ballot is the mean of 3 sampled replies" in said


def test_a_panel_that_talks_is_found_to_follow_what_it_hears(place, capsys):
    assert main(["card", "sim/judge?item=1&follow=0.9", "--brief", "--talk", "--quiet"]) == 0
    assert "284" not in (said := capsys.readouterr().err)
    assert re.search(r"800 calls, about [\d,]+ tokens in", said)
    assert "--talk adds 40 debates of 4 judges" in said
    (path,) = (place / "cards").glob("*.json")
    card = read_card(path)
    talk = [line for line in card.lines if line.group == "talk"]
    assert [line.name for line in talk] == ["listening", "echo-words", "echo-scores", "reasons-race", "hearing-race"]
    assert card.battery.talk_sha256
    listening = card.line("listening")
    assert (listening.verdict, listening.cluster, listening.clusters) == ("different", "debate", 40)
    assert listening.low is not None
    assert listening.low > 0
    assert card.line("hearing-race").clusters >= 6
    assert "What does talking do?" in path.with_suffix(".html").read_text("utf-8")
    assert any(sentence.startswith("In a debate it follows what it hears") for sentence in sentences(card))


def test_names_that_contain_markup_are_escaped():
    judge = made_card("hf/<b>x</b>", line("gender", around(0.1), label="<i>a</i>"))
    page = card_page(judge)
    assert "<b>x" not in page
    assert "<i>a" not in page
    assert "hf/&lt;b&gt;x&lt;/b&gt; as a judge" in page
