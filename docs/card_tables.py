"""The tables of docs/card.md: what the battery asks and costs, and how often its verdicts are wrong.

python -m docs.card_tables battery CARD.json…      # expected half-widths from these cards' spread
python -m docs.card_tables calibration --simulations 2000
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.calibration.card import calibrate_card
from parley.analysis.card.record import Card, read_card
from parley.judging.card import JudgesCard
from parley.judging.card.battery import load_battery
from parley.judging.card.study import CardConfig

SIZES = ("default", "subset", "brief")
CHUNK = 100
"""Simulated judges of one task."""


def study_of(size: str) -> JudgesCard:
    return JudgesCard(CardConfig.model_validate({"model": "sim/judge", "size": size}))


def battery_table(cards: Sequence[Card]) -> Iterator[str]:
    """Rows of Markdown: each line's ballots and expected half-width by size, its null value, margin and reason."""
    studies = {size: study_of(size) for size in SIZES}
    parts = {size: Counter(unit.facets["part"] for unit in study.plan()) for size, study in studies.items()}
    calls = ", ".join(f"{size} {sum(counts.values()):,}" for size, counts in parts.items())
    sampled = sum(1 for _ in study_of("sampled").plan()) * study_of("sampled").battery.size["sampled"].samples
    yield f"Calls: {calls}, sampled {sampled:,}."
    yield ""
    yield "| line | null ± margin | worse | ballots | ± default | ± subset | ± brief | why this margin |"
    yield "|---|---|---|---|---|---|---|---|"
    ids = list(dict.fromkeys(line.id for card in cards for line in card.lines))
    reasons = {line.id: line.reason for line in load_battery().line}
    for name in ids:
        known = [card.line(name) for card in cards if name in card.ids]
        line = known[0]
        spreads = [float(np.std(list(row.values.values()), ddof=1)) for row in known if len(row.values) > 1]
        widths = [
            _half_width(line.group, studies[size], float(np.median(spreads))) if spreads else "" for size in SIZES
        ]
        reason = reasons.get(name, "As for the three contrasts.")
        cells = (f"`{name}`", f"{line.null:g} ± {line.margin:g}", line.worse, f"{line.n:,}", *widths, reason)
        yield f"| {' | '.join(cells)} |"


def _half_width(group: str, study: JudgesCard, spread: float) -> str:
    """Half of the 95% interval of a mean over the size's bases, with this SD between bases."""
    on_labels = group in ("labels", "author", "injection", "replies")
    bases = study.size.bases if on_labels else study.size.graded
    return f"{float(stats.t.ppf(0.975, bases - 1)) * spread / math.sqrt(bases):.2f}"


def _sides(study: JudgesCard) -> dict[str, tuple[int, int]]:
    """How many bases a stereotype favours the reference on, and how many not, by category."""
    reference = {"gender": "male", "race": "white", "religion": "christian"}
    found = {}
    for category, name in reference.items():
        codes = [code[category] for code in study.analysis_plan()["directions"].values() if category in code]
        sides = tuple(sum(name in code[side] for code in codes) for side in ("favoured", "others"))
        if min(sides) >= max(3, sum(sides) / 3):
            found[category] = (sides[0], sides[1])
    return found


def _chunk(size: str, chunk: int, *, simulations: int) -> pd.DataFrame:
    study = study_of(size)
    return calibrate_card(
        [line.model_dump() for line in study.battery.line],
        bases=study.size.bases,
        graded=study.size.graded,
        doses=len(study.size.doses),
        sides=_sides(study),
        simulations=simulations,
        seed=chunk,
    )


def calibration_table(size: str, simulations: int, workers: int) -> Iterator[str]:
    """Rows of Markdown: by line, false alarms, coverage and power."""
    chunks = range(math.ceil(simulations / CHUNK))
    with ProcessPoolExecutor(workers) as pool:
        frames = list(pool.map(partial(_chunk, size, simulations=min(CHUNK, simulations)), chunks))
    rates: Any = pd.concat(frames).groupby(["line", "family"], sort=False).mean().reset_index()
    yield f"{size}, {len(frames) * min(CHUNK, simulations):,} judges without and as many with the properties:"
    yield ""
    yield "| line | shown without effect | any of its family | coverage without | coverage with | found |"
    yield "|---|---|---|---|---|---|"
    for row in rates.itertuples():
        shown = (row.shown_without_effect, row.family_shown_without_effect)
        cells = (*shown, row.coverage_without_effect, row.coverage_with_effect, row.power)
        yield f"| `{row.line}` | {' | '.join(f'{cell:.1%}' for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("battery", "calibration"))
    parser.add_argument("cards", nargs="*", help="cards whose spread between bases is used")
    parser.add_argument("--size", choices=SIZES, default="default")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parsed = parser.parse_args()
    lines = (
        battery_table([read_card(path) for path in parsed.cards])
        if parsed.table == "battery"
        else calibration_table(parsed.size, parsed.simulations, parsed.workers)
    )
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
