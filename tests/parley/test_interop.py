"""People who ran elsewhere bring their logs here, and people who ran here take theirs elsewhere."""

from __future__ import annotations

import asyncio
import json
import math
import re
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat

from parley import frames
from parley.agents import model
from parley.runs import RunFile
from parley.viewer.headline import headline

LOG = Path(__file__).parent / "data" / "inspect-0.3.285.json"
"""Written by Inspect AI 0.3.285 on its mock model: two questions, three scorers; cut to what is read,
and a third sample made to have failed."""


def test_an_inspect_log_becomes_a_run_that_is_shown_and_reported(
    parley: Callable[..., Any], run_file: Any, place: Path
) -> None:
    told = parley("import", "inspect", LOG, "--out", "runs/buses.sqlite", "--json")
    assert told.json == {"run": "runs/buses.sqlite", "study": "inspect-buses", "units": 3, "failed": 1}
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


def test_grades_become_numbers_and_no_answer_is_not_wrong(parley: Callable[..., Any]) -> None:
    """`match` says C for the bus and I for the sum; `unsure` says N, which Inspect counts as 0 and we as missing."""
    parley("import", "inspect", LOG, "--out", "a.sqlite")
    found = {(row.scenario, row.metric): row for row in frames.verdicts("a.sqlite").itertuples()}
    assert found["bus", "match"].value == 1.0
    assert found["2", "match"].value == 0.0
    assert found["bus", "two/length"].value == 3.0
    assert math.isnan(found["bus", "unsure"].value)
    assert found["bus", "unsure"].status == "unparsed"
    report = parley("report", "a.sqlite", "--json").json
    by_metric = {row["metric"]: row["mean"] for row in report["means"]}
    assert by_metric == {"match": 0.5, "two/warmth": 7.0, "two/length": 3.0, "unsure": None}


def test_an_eval_archive_gives_the_same_run(parley: Callable[..., Any], run_file: Any) -> None:
    log = json.loads(LOG.read_text("utf-8"))
    samples = log.pop("samples")
    with zipfile.ZipFile("buses.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(log))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    parley("import", "inspect", LOG, "--out", "a.sqlite")
    parley("import", "inspect", "buses.eval", "--out", "b.sqlite")
    assert run_file("a.sqlite").story() == run_file("b.sqlite").story()


def test_a_zstandard_archive_is_read_where_its_package_is(parley: Callable[..., Any]) -> None:
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
        ("a.json", "[]", "is no log of Inspect's"),
        ("a.json", '{"eval": {"task": "t"}, "samples": []}', "no conversation in it"),
        ("a.json", '{"eval": {"task": "t"}, "samples": [{"id": 1}]}', "sample 1 cannot be read"),
        ("a.json", '{"eval": {"task": "t"}, "samples": [7]}', "sample 1 cannot be read"),
        ("a.eval", "PK", "not JSON"),
    ],
)
def test_a_file_that_is_no_log_gets_one_line(
    parley: Callable[..., Any], place: Path, name: str, text: str, complaint: str
) -> None:
    (place / name).write_text(text)
    told = parley("import", "inspect", name, "--out", "run.sqlite")
    assert told.status == 2
    assert complaint in told.complaints[0]
    assert not (place / "run.sqlite").exists()


def test_a_run_goes_to_inspect_and_comes_back(parley: Callable[..., Any], place: Path) -> None:
    run = parley("run", "injection", "--model", "sim/judge?refuse=0.3", "--responses", "2", "--kinds", "order",
                 "--out", "a.sqlite", "--quiet", "--json")  # fmt: skip
    assert run.json["done"] == 28
    told = parley("export", "a.sqlite", "--format", "inspect", "--json")
    # `inspect view` lists a JSON file only under a name like this one.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-00-00_injection_\w+\.json", told.json["to"])
    log = json.loads((place / told.json["to"]).read_text("utf-8"))
    assert (log["version"], log["status"], len(log["samples"])) == (2, "success", 28)
    parley("import", "inspect", told.json["to"], "--out", "b.sqlite")
    before, after = frames.verdicts("a.sqlite"), frames.verdicts("b.sqlite")
    known = before[before["value"].notna()]
    assert len(known) < len(before)
    assert sorted(known["value"]) == sorted(after["value"])
    assert set(known["scenario"]) == set(after["scenario"]), "what is independent stays so"
    assert set(frames.turns("a.sqlite")["text"]) == set(frames.turns("b.sqlite")["text"])
    without = [name for sample in log["samples"] for name in sample["metadata"]["without_score"]]
    assert len(without) == len(before) - len(known)


