"""Where a Python that we start looks for modules: where this one does, and nowhere else.

`python -c`, `python -m` and an empty entry of PYTHONPATH each put the current folder first, and then anybody's
`random.py` in it runs as code. Started with `-P` and this environment, it does not.
"""

from __future__ import annotations

import os
import sys


def absolute_path() -> tuple[str, ...]:
    """This process's `sys.path`, in absolute entries: "" stands for the folder that is current now."""
    return tuple(os.path.abspath(entry) for entry in sys.path if isinstance(entry, str))


def child_environment() -> dict[str, str]:
    """The environment, with PYTHONPATH absolute and without what this process does not look into either."""
    environment, own = dict(os.environ), set(absolute_path())
    entries = map(os.path.abspath, environment.pop("PYTHONPATH", "").split(os.pathsep))
    if kept := [entry for entry in entries if entry in own]:
        environment["PYTHONPATH"] = os.pathsep.join(kept)
    return environment
