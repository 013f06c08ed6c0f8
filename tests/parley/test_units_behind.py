"""The units that a line lists are those that it is computed from: all of them, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest

import parley
from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.report import Report
from parley.analysis.stats.results import Line
from parley.cli.found_units import FoundUnit, find_units, rests_on_read, units_behind
from parley.reports import make_report, making
from parley.runs import RunFile
from parley.runs.example import example_runs
from tests.golden.data import write_data

FACETS = ("phase", "stage", "control", "flaw", "dose", "identity")
"""Listed units that agree in these are left out together: without them, a line must change."""
COUNTED, WEIGHT = "unread-unread", "contagion-weight"
Key = tuple[str, ...]


def lines_of(
    path: Path, ids: Collection[str] | None = None, key: Callable[[str, Line], Key] | None = None
) -> dict[Key, tuple[object, ...]]:
    """The numbers of every line of a report, from these units of a run alone."""
    with pytest.MonkeyPatch.context() as patch:
        if ids is not None:
            whole = making.load_run

            def load(path: Path) -> making.LoadedRun:
                run = whole(path)
                parts = {name: getattr(run, name) for name in ("verdicts", "units")}
                return replace(run, **{name: part[part["unit"].isin(ids)] for name, part in parts.items()})

            patch.setattr(making, "load_run", load)
        try:
            report = make_report([path], draws=20)
        except parley.agents.ConfigError:  # nothing is left
            return {}
    key = key or key_of
    return {key(plot.name, line): numbers(line) for plot in compared(report) for line in plot.lines}


def compared(report: Report) -> list[Forest]:
    """All plots but the shares of unread replies: units of which all was read have no such plot."""
    return [plot for plot in report.forests if plot.name != COUNTED]


def key_of(plot: str, line: Line) -> Key:
    return (plot, line.group, line.label, *(str(value) for value in line.about.values()))


def subject_of(plot: str, line: Line) -> Key:
    """Without heading and label, which leave out what all units have in common."""
    return (plot, line.measure, *(str(value) for value in line.about.values()))


def numbers(line: Line) -> tuple[object, ...]:
    """What a line says of its units: corrections depend on other lines, and an AUC's `n` counts all ratings."""
    values = sorted((name, f"{value:.9f}") for name, value in line.values.items())
    return (f"{line.estimate:.9f}", line.n if "auc" not in line.measure else 0, line.clusters, tuple(values))


def is_zero(line: tuple[object, ...]) -> bool:
    return float(str(line[0])) == 0


@pytest.fixture(scope="module", params=["quick", "staged", "talk", "paper"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / f"{request.param}.sqlite"
    design = {"suite": "quick"} if request.param == "quick" else {"suite": "tiny", "design": request.param}
    parley.run("malibu", model="sim/judge?female=+0.6&item=1.5", out=str(path), **design)
    return path


def groups(units: Collection[FoundUnit]) -> dict[Key, set[str]]:
    found: dict[Key, set[str]] = {}
    for unit in units:
        found.setdefault(tuple(unit.facets.get(name, "") for name in FACETS), set()).add(unit.id)
    return found


def check(run: Path, *, others: bool) -> None:
    report, whole = make_report([run], draws=20), lines_of(run)
    by_units: dict[tuple[object, ...], list[Key]] = {}
    for plot in compared(report):
        for line in plot.lines:
            by_units.setdefault(tuple(line.units.items()), []).append(key_of(plot.name, line))
    wrong = []
    with RunFile.open(run) as file:
        for facets, keys in by_units.items():
            listed = [unit for unit in find_units(file, dict(facets)) if unit.status == "done"]  # type: ignore[arg-type]
            ids = {unit.id for unit in listed}
            alone = lines_of(run, ids)
            wrong += [("too few", key, len(ids)) for key in keys if alone.get(key) != whole[key]]
            for group, own in groups(listed).items() if others else ():
                without = lines_of(run, ids - own)
                # Without one flaw, an AUC over few bases can be the same, and so can two judges that cancel each other.
                changes = [key for key in keys if key[-1] != "auc" and not (key[0] == WEIGHT and is_zero(whole[key]))]
                wrong += [("too many", key, group) for key in changes if without.get(key) == whole[key]]
    assert not wrong, "\n".join(map(str, wrong))


def test_every_line_is_computed_from_exactly_the_units_that_it_lists(run: Path) -> None:
    check(run, others=True)


@pytest.mark.parametrize("design", ["staged", "talk"])
def test_unread_replies_are_counted_among_the_units_that_a_line_lists(design: str, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    parley.run("malibu", model="sim/judge?malformed=0.3", suite="tiny", design=design, out=str(path))
    verdicts = making.load_run(path).verdicts
    (plot,) = (plot for plot in make_report([path], draws=20).forests if plot.name == COUNTED)
    with RunFile.open(path) as file:
        for line in plot.lines:
            listed = [unit.id for unit in find_units(file, line.units)]
            # By identity: the last reply of every judge; the others are about all rounds.
            reply = ["unit", "judge", *([] if "identity" in line.about else ["round"])]
            assert line.n == len(verdicts.loc[verdicts["unit"].isin(listed), reply].drop_duplicates()), line


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(example_runs()))
def test_the_units_behind_the_lines_of_the_shipped_examples_are_all_that_they_need(name: str) -> None:
    check(Path(example_runs()[name]), others=False)


MODEL = "sim/any?base=6&malformed=0.3&refuse=0.25"


@pytest.fixture(scope="module", params=["bbq", "rubric"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which some units were answered in another form."""
    folder = tmp_path_factory.mktemp("answers")
    write_data(folder)
    path = folder / "run.sqlite"
    if request.param == "bbq":
        more = {"data": str(folder / "bbq"), "categories": ["Age"], "method": ["default", "cot"]}
        parley.run("bbq", model=MODEL, out=str(path), **more)
    else:
        more = {"data": str(folder / "texts.jsonl"), "by": "method", "rubrics": ["bs"]}
        parley.run("rubric", model=MODEL, out=str(path), **more)
    return path


def test_units_of_which_nothing_was_read_are_not_behind_a_mean(answers: Path) -> None:
    report, whole = make_report([answers], draws=20), lines_of(answers, key=subject_of)
    wrong, unread = [], 0
    with RunFile.open(answers) as file:
        for plot in report.forests:
            for line in plot.lines:
                read = [unit.id for unit in find_units(file, line.units, read=rests_on_read(line))]
                unread += len(find_units(file, line.units)) - len(read)
                key = subject_of(plot.name, line)
                wrong += [("too few", key)] if lines_of(answers, read, key=subject_of).get(key) != whole[key] else []
                wrong += [("too many", key)] if line.n and not line.about.get("first") and line.n < len(read) else []
    assert not wrong, "\n".join(map(str, wrong))
    assert unread, "some units could not be read"


def test_debates_are_not_behind_a_finding_of_silent_ballots(tmp_path: Path) -> None:
    path = tmp_path / "quick.sqlite"
    parley.run("malibu", model="sim/judge?female=+0.6&item=1.5", suite="quick", out=str(path))
    with RunFile.open(path) as file:
        behind = units_behind(file, make_report([path], draws=20), 1)
        assert {unit.facets["stage"] for unit in behind.units} == {"silent"}
