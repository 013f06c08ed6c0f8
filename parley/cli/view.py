"""`parley view [RUN or FOLDER]`: read runs in the browser. `--export FILE` writes part of a run as a single page."""

from __future__ import annotations

import argparse
import asyncio
import signal
import webbrowser
from contextlib import suppress
from pathlib import Path

from multidict import MultiDict
from yarl import URL

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.text import visible
from parley.cli.shared import FOLDER, AddParser, newest_run
from parley.runs import explain_damage
from parley.runs.example import example_runs, is_example
from parley.viewer.api import read_query
from parley.viewer.export import export_page
from parley.viewer.open_run import OpenRun
from parley.viewer.run_folder import RunFolder
from parley.viewer.server import serve

PORT = 7575


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "path",
        nargs="?",
        metavar="RUN|FOLDER",
        help="a run file, or a folder of run files (default: runs/, opened at the newest run)",
    )
    parser.add_argument("--example", action="store_true", help="show the real runs that ship with Parley")
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on; any but loopback requires a token (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"port to listen on; 0 picks a free one (default: {PORT})"
    )
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="do not open a browser")
    parser.add_argument("--export", metavar="FILE", help="write one self-contained HTML file instead of serving")
    parser.add_argument(
        "--where",
        metavar="FILTER=VALUE",
        action="append",
        default=[],
        help="with --export: only matching units, as in a page's address (f.phase=2, d.flip=flipped, judge=…, q=words)",
    )
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    path = Path(parsed.path or FOLDER)
    if parsed.example:
        if parsed.path:
            raise ConfigError("give a run or --example, not both")
        example = example_runs()["silent"]
        path = example.parent
    if not path.exists():
        raise ConfigError(f"there is no run or folder {path}; parley view --example shows a run that ships with Parley")
    if parsed.export:
        run = example if parsed.example else path if parsed.path else newest_run()
        return _export(run, Path(parsed.export), parsed.where)
    if parsed.where:
        raise ConfigError("--where needs --export; without it, filter on the page")
    newest = None if parsed.path else next(iter(RunFolder(path).names()), None)
    if parsed.example:
        newest = example.name
    with suppress(asyncio.CancelledError):
        asyncio.run(_serve(path, newest, parsed.host, parsed.port, browser=parsed.browser))
    return 0


async def _serve(path: Path, newest: str | None, host: str, port: int, *, browser: bool) -> None:
    task = asyncio.current_task()
    assert task is not None
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C comes as KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(name, task.cancel)

    def announce(address: str) -> None:
        print(f"{'the example' if is_example(path) else path} is at {address}  (press Ctrl-C to stop)", flush=True)
        start = URL(address)
        if newest:
            start = start.with_path("/run", keep_query=True).update_query(run=newest)
            print(f"{'its first' if is_example(path) else 'newest'} run: {start}", flush=True)
        if browser:
            webbrowser.open(str(start))

    await serve(path, host, port, announce)


def _export(run_path: Path, target: Path, where: list[str]) -> int:
    if run_path.is_dir():
        raise ConfigError("--export needs one run file, got a folder")
    filters: MultiDict[str] = MultiDict()
    for text in where:
        key, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--where needs FILTER=VALUE, e.g. f.phase=2, got '{text}'")
        filters.add(key, value)
    query = read_query(filters)
    with explain_damage(run_path):
        page = export_page(RunFolder(run_path), OpenRun(run_path), run_path.name, query)
    part = target.with_name(target.name + ".part")
    with explain_unwritable(target):
        part.write_text(page, "utf-8")
        part.replace(target)
    print(visible(f"{target}: {len(page) / 1e6:.1f} MB, opens offline in any browser"))
    return 0
