"""A full MALIBU report on a million verdicts: time, memory, and what forty identities cost compared with ten.

    python -m benchmarks.report                            # 1,000,000 rows; 10 and 40 identities
    python -m benchmarks.report --rows 20000 --draws 200   # to try it out
    python -m benchmarks.report --design silent            # 1,000,000 units of a ballot each

Run from the repository's root. The run files (plans of the suite `full`, simulated verdicts) are written first; each is
then reported in a process of its own.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parley.agents import Transcript
from parley.analysis.page.report import ReportContext
from parley.analysis.stats import mean_test
from parley.judging import Outcome, Unit, Verdict
from parley.judging.malibu import report as malibu
from parley.judging.malibu.plan import MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.reports import make_report
from parley.runs import Record, RunFile, describe, frames, measure

ROWS, TARGET_SECONDS, TARGET_MB, TARGET_RATIO = 1_000_000, 10.0, 1000.0, 3.0
"""Targets with this many rows: the report's CPU seconds and memory, and forty identities over ten."""
MALIBU_IDENTITIES = 10
FAVOURED, POINTS = "female", 0.3


# The run file


def write_run(path: Path, rows: int, identities: int, seed: int, design: str) -> None:
    """A run file with about `rows` verdicts on units of the full suite's plan, repeated as often as needed.

    A silent ballot is one verdict. Ten identities are MALIBU's; any other number is one category in phase 1, where
    every two are compared.
    """
    config = MalibuConfig(suite="full", model=["sim/judge"], design="silent")
    if design == "paper":
        config = MalibuConfig(suite="full", model=["sim/judge"], design="paper", cells="all", ties=True)
    if identities != MALIBU_IDENTITIES:
        labels = path.with_suffix(".toml")
        names = ", ".join(f'"group {number}"' for number in range(identities))
        labels.write_text(f"[categories]\ngroup = [{names}]\n")
        config = config.model_copy(update={"identities": [str(labels)], "phases": [1]})
    study = Malibu(config)
    one_plan = sum(_size(unit, study) for unit in study.plan())
    if design == "paper":
        study = Malibu(study.config.model_copy(update={"repeats": math.ceil(rows / one_plan)}))
    units, planned = [], 0
    for unit in study.plan() if design == "paper" else _of_more_bases(study, math.ceil(rows / one_plan)):
        if planned >= rows:
            break
        units.append(unit)
        planned += _size(unit, study)
    rng = np.random.default_rng(seed)
    with RunFile.create(path, describe(study, "malibu", measure(study)), {}, units) as file:
        for start in range(0, len(units), 500):
            batch = units[start : start + 500]
            outcomes = ((unit, Outcome(Transcript(()), _verdicts(unit, study, rng))) for unit in batch)
            file.write([Record(unit=unit, outcome=outcome) for unit, outcome in outcomes])


def _of_more_bases(study: Malibu, copies: int) -> Iterator[Unit]:
    """The plan on `copies` times as many bases: a silent ballot is not repeated."""
    for copy in range(copies):
        for unit in study.plan():
            bases = {name: f"{unit.facets[name]} {copy}" for name in ("base", "scenario")}
            yield replace(unit, id=f"{unit.id}/{copy}", facets={**unit.facets, **bases})


def _size(unit: Unit, study: Malibu) -> int:
    if unit.facets.get("stage") == "silent":
        return 1
    metrics = len(study.rubric.names)
    return len(study.panel.judges) * study.config.rounds * (metrics if unit.facets["phase"] == 1 else 2 * metrics + 1)


def _verdicts(unit: Unit, study: Malibu, rng: np.random.Generator) -> tuple[Verdict, ...]:
    """Simulated verdicts: the judges of a panel share an opinion of the text, and favour one label a little."""
    facets = unit.facets
    if facets.get("stage") == "silent":
        return (_ballot(unit, study.panel.judges[0].name, rng),)
    sides = {"": facets["identity"]} if facets["phase"] == 1 else {s: facets[f"identity_{s.lower()}"] for s in "AB"}
    shared = rng.normal(0, 0.8)
    verdicts = []
    for round in range(1, study.config.rounds + 1):
        for judge in study.panel.judges:
            totals = {}
            origin: dict[str, Any] = {"judge": judge.name, "role": "debater", "round": round}
            for side, label in sides.items():
                points = rng.normal(7 + shared + POINTS * (label == FAVOURED), 1.0, len(study.rubric.names))
                scores = np.clip(np.rint(points), 0, 10).tolist()
                totals[side] = sum(scores)
                for metric, score in zip(study.rubric.names, scores, strict=True):
                    verdicts.append(Verdict(**origin, metric=metric, subject=side, value=score, sampled=score))
            if len(sides) == 2:
                lead = totals["A"] - totals["B"]
                choice = "tie" if lead == 0 else "A" if lead > 0 else "B"
                verdicts.append(Verdict(**origin, metric="preferred", text=choice))
    return tuple(verdicts)


