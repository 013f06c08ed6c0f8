"""The command line as a user sees it: help, dry runs, runs, models, the newest run, reading."""

from __future__ import annotations

import io
import json
import os
import re

import pytest
from rich.console import Console

from parley.cli import COMMANDS, NEAR_WORDS
from parley.cli import progress as progress_module
from parley.cli.flags import flag_of
from parley.cli.progress import ProgressView
from parley.cli.run import Run
from parley.judging.writing.study import WritingStudy
from parley.runs import Progress
from parley.runs.options import Options
from parley.runs.studies import SHIPPED, find_study
from tests.panels import RUN_PANEL, TINY_PANEL
from tests.parley.test_bad_input import one_line

RUN = TINY_PANEL


@pytest.mark.parametrize(("words", "status"), [((), 2), (("help",), 0)])
def test_parley_alone_shows_its_commands(parley, words, status):
    result = parley(*words)
    assert result.status == status
    assert re.search(r"^  power +find how many bases", result.out, re.M)
    assert "parley help COMMAND" in result.out
    lines = result.out.splitlines()
    assert len(lines) <= 30, "one screen"
    assert max(map(len, lines)) <= 80


def test_help_of_a_command_and_of_a_study(parley):
    assert parley("help", "show").out == parley("show", "--help").out
    assert parley("help", "scenarios", "list").out.startswith("usage: parley scenarios list")
    assert parley("help", "run", "malibu").out.startswith("usage: parley run malibu")
    studies = parley("run", "--help").out.splitlines()
    assert max(map(len, studies)) <= 80
    listed = {line.split()[0] for line in studies if line.startswith("  ") and line[2] != " "}
    assert listed == {*SHIPPED, "file.py:Class"}
    assert parley(*RUN, "--model", "sim/judge", "--remark-chars", "40", "--dry-run").status == 0, "not in --help"


def flags_in(text: str) -> set[str]:
    """The flags that a help text explains; `--[no-]x` counts as `--x`."""
    return set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("study", SHIPPED)
def test_help_has_the_settings_that_people_change_and_all_of_it_every_setting(parley, study):
    short, whole = parley("run", study, "--help").out, parley("run", study, "--help-all").out
    own = find_study(study).Config.model_fields
    fields = {**own, **Options.model_fields, **Run.model_fields}
    left_out = {"study", *(() if issubclass(find_study(study), WritingStudy) else ("to", "force"))}
    flags, every = flags_in(short), flags_in(whole)
    assert {flag_of(name, info) for name, info in fields.items() if name not in left_out} | {"--help-all"} <= every
    assert flags < every
    assert {"--out", "--help-all", *(["--model"] if "model" in own else [])} <= flags
    assert "--limit" in flags
    assert len(flags & {"--" + name.replace("_", "-") for name in own}) <= 13
    assert short.endswith(f"{len(every - flags)} more flags: parley run {study} --help-all\n")
    assert not any(word in " ".join(whole.split()) for word in ("Undefined", "(default: )", "more flags"))


def test_near_words_name_commands_that_exist():
    assert not NEAR_WORDS.keys() & COMMANDS.keys()
    assert all(hint.split()[1] in COMMANDS for hint in NEAR_WORDS.values())


def test_a_dry_run_sends_nothing_and_agrees_with_the_run(parley, server, place, run_file):
    command = (*RUN, "--model", server.model())
    shown = parley(*command, "--dry-run")
    assert (shown.status, server.asked) == (0, [])
    assert list(place.iterdir()) == [], "no file either"
    assert re.search(r"cost +unknown \(set \?price_in= and \?price_out=\)", shown.out)
    plan = parley(*command, "--dry-run", "--json").json
    assert parley(*command).status == 0
    assert (plan["study"], plan["models"], plan["cost"]) == ("malibu", [server.model()], None)
    assert (plan["units"], plan["calls"]) == (run_file(plan["run"]).count(), len(server.asked))
    assert plan["prompt_tokens"] > plan["completion_tokens"] > 0


def test_the_result_as_json(parley, server):
    command = (*RUN, "--out", "a.sqlite", "--model", server.model("price_in=10000&price_out=0"), "--json")
    result = parley(*command, "--budget-calls", "20", "--concurrency", "1")
    assert (result.status, result.complaints) == (1, [])
    expected = {"run": "a.sqlite", "units": 9, "done": 2, "failed": 0, "error": None}
    assert result.json | expected == result.json
    assert result.json["stopped"] == "the budget of 20 calls is spent"
    assert (result.json["calls"], result.json["tokens"], result.json["cost"]) == (20, 20 * 120, 20.0)


