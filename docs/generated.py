"""Pages and sections made from data when the site is built: prices, bases, formats, the papers' points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path

from docs.point_by_point import DATA, PAPERS, models_section, paper_section, prompts_section
from parley.agents.models.prices import price_list
from parley.runs.notes import SCHEMA as NOTES_SCHEMA
from parley.scenarios.malibu import load_suite


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _dollars(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def prices() -> Iterator[str]:
    yield "# Prices"
    yield "The price list that cost estimates use, in US dollars per million tokens; it is `agents/models/prices.toml`."
    yield "Thinking is billed as output. An empty cell was not found."
    rows = [_row("model", "prompt", "cached", "reply", "looked up", "ends"), "|---" * 6 + "|"]
    for name, listed in price_list().items():
        price = listed.price
        ends = f"{listed.ends:%d %B %Y}, use {listed.use}" if listed.ends else ""
        looked_up = f"[{listed.looked_up:%d %B %Y}]({listed.source})"
        cells = (_dollars(price.prompt), _dollars(price.cached), _dollars(price.completion), looked_up, ends)
        rows.append(_row(f"`{name}`", *cells))
    yield "\n".join(rows)


def bases() -> Iterator[str]:
    suite, _ = load_suite("malibu-2")
    yield "# Bases of the suite"
    yield "Every base of `malibu-2`: the stereotype it probes, and its source. `parley scenarios list --bases`."
    rows = [_row("base", "stereotype", "source"), "|---" * 3 + "|"]
    yield "\n".join([*rows, *(_row(f"`{base.id}`", base.stereotype, base.source) for base in suite.base)])


def formats() -> Iterator[str]:
    yield "# File formats"
    yield "The SQL of run files and of notes files."
    yield "## A run file"
    yield f"```sql\n{files('parley.runs').joinpath('schema.sql').read_text('utf-8').strip()}\n```"
    yield "## RUN.notes.sqlite"
    yield f"```sql\n{NOTES_SCHEMA.strip()}\n```"


PAGES: dict[str, Callable[[], Iterator[str]]] = {"prices": prices, "bases": bases, "formats": formats}
"""The pages by name."""
SECTIONS: dict[str, tuple[Callable[[], Iterator[str]], ...]] = {
    "papers": (*(partial(paper_section, name) for name in PAPERS), prompts_section, models_section)
}
"""What follows the text of a page."""
SOURCES: dict[Path, str] = {
    **{DATA / f"{name}.toml": f"papers#{name}-point-by-point" for name in PAPERS},
    DATA / "prompts.toml": "papers#prompts-of-the-papers-and-ours",
    DATA / "models.toml": "papers#models-of-the-papers",
}
"""Files that a link may name, as it must in the repository, with the heading that the site shows instead."""


def generated_pages() -> dict[str, str]:
    """The Markdown of each page."""
    return {name: "\n\n".join(page()) for name, page in PAGES.items()}


def generated_sections() -> dict[str, str]:
    """The Markdown that follows the text of a page."""
    return {name: "\n\n".join(part for section in parts for part in section()) for name, parts in SECTIONS.items()}
