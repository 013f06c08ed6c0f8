"""A full MALIBU report on a million verdicts, beside a plain pandas loop over the same resampling.

    python -m benchmarks.report                               # 1,000,000 rows, 2,000 draws
    python -m benchmarks.report --rows 20000 --draws 200      # to see it work

Run from the repository's root. The run file (the plan of the suite `full`, simulated verdicts) is written first; the
report and the loop then read it, each in a process of its own. The loop does what the report's differences and tests
draw: scenarios with replacement for every difference, signs flipped over scenarios, labels permuted within scenarios.
It is spared the panels' reduction, preferences, ranking and agreement, and all its differences share their draws. A few
of its draws are timed and scaled to all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from parley import frames
from parley.agents import Transcript
from parley.analysis import malibu
from parley.analysis.malibu.scores import by_metric
from parley.analysis.stats.tables import cell_means
from parley.judging import Outcome, Unit, Verdict
from parley.judging.malibu.study import Malibu, MalibuConfig
from parley.reports import make_report
from parley.runs import Record, RunFile, describe, measure

ROWS, TARGET, TARGET_MB = 1_000_000, 20.0, 2000.0
"""At so many rows: how much faster than the loop, and in how much memory."""
FAVOURED, POINTS = "female", 0.3


# A run of so many verdicts


def write_run(path: Path, rows: int, seed: int) -> None:
    """Units of the full suite's plan, as many as it takes; the plan is repeated where one is not enough."""
    study = Malibu(MalibuConfig(suite="full", model=["sim/judge"]))
    whole = sum(_size(unit, study) for unit in study.plan())
    study = Malibu(study.config.model_copy(update={"repeats": math.ceil(rows / whole)}))
    units, held = [], 0
    for unit in study.plan():
        if held >= rows:
            break
        units.append(unit)
        held += _size(unit, study)
    rng = np.random.default_rng(seed)
    with closing(RunFile.create(path, describe(study, "malibu", measure(study)), {}, units)) as file:
        for start in range(0, len(units), 500):
            batch = units[start : start + 500]
            file.write([Record(unit, 0.0, 0.0, Outcome(Transcript(()), _said(unit, study, rng))) for unit in batch])


def _size(unit: Unit, study: Malibu) -> int:
    metrics = len(study.rubric.names)
    return len(study.judges) * study.config.rounds * (metrics if unit.facets["phase"] == 1 else 2 * metrics + 1)


def _said(unit: Unit, study: Malibu, rng: np.random.Generator) -> tuple[Verdict, ...]:
    """What the judges say: they share what the table makes of the text, and favour one label a little."""
    facets = unit.facets
    sides = {"": facets["identity"]} if facets["phase"] == 1 else {s: facets[f"identity_{s.lower()}"] for s in "AB"}
    table = rng.normal(0, 0.8)
    verdicts = []
    for round in range(1, study.config.rounds + 1):
        for judge in study.judges:
            totals = {}
            for side, label in sides.items():
                points = rng.normal(7 + table + POINTS * (label == FAVOURED), 1.0, len(study.rubric.names))
                scores = np.clip(np.rint(points), 0, 10).tolist()
                totals[side] = sum(scores)
                for metric, score in zip(study.rubric.names, scores, strict=True):
                    verdicts.append(
                        Verdict(
                            judge=judge.name,
                            role="debater",
                            round=round,
                            metric=metric,
                            subject=side,
                            value=score,
                            sampled=score,
                        )
                    )
            if len(sides) == 2:
                lead = totals["A"] - totals["B"]
                choice = "tie" if lead == 0 else "A" if lead > 0 else "B"
                verdicts.append(Verdict(judge=judge.name, role="debater", round=round, metric="preferred", text=choice))
    return tuple(verdicts)


# The report


def time_report(path: Path, draws: int, seed: int) -> dict[str, Any]:
    """The report of a frame, then the whole way from the file, as `parley report` goes it."""
    found = _time_frame(path, draws, seed)
    _, found["file_to_report"] = _timed(lambda: make_report([path], draws=draws, seed=seed))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found | {"peak_mb": peak / (1024 if sys.platform == "linux" else 2**20)}


