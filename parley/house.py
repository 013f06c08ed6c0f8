"""Our rooms have plain names (`agents`, …) that other packages use too: are the ones Python finds really ours?

Checked before anything else is imported, so that a stranger's package gives one clear line and not a strange error.
"""

from __future__ import annotations

from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("agents", "scenarios", "judging", "analysis", "training")
MARK = '__house__ = "parley"'


def stranger() -> str | None:
    """One line about the first room that is not ours, or None."""
    ours = Path(__file__).resolve().parents[1]
    for room in ROOMS:
        spec = find_spec(room)
        if spec is None or spec.origin is None:
            return f"Parley's package '{room}' is missing; install Parley again"
        origin = Path(spec.origin).resolve()
        if origin.parents[1] == ours and MARK in origin.read_text("utf-8", "replace"):
            continue
        owners = [name for name in packages_distributions().get(room, []) if name != "parley"]
        whose = f" (it comes with '{owners[0]}')" if owners else ""
        return (
            f"the package '{room}' that Python finds at {origin.parent}{whose} is not Parley's; "
            "install Parley in a virtual environment without it"
        )
    return None
