"""Runs a case's commands in an empty folder, and turns what they leave and print into rows and sentences.

Only this module knows how runs are stored and results are printed. Rows of a JSON list get the address `table · keys`,
where the keys are the first columns of words that tell its rows apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import io
import json
import os
import pkgutil
import re
import shlex
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

from aiohttp.test_utils import TestClient, TestServer
from pydantic import BaseModel

import parley
from parley.cli import main
from parley.cli.doctor import missing_extra
from parley.viewer.server import make_app
from tests.golden.cases import Case
from tests.golden.data import write_data

DIGITS = 12
LONGEST_LIST = 40
"""A facet with more values than this is described by their number and a hash."""
WIDEST_ROW = 30
"""A row of more numbers than this is described by sums."""
UNRECORDED = {
    *("versions", "version", "parley", "path", "config", "plan", "sources", "latency", "seconds", "saved_seconds"),
    *("date", "started", "made"),
}
"""Keys of printed JSON that say where, when and with what a run was made, not what it found."""
ENVIRONMENT = {"COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
"""Widths and colours of what is printed."""
HF = {"hf": "pip install '.[hf]'"}
"""What is recorded as not installed, though a developer may have it."""


def make(case: Case) -> dict[str, Any]:
    """Run the case, and return its plan, verdicts, numbers and sentences."""
    made: dict[str, Any] = {"commands": list(case.commands), "plan": {}, "verdicts": {}, "numbers": {}, "sentences": {}}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        place = Path(folder).resolve()
        installed = patch("parley.cli.models.missing_extra", lambda extra: missing_extra(extra) or HF.get(extra, ""))
        # Figures are made and not drawn, which takes a quarter of the time: what they show is not recorded.
        blank = patch.multiple("parley.analysis.page.figures", _lay_out=MagicMock(), _drawn=lambda *_: b"<svg/>")
        hidden = {name: "" for name in os.environ if name.endswith("_API_KEY") or name == "GITHUB_ACTIONS"}
        with installed, blank, patch.dict(os.environ, {**ENVIRONMENT, "PARLEY_HOME": str(place / "home")}):
            for name in hidden:
                del os.environ[name]
            write_data(place)
            for number, command in enumerate(case.commands):
                name = _named(command)
                before = [_named(other) for other in case.commands[:number]].count(name)
                _execute(made, command, f"{name} ({before + 1})" if before else name, place)
            for path in sorted(place.glob("*.sqlite")):
                _read_run(made, path)
    return made


def _named(command: str) -> str:
    """What a command's results stand under: its first words, without the run file that most cases have."""
    return " ".join(word for word in shlex.split(command)[:3] if not word.startswith("-") and word != "run.sqlite")


def _execute(made: dict[str, Any], command: str, name: str, place: Path) -> None:
    """Run one command, and add its status, JSON, lines and pages."""
    out, err = io.StringIO(), io.StringIO()
    before, words = _written(place), shlex.split(command)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = OWN_COMMANDS[words[0]](*words[1:]) if words[0] in OWN_COMMANDS else main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    printed, said = (_without_place(stream.getvalue(), place) for stream in (out, err))
    made["numbers"][f"{name} · exit status"] = {"status": status}
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    try:
        values = [json.loads(line) for line in printed.splitlines()] if "--jsonl" in words else json.loads(printed)
    except ValueError:
        lines = [*(line.rstrip() for line in printed.splitlines() if line.strip()), *lines]
    else:
        for address, row in _rows(values, name):
            _add_row(made["numbers"], address, row)
        for address, texts in _texts(values, name):
            made["sentences"].setdefault(address, []).extend(texts)
    if lines:
        made["sentences"].setdefault(f"{name} · printed", []).extend(lines)
    for path in sorted(_written(place) - before):
        _read_file(made, path, f"{name} · {path.relative_to(place).as_posix()}", place)


def _written(place: Path) -> set[Path]:
    """The pages, datasets and descriptions in a folder. Tables are left out: the printed JSON has their numbers."""
    paths = (path for pattern in ("*.html", "*.md", "*.jsonl") for path in place.rglob(pattern))
    return {path for path in paths if path.parent.name != "tables" and "home" not in path.relative_to(place).parts}


