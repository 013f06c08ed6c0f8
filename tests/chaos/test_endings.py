"""Servers that stop for good half-way: the run stops at once with one line, and what was finished is kept."""

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


ENDINGS: dict[str, tuple[Callable[[], web.Response], str, int]] = {
    "no quota left": (
        lambda: answer(429, code="insufficient_quota", message="You exceeded your current quota"),
        "stopped: server/chaos: {at} answered 429, the account has nothing left: You exceeded your current quota",
        1,
    ),
    "no money left": (
        lambda: answer(402, message="Insufficient Balance"),
        "stopped: server/chaos: {at} answered 402, the account has nothing left: Insufficient Balance",
        1,
    ),
    "no such model any more": (
        lambda: answer(404, message="The model `chaos` does not exist"),
        "stopped: 20 units failed in a row, the last with: "
        "server/chaos: {at} answered 404: The model `chaos` does not exist",
        20,
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_server_that_ends_half_way(faulty: FaultServer, place: Path, parley: Callable[..., Any], ending: str) -> None:
    own_study(place)
    make, line, asked_in_vain = ENDINGS[ending]
    command = ("run", "own.py:Own", "--size", "60", "--model", faulty.model(), "--quiet", "--out", "a.sqlite")

    def instead(body: Mapping[str, Any]) -> web.Response | None:
        return make() if faulty.asked > HALF else None

    faulty.instead = instead
    told = parley(*command, "--concurrency", "1")

    assert told.status == 1
    assert told.complaints[-1] == f"parley: {line.format(at=f'http://127.0.0.1:{faulty.port}/v1')}"
    assert "run the same command again to resume" in told.err
    assert faulty.asked == HALF + asked_in_vain, "nobody is asked again in vain"
    file = File("a.sqlite")
    assert file.count() == HALF // 2
    file.check()

    faulty.instead = lambda body: None
    assert parley(*command).status == 0
    assert faulty.total() == 120, "what was answered is not asked again"


def test_a_server_without_tls(faulty: FaultServer, place: Path, parley: Callable[..., Any]) -> None:
    own_study(place)
    model = faulty.model("retries=0").replace("http://", "https://")

    told = parley("run", "own.py:Own", "--size", "4", "--model", model, "--quiet", "--out", "a.sqlite")

    assert told.status == 1
    assert len(told.complaints) == 1
    assert "4 units failed, the first with: server/chaos: https://127.0.0.1:" in told.complaints[0]
    assert "ssl" in told.complaints[0].lower()
    assert "Traceback" not in told.err
    assert faulty.asked == 0
