"""Runs with the batches of OpenAI, Anthropic and Google: half the price, the same results, no batch is sent twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ParleyError
from parley.agents.models.prices import Price
from parley.runs.executors.batch import BatchLog
from tests.panels import RUN_PANEL, TINY_PANEL
from tests.servers import BatchServer
from tests.vendors import anthropic, google
from tests.vendors.base import KEY

JUDGE = '[[persona]]\nname = "Judge"\nabout = "You are a fair judge."\n'
RUN = (*TINY_PANEL, "--phases", "1", "--rounds", "1", "--judges", "one.toml")
UNITS = 6
PRICES = "retries=1&price_in=1000&price_out=4000&price_cached=1000"


class OpenAI(BatchServer):
    """The batch server, as the stand-ins of other vendors are used."""

    provider, key_variable = "server", "PARLEY_SERVER_KEY"
    rejected = ()
    failing: dict[int, dict[str, Any]]

    def __init__(self, _: str) -> None:
        super().__init__()
        self.failing = {}
        self.error = lambda nth, line: self.failing.get(nth)

    def name(self, options: str = "retries=1") -> str:
        return self.model(options)

    def __enter__(self) -> OpenAI:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


BAD_WORDS = f"bad words {KEY}"
REFUSED: dict[str, dict[str, Any]] = {
    "server": {"response": {"status_code": 400, "body": {"error": {"message": BAD_WORDS}}}, "error": None},
    "anthropic": {
        "type": "errored",
        "error": {"type": "error", "error": {"type": "invalid_request_error", "message": BAD_WORDS}},
    },
    "google": {"error": {"code": 3, "message": BAD_WORDS}},
}
EXPIRED: dict[str, dict[str, Any]] = {
    "server": {"response": None, "error": {"code": "batch_expired", "message": "This request could not be executed."}},
    "anthropic": {"type": "expired"},
}
TOKENS_OUT = {"server": 20, "anthropic": 400, "google": 400}
"""The servers report 100 tokens in; the vendors' think, of which 380 tokens are."""


@pytest.fixture(params=[OpenAI, anthropic.Standin, google.Standin], ids=lambda standin: standin.provider)
def standin(request, place, monkeypatch, quick_batches):
    (place / "one.toml").write_text(JUDGE)
    monkeypatch.setenv(request.param.key_variable, KEY)
    with request.param("thinking") as running:
        yield running


only_openai = pytest.mark.parametrize("standin", [OpenAI], indirect=True, ids=["server"])


def command(standin: Any, options: str = "retries=1", file: str = "a.sqlite") -> tuple[str, ...]:
    return (*RUN, "--model", standin.name(options), "--out", file, "--executor", "batch", "--no-cache")


def sent(standin: Any) -> list[list[str]]:
    """The requests of every batch, without the names that batches give them."""
    if standin.provider == "anthropic":
        requests = [[line["params"] for line in lines] for lines in standin.batches.values()]
    elif standin.provider == "google":
        batches = [batch["inputConfig"]["requests"]["requests"] for batch in standin.batches.values()]
        requests = [[line["request"] for line in lines] for lines in batches]
    else:
        files = [standin.files[batch["input_file_id"]] for batch in standin.batches.values()]
        requests = [[line["body"] for line in lines] for lines in files]
    return [[json.dumps(request, sort_keys=True) for request in batch] for batch in requests]


def test_units_of_one_call_are_one_batch_at_half_the_price(parley, standin, run_file):
    plain = parley(*RUN, "--model", standin.name(PRICES), "--no-cache", "--out", "plain.sqlite")
    assert plain.status == 0, plain.err
    planned = parley(*command(standin, PRICES), "--dry-run", "--json").json
    assert standin.batches == {}
    result = parley(*command(standin, PRICES), "--json")
    assert result.status == 0, result.err
    assert ([len(requests) for requests in sent(standin)], list(standin.rejected)) == ([UNITS], [])
    file, before = run_file("a.sqlite"), run_file("plain.sqlite")
    assert file.story() == before.story()
    file.check()
    cost = UNITS * (100 * 1000 + TOKENS_OUT[standin.provider] * 4000) / 1e6
    assert before.one("SELECT sum(cost) FROM calls") == pytest.approx(cost)
    assert file.one("SELECT sum(cost) FROM calls") == result.json["cost"] == pytest.approx(cost / 2)
    at_once = parley(*RUN, "--model", standin.name(PRICES), "--dry-run", "--json").json
    assert planned["cost"] == pytest.approx(at_once["cost"] / 2)


def test_a_batch_does_not_count_on_prompt_caches(parley):
    """Its calls are hours apart, and cached tokens are not cheaper in every batch: no estimate is too low."""
    command = (*RUN_PANEL, "--suite", "tiny", "--model", "openai/gpt-4o-mini", "--dry-run", "--json")
    immediate, batch = parley(*command).json, parley(*command, "--executor", "batch").json
    assert immediate["cost_if_cached"] < immediate["cost"]
    assert batch["cached_tokens"] == 0
    assert batch["cost_if_cached"] == batch["cost"] == pytest.approx(immediate["cost"] / 2)
    price = Price(0.15, 0.6, cached=0.075).in_batches()
    assert price.cost(1000, 100, cached_tokens=900) == pytest.approx((1000 * 0.15 + 100 * 0.6) / 2e6)


def test_answers_that_are_not_complete_are_read_again(parley, standin, run_file):
    standin.torn = 2
    result = parley(*command(standin, "retries=3"))
    assert result.status == 0, result.err
    assert (standin.torn, len(standin.batches)) == (0, 1), "what could not be read is not paid for again"
    assert run_file("a.sqlite").count() == UNITS


