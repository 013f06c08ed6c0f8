"""Runs with Anthropic's and Google's batches: half the price, the same results, and no batch is ever sent twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ParleyError
from parley.runs.executors.batch import BatchLog
from tests.panels import TINY_PANEL
from tests.vendors import anthropic, google
from tests.vendors.base import KEY

JUDGE = '[[persona]]\nname = "Judge"\nabout = "You are a fair judge."\n'
RUN = (*TINY_PANEL, "--phases", "1", "--rounds", "1", "--judges", "one.toml")
UNITS = 6
PRICES = "retries=1&price_in=1000&price_out=4000&price_cached=1000"
COST = UNITS * (100 * 1000 + 400 * 4000) / 1e6
"""The servers report 100 tokens in, 20 out and 380 of thinking."""
REFUSED = {
    "anthropic": {
        "type": "errored",
        "error": {"type": "error", "error": {"type": "invalid_request_error", "message": f"bad words {KEY}"}},
    },
    "google": {"error": {"code": 3, "message": f"bad words {KEY}"}},
}


@pytest.fixture(params=[anthropic.Standin, google.Standin], ids=lambda standin: standin.provider)
def standin(
    request: pytest.FixtureRequest, place: Path, monkeypatch: pytest.MonkeyPatch, quick_batches: None
) -> Iterator[Any]:
    (place / "one.toml").write_text(JUDGE)
    monkeypatch.setenv(request.param.key_variable, KEY)
    with request.param("thinking") as running:
        yield running


def command(standin: Any, options: str = "retries=1", file: str = "a.sqlite") -> tuple[str, ...]:
    return (*RUN, "--model", standin.name(options), "--out", file, "--executor", "batch", "--no-cache")


def test_units_of_one_call_are_one_batch_at_half_the_price(
    parley: Callable[..., Any], standin: Any, run_file: Any
) -> None:
    plain = parley(*RUN, "--model", standin.name(PRICES), "--no-cache", "--out", "plain.sqlite")
    assert plain.status == 0, plain.err

    result = parley(*command(standin, PRICES), "--json")

    assert result.status == 0, result.err
    assert (len(standin.batches), standin.rejected) == (1, [])
    assert run_file("a.sqlite").story() == run_file("plain.sqlite").story()
    assert run_file("plain.sqlite").one("SELECT sum(cost) FROM calls") == pytest.approx(COST)
    assert run_file("a.sqlite").one("SELECT sum(cost) FROM calls") == result.json["cost"] == pytest.approx(COST / 2)
    assert run_file("a.sqlite").one("SELECT sum(thought_tokens) FROM calls") == UNITS * 380


def test_answers_that_are_not_complete_are_read_again(parley: Callable[..., Any], standin: Any, run_file: Any) -> None:
    standin.torn = 2

    result = parley(*command(standin, "retries=3"))

    assert result.status == 0, result.err
    assert (standin.torn, len(standin.batches)) == (0, 1), "what could not be read is not paid for again"
    assert run_file("a.sqlite").count() == UNITS


@pytest.mark.nightly
def test_a_run_killed_while_waiting_fetches_the_same_batch(
    parley: Callable[..., Any], start: Callable[..., Any], standin: Any, run_file: Any
) -> None:
    standin.slow = True
    file = run_file("a.sqlite")
    process = start(*command(standin))
    process.wait_for(
        lambda: file.starts() == 1 and file.rows("SELECT 1 FROM sqlite_master WHERE name = 'batches'") != []
    )
    process.wait_for(lambda: [batch for (batch,) in file.rows("SELECT batch FROM batches") if batch])
    process.kill()
    assert file.count() == 0
    standin.slow = False

    assert parley(*command(standin)).status == 0

    assert (len(standin.batches), file.count()) == (1, UNITS)


def test_a_batch_that_was_not_confirmed_is_found(
    parley: Callable[..., Any], standin: Any, run_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between its creation and the provider's answer (`test_batch` has a real one)."""

    def fail(*_: object) -> None:
        raise ParleyError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(BatchLog, "confirm", fail)
        assert parley(*command(standin)).status == 1
    assert len(standin.batches) == 1
    assert run_file("a.sqlite").rows("SELECT batch FROM batches") == [(None,)]

    assert parley(*command(standin)).status == 0

    assert (len(standin.batches), run_file("a.sqlite").count()) == (1, UNITS)


