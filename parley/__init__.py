"""Parley: debates, critique loops and panels of judges with personas, and the studies that measure them.

import parley
result = parley.run("malibu", model="sim/judge?female=+0.4", suite="tiny", out="runs/try.sqlite")
revised = parley.detox("What a stupid idea, you idiot.").text

from parley import Critique, Debate, Persona
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from parley.base.lazy import import_on_first_use

if TYPE_CHECKING:  # imported when first used: these load AutoGen or pydantic, which `parley --version` does not need
    from parley import agents, judging, runs
    from parley.agents import Critique, Debate, Models, Persona, Transcript, Turn, ask
    from parley.judging.stardtox.detox import detox, detox_async
    from parley.reports.export.write import dataset
    from parley.reports.frame_scores import bbq_scores, squad_scores
    from parley.reports.making import compare, report
    from parley.runs import frames
    from parley.runs.job import run, run_async
    from parley.runs.options import Options
    from parley.runs.recording import record, record_async
    from parley.training.running import train
else:
    __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "parley": ("agents", "judging", "runs"),
            "parley.agents": ("Critique", "Debate", "Models", "Persona", "Transcript", "Turn", "ask"),
            "parley.judging.stardtox.detox": ("detox", "detox_async"),
            "parley.reports.export.write": ("dataset",),
            "parley.reports.frame_scores": ("bbq_scores", "squad_scores"),
            "parley.reports.making": ("compare", "report"),
            "parley.runs": ("frames",),
            "parley.runs.job": ("run", "run_async"),
            "parley.runs.options": ("Options",),
            "parley.runs.recording": ("record", "record_async"),
            "parley.training.running": ("train",),
        },
    )

try:
    __version__ = version("parley-autogen")
except PackageNotFoundError:  # a checkout on PYTHONPATH
    __version__ = "0+unknown"

__all__ = [
    "Critique",
    "Debate",
    "Models",
    "Options",
    "Persona",
    "Transcript",
    "Turn",
    "__version__",
    "agents",
    "ask",
    "bbq_scores",
    "compare",
    "dataset",
    "detox",
    "detox_async",
    "frames",
    "judging",
    "record",
    "record_async",
    "report",
    "run",
    "run_async",
    "runs",
    "squad_scores",
    "train",
]
