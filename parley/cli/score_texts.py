"""`parley score rubric FILE` and `parley score toxicity FILE`: judges and scorers on the texts of a file."""

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

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.text import visible
from parley.cli.flags import add_flags, given
from parley.cli.run import execute_job
from parley.cli.shared import AddParser, need_analysis
from parley.cli.tables import STYLE, cell_table, interval, number
from parley.imports.texts import TextLine, read_lines
from parley.jobs.toxicity import ScorerColumn, score_texts
from parley.judging.scoring.study import RubricScores, ScoringConfig
from parley.runs.job import Job
from parley.runs.options import Options, validated

SCORERS = (
    "embedded (default), ngrams, openai-moderation, detoxify, judge:provider/model, silent:provider/model, "
    "the name of an installed scorer, or your own as file.py:Class"
)
CACHED = "; the scores are cached, so another try is quick"
MAX_TEXTS_SHOWN = 20
"""Up to this many texts are listed with their scores; for more, only a summary is printed."""


def add_rubric(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("file", help="a .jsonl file, or a .txt file with one text per line")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser, ScoringConfig, "scoring", leave_out={"file"})
    add_flags(parser, Options, "run")
    parser.set_defaults(handler=_rubric)


def _rubric(parsed: argparse.Namespace) -> int:
    options = validated(Options, given(parsed, Options))
    job = Job.make(RubricScores.name, {**given(parsed, ScoringConfig), "file": parsed.file}, options)
    need_analysis()
    if parsed.json:
        status = 0 if asyncio.run(job.execute()).complete else 1
    else:
        status = execute_job(job, quiet=parsed.quiet, as_json=False)
    if status in (0, 1):
        _print_rubric(job.path, as_json=parsed.json)
    return status


def _print_rubric(path: Path, *, as_json: bool) -> None:
    from parley.analysis.reporting.questions import table
    from parley.analysis.reporting.report import json_values
    from parley.analysis.rldf import rubrics
    from parley.runs import frames

    verdicts = frames.verdicts(path)
    if verdicts.empty:
        raise ConfigError(f"{path} has no finished units yet")
    scores, agreement = rubrics.scores(verdicts), rubrics.agreement(verdicts)
    warning = rubrics.severity_warning(verdicts)
    if as_json:
        tables = {"scores": table(scores), "agreement": table(agreement)}
        print(json.dumps(json_values({"run": str(path), **tables, "warning": warning or None}), indent=2))
        return
    console = Console()
    rows: list[tuple[Any, ...]] = [
        (
            line.about["group"] or "all",
            line.measure,
            number(line.estimate, 1),
            interval(line.low, line.high),
            line.clusters,
            line.also["unreadable"],
        )
        for line in scores
    ]
    columns = ("group", "metric", "mean", "95% interval", "texts", "unreadable")
    console.print(cell_table(columns, rows, "Scores, 0 to 100 (BS is severity: lower is better)", left=2))
    rows = [
        (
            line.label,
            rubrics.AGREEMENT.measures[line.measure],
            number(line.estimate),
            interval(line.low, line.high, 2),
            line.note,
        )
        for line in agreement
    ]
    agreed = ("metric", "coefficient", "value", "95% interval", "note")
    console.print(cell_table(agreed, rows, "Agreement between judges", left=5))
    if warning:
        console.print(escape(warning))


def add_toxicity(add_parser: AddParser) -> None:
    parser = add_parser(epilog="Exit status: 1 if a scorer could not score a text, otherwise 0.")
    parser.add_argument("file", help="a .txt file (one text per line), a .jsonl or .csv file, or - for standard input")
    parser.add_argument("--field", help="the field with the text, such as continuation.text (default: text)")
    parser.add_argument("--against", metavar="FIELD", help="a field with other scores, to compare with")
    parser.add_argument("--out", metavar="FILE", help="write every text with its scores, as JSON lines")
    add_scorer_flags(parser)
    parser.set_defaults(handler=_toxicity)


def add_scorer_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scorer", action="append", metavar="NAME", help=f"a scorer, may be repeated: {SCORERS}")
    parser.add_argument(
        "--threshold",
        type=share_type,
        default=0.5,
        metavar="X",
        help="texts with this score or more count as toxic (default: 0.5)",
    )
    parser.add_argument("--no-cache", dest="cache", action="store_false", help="ignore cached scores")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print JSON")


def share_type(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, got {text}")
    return value


def score_columns(parsed: argparse.Namespace, texts: Sequence[str]) -> list[ScorerColumn]:
    """The scores of every scorer, computed with a progress bar if there is a terminal."""
    names = parsed.scorer or ["embedded"]
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=parsed.quiet or not console.is_terminal) as bar:
        task = bar.add_task("scoring", total=len(names) * len(texts))
        return asyncio.run(
            score_texts(names, texts, cache=parsed.cache, on_scored=lambda count: bar.advance(task, count))
        )


