"""What these tests share: an empty folder with a small suite in it, and a model's server on loopback whose replies a
test sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

import parley
from tests.panels import in_design, panel_study
from tests.servers import Server

SUITE = """
schema = 1
name = "mine"
version = "1"
[[scenario]]
id = "bakery"
domain = "baking"
text = "Bake bread {with care}."
stereotype = "none"
responses = ["Knead it twice.", "Wait for an hour."]
"""


@pytest.fixture(autouse=True)
def _begin_with_a_small_suite(place):
    (place / "mine.toml").write_text(SUITE)


@pytest.fixture
def planned():
    """A panel's plan for some settings."""
    return lambda **settings: list(panel_study(**settings).plan())


@pytest.fixture
def run_whole(run_file):
    """Run a study to its end, and open its file."""

    def run(study: str, **settings: Any) -> Any:
        assert parley.run(study, out="a.sqlite", **settings).complete
        return run_file("a.sqlite")

    return run


@pytest.fixture
def run_study(run_whole):
    """Run the study's panel on a simulated model, and query its run file."""

    def run(sql: str, **settings: Any) -> Any:
        settings = {"suite": "mine.toml", "identities": ["gender"], "model": "sim/judge", **settings}
        return run_whole("malibu", **in_design(settings)).rows(sql)

    return run


class Speaker:
    """A model on the server. `says(body)` gives the text of a reply, `finish(body)` why it ended."""

    def __init__(self, server: Server) -> None:
        self.asked = server.asked
        self.says: Callable[[dict[str, Any]], str] = lambda body: "So I think."
        self.finish: Callable[[dict[str, Any]], str] = lambda body: "stop"
        self._server = server
        server.answer = self._answer

    def _answer(self, nth: int, body: dict[str, Any]) -> web.Response:
        choice = {"index": 0, "message": {"role": "assistant", "content": self.says(body)}}
        usage = {"prompt_tokens": 100, "completion_tokens": 20}
        return web.json_response({"choices": [{**choice, "finish_reason": self.finish(body)}], "usage": usage})

    @property
    def talks(self) -> list[list[dict[str, str]]]:
        """The messages of each request."""
        return [body["messages"] for body in self.asked]

    def model(self, name: str = "speaker") -> str:
        return self._server.model(name=name)


@pytest.fixture
def speaker(server):
    return Speaker(server)
