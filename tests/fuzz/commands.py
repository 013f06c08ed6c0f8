"""Target: random command lines, generated from the argument parsers and run in this process in a folder of small files.

There is no network, and numbers are small: many of them set an amount of work.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from parley import cli
from parley.analysis.reporting import figures, render
from parley.analysis.reporting.figures import save
from parley.cli import main
from parley.runs.studies import STUDIES
from tests.fuzz.checking import Rejected, Target
from tests.fuzz.strategies import NUMBERS, ODD, choose, edited_text, often
from tests.fuzz.workshop import RUNS, prepare

Words = tuple[str, ...]
MODELS = ("sim/judge", "sim/judge?noise=1", "sim/author", "nobody/x", "sim", "openai/gpt-4o", "sim/judge?malformed=1")
SMALL_NUMBERS = ("0", "1", "2", "3", "-1", "1.5", "x", "", "nan")
ADDED = {"report": ("--draws", "20"), "run": ("--model", "sim/judge"), "detox": ("--model", "sim/judge")}
"""Flags that a command gets if they are not set: their defaults take seconds."""


@cache
def flags_of(words: Words) -> tuple[argparse.Action, ...]:
    parser, _ = cli.make_parser(list(words))
    return tuple(action for action in parser._actions if action.dest not in ("help", "study"))


@cache
def all_commands() -> tuple[Words, ...]:
    """Every command; `run` once for each study."""
    return (*(tuple(words) for words in cli.all_commands() if words != ["run"]), *(("run", name) for name in STUDIES))


def words_for(draw: st.DrawFn, command: str, action: argparse.Action, files: Sequence[str]) -> list[str]:
    """A flag with a value that fits, or nearly does."""
    flag = [choose(draw, action.option_strings)] if action.option_strings else []
    if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
        return flag
    words = edited_text(["some words, or more"]).map(lambda text: text[:200])
    names: Any = st.sampled_from(files)
    if action.choices:
        names = st.sampled_from([str(choice) for choice in action.choices])
    elif "model" in str(flag) or flag in (["--judge"], ["--teacher"], ["--referee"], ["--author"]):
        names = st.sampled_from(MODELS)
    numbers = st.sampled_from(NUMBERS if command == "power" else SMALL_NUMBERS)
    values = st.one_of(names, names, names, numbers, numbers, words | st.sampled_from(ODD))
    count = draw(st.integers(1, 2)) if action.nargs in ("+", "*") else 1
    return flag + [draw(values) for _ in range(count)]


@st.composite
def generated_command(draw: st.DrawFn, files: Sequence[str]) -> Words:
    """A command with some of its flags, from its argument parser."""
    command = choose(draw, all_commands())
    words = list(command)
    for action in flags_of(command):
        if often(draw, 90 if action.required or not action.option_strings else 15):
            words += words_for(draw, command[0], action, files)
    return restrict(words)


@st.composite
def edited_command(draw: st.DrawFn, corpus: Sequence[Words], files: Sequence[str]) -> Words:
    """A valid command with words removed, added, replaced or edited."""
    words = list(choose(draw, corpus))
    known = [command for command in all_commands() if tuple(words[: len(command)]) == command]
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(min(1, len(words) - 1), len(words) - 1))
        edit = choose(draw, ("remove", "insert", "edit", "file", "file", "flag", "flag", "byte"))
        if edit == "remove" and len(words) > 1:
            del words[index]
        elif edit == "insert":
            words.insert(index, choose(draw, files))
        elif edit == "edit":
            words[index] = draw(edited_text([words[index]]))[:300]
        elif edit == "file" and (places := [n for n, word in enumerate(words) if word in files]):
            words[choose(draw, places)] = choose(draw, files)
        elif edit == "flag" and known and (flags := flags_of(known[0])):
            words += words_for(draw, words[0], choose(draw, flags), files)
        elif edit == "byte":
            words.append("\udcff")  # a byte that is not UTF-8, as Python decodes it
    return restrict(words)


def restrict(words: Sequence[str]) -> Words:
    """Removes paths outside the folder, other processes, large amounts of work, and NUL, which no argument contains."""
    restricted: list[str] = []
    for word in words:
        word = re.sub(r"\bray\b", "asyncio", word.replace("\0", "").replace("..", ".").replace("~", "-"))
        handling = "surrogateescape" if word.isascii() else "replace"
        word = word.encode("utf-8", handling).decode("utf-8", "surrogateescape")
        while word.startswith(("/", "\\")) or "=/" in word or ":/" in word:
            word = word.lstrip("/\\").replace("=/", "=").replace(":/", ":")
        restricted.append(word if words[0] == "power" else re.sub(r"\d{2,}|[4-9](?=$|,|e)", "1", word))
    for flag, *value in (ADDED.get(restricted[0], ("",)),) if restricted else ():
        known = {name for action in flags_of(tuple(restricted[:1])) for name in action.option_strings}
        if flag in known and not any(word.startswith(flag) for word in restricted):
            restricted += [flag, *value]
    if restricted[:1] == ["report"] and "--json" not in restricted and "--no-files" not in restricted:
        restricted.append("--no-files")  # drawing all figures takes a second and more
    return tuple(restricted)


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """No network, no browser, no keys, and a viewer that stops as soon as it serves."""
    from parley.cli import view  # it loads aiohttp's server, which only this target needs

    serve = view.serve

    async def serve_briefly(path: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
        task = asyncio.current_task()
        assert task is not None

        def stop(address: str) -> None:
            announce(address)
            task.cancel()

        await serve(path, host, port, stop)

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(101, "Network is unreachable")

    with (
        mock.patch.object(socket.socket, "connect", refuse),
        mock.patch.object(socket, "getaddrinfo", refuse),
        mock.patch("webbrowser.open", return_value=True),
        mock.patch.object(render, "save", partial(save, formats=("svg",))),  # SVG only: the other formats take longer
        mock.patch.object(figures, "save", partial(save, formats=("svg",))),
        mock.patch.object(view, "serve", serve_briefly),
        mock.patch.dict(os.environ),
    ):
        for name in [name for name in os.environ if name.endswith(("_KEY", "_TOKEN"))]:
            del os.environ[name]
        os.environ.update(HF_HUB_OFFLINE="1", COLUMNS="100")
        yield


class Workshop:
    """The folder, restored after every command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        prepare(folder)
        self._content = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self._stats = {path: self._stat(path) for path in self._content}
        self.files = sorted(str(path.relative_to(folder)) for path in self._content)
        self.files += ["bbq", "nothing", "bom", ".", "", "missing.sqlite", "study.py:Mine", "raises.py:X", "-"]

    @staticmethod
    def _stat(path: Path) -> tuple[int, int]:
        state = path.stat()
        return state.st_mtime_ns, state.st_size

    def restore(self) -> None:
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.rmdir()
            elif path not in self._content:
                path.unlink()
        for path, content in self._content.items():
            if not path.is_file() or self._stat(path) != self._stats[path]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                self._stats[path] = self._stat(path)

    def run_command(self, words: Words) -> None:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors=kind) for kind in ("strict", "backslashreplace"))
        stdin = io.TextIOWrapper(io.BytesIO(b'{"text": "A kind word."}\n'), "utf-8")
        try:
            with (
                contextlib.chdir(self.folder),
                isolated(),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                mock.patch.object(sys, "stdin", stdin),
            ):
                try:
                    status: Any = main(list(words))
                except SystemExit as end:
                    status = end.code
                out.flush()
        finally:
            self.restore()
        printed, errors = (stream.detach().getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
        assert status in (0, 1, 2, 130), f"status {status}"
        assert "Traceback" not in errors, errors[-2000:]
        if status == 0:
            return
        assert printed.strip() or errors.strip(), f"status {status} without a message"
        if status == 2:
            assert any(line.startswith("parley") for line in errors.splitlines()), errors[-500:]
        raise Rejected((errors or printed)[-300:])


VALID = """\
report imported.sqlite --json
compare malibu.sqlite malibu.sqlite
show malibu.sqlite --prompts
show imported.sqlite --list --json
view malibu.sqlite --export x.html
view malibu.sqlite --port 0 --no-browser
export rldf.sqlite --format trl --to x
export malibu.sqlite --format inspect --to x.json
export malibu.sqlite --format transcripts --json
import inspect inspect.eval
import inspect inspect.json --out x.sqlite --json
import autogen autogen.jsonl --model sim/judge
import bbq predictions.jsonl --data bbq
import squad answers.json --data squad.json
run malibu --config config.toml --quiet --phases 1
run malibu --config config.yaml --dry-run --json
run study.py:Mine --model sim/judge --suite tiny --quiet --rounds 1
run malibu --suite tiny --model sim/judge --dry-run --limits latency=2,calls=80
run toxicity --data texts.jsonl --scorer ngrams
run rubric --data texts.jsonl --model sim/judge
power --effect 0.5
power --scenarios 20 --json
scenarios list suite.toml
scenarios show bakery-1 --suite suite.toml
scenarios validate tiny
scenarios list topics.txt
detox Fool. --model sim/author
models
new study mine"""
"""Complete command lines. All succeed but two, with a simulated model: `export --format trl` and `detox`."""


def as_flags(config: dict[str, Any]) -> Words:
    flags = [
        (f"--{name.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in config.items()
    ]
    return tuple(word for flag in flags for word in flag)


def target(folder: Path) -> Target:
    """Prepares the folder."""
    workshop = Workshop(folder)
    reports: list[Words] = [("report", f"{study}.sqlite", "--no-files", "--draws", "20") for study in RUNS]
    runs = [
        ("run", study, "--model", "sim/judge", "--quiet", "--out", "x.sqlite", *as_flags(config))
        for study, config in RUNS.items()
    ]
    commands = [*reports, *runs, *(tuple(line.split()) for line in VALID.splitlines())]
    inputs = edited_command(commands, workshop.files) | generated_command(workshop.files)
    return Target("command line", commands, inputs, workshop.run_command)
