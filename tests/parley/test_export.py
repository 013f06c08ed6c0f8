"""Datasets from debates: run a few, export them in every format, and check what a trainer would get."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import parley as library
from parley.agents import ConfigError
from parley.cli import main
from tests.panels import PAPER_DEBATES
from tests.parley.test_bad_input import one_line
from tests.servers import Server

TOPICS = 10
RUN = (*PAPER_DEBATES, "--topics", TOPICS, "--rounds", 2, "--rereferee", 1, "--quiet", "--out", "a.sqlite")


def debate_replies(server: Any, agrees: bool = True) -> Callable[[int, dict[str, Any]], Any]:
    """Debaters give different statements; round 1 is scored 6, 4, 2 and round 2 is scored 3, 1, 0.

    The blind referee recognises the statements of round 2 by the word "now", or (`agrees` is false) does not.
    """

    def answer(nth: int, body: dict[str, Any]) -> Any:
        prompt = "\n".join(message["content"] for message in body["messages"])
        if "response_format" not in body:
            opening = "As a 60-year-old, " if "You are a 60-year-old" in prompt and "Round 2" not in prompt else ""
            later = " now" if "Round 2" in prompt else ""
            return server.reply(f"{opening}I{later} hold view number {nth} of this matter.")
        late = "round 2 is over" in prompt or (agrees and "Round" not in prompt and "I now hold" in prompt)
        scores = (3, 1, 0) if late else (6, 4, 2)
        names = ("Sixty", "Twenty", "Forty")
        report = {"scores": dict(zip(names, scores, strict=True))}
        return server.reply(json.dumps(report))

    return answer


@pytest.fixture(scope="module")
def server():
    """One for all: tests set its answers."""
    running = Server()
    yield running
    running.close()


@pytest.fixture(scope="module")
def debates(server, tmp_path_factory):
    server.answer = debate_replies(server)
    folder = tmp_path_factory.mktemp("debates")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        assert main([str(word) for word in (*RUN, "--model", server.model())]) == 0
    return folder / "a.sqlite"


@pytest.fixture
def run(debates, server):
    server.answer = debate_replies(server)
    shutil.copy(debates, "a.sqlite")
    return "a.sqlite"


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def everything(folder: str) -> list[dict[str, Any]]:
    return [row for split in ("train", "validation", "test") for row in lines(f"{folder}/{split}.jsonl")]


@pytest.fixture(scope="module")
def exported(debates, server):
    """The run in every format, and what the command printed: FORMAT and FORMAT.out; no model is called."""
    folder, before = debates.parent, len(server.asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        for kind in ("trl", "trl-explicit", "sft", "kto", "jsonl"):
            with (folder / f"{kind}.out").open("w") as out, redirect_stdout(out):
                splits = ["--splits", "0.6,0.2,0.2"] if kind == "jsonl" else []
                flags = ["--format", kind, "--to", kind, "--licence", "cc-by-4.0", *splits]
                assert main(["export", "a.sqlite", *flags]) == 0
    assert len(server.asked) == before
    return folder


def test_the_lines_of_the_card_load_the_tables_whose_columns_it_describes(exported, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.chdir(exported)
    trains: dict[str, list[Any]] = {}
    for kind in ("trl", "sft", "kto", "jsonl"):
        card = Path(kind, "README.md").read_text("utf-8")
        (code,) = re.findall(r"```python\n(.*?)```", card, re.S)
        loaded: dict[str, Any] = {}
        exec(code, {}, loaded)
        del loaded[code.split()[3]]
        assert all(
            f"datasets.{line.partition(' = ')[2]}" in (exported / f"{kind}.out").read_text()
            for line in code.splitlines()[2:]
        )
        examples = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", card, re.S)]
        described = re.findall(r"^\| `([^`]+)` \| (.+) \| .+ \|$", card, re.M)
        for table, example in zip(loaded.values(), examples, strict=True):
            assert set(table) == {"train", "validation", "test"}
            assert next(table[split][0]["id"] for split in table if len(table[split])) == example["id"]
            for column in table["train"].column_names:
                inner = example[column] if column == "meta" else {"": None}
                assert all(f"{column}.{name}".rstrip(".") in dict(described) for name in inner), column
        trains[kind] = next(iter(loaded.values()))["train"].to_list()
    for flags in ((), ("--threshold", "1", "--force")):
        assert main(["export", "a.sqlite", "--to", "twice", *flags]) == 0
        trains["twice"] = datasets.load_dataset("./twice")["train"].to_list()
    assert trains["twice"] != trains["trl"], "written again, and not loaded from the package's cache"
    assert dict(described)["meta.round_chosen"] == "whole number"


def test_the_card_and_the_manifest_describe_the_dataset(exported, server, parley):
    card = (exported / "trl/README.md").read_text("utf-8")
    manifest = json.loads((exported / "trl/export.json").read_text("utf-8"))
    for written in (card, json.dumps(manifest)):
        assert str(server.port) not in written, "the server's address is left out"
    # Sixty's rejected statement alone begins "As a 60-year-old, ": three words more, and the role is revealed.
    length, leakage = manifest["quality"]["length"], manifest["quality"]["leakage"]
    assert (length["words_chosen"], length["words_rejected"]) == (9, 9.5)
    assert (length["chosen_shorter"], length["by_length_alone"]) == (0.5, 0.5)
    assert [leakage[f"role_in_{where}"] for where in ("rejected_only", "chosen_only", "both")] == [TOPICS, 0, 0]
    line = "Round alone predicts the choice in 100%"
    assert line in (exported / "trl.out").read_text()
    assert line in card
    assert re.search(r"^\| round \| 1\.00 \| .+ \| 20 \| 10 \|$", card, re.M), "topics are whole numbers"
    assert "positive and negative reasons" in manifest["instructions"]
    assert "bias score of each" not in manifest["instructions"], "the referee's prompt is not the debaters'"
    audit = parley("report", exported / "trl", "--json").json
    for table, part in (("repetitions", "repetitions"), ("shortcuts", "shortcuts"), ("sentences", "summary")):
        assert manifest["audit"][table] == audit[part]
    again = {row["predictor"]: row for row in audit["shortcuts"]}
    assert again["the referee asked again, blind"]["n"] == 2 * TOPICS
    assert again["words of the instructions"]["n"] == 2 * TOPICS


def test_settings_of_an_export_are_chosen_afterwards(parley, run, server):
    before = len(server.asked)
    manifest = parley("export", run, "--to", "out", "--drop", "leak,refused", "--json").json
    assert (manifest["left_out"], manifest["pairs"]) == ({"leak": TOPICS}, TOPICS)
    assert len(server.asked) == before, "no model is called"
    one_line(parley("export", run, "--threshold", 10), 2, "try another --threshold (2.5 is their median) or --strategy")
    one_line(parley("export", run, "--to", "out"), 2, "out")
    assert parley("export", run, "--to", "out", "--force", "--threshold", 5).status == 0
    assert json.loads(Path("out/export.json").read_text())["settings"]["threshold"] == 5
    Path("mine").mkdir()
    Path("mine/diary.txt").write_text("dear")
    assert parley("export", run, "--to", "mine", "--force").status == 2
    assert Path("mine/diary.txt").exists(), "a folder that is not an export is never overwritten"
    parley(*RUN[:-1], "b.sqlite", "--seed", 5, "--model", server.model())
    both = parley("export", run, "b.sqlite", "--to", "both", "--json").json
    assert both["statements"] == 2 * 6 * TOPICS
    assert len({row["meta"]["run_id"] for row in everything("both")}) == 2


def test_pairs_that_a_blind_referee_does_not_confirm_are_left_out_or_marked(parley, server):
    server.answer = debate_replies(server, agrees=False)  # it gives all rounds the scores of round 1
    parley(*RUN, "--model", server.model())
    one_line(parley("export", "a.sqlite", "--to", "out"), 2, f"confirms none of {2 * TOPICS} pairs")
    marked = parley("export", "a.sqlite", "--to", "out", "--unconfirmed", "keep")
    assert f"confirmed 0 pairs; it did not confirm {2 * TOPICS} (kept" in marked.out
    # equal scores count as half
    agreed = f"A second, blind referee agrees with 50% (35% to 65%) of the {2 * TOPICS} pairs that it scored. "
    assert f"{agreed}That is no better than chance" in marked.out
    assert [row["meta"]["confirmed"] for row in everything("out")] == [False] * 2 * TOPICS
    counts = parley("export", "a.sqlite", "--format", "jsonl", "--to", "tables", "--json").json
    assert (counts["pairs"], counts["confirmation"]["not_confirmed"]) == (0, 2 * TOPICS)
    # Of the round 2 scores 3, 1 and 0, the first two are low, and the blind referee finds them high.
    manifest = parley("export", "a.sqlite", "--format", "kto", "--to", "kto", "--json").json
    assert sum(manifest["rows"]["rows"].values()) == 4 * TOPICS


def test_an_unfinished_run_is_exported_and_missing_scores_are_not_low(parley, server):
    usual = debate_replies(server)

    def answer(nth, body):
        prompt = "\n".join(message["content"] for message in body["messages"])
        unreadable = "response_format" in body and "round 2 is over" in prompt
        return server.reply("All were fair.") if unreadable else usual(nth, body)

    server.answer = answer
    assert parley(*RUN, "--model", server.model(), "--budget-calls", 30, "--concurrency", 1).status == 1
    manifest = parley("export", "a.sqlite", "--to", "out", "--json").json
    assert manifest["statements"] == 2 * 6, "two debates were finished, with reports that were asked for again"
    assert "| 2 | 8 |" in Path("out/README.md").read_text("utf-8"), "the card says how many are not done"
    assert manifest["left_out"] == {"no score (unparsed report)": 2 * 3}
    assert (manifest["high"], manifest["low"]) == (2 * 2, 2)


def test_a_run_goes_from_topics_to_a_dataset(parley: Any, place: Path) -> None:
    run = ("run", "rldf", "--model", "sim/debate", "--topics", 4, "--rounds", 2, "--quiet")
    done = parley(*run, "--out", "runs/rldf-a.sqlite")
    assert done.status == 0, done.err
    assert done.out.startswith("4 of 4 units done: ")
    done = parley("export", "runs/rldf-a.sqlite", "--to", "pairs")
    *_, rows, written, load = done.out.splitlines()
    splits = json.loads(Path("pairs/export.json").read_text("utf-8"))["rows"]["rows"]
    assert rows == "rows: " + ", ".join(f"{split} {count}" for split, count in splits.items())
    assert written == "written to pairs; its README.md describes the columns and shows a row"
    assert load == "load it:  datasets.load_dataset('./pairs')"
    assert parley("export", "runs/rldf-a.sqlite", "--to", "pairs").complaints == [
        "parley: pairs already exists; choose another name with --to, or overwrite it with --force"
    ]
    datasets = pytest.importorskip("datasets")
    (file,) = (place / "runs").glob("rldf-*.sqlite")
    loaded = library.dataset(file)
    assert isinstance(loaded, datasets.DatasetDict)
    stored = [json.loads(line) for line in (place / "pairs" / "train.jsonl").read_text("utf-8").splitlines()]
    assert [row["chosen"] for row in loaded["train"]] == [row["chosen"] for row in stored]
    with pytest.raises(ConfigError, match="dataset: threshhold"):
        library.dataset(file, threshhold=3)
