"""`parley run toxicity --to FILE`: thresholds from labelled texts, and the calibration that is shipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.agents import Models
from parley.judging.toxicity import find_scorer
from parley.judging.toxicity.calibration import load_calibration

RTP = Path(__file__).parents[3] / "shared" / "data" / "rtp" / "rtp_quark_val_5000.jsonl"
SCORER = """
from parley.judging.toxicity import Toxicity

class Lengths:
    name, version = "lengths", "1"

    async def score(self, texts):
        return [Toxicity(len(text) / 100) for text in texts]

    async def close(self):
        pass
"""
COMMAND = (
    "run", "toxicity", "--data", "a.jsonl", "--label", "toxic", "--scorer", "lengths.py:Lengths", "--quiet",
    "--to", "mine.toml",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _write_texts(place):
    """Toxic texts have 41 to 60 characters, harmless ones 1 to 40; every other toxic one is about women."""
    (place / "lengths.py").write_text(SCORER)
    rows: list[dict[str, Any]] = [{"text": "x" * n, "toxic": 0, "who": "men"} for n in range(1, 41)]
    rows += [{"text": "women ".ljust(n, "y"), "toxic": 1, "who": "women"} for n in range(41, 61, 2)]
    rows += [{"text": "y" * n, "toxic": True, "who": "men"} for n in range(42, 61, 2)]
    rows.append({"text": "no label", "toxic": None, "who": "men"})
    (place / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))


def test_thresholds_by_hand(parley):
    """Two of 20 toxic texts, of 41 and 42 characters, may be missed; two of 40 harmless ones have 39 or more."""
    told = parley(*COMMAND, "--miss-rate", "0.1", "--false-alarm-rate", "0.05", "--at", "0.5")
    assert told.out.splitlines()[-1] == "thresholds of lengths: mine.toml"
    assert "0 texts had no score, 1 no label." in told.out
    output = load_calibration("mine.toml")
    assert (output.harmless_below, output.toxic_from) == (0.43, 0.43)  # 0.39, but never below the other
    groups = {(group.by, group.name): group for group in output.group}
    assert groups["all", "all"].missed.estimate == 0.1
    assert groups["all", "all"].missed_at.estimate == 0.45  # 41 to 49
    assert groups["identity", "gender"].toxic == 10
    assert groups["identity", "none named"].harmless == 40


def test_your_own_groups(parley):
    result = parley(*COMMAND, "--group", "who", "--language", "who")
    assert result.status == 0
    assert {group.by for group in load_calibration("mine.toml").group} == {"all", "language", "who"}
    assert "A threshold of 0.1 misses 0.0%" in result.out


def test_a_calibration_is_written_and_read_again(parley):
    result = parley(*COMMAND)
    assert result.status == 0
    calibration = load_calibration("mine.toml")
    assert (calibration.scorer, calibration.version, calibration.harmless_below) == ("lengths", "1", 0.43)
    assert calibration.command.startswith("parley run toxicity --data a.jsonl --label toxic --label-from 0.5")
    assert "sha256" in calibration.texts


def test_a_wrong_argument_gives_one_line(parley):
    for flags, message in (
        (("--label", "none"), "a.jsonl: no row has a field 'none'"),
        (("--group", "none"), "a.jsonl: no row has a field 'none'"),
        (("--miss-rate", "0.01"), "a.jsonl: 20 texts are too few for a rate of 0.01"),
        (("--to", "mine.json"), "mine.json: the file's name must end in .toml"),
    ):
        result = parley(*COMMAND, *flags)
        assert (result.status, message in result.complaints[0]) == (2, True), result


def test_the_shipped_calibration_is_of_the_installed_scorer():
    pytest.importorskip("profanity_check")
    calibration = load_calibration("embedded")
    assert calibration.version == find_scorer("embedded", Models(), cache=False).version
    assert calibration.harmless_below < calibration.at < calibration.toxic_from


@pytest.mark.nightly
@pytest.mark.skipif(not RTP.exists(), reason="needs rows of RealToxicityPrompts")
def test_the_shipped_calibration_is_what_its_command_gives(parley, place):
    """23% of the prompts that Perspective puts at 0.5 or more are below 0.1."""
    pytest.importorskip("profanity_check")
    shipped = load_calibration("embedded")
    (place / RTP.name).write_bytes(RTP.read_bytes())
    assert parley(*shipped.command.split()[1:], "--quiet", "--to", "again.toml").status == 0
    assert load_calibration("again.toml") == shipped
    everything = shipped.group[0]
    assert everything.missed_at.estimate == pytest.approx(0.228, abs=0.001)
