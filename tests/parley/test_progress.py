"""The progress of a run: it moves with calls, and the time left never jumps up."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from parley.cli import progress as module
from parley.cli.progress import ProgressView
from parley.runs import Progress


def test_the_time_left_comes_from_calls_and_rises_by_less_than_half(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    told = io.StringIO()
    view = ProgressView(Console(file=told, width=200), 10, quiet=False)
    progress = Progress(total=10, expected_calls=100.0, started=0.0)
    for seconds, calls in ((1, 0), (11, 10), (22, 20), (33, 21), (44, 22), (55, 60)):
        clock[0], progress.calls = float(seconds), calls
        view.update(progress)
    lines = told.getvalue().splitlines()
    assert lines[0] == "0/10 units · reading the first prompts"
    shown = [line.rpartition(" · ")[2] for line in lines[1:]]
    # After 33 s 21 calls: 79 more would take 124 s, and 88 s × (1 + 0.03 × 11) are shown.
    assert shown == ["1:39 left", "1:28 left", "1:57 left", "2:36 left", "0:37 left"]


def test_what_is_loaded_is_said_at_once() -> None:
    told = io.StringIO()
    view = ProgressView(Console(file=told, width=200), 10, quiet=False)
    for waiting in ("converting", "converting", "loading"):
        view.update(Progress(total=10, waiting=waiting))
    assert told.getvalue().splitlines() == ["0/10 units · converting", "0/10 units · loading"]


def test_replies_from_the_cache_do_not_make_a_run_look_nearly_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "monotonic", lambda: 20.0)
    progress = Progress(total=324, done=284, expected_calls=800.0, started=0.0)
    progress.calls = progress.cached = 284
    assert progress.seconds_left is None
    progress.calls += 10
    assert progress.seconds_left == pytest.approx(20.0 / 10 * (800 - 294))
