"""Logs of Inspect and AutoGen are imported, and runs are exported."""

from __future__ import annotations

import asyncio
import json
import math
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat

from parley.agents import model
from parley.runs import RunFile, frames
from parley.viewer.headline import headline

LOG = Path(__file__).parent / "data" / "inspect-0.3.285.json"
"""Written by Inspect AI 0.3.285 on its mock model: two questions, three scorers; reduced to what is read,
with a third sample that failed."""


def test_an_inspect_log_becomes_a_run_that_is_shown_and_reported(
    parley: Callable[..., Any], run_file: Any, place: Path
) -> None:
    result = parley("import", "inspect", LOG, "--out", "runs/buses.sqlite", "--json")
    assert result.json == {"run": "runs/buses.sqlite", "study": "inspect-buses", "units": 3, "failed": 1, "notes": []}
    file = run_file("runs/buses.sqlite")
    file.check()
    assert file.one("SELECT error FROM units WHERE status = 'failed'") == "ConnectionError('the server is gone')"
    shown = parley("show", "runs/buses.sqlite", "bus/e1", "--prompts", "--json").json
    assert [(turn["speaker"], turn["text"]) for turn in shown["turns"]] == [
        ("system", "You are brief."),
        ("user", "Should buses be free? Answer yes or no."),
        ("mockllm/model", "yes"),
    ]
    call = shown["turns"][2]["calls"][0]
    assert (call["prompt_tokens"], call["completion_tokens"], len(call["prompt"])) == (12, 3, 2)
    assert shown["facets"] | {"scenario": "bus", "topic": "transport", "n": 1} == shown["facets"]


def test_grades_become_numbers_and_no_answer_is_missing(parley: Callable[..., Any]) -> None:
    """`match` says C for the bus and I for the sum; `unsure` says N, which Inspect counts as 0 and we as missing."""
    parley("import", "inspect", LOG, "--out", "a.sqlite")
    verdicts = {(row.scenario, row.metric): row for row in frames.verdicts("a.sqlite").itertuples()}
    assert verdicts["bus", "match"].value == 1.0
    assert verdicts["2", "match"].value == 0.0
    assert verdicts["bus", "two/length"].value == 3.0
    assert math.isnan(verdicts["bus", "unsure"].value)
    assert verdicts["bus", "unsure"].status == "unparsed"
    report = parley("report", "a.sqlite", "--json").json
    by_metric = {row["metric"]: row["estimate"] for row in report["means"]}
    assert by_metric == {"match": 0.5, "two/warmth": 7.0, "two/length": 3.0, "unsure": None}


def test_an_eval_archive_gives_the_same_run(parley: Callable[..., Any], run_file: Any) -> None:
    log = json.loads(LOG.read_text("utf-8"))
    samples = log.pop("samples")
    with zipfile.ZipFile("buses.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(log))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    parley("import", "inspect", LOG, "--out", "a.sqlite")
    parley("import", "inspect", "buses.eval", "--out", "b.sqlite")
    assert run_file("a.sqlite").story() == run_file("b.sqlite").story()


def test_a_zstandard_archive_is_read_if_its_package_is_installed(parley: Callable[..., Any]) -> None:
    pytest.importorskip("zipfile_zstd")
    log = json.loads(LOG.read_text("utf-8"))
    with zipfile.ZipFile("buses.eval", "w", 93) as archive:
        archive.writestr("header.json", json.dumps(log))
        archive.writestr("samples/1.json", json.dumps(log["samples"][0]))
    assert parley("import", "inspect", "buses.eval", "--out", "a.sqlite", "--json").json["units"] == 1


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", "[]", "is not an Inspect log"),
        ("a.json", '{"eval": {"task": "t"}, "samples": []}', "contains no conversations"),
        ("a.json", '{"eval": {"task": "t"}, "samples": [{"id": 1}]}', "sample 1 cannot be read"),
        ("a.json", '{"eval": {"task": "t"}, "samples": [7]}', "sample 1 cannot be read"),
        ("a.eval", "PK", "not JSON"),
    ],
)
def test_a_file_that_is_not_a_log_gets_one_line(
    parley: Callable[..., Any], place: Path, name: str, text: str, complaint: str
) -> None:
    (place / name).write_text(text)
    result = parley("import", "inspect", name, "--out", "run.sqlite")
    assert result.status == 2
    assert complaint in result.complaints[0]
    assert not (place / "run.sqlite").exists()