def _read_file(made: dict[str, Any], path: Path, address: str, place: Path) -> None:
    """Add what a command has written: the rows of a dataset with hashes of their texts, or sentences."""
    text = _without_place(path.read_text("utf-8"), place)
    if path.suffix == ".jsonl":
        for row_address, row in _rows([json.loads(line) for line in text.splitlines()], address):
            short = {key: _short(value) for key, value in row.items()}
            _add_row(made["numbers"], row_address if len(row_address) < 160 else f"{address} · row", short)
        return
    texts = _page_texts(text) if path.suffix == ".html" else [line for line in text.splitlines() if line.strip()]
    if texts:
        made["sentences"].setdefault(address, []).extend(texts)
    elif data := re.search(r'<script type="application/json" id="data">(.*?)</script>', text):  # a page of the viewer
        for row_address, row in _rows(json.loads(data[1]), address):
            _add_row(made["numbers"], row_address, {key: _short(value) for key, value in row.items()})


def _plant_flaws(run: str) -> int:
    """Take two points off every flawed text of MALIBU's yardstick, in the run file."""
    with closing(sqlite3.connect(run)) as db:
        flawed = "unit LIKE 's3/%' AND unit NOT LIKE '%/good'"
        changed = db.execute(f"UPDATE verdicts SET value = value - 2 WHERE {flawed}").rowcount
        db.execute("DELETE FROM checks")  # the checksums of what was written
        db.commit()
    print(f"{changed} scores are lower now")
    return 0 if changed else 1


def _set_seconds(run: str) -> int:
    """Make every call of a run file take a quarter of a second, so that screens can show it."""
    with closing(sqlite3.connect(run)) as db:
        db.execute("UPDATE calls SET latency = 0.25")
        db.execute("DELETE FROM checks")
        db.commit()
    return 0


def _print_settings() -> int:
    """Print what every configuration and flag may be: types, bounds, defaults and descriptions."""
    for module in pkgutil.walk_packages(parley.__path__, "parley."):
        if not module.name.endswith(("__main__", ".models.hf")):  # results are the same with torch and without it
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    found: list[type[BaseModel]] = [BaseModel]
    for model in found:
        found += [part for part in model.__subclasses__() if part.__module__.startswith("parley.")]
    written = [
        model
        for model in found[1:]
        if hasattr(sys.modules[model.__module__], model.__name__)  # not while it ran
        and not model.__module__.endswith(".models.hf")
    ]
    named = {f"{model.__module__}.{model.__name__}": _settings_of(model) for model in written}
    print(json.dumps(dict(sorted(named.items()))))
    return 0


def _ask_viewer(run: str, *asked: str) -> int:
    """Print what the viewer answers to each address; to one with JSON after it, that is posted."""

    async def ask() -> Mapping[str, Any]:
        answers: dict[str, Any] = {}
        async with TestClient(TestServer(make_app(Path(run)))) as client:
            for words in asked:
                address, _, body = words.partition(" {")
                url = f"/api/{address}{'&' if '?' in address else '?'}run={run}"
                answer = await (client.post(url, json=json.loads("{" + body)) if body else client.get(url))
                text = await answer.text()
                answers[words] = json.loads(text) if answer.content_type == "application/json" else text.splitlines()
        return answers

    print(json.dumps(asyncio.run(ask())))
    return 0


def _settings_of(model: type[BaseModel]) -> list[dict[str, str]]:
    """The settings that a class declares itself, as JSON Schema."""
    parts = model.model_json_schema(by_alias=False).get("properties", {})
    own = {name: part for name, part in parts.items() if name in model.__annotations__}
    return [{"setting": name, "schema": json.dumps(part, sort_keys=True)} for name, part in own.items()]


OWN_COMMANDS: Mapping[str, Callable[..., int]] = {
    "ask-viewer": _ask_viewer,
    "plant-flaws": _plant_flaws,
    "set-seconds": _set_seconds,
    "settings": _print_settings,
}
"""Commands of cases that Parley does not have."""


