"""What is loaded with the packages: AutoGen takes half a second, and only what needs it may load it."""

from __future__ import annotations

import subprocess
import sys

SMALL = ("--suite", "tiny", "--design", "silent", "--limit", "1", "--yardstick", "off")


PROGRAM = """
import sys
import parley.agents
from parley.agents import ConfigError, Persona, Transcript, record_calls
assert dir(parley.agents) == sorted(parley.agents.__all__)
from parley.cli import main
assert main(["report", "run.sqlite", "--json"]) == 0
assert "autogen_core" not in sys.modules
from parley.agents import Debate
assert "autogen_core" in sys.modules
"""


def test_neither_the_package_nor_a_report_loads_autogen_until_a_name_needs_it(place, parley):
    assert parley("run", "malibu", *SMALL, "--model", "sim/judge", "--out", "run.sqlite").status == 0
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
