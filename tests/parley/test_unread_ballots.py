"""Replies that cannot be read: silent ballots off the scale, thoughts, texts that are cut. None is ever a number."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from parley.judging.malibu.plan import MalibuConfig
from parley.judging.malibu.study import Malibu, WordedDesign
from parley.reports import make_report
from parley.runs import frames
from parley.runs.diagnosis import find_damage
from tests.panels import TINY_PANEL
from tests.servers import first_token

RUN = (
    *("run", "malibu", "--suite", "full", "--per-base", "1", "--design", "silent", "--phases", "1"),
    *("--identities", "gender", "--yardstick", "off", "--quiet"),
)
SUBJECT = Malibu(MalibuConfig(design="silent", suite="full", identities=["gender"]))
assert isinstance(SUBJECT.design, WordedDesign)
WORDS = SUBJECT.design.silent.label_words
"""Every word for a label, as a simulated model knows them."""
Probabilities = Callable[[str, float, float], dict[str, float]]


def asked_about(body: dict[str, Any]) -> tuple[str, str]:
    """The label that a ballot shows, if any, and its prompt."""
    prompt = "\n".join(str(message["content"]) for message in body["messages"])
    shown = {label for word, label in WORDS.items() if re.search(rf"\b{re.escape(word)}\b", prompt.lower())}
    return (shown.pop() if len(shown) == 1 else ""), prompt


def judge(server: Any, answers: Probabilities) -> None:
    """Let the server judge by label, a draw for refusals, and a draw for scores."""

    def answer(nth: int, body: dict[str, Any]) -> web.Response:
        label, prompt = asked_about(body)
        digest = hashlib.blake2b(prompt.encode()).digest()
        shares = answers(label, digest[0] / 256, digest[1] / 256)
        tops = first_token(dict(sorted(shares.items(), key=lambda share: -share[1])))
        return server.reply(tops[0]["token"], tops)

    server.answer = answer


def score(value: float, mass: float = 1.0) -> dict[str, float]:
    """A distribution with this mean on the scale; the rest is on another word."""
    low = math.floor(value)
    shares = {str(low): mass * (low + 1 - value), str(low + 1): mass * (value - low), "The": 1 - mass}
    return {token: share for token, share in shares.items() if share > 0}


def refuses_women(label: str, refusal: float, draw: float) -> dict[str, float]:
    """About 7 for everybody, but 45% of the ballots on women begin with "I", and have "1" in the tail."""
    if label == "female" and refusal < 0.45:
        return {"I": 0.9998, "1": 0.0001}
    return score(6.8 + 0.4 * draw)


def as_before(patch: pytest.MonkeyPatch) -> None:
    """Store ballots as versions did that read whatever lay on the scale, and stored whatever number came."""
    patch.setattr("parley.agents.ballots.LEAST_ON_SCALE", 0.0)
    patch.setattr("parley.agents.models.reply._usable", lambda token: token)
    patch.setattr("parley.runs.rows.finite", dict)


def test_a_refusal_is_no_score_and_unequal_refusals_leave_no_verdict(parley, server):
    judge(server, refuses_women)
    assert parley(*RUN, "--model", server.model(), "--out", "a.sqlite").status == 0
    women = frames.verdicts("a.sqlite").query("identity == 'female'")
    lost = women[women["status"] == "unparsed"]
    assert 5 <= len(lost) <= 14, "of 20"
    assert lost["value"].isna().all()
    assert women["value"].min() > 6, "no 1 from the tail"

    data = parley("report", "a.sqlite", "--json").json
    (contrast,) = data["primary"]
    assert contrast["verdict"] == "not measured"
    assert (contrast["low"], contrast["high"], contrast["p"], contrast["p_adjusted"]) == (None,) * 4
    assert data["headline"]["verdict"] == "not measured"
    share = f"{1 - len(lost) / 20:.0%} and 100% of the silent ballots' probability is on the answers asked for"
    assert any(line.startswith(f"No verdict on female − male: {share} (p ") for line in data["cautions"])
    assert contrast["note"] in data["cautions"]
    by_identity = {row["identity"]: (row["unparsed"], row["on_scale"]) for row in data["unread"]}
    assert by_identity["female"] == (len(lost), pytest.approx(1 - len(lost) / 20, abs=0.01))
    assert all(test["p"] is None for test in data["tests"]), "the paper's test is about the same scores"
    assert data["headline"]["answer"].startswith("No verdict: answers about one identity could be read less often ")


def test_a_biased_judge_is_found_out_whatever_the_steady_mass_of_its_ballots(parley, server):
    judge(server, lambda label, refusal, draw: score(6.8 + 0.4 * draw - (label == "female"), 0.6))
    assert parley(*RUN, "--model", server.model(), "--out", "a.sqlite").status == 0
    report = make_report([Path("a.sqlite")], draws=20)
    assert report.headline.verdict == "different"
    assert report.table("primary")["estimate"].iloc[0] == pytest.approx(-1, abs=0.15)
    assert not [line for line in report.cautions if line.startswith("No verdict on ")]


def test_ballots_off_the_scale_for_everybody_are_all_unread_and_a_caution_says_what_to_type(parley, server):
    judge(server, lambda label, refusal, draw: score(7 - 3 * (label == "female"), 0.3))
    ran = parley(*RUN, "--model", server.model(), "--out", "a.sqlite")
    assert (ran.status, ran.complaints) == (1, ["parley: none of 60 replies could be read (60 unparsed)"])
    report = make_report([Path("a.sqlite")], draws=20)
    assert not [line for line in report.cautions if line.startswith("No verdict on ")]
    assert not report.forests
    (line,) = (line for line in report.cautions if "as asked with a probability of 30%" in line)
    assert "those below 50% are unread. With ?silent=false" in line
    shown = parley("show", "a.sqlite")
    assert "'The', unread: 30.0% of the probability is on 1 to 9" in shown.out


def test_a_caution_does_not_advise_what_is_set(parley, server):
    server.answer = lambda nth, body: server.reply("I would rather not say.")
    tiny = ("run", "malibu", "--suite", "tiny", "--design", "silent", "--yardstick", "off", "--phases", "1", "--quiet")
    parley(*tiny, "--model", f"{server.model()}&silent=false", "--samples", 2, "--out", "a.sqlite")
    (line,) = (line for line in parley("report", "a.sqlite", "--json").json["cautions"] if "answers silent" in line)
    assert line.endswith("are unread."), "nothing else"


def test_a_server_without_log_probabilities_needs_another_name_and_another_file(parley, server):
    server.answer = lambda nth, body: server.reply("7")
    tiny = ("run", "malibu", "--suite", "tiny", "--design", "silent", "--yardstick", "off", "--quiet")
    stopped = parley(*tiny, "--model", server.model(), "--out", "a.sqlite")
    assert "after other options) and another --out, and its replies are sampled instead" in stopped.err
    assert "same command" not in stopped.err
    assert parley(*tiny, "--model", f"{server.model()}&silent=false", "--out", "b.sqlite").status == 0


UNUSABLE = [math.nan, None, "often", True, 5.0, math.inf, -(10**400)]
HARMLESS = [-math.inf, -1e300, -9999]


def spoil(server: Any, *numbers: object) -> None:
    """Each of the first replies has one of these numbers among its log-probabilities."""

    def answer(nth: int, body: dict[str, Any]) -> web.Response:
        tops = first_token({"7": 0.65, "8": 0.3, "9": 0.0499})
        if nth < len(numbers):
            tops[0]["top_logprobs"][2]["logprob"] = numbers[nth]
        return server.reply("7", tops)

    server.answer = answer


def test_a_log_probability_that_is_no_number_costs_one_ballot(parley, server):
    spoil(server, *UNUSABLE, *HARMLESS)
    command = (*RUN, "--model", server.model("retries=0&max_connections=1"))
    assert parley(*command, "--out", "a.sqlite").status == 0
    calls = len(server.asked)
    assert parley(*command, "--out", "b.sqlite").status == 0
    assert len(server.asked) == calls, "all replies were stored, so none is paid for twice"

    verdicts = frames.verdicts("a.sqlite")
    assert dict(verdicts["status"].value_counts()) == {"unparsed": len(UNUSABLE), "ok": len(verdicts) - len(UNUSABLE)}
    assert (verdicts["value"].isna() == (verdicts["status"] == "unparsed")).all()
    assert parley("report", "a.sqlite", "--json").json["primary"]
    assert parley("compare", "a.sqlite", "b.sqlite").status == 0
    lost = verdicts["unit"][verdicts["status"] == "unparsed"]
    assert "'7', unread: no usable log-probabilities" in parley("show", "a.sqlite", lost.iloc[0]).out


def test_a_run_that_has_nan_in_it_can_be_read(parley, server, monkeypatch):
    spoil(server, math.nan)
    with monkeypatch.context() as patch:
        as_before(patch)
        ran = parley(*RUN, "--model", server.model("retries=0&max_connections=1"), "--no-cache", "--out", "a.sqlite")
    assert ran.status == 0
    assert b"NaN" in Path("a.sqlite").read_bytes()
    assert find_damage(Path("a.sqlite")) is None
    verdicts = frames.verdicts("a.sqlite")
    assert dict(verdicts["status"].value_counts()) == {"ok": len(verdicts) - 1, "unparsed": 1}
    assert parley("report", "a.sqlite", "--json").json["unread"][0]["unparsed"] == 1
    (unit,) = verdicts["unit"][verdicts["status"] == "unparsed"]
    assert "NaN" not in parley("show", "a.sqlite", unit, "--json").out


PAPER_RUN = (*TINY_PANEL, "--no-cache", "--out", "a.sqlite")


def completion(text: str | None, finish: str = "stop", **fields: Any) -> web.Response:
    message = {"role": "assistant", "content": text, **fields}
    usage = {"prompt_tokens": 100, "completion_tokens": 400, "completion_tokens_details": {"reasoning_tokens": 380}}
    return web.json_response({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


def test_thoughts_are_recorded_shown_folded_and_not_heard(parley, server, run_file):
    server.answer = lambda nth, body: completion(f"<think>THOUGHT {nth}</think>{server.fitting(body)}")
    assert parley(*PAPER_RUN, "--model", server.model()).status == 0

    file = run_file("a.sqlite")
    file.check()
    thoughts = file.rows("SELECT thought FROM transcript WHERE role != 'narrator'")
    assert len(thoughts) == 72
    assert all(thought.startswith("THOUGHT ") for (thought,) in thoughts)
    assert file.one("SELECT sum(thought_tokens) FROM calls") == 72 * 380
    assert "THOUGHT" not in json.dumps(server.asked)
    shown = parley("show", "a.sqlite")
    assert "thought: 9 characters; --thoughts shows them" in shown.out
    assert "380 of them thinking" in shown.out
    assert "THOUGHT" not in shown.out
    assert "THOUGHT" in parley("show", "a.sqlite", "--thoughts").out
    assert parley("show", "a.sqlite", "--json").json["turns"][1]["thought"].startswith("THOUGHT")


def test_a_run_of_a_model_that_only_thinks_fails_and_says_what_to_raise(parley, server):
    server.answer = lambda nth, body: completion(None, "length", reasoning="Well, let me see.")
    result = parley(*PAPER_RUN, "--model", server.model("retries=6&think_tokens=100"))
    assert result.status == 1
    assert "raise --max-tokens" in result.complaints[0]
    assert "0 of 9 units done" in result.out
    assert {body["max_tokens"] for body in server.asked} == {500}
    with closing(sqlite3.connect("a.sqlite")) as db:
        [(detail,)] = db.execute("SELECT detail FROM events WHERE kind = 'spent'").fetchall()
    assert json.loads(detail)[:2] == [len(server.asked), len(server.asked) * 500], "all that was answered was paid for"


def test_a_run_in_which_nothing_could_be_read_is_no_success(parley, server, run_file):
    server.answer = lambda nth, body: completion('{"Creat', "length")
    result = parley(*PAPER_RUN, "--model", server.model("retries=0&think_tokens=0"))
    assert result.status == 1
    assert "9 of 9 units done" in result.out
    assert result.complaints == ["parley: none of 72 replies could be read (72 cut); raise --max-tokens"]
    assert set(run_file("a.sqlite").rows("SELECT status, value FROM verdicts")) == {("cut", None)}
    assert parley(*PAPER_RUN, "--model", server.model("retries=0&think_tokens=0")).status == 1, (
        "nor is it when it is resumed"
    )


def test_cut_replies_are_counted_shown_and_cautioned(parley, server):
    """One judge of the panel is cut whenever it speaks."""

    def one_judge(nth, body):
        cut = "You are the Examiner on a panel" in json.dumps(body["messages"])
        return completion('{"Creat', "length") if cut else None

    server.answer = one_judge
    result = parley(*PAPER_RUN, "--model", server.model("retries=0&think_tokens=0"))
    assert result.status == 0
    with closing(sqlite3.connect("a.sqlite")) as db:
        [(cut,)] = db.execute("SELECT count(*) FROM messages WHERE cut").fetchall()
        assert db.execute("SELECT DISTINCT parse_status FROM messages WHERE cut").fetchall() == [("cut",)]
    assert cut == 18, "nine units of two rounds"
    assert "18 replies were cut off at the token limit" in result.out
    assert " · cut" in parley("show", "a.sqlite").out
    report = " ".join(parley("report", "a.sqlite", "--no-files", "--draws", "20").out.split())
    assert "18 of 72 replies (25%) reached the token limit and were cut off: raise --max-tokens" in report


def test_drafts_that_are_cut_are_counted_by_themselves(parley, server, place):
    """Their length is part of the protocol, so nobody is told to raise it; a judge's reply that is cut is a fault."""
    (place / "prompts.jsonl").write_text('{"prompt": "The bus is", "toxicity": 0.55}\n')

    def writes(nth, body):
        if "response_format" not in body:
            return completion("late again", "length")
        return completion('{"fluency": 90', "length") if nth > 3 else completion(json.dumps(fluent), "stop")

    fluent = {"fluency": 90, "coherence": 90, "relevance": 90, "reason": "fine"}
    server.answer = writes
    run = ["run", "stardtox", "--data", "prompts.jsonl", "--sets", "moderate", "--prompts", "1", "--completions", "3"]
    given = ["--method", "default", "--scorer", "ngrams", "--measure", "none", "--concurrency", "1"]
    result = parley(*run, *given, "--model", server.model("retries=0&think_tokens=0"), "--out", "a.sqlite")
    assert "1 reply was cut off at the token limit" in result.out
    report = " ".join(parley("report", "a.sqlite", "--no-files", "--draws", "20").out.split())
    assert "1 of 7 replies (14%) reached the token limit and were cut off: raise --max-tokens" in report
    assert "3 of 3 drafts (100%) end at the token limit." in report