def _without_place(text: str, place: Path) -> str:
    """Without what differs between machines and days: the folder, today's date, and the versions of packages."""
    text = text.replace(f"{datetime.now(UTC):%Y-%m-%d}", "(today)")
    text = text.replace(f"{place}{os.sep}", "").replace(str(place), ".")
    return re.sub(r"Versions: [^<]*?\.(?=\s|<|$)", "Versions: ….", text)


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _short(value: Any) -> Any:
    """A text as it is if it is short, else its hash; anything else unchanged."""
    return short_hash(value) if isinstance(value, str) and len(value) > 24 else value


def _number(value: Any) -> Any:
    """A leaf as it is recorded: a number to twelve digits, names with commas."""
    if isinstance(value, list):
        return ", ".join(value)
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _add_row(rows: dict[str, Any], address: str, row: Mapping[str, Any]) -> None:
    """Add a row without its empty cells; where its address is taken, with a number."""
    count, free = 1, address
    while free in rows:
        count += 1
        free = f"{address} · {count}"
    rows[free] = {name: _number(value) for name, value in row.items() if value is not None}


def _is_leaf(value: Any) -> bool:
    """Whether a value belongs into a row: a number, a text, or a list of names."""
    names = isinstance(value, list) and bool(value) and all(isinstance(n, str) and n.count(" ") < 4 for n in value)
    return value is None or isinstance(value, str | int | float) or names


def _is_time(value: Any) -> bool:
    """Whether a number is seconds since 1970."""
    return isinstance(value, float) and value > 1e9


