"""`parley import inspect|autogen FILE`: write another tool's log as a run file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from parley.cli.commands import AddParser
from parley.cli.text import visible


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("kind", choices=["inspect", "autogen"], help="the tool that wrote the file")
    parser.add_argument(
        "file", help="inspect: a .eval or .json log; autogen: a team's state or messages, .json or .jsonl"
    )
    parser.add_argument("--out", metavar="RUN", help="the run file (default: runs/<kind>-<name>.sqlite)")
    parser.add_argument("--model", help="autogen: the model that spoke, as AutoGen's messages do not contain it")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    from parley.agents import ConfigError
    from parley.agents.text import plural
    from parley.interop import read_autogen, read_inspect, write_run

    source = Path(parsed.file)
    if parsed.kind == "inspect" and parsed.model:
        raise ConfigError("--model is only for autogen; an Inspect log names its model")
    if parsed.kind == "inspect":
        imported = read_inspect(source)
    else:
        imported = read_autogen(source, parsed.model) if parsed.model else read_autogen(source)
    target = Path(parsed.out) if parsed.out else Path("runs") / f"{parsed.kind}-{source.stem}.sqlite"
    units, failed = write_run(imported, target)
    if parsed.json:
        print(json.dumps({"run": str(target), "study": imported.study, "units": units, "failed": failed}))
        return 0
    print(visible(f"{plural(units, 'conversation')} of {imported.study} ({failed} failed): {target}"))
    report = f"    parley report {target}" if parsed.kind == "inspect" else ""  # AutoGen's transcripts have no verdicts
    print(visible(f"read it:  parley show {target}{report}    parley view {target}"))
    return 0
