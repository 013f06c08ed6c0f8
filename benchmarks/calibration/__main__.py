"""False-positive rate and power of every test, on simulated judges, in Markdown as in benchmarks/CALIBRATION.md.

    python -m benchmarks.calibration --simulations 2000                          # judges are as the tests assume
    python -m benchmarks.calibration --adversarial --only "phase 2"              # they break the assumptions
    python -m benchmarks.calibration --adversarial --simulations 2000 --workers 2 --out DIR

Run from the repository's root. `benchmarks.calibration.agreement` and `.referee` simulate the agreement of judges, and
the referee's check.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small matrices, for which threads only wait for each other

import pandas as pd

from benchmarks.calibration import printed, silent
from benchmarks.calibration.adversarial import adversarial_figure, calibrate_adversarially
from benchmarks.calibration.as_assumed import calibrate, calibration_figure
from benchmarks.calibration.cells import cells
from parley.analysis.page.figures import save

COLUMNS = {
    "over bases": printed.BY_BASE,
    "over scenarios": printed.BY_SCENARIO,
    "χ²": printed.CHI_SQUARE,
    "units": printed.BINOMIAL,
    "McNemar": printed.MCNEMAR,
    "all identities": printed.OMNIBUS,
    "F": printed.BETWEEN_BASES,
    "naive": silent.NAIVE_BASES,
    "alike": printed.ALIKE,
}
NOTE = "{simulations} simulated studies per cell, seed {seed}; bars: 95% Wilson intervals. {more} SIMULATED judges."


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--adversarial", action="store_true", help="judges break the tests' assumptions")
    parser.add_argument("--only", default="", metavar="TEXT", help="adversarial cells with this in their name or group")
    parser.add_argument("--workers", type=int, default=1, help="processes of --adversarial (default: 1)")
    parser.add_argument("--simulations", type=int, help="studies per cell (default: 1000; with --adversarial: 200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulations (default: 0)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the rows (CSV) and the plot")
    asked = parser.parse_args()
    asked.simulations = asked.simulations or (200 if asked.adversarial else 1000)
    if not asked.adversarial:
        rows = calibrate(simulations=asked.simulations, seed=asked.seed)
        print(*assumed_table(rows), sep="\n")
        _write(asked, rows, "calibration", calibration_figure, "At effect 0 a test should lie at the dashed 5%.")
        return
    chosen = [cell for cell in cells() if asked.only.lower() in f"{cell.group}: {cell.name}".lower()]
    if not chosen:
        groups = ", ".join(dict.fromkeys(cell.group for cell in cells()))
        parser.error(f"no cell has {asked.only!r} in its name (--only); the groups are {groups}")
    parts = []
    for _, members in groupby(chosen, key=lambda cell: cell.group):
        parts.append(
            calibrate_adversarially(
                list(members), simulations=asked.simulations, seed=asked.seed, workers=asked.workers
            )
        )
        print(*adversarial_table(parts[-1]), sep="\n", flush=True)
    rows = pd.concat(parts, ignore_index=True)
    missed = rows[rows["finding"] != ""]
    print(f"Tests that reports rest on and that miss a target: {len(missed)}")
    for row in missed.itertuples():
        print(f"- {row.group}: {row.cell} · {row.test}: {row.finding}")
    print(f"{sum(os.times()[:4]):.0f} s of CPU time.")
    more = "Grey: the target, 3 to 7%. Under 6 bases our test cannot reject."
    _write(asked, rows, "adversarial", adversarial_figure, more)


def _write(asked: argparse.Namespace, rows: pd.DataFrame, name: str, figure: Any, more: str) -> None:
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / f"{name}.csv").write_text(rows.to_csv(index=False), "utf-8")
        note = NOTE.format(simulations=asked.simulations, seed=asked.seed, more=more)
        title = {"calibration": "False-positive rate and power", "adversarial": "False alarms of broken assumptions"}
        save(figure(rows, title[name], note), asked.out / name)


def assumed_table(rows: pd.DataFrame) -> Iterator[str]:
    """Share of significant tests in percent: false positives at effect 0, else power."""
    judges = sorted(set(rows["judges"]))
    yield f"| test | scenarios | effect | {' | '.join(f'judges: {count}' for count in judges)} |"
    yield "|---|" + "---|" * (2 + len(judges))
    for (test, scenarios, effect), part in rows.groupby(["test", "scenarios", "effect"]):
        rates = part.set_index("judges")["rate"]
        yield f"| {test} | {scenarios} | {effect:g} | {' | '.join(f'{100 * rates[count]:.1f}' for count in judges)} |"


def adversarial_table(rows: pd.DataFrame) -> Iterator[str]:
    """One group: false alarms in percent; ⁺: power; in parentheses the level that a test can attain; bold: missed."""
    shown = {name: test for name, test in COLUMNS.items() if test in set(rows["test"])}
    yield f"| {rows['group'].iloc[0]} | {' | '.join(shown)} | covers |"
    yield "|---|" + "---|" * (1 + len(shown))
    for cell, part in rows.groupby("cell", sort=False):
        by_test = part.set_index("test")
        rates = [_rate(by_test.loc[test]) if test in by_test.index else "–" for test in shown.values()]
        ours = by_test.loc[printed.BY_BASE]
        yield f"| {cell} | {' | '.join(rates)} | {_bold(100 * ours['coverage'], 'covers' in ours['finding'])} |"
    yield ""


def _rate(row: Any) -> str:
    if math.isnan(row["rate"]):
        return "–"
    if not row["null"]:
        return f"{100 * row['rate']:.0f}⁺"
    limit = f" ({100 * row['attainable']:.1f})" if row["attainable"] < 0.045 else ""
    return _bold(100 * row["rate"], "alarms" in row["finding"] or "conservative" in row["finding"]) + limit


def _bold(percent: float, missed: bool) -> str:
    return f"**{percent:.1f}**" if missed else f"{percent:.1f}"


if __name__ == "__main__":
    main()
