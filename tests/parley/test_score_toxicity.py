"""`parley score toxicity` and `parley score audit`, on the real embedded scorer and a judge on loopback."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.cli.audit_scorers import figure_note
from parley.jobs.toxicity import ScorerColumn

pytest.importorskip("profanity_check")

RTP = Path(__file__).parents[3] / "shared" / "data" / "rtp" / "rtp_quark_val_5000.jsonl"


def test_texts_of_a_file_are_scored_line_by_line(parley: Callable[..., Any]) -> None:
    Path("a.txt").write_text("You are a stupid idiot.\n\nI am a gay man.\n[bold]Hello[/bold] \x1b[31mthere\n")
    result = parley("score", "toxicity", "a.txt")
    assert result.status == 0
    assert "\x1b[31m" not in result.out
    assert "[bold]Hello" in result.out
    tables = parley("score", "toxicity", "a.txt", "--json").json
    assert [row["line"] for row in tables["texts"]] == [1, 3, 4]
    rude, gay, _ = (row["scores"]["embedded"] for row in tables["texts"])
    assert rude["score"] > 0.9
    assert gay["score"] < 0.1 < 0.9 < gay["raw"]
    assert "alt-profanity-check" in gay["version"]
    assert tables["scorers"][0]["scored"] == 3


def test_two_scorers_side_by_side_with_their_agreement(parley: Callable[..., Any], server: Any) -> None:
    server.answer = lambda nth, body: server.reply(
        json.dumps({"toxicity": 80 if "idiot" in str(body["messages"]) else 10})
    )
    rows = [
        {"id": n, "reply": {"text": text}} for n, text in enumerate(["You idiot.", "Hello there.", "Good morning."])
    ]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ("score", "toxicity", "a.jsonl", "--field", "reply.text", "--scorer", "embedded")
    command += ("--scorer", f"judge:{server.model()}", "--out", "out.jsonl")
    result = parley(*command)
    assert result.status == 0
    assert max(map(len, result.out.splitlines())) <= 80
    tables = parley(*command, "--json").json
    assert len(server.asked) == 3, "the second time, scores come from the cache"
    (agreed,) = tables["agreement"]
    assert (agreed["first"], agreed["second"], agreed["n"]) == ("embedded", "judge:server/judge", 3)
    assert (agreed["same_side"], agreed["kappa"], agreed["auc"]) == (1.0, 1.0, 1.0)
    written = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert written[0]["scores"]["judge:server/judge"]["score"] == 0.8
    parley(*command, "--no-cache", "--json")
    assert len(server.asked) == 6


def test_unscored_texts_are_counted_with_their_reasons(parley: Callable[..., Any]) -> None:
    Path("a.csv").write_text('text,theirs\n"Hello, there",0.1\n你是个白痴,0.9\n"",\n')
    result = parley("score", "toxicity", "a.csv", "--against", "theirs", "--json")
    assert result.status == 1
    (scorer,) = result.json["scorers"]
    assert (scorer["scored"], scorer["unscored"], len(scorer["why"])) == (1, 2, 2)
    assert result.json["agreement"][0]["n"] == 1
    assert "2 unscored" not in parley("score", "toxicity", "a.csv").out  # one line per reason
    assert "1 unscored: there is no text" in parley("score", "toxicity", "a.csv").out


def test_rows_without_a_score_are_left_out_of_the_comparison(parley: Callable[..., Any]) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "Hello there."},
        {"text": "You idiot.", "s": 0.9},
        {"text": "Hi.", "s": None},
    ]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert parley("score", "toxicity", "a.jsonl", "--against", "s", "--json").json["agreement"][0]["n"] == 1


def test_standard_input(parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"You idiot.\r\nHello\x0cyou.\n")))
    tables = parley("score", "toxicity", "-", "--json").json
    assert [row["text"] for row in tables["texts"]] == ["You idiot.", "Hello\x0cyou."]


@pytest.mark.parametrize(
    ("name", "content", "more", "message"),
    [
        ("a.jsonl", '{"text": "fine"}\n{"text": \n', (), "a.jsonl, line 2: not JSON"),
        ("a.jsonl", '{"body": "fine"}\n', (), "line 1: no field 'text' (it has: body)"),
        ("a.jsonl", '{"text": "fine"}\n', ("--field", "a.b"), "no field 'a.b'"),
        ("a.jsonl", '{"text": "fine", "s": "high"}\n', ("--against", "s"), "line 1: 's' is not a number"),
        ("a.jsonl", "[1]\n", (), "no field 'text'"),
        ("a.jsonl", '{"text": 5}\n', (), "line 1: the field 'text' is not a text"),
        ("a.jsonl", '{"p": {"text": "x", "id": 1}}\n', ("--field", "p.no"), "'p.no' ('p' has: text, id)"),
        ("a.jsonl", '{"p": {"text": "x", "id": 1}}\n', ("--field", "p"), "'p' is not a text ('p' has: text, id)"),
        ("a.csv", "text,s\nfine,1\n", ("--against", "zzz"), "a.csv: no row has a field 'zzz' (it has: text, s)"),
        ("a.jsonl", '{"text": "x", "p": {"s": 1}}\n', ("--against", "p.z"), "no row has a field 'p.z' ('p' has: s)"),
        ("a.txt", " \n\n", (), "it contains no text"),
        ("a.txt", "fine", ("--field", "text"), "has no fields"),
        ("a.pdf", "fine", (), ".txt, .jsonl or .csv"),
        ("a.txt", "fine", ("--scorer", "nobody"), "unknown scorer 'nobody'"),
        ("a.txt", "fine", ("--scorer", "embedded", "--scorer", "embedded"), "named twice"),
        ("a.txt", "fine", ("--scorer", "openai-moderation"), "OPENAI_API_KEY"),
        ("a.txt", "fine", ("--out", "gone/out.jsonl"), "gone/out.jsonl cannot be written: No such file"),
    ],
)
def test_bad_input_gives_one_line(parley: Callable[..., Any], name: str, content: str, more: Any, message: str) -> None:
    Path(name).write_text(content)
    result = parley("score", "toxicity", name, *more)
    assert result.status == 2
    (line,) = result.complaints
    assert message in line


def test_a_missing_or_binary_file_gives_one_line(parley: Callable[..., Any]) -> None:
    Path("a.txt").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in parley("score", "toxicity", "a.txt").complaints[0]
    assert "No such file" in parley("score", "toxicity", "b.txt").complaints[0]


def test_the_audit_of_the_embedded_scorer_before_and_after(parley: Callable[..., Any]) -> None:
    result = parley("score", "audit", "--figure", "audit.svg")
    assert result.status == 0
    assert max(map(len, result.out.splitlines())) <= 80
    assert Path("audit.svg").read_text().startswith("<?xml")
    tables = parley("score", "audit", "--json").json
    widest = {}
    for row in tables["sentences"]:
        widest[row["scorer"]] = max(widest.get(row["scorer"], 0.0), row["range"])
    assert widest["embedded, raw"] > 0.9
    listed = [row for row in tables["gaps"] if row["scorer"] == "embedded" and row["category"] != "rarely named"]
    assert max(row["largest"] for row in listed) < 1e-6
    neutral = [row["high"] for row in tables["sentences"] if row["scorer"] == "embedded" and not row["hostile"]]
    assert max(neutral) < 0.15
    kinds = {row["kind"]: row for row in tables["controls"] if row["scorer"] == "embedded"}
    assert min(kinds["insult"]["low"], kinds["threat"]["low"]) >= 0.9
    assert kinds["neutral"]["high"] < 0.1


def test_an_audit_of_your_own_identities(parley: Callable[..., Any]) -> None:
    Path("towns.toml").write_text('[categories]\ntown = ["Parisian", "Berliner"]\n')
    tables = parley("score", "audit", "--identities", "towns.toml", "--json").json
    assert {row["identity"] for row in tables["probes"]} == {"Parisian", "Berliner"}
    assert "audit.gif" in parley("score", "audit", "--figure", "audit.gif").complaints[0]
    assert "unknown identity" in parley("score", "audit", "--identities", "nobody").complaints[0]


def test_scores_of_a_simulated_judge_are_marked_wherever_they_go(parley: Callable[..., Any]) -> None:
    Path("a.txt").write_text("You idiot.\n")
    caution = "sim/any?noise=0 is SIMULATED: these numbers come from planted effects, not from a language model."
    both = ("--scorer", "judge:sim/any?noise=0", "--scorer", "embedded")
    result = parley("score", "toxicity", "a.txt", *both, "--out", "out.jsonl")
    assert f"Caution: {caution}" in " ".join(result.out.split())
    (written,) = map(json.loads, Path("out.jsonl").read_text().splitlines())
    assert {name: score["caution"] for name, score in written["scores"].items()} == {
        "judge:sim/any": caution,
        "embedded": "",
    }
    tables = parley("score", "toxicity", "a.txt", *both, "--json").json
    assert tables["cautions"] == [caution]
    assert [scorer["caution"] for scorer in tables["scorers"]] == [caution, ""]
    assert parley("score", "toxicity", "a.txt", "--json").json["cautions"] == []


def test_an_audit_of_a_simulated_judge_is_marked_in_its_figure_too(parley: Callable[..., Any]) -> None:
    Path("towns.toml").write_text('[categories]\ntown = ["Parisian", "Berliner"]\n')
    command = ("score", "audit", "--identities", "towns.toml", "--scorer", "judge:sim/any")
    assert "Caution: sim/any is SIMULATED" in parley(*command).out
    plain, marked = ScorerColumn("mine", "1", ()), ScorerColumn("judge:sim/any", "2", (), "sim/any is SIMULATED.")
    assert figure_note([plain, marked]) == "sim/any is SIMULATED. Each dot is an identity. mine: 1; judge:sim/any: 2."
    assert "sim/any is SIMULATED" in parley(*command, "--json").json["cautions"][0]


@pytest.mark.skipif(not RTP.is_file(), reason="RealToxicityPrompts is not available")
def test_it_agrees_with_perspective_on_real_text(parley: Callable[..., Any]) -> None:
    rows = RTP.read_text().splitlines()[:400]
    Path("rtp.jsonl").write_text("\n".join(rows))
    result = parley(
        "score", "toxicity", "rtp.jsonl", "--field", "prompt.text", "--against", "prompt.toxicity", "--json"
    )
    (agreed,) = result.json["agreement"]
    assert agreed["auc"] > 0.8
    assert agreed["spearman"] > 0.5
