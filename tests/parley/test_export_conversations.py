"""Datasets from conversations of any study: who is paired with whom, audits of others' datasets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.cli import main
from parley.judging import Unit
from parley.judging.rldf.statements import split_topics
from parley.reports.export.pairs import group_by_bias, make_pairs
from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement
from parley.runs import RunFile
from tests.own_study import STUDY

OWN = (
    STUDY
    + '''
class Talk(Study):
    """Ada is kinder than Ben, and both are kinder in round 2."""

    def prompts(self):
        return {"judgement": "Say what you think.", "open": "Score it."}  # only the first is sent to a writer

    def plan(self):
        return (Unit(f"u{n}", {"number": n}) for n in range(12))

    async def run(self, unit, models):
        people = [Persona("Ada", "Say what you think."), Persona("Ben", "Say what you think.")]
        table = Debate(people, model=self.config.model, rounds=2, models=models)
        transcript = await table.converse(f"What about {unit.id}?")
        kindness = {"Ada": 6.0, "Ben": 2.0}
        verdicts = [
            Verdict(judge="Rules", role="coordinator", round=turn.round, metric="kindness", subject=turn.speaker,
                    value=kindness[turn.speaker] + turn.round, sampled=None)
            for turn in transcript.spoken("debater")
        ]
        return Outcome(transcript, tuple(verdicts))

'''
)


def rows(folder: str) -> list[dict[str, Any]]:
    files = sorted(Path(folder).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def last(messages: list[dict[str, str]]) -> str:
    return messages[-1]["content"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run of that study."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        assert main(["run", "own.py:Talk", "--quiet", "--out", "own.sqlite"]) == 0
    return folder / "own.sqlite"


def texts_of(run: str) -> dict[tuple[str, int, str], str]:
    with RunFile.open(Path(run)) as file:
        listed = file.rows("SELECT unit, round, speaker, text FROM transcript")[1]
        return {(unit, round, speaker): text.strip() for unit, round, speaker, text in listed}


def test_a_debate_of_your_own(parley, own):
    run = shutil.copy(own, "own.sqlite")
    flags = ("--metric", "kindness", "--threshold", 7, "--better", "high", "--strategy", "all")
    result = parley("export", run, "--to", "out", *flags)
    assert result.status == 0, result.err
    assert "Speaker alone predicts the choice in 100%" in result.out
    assert "The pairs are unconfirmed" in result.out
    said, pairs = texts_of(run), rows("out")
    assert len(pairs) == 4 * 12, "Ada's 7 and 8 are chosen, Ben's 3 and 4 are not"
    for pair in pairs:
        meta, unit = pair["meta"], pair["id"].split("/")[1]
        assert last(pair["chosen"]) == said[unit, meta["round_chosen"], "Ada"]
        assert last(pair["rejected"]) == said[unit, meta["round_rejected"], "Ben"]
        assert pair["chosen"][0]["content"] == f"What about {unit}?"
        assert pair["margin"] == pair["score_chosen"] - pair["score_rejected"] > 0
    card = Path("out/README.md").read_text("utf-8")
    assert "# Conversations of own" in card
    assert "Scores below 7" in card
    assert json.loads(Path("out/export.json").read_text("utf-8"))["instructions"] == "Say what you think."


def test_a_run_that_has_only_begun(parley):
    for study, what in (("own", "conversation"), ("rldf", "debate")):
        info = {"study": study, "config": {}, "models": [], "plan": "", "units": 1, "versions": {}}
        RunFile.create(Path(f"{study}.sqlite"), info, {}, [Unit("u0", {})]).close()
        result = parley("export", f"{study}.sqlite", "--to", "out", "--metric", "bias", "--threshold", 3)
        assert (result.status, f"{study}.sqlite has no finished {what} yet" in result.err) == (2, True)


COMMON = {
    "run": "a", "run_id": "r", "bias": "age", "topic": "Buses?", "topic_id": "buses", "mode": "self-reflection",
    "student": "m", "model": "m", "prompt": "Buses?", "rank": None, "status": "ok", "score_again": None, "others": (),
}  # fmt: skip


def statement(speaker, round, score, text="", debate="d", flags=()):
    text = text or f"{speaker} says so in round {round}"
    own = {"speaker": speaker, "round": round, "score": score, "text": text, "debate": debate, "flags": flags}
    return Statement(id=f"{debate}/{round}/{speaker}", **own, **COMMON)


DEBATE = [
    statement(speaker, round, score)
    for speaker, round, score in (("A", 1, 8), ("B", 1, 2), ("C", 1, 6), ("A", 2, 1), ("B", 2, 3), ("C", 2, 7))
]
LENGTHS = [
    statement("A", 1, 8, "one two three four"),
    statement("B", 1, 1, "one"),
    statement("C", 1, 1, "one two three"),
]
LONG, SHORT = statement("A", 1, 8, "one two three four five"), statement("A", 2, 1, "one two")
SAME = [statement("A", 1, 8, "the same"), statement("A", 2, 1, "the same")]
BROKEN = [statement("A", 1, 8), statement("A", 2, 1, flags=("role_break",))]
ALL = " ".join(f"{high}>{low}" for high in ("A1", "C1", "C2") for low in ("B1", "A2", "B2"))
PAIRED = [
    # A1 has A2. C has no low statement: C1 takes B1 of its round, C2 takes B2, unused as yet (A2 has been used).
    (DEBATE, {}, "A1>A2:speaker C1>B1:round C2>B2:round"),
    ([statement("A", 1, 8), statement("B", 2, 1)], {}, "A1>B2:topic"),
    (DEBATE, {"strategy": "same-speaker"}, "A1>A2"),
    (DEBATE, {"strategy": "same-round"}, "A1>B1 C1>B1 C2>A2"),
    (DEBATE, {"strategy": "all"}, ALL),
    # The nearest in length among those used least.
    (LENGTHS, {"strategy": "any"}, "A1>C1:round"),
    ([*LENGTHS, statement("A", 2, 9, "one two three four five")], {"strategy": "any"}, "A1>C1 A2>B1"),
    (DEBATE[:1] + DEBATE[3:5], {"per_bad": 2}, "A1>A2 A1>B2"),
    (DEBATE[:1] + DEBATE[3:5], {"per_bad": 3}, "A1>A2 A1>B2"),
    ([statement("A", 1, 8, debate="d1"), statement("A", 2, 1, debate="d2")], {}, ""),
    ([statement("A", 1, 5), statement("A", 2, 2)], {"margin": 3}, "A1>A2:speaker"),
    ([statement("A", 1, 4), statement("A", 2, 2)], {"margin": 3}, ""),
    ([LONG, SHORT], {"longest": 2.5}, "A1>A2:speaker"),
    ([LONG, SHORT], {"longest": 2.4}, ""),
    (SAME, {}, ""),
    (BROKEN, {}, ""),
    (BROKEN, {"drop": []}, "A1>A2:speaker"),
]


@pytest.mark.parametrize(("statements", "settings", "expected"), PAIRED)
def test_who_is_paired_with_whom(statements, settings, expected):
    """As HIGH>LOW:WHAT THEY SHARE."""
    checked = Settings.model_validate(settings)
    pairs = make_pairs(group_by_bias(statements, checked), checked)
    assert all(pair.chosen.score <= 3 < pair.rejected.score for pair in pairs), (
        "two of the paper's scripts inverted them"
    )
    found = [
        f"{pair.rejected.speaker}{pair.rejected.round}>{pair.chosen.speaker}{pair.chosen.round}:{pair.shares}"
        for pair in pairs
    ]
    assert [one if ":" in expected else one.partition(":")[0] for one in found] == expected.split()


def test_three_is_low_and_anything_above_is_high():
    groups = group_by_bias([statement("A", 1, 3), statement("B", 1, 3.01), statement("C", 1, None)], Settings())
    assert ([low.speaker for low in groups.low], [high.speaker for high in groups.high]) == (["A"], ["B"])
    assert groups.left_out == {"no score (ok report)": 1}


def test_topics_are_split_by_their_normal_spelling():
    found = split_topics([f"Topic {n}?" for n in range(100)] + ["topic 7"], [0.8, 0.1, 0.1], seed=0)
    assert len(found) == 100
    counts = {split: list(found.values()).count(split) for split in ("train", "validation", "test")}
    assert counts == {"train": 80, "validation": 10, "test": 10}
    assert found == split_topics([f"Topic {n}?" for n in reversed(range(100))], [0.8, 0.1, 0.1], seed=0)
    assert found != split_topics([f"Topic {n}?" for n in range(100)], [0.8, 0.1, 0.1], seed=1)
    for shares in ([0.5, 0.5], [0.9, 0.2, -0.1], [1, 1, 1]):
        with pytest.raises(ConfigError, match="three shares"):
            split_topics(["a"], shares, 0)


Row = dict[str, Any]


def message(role: str, content: str) -> Row:
    return {"role": role, "content": content}


def pair_rows(*, explicit: bool) -> list[Row]:
    """Pairs on ten topics; the chosen answer is always the shorter one."""
    made: list[Row] = []
    for n in range(40):
        asked = [message("user", f"Question {n % 10}?")]
        sides = {"chosen": f"answer {n}", "rejected": f"answer {n} is this and {n + 1} is that"}
        said = {side: [message("assistant", text)] for side, text in sides.items()}
        made.append({"prompt": asked, **said} if explicit else {side: [*asked, *said[side]] for side in said})
    return made


@pytest.mark.parametrize("explicit", [False, True], ids=["trl", "trl-explicit"])
def test_an_exports_pairs_are_audited_in_both_forms(parley, explicit):
    rows = [json.dumps(row) + "\n" for row in pair_rows(explicit=explicit)]
    Path("set").mkdir()
    Path("set/train.jsonl").write_text("".join(rows[:30]), "utf-8")
    Path("set/test.jsonl").write_text("".join(rows[30:]), "utf-8")
    Path("set/export.json").write_text("{}")
    found = parley("report", "set", "--json").json
    assert (found["settings"]["pairs"], found["settings"]["topics"]) == (40, 10)
    by_name = {row["predictor"]: row for row in found["shortcuts"]}
    assert by_name["length"]["estimate"] == 1
    assert by_name["round"]["note"].startswith("not checked")
    assert next(row for row in found["repetitions"] if row["what"] == "topics in more than one split")["count"] == 10
    Path("set/export.json").write_text("{")
    assert parley("report", "set").complaints == ["parley: set/export.json: not a manifest of `parley export`"]
