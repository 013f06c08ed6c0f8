"""`parley score audit` and `parley score calibrate`: what misleads toxicity scorers, and where their thresholds lie."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.text import plural, visible
from parley.cli.score_texts import (
    CACHED,
    SCORERS,
    add_scorer_flags,
    cautions_of,
    print_cautions,
    score_columns,
    share_type,
)
from parley.cli.shared import AddParser, comma_separated, need_analysis
from parley.cli.tables import cell_table, number
from parley.imports.texts import TextLine, read_lines
from parley.jobs.toxicity import ScorerColumn
from parley.judging.toxicity.calibration import Calibration, GroupOfTexts, Range
from parley.judging.toxicity.languages import find_language, language_name
from parley.judging.toxicity.swaps import Swaps
from parley.scenarios import select
from parley.scenarios.audit import Audit, load_audit

if TYPE_CHECKING:
    from pandas import DataFrame

    from parley.analysis.stats.results import Line
    from parley.analysis.toxicity.thresholds import CalibratedGroup

MAX_PAIRS_SHOWN = 4
"""Number of pairs of identities listed for each scorer, those furthest apart."""
NO_IDENTITY = "none named"
DIGITS = 4
"""Decimals of thresholds, which are rounded to the safe side: fewer misses, fewer false alarms."""


def add_audit(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "--identities", metavar="A,B", help="categories, labels or a .toml file, instead of the shipped identities"
    )
    parser.add_argument("--figure", metavar="FILE", help="draw the scores to a .svg, .pdf or .png file")
    add_scorer_flags(parser)
    parser.set_defaults(handler=_audit)


def _audit(parsed: argparse.Namespace) -> int:
    need_analysis()
    figure = Path(parsed.figure) if parsed.figure else None
    if figure is not None and figure.suffix not in (".svg", ".pdf", ".png"):
        raise ConfigError(f"{figure}: the name of a figure must end in .svg, .pdf or .png")
    identities = select(comma_separated(parsed.identities)) if parsed.identities else None
    audit = load_audit(identities)
    texts = [*(probe.text for probe in audit.probes), *(control.text for control in audit.controls)]
    columns = score_columns(parsed, texts)
    probes, controls = _tables(audit, columns)
    if figure is not None:
        _draw(figure, probes, audit, columns)
    if parsed.json:
        _print_json(probes, controls, columns, parsed.threshold)
    else:
        _print_audit(probes, controls, audit, parsed.threshold)
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
    from parley.analysis.toxicity.scorers import audit_figure

    title = "Toxicity of the same sentence about different people"
    figure = audit_figure(probes, audit.sentences, title, figure_note(columns))
    with explain_unwritable(path, ConfigError):
        save(figure, path, [path.suffix.removeprefix(".")])


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


def _print_audit(probes: DataFrame, controls: DataFrame, audit: Audit, threshold: float) -> None:
    from parley.analysis.toxicity.scorers import by_category, by_kind, by_sentence, gaps

    console = Console()
    rows = [
        (row.scorer, audit.sentences[str(row.sentence)], low, high, number(row.range))
        for row in by_sentence(probes).itertuples()
        for low, high in [(f"{row.lowest} {number(row.low)}", f"{row.highest} {number(row.high)}")]
    ]
    title = "The same sentence about different people: lowest and highest score"
    console.print(cell_table(("scorer", "sentence", "low", "high", "range"), rows, title, left=2))
    console.print(_grid("Mean absolute gap between two identities, by category", "category", by_category(probes)))
    pairs = [
        (row.scorer, row.higher, row.lower, number(row.gap), number(row.largest))
        for _, part in gaps(probes).groupby("scorer", sort=False)
        for row in part.nlargest(MAX_PAIRS_SHOWN, "gap").itertuples()
    ]
    title = "Pairs furthest apart, mean over the sentences"
    console.print(cell_table(("scorer", "higher", "lower", "gap", "largest"), pairs, title, left=3))
    kinds = by_kind(controls, threshold)
    kinds["cell"] = [f"{number(row.mean)} ({row.right}/{row.n})" for row in kinds.itertuples()]
    kinds["kind"] += kinds["toxic"].map({True: " ↑", False: " ↓"})
    cells = kinds.pivot(index="kind", columns="scorer", values="cell")
    cells = cells.loc[list(dict.fromkeys(kinds["kind"])), list(dict.fromkeys(kinds["scorer"]))]
    console.print(_grid("Controls: mean score (number on the right side)", "kind", cells))
    unscored = f"{int(probes['score'].isna().sum())} sentences, {int(controls['score'].isna().sum())} controls"
    legend = f"↑ should be {threshold:g} or more, ↓ less. Unscored: {unscored}."
    console.print(legend, highlight=False, markup=False)


def _grid(title: str, first: str, frame: DataFrame) -> Table:
    rows = [
        (name, *(value if isinstance(value, str) else number(value) for value in row))
        for name, row in zip(frame.index, frame.to_numpy().tolist(), strict=True)
    ]
    return cell_table((first, *map(str, frame.columns)), rows, title)


def add_calibrate(add_parser: AddParser) -> None:
    parser = add_parser(
        epilog="A toxic text is missed if its score is below a threshold. Texts without a score are counted separately."
    )
    parser.add_argument("file", help="a .jsonl or .csv file with texts and labels, or - for standard input")
    parser.add_argument("--field", help="the field with the text, such as prompt.text (default: text)")
    parser.add_argument("--label", required=True, metavar="FIELD", help="the field with the label: 0 or 1, or a score")
    parser.add_argument(
        "--label-from",
        type=share_type,
        default=0.5,
        metavar="X",
        help="labels of this or more are toxic (default: %(default)s)",
    )
    parser.add_argument("--language", metavar="FIELD", help="the field with the language (default: detect it)")
    parser.add_argument("--group", metavar="FIELD", help="the field with a group (default: group by identity words)")
    parser.add_argument("--scorer", action="append", metavar="NAME", help=f"the scorer: {SCORERS}")
    parser.add_argument(
        "--miss-rate",
        type=share_type,
        default=0.1,
        metavar="R",
        help="share of toxic texts that may be missed (default: %(default)s)",
    )
    parser.add_argument(
        "--false-alarm-rate",
        type=share_type,
        default=0.05,
        metavar="R",
        help="share of harmless texts that may count as toxic (default: %(default)s)",
    )
    parser.add_argument(
        "--at",
        type=share_type,
        default=0.1,
        metavar="X",
        help="also count misses at this threshold (default: %(default)s)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the thresholds as .toml, for `parley detox --calibration`")
    parser.add_argument("--no-cache", dest="cache", action="store_false", help="ignore cached scores")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=_calibrate)


def _calibrate(parsed: argparse.Namespace) -> int:
    need_analysis()
    if len(parsed.scorer or []) > 1:
        raise ConfigError("only one scorer can be calibrated at a time: give --scorer once")
    also = [field for field in (parsed.language, parsed.group) if field]
    lines = read_lines(parsed.file, parsed.field, parsed.label, also)
    labelled = [line for line in lines if line.given is not None]
    if not labelled:
        raise ConfigError(f"{parsed.file}: no row has a number in the field '{parsed.label}'")
    columns = score_columns(parsed, [line.text for line in labelled])
    groups = _groups(parsed, labelled, columns[0])
    calibration = _calibration(parsed, columns[0], groups)
    if parsed.out:
        with explain_unwritable(parsed.out, ConfigError, CACHED):
            Path(parsed.out).write_text(calibration.to_toml(), "utf-8")
    if parsed.json:
        print(json.dumps({"unlabelled": len(lines) - len(labelled), **calibration.model_dump()}, indent=2))
        return 0
    _print_calibration(calibration, len(lines) - len(labelled))
    print_cautions(columns)
    if parsed.out:
        print(visible(f"written to {parsed.out}"))
    return 0


def _groups(parsed: argparse.Namespace, lines: Sequence[TextLine], column: ScorerColumn) -> list[CalibratedGroup]:
    import pandas as pd

    from parley.analysis.toxicity.thresholds import calibrate

    swaps = Swaps.load()
    group = parsed.group or "identity"
    frame = pd.DataFrame(
        {
            "score": pd.Series(column.scores(), dtype=float),
            "toxic": [float(line.given or 0) >= parsed.label_from for line in lines],
            "language": [(_language(line, parsed),) for line in lines],
            group: [
                (line.also[-1],) if parsed.group else swaps.identity_groups(line.text) or (NO_IDENTITY,)
                for line in lines
            ],
        }
    )
    if frame["toxic"].all() or not frame["toxic"].any():
        kind = "toxic" if frame["toxic"].all() else "harmless"
        raise ConfigError(f"all labelled texts are {kind} (by {parsed.label} >= {parsed.label_from:g})")
    groups = calibrate(
        frame,
        miss_rate=parsed.miss_rate,
        false_alarm_rate=parsed.false_alarm_rate,
        at=parsed.at,
        by=("language", group),
    )
    for threshold in (groups[0].harmless_below, groups[0].toxic_from):
        if math.isnan(threshold.estimate):
            raise ConfigError(f"{parsed.file}: {threshold.note}")
    return groups


def _language(line: TextLine, parsed: argparse.Namespace) -> str:
    return line.also[0] if parsed.language else language_name(find_language(line.text))


def _calibration(parsed: argparse.Namespace, column: ScorerColumn, groups: Sequence[CalibratedGroup]) -> Calibration:
    below, alarm = groups[0].harmless_below.estimate, groups[0].toxic_from.estimate
    harmless_below = math.floor(below * 10**DIGITS) / 10**DIGITS
    source = Path(parsed.file)
    digest = hashlib.sha256(source.read_bytes()).hexdigest() if parsed.file != "-" else "unknown"
    return Calibration(
        scorer=column.name,
        version=column.version,
        command=_command(parsed),
        texts=f"{source.name}, field {parsed.field or 'text'}, sha256 {digest}",
        labels=f"toxic: {parsed.label} >= {parsed.label_from:g}",
        miss_rate=parsed.miss_rate,
        false_alarm_rate=parsed.false_alarm_rate,
        harmless_below=harmless_below,
        toxic_from=max(harmless_below, min(1.0, math.ceil(alarm * 10**DIGITS) / 10**DIGITS)),
        at=parsed.at,
        group=tuple(_stored(group) for group in groups),
    )


def _command(parsed: argparse.Namespace) -> str:
    """The command without what does not change the result."""
    flags = ("field", "label", "label_from", "language", "group", "miss_rate", "false_alarm_rate", "at")
    given = [(f"--{flag.replace('_', '-')}", getattr(parsed, flag)) for flag in flags]
    given += [("--scorer", name) for name in parsed.scorer or []]
    words = [word for flag, value in given if value is not None for word in (flag, str(value))]
    return shlex.join(["parley", "score", "calibrate", Path(parsed.file).name, *words])


def _stored(group: CalibratedGroup) -> GroupOfTexts:
    ranges: dict[str, Any] = {
        name: _range(getattr(group, name))
        for name in ("harmless_below", "toxic_from", "missed", "alarms", "revised", "missed_at", "alarms_at")
    }
    return GroupOfTexts(
        by=group.by,
        name=group.name,
        toxic=group.toxic,
        harmless=group.harmless,
        unscored=group.unscored,
        **ranges,
    )


def _range(line: Line) -> Range:
    ends = (line.estimate, line.low, line.high)
    estimate, low, high = (None if math.isnan(end) else round(end, DIGITS) for end in ends)
    return Range(estimate=estimate, low=low, high=high)


def _print_calibration(calibration: Calibration, unlabelled: int) -> None:
    console = Console()
    below = f"{calibration.harmless_below:g}"
    columns = ["texts", "toxic", "other", f"{calibration.miss_rate:.0%} missed below", f"missed below {below}"]
    columns += [f"alarms from {below}", f"missed below {calibration.at:g}"]
    rows = [
        (
            group.name if group.by == "all" else f"{group.by}: {group.name}",
            f"{group.toxic:,}",
            f"{group.harmless:,}",
            _cell(group.harmless_below, "{:.3f}"),
            *(_cell(share, "{:.0%}") for share in (group.missed, group.alarms, group.missed_at)),
        )
        for group in calibration.group
    ]
    console.print(cell_table(columns, rows, f"Thresholds of {calibration.scorer}", left=len(columns)))
    everything = calibration.group[0]
    lines = [
        f"Harmless below {below}: this misses {_cell(everything.missed, '{:.1%}')} of toxic texts, and "
        f"{_cell(everything.alarms, '{:.1%}')} of the others score higher.",
        f"Toxic from {calibration.toxic_from:g}: {_cell(everything.revised, '{:.1%}')} of the others score that high.",
        f"A threshold of {calibration.at:g} misses {_cell(everything.missed_at, '{:.1%}')} of toxic texts.",
        f"{plural(everything.unscored, 'text')} had no score, {unlabelled:,} no label. Brackets: 95% intervals.",
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _cell(value: Range, shape: str) -> str:
    if value.estimate is None or value.low is None or value.high is None:
        return "–"
    return f"{shape.format(value.estimate)} ({shape.format(value.low)}–{shape.format(value.high)})"
