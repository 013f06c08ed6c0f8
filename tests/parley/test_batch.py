"""A run with OpenAI's batch endpoint: half the price, the same results, and no batch is ever sent twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.agents.models.prices import Price
from tests.panels import RUN_PANEL, TINY_PANEL

KEY = "sk-planted-0123456789abcdef"
JUDGE = '[[persona]]\nname = "Judge"\nabout = "You are a fair judge."\n'
RUN = (*TINY_PANEL, "--phases", "1", "--rounds", "1", "--judges", "one.toml")
UNITS = 6
PRICES = "retries=1&price_in=1000&price_out=4000"
COST = UNITS * (100 * 1000 + 20 * 4000) / 1e6
"""The server reports 100 tokens in, 20 out."""


@pytest.fixture(autouse=True)
def _one_judge(place: Path) -> None:
    (place / "one.toml").write_text(JUDGE)


def test_units_of_one_call_are_one_batch_at_half_the_price(
    parley: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    model = batch_server.model(PRICES)
    assert parley(*RUN, "--model", model, "--no-cache", "--out", "plain.sqlite").status == 0

    result = parley(*RUN, "--model", model, "--out", "a.sqlite", "--executor", "batch", "--json")

    assert result.status == 0, result.err
    assert [len(lines) for name, lines in batch_server.files.items() if name == "file-0"] == [UNITS]
    assert len(batch_server.batches) == 1
    file, plain = run_file("a.sqlite"), run_file("plain.sqlite")
    assert file.story() == plain.story()
    file.check()
    assert plain.one("SELECT sum(cost) FROM calls") == pytest.approx(COST)
    assert file.one("SELECT sum(cost) FROM calls") == result.json["cost"] == pytest.approx(COST / 2)
    lines = batch_server.files["file-0"]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert len({line["custom_id"] for line in lines}) == UNITS


def test_a_dry_run_knows_the_price(parley: Callable[..., Any], batch_server: Any) -> None:
    command = (*RUN, "--model", batch_server.model(PRICES), "--dry-run", "--json")
    immediate, batch = parley(*command).json, parley(*command, "--executor", "batch").json
    assert batch["cost"] == pytest.approx(immediate["cost"] / 2)
    assert batch_server.batches == {}


def test_a_batch_does_not_count_on_prompt_caches(parley: Callable[..., Any], batch_server: Any) -> None:
    """Its calls are hours apart, and cached tokens are not cheaper in every batch: no estimate is too low."""
    command = (
        *RUN_PANEL,
        "--suite",
        "tiny",
        "--model",
        "openai/gpt-4o-mini",
        "--dry-run",
        "--json",
    )
    immediate, batch = parley(*command).json, parley(*command, "--executor", "batch").json
    assert immediate["cost_if_cached"] < immediate["cost"]
    assert batch["cached_tokens"] == 0
    assert batch["cost_if_cached"] == batch["cost"] == pytest.approx(immediate["cost"] / 2)
    price = Price(0.15, 0.6, cached=0.075).in_batches()
    assert price.cost(1000, 100, cached_tokens=900) == pytest.approx((1000 * 0.15 + 100 * 0.6) / 2e6)


def test_a_run_killed_while_waiting_fetches_the_same_batch(
    parley: Callable[..., Any], start: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    batch_server.slow = True
    command = (*RUN, "--model", batch_server.model(), "--out", "a.sqlite", "--executor", "batch", "--no-cache")
    file = run_file("a.sqlite")
    process = start(*command)
    process.wait_for(
        lambda: file.starts() == 1 and file.rows("SELECT 1 FROM sqlite_master WHERE name = 'batches'") != []
    )
    process.wait_for(lambda: file.rows("SELECT batch FROM batches") == [("batch_0",)])
    process.kill()
    assert file.count() == 0
    batch_server.slow = False

    assert parley(*command).status == 0

    assert len(batch_server.batches) == 1
    assert file.count() == UNITS
    file.check()


def test_a_run_killed_before_the_batch_was_confirmed_finds_it(
    parley: Callable[..., Any], start: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    batch_server.deaf = True
    command = (*RUN, "--model", batch_server.model(), "--out", "a.sqlite", "--executor", "batch")
    process = start(*command)
    process.wait_for(lambda: len(batch_server.batches) == 1)
    process.kill()
    assert run_file("a.sqlite").rows("SELECT batch FROM batches") == [(None,)]
    batch_server.deaf = False

    assert parley(*command).status == 0

    assert len(batch_server.batches) == 1
    assert run_file("a.sqlite").count() == UNITS


def test_a_batch_whose_creation_returned_500_is_not_created_again(
    parley: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    batch_server.broken = True
    command = (*RUN, "--model", batch_server.model("retries=2"), "--out", "a.sqlite", "--executor", "batch")

    assert parley(*command).status == 0

    assert len(batch_server.batches) == 1
    assert run_file("a.sqlite").count() == UNITS


def test_ctrl_c_does_not_wait_for_a_day(
    parley: Callable[..., Any], start: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    batch_server.slow = True
    command = (*RUN, "--model", batch_server.model(), "--out", "a.sqlite", "--executor", "batch")
    process = start(*command)
    process.wait_for(lambda: any("request_counts" in batch for batch in list(batch_server.batches.values())))

    process.press_ctrl_c()
    ended = process.end()

    assert ended.status == 130
    assert "the same command fetches them" in ended.err
    assert "Traceback" not in ended.err
    batch_server.slow = False
    assert parley(*command).status == 0
    assert len(batch_server.batches) == 1


def test_a_line_with_an_error_fails_its_unit_and_is_sent_again(
    parley: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    expired = {"response": None, "error": {"code": "batch_expired", "message": "This request could not be executed."}}
    refused = {"response": {"status_code": 400, "body": {"error": {"message": "bad words"}}}, "error": None}
    batch_server.error = lambda nth, line: {1: expired, 4: refused}.get(nth)
    command = (*RUN, "--model", batch_server.model(), "--out", "a.sqlite", "--executor", "batch")
    file = run_file("a.sqlite")

    result = parley(*command)

    assert result.status == 1
    errors = {error for (error,) in file.rows("SELECT error FROM units WHERE status = 'failed'")}
    assert errors == {
        "server/judge: not answered in the batch: This request could not be executed.",
        "server/judge: the batch answered 400: bad words",
    }
    assert file.count() == UNITS - 2

    batch_server.error = lambda nth, line: None
    assert parley(*command).status == 0
    assert [len(batch_server.files[batch["input_file_id"]]) for batch in batch_server.batches.values()] == [UNITS, 2]
    assert file.count() == UNITS
    file.check()


def test_a_refused_batch_says_why_and_can_be_sent_again(
    parley: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    batch_server.refuses = True
    command = (*RUN, "--model", batch_server.model(), "--out", "a.sqlite", "--executor", "batch")

    result = parley(*command)

    assert result.status == 1
    assert "the batch batch_0 was refused: the queue is full" in result.err
    batch_server.refuses = False
    assert parley(*command).status == 0
    assert run_file("a.sqlite").count() == UNITS


@pytest.mark.parametrize(
    "line",
    [
        {"response": 5},
        {"response": {"status_code": "many", "body": {}}},
        {"response": {"status_code": 200, "body": {"choices": [{}]}}},
        {"response": None, "error": ["no"]},
        {"response": None, "error": {"message": "KEY is not allowed"}},
        {"response": {"status_code": 400, "body": {"error": {"message": "KEY is not allowed"}}}},
    ],
    ids=str,
)
def test_invalid_lines_fail_their_units_and_reveal_no_key(
    parley: Callable[..., Any], batch_server: Any, run_file: Any, monkeypatch: pytest.MonkeyPatch, line: dict[str, Any]
) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    batch_server.error = lambda nth, asked: json.loads(json.dumps(line).replace("KEY", KEY))

    result = parley(*RUN, "--model", batch_server.model(), "--out", "a.sqlite", "--executor", "batch")

    assert result.status == 1
    assert len(result.complaints) == 1
    assert run_file("a.sqlite").one("SELECT count(*) FROM units WHERE status = 'failed'") == UNITS
    assert KEY not in result.out + result.err
    assert KEY.encode() not in Path("a.sqlite").read_bytes()


def test_a_file_of_answers_that_is_not_complete_is_read_again(
    parley: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    batch_server.torn = 2

    result = parley(*RUN, "--model", batch_server.model("retries=3"), "--out", "a.sqlite", "--executor", "batch")

    assert result.status == 0, result.err
    assert len(batch_server.batches) == 1, "what could not be read is not paid for again"
    assert run_file("a.sqlite").one("SELECT count(*) FROM units WHERE status = 'done'") == UNITS


def test_conversations_take_one_batch_per_turn(parley: Callable[..., Any], batch_server: Any, run_file: Any) -> None:
    run = (*TINY_PANEL, "--rounds", "2", "--judges", "one.toml")
    model = batch_server.model()
    assert parley(*run, "--model", model, "--no-cache", "--out", "plain.sqlite").status == 0

    assert parley(*run, "--model", model, "--no-cache", "--out", "a.sqlite", "--executor", "batch").status == 0

    assert len(batch_server.batches) == 2
    assert run_file("a.sqlite").story() == run_file("plain.sqlite").story()


def test_a_batch_fits_into_the_budget_or_is_not_sent(
    parley: Callable[..., Any], batch_server: Any, run_file: Any
) -> None:
    command = (*RUN, "--model", batch_server.model(PRICES), "--out", "a.sqlite", "--executor", "batch")

    result = parley(*command, "--budget-cost", "2.5")

    assert result.status == 1
    assert "the budget of $2.5 has no room for another request" in result.err
    sent = sum(len(batch_server.files[batch["input_file_id"]]) for batch in batch_server.batches.values())
    assert 0 < sent < UNITS
    assert run_file("a.sqlite").count() == sent
    assert run_file("a.sqlite").one("SELECT sum(cost) FROM calls") <= 2.5


def test_models_without_batches_are_refused_with_one_line(parley: Callable[..., Any]) -> None:
    result = parley(*RUN, "--model", "sim/judge", "--executor", "batch")
    assert result.status == 2
    assert result.complaints == ["parley: --executor batch needs a provider with batches, but sim/judge has none"]
