"""The page of commands: the output of each command's --help."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module

from parley.cli import COMMANDS, main
from parley.cli.run import parser_of
from parley.runs.studies import known_studies

WIDTH = "88"
INTRODUCTION = (
    "Every command with its flags: the output of `--help`, and of `--help-all` for training and for every study. Every "
    "flag of a study is also a key of its config file and an argument in Python."
)
FENCE = "```"


def every_command() -> Iterator[list[str]]:
    """The words of every command and of every verb."""
    for name, entry in COMMANDS.items():
        verbs = getattr(import_module(entry.module.partition(":")[0]), "VERBS", {})
        yield from ([name, verb] for verb in verbs) if verbs else ([name],)


def commands_page() -> str:
    with terminal_width(WIDTH):
        lines = ["# Commands", "", INTRODUCTION, ""]
        for words in every_command():
            lines += section(" ".join(("parley", *words)), help_of(words))
        lines += section("parley train --help-all", help_of(["train"], "--help-all"))
        for study in known_studies():
            lines += section(f"parley run {study}", parser_of(study, everything=True).format_help())
    return "\n".join(lines)


def section(title: str, text: str) -> list[str]:
    return [f"## {title}", "", f"{FENCE}text", text.strip(), FENCE, ""]


def help_of(words: list[str], flag: str = "--help") -> str:
    output = io.StringIO()
    with redirect_stdout(output), suppress(SystemExit):
        main([*words, flag])
    return output.getvalue()


@contextmanager
def terminal_width(columns: str) -> Iterator[None]:
    """Fix the width that argparse wraps at, so that the page does not depend on the terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = columns
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
