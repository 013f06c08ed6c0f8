"""The table of commands. A command's module is imported only when that command is typed, so that `--help` is quick."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

AddParser = Callable[..., argparse.ArgumentParser]
"""`add_parser` of the subparsers, with the command's name and help filled in."""


class Command(NamedTuple):
    """The module of a command, and its line in the list of commands.

    A module has either `add_to(add_parser)`, which adds its flags and sets a `handler`, or `VERBS`, its subcommands.
    """

    module: str
    help: str


COMMANDS: dict[str, Command] = {
    "run": Command("parley.cli.run", "run a study, or resume it"),
    "plan": Command("parley.cli.plan", "simulate a large run: hours, cost, disk space"),
    "report": Command("parley.cli.report", "tables, figures and a page for one run, or for several runs of one study"),
    "compare": Command("parley.cli.compare", "compare two runs, or two models of one run, on the same units"),
    "show": Command("parley.cli.show", "print a transcript in the terminal"),
    "view": Command("parley.cli.view", "read runs in the browser"),
    "export": Command("parley.cli.export", "make a dataset from runs, or write any run for Inspect or as JSON lines"),
    "audit": Command(
        "parley.cli.audit", "what a reward model could learn from preference pairs instead of their content"
    ),
    "train": Command("parley.cli.train", "train RLDF's policy: SFT, reward model, RL, evaluation"),
    "score": Command("parley.cli.score", "score answers or texts from a file, or audit toxicity scorers"),
    "detox": Command("parley.cli.detox", "judge one text and revise it until it is neither toxic nor badly written"),
    "attention": Command(
        "parley.cli.attention", "measure attention to the framing's words (needs a framing run and the model's weights)"
    ),
    "scenarios": Command(
        "parley.cli.scenarios", "list, show and validate suites of scenarios, or write new ones with a model"
    ),
    "topics": Command("parley.cli.topics", "list debate topics, or generate new ones with a model"),
    "calibrate": Command(
        "parley.cli.calibrate", "measure the false-positive rate and power of every test on simulated judges"
    ),
    "power": Command("parley.cli.power", "number of bases needed to detect an effect, or the reverse"),
    "models": Command("parley.cli.models", "list models, and fetch embedded ones"),
    "doctor": Command("parley.cli.doctor", "what is installed, which keys are set, which models can be reached"),
    "new": Command("parley.cli.new", "start your own study: a small package with a test"),
    "salvage": Command("parley.cli.salvage", "copy what can be read of a damaged run file to a new one"),
    "pack": Command("parley.cli.pack", "compress runs to about a fifth; every command reads them as they are"),
    "unpack": Command("parley.cli.unpack", "restore packed runs"),
    "import": Command("parley.cli.imports", "make a run file from Inspect's logs or AutoGen's teams"),
}


def add_commands(subparsers: Any, commands: Mapping[str, Command], arguments: Sequence[str]) -> None:
    """Add all commands with their help lines, but flags only for the one that was typed.

    Args:
        subparsers: What `ArgumentParser.add_subparsers` returned.
        commands: The commands by name.
        arguments: What was typed; the first word is the command.
    """
    typed = arguments[0] if arguments else ""
    if typed and not typed.startswith("-") and typed not in commands:
        refuse_unknown_command(typed, commands)
    for name, command in commands.items():
        description = f"{command.help[0].upper()}{command.help[1:]}."
        add_parser = partial(subparsers.add_parser, name, help=command.help, description=description)
        if typed != name:
            add_parser()
            continue
        module = import_module(command.module)
        if hasattr(module, "VERBS"):
            verbs = add_parser().add_subparsers(dest="verb", required=True, metavar="KIND")
            add_commands(verbs, module.VERBS, arguments[1:])
        else:
            module.add_to(add_parser)
            parser = subparsers.choices[name]
            parser.set_defaults(parser=parser)
            for action in parser._actions:  # as the flags that are made from a study's config
                if action.option_strings and action.metavar is None:
                    action.metavar = {int: "N", float: "X"}.get(action.type)


def refuse_unknown_command(typed: str, commands: Mapping[str, Command]) -> None:
    """Raise an error that names the command most like what was typed."""
    from parley.agents import ConfigError  # imported late: it loads AutoGen

    similar = difflib.get_close_matches(typed, commands, n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"known: {', '.join(commands)}"
    raise ConfigError(f"there is no command '{typed}' ({hint})")