def _time_frame(path: Path, draws: int, seed: int) -> dict[str, Any]:
    """Reading the file, the report, and of it the part that the loop is measured against."""
    with closing(RunFile.open(path)) as file:
        verdicts, reading = _timed(lambda: frames.verdicts(file))
    options = {"draws": draws, "seed": seed}
    report, whole = _timed(lambda: malibu.report(verdicts, **options))
    drawn = (malibu.differences, malibu.significance)
    _, part = _timed(lambda: [make(verdicts, **options) for make in drawn])
    return {
        "rows": len(verdicts),
        "scenarios": verdicts["scenario"].nunique(),
        "tests": len(report.table("tests")) + len(report.table("differences")),
        "reading": reading,
        "report": whole,
        "differences_and_tests": part,
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


# The loop


def time_loop(path: Path, draws: int, seed: int) -> dict[str, Any]:
    """A few draws, each as one would write it in plain pandas."""
    with closing(RunFile.open(path)) as file:
        verdicts = frames.verdicts(file)
    scores = malibu.panel_scores(verdicts)
    columns = ["scenario", "category", "identity", "metric"]
    scores = scores[scores["identity"] != ""].astype(dict.fromkeys(columns, str))
    rng = np.random.default_rng(seed)
    _check(verdicts, scores)
    del verdicts
    parts = dict(list(scores.groupby("scenario")))
    tables = _permutable(scores)
    gaps = _gaps(scores)
    islice(_draws(parts, tables, gaps, rng), 1).__next__()  # the first draw pays for what pandas sets up
    _, took = _timed(lambda: list(islice(_draws(parts, tables, gaps, rng), draws)))
    return {"draws": draws, "took": took}


def _draws(
    parts: dict[str, pd.DataFrame], tables: list[pd.DataFrame], gaps: list[pd.Series], rng: np.random.Generator
) -> Iterator[tuple[Any, ...]]:
    names = list(parts)
    while True:
        chosen = rng.choice(names, len(names))
        sample = pd.concat([parts[name] for name in chosen], keys=range(len(chosen)), names=["drawn", None])
        yield _differences(sample.reset_index("drawn"), "drawn"), _permuted(tables, rng), _flipped(gaps, rng)


def _differences(scores: pd.DataFrame, cluster: str) -> dict[tuple[str, str, str], float]:
    """Every difference of the report: all pairs on all metrics together, within categories on each metric."""
    category = scores.drop_duplicates("identity").set_index("identity")["category"]
    found = {}
    for metric, part in by_metric(scores):
        cells = part.groupby([cluster, "identity"], sort=False)["value"].mean().unstack("identity")
        for first, second in combinations(cells.columns, 2):
            if metric == "all" or category[first] == category[second]:
                found[metric, first, second] = float((cells[first] - cells[second]).mean())
    return found


def _permutable(scores: pd.DataFrame) -> list[pd.DataFrame]:
    """A table of cells for every category, on all metrics together and on each."""
    return [
        part.groupby(["scenario", "identity"], sort=False)["value"].mean().reset_index()
        for _, category in scores.groupby("category", sort=False)
        for _, part in by_metric(category)
    ]


def _permuted(tables: list[pd.DataFrame], rng: np.random.Generator) -> list[float]:
    """The spread between identities, their labels shuffled within every scenario."""
    found = []
    for table in tables:
        shuffled = table.groupby("scenario", sort=False)["identity"].transform(rng.permutation)
        found.append(float(table["value"].groupby(shuffled.to_numpy()).mean().var()))
    return found


def _gaps(scores: pd.DataFrame) -> list[pd.Series]:
    """Scenario by scenario, for every two identities of a category, on all metrics together and on each."""
    found = []
    for _, category in scores.groupby("category", sort=False):
        for _, part in by_metric(category):
            cells = cell_means(part["value"], part["identity"], part["scenario"])
            found += [cells[first] - cells[second] for first, second in combinations(cells.columns, 2)]
    return found


def _flipped(gaps: list[pd.Series], rng: np.random.Generator) -> list[float]:
    return [abs(float((gap * rng.choice([-1.0, 1.0], len(gap))).mean())) for gap in gaps]


def _check(verdicts: pd.DataFrame, scores: pd.DataFrame) -> None:
    """Loop and report must speak of the same differences."""
    mine = _differences(scores, "scenario")
    for row in malibu.differences(verdicts, draws=10).itertuples():
        theirs = mine.get((row.metric, row.first, row.second))
        theirs = -mine[row.metric, row.second, row.first] if theirs is None else theirs
        assert math.isclose(theirs, row.difference, abs_tol=1e-9), (row, theirs)


# Both


def _part(name: str, path: Path, draws: int, seed: int) -> Any:
    """One part in a fresh process, so that its memory is its own."""
    command = [sys.executable, "-m", "benchmarks.report", "--part", name, "--file", str(path)]
    command += ["--draws", str(draws), "--seed", str(seed)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def measured(path: Path, wanted: argparse.Namespace) -> dict[str, Any]:
    if not path.exists():
        write_run(path, wanted.rows, wanted.seed)
    found = _part("report", path, wanted.draws, wanted.seed) | {"draws": wanted.draws}
    found["loop"] = _part("loop", path, wanted.loop_draws, wanted.seed)
    scale = wanted.draws / found["loop"]["draws"]
    for clock in ("wall", "cpu"):
        whole = found["loop"]["took"][clock] * scale
        found[f"loop_{clock}"] = whole
        found[f"ratio_{clock}"] = whole / found["report"][clock]
        found[f"ratio_same_work_{clock}"] = whole / found["differences_and_tests"][clock]
    return found


def show(found: dict[str, Any]) -> None:
    print(f"{found['rows']:,} verdicts, {found['scenarios']} scenarios, {found['draws']:,} draws of each kind")
    print(f"{'':44}{'seconds':>10}{'of CPU':>10}")
    for name, key in (
        ("reading the run file", "reading"),
        (f"the report ({found['tests']} differences and tests)", "report"),
        ("of it, differences and tests alone", "differences_and_tests"),
        ("parley report, file to report", "file_to_report"),
    ):
        print(f"{name:44}{found[key]['wall']:10.2f}{found[key]['cpu']:10.2f}")
    loop = found["loop"]
    print(f"{'plain pandas loop, scaled':44}{found['loop_wall']:10.1f}{found['loop_cpu']:10.1f}")
    print(f"  ({loop['draws']} of its draws took {loop['took']['wall']:.2f} s; the rest is arithmetic)")
    met = "met" if found["ratio_wall"] >= TARGET else "MISSED"
    if found["rows"] < 0.9 * ROWS:
        met = f"of {ROWS:,} rows"
    print(f"loop over report: {found['ratio_wall']:.0f} ({found['ratio_cpu']:.0f} by CPU; {TARGET:g} wanted: {met})")
    print(f"loop over the same work: {found['ratio_same_work_wall']:.0f} ({found['ratio_same_work_cpu']:.0f} by CPU)")
    met = "met" if found["peak_mb"] <= TARGET_MB else "MISSED"
    print(f"peak memory of the report: {found['peak_mb']:.0f} MB (at most {TARGET_MB:.0f} wanted: {met})")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="verdicts, about (default: 1,000,000)")
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap and permutation draws (default: 2000)")
    parser.add_argument("--loop-draws", type=int, default=5, help="draws of the loop that are timed (default: 5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", type=Path, help="keep the run file here; one that is there is used as it is")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", choices=("report", "loop"), help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.part:
        part = time_report if wanted.part == "report" else time_loop
        print(json.dumps(part(wanted.file, wanted.draws, wanted.seed)))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = measured(wanted.file or Path(folder) / "run.sqlite", wanted)
    if wanted.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)


if __name__ == "__main__":
    main()
