"""`parley check RUN --require "ambiguous.accuracy > 0.8"`: the gate for CI, of a run, a card or a comparison."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from parley.base.errors import ConfigError, ParleyError, explain_unwritable
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional, Repeated
from parley.cli.shared import need_analysis


class Check(Command):
    """Check a run, a judge's card or a comparison of two runs against requirements, for CI."""

    epilog: ClassVar = (
        "Exit status: 0 if everything holds, 1 if something is broken, 3 if it is undecided, 2 if the command is wrong."
    )

    source: Positional[list[str]] = Field(
        title="RUN-OR-CARD",
        max_length=2,
        description="a run file, or a judge's card (JSON); two run files: their comparison, as parley compare makes it",
    )
    require: Repeated[list[str]] = Field(
        [],
        title="REQUIREMENT",
        description="such as 'gender.abs < 0.1' or 'unread < 0.02'; parley report RUN --lines has the names; may be "
        "given several times",
    )
    requirements: str | None = Field(None, title="FILE", description='TOML file: require = ["gender.abs < 0.1", …]')
    baseline: str | None = Field(
        None, title="OLD", description="an earlier run or card of the same units: no line may be shown to be worse"
    )
    tolerance: Repeated[list[str]] = Field(
        [],
        title="LINE=X",
        description="how much worse than the baseline a line may be (default: its margin, if it has one)",
    )
    lines: list[str] | None = Field(
        None, description="lines to compare with the baseline (default: all that have a margin or tolerance)"
    )
    looks: int = Field(
        1, ge=1, description="how often this gate runs, such as 30 nights: in all of them together, 5% are wrong"
    )
    undecided: Literal["fail", "pass"] | None = Field(
        None,
        description="if no requirement is broken but one is undecided, exit with 1 (fail) or 0 (pass) (default: exit "
        "with 3)",
    )
    junit: Path | None = Field(None, title="FILE", description="also write JUnit XML, for Jenkins and GitLab")

    def answer(self) -> Answer:
        need_analysis()
        try:
            return self._check()
        except (ParleyError, OSError) as error:  # their exit status, 1, would say that a requirement is broken
            raise ConfigError(str(error)) from None

    def _check(self) -> Answer:
        from parley.analysis.gate.output import as_values, github_annotations, junit, summary  # load scipy
        from parley.analysis.gate.requirements import parse_tolerance
        from parley.reports.checking import check

        result = check(
            self.source if len(self.source) == 2 else self.source[0],
            self.require,
            requirements=self.requirements,
            baseline=self.baseline,
            tolerance=dict(parse_tolerance(text) for text in self.tolerance),
            lines=self.lines,
            looks=self.looks,
        )
        status = result.status(self.undecided)
        if self.junit:
            _write(self.junit, junit(result))
        if page := os.environ.get("GITHUB_STEP_SUMMARY"):
            _write(Path(page), summary(result), append=True)
        notes = github_annotations(result) if os.environ.get("GITHUB_ACTIONS") == "true" else []
        return Answer(as_values(result, status), [str(result), *notes], status)


def _write(path: Path, text: str, append: bool = False) -> None:
    with explain_unwritable(path), path.open("a" if append else "w", encoding="utf-8") as file:
        file.write(text)
