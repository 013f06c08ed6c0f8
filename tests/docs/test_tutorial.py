"""The tutorial's outputs are what its commands print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RUN = slice(2, 8)
"""From "2. Run it" to "7. One page on one judge"; what follows is Python, and real models."""


def test_every_output_in_the_tutorial_is_what_its_commands_print(
    parley: Callable[..., Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "tutorial.md").read_text("utf-8")
    quoted = 0
    for section in page.split("\n## ")[RUN]:
        commands = [line for line in re.findall(r"^parley .*", section, re.M) if not line.startswith("parley view")]
        printed = " ".join(word for line in commands for word in parley(*_typed(line)).out.split())
        blocks = re.findall(r"```text\n(.*?)```", section, re.S)
        prose = re.sub(r"```.*?```", "", section, flags=re.S)
        sentences = [text for text in re.findall(r"`([^`]+)`", prose) if text.endswith(".")]
        for text in (*blocks, *sentences):
            assert " ".join(text.split()) in printed
            quoted += 1
    assert quoted > 5


def _typed(line: str) -> list[str]:
    return shlex.split(line, comments=True)[1:]
