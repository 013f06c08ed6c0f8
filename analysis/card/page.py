"""A card as one self-contained HTML page, and as Markdown for a model card.

The page has sentences, then a table per group with drawn intervals, then where the card comes from. It loads nothing,
prints on one sheet, and each line links to its units in the viewer. Names of models are untrusted text: everything is
escaped.

The Markdown has the same as one table, and `model-index` metadata that the Hugging Face hub reads. The hub's newer
`.eval_results/*.yaml` takes one value per registered benchmark dataset, without an interval; the suite is not such a
dataset, so the older form is written, which takes any metric by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby, pairwise
from string import Template
from typing import Any
from urllib.parse import quote

import yaml

from parley.analysis.card.record import Card
from parley.analysis.card.words import asks, estimate, interval, number, part_of_group, sentences, tone, verdict
from parley.analysis.stats.results import Line
from parley.base.text import markdown_cell, plural

VIEWER = "http://127.0.0.1:7575/run"
"""Where `parley view` serves runs by default."""
WIDTH, HEIGHT, EDGE = 200.0, 16.0, 10.0
READING = (
    "Bars are 95% intervals over bases (areas of life). The dashed line marks a judge without the property, and the "
    "band marks what counts as small. Verdicts are corrected (Holm) within a family of lines: shown to be "
    "<b>different</b> from the dashed line, <b>different but small</b>, shown to be <b>alike</b>, <b>undecided</b>, or "
    "<b>not measured</b> for the reason given. Nothing is summed into a grade. A line's name opens its ballots in the "
    "viewer; type <code>parley view {folder}</code> first."
)


def card_page(card: Card, runs: str = "runs") -> str:
    """The page's HTML.

    Args:
        card: What to show.
        runs: The folder of the run file, for the command that opens its units.
    """
    model = card.model
    template = Template(files("parley.analysis.card").joinpath("page.html").read_text("utf-8"))
    parts = [model.quantisation, f"{model.readout} scores, {model.scale[0]} to {model.scale[1]}", model.date]
    parts += [f"{card.battery.name} {card.battery.version} ({card.battery.size})", plural(card.run.calls, "call")]
    return template.substitute(
        title=escape(f"{model.name} as a judge"),
        model=escape(model.name),
        stamp='<span class="stamp">SIMULATED</span>' if model.simulated else "",
        about=escape(" · ".join(filter(None, parts))),
        says="".join(f"<li>{escape(line)}</li>" for line in sentences(card)),
        sections="".join(_section(group, list(lines), card) for group, lines in groupby(card.lines, lambda x: x.group)),
        reading=READING.format(folder=escape(runs)),
        facts="".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts(card)),
    )


def facts(card: Card) -> Iterator[tuple[str, str]]:
    """Where the card comes from: model, data, run."""
    model, data, run = card.model, card.data, card.run
    yield "model", f"{model.name}, family {model.family}, revision {model.revision or 'not known'}, run on {model.date}"
    template = model.template_sha256[:16] + "…" if model.template_sha256 else "not known"
    yield "weights", f"quantisation {model.quantisation or 'not known'}; chat template SHA-256 {template}"
    yield "battery", f"{card.battery.name} {card.battery.version}, {card.battery.size}, SHA-256 {card.battery.sha256}"
    yield "data", f"{data.suite}, SHA-256 {data.suite_sha256[:16]}…; wordings SHA-256 {data.wordings_sha256[:16]}…"
    cost = "price unknown" if run.cost is None else f"${run.cost:.2f}"
    tokens = f"{run.tokens_in:,} tokens in, {run.tokens_out:,} out"
    yield (
        "run",
        f"{run.file}, verdicts' SHA-256 {run.sha256}; seed {run.seed}; {plural(run.calls, 'call')}, {tokens}, {cost}",
    )
    yield "Parley", run.parley


def _section(group: str, lines: Sequence[Line], card: Card) -> str:
    head = "<thead><tr><th>line</th><th></th><th>estimate, 95% interval</th><th>verdict</th></tr></thead>"
    rows, part = "", ""
    following = {line.name: after.note for line, after in pairwise(lines)}
    for line in lines:
        if part_of_group(line) != part:
            part = part_of_group(line)
            rows += f'<tr class="part"><th colspan="4" scope="rowgroup">{escape(part)}</th></tr>'
        rows += _row(line, lines, card)
        if line.note and line.note != following.get(line.name):  # once for all lines in a row that share it
            rows += f'<tr class="why"><td colspan="4">{escape(line.note)}</td></tr>'
    return f"<section><h2>{escape(asks(group))}</h2><table>{head}<tbody>{rows}</tbody></table></section>"


def _row(line: Line, group: Sequence[Line], card: Card) -> str:
    span = interval(line)
    title = escape(line.label)
    if line.units:
        facets = "&".join(f"f.{name}={quote(value)}" for name, values in line.units.items() for value in values)
        address = f"{VIEWER}?run={quote(card.run.file)}&{facets}"
        title = f'<a href="{escape(address)}" title="{escape(line.about["question"])}">{title}</a>'
    value = f"{number(line.estimate, line)} <small>{escape(span)}</small>"
    counts = f"{plural(line.n, 'ballot')}, {plural(line.clusters or 0, line.cluster)}"
    chip = f'<span class="chip {tone(line)}" title="{counts}">{line.verdict}</span>'
    cells = ("bar", _bar(line, group)), ("value", value), ("verdict", chip)
    row = "".join(f'<td class="{name}">{content}</td>' for name, content in cells)
    return f'<tr><th scope="row">{title}</th>{row}</tr>'


def _bar(line: Line, group: Iterable[Line]) -> str:
    """The interval on the axis that all lines of the group with this unit and reference value share."""
    if math.isnan(line.estimate):
        return ""
    null, alike = line.reference, [o for o in group if (o.measure, o.reference) == (line.measure, line.reference)]
    ends = [end for other in alike for end in (other.low, other.high, other.estimate) if math.isfinite(end)]
    low, high = min(*ends, null - 1.5 * line.margin), max(*ends, null + 1.5 * line.margin)

    def x(value: float) -> float:
        return round(EDGE + (WIDTH - 2 * EDGE) * (value - low) / (high - low), 1)

    middle, kind = HEIGHT / 2, tone(line)
    left, right = x(null - line.margin), x(null + line.margin)
    drawn = f'<rect class="band" x="{left}" y="1" width="{right - left:.1f}" height="{HEIGHT - 2}"/>'
    drawn += f'<line class="null" x1="{x(null)}" x2="{x(null)}" y1="0" y2="{HEIGHT}"/>'
    if line.bounded:
        drawn += f'<line class="span {kind}" x1="{x(line.low)}" x2="{x(line.high)}" y1="{middle}" y2="{middle}"/>'
    # A line of no length with round ends: a circle would be stretched with the axis.
    place = f'x1="{x(line.estimate)}" x2="{x(line.estimate)}" y1="{middle}" y2="{middle}"'
    drawn += f'<line class="dot {kind}" {place}/>'
    drawn += f'<line class="hole" {place}/>' if kind == "blocked" else ""
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


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