def test_a_run_is_exported_to_inspect_and_imported_again(parley: Callable[..., Any], place: Path) -> None:
    run = parley("run", "injection", "--model", "sim/judge?refuse=0.3", "--responses", "2", "--kinds", "order",
                 "--out", "a.sqlite", "--quiet", "--json")  # fmt: skip
    assert run.json["done"] == 28
    result = parley("export", "a.sqlite", "--format", "inspect", "--json")
    # `inspect view` lists a JSON file only under a name like this one.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-00-00_injection_\w+\.json", result.json["to"])
    log = json.loads((place / result.json["to"]).read_text("utf-8"))
    assert (log["version"], log["status"], len(log["samples"])) == (2, "success", 28)
    parley("import", "inspect", result.json["to"], "--out", "b.sqlite")
    before, after = frames.verdicts("a.sqlite"), frames.verdicts("b.sqlite")
    known = before[before["value"].notna()]
    assert len(known) < len(before)
    assert sorted(known["value"]) == sorted(after["value"])
    assert set(known["scenario"]) == set(after["scenario"]), "clusters stay the same"
    assert set(frames.turns("a.sqlite")["text"]) == set(frames.turns("b.sqlite")["text"])
    without = [name for sample in log["samples"] for name in sample["metadata"]["without_score"]]
    assert len(without) == len(before) - len(known)


def test_a_run_is_exported_as_json_lines(parley: Callable[..., Any], place: Path) -> None:
    parley("import", "inspect", LOG, "--out", "a.sqlite")
    parley("export", "a.sqlite", "--format", "transcripts", "--to", "a.jsonl")
    lines = [json.loads(line) for line in (place / "a.jsonl").read_text("utf-8").splitlines()]
    assert [line["status"] for line in lines] == ["done", "done", "failed"]
    assert lines[0]["turns"][-1]["calls"][0]["completion_tokens"] == 3
    again = parley("export", "a.sqlite", "--format", "transcripts", "--to", "a.jsonl")
    assert again.status == 2
    assert "a.jsonl already exists" in again.complaints[0]


@pytest.fixture
def dumped(place: Path) -> dict[str, Any]:
    """What AutoGen itself dumps after a team's conversation."""

    async def talk() -> dict[str, Any]:
        client = model("sim/any")
        seats = [AssistantAgent(name, model_client=client) for name in ("ada", "ben")]
        team = RoundRobinGroupChat(seats, termination_condition=MaxMessageTermination(5))
        result = await team.run(task="Should buses be free?")
        state = await team.save_state()
        return {"state": state, "result": json.loads(result.model_dump_json()),
                "messages": [message.dump() for message in result.messages]}  # fmt: skip

    dumps = asyncio.run(talk())
    for name, dump in dumps.items():
        (place / f"{name}.json").write_text(json.dumps(dump))
    (place / "all.jsonl").write_text("\n".join(json.dumps(dump) for dump in dumps.values()))
    return dumps


@pytest.mark.parametrize("kind", ["state", "result", "messages"])
def test_an_autogen_team_is_read_however_it_was_saved(parley: Callable[..., Any], dumped: Any, kind: str) -> None:
    told = parley("import", "autogen", f"{kind}.json", "--model", "openai/gpt-4o-mini")
    assert told.status == 0, told.err
    assert "parley report" not in told.out, "there are no verdicts"
    with RunFile.open(Path(f"runs/autogen-{kind}.sqlite")) as file:
        assert headline(file)["unavailable"] == "this run has no verdicts"
    turns = frames.turns(f"runs/autogen-{kind}.sqlite")
    assert list(turns["text"]) == [message["content"] for message in dumped["messages"]]
    assert list(turns["speaker"]) == ["user", "ada", "ben", "ada", "ben"]
    assert list(turns["round"]) == [0, 1, 1, 2, 2]
    assert set(turns["model"]) == {"openai/gpt-4o-mini"}
    spent = frames.spending(f"runs/autogen-{kind}.sqlite").iloc[0]
    usages = [message["models_usage"] for message in dumped["messages"] if message["models_usage"]]
    assert spent["tokens"] == sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)


def test_many_conversations_in_one_file_are_many_units(parley: Callable[..., Any], dumped: Any) -> None:
    assert parley("import", "autogen", "all.jsonl", "--out", "a.sqlite", "--json").json["units"] == 3
    assert parley("view", "a.sqlite", "--export", "page.html").status == 0
    again = parley("import", "autogen", "all.jsonl", "--out", "a.sqlite")
    assert again.status == 2
    assert "already exists" in again.complaints[0]


@pytest.mark.parametrize("text", ["{}", "3", '[{"content": "no source"}]', '{"agent_states": {"a": {}}}'])
def test_a_file_that_autogen_did_not_write_gets_one_line(parley: Callable[..., Any], place: Path, text: str) -> None:
    (place / "a.json").write_text(text)
    result = parley("import", "autogen", "a.json")
    assert result.status == 2
    assert "conversation 1" in result.complaints[0]
