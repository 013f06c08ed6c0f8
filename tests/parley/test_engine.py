"""Budgets, retries, failures, the user's own studies, the reply cache and keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import parley as library
from parley.agents import ConfigError, ParleyError
from tests.own_study import STUDY
from tests.panels import ONE_CELL, TINY_PANEL

QUICK = (*TINY_PANEL, "--concurrency", "1", "--out", "a.sqlite")
FIVE = ("--suite", "full", "--scenarios", "fitness", "--per-base", "5", "--cells", "all")

DRINKS = (
    STUDY
    + '''
OPENING = "What is good about {topic}?"

class Panel(Study):
    """Ada and Ben talk about drinks."""

    name = "panel"

    class Config(Study.Config):
        topics: list[str] = ["tea", "coffee", "water", "milk", "juice"]

    def prompts(self):
        return {"opening": OPENING}

    def plan(self):
        for n, topic in enumerate(self.config.topics):
            yield Unit(topic, {"topic": topic, "nth": n})

    async def run(self, unit, models):
        if unit.id == "lava":
            raise ZeroDivisionError("nobody drinks\\nlava")
        panel = [Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")]
        table = Debate(panel, model=self.config.model, rounds=1, models=models)
        transcript = await table.converse(OPENING.format(topic=unit.id))
        last = transcript.spoken()[-1]
        return Outcome(transcript, (Verdict.from_turn(last, "length", value=len(last.text)),))
'''
)
PANEL = ("run", "panel.py:Panel", "--quiet", "--concurrency", "1", "--out", "panel.sqlite")


def fault(nth: int, body: Any) -> web.Response:
    return web.Response(status=500, text="out of order")


# Budgets


@pytest.mark.parametrize(
    ("small", "large", "asked", "words"),
    [
        (("--budget-calls", "20"), ("--budget-calls", "72"), 20, "the budget of 20 calls is spent"),
        (("--budget-tokens", "2400"), ("--budget-tokens", "8640"), 20, "the budget of 2,400 tokens is spent"),
        (("--budget-tokens", "2401"), ("--budget-tokens", "8640"), 21, "the budget of 2,401 tokens is spent"),
        (("--budget-cost", "20"), ("--budget-cost", "72"), 20, "the budget of $20 is spent"),
    ],
)
def test_a_spent_budget_stops_the_run_and_a_larger_one_resumes_it(
    parley: Callable[..., Any],
    server: Any,
    run_file: Any,
    small: tuple[str, str],
    large: tuple[str, str],
    asked: int,
    words: str,
) -> None:
    command = (*QUICK, "--model", server.model("price_in=10000&price_out=0"))  # 100 tokens, one dollar per call
    file = run_file("a.sqlite")

    stopped = parley(*command, *small)

    assert stopped.status == 1
    assert stopped.complaints == [f"parley: stopped: {words}"]
    assert "2 of 9 units done" in stopped.out
    assert len(server.asked) == asked
    assert (file.count(), file.count("failed")) == (2, 0)
    assert file.rows("SELECT detail FROM events WHERE kind = 'stopped'") == [(words,)]

    assert parley(*command, *large).status == 0
    assert file.count() == 9
    assert file.rows("SELECT detail FROM events WHERE kind = 'ended'") == [("every unit was run",)]
    assert file.one("SELECT count(*) FROM units WHERE started_at BETWEEN 1e9 AND finished_at") == 9
    assert len(server.asked) == 72, "nothing was paid for twice"
    file.check()


def test_a_budget_of_calls_is_never_exceeded(parley: Callable[..., Any], server: Any) -> None:
    server.delay = 0.005
    result = parley(*QUICK, "--model", server.model(), "--budget-calls", "30", "--concurrency", "64")

    assert result.status == 1
    assert len(server.asked) == 30


def test_a_budget_of_zero_makes_no_call(parley: Callable[..., Any], server: Any) -> None:
    assert parley(*QUICK, "--model", server.model(), "--budget-calls", "0").status == 1
    assert server.asked == []


def test_a_budget_covers_all_commands_together(parley: Callable[..., Any], server: Any) -> None:
    command = (*QUICK, "--model", server.model(), "--budget-calls", "20")
    assert parley(*command).status == 1

    assert parley(*command).status == 1

    assert len(server.asked) == 20, "'stop after this many model calls in total'"


def test_a_budget_in_money_needs_a_price(parley: Callable[..., Any], server: Any) -> None:
    result = parley(*QUICK, "--model", server.model(), "--budget-cost", "0.01")

    assert result.status == 2
    assert "price" in result.err
    assert server.asked == []


# Failures


def test_failed_units_are_run_again(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    command = (*QUICK, "--model", server.model())
    server.answer = lambda nth, body: fault(nth, body) if nth in (16, 20, 24) else None  # one of four blind ballots
    file = run_file("a.sqlite")

    result = parley(*command)

    assert result.status == 1
    assert "parley: 3 units failed, the first with: server/judge: " in result.complaints[0]
    assert "answered 500: out of order" in result.complaints[0]
    assert "6 of 9 units done" in result.out
    assert (file.count(), file.count("failed")) == (6, 3)
    assert all("out of order" in error for (error,) in file.rows("SELECT error FROM units WHERE status = 'failed'"))
    file.check()

    again = parley(*command)

    assert again.status == 0
    assert (file.count(), file.count("failed")) == (9, 0)
    assert file.rows("SELECT id FROM units WHERE error IS NOT NULL") == []
    file.check()


def test_a_temporary_failure_is_retried(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    server.answer = lambda nth, body: fault(nth, body) if nth == 16 else None

    assert parley(*QUICK, "--model", server.model("retries=1")).status == 0

    assert run_file("a.sqlite").count() == 9
    assert run_file("a.sqlite").rows("SELECT attempts, count(*) FROM calls GROUP BY attempts") == [(1, 71), (2, 1)]


def test_twenty_failures_in_a_row_end_the_run(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    server.answer = fault
    command = (*QUICK, *FIVE, "--no-blind", "--identities", "gender", "--model", server.model())
    file = run_file("a.sqlite")

    result = parley(*command)

    assert result.status == 1
    assert len(server.asked) == 20
    assert "parley: stopped: 20 units failed in a row, the last with: server/judge: " in result.err
    assert (file.count(), file.count("failed"), file.count("planned")) == (0, 20, 45)

    server.answer = lambda nth, body: None
    assert parley(*command).status == 0
    assert file.count() == 65


def test_nineteen_failures_and_a_success_do_not(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    server.answer = lambda nth, body: fault(nth, body) if nth % 27 < 19 else None  # 1 call a failed unit, 8 a done one
    file = run_file("a.sqlite")

    result = parley(*QUICK, *FIVE, "--no-blind", "--identities", "gender", "--model", server.model())

    assert result.status == 1
    assert len(result.complaints) == 1
    assert "62 units failed, the first with" in result.complaints[0]
    assert (file.count(), file.count("failed"), file.count("planned")) == (3, 62, 0)


# The user's own study


def test_a_users_own_study_is_run_recorded_and_resumed(parley: Callable[..., Any], place: Path, run_file: Any) -> None:
    (place / "panel.py").write_text(DRINKS)
    file = run_file("panel.sqlite")

    stopped = parley(*PANEL, "--budget-calls", "5")

    assert stopped.status == 1
    assert file.done() == {"tea", "coffee"}

    assert parley(*PANEL).status == 0
    assert file.count() == 5
    assert file.rows("SELECT seq, speaker, role, text FROM transcript WHERE unit = 'tea'")[0] == (
        (0, "user", "narrator", "What is good about tea?")
    )
    assert file.rows("SELECT unit, judge, metric, value FROM verdicts ORDER BY unit") == [
        (unit, "Ben", "length", float(len(text)))
        for unit, text in file.rows("SELECT unit, text FROM transcript WHERE speaker = 'Ben' ORDER BY unit")
    ]
    file.check()
    shown = parley("show", "panel.sqlite", "milk")
    assert shown.status == 0
    assert "What is good about milk?" in shown.out


def test_its_fields_are_flags(parley: Callable[..., Any], place: Path, run_file: Any) -> None:
    (place / "panel.py").write_text(DRINKS)
    assert "--topics" in parley("run", "panel.py:Panel", "--help").out

    assert parley(*PANEL, "--topics", "cider,mead").status == 0

    assert run_file("panel.sqlite").done() == {"cider", "mead"}


def test_its_file_may_have_any_name(parley: Callable[..., Any], place: Path) -> None:
    (place / "analysis.py").write_text("from parley.judging.malibu.study import Malibu\n\n\nclass Own(Malibu): ...\n")

    result = parley("run", "analysis.py:Own", *QUICK[2:], "--model", "sim/judge", "--report")

    assert result.status == 0, result.err
    assert "Do scores depend on the identity?" in result.out


def test_a_fault_in_its_code_fails_only_its_unit(parley: Callable[..., Any], place: Path, run_file: Any) -> None:
    (place / "panel.py").write_text(DRINKS)

    result = parley(*PANEL, "--topics", "tea,lava,milk")

    assert result.status == 1
    assert result.complaints == [
        "parley: 1 unit failed with: ZeroDivisionError: nobody drinks lava",
    ]
    assert "Traceback" not in result.err
    assert run_file("panel.sqlite").done() == {"tea", "milk"}
    run_file("panel.sqlite").check()


def test_two_units_with_the_same_id_are_refused(parley: Callable[..., Any], place: Path) -> None:
    (place / "panel.py").write_text(DRINKS)

    result = parley(*PANEL, "--topics", "tea,milk,tea")

    assert result.status == 1
    assert result.err.count("\n") == 1
    assert result.err.startswith("parley: the study planned two units with the same id")
    assert list(place.glob("panel.sqlite*")) == [], "no incomplete file is left"


# From Python


def test_a_run_from_python(server: Any, run_file: Any) -> None:
    options = library.Options(budget_calls=20, concurrency=1)
    model = server.model()

    cut = library.run("malibu", suite="tiny", model=model, options=options, out="a.sqlite", **ONE_CELL)

    assert not cut.complete
    assert cut.stopped == "the budget of 20 calls is spent"
    assert (cut.progress.done, cut.progress.total) == (2, 9)

    result = library.run("malibu", suite="tiny", model=model, out="a.sqlite", **ONE_CELL)

    assert result.complete
    assert result.stopped is None
    assert result.first_error is None
    assert (result.progress.done, result.progress.total, result.progress.failed) == (9, 9, 0)
    assert (result.progress.calls, result.progress.cached) == (72 - 16, 4)
    assert run_file("a.sqlite").count() == 9


def test_python_gets_the_same_errors_as_exceptions_and_can_use_the_file_again() -> None:
    settings = {"suite": "tiny", "model": "sim/judge", "out": "a.sqlite", **ONE_CELL}
    with pytest.raises(ConfigError, match="unknown key 'round'"):
        library.run("malibu", **settings, round=3)
    library.run("malibu", **settings)
    with pytest.raises(ParleyError, match="rounds: 2 in the file, 3 requested") as refused:
        library.run("malibu", **settings, rounds=3)
    assert library.run("malibu", **settings).complete, refused.value


async def test_a_run_in_a_notebook_is_awaited() -> None:
    with pytest.raises(ConfigError, match=r"await parley\.run_async"):
        library.run("malibu", suite="tiny", model="sim/judge", out="a.sqlite", **ONE_CELL)
    assert (await library.run_async("malibu", suite="tiny", model="sim/judge", out="a.sqlite")).complete


# The reply cache


def test_replies_of_abandoned_units_come_from_the_cache(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    command = (*QUICK, "--concurrency", "9", "--model", server.model())
    assert parley(*command, "--budget-calls", "30").status == 1
    file = run_file("a.sqlite")
    stored = file.one("SELECT count(*) FROM calls")

    result = parley(*command, "--json")

    assert result.status == 0
    assert len(server.asked) == 72
    assert result.json["cached"] == 30 - stored > 0
    assert file.one("SELECT count(*) FROM calls WHERE cached") == 30 - stored
    assert file.rows("SELECT DISTINCT cost, latency, attempts FROM calls WHERE cached") == [(0.0, 0.0, 0)]

    assert parley(*QUICK, "--no-cache", "--out", "b.sqlite", "--model", server.model()).status == 0
    assert run_file("b.sqlite").story() == file.story()


def test_without_the_cache_a_resumed_run_has_its_own_replies_and_another_run_asks_again(
    parley: Callable[..., Any], server: Any, run_file: Any, place: Path
) -> None:
    command = (*QUICK, "--no-cache", "--model", server.model())
    assert parley(*command, "--budget-calls", "20").status == 1

    assert parley(*command).status == 0

    assert len(server.asked) == 72
    assert run_file("a.sqlite").one("SELECT count(*) FROM calls WHERE cached") == 4
    assert not (place / "home" / "replies.sqlite").exists()
    assert parley(*command, "--out", "b.sqlite").status == 0
    assert len(server.asked) == 2 * 72


def test_repeats_never_share_a_reply(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    assert parley(*QUICK, "--repeats", "2", "--phases", "1", "--model", server.model()).status == 0

    assert len(server.asked) == 2 * 6 * 8
    assert len({body["seed"] for body in server.asked}) == len(server.asked)