def test_progress_is_plain_lines_and_the_result_says_what_to_type_next(parley, run_file):
    command = [word for word in (*RUN, "--model", "sim/judge?malformed=0.5&refuse=0.2") if word != "--quiet"]
    result = parley(*command, "--out", "my run; ls.sqlite")
    quoted = "'my run; ls.sqlite'"
    assert result.out.splitlines() == [
        "9 of 9 units done: my run; ls.sqlite",
        f"read it:  parley view {quoted}    parley report {quoted}    parley show {quoted}",
    ]
    note, first, *_, last = result.err.splitlines()
    assert note.startswith("parley: note: 3 bases: no difference can be significant")
    assert first.startswith("0/9 units · ")
    counted = "SELECT count(*) FROM messages WHERE parse_status = '{}'"
    unread = [f"{run_file('my run; ls.sqlite').one(counted.format(kind))} {kind}" for kind in ("unparsed", "refused")]
    tokens = run_file("my run; ls.sqlite").one("SELECT sum(prompt_tokens + completion_tokens) FROM calls")
    assert re.fullmatch(
        rf"9/9 units · [\d.]+ calls/s · {tokens:,} tokens · \$0\.00 · {' · '.join(unread)}(?: · .*)?", last
    )
    assert not {"\x1b", "\r"} & set(result.err)


def test_the_time_left_comes_from_calls_and_rises_by_less_than_half(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: clock[0])
    told = io.StringIO()
    view = ProgressView(Console(file=told, width=200), 10, quiet=False)
    progress = Progress(total=10, expected_calls=100.0, started=0.0)
    for seconds, calls in ((1, 0), (11, 10), (22, 20), (33, 21), (44, 22), (55, 60)):
        clock[0], progress.calls = float(seconds), calls
        view.update(progress)
    lines = told.getvalue().splitlines()
    assert lines[0] == "0/10 units · reading the first prompts"
    shown = [line.rpartition(" · ")[2] for line in lines[1:]]
    # After 33 s 21 calls: 79 more would take 124 s, and 88 s × (1 + 0.03 × 11) are shown.
    assert shown == ["1:39 left", "1:28 left", "1:57 left", "2:36 left", "0:37 left"]
    for waiting in ("converting", "converting", "loading"):
        view.update(Progress(total=10, waiting=waiting))
    assert told.getvalue().splitlines()[-2:] == ["0/10 units · converting", "0/10 units · loading"], "said at once"
    cached = Progress(total=324, done=284, expected_calls=800.0, started=0.0)
    clock[0], cached.calls, cached.cached = 20.0, 284, 284
    assert cached.seconds_left is None, "replies from the cache do not make a run look nearly done"
    cached.calls += 10
    assert cached.seconds_left == pytest.approx(20.0 / 10 * (800 - 294))


def test_the_same_settings_as_flags_toml_and_yaml_are_the_same_run(parley, place, run_file):
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
    by_flags = parley(*RUN_PANEL, "--quiet", *flags, "--json").json
    before = run_file(by_flags["run"]).story()
    for name in ("c.toml", "c.yaml"):
        result = parley(*RUN_PANEL, "--quiet", "--config", name, "--json")
        assert result.status == 0, result.err
        assert (result.json["run"], result.json["calls"]) == (by_flags["run"], 0), "the same plan has the same file"
    assert run_file(by_flags["run"]).story() == before
    assert len(list((place / "runs").glob("*.sqlite"))) == 1
    (place / "c.toml").write_text("rounds = 3\nout = 'from-the-file.sqlite'\n")
    assert parley(*RUN, "--model", "sim/judge", "--config", "c.toml", "--rounds", "1", "--out", "a.sqlite").status == 0
    assert not (place / "from-the-file.sqlite").exists(), "a flag overrides the file"
    assert json.loads(run_file("a.sqlite").one("SELECT value FROM run WHERE key = 'config'"))["rounds"] == 1


def test_models_shows_which_are_ready(parley, monkeypatch):
    rows = parley("models", "--json").json
    ready = {row["name"]: row["ready"] for row in rows}
    assert (ready["sim/judge?female=+0.4"], ready["openai/gpt-6-luna"]) == ("yes", "set OPENAI_API_KEY")
    assert ready["vllm/NAME"] == "where its server runs"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-shown")
    shown = parley("models")
    keyed = parley("models", "--json")
    assert {row["name"]: row["ready"] for row in keyed.json}["openai/gpt-6-luna"] == "yes"
    assert "sk-not-to-be-shown" not in shown.out + keyed.out
    if ready["hf/smollm2"] != "yes":
        assert "pip install '.[hf]'" in shown.out, "brackets are not markup"


def test_the_newest_run_is_read_if_none_is_named(parley, place, finished):
    one_line(parley("report"), 2, "there is no run in runs/ yet")
    (place / "runs").mkdir()
    (place / "runs" / "new.sqlite").write_bytes(finished)
    alone = parley("compare")
    assert alone.complaints[0].endswith("one model, and no other run in runs/ is of malibu: name two run files")
    (place / "runs" / "old.sqlite").write_bytes(finished)
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