def test_a_batch_that_was_not_confirmed_is_found(parley, standin, run_file, monkeypatch):
    """As after a kill between its creation and the provider's answer."""

    def fail(*_):
        raise ParleyError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(BatchLog, "confirm", fail)
        assert parley(*command(standin)).status == 1
    assert len(standin.batches) == 1
    assert run_file("a.sqlite").rows("SELECT batch FROM batches") == [(None,)]
    assert parley(*command(standin)).status == 0
    assert (len(standin.batches), run_file("a.sqlite").count()) == (1, UNITS)


@pytest.mark.parametrize("standin", [anthropic.Standin, google.Standin], indirect=True, ids=["anthropic", "google"])
def test_a_batch_that_was_not_created_is_sent_by_the_next_run(parley, standin, run_file):
    """Another batch of as many requests is not taken for it."""
    assert parley(*command(standin, file="other.sqlite")).status == 0
    standin.down = True
    assert parley(*command(standin)).status == 1
    assert run_file("a.sqlite").rows("SELECT batch FROM batches") == [(None,)]
    standin.down = False
    assert parley(*command(standin)).status == 0
    assert (len(standin.batches), run_file("a.sqlite").count()) == (2, UNITS)


def test_a_batch_whose_creation_returned_500_is_not_created_again(parley, standin, run_file):
    standin.broken = True
    assert parley(*command(standin, "retries=2")).status == 0
    assert (len(standin.batches), run_file("a.sqlite").count()) == (1, UNITS)


def test_a_refused_request_fails_its_unit_and_is_sent_again(parley, standin, run_file):
    """Requests expire one by one, Google's batches as a whole."""
    expired = EXPIRED.get(standin.provider)
    standin.failing = {1: REFUSED[standin.provider], **({4: expired} if expired else {})}
    result = parley(*command(standin))
    assert (result.status, len(result.complaints)) == (1, 1)
    assert "bad words ***" in result.err
    assert KEY not in result.out + result.err
    assert KEY.encode() not in Path("a.sqlite").read_bytes()
    again = len(standin.failing)
    assert run_file("a.sqlite").count() == UNITS - again
    standin.failing = {}
    standin.expired = standin.provider == "google"
    if standin.expired:
        assert parley(*command(standin)).status == 1
        standin.expired = False
    assert parley(*command(standin)).status == 0
    assert [len(requests) for requests in sent(standin)][-1] == again
    assert run_file("a.sqlite").count() == UNITS
    run_file("a.sqlite").check()


INVALID: list[dict[str, Any]] = [
    {"response": 5},
    {"response": {"status_code": "many", "body": {}}},
    {"response": {"status_code": 200, "body": {"choices": [{}]}}},
    {"response": None, "error": ["no"]},
    {"response": None, "error": {"message": f"{KEY} is not allowed"}},
    {"response": {"status_code": 400, "body": {"error": {"message": f"{KEY} is not allowed"}}}},
]


@only_openai
def test_invalid_lines_and_refused_batches_fail_their_units_and_reveal_no_key(parley, standin, run_file):
    standin.refuses = True
    assert "the batch batch_0 was refused: the queue is full" in parley(*command(standin)).err
    standin.refuses = False
    standin.failing = dict(enumerate(INVALID))
    result = parley(*command(standin))
    assert (result.status, len(result.complaints)) == (1, 1)
    assert run_file("a.sqlite").count("failed") == UNITS == len(INVALID)
    assert KEY not in result.out + result.err
    assert KEY.encode() not in Path("a.sqlite").read_bytes()


@only_openai
def test_conversations_take_one_batch_per_turn(parley, standin, run_file):
    two = ("--rounds", "2")
    assert parley(*RUN, *two, "--model", standin.name(), "--no-cache", "--out", "plain.sqlite").status == 0
    assert parley(*command(standin), *two).status == 0
    assert len(standin.batches) == 2
    assert run_file("a.sqlite").story() == run_file("plain.sqlite").story()


@only_openai
def test_a_batch_fits_into_the_budget_or_is_not_sent(parley, standin, run_file):
    result = parley(*command(standin, PRICES), "--budget-cost", "2.5")
    assert result.status == 1
    assert "the budget of $2.5 has no room for another request" in result.err
    requests = sum(map(len, sent(standin)))
    assert 0 < requests < UNITS
    assert run_file("a.sqlite").count() == requests
    assert run_file("a.sqlite").one("SELECT sum(cost) FROM calls") <= 2.5


def waiting(file: Any) -> bool:
    """A batch has been confirmed, and is waited for."""
    if file.starts() != 1 or not file.rows("SELECT 1 FROM sqlite_master WHERE name = 'batches'"):
        return False
    return any(batch for (batch,) in file.rows("SELECT batch FROM batches"))


@pytest.mark.parametrize("how", ["kill", "Ctrl-C"])
@only_openai
def test_a_run_stopped_while_waiting_fetches_the_same_batch(parley, start, standin, run_file, how):
    standin.slow = True
    file = run_file("a.sqlite")
    process = start(*command(standin))
    process.wait_for(lambda: waiting(file))
    if how == "kill":
        process.kill()
    else:
        process.press_ctrl_c()
        ended = process.end()
        assert (ended.status, "the same command fetches them" in ended.err) == (130, True)
        assert "Traceback" not in ended.err
    assert file.count() == 0
    standin.slow = False
    assert parley(*command(standin)).status == 0
    assert (len(standin.batches), file.count()) == (1, UNITS)
    file.check()
