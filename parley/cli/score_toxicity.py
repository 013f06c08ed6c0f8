"""`parley score toxicity FILE`: how toxic the texts of a file are, by one scorer or several, and how these agree."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from parley.agents import ConfigError
from parley.cli.commands import AddParser
from parley.cli.text import visible
from parley.texts import Line, read_lines
from parley.toxicity import ScorerColumn, score_texts

SCORERS = (
    "embedded (default), openai-moderation, detoxify, perspective (its service ends on 31 December 2026), "
    "judge:provider/model, an installed one, or your own as file.py:Class"
)
SHOWN = 20
"""So many texts are shown one by one; of more, a summary."""
LOOKS: dict[str, Any] = {"box": None, "padding": (0, 1, 0, 0), "pad_edge": False, "title_justify": "left"}


def add_to(add_parser: AddParser) -> None:
    toxicity = add_parser(epilog="Exit status 1 where a text could not be scored by one of the scorers.")
    toxicity.add_argument("file", help="a .txt file (a text a line), .jsonl, .csv, or - for standard input")
    toxicity.add_argument("--field", help="the field that holds the text, as in continuation.text (default: text)")
    toxicity.add_argument("--against", metavar="FIELD", help="a field with scores of others, to compare with")
    toxicity.add_argument("--out", metavar="FILE", help="every text with its scores, as JSON lines")
    add_scorer_flags(toxicity)
    toxicity.set_defaults(handler=lambda parsed, rest: _toxicity(parsed))


def add_scorer_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scorer", action="append", metavar="NAME", help=f"may be given again: {SCORERS}")
    parser.add_argument("--threshold", type=_share, default=0.5, help="from where a text is toxic (default: 0.5)")
    parser.add_argument("--no-cache", dest="cache", action="store_false", help="score again what was scored before")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true")


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("must lie between 0 and 1")
    return value


def need_tables() -> None:
    try:
        import pandas  # noqa: F401
        import scipy  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("tables need pandas and friends: pip install 'parley-autogen[analysis]'") from None


def columns_of(parsed: argparse.Namespace, texts: Sequence[str]) -> list[ScorerColumn]:
    """What the scorers say, with a bar on a terminal."""
    names = parsed.scorer or ["embedded"]
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=parsed.quiet or not console.is_terminal) as bar:
        task = bar.add_task("scoring", total=len(names) * len(texts))
        return asyncio.run(
            score_texts(names, texts, cache=parsed.cache, on_scored=lambda more: bar.advance(task, more))
        )


def cautions_of(columns: Sequence[ScorerColumn]) -> list[str]:
    return [column.caution for column in columns if column.caution]


def print_cautions(columns: Sequence[ScorerColumn]) -> None:
    """Below the numbers and on the same stream, so that they go where the numbers go."""
    for line in cautions_of(columns):
        Console().print(f"Caution: {visible(line)}", highlight=False, markup=False)


def _toxicity(parsed: argparse.Namespace) -> int:
    need_tables()
    lines = read_lines(parsed.file, parsed.field, parsed.against)
    columns = columns_of(parsed, [line.text for line in lines])
    if parsed.out:
        _write(Path(parsed.out), lines, columns)
    import pandas as pd

    from parley.analysis.toxicity.scorers import agreement

    scores = pd.DataFrame({column.name: column.scores() for column in columns}, dtype=float)
    if parsed.against:
        scores[parsed.against] = pd.Series([line.given for line in lines], dtype=float)
    agreed = agreement(scores, parsed.threshold).to_dict("records") if scores.shape[1] > 1 else []
    summary = [_summary(column, parsed.threshold) for column in columns]
    if parsed.json:
        texts = [_row(line, columns, at) for at, line in enumerate(lines)]
        told = {"cautions": cautions_of(columns), "scorers": summary, "agreement": agreed, "texts": texts}
        print(json.dumps(_plain(told), indent=2))
    else:
        _print(lines, columns, summary, agreed, parsed.threshold)
        print_cautions(columns)
    return 1 if any(one["unscored"] for one in summary) else 0


def _summary(column: ScorerColumn, threshold: float) -> dict[str, Any]:
    scored = [one.score for one in column.found if one.score is not None]
    return {
        "scorer": column.name,
        "version": column.version,
        "caution": column.caution,
        "scored": len(scored),
        "unscored": len(column.found) - len(scored),
        "why": dict(Counter(one.why for one in column.found if one.score is None).most_common()),
        "mean": sum(scored) / len(scored) if scored else math.nan,
        "highest": max(scored, default=math.nan),
        "toxic": sum(score >= threshold for score in scored),
    }


def _row(line: Line, columns: Sequence[ScorerColumn], at: int) -> dict[str, Any]:
    scores = {
        column.name: {"version": column.version, "caution": column.caution, **_said(column, at)} for column in columns
    }
    return {"line": line.number, "text": line.text, "scores": scores}


def _said(column: ScorerColumn, at: int) -> dict[str, Any]:
    one = column.found[at]
    return {"score": one.score, "raw": one.raw, "labels": dict(one.labels), "why": one.why}


def _write(path: Path, lines: Sequence[Line], columns: Sequence[ScorerColumn]) -> None:
    text = "".join(json.dumps(_row(line, columns, at)) + "\n" for at, line in enumerate(lines))
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; the scores are kept, so that trying again is quick") from None


def _plain(value: Any) -> Any:
    """NaN is nothing JSON knows."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _print(
    lines: Sequence[Line],
    columns: Sequence[ScorerColumn],
    summary: Sequence[dict[str, Any]],
    agreed: Sequence[dict[str, Any]],
    threshold: float,
) -> None:
    console = Console()
    if len(lines) <= SHOWN:
        table = Table(title="Toxicity, 0 to 1", **LOOKS)
        table.add_column("text", overflow="ellipsis", no_wrap=True, ratio=1)
        for column in columns:
            table.add_column(escape(visible(column.name)), justify="right", max_width=14, overflow="fold")
        for at, line in enumerate(lines):
            table.add_row(escape(visible(line.text)), *(number(column.found[at].score) for column in columns))
        console.print(table)
    table = Table(title="Scorers", **LOOKS)
    for name in ("scorer", "scored", "unscored", "mean", "highest", f"≥ {threshold:g}"):
        table.add_column(name, justify="left" if name == "scorer" else "right", overflow="fold")
    for one in summary:
        counts = (escape(visible(one["scorer"])), *(f"{one[key]:,}" for key in ("scored", "unscored")))
        table.add_row(*counts, number(one["mean"]), number(one["highest"]), f"{one['toxic']:,}")
    console.print(table)
    for one in summary:
        for why, count in list(one["why"].items())[:3]:
            console.print(f"{one['scorer']}: {count:,} unscored: {visible(why)}", highlight=False, markup=False)
    if agreed:
        table = Table(title="Agreement", **LOOKS)
        for name in ("scorers", "texts", "Pearson", "Spearman", "same side", "κ", "95%", "AUC"):
            table.add_column(name, justify="left" if name == "scorers" else "right", overflow="fold")
        for row in agreed:
            table.add_row(
                escape(visible(f"{row['first']}, {row['second']}")),
                f"{row['n']:,}",
                *(number(row[key]) for key in ("pearson", "spearman", "same_side", "kappa")),
                "–" if math.isnan(row["kappa_low"]) else f"{row['kappa_low']:.2f}–{row['kappa_high']:.2f}",
                number(row["auc"]),
            )
        console.print(table)


def number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"
