"""The commands there are. A command's module is imported when the command is typed, so that `--help` stays quick."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

AddParser = Callable[..., argparse.ArgumentParser]
"""`add_parser` of the subparsers, with the command's name and help filled in."""


class Command(NamedTuple):
    """Where a command is, and its line in the list of commands.

    A module has either `add_to(add_parser)`, which adds its flags and sets a `handler`, or `VERBS`, its subcommands.
    """

    module: str
    help: str


COMMANDS: dict[str, Command] = {
    "run": Command("parley.cli.run", "run a study, or go on with it"),
    "plan": Command("parley.cli.plan", "hours, cost, disk of a large run, simulated"),
    "report": Command("parley.cli.report", "tables, figures and a page of one run or several of one study"),
    "compare": Command("parley.cli.compare", "two runs, or two models of one run, on the same units"),
    "show": Command("parley.cli.show", "a transcript in the terminal"),
    "view": Command("parley.cli.view", "read runs in the browser"),
    "export": Command("parley.cli.export", "a dataset from debate runs, or any run for Inspect or as JSON lines"),
    "train": Command("parley.cli.train", "RLDF's training: SFT, reward model, RL, evaluation"),
    "score": Command("parley.cli.score", "score answers and texts from a file"),
    "detox": Command("parley.cli.detox", "judge one text and revise it until it is neither toxic nor badly written"),
    "attention": Command("parley.cli.attention", "attention on the framing's words (a framing run, weights at hand)"),
    "scenarios": Command("parley.cli.scenarios", "suites of scenarios: list, show, validate, derive, respond"),
    "topics": Command("parley.cli.topics", "topics to debate: list, generate"),
    "calibrate": Command("parley.cli.calibrate", "simulated judges: false alarms and power of every test"),
    "power": Command("parley.cli.power", "scenarios needed for an effect, and the reverse"),
    "models": Command("parley.cli.models", "models: which there are, and fetching embedded ones"),
    "new": Command("parley.cli.new", "begin a study of your own: a small package with a test"),
    "salvage": Command("parley.cli.salvage", "copy what can be read of a damaged run file to a new one"),
    "import": Command("parley.cli.imports", "a run file from what was run elsewhere: Inspect's logs, AutoGen's teams"),
}


def add_commands(subparsers: Any, commands: Mapping[str, Command], arguments: Sequence[str]) -> None:
    """All commands by name and help; the flags only of the one that was typed."""
    for name, command in commands.items():
        add_parser = partial(subparsers.add_parser, name, help=command.help)
        if list(arguments[:1]) != [name]:
            add_parser()
            continue
        module = import_module(command.module)
        if hasattr(module, "VERBS"):
            verbs = add_parser().add_subparsers(dest="verb", required=True, metavar="KIND")
            add_commands(verbs, module.VERBS, arguments[1:])
        else:
            module.add_to(add_parser)
