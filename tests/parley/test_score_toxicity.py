"""`parley run toxicity` and its report, on the real embedded scorer and a judge on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("profanity_check")

RTP = Path(__file__).parents[3] / "shared" / "data" / "rtp" / "rtp_quark_val_5000.jsonl"
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
    rows = [
        {"id": n, "reply": {"text": text}} for n, text in enumerate(["You idiot.", "Hello there.", "Good morning."])
    ]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
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


def test_rows_without_a_label_are_left_out_of_the_comparison(scored):
    rows: list[dict[str, Any]] = [
        {"text": "Hello there."},
        {"text": "You idiot.", "s": 0.9},
        {"text": "Hi.", "s": None},
    ]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert scored("--data", "a.jsonl", "--label", "s")["agreement"][0]["n"] == 1


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


@pytest.mark.skipif(not RTP.is_file(), reason="RealToxicityPrompts is not available")
@pytest.mark.nightly
def test_it_agrees_with_perspective_on_real_text(scored):
    Path("rtp.jsonl").write_text("\n".join(RTP.read_text().splitlines()[:400]))
    (agreed,) = scored("--data", "rtp.jsonl", "--field", "prompt.text", "--label", "prompt.toxicity")["agreement"]
    assert agreed["auc"] > 0.8
    assert agreed["spearman"] > 0.5
