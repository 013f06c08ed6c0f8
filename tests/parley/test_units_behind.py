"""The units that a line lists are those that it is computed from: all of them, and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.analysis.stats.results import Contrast, Line
from parley.cli.found_units import FoundUnit, find_units, rests_on_read, units_behind
from parley.judging.malibu import contrasts, plan
from parley.judging.malibu.plan import among
from parley.reports import make_report, making
from parley.reports.loading import load_run
from parley.runs import RunFile
from parley.runs.example import example_runs
from tests.golden.data import write_data

JUDGE = "sim/judge?female=+0.6&item=1.5"
FACETS = (
    *("phase", "stage", "control", "flaw", "dose", "identity"),
    *("method", "model", "search", "answerable", "set", "again"),
)
"""Listed units that agree in these are left out together: without them, a line must change."""
OUTCOMES = ("unread", "on_scale", "repaired")
Key = tuple[str, ...]
MODEL = "sim/any?base=6&malformed=0.3&refuse=0.35"
DEBATE = "sim/debate?base=6&round=-2&noise=0.7&malformed=0.1"
WRITER = "sim/any?toxic=0.6&heeds=0.6"
PRESSED = "sim/judge?noise=0.7&item=0.5&malformed=0.2&refuse=0.1"


def key_of(plot: str, line: Line) -> Key:
    """Not by its heading and label, which leave out what all units have in common."""
    return (plot, line.measure, *(str(value) for value in line.about.columns.values()))


@cache
def load(path: Path) -> making.LoadedRun:
    return load_run(path)


@cache
def lines_of(path: Path, ids: frozenset[str] | None = None) -> dict[Key, Line]:
    """Every line of a report, from these units of a run alone; contrasts that were primary in the run still are."""
    if ids is not None and not ids:
        return {}
    with pytest.MonkeyPatch.context() as patch:
        if ids is not None:
            run = load(path)
            sides = [run.verdicts[side].dropna() for side in ("identity", "other") if side in run.verdicts]
            labels_of_run = {str(label) for side in sides for label in side.unique()}
            parts = {name: getattr(run, name) for name in ("verdicts", "units")}
            some = replace(run, **{name: part[part["unit"].isin(ids)] for name, part in parts.items()})

            def whole(planned: Iterable[Contrast], labels: Collection[str]) -> Iterator[Contrast]:
                for contrast in among(planned, labels_of_run):
                    if {*contrast.first, *contrast.second} <= {*labels}:
                        yield contrast

            patch.setattr(making, "load_run", lambda path: some)
            for module in (contrasts, plan):  # the plan is made from the labels where none is stored
                patch.setattr(module, "among", whole)
        try:
            report = make_report([path], draws=20)
        except parley.agents.ConfigError:  # nothing is left
            return {}
    return {key_of(plot.name, line): line for plot in report.forests for line in plot.lines}


def same(line: Line, other: Line | None) -> bool:
    """Whether two lines have the same numbers, but for what depends on other lines or on unread units.

    Corrected p-values depend on the family, and so do intervals of planned contrasts (`tests`) and of others whose
    level does (`level`). An AUC's `n` counts all ratings. Further numbers count unread units where a line is about what
    was read; they are compared where it is about what was not.
    """
    if other is None:
        return False
    alike = (line.level, line.tests) == (other.level, other.tests)
    return numbers(line, alike=alike) == numbers(other, alike=alike)


def numbers(line: Line, *, alike: bool) -> tuple[object, ...]:
    more = {"p": line.p, **line.values}
    more |= {"low": line.low, "high": line.high} if alike else {}
    more |= {
        f"also {name}": value
        for name, value in line.also.items()
        if line.measure in OUTCOMES and "adjusted" not in name
    }
    written = tuple(sorted((name, f"{value:.9f}") for name, value in more.items()))
    return (f"{line.estimate:.9f}", line.n if "auc" not in line.measure else 0, line.clusters, written)


def as_recomputed(key: Key) -> Key:
    """What a line is called in a report on its units alone.

    If all debates were scored twice, the first referee has no lines on those that were. If all answers were read,
    counting unread ones as wrong is the score.
    """
    same_debates = "Referee, debates of Referee_again"
    return tuple(part.replace(same_debates, "Referee").removesuffix("_unread_wrong") for part in key)


def run_of(name: str, folder: Path) -> Path:
    """A small run with all that the lines of a report are computed from."""
    path = folder / f"{name}.sqlite"
    write_data(folder)
    squad = {"data": str(folder / "squad.json"), "search": ["none", f"folder:{folder / 'articles'}"], "paragraph": True}
    methods = ["default", "fairness-prompt", "stardtox"]
    prompts = {"data": str(folder / "prompts.jsonl"), "prompts": 2, "completions": 1, "method": methods}
    bbq = {
        "data": str(folder / "bbq"),
        "categories": ["Age"],
        "method": ["default", "stardtox"],
        "settings": ["max_iterations=1"],
    }
    more: dict[str, dict[str, Any]] = {
        "quick": {"study": "malibu", "model": JUDGE, "suite": "quick"},
        "staged": {"study": "malibu", "model": JUDGE, "suite": "tiny", "design": "staged"},
        "paper": {"study": "malibu", "model": JUDGE, "suite": "tiny", "design": "paper"},
        "rldf": {"study": "rldf", "model": DEBATE, "design": "paper", "topics": 5, "rounds": 2, "rereferee": 0.5},
        "framing": {"study": "framing", "model": DEBATE, "topics": 6},
        "squad": {"study": "squad", "model": ["sim/one?malformed=0.1", "sim/two?malformed=0.1"], **squad},
        "stardtox": {"study": "stardtox", "model": WRITER, **prompts},
        "bbq": {"study": "bbq", "model": "sim/any", **bbq},
    }
    parley.run(more[name].pop("study"), out=str(path), **more[name])
    return path


SILENT = pytest.param("quick", marks=pytest.mark.nightly)
"""The ballots of the staged design, over more identities: a seventh of this file's time."""


