"""The page of commands: what each one's --help says, as it says it."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

from parley.cli import main
from parley.cli.run import _parser
from parley.studies import known_studies

WIDTH = "88"
WHAT = (
    "What `--help` says of each, as it says it. Every flag of a study is also a key of its config file, and an "
    "argument in Python."
)
FENCE = "```"


def commands_page() -> str:
    with width(WIDTH):
        lines = ["# Commands", "", WHAT, ""]
        for words in every():
            lines += section(" ".join(("parley", *words)), help_of([*words, "--help"]))
        for study in known_studies():
            lines += section(f"parley run {study}", _parser(study).format_help())
    return "\n".join(lines)


def section(title: str, text: str) -> list[str]:
    return [f"## {title}", "", f"{FENCE}text", text.strip(), FENCE, ""]


def every() -> Iterator[list[str]]:
    """Commands, and what they branch into, as the help itself lists them."""
    for name in branches(help_of(["--help"])):
        yield [name]
        for inner in branches(help_of([name, "--help"])):
            yield [name, inner]


def branches(text: str) -> list[str]:
    """The names under a list of choices: those that stand four blanks in, before any flag."""
    head = text.partition("\noptions:")[0]
    listed = re.search(r"^ {2}[A-Z]+$(.*)", head, re.M | re.S)
    return re.findall(r"^ {4}([a-z][\w-]*)(?: |$)", listed[1], re.M) if listed else []


def help_of(words: list[str]) -> str:
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        main(words)
    return said.getvalue()


@contextmanager
def width(columns: str) -> Iterator[None]:
    """argparse asks the terminal, and a page must not depend on whose it is."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = columns
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
