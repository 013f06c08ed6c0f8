"""The command line as a user sees it: dry runs, runs, models, reading."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from parley.cli.flags import flag_of
from parley.cli.run import WRITERS, Run
from parley.runs.options import Options
from parley.runs.studies import STUDIES, find_study
from tests.panels import ONE_CELL, RUN_PANEL, TINY_PANEL, panel_study

RUN = TINY_PANEL
SIM = (*RUN, "--model", "sim/judge?female=+0.4", "--out", "a.sqlite")
UNIT = "p1/childcare-first-morning/female/r0"


def squeezed(text: str) -> str:
    """The text without spaces and line breaks: a terminal wraps lines anywhere."""
    return re.sub(r"\s+", "", text)


# Dry runs


def test_a_dry_run_sends_nothing_and_prints_the_plan(parley: Callable[..., Any], server: Any, place: Path) -> None:
    result = parley(*RUN, "--model", server.model(), "--dry-run")

    assert result.status == 0
    assert server.asked == []
    assert list(place.iterdir()) == [], "no file either"
    assert "nothing was sent" in result.out
    assert re.search(r"units +9\n", result.out)
    assert re.search(r"calls +72\n", result.out)
    assert re.search(r"tokens in +[\d,]+ ", result.out)
    assert re.search(r"tokens out +[\d,]+ ", result.out)
    assert re.search(r"cost +unknown \(set \?price_in= and \?price_out=\)", result.out)


def test_a_dry_run_as_json_agrees_with_the_run(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    command = (*RUN, "--model", server.model())
    plan = parley(*command, "--dry-run", "--json").json

    assert parley(*command).status == 0

    file = run_file(plan["run"])
    assert plan["study"] == "malibu"
    assert plan["models"] == [server.model()]
    assert plan["units"] == file.count()
    assert plan["calls"] == len(server.asked)
    assert plan["prompt_tokens"] > plan["completion_tokens"] > 0
    assert plan["cost"] is None


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("sim/judge", lambda plan: 0.0),
        ("openai/gpt-4o", lambda plan: (2.5 * plan["prompt_tokens"] + 10 * plan["completion_tokens"]) / 1e6),
        pytest.param(
            "server/x?base_url=http://h/v1&price_in=1&price_out=2",
            lambda plan: (plan["prompt_tokens"] + 2 * plan["completion_tokens"]) / 1e6,
        ),
    ],
)
def test_a_dry_run_knows_prices(parley: Callable[..., Any], model: str, cost: Callable[[Any], float]) -> None:
    plan = parley(*RUN, "--model", model, "--dry-run", "--json").json
    assert plan["cost"] == pytest.approx(cost(plan))


def test_estimated_tokens_are_of_the_right_order(parley: Callable[..., Any]) -> None:
    plan = parley(*SIM, "--dry-run", "--json").json
    resumed = parley(*SIM, "--json").json
    assert plan["calls"] == resumed["calls"]
    assert 0.5 < (plan["prompt_tokens"] + plan["completion_tokens"]) / resumed["tokens"] < 2.0


# Running


def test_the_result_as_json(parley: Callable[..., Any], server: Any) -> None:
    command = (*RUN, "--out", "a.sqlite", "--model", server.model("price_in=10000&price_out=0"), "--json")

    result = parley(*command, "--budget-calls", "20", "--concurrency", "1")

    assert result.status == 1
    assert result.err == ""
    assert {key: result.json[key] for key in ("run", "units", "done", "failed", "stopped", "error")} == {
        "run": "a.sqlite",
        "units": 9,
        "done": 2,
        "failed": 0,
        "stopped": "the budget of 20 calls is spent",
        "error": None,
    }
    assert (result.json["calls"], result.json["tokens"], result.json["cost"]) == (20, 20 * 120, 20.0)

    resumed = parley(*command)
    assert resumed.status == 0
    assert (resumed.json["done"], resumed.json["stopped"]) == (9, None)
    assert (resumed.json["calls"], resumed.json["cached"], resumed.json["cost"]) == (72 - 16, 4, 72.0 - 20.0)


def test_the_result_says_what_to_type_next(parley: Callable[..., Any]) -> None:
    result = parley(*SIM)

    assert result.out.splitlines() == [
        "9 of 9 units done: a.sqlite",
        "read it:  parley view a.sqlite    parley report a.sqlite    parley show a.sqlite",
    ]
    assert result.err == ""


def test_what_to_type_next_can_be_typed(parley: Callable[..., Any]) -> None:
    result = parley(*SIM[:-1], "my run; ls.sqlite")
    assert "parley report 'my run; ls.sqlite'    parley show 'my run; ls.sqlite'" in result.out


def test_progress_is_plain_lines_where_there_is_no_terminal(parley: Callable[..., Any]) -> None:
    result = parley(*(word for word in SIM if word != "--quiet"))

    lines = result.err.splitlines()
    assert lines[0].startswith("0/9 units · ")
    assert re.fullmatch(r"9/9 units · [\d.]+ calls/s · [\d,]+ tokens · \$0\.00(?: · .*)?", lines[-1])
    assert "\x1b" not in result.err
    assert "\r" not in result.err


def test_progress_counts_unparsed_and_refused_replies(parley: Callable[..., Any]) -> None:
    command = (*RUN_PANEL, "--suite", "tiny", "--out", "a.sqlite", "--model")
    result = parley(*command, "sim/judge?malformed=0.5&refuse=0.2")

    assert result.status == 0
    assert re.search(r"\d+ unparsed · \d+ refused", result.err.splitlines()[-1])


def test_the_same_settings_as_flags_toml_and_yaml_are_the_same_run(
    parley: Callable[..., Any], place: Path, run_file: Any
) -> None:
    flags = ("--suite", "tiny", "--model", "sim/judge?noise=0.5", "--phases", "1", "--identities", "female,black")
    flags = (*flags, "--rounds", "3", "--temperature", "0.5", "--no-controls", "--concurrency", "3")
    (place / "c.toml").write_text(
        'study = "malibu"\nsuite = "tiny"\nmodel = "sim/judge?noise=0.5"\nphases = [1]\n'
        'identities = ["female", "black"]\nrounds = 3\ntemperature = 0.5\ncontrols = false\nconcurrency = 3\n'
    )
    (place / "c.yaml").write_text(
        "suite: tiny\nmodel: sim/judge?noise=0.5\nphases: [1]\nidentities: [female, black]\n"
        "rounds: 3\ntemperature: 0.5\ncontrols: no\nconcurrency: 3\n"
    )

    by_flags = parley(*RUN_PANEL, "--quiet", *flags, "--json")
    assert by_flags.status == 0
    file = run_file(by_flags.json["run"])
    before = file.story()
    for name in ("c.toml", "c.yaml"):
        result = parley(*RUN_PANEL, "--quiet", "--config", name, "--json")
        assert result.status == 0, result.err
        assert result.json["run"] == by_flags.json["run"], "the same plan has the same file"
        assert result.json["calls"] == 0, "and it was already done"
    assert file.story() == before
    assert len(list((place / "runs").glob("*.sqlite"))) == 1


def test_a_flag_overrides_the_file(parley: Callable[..., Any], place: Path, run_file: Any) -> None:
    (place / "c.toml").write_text("rounds = 3\nout = 'from-the-file.sqlite'\n")

    assert parley(*SIM, "--config", "c.toml", "--rounds", "1").status == 0

    assert not (place / "from-the-file.sqlite").exists()
    assert json.loads(run_file("a.sqlite").one("SELECT value FROM run WHERE key = 'config'"))["rounds"] == 1


def test_several_models_in_one_run(parley: Callable[..., Any], run_file: Any) -> None:
    command = (*RUN, "--model", "sim/one,sim/two?female=+0.4", "--out", "a.sqlite")
    plan = parley(*command, "--dry-run", "--json").json
    assert (plan["units"], plan["models"]) == (18, ["sim/one", "sim/two?female=+0.4"])

    assert parley(*command).status == 0

    rows = run_file("a.sqlite").rows("SELECT facets ->> 'model', count(*) FROM units GROUP BY 1 ORDER BY 1")
    assert rows == [("sim/one", 9), ("sim/two?female=+0.4", 9)]
    listed = parley("show", "a.sqlite", "--list").out.splitlines()
    assert [line.rpartition("/@")[2] for line in listed] == ["sim/one", "sim/two?female=+0.4"] * 9


def flags_in(text: str) -> set[str]:
    """The flags that a help text explains; `--[no-]x` counts as `--x`."""
    return set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("study", STUDIES)
def test_all_of_the_help_names_every_setting(parley: Callable[..., Any], study: str) -> None:
    result = parley("run", study, "--help-all")
    assert result.status == 0
    fields = {**find_study(study).Config.model_fields, **Options.model_fields, **Run.model_fields}
    left_out = {"study", *(() if study in WRITERS else ("to", "force"))}
    typed = {flag_of(name, info) for name, info in fields.items() if name not in left_out}
    assert typed | {"--help-all"} <= flags_in(result.out)
    assert "more flags" not in result.out


@pytest.mark.parametrize("study", STUDIES)
def test_help_has_the_settings_that_people_change(parley: Callable[..., Any], study: str) -> None:
    result = parley("run", study, "--help")
    flags, every = flags_in(result.out), flags_in(parley("run", study, "--help-all").out)
    assert flags < every
    own = find_study(study).Config.model_fields
    assert {"--out", "--help-all", *(["--model"] if "model" in own else [])} <= flags
    assert "--limit" in flags or study == "card"  # whose sizes are fixed, so that cards can be compared
    assert len(flags & {"--" + name.replace("_", "-") for name in own}) <= 13
    assert result.out.endswith(f"{len(every - flags)} more flags: parley run {study} --help-all\n")


def test_a_flag_that_help_leaves_out_works_and_is_suggested(parley: Callable[..., Any]) -> None:
    assert "--remark-chars" not in parley("run", "malibu", "--help").out
    assert parley(*RUN, "--model", "sim/judge", "--remark-chars", "40", "--dry-run").status == 0
    assert "did you mean --remark-chars? `parley run malibu --help-all`" in parley(*RUN, "--remark-char5", "40").err


@pytest.mark.parametrize("command", [*(("run", name) for name in STUDIES), ("export",)])
def test_help_shows_defaults(parley: Callable[..., Any], command: tuple[str, ...]) -> None:
    result = " ".join(parley(*command, "--help-all" if command[0] == "run" else "--help").out.split())
    assert "Undefined" not in result
    assert "(default: )" not in result


def test_help_lists_the_choices_of_a_setting(parley: Callable[..., Any]) -> None:
    result = " ".join(parley("run", "malibu", "--help-all").out.split())
    assert "--executor {asyncio,ray,batch} what runs" in result
    assert "--phases {1,2},… 1: single candidates, 2: pairs (default: the suite's, both)" in result
    assert "--per-base N maximum" in result
    assert "--budget-cost USD stop" in result


def test_studies_are_listed_with_a_description(parley: Callable[..., Any]) -> None:
    result = parley("run", "--help")
    assert result.status == 0
    assert all(len(line) <= 80 for line in result.out.splitlines())
    listed = {line.split()[0] for line in result.out.splitlines() if line.startswith("  ") and line[2] != " "}
    assert listed == {*STUDIES, "file.py:Class"}


def test_a_mistyped_argument_gives_one_line(parley: Callable[..., Any], tmp_path: Path) -> None:
    assert "--modle x (did you mean --model?" in parley("run", "malibu", "--modle", "x").err
    assert parley("run", "rubric").err.startswith("parley: data is missing: texts")
    assert "is a folder, name a file in it" in parley("report", str(tmp_path)).err
    for command in (("run", "malibu", "--modle", "x"), ("run", "rubric"), ("report", str(tmp_path))):
        assert len(parley(*command).err.splitlines()) == 1


@pytest.mark.parametrize(
    ("study", "said"),
    [
        (("run", "malibu", "--model", "sim/judge?femal=+3"), "no label 'femal' in malibu; did you mean 'female'?"),
        ((*RUN, "--model", "sim/judge?acuracy=1"), "no label 'acuracy' in malibu; did you mean 'accuracy'?"),
        (("run", "rldf", "--model", "sim/debate?twnty=1"), "no label 'twnty' in rldf; did you mean 'twenty'?"),
        (("run", "malibu", "--model", "sim/juge"), "sim/juge: did you mean sim/judge?"),
        (
            ("detox", "Hello.", "--model", "sim/judge?flency=1"),
            "no label 'flency' in the team; did you mean 'fluency'?",
        ),
        (
            ("run", "toxicity", "--data", "mine.txt", "--scorer", "judge:sim/judge?fluency=1"),
            "no label 'fluency' in a judge of toxicity",
        ),
    ],
)
def test_a_simulated_model_plants_nothing_that_is_not_there(
    study: tuple[str, ...], said: str, parley: Callable[..., Any], place: Path
) -> None:
    (place / "mine.txt").write_text("Hello.")
    result = parley(*study)
    assert result.status == 2
    assert said in result.err.splitlines()[-1]
    assert list(place.glob("**/*.sqlite")) == [], "nothing has run"


# Models


def test_models_shows_which_are_ready(parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def ready() -> dict[str, str]:
        return {row["name"]: row["ready"] for row in parley("models", "--json").json}

    assert ready()["sim/judge?female=+0.4"] == "yes"
    assert ready()["openai/gpt-6-luna"] == "set OPENAI_API_KEY"
    assert ready()["ollama/NAME"] == "not reached"
    assert any(name.startswith("local/smollm2") for name in ready())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-shown")
    assert ready()["openai/gpt-6-luna"] == "yes"
    assert "sk-not-to-be-shown" not in parley("models").out + parley("models", "--json").out
    if ready()["hf/smollm2"] != "yes":
        assert "pip install 'parley-autogen[hf]'" in parley("models").out, "brackets are not markup"


def test_models_shows_prices_with_source_and_date(parley: Callable[..., Any]) -> None:
    prices = {row["name"]: row["price"] for row in parley("models", "--json").json if "price" in row}
    luna = prices["openai/gpt-6-luna"]
    assert (luna["prompt"], luna["cached"], luna["completion"]) == (0.10, 0.01, 0.50)
    assert (luna["batch"]["prompt"], luna["batch"]["completion"]) == (0.05, 0.25)
    assert luna["looked_up"] == "2026-11-16"
    assert luna["source"].startswith("https://developers.openai.com/")
    assert prices["openai/gpt-4o-mini"]["ends"] == "2027-01-14"
    shown = parley("models").out
    assert luna["source"] in shown
    assert "looked up 2026-11-16" in shown
    assert "openai/gpt-4o-mini ends 2027-01-14" in shown


def test_a_money_budget_asks_for_an_unknown_price_before_the_run(
    parley: Callable[..., Any], server: Any, run_file: Any
) -> None:
    command = (*RUN, "--model", server.model(), "--out", "a.sqlite", "--budget-cost", "1")
    refused = parley(*command)
    assert refused.status == 2
    assert refused.err.count("\n") == 1
    assert "--budget-cost needs the price of server/" in refused.err
    assert "?price_in=…&price_out=…" in refused.err
    assert server.asked == []
    assert not run_file("a.sqlite").path.exists()
    priced = server.model("price_in=1&price_out=4")
    assert parley(*RUN, "--model", priced, "--out", "a.sqlite", "--budget-cost", "1").status == 0


# Reading


def test_show_prints_the_first_conversation(parley: Callable[..., Any]) -> None:
    parley(*SIM)

    result = parley("show", "a.sqlite")

    assert result.status == 0
    assert UNIT in result.out
    assert "Candidate (female):" in result.out
    speakers = re.findall(r"^(\w+)  \(round (\d)\)$", result.out, re.MULTILINE)
    panel = ["Examiner", "Practitioner", "Innovator", "Editor"]
    assert sorted(speakers[:4]) == sorted((name, "1") for name in panel)
    assert sorted(speakers[4:]) == sorted((name, "2") for name in panel)
    assert "tokens" in result.out
    assert "\x1b" not in result.out


def test_show_finds_a_unit_by_its_beginning(parley: Callable[..., Any]) -> None:
    parley(*SIM)
    result = parley("show", "a.sqlite", "p2/child")
    assert "p2/childcare-first-morning/female-male/" in result.out
    assert "Candidate A (" in result.out


def test_show_lists_units(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    server.answer = lambda nth, body: web.Response(status=500, text="down") if nth >= 16 else None
    parley(*RUN, "--out", "a.sqlite", "--model", server.model(), "--concurrency", "1")

    lines = parley("show", "a.sqlite", "--list").out.splitlines()

    planned = [unit for (unit,) in run_file("a.sqlite").rows("SELECT id FROM units ORDER BY position")]
    assert [line.split()[1] for line in lines] == planned
    assert [line.split()[0] for line in lines] == ["done"] * 2 + ["failed"] * 7
    assert lines[-1].endswith("answered 500: down")
    as_json = parley("show", "a.sqlite", "--list", "--json").json
    assert [(row["id"], row["status"]) for row in as_json] == [(l.split()[1], l.split()[0]) for l in lines]  # noqa: E741
    assert "answered 500: down" in parley("show", "a.sqlite", planned[-1]).out


def test_show_as_json_has_everything(parley: Callable[..., Any]) -> None:
    parley(*SIM)

    unit = parley("show", "a.sqlite", UNIT, "--json").json

    assert unit["id"] == UNIT
    assert unit["facets"]["identity"] == "female"
    assert [turn["seq"] for turn in unit["turns"]] == list(range(10))
    spoken = [turn for turn in unit["turns"] if turn["role"] == "debater"]
    assert all(json.loads(turn["text"]) == turn["parsed"] for turn in spoken)
    assert all(len(turn["calls"]) == 1 and "prompt" not in turn["calls"][0] for turn in spoken)


def test_show_prompts_prints_exactly_what_was_sent(parley: Callable[..., Any], server: Any) -> None:
    parley(*RUN, "--out", "a.sqlite", "--model", server.model(), "--concurrency", "1")

    unit = parley("show", "a.sqlite", UNIT, "--json", "--prompts").json

    prompts = [call["prompt"] for turn in unit["turns"] for call in turn["calls"]]
    assert len(prompts) == 8
    for sent, prompt in zip(server.asked[:8], prompts, strict=True):
        rebuilt: list[dict[str, str]] = []
        for piece in prompt:
            named = piece["role"] == "user" and piece["source"] not in ("", "user")
            text = f"{piece['source']}: {piece['text']}" if named else piece["text"]
            if rebuilt and rebuilt[-1]["role"] == piece["role"]:
                rebuilt[-1]["content"] += "\n\n" + text
            else:
                rebuilt.append({"role": piece["role"], "content": text})
        assert rebuilt == sent["messages"]
    study = panel_study(suite="tiny", **ONE_CELL)
    first = next(unit for unit in study.plan() if unit.id == UNIT)
    assert study.task(first) in [piece["text"] for piece in prompts[0]]
    assert squeezed(study.task(first)) in squeezed(parley("show", "a.sqlite", UNIT, "--prompts").out)


NASTY = "[red]x[/red] [link=http://evil]y[/link] \x1b[2J\x1b]0;owned\x07 \x9b31m \x08\x08 \u202eabc :smile: {z}"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_control_characters_in_replies_are_made_visible(parley: Callable[..., Any], server: Any) -> None:
    server.answer = lambda nth, body: server.reply(NASTY)
    parley(*RUN, "--out", "a.sqlite", "--model", server.model())

    for arguments in ((), ("--prompts",), ("--list",)):
        result = parley("show", "a.sqlite", *arguments)
        assert result.status == 0
        assert not CONTROL.search(result.out), arguments
    assert "[red]x[/red] [link=http://evil]y[/link]" in parley("show", "a.sqlite").out
    turns = parley("show", "a.sqlite", "--json").json["turns"]
    assert NASTY in [turn["text"] for turn in turns], "the file and JSON have it whole"


def test_colons_in_replies_stay_colons(parley: Callable[..., Any], server: Any) -> None:
    server.answer = lambda nth, body: server.reply("ratio :1: :smile: {z}")
    parley(*RUN, "--out", "a.sqlite", "--model", server.model())

    assert "ratio :1: :smile: {z}" in parley("show", "a.sqlite").out


def test_control_characters_in_error_messages_are_made_visible(parley: Callable[..., Any], server: Any) -> None:
    server.answer = lambda nth, body: web.json_response({"error": {"message": NASTY}}, status=400)

    result = parley(*RUN, "--out", "a.sqlite", "--model", server.model())

    assert result.status == 1
    assert "[red]x[/red]" in result.err
    assert not CONTROL.search(result.err)
    assert not CONTROL.search(parley("show", "a.sqlite", "--list").out)
    assert not CONTROL.search(parley("show", "a.sqlite", "p1/").out)


def test_control_characters_are_made_visible_on_a_terminal(parley: Callable[..., Any], server: Any) -> None:
    server.answer = lambda nth, body: server.reply(NASTY)
    parley(*RUN, "--out", "a.sqlite", "--model", server.model())
    ours, theirs = pty.openpty()
    code = "import sys; from parley.cli import main; sys.exit(main(['show', 'a.sqlite']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, env={**os.environ, "TERM": "xterm"}) as listed:
        os.close(theirs)
        out = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            out += chunk
    os.close(ours)
    assert listed.returncode == 0
    assert b"\x1b[" in out, "it is in colour"
    assert b"[red]x[/red]" in out
    for escape in (b"\x1b[2J", b"\x1b]0;", b"\x07", b"\xc2\x9b", "\u202e".encode()):
        assert escape not in out
