"""Target: command lines made up from the parsers' own tables, run in this process, without network, in a folder of
small files.

What asks for work (rounds, draws, repeats …) gets small numbers or none: whoever asks for a day of work gets it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from parley.analysis.reporting import figures, render
from parley.analysis.reporting.figures import save
from parley.cli import main
from parley.cli.commands import COMMANDS, add_commands
from parley.cli.run import _parser
from parley.execute import Options
from parley.studies import STUDIES, find_study
from tests.fuzz import mutation
from tests.fuzz.dictionary import NUMBERS, ODD
from tests.fuzz.loop import Rejected, Target
from tests.fuzz.workshop import RUNS, prepare

Words = tuple[str, ...]
MODELS = ("sim/judge", "sim/judge?noise=1", "sim/author", "nobody/x", "sim", "openai/gpt-4o", "sim/judge?malformed=1")
SMALL = ("0", "1", "2", "3", "-1", "1.5", "x", "", "nan")
FORMULAS = ("power", "plan")
"""Commands that calculate with large numbers as fast as with small ones."""
FREE = ("--seed", "--port", "--threshold", "--alpha", "--limit", "--max-tokens", "--temperature", "--na-prob-thresh")
"""Numbers that ask for no work, however large."""
SLOW = {"processes", "ray", "--trace"}
"""They start other processes, or send something."""
WITH = {
    "report": ("--draws", "20"),
    "compare": ("--draws", "20"),
    "calibrate": ("--draws", "5", "--simulations", "2", "--scenarios", "3", "--judges", "2"),
    "run": ("--model", "sim/judge"),
    "detox": ("--model", "sim/judge"),
    "topics": ("--model", "sim/judge"),
    "scenarios": ("--model", "sim/judge"),
    "score": ("--scorer", "judge:sim/judge", "--model", "sim/judge"),
}
"""What a command is given where it has the flag and nobody typed it: its default asks for seconds of work."""


class Command(NamedTuple):
    words: Words
    flags: tuple[argparse.Action, ...]


def _walk(words: Words, parser: argparse.ArgumentParser) -> Iterator[Command]:
    verbs = next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)
    if verbs is None:
        yield Command(words, tuple(action for action in parser._actions if action.dest != "help"))
        return
    for name, below in verbs.choices.items():
        yield from _walk((*words, name), below)


@lru_cache(maxsize=1)
def table() -> tuple[Command, ...]:
    """Every command with its flags, as the parsers have them; `run` once for each study."""
    found: list[Command] = []
    for name in COMMANDS:
        if name == "run":
            found += [Command(("run", study), tuple(_parser(study)._actions)) for study in STUDIES]
        elif name == "score":
            from parley.cli.score import VERBS

            for verb in VERBS:
                parser = argparse.ArgumentParser()
                add_commands(parser.add_subparsers(), COMMANDS, [name, verb])
                found += [one for one in _walk((), parser) if one.words == (name, verb)]
        else:
            parser = argparse.ArgumentParser()
            add_commands(parser.add_subparsers(), COMMANDS, [name])
            found += [one for one in _walk((), parser) if one.words[0] == name]
    return tuple(found)


def value(rng: random.Random, command: str, action: argparse.Action, files: Sequence[str]) -> str:
    """Something that fits the flag, or nearly."""
    flag = action.option_strings[-1] if action.option_strings else action.dest
    kind = rng.random()
    if action.choices and kind < 0.8:
        return str(rng.choice(list(action.choices)))
    if "model" in flag or flag in ("--judge", "--teacher", "--referee", "--author"):
        return rng.choice(MODELS)
    if _counts(flag, action):
        return rng.choice(NUMBERS if flag in FREE or command in FORMULAS else SMALL)
    if kind < 0.65:
        return rng.choice(files)
    return rng.choice((str(action.default or "x"), mutation.text(rng, ["some words, or more"])[:200], rng.choice(ODD)))


@lru_cache(maxsize=1)
def _numeric_fields() -> set[str]:
    """Flags of studies and runs that hold numbers: what pydantic reads, argparse sees as text."""
    schemas = [find_study(study).Config for study in STUDIES] + [Options]
    return {
        "--" + name.replace("_", "-")
        for schema in schemas
        for name, field in schema.model_fields.items()
        if "int" in str(field.annotation) or "float" in str(field.annotation)
    } | {"--looks", "--identities", "--phases", "--asks"}


def _counts(flag: str, action: argparse.Action) -> bool:
    return (
        action.type in (int, float) or flag in _numeric_fields() or "_numbers" in getattr(action.type, "__name__", "")
    )


def _typed(rng: random.Random, command: str, action: argparse.Action, files: Sequence[str]) -> list[str]:
    flag = [rng.choice(action.option_strings)] if action.option_strings else []
    if action.nargs == 0:
        return flag
    if isinstance(action, argparse.BooleanOptionalAction):
        return flag
    often = rng.randint(1, 2) if action.nargs in ("+", "*") else 1
    return flag + [value(rng, command, action, files) for _ in range(often)]


def made(seeds: Sequence[Words], files: Sequence[str]) -> Callable[[random.Random, Sequence[Words]], Words]:
    def fresh(rng: random.Random) -> list[str]:
        command = rng.choice(table())
        words = list(command.words)
        for action in command.flags:
            if rng.random() < (0.9 if action.required or not action.option_strings else 0.15):
                words += _typed(rng, command.words[0], action, files)
        return words

    def make(rng: random.Random, kept: Sequence[Words]) -> Words:
        if rng.random() < 0.3:
            return tame(rng, fresh(rng))
        words = list(rng.choice(seeds if rng.random() < 0.6 else kept))
        command = command_of(words)
        for _ in range(rng.choice((1, 1, 2, 3))):
            kind = rng.randrange(7)
            at = rng.randrange(1, len(words)) if len(words) > 1 else 0
            if kind == 0:
                del words[at : at + 1]
            elif kind == 1:
                words[at:at] = [rng.choice(files)]
            elif kind == 2 and words:
                words[at] = mutation.text(rng, [words[at]])[:300]
            elif kind in (3, 4):
                places = [n for n, word in enumerate(words) if word in files]
                if places:
                    words[rng.choice(places)] = rng.choice(files)
            elif command is not None and command.flags:
                words += _typed(rng, command.words[0], rng.choice(command.flags), files)
        return tame(rng, words)

    return make


def tame(rng: random.Random, words: list[str]) -> Words:
    """Nothing beyond the folder, no other processes, no day of work; a word of a real command line holds no NUL."""
    kept = []
    for at, word in enumerate(words):
        word = word.replace("\0", "").replace("..", ".").replace("~", "-")
        word = word.encode("utf-8", "surrogateescape" if word.isascii() else "replace").decode(
            "utf-8", "surrogateescape"
        )
        while word.startswith(("/", "\\")) or "=/" in word or ":/" in word:
            word = word.lstrip("/\\").replace("=/", "=").replace(":/", ":")
        flag, sign, rest = word.partition("=")
        before = words[at - 1] if at else ""
        for name, typed in ((flag, rest if sign else ""), (before, word)):
            if name.startswith("--") and name in _work() and typed not in SMALL and not _few(typed):
                word = f"{flag}={rng.choice(SMALL)}" if name == flag and sign else rng.choice(SMALL)
        kept.append("asyncio" if word in SLOW or rest in SLOW else word)
    if rng.random() < 0.02:
        kept.append("\udcff")  # a byte that is no UTF-8, as Python gets it
    if kept and kept[0] in WITH:
        flags, known = WITH[kept[0]], _flags_of(kept)
        for name, typed in zip(flags[::2], flags[1::2], strict=True):
            if name in known and not any(word.startswith(name) for word in kept):
                kept += [name, typed]
    if kept and kept[0] == "report" and "--json" not in kept and "--no-files" not in kept:
        kept.append("--no-files")  # drawing all figures takes a second and more
    return tuple(kept)


@lru_cache(maxsize=1)
def _by_words() -> dict[Words, Command]:
    return {one.words: one for one in table()}


def command_of(words: Sequence[str]) -> Command | None:
    own = ("run", "malibu") if words[:1] == ["run"] else ()  # a study of one's own
    return _by_words().get(tuple(words[:2])) or _by_words().get(tuple(words[:1])) or _by_words().get(own)


def _flags_of(words: Sequence[str]) -> set[str]:
    command = command_of(words)
    return {flag for action in command.flags for flag in action.option_strings} if command else set()


def _few(typed: str) -> bool:
    return all(part.strip() in SMALL or not any(sign.isdigit() for sign in part) for part in typed.split(","))


@lru_cache(maxsize=1)
def _work() -> set[str]:
    """Flags whose number is an amount of work."""
    counted = {
        action.option_strings[-1]
        for command in table()
        if command.words[0] not in FORMULAS
        for action in command.flags
        if action.option_strings and _counts(action.option_strings[-1], action)
    }
    return counted - set(FREE)


class NoNetwork(OSError):
    """Raised where something would be sent."""


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """No network, no browser, no keys, and a viewer that stops as soon as it serves."""
    from parley.viewer import server

    serve = server.serve

    async def briefly(place: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
        import asyncio

        task = asyncio.current_task()
        assert task is not None

        def stop(address: str) -> None:
            announce(address)
            task.cancel()

        await serve(place, host, port, stop)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NoNetwork(101, "Network is unreachable")

    keys = [name for name in os.environ if name.endswith(("_KEY", "_TOKEN"))]
    with (
        mock.patch.object(socket.socket, "connect", refuse),
        mock.patch.object(socket, "getaddrinfo", refuse),
        mock.patch("webbrowser.open", return_value=True),
        mock.patch.object(render, "save", partial(save, formats=("svg",))),  # of three formats, the one a page has
        mock.patch.object(figures, "save", partial(save, formats=("svg",))),
        mock.patch.object(server, "serve", briefly),
        mock.patch.dict(os.environ),
    ):
        for name in keys:
            del os.environ[name]
        os.environ.update(HF_HUB_OFFLINE="1", COLUMNS="100")
        yield


class Workshop:
    """The folder, put back after every command line as it was before."""

    def __init__(self, place: Path) -> None:
        self.place = place
        prepare(place)
        self._content = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
        self._stats = {path: self._stat(path) for path in self._content}
        self.files = sorted(str(path.relative_to(place)) for path in self._content)
        self.files += ["bbq", "nothing", "bom", ".", "", "missing.sqlite", "study.py:Mine", "raises.py:X", "-"]

    @staticmethod
    def _stat(path: Path) -> tuple[int, int]:
        state = path.stat()
        return state.st_mtime_ns, state.st_size

    def put_back(self) -> None:
        for path in sorted(self.place.rglob("*"), reverse=True):
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

    def feed(self, words: Words) -> None:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors=kind) for kind in ("strict", "backslashreplace"))
        given = io.TextIOWrapper(io.BytesIO(b'{"text": "A kind word."}\n'), "utf-8")
        before = Path.cwd()
        os.chdir(self.place)
        try:
            with (
                alone(),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                mock.patch.object(sys, "stdin", given),
            ):
                try:
                    status: Any = main(list(words))
                except SystemExit as end:
                    status = end.code
                out.flush()
        finally:
            os.chdir(before)
            self.put_back()
        said, complaint = (stream.detach().getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
        assert status in (0, 1, 2, 130), f"status {status}"
        assert "Traceback" not in complaint, complaint[-2000:]
        if status == 0:
            return
        assert said.strip() or complaint.strip(), f"status {status} without a word"
        if status == 2:
            assert any(line.startswith("parley") for line in complaint.splitlines()), complaint[-500:]
        raise Rejected((complaint or said)[-300:])


def sound_lines(files: Sequence[str]) -> list[Words]:
    """Command lines that work: what the mutations begin with."""
    reports = [("report", f"{study}.sqlite", "--no-files", "--draws", "20") for study in RUNS]
    runs = [
        ("run", study, "--model", "sim/judge", "--quiet", "--out", "x.sqlite", *_settings(config))
        for study, config in RUNS.items()
    ]
    return [
        *reports,
        *runs,
        ("report", "imported.sqlite", "--json"),
        ("compare", "malibu.sqlite", "malibu.sqlite", "--draws", "20"),
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
        ("run", "study.py:Mine", "--model", "sim/judge", "--suite", "quick", "--quiet", "--rounds", "1"),
        ("power", "--effect", "0.5"),
        ("power", "--scenarios", "20", "--json"),
        ("plan", "--calls", "80"),
        ("plan", "--from", "plan.json", "--json"),
        ("calibrate", "--simulations", "2", "--draws", "5", "--scenarios", "3", "--judges", "1"),
        ("score", "bbq", "--data", "bbq", "--predictions", "predictions.jsonl"),
        ("score", "squad", "--data", "squad.json", "--predictions", "answers.json"),
        ("score", "toxicity", "texts.jsonl", "--no-cache"),
        ("score", "rubric", "texts.jsonl", "--model", "sim/judge"),
        ("scenarios", "list", "suite.toml"),
        ("scenarios", "show", "bakery-1", "--suite", "suite.toml"),
        ("scenarios", "validate", "quick"),
        ("topics", "list", "topics.txt"),
        ("detox", "You fool.", "--model", "sim/author"),
        ("models",),
        ("new", "study", "mine"),
    ]


def _settings(config: dict[str, Any]) -> Words:
    words: list[str] = []
    for name, setting in config.items():
        words += [
            f"--{name.replace('_', '-')}",
            ",".join(map(str, setting)) if isinstance(setting, list) else str(setting),
        ]
    return tuple(words)


def target(place: Path) -> Target:
    workshop = Workshop(place)
    sound = sound_lines(workshop.files)
    for words in sound:  # the first of each loads what the others find loaded
        with contextlib.suppress(Rejected):
            workshop.feed(words)
    return Target("command line", sound, made(sound, workshop.files), workshop.feed, 0.25)
