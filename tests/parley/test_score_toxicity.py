"""`parley run toxicity` and its report, on the embedded scorer and a judge on loopback; and thresholds from labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.agents import Models
from parley.judging.toxicity import find_scorer
from parley.judging.toxicity.calibration import load_calibration

pytest.importorskip("profanity_check")

RUN = ("run", "toxicity", "--quiet", "--out", "a.sqlite")


@pytest.fixture
def scored(parley):
    """The report of a run, as JSON."""

    def score(*flags):
        Path("a.sqlite").unlink(missing_ok=True)
        result = parley(*RUN, *flags)
        assert result.status == 0, result.err
        return parley("report", "a.sqlite", "--json").json

    return score


def test_texts_of_a_file_are_scored_line_by_line(parley, scored, run_file):
    Path("a.txt").write_text("You are a stupid idiot.\n\nI am a gay man.\n[bold]Hello[/bold] \x1b[31mthere\n")
    tables = scored("--data", "a.txt")
    assert tables["title"] == "toxicity", "no model is named, because none was called"
    assert tables["scorers"][0]["scored"] == 3
    sql = "SELECT unit, metric, value FROM verdicts WHERE metric IN ('toxicity', 'raw') ORDER BY unit, metric DESC"
    values = {(unit, metric): value for unit, metric, value in run_file("a.sqlite").rows(sql)}
    assert {unit for unit, _ in values} == {"1", "3", "4"}, "units are named by lines"
    assert values["1", "toxicity"] > 0.9
    assert values["3", "toxicity"] < 0.1 < 0.9 < values["3", "raw"]
    assert "alt-profanity-check" in run_file("a.sqlite").one("SELECT value FROM run WHERE key = 'sources'")
    shown = parley("show", "a.sqlite", "4").out
    assert "\x1b[31m" not in shown
    assert "[bold]Hello" in shown


def test_two_scorers_side_by_side_with_their_agreement(parley, scored, server):
    server.answer = lambda nth, body: server.reply(
        json.dumps({"toxicity": 80 if "idiot" in str(body["messages"]) else 10})
    )
    texts = ["You idiot.", "Hello there.", "Good morning."]
    Path("a.jsonl").write_text("\n".join(json.dumps({"id": n, "reply": {"text": t}}) for n, t in enumerate(texts)))
    both = ("--data", "a.jsonl", "--field", "reply.text", "--scorer", f"embedded,judge:{server.model()}")
    (agreed,) = scored(*both)["agreement"]
    assert (agreed["first"], agreed["second"], agreed["n"]) == ("embedded", "judge:server/judge", 3)
    assert (agreed["same_side"], agreed["kappa"], agreed["auc"]) == (1.0, 1.0, 1.0)
    assert len(server.asked) == 3
    scored(*both)
    assert len(server.asked) == 3, "the second time, scores come from the cache"
    assert max(map(len, parley("report", "a.sqlite", "--all", "--no-files").out.splitlines())) <= 80


def test_unscored_texts_are_counted_with_their_reasons(parley, scored):
    Path("a.csv").write_text('text,theirs\n"Hello, there",0.1\n你是个白痴,0.9\n"",\n')
    tables = scored("--data", "a.csv", "--label", "theirs")
    (scorer,) = tables["scorers"]
    assert (scorer["scored"], scorer["unscored"]) == (1, 2)
    assert tables["agreement"][0]["n"] == 1
    said = " ".join(parley("report", "a.sqlite", "--no-files").out.split())
    assert "2 texts could not be scored" in said
    assert "1 because there is no text" in said


def test_the_embedded_scorer_on_sentences_about_different_people(parley, scored):
    tables = scored()
    widest: dict[str, float] = {}
    for row in tables["sentences"]:
        widest[row["scorer"]] = max(widest.get(row["scorer"], 0.0), row["range"])
    assert widest["embedded, raw"] > 0.9
    listed = [row for row in tables["pairs"] if row["scorer"] == "embedded" and row["category"] != "rarely named"]
    assert max(row["largest"] for row in listed) < 1e-6
    neutral = [
        row["highest_score"] for row in tables["sentences"] if row["scorer"] == "embedded" and not row["hostile"]
    ]
    assert max(neutral) < 0.15
    kinds = {row["kind"]: row for row in tables["controls"] if row["scorer"] == "embedded"}
    assert min(kinds["insult"]["lowest"], kinds["threat"]["lowest"]) >= 0.9
    assert kinds["neutral"]["highest"] < 0.1
    assert parley("report", "a.sqlite", "--figures", "all", "--formats", "svg", "--out", "page").status == 0
    assert list(Path("page").rglob("identities.svg"))


def test_sentences_about_your_own_identities(parley, scored):
    Path("towns.toml").write_text('[categories]\ntown = ["Parisian", "Berliner"]\n')
    (pair,) = scored("--identities", "towns.toml", "--scorer", "ngrams")["pairs"]
    assert {pair["higher"], pair["lower"]} == {"Parisian", "Berliner"}
    assert "unknown identity" in parley(*RUN, "--identities", "nobody").complaints[0]


def test_scores_of_a_simulated_judge_are_marked(parley, scored):
    Path("a.txt").write_text("You idiot.\n")
    caution = "sim/any?noise=0 is SIMULATED: these numbers come from planted effects, not from a language model."
    assert caution in scored("--data", "a.txt", "--scorer", "judge:sim/any?noise=0,ngrams")["cautions"]
    assert scored("--data", "a.txt", "--scorer", "ngrams")["cautions"] == []
    assert "unparsed" not in parley("show", "a.sqlite").out, "a scorer without a raw score was read"


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


def test_thresholds_by_hand_and_your_own_groups(parley):
    """Two of 20 toxic texts, of 41 and 42 characters, may be missed; two of 40 harmless ones have 39 or more."""
    told = parley(*COMMAND, "--miss-rate", "0.1", "--false-alarm-rate", "0.05", "--at", "0.5")
    assert told.out.splitlines()[-1] == "thresholds of lengths: mine.toml"
    assert "0 texts had no score, 1 no label." in told.out
    output = load_calibration("mine.toml")
    assert (output.scorer, output.version) == ("lengths", "1")
    assert (output.harmless_below, output.toxic_from) == (0.43, 0.43)  # 0.39, but never below the other
    assert output.command.startswith("parley run toxicity --data a.jsonl --label toxic --label-from 0.5")
    assert "sha256" in output.texts
    groups = {(group.by, group.name): group for group in output.group}
    assert groups["all", "all"].missed.estimate == 0.1
    assert groups["all", "all"].missed_at.estimate == 0.45  # 41 to 49
    assert groups["identity", "gender"].toxic == 10
    assert groups["identity", "none named"].harmless == 40
    result = parley(*COMMAND, "--group", "who", "--language", "who", "--force")
    assert (result.status, "A threshold of 0.1 misses 0.0%" in result.out) == (0, True)
    assert {group.by for group in load_calibration("mine.toml").group} == {"all", "language", "who"}


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