def _ballot(unit: Unit, judge: str, rng: np.random.Generator) -> Verdict:
    noise = float(rng.normal(0, 1.0))
    if unit.facets["phase"] == 2:
        share = 1 / (1 + math.exp(-noise))
        return Verdict(judge=judge, role="debater", round=0, metric="preferred", text="AB"[share < 0.5], value=share)
    score = min(max(6 + noise + POINTS * (unit.facets["identity"] == FAVOURED), 1.0), 9.0)
    return Verdict(judge=judge, role="debater", round=0, metric="Overall", value=score, sampled=round(score))


# The report


def time_report(path: Path, draws: int, seed: int) -> dict[str, Any]:
    """The report of a frame, then of the file, as by `parley report`."""
    with RunFile.open(path) as file:
        verdicts, reading = _timed(lambda: frames.verdicts(file))
    report, whole = _timed(lambda: malibu.report(verdicts, ReportContext(draws=draws, seed=seed)))
    figures = {
        "rows": len(verdicts),
        "bases": verdicts["base"].nunique(),
        "scenarios": verdicts["scenario"].nunique(),
        "differences": len(report.table("differences")),
        "reading": reading,
        "report": whole,
    }
    report = verdicts = None
    mean_test._tested.cache_clear()  # a report of its own computes all tests
    _, figures["file_to_report"] = _timed(lambda: make_report([path], draws=draws, seed=seed))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return figures | {"peak_mb": peak / (1024 if sys.platform == "linux" else 2**20)}


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def measured(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of each number of identities."""
    figures = {}
    for identities in arguments.identities:
        path = folder / f"{identities}.sqlite"
        if not path.exists():
            write_run(path, arguments.rows, identities, arguments.seed, arguments.design)
        command = [sys.executable, "-m", "benchmarks.report", "--part", str(path)]
        command += ["--draws", str(arguments.draws), "--seed", str(arguments.seed)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        figures[str(identities)] = json.loads(output)
    return figures


def show(figures: dict[str, Any]) -> None:
    for identities, part in figures.items():
        print(
            f"{identities} identities: {part['rows']:,} verdicts, {part['bases']} bases, "
            f"{part['scenarios']} scenarios, {part['differences']} differences"
        )
        print(f"{'':34}{'seconds':>10}{'of CPU':>10}")
        for name, key in (
            ("reading the run file", "reading"),
            ("the report", "report"),
            ("parley report, file to report", "file_to_report"),
        ):
            print(f"{name:34}{part[key]['wall']:10.2f}{part[key]['cpu']:10.2f}")
        print(f"peak memory: {part['peak_mb']:.0f} MB")
    first, *others = figures.values()
    if first["rows"] >= 0.9 * ROWS:
        print(f"the report within {TARGET_SECONDS:g} s of CPU: {_met(first['report']['cpu'] <= TARGET_SECONDS)}")
        print(f"and {TARGET_MB:g} MB: {_met(max(part['peak_mb'] for part in figures.values()) <= TARGET_MB)}")
    for part in others:
        ratio = part["report"]["cpu"] / first["report"]["cpu"]
        print(
            f"CPU, relative to the first report: {ratio:.2f} (target {TARGET_RATIO:g}: {_met(ratio <= TARGET_RATIO)})"
        )


def _met(reached: bool) -> str:
    return "met" if reached else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="approximate number of verdicts (default: 1,000,000)")
    parser.add_argument("--identities", type=int, nargs="+", default=[10, 40], help="how many (default: 10 40)")
    parser.add_argument("--design", choices=["paper", "silent"], default="paper")
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws (default: 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to save the run files; existing ones are used")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(time_report(arguments.part, arguments.draws, arguments.seed)))
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(arguments.folder or Path(folder), arguments)
    show(figures)


if __name__ == "__main__":
    main()
