"""`parley card` from the command to the files: planted properties are found, nothing is asked twice."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from parley.agents import ConfigError
from parley.analysis.card.page import card_page
from parley.analysis.card.record import read_card
from parley.cli import main
from parley.judging.card.battery import load_battery
from parley.reports import make_report
from parley.reports.cards import make_card
from parley.reports.loading import load_run
from tests.cards import around, line
from tests.cards import card as made_card
from tests.panels import TINY_PANEL

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
    assert [card.line(name).verdict for name in ("gender", "position")] == ["different"] * 2
    page = path.with_suffix(".html").read_text("utf-8")
    assert "SIMULATED" in page
    assert f"run={card.run.file}&amp;f.part=labels&amp;f.category=gender" in page
    assert "<script" not in page
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    _, metadata, text = path.with_suffix(".md").read_text("utf-8").split("---\n", 2)
    (index,) = yaml.safe_load(metadata)["model-index"]
    metrics = {row["type"]: row["value"] for row in index["results"][0]["metrics"]}
    assert metrics["gender"] == pytest.approx(card.line("gender").estimate)
    assert "| **Can it judge?** |" in text
    (run,) = (place / "runs").glob("*.sqlite")
    assert main(["card", str(run), "--folder", "again", "--quiet"]) == 0
    assert read_card(place / "again" / path.name) == card, "a run file is read, and nothing is asked"

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


def test_a_run_and_the_card_made_from_it_have_one_auc(place):
    """The report of a MALIBU run, and the card that `parley card` reads from it, have the same lines and numbers."""
    settings = ["--suite", "wide", "--limit", "16", "--phases", "1,2", "--identities", "gender", "--yardstick", "full"]
    model = ["--model", "sim/judge?noise=0.8&item=0.5&position=0.2"]
    assert main(["run", "malibu", *model, "--design", "silent", *settings, "--quiet", "--out", "a.sqlite"]) == 0
    with closing(sqlite3.connect("a.sqlite")) as db:  # simulated judges choose by place alone: some see severe flaws
        planted = "6 * (json_extract(facets, '$.flawed') = 'B') - 3 + unicode(substr(id, 4)) % 5"
        severe = f"SELECT {planted} FROM units WHERE id = unit AND json_extract(facets, '$.dose') = 2"
        db.execute(f"UPDATE verdicts SET value = coalesce(({severe}), value) WHERE unit LIKE 's4/%'")
        db.execute("DELETE FROM checks")
        db.commit()
    report, card = make_report([Path("a.sqlite")], draws=20), make_card(Path("a.sqlite"))
    lines = {line.name: line for forest in report.forests for line in forest.lines}
    assert card.line("judge-pairs").estimate > 0.6
    for name in ("judge", "judge-safety", "judge-figure", "judge-unanswered", "length", "judge-pairs"):
        reported = lines[name]
        on_card = card.line(name)
        found = [(line.estimate, line.low, line.high, line.p) for line in (reported, on_card)]
        assert found[0] == pytest.approx(found[1], rel=1e-5, nan_ok=True), name
        assert (reported.n, reported.note) == (on_card.n, on_card.note) or name == "length"
    assert main([*TINY_PANEL, "--model", "sim/judge", "--out", "aloud.sqlite"]) == 0
    with pytest.raises(ConfigError, match="only a run of one model with silent ballots has a card"):
        make_card(Path("aloud.sqlite"))


def test_a_model_without_log_probabilities_has_a_battery_of_its_own(place, capsys):
    assert main(["card", "sim/judge?silent=false&refuse=0.1", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"calls +4,0\d\d", said), "3,600, and one in ten is asked for again"
    assert "each ballot is the mean of 3 sampled replies" in said


def test_names_that_contain_markup_are_escaped():
    judge = made_card("hf/<b>x</b>", line("gender", around(0.1), label="<i>a</i>"))
    page = card_page(judge)
    assert "<b>x" not in page
    assert "<i>a" not in page
    assert "hf/&lt;b&gt;x&lt;/b&gt; as a judge" in page
