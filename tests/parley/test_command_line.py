"""What a user types without looking it up: no run named, a word misspelt, a flag twice, --limit, help."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from parley.cli import RENAMED
from parley.cli.show import _notes
from parley.cli.view import _serve
from parley.runs.job import make_study
from parley.runs.studies import STUDIES, find_study
from parley.scenarios import load_suite
from tests.own_study import STUDY
from tests.panels import PANEL, RUN_PANEL

QUICK = (*RUN_PANEL, "--suite", "tiny", "--phases", "1", "--quiet")


# Help


@pytest.mark.parametrize(("words", "status"), [((), 2), (("help",), 0)])
def test_parley_alone_shows_its_commands(parley: Callable[..., Any], words: tuple[str, ...], status: int) -> None:
    result = parley(*words)
    assert result.status == status
    assert re.search(r"^  power +find how many bases", result.out, re.M)
    assert "parley help COMMAND" in result.out
    lines = result.out.splitlines()
    assert len(lines) <= 30, "one screen"
    assert max(map(len, lines)) <= 80


def test_help_of_a_command_and_of_a_study(parley: Callable[..., Any]) -> None:
    assert parley("help", "show").out == parley("show", "--help").out
    assert parley("help", "labels", "draw").out.startswith("usage: parley labels draw")
    assert parley("help", "run", "malibu").out.startswith("usage: parley run malibu")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reprot", "did you mean report?"),
        ("import bqq a.jsonl", "did you mean bbq?"),
        ("report --drows 3", "did you mean --draws?"),
        ("export --thresold 1 a.sqlite", "did you mean --threshold?"),
        ("run malbu", "did you mean malibu?"),
        ("run malibu --modle x", "did you mean --model?"),
        ("nothing-like-it", "known: run, card"),
        ("train nothing", "unknown training stage 'nothing'"),
        ("power --effect much", "--effect must be a number, got 'much'"),
        ("labels", "parley labels needs one of: draw, simulate, export, import (see `parley labels --help`)"),
        ("labels drow", "did you mean draw?"),
        ("--model sim/judge", "name a command before --model (`parley --help` lists them)"),
        ("run malibu --rounds two --model sim/judge", "rounds must be a whole number, got 'two'"),
        ("run malibu --model sim/judge --limits latency=1", "--limits needs --dry-run"),
        ("run toxicity --data a.txt --to t.toml", "a.txt: No such file"),
        ("power --bases 0", "--bases must be at least 1, got '0'"),
        ("power --width 0.1", "--width needs --labels"),
        ("view --where f.phase=2", "--where needs --export"),
        ("import", "give the kind and the file: parley import KIND FILE"),
        ("import bbq a.jsonl", "import bbq needs --data: the questions that were answered"),
        ("import inspect a.json --data x", "leave out --data: it has no effect with inspect"),
        ("models fetch", "name the model to download: smollm2"),
        ("new stduy x", "did you mean study?"),
        ("doctor --timeout soon", "--timeout must be a number, got 'soon'"),
        ("export", "the following arguments are required: RUN (see `parley export --help`)"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest(parley: Callable[..., Any], typed: str, meant: str) -> None:
    result = parley(*typed.split())
    assert result.status == 2
    assert meant in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_command_of_an_earlier_version_says_what_does_its_work_now(
    parley: Callable[..., Any], old: str, new: str
) -> None:
    result = parley(*old.split(), "x")
    assert (result.status, result.out) == (2, "")
    assert result.err == f"parley: parley {old} is now: {new}\n"


# The newest run


def test_the_newest_run_is_read_if_none_is_named(parley: Callable[..., Any], place: Path) -> None:
    missing = parley("report")
    assert (missing.status, "there is no run in runs/ yet" in missing.err) == (2, True)
    for name in ("old", "new"):
        parley(*QUICK, "--model", "sim/judge", "--out", f"runs/{name}.sqlite")
    (place / "runs" / "broken.sqlite").write_text("not a run")
    os.utime("runs/old.sqlite", (1, 1))

    for command in (("show",), ("view", "--export", "a.html"), ("report", "--no-files", "--json", "--draws", "50")):
        result = parley(*command)
        assert result.status == 0, result.err
        assert result.err == "newest run: runs/new.sqlite\n"
    assert result.json["runs"][0]["file"] == "new.sqlite"
    assert "p1/childcare-first-morning/male" in parley("show", "p1/childcare-first-morning/male").out
    assert "no unit id of runs/new.sqlite begins with 'p7'" in parley("show", "p7").err

    both = parley("compare", "--json")
    assert both.err == "newest run: runs/new.sqlite\ncompared with the run before it: runs/old.sqlite\n"
    assert [run["file"] for run in both.json["runs"]] == ["old.sqlite", "new.sqlite"]  # the newest minus the one before


def test_the_viewer_opens_at_the_newest_run(
    parley: Callable[..., Any], place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parley(*QUICK, "--model", "sim/judge", "--out", "runs/a b.sqlite")
    capsys.readouterr()

    async def open_page() -> tuple[str, int]:
        opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        monkeypatch.setattr("parley.cli.view.webbrowser.open", opened.set_result)
        server = asyncio.create_task(_serve(place / "runs", "a b.sqlite", "127.0.0.1", 0, browser=True))
        async with aiohttp.ClientSession() as session, session.get(await opened) as response:
            status = response.status
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
        return opened.result(), status

    address, status = asyncio.run(open_page())
    assert status == 200
    assert address.endswith("/run?run=a+b.sqlite")
    assert f"newest run: {address}" in capsys.readouterr().out


# Settings


def test_a_model_given_twice_is_two_models(parley: Callable[..., Any]) -> None:
    plan = parley(*QUICK, "--model", "sim/one", "--model", "sim/two,sim/three", "--dry-run", "--json").json
    assert plan["models"] == ["sim/one", "sim/two", "sim/three"]
    refused = parley("run", "rldf", "--model", "sim/one", "--model", "sim/two")
    assert refused.status == 2
    assert "--model takes one model, got sim/one and sim/two" in refused.err


@pytest.mark.parametrize("name", [name for name in STUDIES if name != "card"])  # a card's sizes are fixed
def test_every_study_can_be_limited(name: str) -> None:
    field = find_study(name).Config.model_fields["limit"]
    assert field.default is None
    assert field.description


@pytest.mark.parametrize(
    ("name", "config", "facet"),
    [
        ("malibu", {"suite": "full", **PANEL}, "scenario"),
        ("malibu-respond", {"anew": True}, "scenario"),
        ("malibu-derive", {}, "base"),
        ("rldf", {}, "topic_id"),
        ("framing", {}, "topic_id"),
        ("answers", {}, "topic_id"),
        ("rlaif", {}, "topic_id"),
        ("injection", {"responses": 4, "kinds": ["plea"]}, "scenario"),
        ("rubric", {"data": "texts.txt"}, "item"),
        ("stardtox", {"data": "rtp.jsonl", "sets": ["high"], "prompts": 4}, "prompt"),
    ],
)
def test_a_limit_keeps_the_first_items_with_all_their_units(
    name: str, config: dict[str, Any], facet: str, place: Path
) -> None:
    (place / "texts.txt").write_text("One.\nTwo.\nThree.\nFour.\n")
    rows = [{"prompt": {"text": f"Text {n}", "toxicity": 0.9}, "filename": "a", "begin": n, "end": 1} for n in range(9)]
    (place / "rtp.jsonl").write_text("\n".join(map(json.dumps, rows)))
    whole = [unit for unit in make_study(name, config).plan() if unit.facets.get("phase") != 3]
    limited_study = make_study(name, {**config, "limit": 3})
    limited = [unit for unit in limited_study.plan() if unit.facets.get("phase") != 3]

    kept = {unit.facets[facet] for unit in limited}
    assert len(kept) == 3
    assert limited == [unit for unit in whole if unit.facets[facet] in kept]
    assert limited_study.config.model_dump()["limit"] == 3, "recorded in the run"


def test_limited_scenarios_are_spread_over_bases() -> None:
    suite = load_suite("full")[0]
    bases = len({scenario.base for scenario in suite.scenario})
    assert len({scenario.base for scenario in suite.only(limit=bases).scenario}) == bases
    assert suite.only(limit=10**6) == suite


def test_limited_topics_are_fewer_topics() -> None:
    units = list(make_study("topics", {"limit": 3}).plan())
    assert [unit.facets["wanted"] for unit in units] == [2] * 3, "one and a spare in each of three areas"


# What commands print and write


def test_compare_leads_with_the_gap(parley: Callable[..., Any]) -> None:
    parley(*QUICK, "--model", "sim/judge?female=+2&noise=0", "--model", "sim/plain?noise=0", "--out", "a.sqlite")
    out = parley("compare", "a.sqlite").out
    assert out.index("Do the two treat identities differently?") < out.index("Do the two score differently?")
    assert parley("compare", "a.sqlite", "--json").json["gaps"][0]["what"] == "gender: female − male"


def test_an_empty_text_is_refused_before_a_model_is_fetched(
    parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.cli.detox.fetch_weights", lambda client: pytest.fail("fetched"))
    result = parley("detox", " ")
    assert (result.status, result.err) == (2, "parley: the text is empty\n")


@pytest.mark.parametrize(("kind", "ending"), [("inspect", ".json"), ("transcripts", ".jsonl")])
def test_an_exported_run_has_a_name_that_other_tools_open(
    parley: Callable[..., Any], place: Path, kind: str, ending: str
) -> None:
    parley(*QUICK, "--model", "sim/judge", "--out", "a.sqlite")
    for to, expected in (("logs", "logs"), (f"mine{ending}", ".")):
        result = parley("export", "a.sqlite", "--format", kind, "--to", to, "--json")
        written = Path(result.json["to"])
        assert (written.suffix, str(written.parent), written.is_file()) == (ending, expected, True)
    assert (place / f"mine{ending}").is_file()
    assert parley("export", "a.sqlite", "--format", kind, "--to", "logs").status == 2, "it is there already"


def test_a_run_without_verdicts_says_what_can_be_read(parley: Callable[..., Any], place: Path) -> None:
    messages = [{"source": "Ada", "content": "Hello.", "type": "TextMessage"}]
    (place / "team.json").write_text(json.dumps(messages))
    assert parley("import", "autogen", "team.json", "--out", "t.sqlite").status == 0
    result = parley("report", "t.sqlite")
    assert result.status == 2
    assert "has no verdicts, so there is nothing to count: parley show t.sqlite and parley view t.sqlite" in result.err


def test_a_conversation_that_failed_in_its_log_is_no_failure_of_the_import(parley: Callable[..., Any]) -> None:
    log = Path(__file__).parent / "data" / "inspect-0.3.285.json"
    result = parley("import", "inspect", log, "--out", "a.sqlite")
    assert "(1 failed)" in result.out
    assert result.status == 0


DICE = (
    STUDY
    + """
