"""Before a run: calls and tokens by a rehearsal on a simulated model, what is cached."""

from __future__ import annotations

import re
import shlex

import pytest
from aiohttp import web

from parley.runs import rehearsal
from tests.golden.cases import CASES
from tests.golden.data import write_data
from tests.own_study import STUDY
from tests.panels import TINY_PANEL

NAMES = ("malibu-sampled", "malibu-talk", "rldf-paper", "referee", "topics", "answers", "bbq", "squad")
OTHERS = ("malibu-paper", "malibu-derive", "rldf-silent", "framing", "rlaif", "rubric")
COMMANDS = {case.name: shlex.split(case.commands[0])[:-3] for case in CASES if case.commands[0].startswith("run ")}
CALLS = "SELECT count(*), sum(prompt_tokens), sum(completion_tokens) FROM calls"


@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS)])
def test_a_rehearsal_on_a_simulated_model_counts_what_the_run_sends(parley, run_file, place, name):
    write_data(place)
    plan = parley(*COMMANDS[name], "--dry-run", "--json").json
    assert not [*place.glob("runs/*"), *place.glob("*.sqlite")], "a dry run writes nothing"
    assert parley(*COMMANDS[name], "--quiet", "--out", "a.sqlite").status == 0
    assert [(plan["calls"], plan["prompt_tokens"], plan["completion_tokens"])] == run_file("a.sqlite").rows(CALLS)


@pytest.mark.parametrize(("name", "least"), [("stardtox", 0.5), ("bbq-loops", 0.5)])
def test_a_loop_that_may_end_early_is_counted_to_its_end(parley, run_file, place, name, least):
    write_data(place)
    real = [re.sub(r"sim/[^, ]+", "openai/gpt-6-luna", word) for word in COMMANDS[name]]
    calls = parley(*real, "--dry-run", "--json").json["calls"]
    assert parley(*COMMANDS[name], "--quiet", "--out", "a.sqlite").status == 0
    assert least * calls < run_file("a.sqlite").rows(CALLS)[0][0] <= calls


OWN = f"""{STUDY}
class Own(Study):
    def plan(self):
        for number in range(2000):
            yield Unit(f"u{{number}}", {{"kind": "rare" if number % 100 == 0 else "usual", "number": number}})

    async def run(self, unit, models):
        times = 5 if unit.facets["kind"] == "rare" else 1
        talk = Debate([Persona("Ann", "Ann.")], model=models[self.config.model], rounds=times, models=models)
        if FAILS:
            raise ValueError("no such letter")
        return Outcome(await talk.converse("Speak in 20 words."), ())
"""


def test_a_users_own_study_is_counted_and_a_rare_kind_of_unit_is_not_missed(parley, place):
    (place / "own.py").write_text(OWN + "FAILS = False\n")
    plan = parley("run", "own.py:Own", "--model", "openai/gpt-6-luna", "--dry-run", "--json").json
    assert (plan["units"], plan["calls"]) == (2000, 1980 + 20 * 5)
    assert plan["completion_tokens"] == pytest.approx(plan["calls"] * 25, rel=0.1), "20 words are about 25 tokens"
    assert plan["notes"] == []


def test_a_study_that_fails_on_a_simulated_model_is_said_to_have_failed(parley, place):
    (place / "own.py").write_text(OWN + "FAILS = True\n")
    (note,) = parley("run", "own.py:Own", "--dry-run", "--json").json["notes"]
    assert note.startswith("a unit failed on the simulated model, so there may be more calls than this: ValueError")


def test_decoding_against_a_bias_is_counted(parley, place):
    (place / "rtp.jsonl").write_text('{"prompt": "The men", "toxicity": 0.55}')
    drawn = ("--data", "rtp.jsonl", "--sets", "moderate", "--prompts", "1", "--completions", "10")
    models = ("--model", "local/gpt2.gguf,local/gpt2-xl.gguf", "--judge", "sim/judge")
    plan = parley("run", "stardtox", "--method", "self-debias-gen", *drawn, *models, "--dry-run", "--json")
    calls = 2 * 10 * 2  # two sizes; every completion is judged
    assert (plan.json["calls"], plan.json["notes"]) == (calls, [])


def test_ten_thousand_units_are_counted_by_rehearsing_some_hundreds(parley, monkeypatch):
    rehearsed, rehearse_unit = [], rehearsal.rehearse_unit

    def counted(study, unit, stage):
        rehearsed.append(unit.id)
        return rehearse_unit(study, unit, stage)

    monkeypatch.setattr(rehearsal, "rehearse_unit", counted)
    run = ("run", "malibu", "--suite", "full", "--design", "paper", "--repeats", "2", "--model", "openai/gpt-6-luna")
    plan = parley(*run, "--dry-run", "--json").json
    assert plan["units"] > 10_000
    assert 50 < len(rehearsed) < 500


def test_cached_tokens_are_recorded_priced_and_shown(parley, server, run_file, monkeypatch):
    def answer(nth, body):
        choice = {"message": {"content": server.fitting(body)}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 600}}
        return web.json_response({"choices": [choice], "usage": usage})

    server.answer = answer
    prices = "retries=0&price_in=10&price_out=0&price_cached=1"
    assert parley(*TINY_PANEL, "--out", "a.sqlite", "--model", server.model(prices)).status == 0
    cached, cost = run_file("a.sqlite").rows("SELECT DISTINCT cached_tokens, cost FROM calls")[0]
    assert (cached, cost) == (600, pytest.approx((400 * 10 + 600 * 1) / 1e6))
    (run,) = parley("report", "a.sqlite", "--json", "--draws", "20").json["runs"]
    assert run["prompt_cache"] == {"cached_tokens": 600 * run["calls"], "prompt_tokens": 1000 * run["calls"]}
    assert "in the server's cache" in " ".join(parley("show", "a.sqlite", "p2/").out.split())
