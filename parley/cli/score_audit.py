"""`parley score audit`: how much toxicity scores depend on the identity in a sentence, and what misleads scorers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parley.agents import ConfigError
from parley.base.text import visible
from parley.cli.commands import AddParser
from parley.cli.needs import need_analysis
from parley.cli.score_toxicity import (
    TABLE_STYLE,
    add_scorer_flags,
    cautions_of,
    number,
    print_cautions,
    score_columns,
)
from parley.jobs.toxicity import ScorerColumn
from parley.scenarios import select
from parley.scenarios.audit import Audit, load_audit

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_PAIRS_SHOWN = 4
"""The number of pairs of identities that are listed for each scorer, those furthest apart."""


def add_to(add_parser: AddParser) -> None:
    audit = add_parser()
    audit.add_argument(
        "--identities", metavar="A,B", help="categories, labels or a .toml file, instead of the shipped identities"
    )
    audit.add_argument("--figure", metavar="FILE", help="draw the scores to a .svg, .pdf or .png file")
    add_scorer_flags(audit)
    audit.set_defaults(handler=lambda parsed, rest: _audit(parsed))


def _audit(parsed: argparse.Namespace) -> int:
    need_analysis()
    figure = Path(parsed.figure) if parsed.figure else None
    if figure is not None and figure.suffix not in (".svg", ".pdf", ".png"):
        raise ConfigError(f"{figure}: the name of a figure must end in .svg, .pdf or .png")
    identities = select([name.strip() for name in parsed.identities.split(",")]) if parsed.identities else None
    audit = load_audit(identities)
    texts = [*(probe.text for probe in audit.probes), *(control.text for control in audit.controls)]
    columns = score_columns(parsed, texts)
    probes, controls = _tables(audit, columns)
    if figure is not None:
        _draw(figure, probes, audit, columns)
    if parsed.json:
        _print_json(probes, controls, columns, parsed.threshold)
    else:
        _print(probes, controls, audit, parsed.threshold)
        print_cautions(columns)
        if figure is not None:
            print(visible(f"written to {figure}"))
    unscored = sum(score is None for column in columns for score in column.scores())
    return 1 if unscored else 0


def _tables(audit: Audit, columns: Sequence[ScorerColumn]) -> tuple[DataFrame, DataFrame]:
    """The scores of probes and controls, one row per scorer and text. A scorer that corrects its scores is in them
    twice, with corrected and with raw scores."""
    import pandas as pd

    series: list[tuple[str, list[float | None]]] = []
    for column in columns:
        if any(value is not None for value in column.raw()):
            series.append((f"{column.name}, raw", column.raw()))
        series.append((column.name, column.scores()))
    count = len(audit.probes)
    probes = [
        {"scorer": name, **probe._asdict(), "score": score}
        for name, scores in series
        for probe, score in zip(audit.probes, scores[:count], strict=True)
    ]
    controls = [
        {"scorer": name, **control._asdict(), "score": score}
        for name, scores in series
        for control, score in zip(audit.controls, scores[count:], strict=True)
    ]
    return pd.DataFrame(probes).astype({"score": float}), pd.DataFrame(controls).astype({"score": float})


def _draw(path: Path, probes: DataFrame, audit: Audit, columns: Sequence[ScorerColumn]) -> None:
    from parley.analysis.reporting.figures import save
    from parley.analysis.toxicity.figures import audit_figure

    title = "Toxicity of the same sentence about different people"
    figure = audit_figure(probes, audit.sentences, title, figure_note(columns))
    try:
        save(figure, path, [path.suffix.removeprefix(".")])
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def figure_note(columns: Sequence[ScorerColumn]) -> str:
    """The note below the figure: cautions, and the version of each scorer."""
    versions = "; ".join(f"{column.name}: {column.version}" for column in columns)
    return " ".join([*cautions_of(columns), f"Each dot is an identity. {versions}."])


def _print_json(probes: DataFrame, controls: DataFrame, columns: Sequence[ScorerColumn], threshold: float) -> None:
    from parley.analysis.toxicity.scorers import by_kind, by_sentence, gaps

    tables = {
        "sentences": by_sentence(probes),
        "gaps": gaps(probes),
        "controls": by_kind(controls, threshold),
        "probes": probes,
    }
    versions = {column.name: column.version for column in columns}
    rows = {name: json.loads(table.to_json(orient="records")) for name, table in tables.items()}
    print(json.dumps({"cautions": cautions_of(columns), "scorers": versions, **rows}, indent=2))


def _print(probes: DataFrame, controls: DataFrame, audit: Audit, threshold: float) -> None:
    from parley.analysis.toxicity.scorers import by_category, by_kind, by_sentence, gaps

    console = Console()
    table = Table(title="The same sentence about different people: lowest and highest score", **TABLE_STYLE)
    for name in ("scorer", "sentence", "low", "high", "range"):
        table.add_column(name, justify="right" if name in ("low", "high", "range") else "left")
    for scorer, part in by_sentence(probes).groupby("scorer", sort=False):
        table.add_section()
        for row in part.itertuples():
            low, high = (f"{who} {number(score)}" for who, score in ((row.lowest, row.low), (row.highest, row.high)))
            cells = (str(scorer), audit.sentences[str(row.sentence)], low, high, number(row.range))
            table.add_row(*map(_literal, cells))
    console.print(table)
    gap = by_category(probes)
    console.print(_grid("Mean absolute gap between two identities, by category", "category", gap))
    table = Table(title="Pairs furthest apart, mean over the sentences", **TABLE_STYLE)
    for name in ("scorer", "higher", "lower", "gap", "largest"):
        table.add_column(name, justify="right" if name in ("gap", "largest") else "left")
    for scorer, part in gaps(probes).groupby("scorer", sort=False):
        for row in part.nlargest(MAX_PAIRS_SHOWN, "gap").itertuples():
            cells = (str(scorer), str(row.higher), str(row.lower), number(row.gap), number(row.largest))
            table.add_row(*map(_literal, cells))
    console.print(table)
    kinds = by_kind(controls, threshold)
    kinds["cell"] = [f"{number(row.mean)} ({row.right}/{row.n})" for row in kinds.itertuples()]
    kinds["kind"] += kinds["toxic"].map({True: " ↑", False: " ↓"})
    cells = kinds.pivot(index="kind", columns="scorer", values="cell")
    cells = cells.loc[list(dict.fromkeys(kinds["kind"])), list(dict.fromkeys(kinds["scorer"]))]
    console.print(_grid("Controls: mean score (number on the right side)", "kind", cells))
    unscored = f"{int(probes['score'].isna().sum())} sentences, {int(controls['score'].isna().sum())} controls"
    legend = f"↑ should be {threshold:g} or more, ↓ less. Unscored: {unscored}."
    console.print(legend, highlight=False, markup=False)


def _literal(text: str) -> str:
    """Names are others' words, and no markup."""
    return escape(visible(text))


def _grid(title: str, first: str, frame: DataFrame) -> Table:
    table = Table(title=title, **TABLE_STYLE)
    table.add_column(first)
    for scorer in frame.columns:
        table.add_column(_literal(str(scorer)), justify="right")
    for name, row in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        table.add_row(_literal(str(name)), *(value if isinstance(value, str) else number(value) for value in row))
    return table