def _rows(value: Any, address: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a JSON value with their addresses: objects of numbers and words, and lists of such objects."""
    if isinstance(value, Mapping):
        kept = {str(key): inner for key, inner in value.items() if key not in UNRECORDED and not _is_time(inner)}
        if row := {key: inner for key, inner in kept.items() if _is_leaf(inner)}:
            yield address, _summed(row)
        for key, inner in kept.items():
            if not _is_leaf(inner):
                yield from _rows(inner, f"{address} · {key}")
    elif isinstance(value, list) and value and all(isinstance(inner, Mapping) for inner in value):
        keys = _key_columns(value)
        for inner in value:
            words = [
                inner[key] if isinstance(inner[key], str) else f"{key} {inner[key]}"
                for key in keys
                if inner.get(key) not in (None, "")
            ]
            rest = {key: leaf for key, leaf in inner.items() if key not in keys}
            yield from _rows(rest, " · ".join([address, *words]))
    elif isinstance(value, list):
        numbers = {str(n): inner for n, inner in enumerate(value) if _is_leaf(inner) and not isinstance(inner, str)}
        if numbers:
            yield address, _summed(numbers)
        for n, inner in enumerate(value):
            if not _is_leaf(inner):
                yield from _rows(inner, f"{address} · {n}")


def _summed(row: dict[str, Any]) -> dict[str, Any]:
    """A row of very many numbers, such as a value for each base, by what no change of one of them leaves as it is."""
    numbers = [value for value in row.values() if isinstance(value, int | float)]
    if len(numbers) <= WIDEST_ROW or len(numbers) < len(row):
        return row
    squares = sum(number * number for number in numbers)
    ranked = sum(rank * number for rank, number in enumerate(numbers, 1))
    return {"numbers": len(numbers), "sum": sum(numbers), "squares": squares, "by rank": ranked}


def _key_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first columns of words or whole numbers that tell the rows apart; all of them if none do."""
    keys: list[str] = []
    for name in rows[0]:
        values = [row.get(name) for row in rows]
        if any(isinstance(value, float | list | Mapping) for value in values) or name in ("note", *UNRECORDED):
            continue
        if len(set(map(str, values))) == 1 and len(rows) > 1:
            continue  # it says nothing about which row this is
        keys.append(name)
        if len({tuple(str(row.get(key)) for key in keys) for row in rows}) == len(rows):
            break
    return keys


def _texts(value: Any, address: str) -> Iterator[tuple[str, list[str]]]:
    """The lists of words in a JSON value, with their addresses."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in UNRECORDED:
                yield from _texts(inner, f"{address} · {key}")
    elif isinstance(value, list) and value and not _is_leaf(value) and all(isinstance(inner, str) for inner in value):
        yield address, value


class _PageText(HTMLParser):
    """The sentences of a page: everything but tables, scripts, styles and references."""

    BLOCKS = frozenset(("p", "h1", "h2", "h3", "h4", "li", "summary", "figcaption", "div", "section", "dt", "dd", "br"))
    SKIPPED = frozenset(("style", "script", "table", "pre", "svg", "title", "a"))

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = [""]
        self._skipping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.SKIPPED:
            self._skipping.append(tag)
        if tag in self.BLOCKS:
            self.texts.append("")
        if tag == "img":
            self.texts += [dict(attrs).get("alt") or "", ""]

    def handle_endtag(self, tag: str) -> None:
        if self._skipping and self._skipping[-1] == tag:
            self._skipping.pop()
        if tag in self.BLOCKS:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.texts[-1] += data


def _page_texts(html: str) -> list[str]:
    reader = _PageText()
    reader.feed(html)
    texts = (re.sub(r"\s+", " ", text).strip() for text in reader.texts)
    return [text for text in texts if text]


def _read_run(made: dict[str, Any], path: Path) -> None:
    """A run file's plan (facets, prompt files, the prompts of every unit, in order) and its verdicts."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'units'").fetchone():
            return  # people's labels, which have a file of their own
        units = db.execute("SELECT id, facets, status, error FROM units ORDER BY position").fetchall()
        texts = dict(db.execute("SELECT id, text FROM texts"))
        calls = db.execute("SELECT unit, model, prompt, reply FROM calls ORDER BY unit, seq, nth").fetchall()
        verdicts = db.execute(
            "SELECT unit, judge, round, subject, metric, value, sampled, text, status FROM verdicts ORDER BY unit, nth"
        ).fetchall()
        files = dict(db.execute("SELECT name, hash FROM prompts ORDER BY name"))
    stem = "" if path.stem == "run" else f"{path.stem} · "
    made["plan"][f"{stem}prompt files"] = {name: digest[:8] for name, digest in files.items()}
    made["plan"][f"{stem}facets"] = _facets([json.loads(facets) for _, facets, _, _ in units])
    asked: dict[str, list[str]] = {}
    replied: dict[str, list[str]] = {}
    for unit, model, prompt, reply in calls:
        messages = [f"{message[0]}\t{texts[message[-1]]}" for message in json.loads(prompt)]
        asked.setdefault(unit, []).append("\n".join([model, *messages]))
        replied.setdefault(unit, []).append(texts[reply])
    rows: dict[str, dict[str, Any]] = {}
    for unit, _, status, error in units:
        prompts = asked.get(unit, [])
        made["plan"][f"{stem}{unit}"] = {"calls": len(prompts), "prompts": short_hash("\f".join(prompts))}
        rows[unit] = {"replies": short_hash("\f".join(replied.get(unit, [])))}
        if status != "done":
            rows[unit] |= {"status": status, "error": error}
    for unit, judge, turn, subject, metric, value, sampled, text, status in verdicts:
        key = " ".join(filter(None, (judge, f"r{turn}", subject, metric)))
        nth = sum(name == key or name.startswith(f"{key} #") for name in rows[unit])
        key = f"{key} #{nth + 1}" if nth else key
        rows[unit][key] = status if value is None else _number(value)
        if value is not None and status != "ok":
            rows[unit][f"{key} status"] = status
        if sampled is not None and sampled != value:
            rows[unit][f"{key} sampled"] = _number(sampled)
        if text:
            rows[unit][f"{key} text"] = _short(text)
    made["verdicts"] |= {f"{stem}{unit}": row for unit, row in rows.items()}


def _facets(units: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """How often each value of each facet occurs in a plan."""
    counts: dict[str, Counter[str]] = {}
    for facets in units:
        for name, value in facets.items():
            counts.setdefault(name, Counter())[str(value)] += 1
    said = {}
    for name, values in counts.items():
        listed = ", ".join(f"{value} {count}" for value, count in sorted(values.items()))
        said[name] = listed if len(values) <= LONGEST_LIST else f"{len(values)} values {short_hash(listed)}"
    return said
