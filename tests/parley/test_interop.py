"""Logs of Inspect and AutoGen are imported, whatever is in them, and runs are exported."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat

from parley.agents import model
from parley.imports import inspect_logs
from parley.runs import RunFile, frames
from parley.viewer.headline import headline
from tests.fuzz import seeds, workshop
from tests.parley.test_bad_input import one_line

LOG = Path(__file__).parent / "data" / "inspect-0.3.285.json"
"""Written by Inspect AI 0.3.285 on its mock model: two questions, three scorers; reduced to what is read,
with a third sample that failed."""


def test_an_inspect_log_becomes_a_run_that_is_shown_and_reported(parley, run_file):
    """`match` says C for the bus and I for the sum; `unsure` says N, which Inspect counts as 0 and we as missing."""
    told = parley("import", "inspect", LOG, "--out", "runs/buses.sqlite")
    assert (told.status, "(1 failed)" in told.out) == (0, True), "it failed in the log, not in the import"
    file = run_file("runs/buses.sqlite")
    file.check()
    assert file.one("SELECT error FROM units WHERE status = 'failed'") == "ConnectionError('the server is gone')"
    assert file.one("SELECT count(*) FROM units WHERE 1e9 < started_at AND started_at <= finished_at") == 3
    shown = parley("show", "runs/buses.sqlite", "bus/e1", "--prompts", "--json").json
    assert [(turn["speaker"], turn["text"]) for turn in shown["turns"]] == [
        ("system", "You are brief."),
        ("user", "Should buses be free? Answer yes or no."),
        ("mockllm/model", "yes"),
    ]
    call = shown["turns"][2]["calls"][0]
    assert (call["prompt_tokens"], call["completion_tokens"], len(call["prompt"])) == (12, 3, 2)
    assert shown["facets"] | {"scenario": "bus", "topic": "transport", "n": 1} == shown["facets"]
    verdicts = {(row.scenario, row.metric): row for row in frames.verdicts("runs/buses.sqlite").itertuples()}
    assert [verdicts[key].value for key in (("bus", "match"), ("2", "match"), ("bus", "two/length"))] == [1.0, 0.0, 3.0]
    assert math.isnan(verdicts["bus", "unsure"].value)
    assert verdicts["bus", "unsure"].status == "unparsed"
    report = parley("report", "runs/buses.sqlite", "--json").json
    by_metric = {row["metric"]: row["estimate"] for row in report["means"]}
    assert by_metric == {"match": 0.5, "two/warmth": 7.0, "two/length": 3.0, "unsure": None}


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, 93], ids=["deflate", "zstandard"])
def test_an_eval_archive_gives_the_same_run(parley, run_file, method):
    if method == 93:
        pytest.importorskip("zipfile_zstd")
    log = json.loads(LOG.read_text("utf-8"))
    samples = log.pop("samples")
    with zipfile.ZipFile("buses.eval", "w", method) as archive:
        archive.writestr("header.json", json.dumps(log))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    parley("import", "inspect", LOG, "--out", "a.sqlite")
    parley("import", "inspect", "buses.eval", "--out", "b.sqlite")
    assert run_file("a.sqlite").story() == run_file("b.sqlite").story()


@pytest.mark.parametrize(("kind", "ending"), [("inspect", ".json"), ("transcripts", ".jsonl")])
def test_an_exported_run_has_a_name_that_other_tools_open(parley, whole, kind, ending):
    for to, expected in (("logs", "logs"), (f"mine{ending}", ".")):
        written = Path(parley("export", whole, "--format", kind, "--to", to, "--json").json["to"])
        assert (written.suffix, str(written.parent), written.is_file()) == (ending, expected, True)
        # `inspect view` lists a JSON file only under a name like this one.
        named = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-00-00_malibu_\w+", written.stem)
        assert (named is not None) == (kind == "inspect" and to == "logs")
    one_line(parley("export", whole, "--format", kind, "--to", to), 2, f"{to} already exists")


def test_an_exported_log_has_what_the_run_has(parley, whole, run_file):
    file = run_file(whole)
    parley("export", whole, "--format", "inspect", "--to", "log.json")
    log = json.loads(Path("log.json").read_text("utf-8"))
    assert (log["version"], log["status"], log["eval"]["task"], len(log["samples"])) == (2, "success", "malibu", 9)
    assert log["results"] == {"total_samples": 9, "completed_samples": 9, "scores": []}
    ((sent, received),) = file.rows("SELECT sum(prompt_tokens), sum(completion_tokens) FROM calls")
    used = {"input_tokens": sent, "output_tokens": received, "total_tokens": sent + received}
    assert log["stats"]["model_usage"] == {"sim/judge": used}
    for sample in log["samples"]:
        said = file.rows(f"SELECT text FROM transcript WHERE unit = '{sample['id']}' ORDER BY seq")
        assert [message["content"] for message in sample["messages"]] == [text for (text,) in said]
        assert (sample["input"], sample["output"]["completion"]) == (said[0][0], said[-1][0])
        assert (sample["output"]["model"], sample["metadata"]["without_score"]) == ("sim/judge", [])


def write_log(change: Callable[[dict[str, Any]], Any]) -> None:
    table = copy.deepcopy(seeds.INSPECT)
    change(table)
    Path("log.json").write_text(json.dumps(table))
    workshop.write_eval(Path("log.eval"), table)


ODD: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "infinite tokens": (
        lambda samples: samples[0]["events"][0]["output"]["usage"].update(input_tokens=float("inf")),
        ("sample 1", "inf"),
    ),
    "no duration": (
        lambda samples: samples[0]["events"][0]["output"].update(time=float("nan")),
        ("sample 1", "nan is not a duration"),
    ),
    "an endless epoch": (lambda samples: samples[1].update(epoch=10**400), ("sample 2", "too large")),
    "messages that are none": (lambda samples: samples[1].update(messages=7), ("sample 2", "int")),
    "one id twice": (lambda samples: samples.append(samples[0]), ("same id",)),
}


def test_an_inspect_log_with_an_odd_value(parley):
    for change, words in ODD.values():
        write_log(lambda log, change=change: change(log["samples"]))
        for file in ("log.json", "log.eval"):
            result = parley("import", "inspect", file, "--out", "x.sqlite")
            one_line(result, result.status, *words)
            assert result.status in (1, 2)
            assert not Path("x.sqlite").exists()


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "is encrypted": lambda content: re.sub(b"(?s)(PK\x01\x02.{4})\x00", b"\\1\x01", content),
    "is damaged or truncated": lambda content: content.replace(b"PK\x01\x02", b"PK\x09\x09", 1),
    "cannot be unpacked": lambda content: content.replace(content[90:150], b"\xff" * 60),
}


def archived(path: Path, method: int, *members: tuple[str, bytes]) -> Path:
    """A log of one sound sample, and further members."""
    log = json.loads(LOG.read_text("utf-8"))
    sample = json.dumps(log.pop("samples")[0])
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
        for name, content in {"header.json": json.dumps(log), "samples/1.json": sample, **dict(members)}.items():
            archive.writestr(name, content)
    return path


def declare(path: Path, name: str, size: int) -> None:
    """Let the archive say that a member is this large, in its directory and before its data."""
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = data.index(mark)
        while data[start + (46 if mark[2] == 1 else 30) :][: len(name)] != name.encode():
            start = data.index(mark, start + 4)
        struct.pack_into("<I", data, start + at, size)
    path.write_bytes(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, 93], ids=["deflate", "zstandard"])
def test_an_archive_that_is_broken_or_unpacks_into_much_is_refused(parley, place, monkeypatch, method):
    """Also if it states a small size for what is large."""
    if method == 93:
        pytest.importorskip("zipfile_zstd")
    monkeypatch.setattr(inspect_logs, "MAX_MEMBER", 2**20)
    for member in ("header.json", "samples/2.json"):
        path = archived(place / "bomb.eval", method, (member, b" " * (3 * 2**20)))
        said = f"{path}: {member} has 3 MiB unpacked, more than the 1 MiB that are read"
        one_line(parley("import", "inspect", path), 2, said)
        declare(path, member, 1000)
        one_line(parley("import", "inspect", path), 2, f"{path}: {member} cannot be unpacked (")
    for words, broken in BROKEN.items() if method != 93 else ():
        write_log(lambda log: None)
        Path("log.eval").write_bytes(broken(Path("log.eval").read_bytes()))
        one_line(parley("import", "inspect", "log.eval"), 2, "log.eval", words)
    assert not list(place.glob("**/*.sqlite"))


def test_logs_that_are_too_much_are_refused_and_honest_ones_read(parley, place, monkeypatch):
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):  # these unpack without a limit on one step
        path = archived(place / "log.eval", method, ("samples/2.json", b" " * 2**20))
        one_line(parley("import", "inspect", path), 2, "is compressed in a way that Inspect does not use")
    log = json.loads(LOG.read_text("utf-8"))
    sample = log["samples"][0]
    monkeypatch.setattr(inspect_logs, "MAX_UNPACKED", 2 * 2**20)
    many = [(f"samples/{n}.json", json.dumps({**sample, "id": n}).encode() + b" " * 2**20) for n in range(2, 11)]
    path = archived(place / "bomb.eval", zipfile.ZIP_DEFLATED, *many)
    one_line(parley("import", "inspect", path), 2, f"{path} unpacks to more than 2 MiB and 100 times its size")
    large = {**sample, "messages": [{"role": "user", "content": os.urandom(2**20).hex()} for _ in range(3)]}
    honest = archived(place / "log.eval", zipfile.ZIP_DEFLATED, ("samples/1.json", json.dumps(large).encode()))
    assert parley("import", "inspect", honest, "--out", "a.sqlite").status == 0
    # Inspect stores the messages of prompts once, and prompts as ranges of them.
    reply = {"message": {"role": "assistant", "content": "y", "id": "z"}}
    event = {"event": "model", "output": {"choices": [reply]}, "input_refs": [[0, 10_000]] * 10_000}
    pool = [{"role": "user", "content": "x"}] * 10_000
    prompts = {**sample, "events": [event], "events_data": {"messages": pool}}
    (place / "log.json").write_text(json.dumps({**log, "samples": [prompts]}))
    one_line(parley("import", "inspect", "log.json"), 2, "has prompts of more than 500,000 messages")


@pytest.fixture
def dumped(place):
    """What AutoGen itself dumps after a team's conversation."""

    async def talk():
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