def test_a_batch_that_was_not_created_is_sent_by_the_next_run(
    parley: Callable[..., Any], standin: Any, run_file: Any
) -> None:
    """Another batch of as many requests is not taken for it."""
    assert parley(*command(standin, file="other.sqlite")).status == 0
    standin.down = True
    assert parley(*command(standin)).status == 1
    assert run_file("a.sqlite").rows("SELECT batch FROM batches") == [(None,)]
    standin.down = False

    assert parley(*command(standin)).status == 0

    assert (len(standin.batches), run_file("a.sqlite").count()) == (2, UNITS)


def test_a_batch_whose_creation_returned_500_is_not_created_again(
    parley: Callable[..., Any], standin: Any, run_file: Any
) -> None:
    standin.broken = True

    assert parley(*command(standin, "retries=2")).status == 0

    assert (len(standin.batches), run_file("a.sqlite").count()) == (1, UNITS)


def test_a_refused_request_fails_its_unit_and_is_sent_again(
    parley: Callable[..., Any], standin: Any, run_file: Any
) -> None:
    standin.failing = {1: REFUSED[standin.provider]}

    result = parley(*command(standin))

    assert result.status == 1
    assert "bad words ***" in result.err
    assert KEY not in result.out + result.err
    assert run_file("a.sqlite").count() == UNITS - 1
    standin.failing = {}
    assert parley(*command(standin)).status == 0
    assert (len(standin.batches), run_file("a.sqlite").count()) == (2, UNITS)


def sent(standin: Any) -> list[list[str]]:
    """The requests of every batch, without the names that batches give them."""
    if standin.provider == "anthropic":
        return [[json.dumps(line["params"], sort_keys=True) for line in lines] for lines in standin.batches.values()]
    batches = [batch["inputConfig"]["requests"]["requests"] for batch in standin.batches.values()]
    return [[json.dumps(line["request"], sort_keys=True) for line in lines] for lines in batches]


def test_only_what_expired_is_sent_again(parley: Callable[..., Any], standin: Any, run_file: Any) -> None:
    """Anthropic's requests expire one by one, Google's batches as a whole."""
    expired = 2 if standin.provider == "anthropic" else UNITS
    standin.failing = {1: {"type": "expired"}, 4: {"type": "expired"}} if expired == 2 else {}
    standin.expired = True

    assert parley(*command(standin)).status == 1

    assert run_file("a.sqlite").count() == UNITS - expired
    standin.failing, standin.expired = {}, False
    assert parley(*command(standin)).status == 0
    assert [len(requests) for requests in sent(standin)] == [UNITS, expired]
    assert run_file("a.sqlite").count() == UNITS


@pytest.mark.nightly
def test_a_conversation_killed_at_its_second_turn_pays_for_each_request_once(
    parley: Callable[..., Any], start: Callable[..., Any], place: Path, standin: Any, run_file: Any
) -> None:
    (place / "one.toml").write_text(JUDGE + JUDGE.replace('"Judge"', '"Jury"'))
    two_rounds = (*command(standin), "--rounds", "2")
    process = start(*two_rounds)
    process.wait_for(lambda: len(standin.batches) == 2)
    process.kill()

    assert parley(*two_rounds).status == 0

    requests = [request for batch in sent(standin) for request in batch]
    assert len(requests) == run_file("a.sqlite").one("SELECT count(*) FROM calls") == 4 * UNITS
    run_file("a.sqlite").check()
