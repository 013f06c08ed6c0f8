"""The systems that are compared, and their environments: each peer has one of its own, made with plain pip."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple


class System(NamedTuple):
    name: str
    """Its script is `benchmarks.peers.NAME`."""
    title: str
    environment: str | None = None
    """The folder of its environment; None is the one that Parley runs in."""
    grid: bool = True
    """Whether it is held against latencies: a variant that differs in its log alone is not."""
    goes_on: bool = False
    """Whether it keeps what it needs to go on where it was cut."""

    def python(self, folder: Path | None) -> str | None:
        """The Python to run it with; None where it is not installed."""
        if self.environment is None:
            return sys.executable
        found = _python(folder / self.environment) if folder else None
        return str(found.absolute()) if found and found.exists() else None


def _python(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


RAW, PARLEY = "raw", "parley"
SYSTEMS = (
    System(RAW, "raw aiohttp, nothing kept"),
    System(PARLEY, "Parley, everything recorded", goes_on=True),
    System("autogen", "AutoGen team", "autogen"),
    System("ag2", "AG2", "ag2"),
    System("inspect", "Inspect AI with its log", "inspect", goes_on=True),
    System("langgraph", "LangGraph", "langgraph"),
    System("langgraph_kept", "LangGraph, SQLite checkpoints", "langgraph", grid=False, goes_on=True),
)
PACKAGES = {
    "autogen": ("autogen-agentchat>=0.7.5,<0.8", "autogen-ext[openai]>=0.7.5,<0.8"),
    "ag2": ("ag2[openai]>=1.2,<2",),
    "inspect": ("inspect-ai>=0.3.285,<0.4", "openai"),
    "langgraph": ("langgraph>=1.2,<2", "langchain-openai>=1.7,<2", "langgraph-checkpoint-sqlite>=3.1,<4"),
}
"""What each environment holds; whichever of these versions pip finds newest is named on the page."""


def install(folder: Path) -> None:
    """An environment for each peer; one that is there already is brought up to date."""
    for name, packages in PACKAGES.items():
        print(f"{name}: {', '.join(packages)}", flush=True)
        where = folder / name
        if not _python(where).exists():
            venv.create(where, with_pip=True)
        subprocess.run([str(_python(where)), "-m", "pip", "install", "--quiet", "--upgrade", *packages], check=True)
