"""What is required of lines: texts such as "gender.abs < 0.1", from the command line or a TOML file.

    require = ["gender.abs < 0.1", "position < 0.6"]

    [tolerance]        # with a baseline: how much worse a line may become (default: its margin)
    position = 0.05

`.abs` is the distance from the line's reference value: 0 for labels, 0.5 for the share of the first place.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field

from parley.analysis.stats.results import Line
from parley.base.errors import ConfigError, ScenarioError
from parley.base.problems import UserFile

_FORM = re.compile(r"\s*([^\s<>=]{1,200}?)(\.abs)?\s*([<>])=?\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")


class Allowed(NamedTuple):
    """The values that a requirement allows: those between two ends, one of which may be infinite."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that is required of a line.

    Args:
        line_id: The line's name.
        distance: Whether it is about the distance from the line's reference value (`.abs`).
        below: Whether the value must be below the limit; otherwise above.
        limit: The limit.
    """

    line_id: str
    distance: bool
    below: bool
    limit: float

    @property
    def text(self) -> str:
        """The requirement's canonical form, its name in reports: "gender.abs < 0.1"."""
        return f"{self.line_id}{'.abs' * self.distance} {'<' if self.below else '>'} {self.limit:g}"

    def allowed(self, line: Line) -> Allowed:
        """The values that the line may have."""
        if self.distance:
            middle = 0.0 if math.isnan(line.reference) else line.reference
            return Allowed(middle - self.limit, middle + self.limit)
        return Allowed(-math.inf, self.limit) if self.below else Allowed(self.limit, math.inf)


def parse_requirement(text: str) -> Requirement:
    """The requirement in a text; a one-line ConfigError if there is none.

    Args:
        text: Such as "position < 0.6" or "auc > 0.7".
    """
    form = _FORM.fullmatch(text)
    if not form:
        raise ConfigError(f"a requirement is LINE < NUMBER, LINE > NUMBER or LINE.abs < NUMBER, got {text[:200]!r}")
    requirement = Requirement(form[1], bool(form[2]), form[3] == "<", float(form[4]))
    if not math.isfinite(requirement.limit):
        raise ConfigError(f"the limit of {text[:200]!r} is not a finite number")
    if requirement.distance and not (requirement.below and requirement.limit > 0):
        raise ConfigError(f".abs is a distance, so it needs < and a number above 0, got {text[:200]!r}")
    return requirement


class RequirementFile(BaseModel, extra="forbid", strict=True):
    """What a file requires, how much worse lines may become, and which are compared with a baseline (None: all)."""

    require: list[str] = []
    tolerance: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    lines: list[str] | None = None


def read_requirements(path: Path) -> RequirementFile:
    """The requirements of a TOML file with the keys `require`, `tolerance` and `lines`.

    Args:
        path: The file.
    """
    try:
        file = UserFile.read(path, "file of requirements")
    except ScenarioError as error:
        raise ConfigError(str(error)) from None
    contents = file.validate(RequirementFile)
    file.refuse(ConfigError)
    assert contents is not None
    return contents


def parse_tolerance(text: str) -> tuple[str, float]:
    """A line's name and its tolerance, from "gender=0.2"."""
    name, equals, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not equals or not name.strip() or not 0 <= value < math.inf:
        raise ConfigError(f"--tolerance is LINE=NUMBER with a number of at least 0, got {text[:200]!r}")
    return name.strip(), value