def test_an_autogen_team_is_read_however_it_was_saved(parley, dumped):
    for kind in ("state", "result", "messages"):
        told = parley("import", "autogen", f"{kind}.json", "--model", "openai/gpt-4o-mini")
        assert told.status == 0, told.err
        assert "parley report" not in told.out, "there are no verdicts"
        path = f"runs/autogen-{kind}.sqlite"
        with RunFile.open(Path(path)) as file:
            assert headline(file)["unavailable"] == "this run has no verdicts"
        turns = frames.turns(path)
        assert list(turns["text"]) == [message["content"] for message in dumped["messages"]]
        assert list(turns["speaker"]) == ["user", "ada", "ben", "ada", "ben"]
        assert list(turns["round"]) == [0, 1, 1, 2, 2]
        assert set(turns["model"]) == {"openai/gpt-4o-mini"}
        usages = [message["models_usage"] for message in dumped["messages"] if message["models_usage"]]
        spent = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)
        assert frames.spending(path).iloc[0]["tokens"] == spent
    said = "has no verdicts, so there is nothing to count: parley show "
    one_line(parley("report", path), 2, said)
    assert parley("import", "autogen", "all.jsonl", "--out", "a.sqlite", "--json").json["units"] == 3
    assert parley("view", "a.sqlite", "--export", "page.html").status == 0
    one_line(parley("import", "autogen", "all.jsonl", "--out", "a.sqlite"), 2, "already exists")
    infinite = copy.deepcopy(seeds.AUTOGEN)
    infinite["messages"][1]["models_usage"]["prompt_tokens"] = float("inf")  # type: ignore[index]
    Path("team.json").write_text(json.dumps(infinite))
    one_line(parley("import", "autogen", "team.json"), 2, "team.json, conversation 1", "inf")


def test_what_is_no_text_in_autogens_messages_is_named(parley, place):
    """Tool calls, their results, images, and the objects of structured messages."""
    call, result = {"id": "1", "name": "look", "arguments": "{}"}, {"call_id": "1", "name": "look", "content": "12"}
    parts = [call, result, {**result, "name": ""}, {"data": "iVBORw0"}, {"x": 1}, "Yes."]
    Path("log.json").write_text(json.dumps([{"source": "ada", "content": content} for content in (parts, {"x": "é"})]))
    assert parley("import", "autogen", "log.json", "--out", "a.sqlite").status == 0
    mixed, structured = frames.turns("a.sqlite")["text"]
    assert mixed.split("\n") == [
        "[calls look({})]",
        "[result look: 12]",
        "[result 1: 12]",
        "[image]",
        '{"x": 1}',
        "Yes.",
    ]
    assert structured == '{"x": "é"}'
