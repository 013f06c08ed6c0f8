"""`parley import inspect|autogen|bbq|mabrf FILE`: write another tool's log, or a published one, as a run file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from parley.base.errors import ConfigError
from parley.base.text import plural, visible
from parley.cli.shared import AddParser
from parley.imports import read_autogen, read_bbq_predictions, read_inspect, read_mabrf, write_run
from parley.imports.imported import bare_name


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("kind", choices=["inspect", "autogen", "bbq", "mabrf"], help="where the file is from")
    parser.add_argument(
        "file",
        help="inspect: a .eval or .json log; autogen: a team's state or messages, .json or .jsonl; bbq: answers to "
        "BBQ, .jsonl; mabrf: one of MABRF's notebooks, .ipynb (the last two also as .gz)",
    )
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="for bbq and mabrf: the questions that were answered (BBQ's folder, BBQHard.csv, SQuAD's JSON)",
    )
    parser.add_argument("--out", metavar="RUN", help="the run file (default: runs/<kind>-<name>.sqlite)")
    parser.add_argument("--model", help="for autogen and bbq: the model that spoke, if the file does not name it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    source = Path(parsed.file)
    if parsed.kind in ("inspect", "mabrf") and parsed.model:
        raise ConfigError("--model is only for autogen and bbq: this log names its model")
    if (parsed.kind in ("bbq", "mabrf")) != bool(parsed.data):
        raise ConfigError(f"import {parsed.kind} {'takes no' if parsed.data else 'needs'} --data")
    if parsed.kind == "inspect":
        imported = read_inspect(source)
    elif parsed.kind == "bbq":
        imported = read_bbq_predictions(source, parsed.data, parsed.model)
    elif parsed.kind == "mabrf":
        imported = read_mabrf(source, parsed.data)
    else:
        imported = read_autogen(source, parsed.model) if parsed.model else read_autogen(source)
    target = Path(parsed.out) if parsed.out else Path("runs") / f"{parsed.kind}-{bare_name(source)}.sqlite"
    units, failed = write_run(imported, target)
    if parsed.json:
        print(json.dumps({"run": str(target), "study": imported.study, "units": units, "failed": failed}))
        return 0
    print(visible(f"{plural(units, 'conversation')} of {imported.study} ({failed} failed): {target}"))
    report = "" if parsed.kind == "autogen" else f"    parley report {target}"  # AutoGen's transcripts have no verdicts
    print(visible(f"read it:  parley show {target}{report}    parley view {target}"))
    return 0  # what failed in its log is imported as failed
