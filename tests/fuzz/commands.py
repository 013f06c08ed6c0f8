"""Target: random command lines, generated from the argument parsers and run in this process in a folder of small files.

There is no network. Flags that set an amount of work (rounds, draws, repeats …) get small numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from hypothesis import strategies as st

from parley import cli
from parley.analysis.reporting import figures, render
from parley.analysis.reporting.figures import save
from parley.cli import main
from parley.runs.options import Options
from parley.runs.studies import STUDIES, find_study
from tests.fuzz.checking import Rejected, Target
from tests.fuzz.strategies import NUMBERS, ODD, choose, edited_text, often
from tests.fuzz.workshop import RUNS, prepare

Words = tuple[str, ...]
MODELS = ("sim/judge", "sim/judge?noise=1", "sim/author", "nobody/x", "sim", "openai/gpt-4o", "sim/judge?malformed=1")
SMALL_NUMBERS = ("0", "1", "2", "3", "-1", "1.5", "x", "", "nan")
FORMULAS = ("power",)
"""Commands that are as fast with large numbers as with small ones."""
WORKLESS = (
    "--seed", "--port", "--threshold", "--alpha", "--limit", "--max-tokens", "--temperature", "--na-prob-thresh",
)  # fmt: skip
"""Flags whose numbers do not set an amount of work."""
REPLACED = {"ray"}
"""It starts processes: replaced by another word."""
ADDED = {
    "report": ("--draws", "20"),
    "compare": (),
    "run": ("--model", "sim/judge"),
    "detox": ("--model", "sim/judge"),
}
"""Flags that a command gets if it has them and they are not set: their defaults take seconds."""


class Command(NamedTuple):
    words: Words
    flags: tuple[argparse.Action, ...]


@lru_cache(maxsize=1)
def all_commands() -> tuple[Command, ...]:
    """Every command with its flags; `run` once for each study."""
    every = [words for words in cli.all_commands() if words != ["run"]] + [["run", study] for study in STUDIES]
    return tuple(Command(tuple(words), actions_of(words)) for words in every)


def actions_of(words: list[str]) -> tuple[argparse.Action, ...]:
    parser, _ = cli.make_parser(words)
    return tuple(action for action in parser._actions if action.dest not in ("help", "study"))


def value_for(draw: st.DrawFn, command: str, action: argparse.Action, files: Sequence[str]) -> str:
    """A value that fits the flag, or nearly does."""
    flag = action.option_strings[-1] if action.option_strings else action.dest
    if action.choices and often(draw, 80):
        return str(choose(draw, list(action.choices)))
    if "model" in flag or flag in ("--judge", "--teacher", "--referee", "--author"):
        return str(choose(draw, MODELS))
    if is_numeric(flag, action):
        return str(choose(draw, NUMBERS if flag in WORKLESS or command in FORMULAS else SMALL_NUMBERS))
    if often(draw, 65):
        return str(choose(draw, files))
    words = edited_text(["some words, or more"]).map(lambda text: text[:200])
    return draw(st.just(str(action.default or "x")) | st.sampled_from(ODD) | words)


@lru_cache(maxsize=1)
def numeric_fields() -> set[str]:
    """Flags with numbers that Pydantic parses; for argparse they are text."""
    schemas = [find_study(study).Config for study in STUDIES] + [Options]
    return {
        "--" + name.replace("_", "-")
        for schema in schemas
        for name, field in schema.model_fields.items()
        if "int" in str(field.annotation) or "float" in str(field.annotation)
    } | {"--looks", "--identities", "--phases", "--asks"}


def is_numeric(flag: str, action: argparse.Action) -> bool:
    return action.type in (int, float) or flag in numeric_fields() or "_numbers" in getattr(action.type, "__name__", "")


def words_for(draw: st.DrawFn, command: str, action: argparse.Action, files: Sequence[str]) -> list[str]:
    flag = [choose(draw, action.option_strings)] if action.option_strings else []
    if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
        return flag
    count = draw(st.integers(1, 2)) if action.nargs in ("+", "*") else 1
    return flag + [value_for(draw, command, action, files) for _ in range(count)]


@st.composite
def generated_command(draw: st.DrawFn, files: Sequence[str]) -> Words:
    """A command with some of its flags, from its argument parser."""
    command = choose(draw, all_commands())
    words = list(command.words)
    for action in command.flags:
        if often(draw, 90 if action.required or not action.option_strings else 15):
            words += words_for(draw, command.words[0], action, files)
    return restrict(words)


@st.composite
def edited_command(draw: st.DrawFn, corpus: Sequence[Words], files: Sequence[str]) -> Words:
    """A valid command with words removed, added, replaced or edited."""
    words = list(choose(draw, corpus))
    command = command_of(words)
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
        elif edit == "flag" and command is not None and command.flags:
            words += words_for(draw, command.words[0], choose(draw, command.flags), files)
        elif edit == "byte":
            words.append("\udcff")  # a byte that is not UTF-8, as Python decodes it
    return restrict(words)


def restrict(words: list[str]) -> Words:
    """Removes paths outside the folder, other processes, large amounts of work, and NUL, which no argument contains."""
    restricted: list[str] = []
    for word in words:
        word = word.replace("\0", "").replace("..", ".").replace("~", "-")
        word = word.encode("utf-8", "surrogateescape" if word.isascii() else "replace").decode(
            "utf-8", "surrogateescape"
        )
        while word.startswith(("/", "\\")) or "=/" in word or ":/" in word:
            word = word.lstrip("/\\").replace("=/", "=").replace(":/", ":")
        flag, _, value = word.partition("=")
        if flag in work_flags() and value and not is_little_work(value):
            word = f"{flag}=1"
        elif restricted and restricted[-1] in work_flags() and not is_little_work(word):
            word = "1"
        restricted.append("asyncio" if word in REPLACED or value in REPLACED else word)
    if restricted and restricted[0] in ADDED:
        flags, known = ADDED[restricted[0]], flags_of(restricted)
        for name, typed in zip(flags[::2], flags[1::2], strict=True):
            if name in known and not any(word.startswith(name) for word in restricted):
                restricted += [name, typed]
    if restricted and restricted[0] == "report" and "--json" not in restricted and "--no-files" not in restricted:
        restricted.append("--no-files")  # drawing all figures takes a second and more
    return tuple(restricted)


@lru_cache(maxsize=1)
def commands_by_words() -> dict[Words, Command]:
    return {command.words: command for command in all_commands()}


def command_of(words: Sequence[str]) -> Command | None:
    default = ("run", "malibu") if words[:1] == ["run"] else ()  # for a study in a file
    return (
        commands_by_words().get(tuple(words[:2]))
        or commands_by_words().get(tuple(words[:1]))
        or commands_by_words().get(default)
    )


def flags_of(words: Sequence[str]) -> set[str]:
    command = command_of(words)
    return {flag for action in command.flags for flag in action.option_strings} if command else set()


def is_little_work(typed: str) -> bool:
    return all(part.strip() in SMALL_NUMBERS or not any(char.isdigit() for char in part) for part in typed.split(","))


@lru_cache(maxsize=1)
def work_flags() -> set[str]:
    """Flags whose numbers set an amount of work."""
    counted = {
        action.option_strings[-1]
        for command in all_commands()
        if command.words[0] not in FORMULAS
        for action in command.flags
        if action.option_strings and is_numeric(action.option_strings[-1], action)
    }
    return counted - set(WORKLESS)


class NoNetwork(OSError):
    """Raised where something would be sent."""


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """No network, no browser, no keys, and a viewer that stops as soon as it serves."""
    from parley.cli import view  # it loads aiohttp's server, which only this target needs

    serve = view.serve

    async def serve_briefly(path: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
        import asyncio

        task = asyncio.current_task()
        assert task is not None

        def stop(address: str) -> None:
            announce(address)
            task.cancel()

        await serve(path, host, port, stop)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NoNetwork(101, "Network is unreachable")

    keys = [name for name in os.environ if name.endswith(("_KEY", "_TOKEN"))]
    with (
        mock.patch.object(socket.socket, "connect", refuse),
        mock.patch.object(socket, "getaddrinfo", refuse),
        mock.patch("webbrowser.open", return_value=True),
        mock.patch.object(render, "save", partial(save, formats=("svg",))),  # SVG only: the other formats take longer
        mock.patch.object(figures, "save", partial(save, formats=("svg",))),
        mock.patch.object(view, "serve", serve_briefly),
        mock.patch.dict(os.environ),
    ):
        for name in keys:
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
        previous = Path.cwd()
        os.chdir(self.folder)
        try:
            with (
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
            os.chdir(previous)
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


def valid_commands() -> list[Words]:
    """Complete command lines. All succeed but two, with a simulated model: `export --format trl` and `detox`."""
    reports = [("report", f"{study}.sqlite", "--no-files", "--draws", "20") for study in RUNS]
    runs = [
        ("run", study, "--model", "sim/judge", "--quiet", "--out", "x.sqlite", *as_flags(config))
        for study, config in RUNS.items()
    ]
    return [
        *reports,
        *runs,
        ("report", "imported.sqlite", "--json"),
        ("compare", "malibu.sqlite", "malibu.sqlite"),
        ("show", "malibu.sqlite", "--prompts"),
        ("show", "imported.sqlite", "--list", "--json"),
        ("view", "malibu.sqlite", "--export", "x.html"),
        ("view", "malibu.sqlite", "--port", "0", "--no-browser"),
        ("export", "rldf.sqlite", "--format", "trl", "--to", "x"),
        ("export", "malibu.sqlite", "--format", "inspect", "--to", "x.json"),
        ("export", "malibu.sqlite", "--format", "transcripts", "--json"),
        ("import", "inspect", "inspect.eval"),
        ("import", "inspect", "inspect.json", "--out", "x.sqlite", "--json"),
        ("import", "autogen", "autogen.jsonl", "--model", "sim/judge"),
        ("run", "malibu", "--config", "config.toml", "--quiet", "--phases", "1"),
        ("run", "malibu", "--config", "config.yaml", "--dry-run", "--json"),
        ("run", "study.py:Mine", "--model", "sim/judge", "--suite", "tiny", "--quiet", "--rounds", "1"),
        ("power", "--effect", "0.5"),
        ("power", "--scenarios", "20", "--json"),
        ("run", "malibu", "--suite", "tiny", "--model", "sim/judge", "--dry-run", "--limits", "latency=2,calls=80"),
        ("import", "bbq", "predictions.jsonl", "--data", "bbq"),
        ("import", "squad", "answers.json", "--data", "squad.json"),
        ("run", "toxicity", "--data", "texts.jsonl", "--scorer", "ngrams"),
        ("run", "rubric", "--data", "texts.jsonl", "--model", "sim/judge"),
        ("scenarios", "list", "suite.toml"),
        ("scenarios", "show", "bakery-1", "--suite", "suite.toml"),
        ("scenarios", "validate", "tiny"),
        ("scenarios", "list", "topics.txt"),
        ("detox", "You fool.", "--model", "sim/author"),
        ("models",),
        ("new", "study", "mine"),
    ]


def as_flags(config: dict[str, Any]) -> Words:
    words: list[str] = []
    for name, setting in config.items():
        words += [
            f"--{name.replace('_', '-')}",
            ",".join(map(str, setting)) if isinstance(setting, list) else str(setting),
        ]
    return tuple(words)


def target(folder: Path) -> Target:
    """Prepares the folder."""
    workshop = Workshop(folder)
    commands = valid_commands()
    inputs = edited_command(commands, workshop.files) | generated_command(workshop.files)
    return Target("command line", commands, inputs, workshop.run_command)
