"""`parley models`: lists models and what each still needs; `parley models fetch NAME` downloads one."""

from __future__ import annotations

import argparse
import json
import os
from importlib.util import find_spec

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parley.agents import ConfigError
from parley.agents.models import PROVIDERS
from parley.agents.models.catalogue import catalogue, is_fetched, weights_path
from parley.cli.commands import AddParser
from parley.cli.progress import fetch_with_bar

_PACKAGES = {"local": "xllamacpp", "hf": "transformers", "gemini": "google.genai", "anthropic": "anthropic"}


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "action", nargs="?", choices=["list", "fetch"], default="list", help="list all models, or download one"
    )
    parser.add_argument("name", nargs="?", help="the embedded model to download, with fetch")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    if parsed.action == "fetch":
        if not parsed.name:
            raise ConfigError(f"parley models fetch needs a model: {', '.join(catalogue())}")
        if parsed.name not in catalogue():
            raise ConfigError(f"no model '{parsed.name}' in the catalogue (it has: {', '.join(catalogue())})")
        fetch_with_bar(parsed.name)
        print(f"{parsed.name} is downloaded: {weights_path(parsed.name)}")
        return 0
    rows = _rows()
    if parsed.json:
        print(json.dumps(rows, indent=2))
        return 0
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("model", overflow="fold")
    table.add_column("about")
    table.add_column("ready", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(row[key]) for key in ("name", "about", "ready")))
    Console().print(table)
    return 0


def _rows() -> list[dict[str, str]]:
    rows = [
        {
            "name": f"local/{name}",
            "about": f"{entry.about} ({entry.size / 1e6:.0f} MB, {entry.licence})",
            "ready": "yes"
            if is_fetched(name)
            else "fetched on first use"
            if entry.automatic
            else f"parley models fetch {name}",
        }
        for name, entry in catalogue().items()
    ]
    for provider in PROVIDERS.values():
        ready = "yes"
        if provider.extra and not _installed(_PACKAGES.get(provider.extra, provider.extra)):
            ready = f"pip install 'parley-autogen[{provider.extra}]'"
        elif provider.key and not os.environ.get(provider.key):
            ready = f"set {provider.key}"
        if provider.example != "local/smollm2":
            rows.append({"name": provider.example or "?", "about": provider.about, "ready": ready})
    return rows


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
