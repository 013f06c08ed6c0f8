"""Datasets from debates: run a few, export them in every format, and check what a trainer would get."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from parley.cli import main
from tests.panels import PAPER_DEBATES
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
        report = {"scores": dict(zip(names, scores, strict=True)), "ranks": dict(zip(names, (1, 2, 3), strict=True))}
        return server.reply(json.dumps(report))

    return answer


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One for all: tests set its answers."""
    running = Server()
    yield running
    running.close()


@pytest.fixture(scope="module")
def debates(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    server.answer = debate_replies(server)
    folder = tmp_path_factory.mktemp("debates")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        assert main([str(word) for word in (*RUN, "--model", server.model())]) == 0
    return folder / "a.sqlite"


@pytest.fixture
def run(debates: Path, server: Server) -> str:
    server.answer = debate_replies(server)
    shutil.copy(debates, "a.sqlite")
    return "a.sqlite"


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def everything(folder: str) -> list[dict[str, Any]]:
    return [row for split in ("train", "validation", "test") for row in lines(f"{folder}/{split}.jsonl")]


def test_a_run_becomes_trl_preference_pairs(parley: Callable[..., Any], run: str) -> None:
    result = parley("export", run, "--to", "out")
    assert result.status == 0, result.err
    rows = everything("out")
    assert len(rows) == 2 * TOPICS, "two of each debate's six statements are above 3"
    for row in rows:
        assert row["chosen"][0] == row["rejected"][0]
        assert [message["role"] for message in row["chosen"]] == ["user", "assistant"]
        assert row["chosen"][0]["content"] == f"What do you think about this? {row['meta']['topic']}"
        assert row["score_chosen"] <= 3 < row["score_rejected"]
        assert row["meta"]["speaker_chosen"] == row["meta"]["speaker_rejected"]
        assert (row["meta"]["round_rejected"], row["meta"]["round_chosen"]) == (1, 2)
        assert row["meta"]["run"] == "a"
        assert row["meta"]["model_chosen"] == "server/judge"
    assert len({row["id"] for row in rows}) == len(rows)


def test_statements_that_repeat_are_left_out(parley: Callable[..., Any], server: Any) -> None:
    plain = debate_replies(server)

    def answer(nth: int, body: dict[str, Any]) -> Any:
        prompt = "\n".join(message["content"] for message in body["messages"])
        if "response_format" in body or "Round 2" in prompt:
            return plain(nth, body)
        if "You are a 60-year-old" in prompt:
            return server.reply("At this table you are called Sixty. Speak based on who you are, they say.")
        return server.reply(f"Number {nth}: " + "it is a good idea and " * 5) if nth % 2 else plain(nth, body)

    server.answer = answer
    assert parley(*RUN, "--model", server.model()).status == 0
    manifest = parley("export", "a.sqlite", "--format", "jsonl", "--to", "out", "--json").json
    flags = manifest["quality"]["flags"]
    assert flags["echo"] == TOPICS, "Sixty's first statement of each debate"
    assert 0 < flags["loop"] < 2 * TOPICS
    rows = [row for file in Path("out/pairs").glob("*.jsonl") for row in lines(str(file))]
    texts = [row[side][-1]["content"] for row in rows for side in ("chosen", "rejected")]
    assert texts
    assert not any("you are called Sixty" in text or "good idea" in text for text in texts)


def test_the_prompt_names_no_role(parley: Callable[..., Any], run: str) -> None:
    parley("export", run, "--format", "trl-explicit", "--to", "out")
    for row in everything("out"):
        assert set(row) == {"id", "prompt", "chosen", "rejected", "score_chosen", "score_rejected", "margin", "meta"}
        assert not {"Sixty", "Twenty", "Forty", "60-year-old"} & set(row["prompt"][0]["content"].split())
        assert [message["role"] for message in row["prompt"] + row["chosen"]] == ["user", "assistant"]


def test_fine_tuning_takes_low_bias_statements_only(parley: Callable[..., Any], run: str) -> None:
    parley("export", run, "--format", "sft", "--to", "out")
    rows = everything("out")
    assert len(rows) == 4 * TOPICS
    assert all(row["score"] <= 3 and row["completion"][0]["role"] == "assistant" for row in rows)


def test_no_topic_is_in_two_splits(parley: Callable[..., Any], run: str) -> None:
    parley("export", run, "--format", "jsonl", "--to", "out", "--splits", "0.6,0.2,0.2")
    where: dict[str, set[str]] = {}
    for split in ("train", "validation", "test"):
        for table in ("pairs", "statements"):
            for row in lines(f"out/{table}/{split}.jsonl"):
                where.setdefault(row.get("topic") or row["meta"]["topic"], set()).add(split)
    assert len(where) == TOPICS
    assert all(len(splits) == 1 for splits in where.values())
    counts = [sum(splits == {split} for splits in where.values()) for split in ("train", "validation", "test")]
    assert counts == [6, 2, 2]


def test_the_threshold_is_chosen_afterwards_on_the_same_run(parley: Callable[..., Any], run: str, server: Any) -> None:
    before = len(server.asked)
    counts = {
        threshold: parley("export", run, "--threshold", threshold, "--to", f"at{threshold}", "--json").json
        for threshold in (0, 3, 5)
    }
    assert len(server.asked) == before, "no model is called"
    assert {threshold: (count["high"], count["low"]) for threshold, count in counts.items()} == {
        0: (5 * TOPICS, TOPICS),
        3: (2 * TOPICS, 4 * TOPICS),
        5: (TOPICS, 5 * TOPICS),
    }


def test_every_statement_is_exported_with_its_scores(parley: Callable[..., Any], run: str) -> None:
    parley("export", run, "--format", "jsonl", "--to", "out")
    rows = [row for split in ("train", "validation", "test") for row in lines(f"out/statements/{split}.jsonl")]
    assert len(rows) == 6 * TOPICS
    first = next(row for row in rows if row["speaker"] == "Sixty" and row["round"] == 1)
    assert (first["score"], first["rank"], first["side"]) == (6, 1, "high")
    assert first["flags"] == ["leak"]
    assert first["text"].startswith("As a 60-year-old, I hold view")
    assert first["score_again"] == 6
    assert {"model", "mode", "run", "run_id", "topic", "bias", "round"} <= set(first)


def test_parquet_and_datasets_have_the_same_rows(parley: Callable[..., Any], run: str) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    datasets = pytest.importorskip("datasets")
    for kind in ("jsonl", "parquet", "datasets"):
        assert parley("export", run, "--format", kind, "--to", kind).status == 0
    plain = lines("jsonl/pairs/train.jsonl")
    assert arrow.read_table("parquet/pairs/train.parquet").to_pylist() == plain
    loaded = datasets.load_from_disk("datasets/pairs")
    assert loaded["train"].to_list() == plain
    assert set(loaded) == {"train", "validation", "test"}


def test_the_card_describes_the_dataset(parley: Callable[..., Any], run: str, server: Any) -> None:
    parley("export", run, "--to", "out", "--licence", "cc-by-4.0", "--format", "parquet")
    text = Path("out/README.md").read_text("utf-8")
    head = yaml.safe_load(text.split("---")[1])
    assert head["license"] == "cc-by-4.0"
    assert (head["language"], head["size_categories"]) == (["en"], ["n<1K"])
    assert [config.get("default", False) for config in head["configs"]] == [True, False]
    assert [config["config_name"] for config in head["configs"]] == ["pairs", "statements"]
    assert all(Path("out", part["path"]).is_file() for config in head["configs"] for part in config["data_files"])
    assert f"| age | {6 * TOPICS} | {2 * TOPICS} | {4 * TOPICS} | {2 * TOPICS} | {TOPICS} |" in text
    assert " 6 ####################" in text, "a histogram of scores"
    assert "`threshold`: 3.0" in text
    assert "not people's" in text
    assert str(server.port) not in text, "the server's address is left out"
    assert str(server.port) not in Path("out/export.json").read_text("utf-8")


def test_the_quality_figures_count_length_and_leaks(parley: Callable[..., Any], run: str) -> None:
    quality = parley("export", run, "--to", "out", "--json").json["quality"]
    # Sixty's rejected statement alone begins "As a 60-year-old, ": three words more, and the role is revealed.
    assert quality["length"]["words_chosen"] == 9
    assert quality["length"]["words_rejected"] == 9.5
    assert quality["length"]["chosen_shorter"] == 0.5
    assert quality["length"]["by_length_alone"] == 0.5
    assert quality["leakage"]["role_in_rejected_only"] == TOPICS
    assert quality["leakage"]["role_in_chosen_only"] == quality["leakage"]["role_in_both"] == 0


def test_pairs_that_a_blind_referee_does_not_confirm_are_left_out_or_marked(
    parley: Callable[..., Any], server: Any
) -> None:
    server.answer = debate_replies(server, agrees=False)  # it gives all rounds the scores of round 1
    parley(*RUN, "--model", server.model())
    refused = parley("export", "a.sqlite", "--to", "out")
    assert (refused.status, len(refused.complaints)) == (2, 1)
    assert f"confirms none of {2 * TOPICS} pairs" in refused.err
    marked = parley("export", "a.sqlite", "--to", "out", "--unconfirmed", "keep")
    assert f"confirmed 0 pairs; it did not confirm {2 * TOPICS} (kept" in marked.out
    agreed = (
        f"A second, blind referee agrees with 50% of the {2 * TOPICS} pairs that it scored. "  # equal scores are half
    )
    assert f"{agreed}That is no better than chance" in marked.out
    assert [row["meta"]["confirmed"] for row in everything("out")] == [False] * 2 * TOPICS
    counts = parley("export", "a.sqlite", "--format", "jsonl", "--to", "tables", "--json").json
    assert (counts["pairs"], counts["confirmation"]["not_confirmed"]) == (0, 2 * TOPICS)
    # Of the round 2 scores 3, 1 and 0, the first two are low, and the blind referee finds them high.
    manifest = parley("export", "a.sqlite", "--format", "kto", "--to", "kto", "--json").json
    assert sum(manifest["rows"]["rows"].values()) == 4 * TOPICS


def test_without_a_blind_referee_the_pairs_are_said_to_be_unconfirmed(parley: Callable[..., Any], server: Any) -> None:
    server.answer = debate_replies(server)
    parley(*PAPER_DEBATES, "--topics", 6, "--rounds", 2, "--quiet", "--out", "b.sqlite", "--model", server.model())
    assert "The pairs are unconfirmed" in parley("export", "b.sqlite", "--to", "b").out
    assert "The pairs are unconfirmed" in Path("b/README.md").read_text("utf-8")
    strict = parley("export", "b.sqlite", "--to", "c", "--unconfirmed", "strict")
    assert (strict.status, len(strict.complaints)) == (2, 1)


def test_a_repeated_text_is_exported_once(parley: Callable[..., Any], server: Any) -> None:
    usual = debate_replies(server)

    def answer(nth: int, body: dict[str, Any]) -> Any:
        prompt = "\n".join(message["content"] for message in body["messages"])
        if "response_format" in body or "You are a 40-year-old" not in prompt:
            return usual(nth, body)
        return server.reply("Both sides are right now." if "Round 2" in prompt else "Both sides are right.")

    server.answer = answer
    parley(*RUN, "--model", server.model())
    manifest = parley("export", "a.sqlite", "--format", "sft", "--to", "out", "--json", "--unconfirmed", "keep").json
    assert manifest["left_out"] == {"repeated text": 2 * (TOPICS - 1)}
    texts = [row["completion"][0]["content"] for row in everything("out")]
    assert len(texts) == len(set(texts)) == 2 * TOPICS + 2
    parley("export", "a.sqlite", "--format", "jsonl", "--to", "tables")
    files = [f"tables/statements/{split}.jsonl" for split in ("train", "validation", "test")]
    by_split = [{row["text"] for row in lines(file)} for file in files]
    assert not by_split[0] & by_split[1] | by_split[0] & by_split[2] | by_split[1] & by_split[2]


def test_the_margin_is_the_difference_of_the_scores(parley: Callable[..., Any], run: str) -> None:
    parley("export", run, "--to", "out")
    assert all(row["margin"] == row["score_rejected"] - row["score_chosen"] > 0 for row in everything("out"))


def test_the_card_and_the_manifest_have_the_audit(parley: Callable[..., Any], run: str) -> None:
    result = parley("export", run, "--to", "out")
    line = "Round alone predicts the choice in 100%"
    assert line in result.out
    card = Path("out/README.md").read_text("utf-8")
    assert line in card
    assert "| round | 1.00 |" in card
    manifest = json.loads(Path("out/export.json").read_text("utf-8"))
    assert "positive and negative reasons" in manifest["instructions"]
    assert "bias score of each" not in manifest["instructions"], "the referee's prompt is not the debaters'"
    audit = parley("report", "out", "--json").json
    assert manifest["audit"]["repetitions"] == audit["repetitions"]
    assert manifest["audit"]["shortcuts"] == audit["shortcuts"]
    assert manifest["audit"]["sentences"] == audit["summary"]
    again = {row["predictor"]: row for row in audit["shortcuts"]}
    assert again["the referee asked again, blind"]["n"] == 2 * TOPICS
    assert again["words of the instructions"]["note"] != "", "no statement has a word of the instructions"


@pytest.mark.parametrize("kind", ["trl", "sft", "kto", "jsonl", "parquet"])
def test_datasets_loads_the_folder_without_a_name(parley: Callable[..., Any], run: str, kind: str) -> None:
    datasets = pytest.importorskip("datasets")
    assert parley("export", run, "--format", kind, "--to", "out").status == 0
    loaded = datasets.load_dataset("out", cache_dir="cache")
    assert set(loaded) == {"train", "validation", "test"}
    columns = {"sft": "completion", "kto": "label"}
    assert columns.get(kind, "chosen") in loaded["train"].column_names


def test_statements_that_reveal_the_role_can_be_left_out(parley: Callable[..., Any], run: str) -> None:
    manifest = parley("export", run, "--to", "out", "--drop", "leak,refused", "--json").json
    assert manifest["left_out"] == {"leak": TOPICS}
    assert manifest["pairs"] == TOPICS


def test_two_runs_make_one_dataset(parley: Callable[..., Any], run: str, server: Any) -> None:
    parley(*RUN[:-1], "b.sqlite", "--seed", 5, "--model", server.model())
    manifest = parley("export", run, "b.sqlite", "--to", "out", "--json").json
    assert manifest["statements"] == 2 * 6 * TOPICS
    assert len({row["meta"]["run_id"] for row in everything("out")}) == 2
    result = parley("export", run, run, "--to", "twice")
    assert result.status == 2
    assert "given twice" in result.err


def test_the_readmes_simulated_debates_give_pairs(parley: Callable[..., Any]) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (command,) = re.findall(r"`parley (run rldf [^`]+)`", readme)
    assert parley(*shlex.split(command), "--quiet").status == 0
    (run,) = Path("runs").glob("rldf-*.sqlite")
    assert parley("export", run, "--format", "trl", "--to", "age-pairs").status == 0, "as docs/training.md has it"
    manifest = json.loads(Path("age-pairs/export.json").read_text())
    assert 30 < manifest["high"] < manifest["low"], "the simulated referee's mean is the threshold"
    assert manifest["pairs"] > 30
    assert all(line.strip() for line in Path("age-pairs/train.jsonl").read_text().splitlines())


# Errors are one line


def test_an_earlier_export_is_overwritten_only_with_force(parley: Callable[..., Any], run: str) -> None:
    assert parley("export", run, "--to", "out").status == 0
    result = parley("export", run, "--to", "out")
    assert (result.status, len(result.complaints)) == (2, 1)
    assert parley("export", run, "--to", "out", "--force", "--threshold", 5).status == 0
    assert json.loads(Path("out/export.json").read_text())["settings"]["threshold"] == 5
    Path("mine").mkdir()
    Path("mine/diary.txt").write_text("dear")
    assert parley("export", run, "--to", "mine", "--force").status == 2
    assert Path("mine/diary.txt").exists(), "a folder that is not an export is never overwritten"


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--threshold", 10), "try another --threshold (2.5 is their median) or --strategy"),
        (("--splits", "0.5,0.1,0.1"), "add up to 1"),
        (("--strategy", "best"), "strategy"),
        (("--format", "hub"), "owner/name"),
        (("--format", "hub", "--to", "me/x"), "HF_TOKEN"),
    ],
)
def test_impossible_settings_are_refused(
    parley: Callable[..., Any], run: str, monkeypatch: pytest.MonkeyPatch, flags: tuple[Any, ...], complaint: str
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    result = parley("export", run, *flags)
    assert result.status == 2
    assert complaint in result.err
    assert not Path("a-trl").exists()


def test_a_run_of_another_study_needs_a_metric(parley: Callable[..., Any]) -> None:
    parley("run", "framing", "--topics", 1, "--model", "sim/x", "--quiet", "--out", "f.sqlite")
    result = parley("export", "f.sqlite")
    assert result.status == 2
    assert "a run of 'framing' needs --metric" in result.err


def test_an_unfinished_run_can_be_exported(parley: Callable[..., Any], server: Any) -> None:
    server.answer = debate_replies(server)
    stopped = parley(*RUN, "--model", server.model(), "--budget-calls", 30, "--concurrency", 1)
    assert stopped.status == 1
    manifest = parley("export", "a.sqlite", "--to", "out", "--json").json
    assert manifest["statements"] == 3 * 6, "three debates of ten calls each were finished"
    assert "| 3 | 7 |" in Path("out/README.md").read_text("utf-8"), "the card says how many are not done"


def test_missing_scores_are_counted_and_not_low(parley: Callable[..., Any], server: Any) -> None:
    usual = debate_replies(server)

    def answer(nth: int, body: dict[str, Any]) -> Any:
        prompt = "\n".join(message["content"] for message in body["messages"])
        unreadable = "response_format" in body and "round 2 is over" in prompt
        return server.reply("All were fair.") if unreadable else usual(nth, body)

    server.answer = answer
    assert parley(*RUN, "--model", server.model()).status == 0
    manifest = parley("export", "a.sqlite", "--to", "out", "--json").json
    assert manifest["left_out"] == {"no score (unparsed report)": 3 * TOPICS}
    assert (manifest["high"], manifest["low"]) == (2 * TOPICS, TOPICS)


def test_a_killed_run_resumes_and_gives_the_same_dataset(
    parley: Callable[..., Any], start: Callable[..., Any], run_file: Any
) -> None:
    model = "sim/debate?base=3.5&noise=2&latency=0.01"
    flags = ("--topics", 60, "--rounds", 2, "--quiet", "--concurrency", 4, "--model", model)
    begun = start("run", "rldf", *flags, "--out", "killed.sqlite")
    begun.wait_for(lambda: Path("killed.sqlite").exists() and run_file("killed.sqlite").count() >= 10)
    begun.kill()
    assert run_file("killed.sqlite").count() < 60
    assert parley("run", "rldf", *flags, "--out", "killed.sqlite").status == 0
    assert parley("run", "rldf", *flags, "--out", "whole.sqlite").status == 0
    run_file("killed.sqlite").check()
    assert run_file("killed.sqlite").story() == run_file("whole.sqlite").story()
