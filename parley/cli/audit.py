"""`parley audit DATASET`: what a reward model could learn from preference pairs instead of their content."""

from __future__ import annotations

import argparse
from pathlib import Path

from parley.base.errors import ConfigError
from parley.base.home import say
from parley.cli.report import show
from parley.cli.shared import AddParser, need_analysis
from parley.imports.preferences import read_preferences, referee_checks


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("dataset", help="folder or file of preference pairs in TRL's format (Parquet or JSON lines)")
    parser.add_argument("--to", metavar="FOLDER", help="write the page, tables and figure to this folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--instructions",
        metavar="FILE",
        help="text file with the writers' instructions (default: those in the export's manifest)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds, sign flips and bootstrap (default: 0)")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.preferences.report import preference_report

    dataset = read_preferences(Path(parsed.dataset))
    instructions = dataset.instructions
    if parsed.instructions:
        try:
            instructions = Path(parsed.instructions).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise ConfigError(f"{parsed.instructions}: {reason}") from None
    for line in referee_checks(Path(parsed.dataset)):
        say(line)
    title = f"Audit of {Path(parsed.dataset).name}"
    report = preference_report(
        dataset.pairs, instructions=instructions, title=title, seed=parsed.seed, blind=dataset.blind
    )
    return show(report, Path(parsed.to) if parsed.to else None, as_json=parsed.json)
