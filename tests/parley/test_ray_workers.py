"""What Ray's workers need, without Ray: the study's spec, the line to the run's process; and when to use Ray."""

from __future__ import annotations

import asyncio
import json

import pytest

from parley.agents import BudgetSpent
from parley.runs import engine, job
from parley.runs.executors.worker import Line, RunsBudget, RunsCache, StudySpec
from parley.runs.job import make_study
from parley.runs.rows import Tally
from tests.panels import TINY_PANEL

OWN = "from parley.judging.malibu.study import Malibu\n\n\nclass Own(Malibu):\n    name = 'own'\n"


def test_a_worker_tells_and_asks_and_gets_answers_and_errors():
    async def talk():
        line = Line()
        cache, budget = RunsCache(line), RunsBudget(line)
        cache.put_text(b"1", "sim/m", "one")
        questions = asyncio.gather(
            cache.find(b"1", str), cache.find(b"2", int), budget.take_call(), return_exceptions=True
        )
        said = await line.listen([])
        assert [(kind, arguments) for kind, arguments, _ in said] == [
            ("put_text", (b"1", "sim/m", "one")), ("find", (b"1",)), ("find", (b"2",)), ("take_call", ())
        ]  # fmt: skip
        line.tally.calls += 1
        answers = zip([number for *_, number in said[1:]], ("one", "no number", BudgetSpent("spent")), strict=True)
        assert await line.listen(answers) == [("count", (Tally(calls=1),), None)]
        found, unreadable, refused = await questions
        assert (found, unreadable) == ("one", None)
        assert isinstance(refused, BudgetSpent)

    asyncio.run(talk())


def test_the_answer_to_a_question_of_an_abandoned_unit_is_ignored():
    async def talk():
        line = Line()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await line.ask("take_call")
        (question,) = await line.listen([])
        assert question.number is not None
        assert await line.listen([(question.number, None)]) == []

    asyncio.run(talk())


@pytest.mark.parametrize(("installed", "cores"), [(True, 2), (False, 2), (False, 1)])
def test_a_core_that_is_busy_all_the_time_says_once_what_to_install(parley, monkeypatch, installed, cores):
    monkeypatch.setattr(engine, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(engine, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(engine, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(engine, "BUSY", 0.01)
    monkeypatch.setattr(job.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(job, "find_spec", lambda name: installed or None)
    noisy = [part for part in TINY_PANEL if part != "--quiet"]
    result = parley(*noisy, "--repeats", "6", "--model", "sim/judge", "--out", "a.sqlite")
    assert result.status == 0
    install = "" if installed else " (pip install 'parley-autogen[ray]')"
    said = f"one core is busy: use --executor ray{install}\n"
    assert result.err.count(said) == (cores > 1), result.err


def test_a_run_that_waits_for_replies_is_not_busy(parley, server, monkeypatch):
    monkeypatch.setattr(engine, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(engine, "WATCH_SECONDS", 0.1)
    server.delay = 0.3
    noisy = [part for part in TINY_PANEL if part != "--quiet"]
    result = parley(*noisy, "--model", server.model(), "--concurrency", "9", "--out", "a.sqlite")
    assert result.status == 0
    assert "one core" not in result.err


# The study's spec


def test_a_users_own_study_is_sent_as_text(place):
    (place / "own.py").write_text(OWN)
    study = make_study("own.py:Own", {"suite": "tiny", "model": ["sim/judge"]})
    spec = StudySpec.of(study, "own.py:Own")
    (place / "own.py").unlink()

    again = spec.make()

    assert [unit.id for unit in again.plan()] == [unit.id for unit in study.plan()]


def test_no_key_is_in_a_study_spec(place, monkeypatch, server):
    monkeypatch.setenv("PARLEY_SERVER_KEY", "planted-key")
    study = make_study("malibu", {"suite": "tiny", "model": [server.model()]})
    assert "planted-key" not in repr(StudySpec.of(study, "malibu"))


def test_a_spec_has_the_settings_that_a_run_file_leaves_out(place):
    rows = [{"prompt": {"text": f"Text {n}", "toxicity": n / 10}, "challenging": False} for n in range(10)]
    (place / "rtp.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"data": "rtp.jsonl", "prompts": 2, "model": ["sim/m"], "measure": "none"}
    again = StudySpec.of(make_study("stardtox", settings), "stardtox").make()
    assert again.config.measure == "none"  # type: ignore[attr-defined]
