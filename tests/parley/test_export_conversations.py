"""Datasets from conversations of any study: a debate or critique of one's own, STARDTOX, people's labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from parley.judging import Unit
from parley.runs import RunFile
from parley.runs.notes import Answer, Item, NotesFile
from tests.own_study import STUDY
from tests.panels import RUN_PANEL

OWN = (
    STUDY
    + '''
class Numbered(Study):
    def prompts(self):
        return {"judgement": "Say what you think.", "open": "Score it."}  # only the first is sent to a writer

    def plan(self):
        return (Unit(f"u{n}", {"number": n}) for n in range(12))

class Talk(Numbered):
    """Ada is kinder than Ben, and both are kinder in round 2."""

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

class Revised(Numbered):
    """The first draft is poor, its revision is not."""

    async def run(self, unit, models):
        drafts = []
        def length(task, draft):
            drafts.append(draft)
            return Assessment(score=90 if len(drafts) > 1 else 10, reason="-")
        loop = Critique(Persona("Writer", "You write."), {"worth": length}, criteria={"worth": ">= 50"},
                        model=self.config.model, models=models)
        transcript = await loop.converse(f"Describe {unit.id}.")
        worth = [10.0, 90.0]
        return Outcome(transcript, tuple(
            Verdict.from_turn(turn, "worth", value=worth[turn.round]) for turn in transcript.spoken("generator")
        ))
'''
)


def rows(folder: str) -> list[dict[str, Any]]:
    files = sorted(Path(folder).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def last(messages: list[dict[str, str]]) -> str:
    return messages[-1]["content"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run of one of these studies, copied here."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        for study in ("Talk", "Revised"):
            assert main(["run", f"own.py:{study}", "--quiet", "--out", f"{study}.sqlite"]) == 0

    def copy(study):
        Path("own.sqlite").write_bytes((folder / f"{study}.sqlite").read_bytes())
        return "own.sqlite"

    return copy


def texts_of(run: str) -> dict[tuple[str, int, str], str]:
    with RunFile.open(Path(run)) as file:
        listed = file.rows("SELECT unit, round, speaker, text FROM transcript")[1]
        return {(unit, round, speaker): text.strip() for unit, round, speaker, text in listed}


def test_a_debate_of_your_own(parley, own):
    run = own("Talk")
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


@pytest.mark.parametrize(
    ("study", "what"), [("own", "has no finished conversation yet"), ("rldf", "has no finished debate yet")]
)
def test_a_run_that_has_only_begun(parley, study, what):
    info = {"study": study, "config": {}, "models": [], "plan": "", "units": 1, "versions": {}}
    RunFile.create(Path("begun.sqlite"), info, {}, [Unit("u0", {})]).close()
    result = parley("export", "begun.sqlite", "--to", "out", "--metric", "bias", "--threshold", 3)
    assert result.status == 2
    assert f"begun.sqlite {what}" in result.err


@pytest.mark.parametrize(("kind", "count"), [("trl", 12), ("sft", 12), ("kto", 24)])
def test_a_draft_and_its_revision(parley, own, kind, count):
    datasets = pytest.importorskip("datasets")
    run = own("Revised")
    flags = ("--metric", "worth", "--threshold", 50, "--better", "high")
    result = parley("export", run, "--format", kind, "--to", "out", *flags)
    assert result.status == 0, result.err
    loaded = datasets.load_dataset("out", cache_dir="cache")
    assert sum(len(part) for part in loaded.values()) == count
    prompts = [{json.dumps(row.get("prompt") or row["chosen"][0]) for row in part} for part in loaded.values()]
    assert sum(map(len, prompts)) == len(set.union(*prompts)) == 12, "no prompt is in two splits"
    for row in rows("out"):
        if kind == "trl":
            assert (row["meta"]["round_rejected"], row["meta"]["round_chosen"]) == (0, 1)
        elif kind == "kto":
            assert row["label"] == (row["score"] == 90)


def test_stardtox_before_and_after(parley):
    prompt = [{"id": f"p{n}", "prompt": f"The referee said {n}", "toxicity": 0.9} for n in range(8)]
    Path("rtp.jsonl").write_text("\n".join(map(json.dumps, prompt)))
    Path("scorer.py").write_text(
        "from parley.judging.toxicity import Toxicity\n"
        "class Rude:\n"
        "    name, version = 'rude', '1'\n"
        "    async def score(self, texts):\n"
        "        rude = ('idiot', 'stupid', 'moron')\n"
        "        return [Toxicity(0.9 if any(word in text for word in rude) else 0.01) for text in texts]\n"
        "    async def close(self):\n"
        "        pass\n"
    )
    flags = ("--sets", "high", "--prompts", 8, "--completions", 1, "--method", "stardtox", "--scorer", "scorer.py:Rude")
    model = "sim/m?toxic=1&heeds=1&base=90&noise=1"
    assert parley("run", "stardtox", "--data", "rtp.jsonl", *flags, "--model", model, "--out", "s.sqlite").status == 0
    result = parley("export", "s.sqlite", "--to", "out")
    assert result.status == 0, result.err
    assert "(threshold 0.1)" in result.out
    pairs = rows("out")
    assert 1 <= len(pairs) <= 3, "a simulated model knows three insults, and repetitions are left out"
    for pair in pairs:
        assert (pair["score_rejected"], pair["score_chosen"]) == (0.9, 0.01)
        assert pair["meta"]["round_chosen"] > pair["meta"]["round_rejected"] == 0
        assert "The referee said" in pair["chosen"][0]["content"]


def test_what_people_preferred_in_the_viewer(parley):
    flags = ("--phases", 2, "--identities", "gender", "--per-base", 1, "--quiet", "--model", "sim/judge")
    assert parley(*RUN_PANEL, *flags, "--out", "m.sqlite").status == 0
    refused = parley("export", "m.sqlite", "--labels")
    assert (refused.status, len(refused.complaints)) == (2, 1)
    assert "has no labels 'preferred' by people" in refused.err
    with RunFile.open(Path("m.sqlite")) as file:
        units = [row[0] for row in file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position")[1]]
        one_of_each = {unit.split("/")[1] if "/" in unit else unit: unit for unit in units}
    notes = NotesFile(Path("m.sqlite"))
    labelled = list(one_of_each.values())
    set_id = notes.add_draw("random", 0, [Item(unit, unit, 1.0, n) for n, unit in enumerate(labelled)], {})
    for unit in labelled:
        for rater, choice in (("Ann", "A"), ("Bo", "A"), ("Cy", "B")):
            notes.add_labels(set_id, unit, rater, [Answer("", "preferred", None, None, choice)])
    result = parley("export", "m.sqlite", "--labels", "--to", "out")
    assert result.status == 0, result.err
    pairs = rows("out")
    assert pairs
    for pair in pairs:
        assert (pair["meta"]["speaker_chosen"], pair["meta"]["speaker_rejected"]) == ("A", "B")
        assert pair["score_chosen"] == pytest.approx(2 / 3)
        assert last(pair["chosen"]) != last(pair["rejected"])
        assert pair["chosen"][0]["content"], "the prompt is the scenario"
    assert "people's labels" in Path("out/README.md").read_text("utf-8")