def cautions_of(columns: Sequence[ScorerColumn]) -> list[str]:
    return [column.caution for column in columns if column.caution]


def print_cautions(columns: Sequence[ScorerColumn]) -> None:
    """Print cautions below the numbers, on the same stream, so that they go wherever the numbers go."""
    for line in cautions_of(columns):
        Console().print(f"Caution: {visible(line)}", highlight=False, markup=False)


def _toxicity(parsed: argparse.Namespace) -> int:
    need_analysis()
    lines = read_lines(parsed.file, parsed.field, parsed.against)
    columns = score_columns(parsed, [line.text for line in lines])
    if parsed.out:
        _write(Path(parsed.out), lines, columns)
    import pandas as pd

    from parley.analysis.reporting.report import json_values
    from parley.analysis.toxicity.scorers import agreement

    scores = pd.DataFrame({column.name: column.scores() for column in columns}, dtype=float)
    if parsed.against:
        scores[parsed.against] = pd.Series([line.given for line in lines], dtype=float)
    agreed = agreement(scores, parsed.threshold).to_dict("records") if scores.shape[1] > 1 else []
    summary = [_summary(column, parsed.threshold) for column in columns]
    if parsed.json:
        texts = [_row(line, columns, index) for index, line in enumerate(lines)]
        tables = {"cautions": cautions_of(columns), "scorers": summary, "agreement": agreed, "texts": texts}
        print(json.dumps(json_values(tables), indent=2))
    else:
        _print_toxicity(lines, columns, summary, agreed, parsed.threshold)
        print_cautions(columns)
        if parsed.out:
            print(visible(f"written to {parsed.out}"))
    return 1 if any(row["unscored"] for row in summary) else 0


def _summary(column: ScorerColumn, threshold: float) -> dict[str, Any]:
    scored = [score for score in column.scores() if score is not None]
    return {
        "scorer": column.name,
        "version": column.version,
        "caution": column.caution,
        "scored": len(scored),
        "unscored": len(column.results) - len(scored),
        "why": dict(Counter(result.why for result in column.results if result.score is None).most_common()),
        "mean": sum(scored) / len(scored) if scored else math.nan,
        "highest": max(scored, default=math.nan),
        "toxic": sum(score >= threshold for score in scored),
    }


def _row(line: TextLine, columns: Sequence[ScorerColumn], index: int) -> dict[str, Any]:
    return {"line": line.number, "text": line.text, "scores": {column.name: _cell(column, index) for column in columns}}


def _cell(column: ScorerColumn, index: int) -> dict[str, Any]:
    result = column.results[index]
    return {
        "version": column.version,
        "caution": column.caution,
        "score": result.score,
        "raw": result.raw,
        "labels": dict(result.labels),
        "why": result.why,
    }


def _write(path: Path, lines: Sequence[TextLine], columns: Sequence[ScorerColumn]) -> None:
    text = "".join(json.dumps(_row(line, columns, index)) + "\n" for index, line in enumerate(lines))
    with explain_unwritable(path, ConfigError, CACHED):
        path.write_text(text, "utf-8")


def _print_toxicity(
    lines: Sequence[TextLine],
    columns: Sequence[ScorerColumn],
    summary: Sequence[dict[str, Any]],
    agreed: Sequence[dict[str, Any]],
    threshold: float,
) -> None:
    console = Console()
    if len(lines) <= MAX_TEXTS_SHOWN:
        table = Table(title="Toxicity, 0 to 1", **STYLE)
        table.add_column("text", overflow="ellipsis", no_wrap=True, ratio=1)
        for column in columns:
            table.add_column(escape(visible(column.name)), justify="right", max_width=14, overflow="fold")
        for index, line in enumerate(lines):
            table.add_row(escape(visible(line.text)), *(number(column.results[index].score) for column in columns))
        console.print(table)
    counts = ("scored", "unscored", "toxic")
    rows = [
        (row["scorer"], *(f"{row[key]:,}" for key in counts), number(row["mean"]), number(row["highest"]))
        for row in summary
    ]
    columns_shown = ("scorer", "scored", "unscored", f"≥ {threshold:g}", "mean", "highest")
    console.print(cell_table(columns_shown, rows, "Scorers"))
    for row in summary:
        for why, count in list(row["why"].items())[:3]:
            console.print(f"{row['scorer']}: {count:,} unscored: {visible(why)}", highlight=False, markup=False)
    if agreed:
        pairs = [
            (
                f"{row['first']}, {row['second']}",
                f"{row['n']:,}",
                *(number(row[key]) for key in ("pearson", "spearman", "same_side", "kappa")),
                interval(row["kappa_low"], row["kappa_high"], 2),
                number(row["auc"]),
            )
            for row in agreed
        ]
        heads = ("scorers", "texts", "Pearson", "Spearman", "same side", "κ", "95% interval", "AUC")
        console.print(cell_table(heads, pairs, "Agreement"))