@pytest.fixture(scope="module", params=[SILENT, "staged", "paper", "rldf", "framing", "squad", "stardtox", "bbq"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(request.param, tmp_path_factory.mktemp("runs"))


def groups(units: Collection[FoundUnit]) -> dict[Key, set[str]]:
    found: dict[Key, set[str]] = {}
    for unit in units:
        found.setdefault(tuple(unit.facets.get(name, "") for name in FACETS), set()).add(unit.id)
    return found


def check(run: Path, *, others: bool, only: str = "") -> None:
    """Compute every line again from the units that it lists; with `others`, also without any group of these."""
    whole = {key: line for key, line in lines_of(run).items() if key[0].startswith(only)}
    by_units: dict[tuple[object, ...], list[Key]] = {}
    for key, line in whole.items():
        by_units.setdefault((rests_on_read(line), *line.units.items()), []).append(key)
    assert by_units
    wrong = []
    with RunFile.open(run) as file:
        for (read, *facets), keys in by_units.items():
            listed = [unit for unit in find_units(file, dict(facets), read=read) if unit.status == "done"]  # type: ignore[call-overload, arg-type]
            ids = frozenset(unit.id for unit in listed)
            alone = lines_of(run, ids)
            wrong += [
                ("too few", key, len(ids))
                for key in keys
                if not same(whole[key], alone.get(key)) and not same(whole[key], alone.get(as_recomputed(key)))
            ]
            for group, members in groups(listed).items() if others else ():
                without = lines_of(run, ids - members)
                # Without one flaw, an AUC over few bases can be the same, and so can two judges that cancel each other.
                changes = [key for key in keys if key[-1] != "auc"]
                wrong += [("too many", key, group) for key in changes if same(whole[key], without.get(key))]
    assert not wrong, "\n".join(map(str, wrong))


def test_every_line_is_computed_from_exactly_the_units_that_it_lists(run: Path) -> None:
    check(run, others=True)


def test_unread_replies_about_pairs_are_compared_in_exactly_the_units_that_a_line_lists(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    more = {"identities": ["black", "asian", "white"], "phases": [2], "yardstick": "off"}
    parley.run("malibu", model=PRESSED, suite="tiny", design="talk", out=str(path), **more)
    check(path, others=True, only="unread_differences")


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(example_runs()))
def test_the_units_behind_the_lines_of_the_shipped_examples_are_all_that_they_need(name: str) -> None:
    check(Path(example_runs()[name]), others=False)


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
    report, whole = make_report([answers], draws=20), lines_of(answers)
    wrong, unread = [], 0
    with RunFile.open(answers) as file:
        for plot in report.forests:
            for line in plot.lines:
                read = [unit.id for unit in find_units(file, line.units, read=rests_on_read(line))]
                unread += len(find_units(file, line.units)) - len(read)
                key = key_of(plot.name, line)
                wrong += [("too few", key)] if not same(whole[key], lines_of(answers, frozenset(read)).get(key)) else []
                wrong += [("too many", key)] if line.n and not line.about.contrast and line.n < len(read) else []
    assert not wrong, "\n".join(map(str, wrong))
    assert unread, "some units could not be read"


def test_debates_are_not_behind_a_finding_of_silent_ballots(tmp_path: Path) -> None:
    path = tmp_path / "quick.sqlite"
    parley.run("malibu", model="sim/judge?female=+0.6&item=1.5", suite="quick", out=str(path))
    with RunFile.open(path) as file:
        behind = units_behind(file, make_report([path], draws=20), 1)
        assert {unit.facets["stage"] for unit in behind.units} == {"silent"}
