"""A suite from a spreadsheet: CSV with the columns base, text and response, and perhaps response_2.

    suite = suite_from_csv(Path("notes.csv"))

The first response of each base also becomes a graded answer, with flaws made by rule: doubled figures, a missing end,
repeated sentences. A person must check each (`about` says what was done) and may add unsafe advice, which needs one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from parley.base.errors import ScenarioError
from parley.base.toml import read_text
from parley.scenarios.checks import flaw_problems
from parley.scenarios.malibu import Base, Flaw, Graded, Scenario, Suite

NEEDED, SECOND = ("base", "text", "response"), "response_2"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def suite_from_csv(path: Path) -> Suite:
    """The suite of a CSV file: a base for each name in the column base, a scenario for each row.

    Args:
        path: The file; its columns are separated by commas, semicolons or tabs.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or 'not CSV in UTF-8'}") from None
    separator = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.DictReader(StringIO(text), delimiter=separator, skipinitialspace=True)
    if missing := [name for name in NEEDED if name not in (rows.fieldnames or ())]:
        raise ScenarioError(f"{path}: no column {' and '.join(missing)}; expected {', '.join(NEEDED)} ({SECOND})")
    bases: dict[str, Base] = {}
    scenarios: list[Scenario] = []
    for number, row in enumerate(rows, 1):
        cells = {name: (row.get(name) or "").strip() for name in (*NEEDED, SECOND)}
        if empty := [name for name in NEEDED if not cells[name]]:
            raise ScenarioError(f"{path}: row {number} has no {' and no '.join(empty)}")
        name = re.sub(r"[^a-z0-9]+", "-", cells["base"].lower()).strip("-") or f"base-{number}"
        base = bases.setdefault(name, Base(id=name, text=cells["base"]))
        responses = tuple(filter(None, (cells["response"], cells[SECOND])))
        scenarios.append(Scenario(id=f"{name}-{number}", base=base.id, text=cells["text"], responses=responses))
    first = {scenario.base: scenario for scenario in reversed(scenarios)}
    graded = tuple(_graded(first[name]) for name in bases)
    kept = tuple(answers for answers in graded if answers.flaw)
    return Suite(
        schema=1,
        name=path.stem,
        version="1.0",
        about=f"Made from {path.name}.",
        base=tuple(bases.values()),
        scenario=tuple(scenarios),
        graded=kept,
    )


def _graded(scenario: Scenario) -> Graded:
    """A response with those flaws that meet the rules of `checks`: a text may have no figures, or too few sentences."""
    answers = Graded(base=scenario.base, scenario=scenario.id, good=scenario.responses[0])
    flaws = list(_flaws(answers.good))
    pairs = (answers.model_copy(update={"flaw": tuple(flaws[place : place + 2])}) for place in (0, 2, 4))
    return answers.model_copy(
        update={"flaw": tuple(flaw for pair in pairs if not list(flaw_problems(pair)) for flaw in pair.flaw)}
    )


def _flaws(good: str) -> Iterator[Flaw]:
    """Two doses of each kind."""
    parts = re.split(r"(?<=[.!?])\s+", good)
    for dose, count, about in ((1, 1, "the first figure is doubled"), (2, 0, "all figures are doubled")):
        text = NUMBER.sub(lambda figure: f"{2 * float(figure[0]):g}", good, count=count)
        yield Flaw(kind="figure", dose=dose, text=text, about=f"By rule: {about}. Is it wrong now?")
    for dose, about in ((1, "the last sentence is"), (2, "the last two sentences are")):
        text, what = " ".join(parts[:-dose]), f"By rule: {about} missing. Does it leave something unanswered?"
        yield Flaw(kind="unanswered", dose=dose, text=text, about=what)
    for dose, repeated in ((1, parts[: round(0.4 * len(parts))]), (2, parts)):
        about = f"By rule: {len(repeated)} sentences are repeated."
        yield Flaw(kind="length", dose=dose, text=" ".join([good, *repeated]), about=about)
