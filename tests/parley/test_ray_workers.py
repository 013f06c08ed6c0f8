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
NOISY = [word for word in TINY_PANEL if word != "--quiet"]


async def test_a_worker_tells_and_asks_and_gets_answers_and_errors():
    line = Line()
    cache, budget = RunsCache(line), RunsBudget(line)
    cache.put_text(b"1", "sim/m", "one")
    questions = asyncio.gather(cache.find(b"1", str), cache.find(b"2", int), budget.take_call(), return_exceptions=True)
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
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await line.ask("take_call")
    (question,) = await line.listen([])
    assert question.number is not None
    assert await line.listen([(question.number, None)]) == [], "the unit that asked has been abandoned"


@pytest.mark.parametrize(("installed", "cores"), [(True, 2), (False, 2), (False, 1)])
def test_a_core_that_is_busy_all_the_time_says_once_what_to_install(parley, monkeypatch, installed, cores):
    settings = {"WORTH_SECONDS": 0.0, "WATCH_SECONDS": 0.1, "TICK_SECONDS": 0.05, "BUSY": 0.01}
    for name, value in settings.items():
        monkeypatch.setattr(engine, name, value)
    monkeypatch.setattr(job.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(job, "find_spec", lambda name: installed or None)
    result = parley(*NOISY, "--repeats", "6", "--model", "sim/judge", "--out", "a.sqlite")
    assert result.status == 0
    install = "" if installed else " (pip install 'parley-autogen[ray]')"
    assert result.err.count(f"one core is busy: use --executor ray{install}\n") == (cores > 1), result.err


def test_a_run_that_waits_for_replies_is_not_busy(parley, server, monkeypatch):
    monkeypatch.setattr(engine, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(engine, "WATCH_SECONDS", 0.1)
    server.delay = 0.3
    result = parley(*NOISY, "--model", server.model(), "--concurrency", "9", "--out", "a.sqlite")
    assert (result.status, "one core" in result.err) == (0, False)


def test_a_study_is_sent_as_text_with_all_its_settings_and_no_key(place, monkeypatch, server):
    (place / "own.py").write_text(OWN)
    study = make_study("own.py:Own", {"suite": "tiny", "model": ["sim/judge"]})
    spec = StudySpec.of(study, "own.py:Own")
    (place / "own.py").unlink()
    assert [unit.id for unit in spec.make().plan()] == [unit.id for unit in study.plan()]
    monkeypatch.setenv("PARLEY_SERVER_KEY", "planted-key")
    keyed = StudySpec.of(make_study("malibu", {"suite": "tiny", "model": [server.model()]}), "malibu")
    assert "planted-key" not in repr(keyed)
    rows = [{"prompt": {"text": f"Text {n}", "toxicity": n / 10}, "challenging": False} for n in range(10)]
    (place / "rtp.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"data": "rtp.jsonl", "prompts": 2, "model": ["sim/m"], "measure": "none"}
    again = StudySpec.of(make_study("stardtox", settings), "stardtox").make()
    assert again.config.measure == "none", "which a run file leaves out"
