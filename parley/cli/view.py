"""`parley view [RUN or FOLDER]`: read runs in the browser; `--export FILE` writes a part of one as a single page."""

from __future__ import annotations

import argparse
import asyncio
import signal
import webbrowser
from contextlib import suppress
from pathlib import Path

from multidict import MultiDict

from parley.agents import ConfigError, ParleyError
from parley.cli.commands import AddParser
from parley.cli.text import visible
from parley.runs import explain_damage

PORT = 7575


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("place", nargs="?", default="runs", help="a run file, or a folder of them (default: runs)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; another than loopback asks for a token"
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 takes a free one")
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="open no browser")
    parser.add_argument("--export", metavar="FILE", help="write one self-contained HTML file instead of serving")
    parser.add_argument(
        "--where",
        metavar="FILTER=VALUE",
        action="append",
        default=[],
        help="with --export: only these units, as in a page's address (f.phase=2, d.flip=flipped, judge=…, q=words)",
    )
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    place = Path(parsed.place)
    if not place.exists():
        raise ConfigError(f"there is no run or folder {place}")
    if parsed.export:
        return _export(place, Path(parsed.export), parsed.where)
    if parsed.where:
        raise ConfigError("--where goes with --export; on the page, filters are in the address")
    with suppress(asyncio.CancelledError):
        asyncio.run(_serve(place, parsed.host, parsed.port, browser=parsed.browser))
    return 0


async def _serve(place: Path, host: str, port: int, *, browser: bool) -> None:
    from parley.viewer.server import serve

    task = asyncio.current_task()
    assert task is not None
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C comes as KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(name, task.cancel)

    def announce(address: str) -> None:
        print(f"{place} is at {address}  (Ctrl-C ends)", flush=True)
        if browser:
            webbrowser.open(address)

    await serve(place, host, port, announce)


def _export(place: Path, target: Path, where: list[str]) -> int:
    from parley.viewer.api import read_query
    from parley.viewer.context import ViewerContext
    from parley.viewer.export import export_page
    from parley.viewer.library import Library

    if place.is_dir():
        raise ConfigError("--export takes one run file, not a folder")
    given: MultiDict[str] = MultiDict()
    for one in where:
        key, sign, value = one.partition("=")
        if not sign:
            raise ConfigError(f"--where {one}: write it as FILTER=VALUE, e.g. f.phase=2")
        given.add(key, value)
    query, asked = read_query(given)
    with explain_damage(place):
        page = export_page(Library(place), ViewerContext(place), place.name, query, asked.q, asked.asked)
    part = target.with_name(target.name + ".part")
    try:
        part.write_text(page, "utf-8")
        part.replace(target)
    except OSError as error:
        raise ParleyError(f"{target} cannot be written: {error.strerror}") from None
    print(visible(f"{target}: {len(page) / 1e6:.1f} MB, opens from disk"))
    return 0
