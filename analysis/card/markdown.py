"""A card as Markdown for a model card: a table for people, and `model-index` metadata that the Hugging Face hub reads.

The hub's newer `.eval_results/*.yaml` takes one value per registered benchmark dataset, without an interval; the suite
is not such a dataset, so the older form is written, which takes any metric by name.
"""

from __future__ import annotations

import math
from typing import Any

import yaml

from parley.analysis.card.page import facts
from parley.analysis.card.record import Card
from parley.analysis.card.words import asks, estimate, interval, number, sentences, verdict
from parley.analysis.stats.results import Line
from parley.base.text import markdown_cell


def card_markdown(card: Card) -> str:
    """The Markdown: metadata, sentences, one table of all lines, provenance."""
    metadata = yaml.safe_dump({"model-index": [_index(card)]}, sort_keys=False, allow_unicode=True, width=120)
    says = "\n".join(f"- {line}" for line in sentences(card))
    rows, group = [], ""
    for line in card.lines:
        if line.group != group:
            group = line.group
            rows.append(f"| **{asks(group)}** | | | | |")
        cells = (line.label, number(line.estimate, line), interval(line) or "–", verdict(line), f"{line.n:,}")
        rows.append(f"| {' | '.join(map(markdown_cell, cells))} |")
    table = "\n".join(["| line | estimate | 95% interval | verdict | ballots |", "|---|---|---|---|---|", *rows])
    about = "\n".join(f"- {name}: {text}" for name, text in facts(card))
    return f"---\n{metadata}---\n\n# {card.model.name} as a judge\n\n{says}\n\n{table}\n\n{about}\n"


def _index(card: Card) -> dict[str, Any]:
    battery = f"{card.battery.name} {card.battery.version} ({card.battery.size})"
    return {
        "name": card.model.name,
        "results": [
            {
                "task": {"type": "text-generation", "name": "judging answers"},
                "dataset": {"type": card.data.suite.partition(" ")[0], "name": f"{card.data.suite}, {battery}"},
                "metrics": [_metric(line) for line in card.lines if math.isfinite(line.estimate)],
            }
        ],
    }


def _metric(line: Line) -> dict[str, Any]:
    return {"type": line.name, "value": line.estimate, "name": f"{line.label}: {estimate(line)}, {line.verdict}"}
