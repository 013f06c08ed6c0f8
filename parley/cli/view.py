"""`parley view [RUN or FOLDER]`: read runs in the browser. `--export FILE` writes part of a run as a single page."""

from __future__ import annotations

import asyncio
import signal
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from pydantic import Field
from yarl import URL

from parley.base.errors import ConfigError
from parley.base.files import new_file, refuse
from parley.base.text import encodable, visible
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional, Repeated
from parley.cli.shared import FOLDER, newest_run
from parley.runs import explain_damage
from parley.runs.example import example_runs, is_example
from parley.runs.reading import parse_facets
from parley.viewer.export import export_page
from parley.viewer.open_run import OpenRun
from parley.viewer.run_folder import RunFolder
from parley.viewer.server import PORT, serve


class View(Command):
    """Read runs in the browser, or write part of a run as a single page."""

    needs: ClassVar = {"where": "export"}
    alone: ClassVar = {"example": ("path",)}
    no_flag: ClassVar = ("as_json",)

    path: Positional[Path | None] = Field(
        None, description="a run file, or a folder of run files (default: runs/, opened at the newest run)"
    )
    example: bool = Field(False, description="show the real runs that ship with Parley")
    host: str = Field(
        "127.0.0.1", title="ADDRESS", description="address to listen on; any but loopback requires a token"
    )
    port: int | None = Field(
        None, ge=0, le=65535, description=f"port to listen on (default: {PORT}, or a free one if that is taken)"
    )
    browser: bool = Field(True, description="do not open a browser")
    export: Path | None = Field(None, title="FILE", description="write one self-contained HTML file instead of serving")
    where: Repeated[list[str]] = Field(
        [],
        title="f.FACET=VALUE",
        description="with --export: only units with this facet, such as f.phase=2; may be repeated",
    )

    def answer(self) -> Answer:
        example = example_runs()["silent"] if self.example else None
        path = example.parent if example else self.path or FOLDER
        if not path.exists():
            raise ConfigError(
                f"there is no run or folder {path}; parley view --example shows a run that ships with Parley"
            )
        if path.suffix in (".csv", ".json", ".jsonl", ".toml", ".yaml", ".html", ".md", ".parquet"):
            raise ConfigError(f"{path} is not a run file: parley view opens a run file (.sqlite), or a folder of them")
        if self.export:
            return _export(example or self.path or newest_run(), self.export, self.where)
        newest = example.name if example else None if self.path else next(iter(RunFolder(path).paths()), None)
        with suppress(asyncio.CancelledError):
            asyncio.run(_serve(path, newest, self.host, self.port, browser=self.browser))
        return Answer()


async def _serve(path: Path, newest: str | None, host: str, port: int | None, *, browser: bool) -> None:
    task = asyncio.current_task()
    assert task is not None
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C comes as KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(name, task.cancel)

    def announce(address: str) -> None:
        what = "the example" if is_example(path) else visible(str(path))
        print(f"{what} is at {address}  (press Ctrl-C to stop)", flush=True)
        start = URL(address)
        if newest:
            start = start.with_path("/run", keep_query=True).update_query(run=newest)
            print(f"{'its first' if is_example(path) else 'newest'} run: {start}", flush=True)
        if browser:
            webbrowser.open(str(start))

    await serve(path, host, port, announce)


def is_page(path: Path) -> bool:
    """Whether a file is a page that Parley wrote."""
    try:
        with path.open(encoding="utf-8") as file:
            return "<title>Parley</title>" in file.read(1000)
    except (OSError, UnicodeDecodeError):
        return False


def _export(run_path: Path, target: Path, where: list[str]) -> Answer:
    if run_path.is_dir():
        raise ConfigError("--export needs one run file, got a folder")
    refuse(target, is_page)
    filters: dict[str, list[str]] = {}
    for text in where:
        key, sign, value = text.partition("=")
        if not sign or not key.startswith("f."):
            raise ConfigError(f"--where needs f.FACET=VALUE, e.g. f.phase=2, got '{text}'")
        filters.setdefault(key.removeprefix("f."), []).append(value)
    with explain_damage(run_path):
        run = OpenRun(run_path)
        with run.file() as file:
            _, rows = file.rows("SELECT id, facets FROM units ORDER BY position")
        facets = {unit: parse_facets(text) for unit, text in rows}
        units = [unit for unit in facets if all(facets[unit].get(key) in values for key, values in filters.items())]
        page = export_page(RunFolder(run_path), run, encodable(run_path.name), units)
    with new_file(target, is_page) as file:
        file.write(page)
    return Answer(lines=[f"{target}: {len(page) / 1e6:.1f} MB, opens offline in any browser"])
