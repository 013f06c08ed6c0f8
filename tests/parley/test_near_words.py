"""Help where people look: words that are not commands, servers that do not run, units whose ids begin alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from parley.cli import COMMANDS, NEAR_WORDS
from tests.panels import TINY_PANEL


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("list", "parley view (runs)"),
        ("Resume", "which also resumes a run"),
        ("demo", "--example"),
        ("calibrate", "python -m benchmarks.calibration"),
    ],
)
def test_a_near_word_names_the_command(parley: Callable[..., Any], typed: str, meant: str) -> None:
    result = parley(typed)
    assert result.status == 2
    assert meant in result.complaints[0]


def test_near_words_are_not_commands_and_name_ones_that_exist() -> None:
    assert not NEAR_WORDS.keys() & COMMANDS.keys()
    assert all(hint.split()[1] in COMMANDS for hint in NEAR_WORDS.values())


def test_a_server_that_does_not_run_is_not_ready(
    parley: Callable[..., Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OLLAMA_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
    ready = {row["name"].partition("/")[0]: row["ready"] for row in parley("models", "--json").json}
    assert (ready["vllm"], ready["ollama"]) == ("not reached", "yes")


def test_the_beginning_of_an_id_says_how_many_others_have_it(parley: Callable[..., Any], place: Path) -> None:
    parley(*TINY_PANEL, "--model", "sim/judge", "--out", "a.sqlite")
    ids = [line.split()[1] for line in parley("show", "a.sqlite", "--list").out.splitlines()]
    others = sum(unit.startswith("p1/") for unit in ids) - 1
    assert f"{others} other unit" in parley("show", "a.sqlite", "p1/").out
    assert "other unit" not in parley("show", "a.sqlite", ids[0]).out


def test_a_server_without_log_probabilities_says_what_to_append(
    parley: Callable[..., Any], place: Path, server: Any
) -> None:
    message = {"role": "assistant", "content": "6"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    reply = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}
    server.answer = lambda nth, body: web.json_response(reply)
    run = ("run", "malibu", "--design", "silent", "--suite", "tiny", "--yardstick", "off", "--phases", "1", "--quiet")
    (line,) = parley(*run, "--model", server.model()).complaints
    assert "gives no log-probabilities" in line
    assert "&silent=false" in line
    assert parley(*run, "--model", server.model("silent=false")).status == 0