def test_a_run_goes_out_as_json_lines(parley: Callable[..., Any], place: Path) -> None:
    parley("import", "inspect", LOG, "--out", "a.sqlite")
    parley("export", "a.sqlite", "--format", "transcripts", "--to", "a.jsonl")
    lines = [json.loads(line) for line in (place / "a.jsonl").read_text("utf-8").splitlines()]
    assert [line["status"] for line in lines] == ["done", "done", "failed"]
    assert lines[0]["turns"][-1]["calls"][0]["completion_tokens"] == 3
    again = parley("export", "a.sqlite", "--format", "transcripts", "--to", "a.jsonl")
    assert again.status == 2
    assert "is there already" in again.complaints[0]


@pytest.fixture
def dumped(place: Path) -> dict[str, Any]:
    """What AutoGen itself writes down of a team that has talked."""

    async def talk() -> dict[str, Any]:
        client = model("sim/any")
        seats = [AssistantAgent(name, model_client=client) for name in ("ada", "ben")]
        team = RoundRobinGroupChat(seats, termination_condition=MaxMessageTermination(5))
        result = await team.run(task="Should buses be free?")
        state = await team.save_state()
        return {"state": state, "result": json.loads(result.model_dump_json()),
                "messages": [message.dump() for message in result.messages]}  # fmt: skip

    found = asyncio.run(talk())
    for name, one in found.items():
        (place / f"{name}.json").write_text(json.dumps(one))
    (place / "all.jsonl").write_text("\n".join(json.dumps(one) for one in found.values()))
    return found


@pytest.mark.parametrize("kind", ["state", "result", "messages"])
def test_an_autogen_team_is_read_however_it_was_saved(parley: Callable[..., Any], dumped: Any, kind: str) -> None:
    told = parley("import", "autogen", f"{kind}.json", "--model", "openai/gpt-4o-mini")
    assert told.status == 0, told.err
    assert "parley report" not in told.out, "there are no verdicts"
    with closing(RunFile.open(Path(f"runs/autogen-{kind}.sqlite"))) as file:
        assert headline(file)["unavailable"] == "this run has no verdicts"
    turns = frames.turns(f"runs/autogen-{kind}.sqlite")
    assert list(turns["text"]) == [message["content"] for message in dumped["messages"]]
    assert list(turns["speaker"]) == ["user", "ada", "ben", "ada", "ben"]
    assert list(turns["round"]) == [0, 1, 1, 2, 2]
    assert set(turns["model"]) == {"openai/gpt-4o-mini"}
    spent = frames.spending(f"runs/autogen-{kind}.sqlite").iloc[0]
    usages = [message["models_usage"] for message in dumped["messages"] if message["models_usage"]]
    assert spent["tokens"] == sum(one["prompt_tokens"] + one["completion_tokens"] for one in usages)


def test_many_conversations_in_one_file_are_many_units(parley: Callable[..., Any], dumped: Any) -> None:
    assert parley("import", "autogen", "all.jsonl", "--out", "a.sqlite", "--json").json["units"] == 3
    assert parley("view", "a.sqlite", "--export", "page.html").status == 0
    again = parley("import", "autogen", "all.jsonl", "--out", "a.sqlite")
    assert again.status == 2
    assert "is there already" in again.complaints[0]


@pytest.mark.parametrize("text", ["{}", "3", '[{"content": "no source"}]', '{"agent_states": {"a": {}}}'])
def test_what_autogen_did_not_write_gets_one_line(parley: Callable[..., Any], place: Path, text: str) -> None:
    (place / "a.json").write_text(text)
    told = parley("import", "autogen", "a.json")
    assert told.status == 2
    assert "conversation 1" in told.complaints[0]
