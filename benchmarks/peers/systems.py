"""The systems that are compared, and their environments: one per peer, made with pip."""

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
    """The folder of its environment; None for Parley's own."""
    grid: bool = True
    """Whether it is measured with all latencies; not for a variant that differs only in its log."""
    resumes: bool = False
    """Whether it can resume an interrupted run."""

    def python(self, folder: Path | None) -> str | None:
        """The Python to run it with; None if it is not installed."""
        if self.environment is None:
            return sys.executable
        python = _python(folder / self.environment) if folder else None
        return str(python.absolute()) if python and python.exists() else None


def _python(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


RAW, PARLEY = "raw", "parley"
SYSTEMS = (
    System(RAW, "raw aiohttp, nothing stored"),
    System(PARLEY, "Parley, everything recorded", resumes=True),
    System("autogen", "AutoGen team", "autogen"),
    System("ag2", "AG2", "ag2"),
    System("inspect", "Inspect AI with its log", "inspect", resumes=True),
    System("langgraph", "LangGraph", "langgraph"),
    System("langgraph_checkpoints", "LangGraph, SQLite checkpoints", "langgraph", grid=False, resumes=True),
)
PACKAGES = {
    "autogen": ("autogen-agentchat>=0.7.5,<0.8", "autogen-ext[openai]>=0.7.5,<0.8"),
    "ag2": ("ag2[openai]>=1.2,<2",),
    "inspect": ("inspect-ai>=0.3.285,<0.4", "openai"),
    "langgraph": ("langgraph>=1.2,<2", "langchain-openai>=1.7,<2", "langgraph-checkpoint-sqlite>=3.1,<4"),
}
"""The packages of each environment; the page names the versions that pip installed."""


def install(folder: Path) -> None:
    """Creates or updates the environment of every peer."""
    for name, packages in PACKAGES.items():
        print(f"{name}: {', '.join(packages)}", flush=True)
        environment = folder / name
        if not _python(environment).exists():
            venv.create(environment, with_pip=True)
        subprocess.run(
            [str(_python(environment)), "-m", "pip", "install", "--quiet", "--upgrade", *packages], check=True
        )
