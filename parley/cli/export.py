"""`parley export RUN… --format …`: a dataset from conversations, with a card; or a whole run for other tools."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.cli.flags import add_flags, given
from parley.cli.shared import AddParser
from parley.reports.export import make_dataset, push, to_inspect, to_transcripts, write_dataset
from parley.reports.export.card import audit_lines, cautions, quality_lines
from parley.reports.export.settings import Settings
from parley.reports.export.write import manifest
from parley.runs.options import validated
from parley.runs.packing import run_stem

WHOLE_RUN = ("inspect", "transcripts")
"""Formats for any whole run; all others make a dataset."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="+", help="run files of one study; only one with inspect or transcripts")
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        help="where to write: a folder (default: <run>-<format>); with inspect or transcripts, a folder or a .json or "
        ".jsonl file (default: the current folder); with hub, owner/name",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an earlier export")
    parser.add_argument("--public", action="store_true", help="with hub: make the dataset public (default: private)")
    parser.add_argument("--json", action="store_true", help="print the manifest as JSON")
    add_flags(parser, Settings, "the dataset")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    if parsed.format in WHOLE_RUN:
        return _export_whole_run(parsed)
    settings = validated(Settings, given(parsed, Settings))
    runs = [Path(run) for run in parsed.run]
    if settings.format == "hub" and not parsed.to:
        raise ConfigError("give the dataset a name on the hub: --to owner/name")
    dataset = make_dataset(runs, settings)
    target = parsed.to or f"{run_stem(runs[0])}-{settings.format}"
    if settings.format == "hub":
        location = push(dataset, target, public=parsed.public)
    else:
        location = str(write_dataset(dataset, Path(target), force=parsed.force))
    if parsed.json:
        print(json.dumps({"to": location, **manifest(dataset, dataset.tables())}))
        return 0
    groups, settings = dataset.groups, dataset.settings
    for line in cautions(dataset):
        print(visible(f"Caution: {line}"))
    print(
        f"{plural(len(dataset.statements), 'statement')}: {len(groups.high):,} high bias, {len(groups.low):,} low "
        f"(threshold {settings.threshold:g}), {sum(groups.left_out.values()):,} left out; "
        f"{plural(len(dataset.pairs), 'pair')}"
    )
    for reason, count in sorted(groups.left_out.items()):
        print(visible(f"- left out: {count:,} {reason}"))
    print(visible(quality_lines(dataset)))
    for line in audit_lines(dataset):
        print(visible(f"- {line}"))
    print(f"written to {visible(location)}")
    return 0


def _export_whole_run(parsed: argparse.Namespace) -> int:
    if len(parsed.run) > 1:
        raise ConfigError(f"--format {parsed.format} takes one run")
    run = Path(parsed.run[0])
    if parsed.format == "inspect":
        log = to_inspect(run)
        name, texts = log.name, iter([log.text])
    else:
        name, texts = f"{run_stem(run)}.jsonl", to_transcripts(run)
    target = Path(parsed.to or ".")
    if target.suffix != Path(name).suffix:  # Inspect opens no file without .json
        target /= name
    if target.exists() and not parsed.force:
        raise ConfigError(f"{target} already exists; choose another name with --to, or overwrite it with --force")
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            file.writelines(texts)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ParleyError(f"{target} cannot be written: {error.strerror}") from None
    print(json.dumps({"to": str(target)}) if parsed.json else visible(f"written to {target}"))
    return 0
