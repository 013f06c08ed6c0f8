"""The analysis plan of a run: stored in the run file with its SHA-256 when the run begins, and never written again.

The table `run` has it under `analysis_plan` and `analysis_plan_sha256`; runs of studies that have
no plan have neither. The hash shows that a plan was changed afterwards. It does not help against somebody who
also replaces the hash: for that, a copy of it must have been published before the data, as in a preregistration.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parley.agents import ConfigError
from parley.judging import HasAnalysisPlan, Study

PLAN, HASH = "analysis_plan", "analysis_plan_sha256"
"""Keys of the table `run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """The analysis plan that a run file has."""

    plan: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""
    """As it was stored."""
    intact: bool = True
    """Whether it is the hash of the plan."""


def plan_sha256(plan: Any) -> str:
    """The SHA-256 of a plan: of its JSON with sorted keys, without spaces, in ASCII.

    Args:
        plan: JSON data.
    """
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def describe_plan(study: Study) -> dict[str, Any]:
    """What the table `run` stores of a study's analysis plan; nothing if it has none."""
    if not isinstance(study, HasAnalysisPlan):
        return {}
    plan = study.analysis_plan()
    try:
        plan = json.loads(json.dumps(plan, allow_nan=False))  # as it will be read: keys are strings, tuples are lists
        digest = plan_sha256(plan)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"the analysis plan of {study.name} is not JSON data: {error}") from None
    if not isinstance(plan, dict):
        raise ConfigError(f"the analysis plan of {study.name} must be a mapping, not a {type(plan).__name__}")
    return {PLAN: plan, HASH: digest}


def stored_plan(info: Mapping[str, Any]) -> StoredPlan | None:
    """The analysis plan in a run file; None if the run was begun without one.

    Args:
        info: The table `run`, see `RunFile.info`.
    """
    if PLAN not in info and HASH not in info:
        return None
    plan, digest = info.get(PLAN), str(info.get(HASH, ""))
    try:
        intact = isinstance(plan, dict) and plan_sha256(plan) == digest
    except (ValueError, RecursionError):
        intact = False
    return StoredPlan(plan=plan if isinstance(plan, dict) else {}, sha256=digest, intact=intact)