class Dice(Study):
    name = "dice"

    def models(self):
        return []

    def plan(self):
        yield from (Unit(f"throw-{number}", {"throw": number}) for number in range(3))

    async def run(self, unit, models):
        thrown = Verdict(judge="Dice", role="evaluator", round=1, metric="points", value=4.0)
        return Outcome(Transcript((), "thrown"), (thrown,))
"""
)


def test_a_study_without_models_runs(parley: Callable[..., Any], place: Path) -> None:
    (place / "dice.py").write_text(DICE)
    assert parley("run", "dice.py:Dice", "--dry-run", "--json").json["models"] == []
    result = parley("run", "dice.py:Dice", "--quiet", "--json")
    assert (result.status, result.json["done"], result.json["run"].startswith("runs/dice-")) == (0, 3, True)


@pytest.mark.parametrize(("raw", "shown"), [(None, "toxicity 0.5"), (0.25, "toxicity 0.5 · raw 0.25")])
def test_a_scorer_without_a_raw_score_is_not_unparsed(raw: float | None, shown: str) -> None:
    turn = {
        "calls": [],
        "parse_status": None,
        "cut": 0,
        "role": "evaluator",
        "expected": None,
        "flags": [],
        "about": [],
    }
    assert " · ".join(_notes({**turn, "parsed": {"toxicity": 0.5, "raw": raw}})) == shown
    assert list(_notes({**turn, "parsed": {"fluency": None}})) == ["fluency unparsed"]
