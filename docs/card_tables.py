"""The table of docs/card.md: what the battery asks and costs.

python -m docs.card_tables CARD.json…      # expected half-widths from these cards' spread
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from parley.analysis.card.record import Card, read_card
from parley.judging.card import JudgesCard
from parley.judging.card.battery import load_battery
from parley.judging.card.study import CardConfig

SIZES = ("default", "subset", "brief")


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
    ids = list(dict.fromkeys(line.name for card in cards for line in card.lines))
    reasons = {line.id: line.reason for line in load_battery().line}
    for name in ids:
        known = [card.line(name) for card in cards if name in card.by_name]
        line = known[0]
        spreads = [float(np.std(list(row.values.values()), ddof=1)) for row in known if len(row.values) > 1]
        widths = [
            _half_width(line.group, studies[size], float(np.median(spreads))) if spreads else "" for size in SIZES
        ]
        reason = reasons.get(name, "As for the three contrasts.")
        cells = (f"`{name}`", f"{line.reference:g} ± {line.margin:g}", line.worse, f"{line.n:,}", *widths, reason)
        yield f"| {' | '.join(cells)} |"


def _half_width(group: str, study: JudgesCard, spread: float) -> str:
    """Half of the 95% interval of a mean over the size's bases, with this SD between bases."""
    on_labels = group in ("labels", "author", "injection", "replies")
    bases = study.size.bases if on_labels else study.size.graded
    return f"{float(stats.t.ppf(0.975, bases - 1)) * spread / math.sqrt(bases):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cards", nargs="+", help="cards whose spread between bases is used")
    for line in battery_table([read_card(path) for path in parser.parse_args().cards]):
        print(line)


if __name__ == "__main__":
    main()
