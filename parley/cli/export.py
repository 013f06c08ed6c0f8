"""`parley export RUN… --format …`: datasets from debates, with a card; or a whole run for other tools, as it is."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pydantic import ValidationError

from parley.agents import ConfigError, ParleyError
from parley.cli.commands import AddParser
from parley.cli.flags import add_flags, given
from parley.cli.text import visible
from parley.execute import explain
from parley.export.settings import Settings

WHOLE = ("inspect", "transcripts")
"""Formats that take any run as it is; all others make a dataset of debates."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="+", help="run files of the study rldf; with inspect or transcripts: any one run")
    parser.add_argument("--to", metavar="FOLDER", help="where to (default: <run>-<format>; with hub: owner/name)")
    parser.add_argument("--force", action="store_true", help="write over an export that is there")
    parser.add_argument("--public", action="store_true", help="with hub: a public dataset (default: private)")
    parser.add_argument("--json", action="store_true")
    add_flags(parser, Settings, "the dataset")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    if parsed.format in WHOLE:
        return _whole(parsed)
    from parley.export import make_dataset, push, write_dataset
    from parley.export.card import cautions, quality_lines
    from parley.export.write import manifest

    try:
        settings = Settings.model_validate(given(parsed, Settings))
    except ValidationError as error:
        raise ConfigError(explain(error, Settings)) from None
    runs = [Path(run) for run in parsed.run]
    if settings.format == "hub" and not parsed.to:
        raise ConfigError("name the dataset on the hub: --to owner/name")
    dataset = make_dataset(runs, settings)
    target = parsed.to or f"{runs[0].stem}-{settings.format}"
    if settings.format == "hub":
        place = push(dataset, target, public=parsed.public)
    else:
        place = str(write_dataset(dataset, Path(target), force=parsed.force))
    if parsed.json:
        print(json.dumps({"to": place, **manifest(dataset, dataset.tables())}))
        return 0
    found = dataset.found
    for line in cautions(dataset):
        print(visible(f"Caution: {line}"))
    print(
        f"{len(dataset.statements):,} statements: {len(found.high):,} high bias, {len(found.low):,} low "
        f"(threshold {settings.threshold:g}), {sum(found.left_out.values()):,} left out; {len(dataset.pairs):,} pairs"
    )
    print(visible(quality_lines(dataset)))
    print(f"written to {visible(place)}")
    return 0


def _whole(parsed: argparse.Namespace) -> int:
    from parley.interop import to_inspect, to_transcripts

    if len(parsed.run) > 1:
        raise ConfigError(f"--format {parsed.format} takes one run")
    run = Path(parsed.run[0])
    if parsed.format == "inspect":
        log = to_inspect(run)
        name, texts = log.name, iter([log.text])
    else:
        name, texts = f"{run.stem}.jsonl", to_transcripts(run)
    target = Path(parsed.to or name)
    if target.exists() and not parsed.force:
        raise ConfigError(f"{target} is there already: name another with --to, or write over it with --force")
    part = target.with_name(target.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.writelines(texts)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ParleyError(f"{target} cannot be written: {error.strerror}") from None
    print(json.dumps({"to": str(target)}) if parsed.json else visible(f"written to {target}"))
    return 0
