"""Servers that fail permanently during a run: the run stops with one line, and no finished unit is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.chaos.faults import FaultServer
from tests.chaos.studies import own_study
from tests.conftest import File

HALF = 20


def answer(status: int, **error: str) -> web.Response:
    return web.json_response({"error": error}, status=status)


FAILURES: dict[str, tuple[Callable[[], web.Response], str]] = {
    "no quota left": (
        lambda: answer(429, code="insufficient_quota", message="You exceeded your current quota"),
        "stopped: server/chaos: {address} answered 429, the account has no credit left: "
        "You exceeded your current quota",
    ),
    "no money left": (
        lambda: answer(402, message="Insufficient Balance"),
        "stopped: server/chaos: {address} answered 402, the account has no credit left: Insufficient Balance",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_server_that_fails_during_the_run(
    faulty: FaultServer, place: Path, parley: Callable[..., Any], failure: str
) -> None:
    own_study(place)
    make, line = FAILURES[failure]
    command = ("run", "own.py:Own", "--size", "60", "--model", faulty.model(), "--quiet", "--out", "a.sqlite")

    def override(body: Mapping[str, Any]) -> web.Response | None:
        return make() if faulty.requests > HALF else None

    faulty.override = override
    result = parley(*command, "--concurrency", "1")

    assert result.status == 1
    assert result.complaints[-1] == f"parley: {line.format(address=f'http://127.0.0.1:{faulty.port}/v1')}"
    assert "run the same command again to resume" in result.err
    assert faulty.requests == HALF + 1, "requests that must fail are not repeated"
    file = File("a.sqlite")
    assert file.count() == HALF // 2
    file.check()

    faulty.override = lambda body: None
    assert parley(*command).status == 0
    assert faulty.total() == 120, "replies that were received are not requested again"


def test_a_server_without_tls(faulty: FaultServer, place: Path, parley: Callable[..., Any]) -> None:
    own_study(place)
    model = faulty.model("retries=0").replace("http://", "https://")

    result = parley("run", "own.py:Own", "--size", "4", "--model", model, "--quiet", "--out", "a.sqlite")

    assert result.status == 1
    assert len(result.complaints) == 1
    assert "stopped: server/chaos: no encrypted connection to https://127.0.0.1:" in result.complaints[0]
    assert result.complaints[0].count("127.0.0.1") == 1, "the address is said once"
    assert result.complaints[0].endswith("; write http:// if the server has no TLS")
    assert "Traceback" not in result.err
    assert faulty.requests == 0
