"""What is loaded with the packages: AutoGen takes half a second, and only what needs it may load it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SMALL = ("--suite", "tiny", "--design", "silent", "--limit", "1", "--yardstick", "off")


def python(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_is_light_until_a_name_needs_autogen() -> None:
    python("""
import sys
import parley.agents
from parley.agents import ConfigError, Persona, Transcript, record_calls
assert dir(parley.agents) == sorted(parley.agents.__all__)
assert "autogen_core" not in sys.modules
from parley.agents import Debate
assert "autogen_core" in sys.modules
""")


def test_a_report_loads_no_autogen(place: Path, parley: Callable[..., Any]) -> None:
    assert parley("run", "malibu", *SMALL, "--model", "sim/judge", "--out", "run.sqlite").status == 0
    python("""
import sys
from parley.cli import main
assert main(["report", "run.sqlite", "--json"]) == 0
assert "autogen_core" not in sys.modules
""")
