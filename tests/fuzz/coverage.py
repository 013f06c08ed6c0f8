"""Which lines of ours an input reached that none had reached before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = str(Path(__file__).parents[2])
ROOMS = tuple(f"{ROOT}/{room}/" for room in ("agents", "scenarios", "judging", "analysis", "training", "parley"))


class Coverage:
    """Lines are noted once, and not looked at again: a campaign gets faster as it goes."""

    def __init__(self) -> None:
        self.reached = 0
        self._unseen: dict[CodeType, set[int]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """By `sys.monitoring` where Python has it (3.12), else by tracing."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            before = sys.gettrace()
            sys.settrace(self._call)
            try:
                yield
            finally:
                sys.settrace(before)
            return
        tool = monitoring.COVERAGE_ID
        if monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, "tests.fuzz")
            monitoring.register_callback(tool, monitoring.events.LINE, self._line)
        monitoring.set_events(tool, monitoring.events.LINE)
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)

    def _line(self, code: CodeType, line: int) -> Any:
        if code.co_filename.startswith(ROOMS):
            self.reached += 1
        return sys.monitoring.DISABLE  # type: ignore[attr-defined]

    def _call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        unseen = self._unseen.get(code)
        if unseen is None:
            ours = code.co_filename.startswith(ROOMS)
            unseen = self._unseen[code] = {line for *_, line in code.co_lines() if line} if ours else set()
        if not unseen:
            return None

        def trace(_: FrameType, what: str, __: Any) -> Any:
            if what == "line" and frame.f_lineno in unseen:
                unseen.discard(frame.f_lineno)
                self.reached += 1
            return trace

        return trace
