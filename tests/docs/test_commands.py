"""Every command in README and docs is run; the constants below say what is changed and what is only parsed.

Bash reads the blocks (variables, loops, quotes) with `parley` replaced by a recorder; the recorded commands are then
run in this process, on simulated models and very small data.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from docs.commands import every_command
from parley.agents import ConfigError
from parley.cli import main, parse
from parley.cli.run import parser_of
from parley.runs.studies import known_studies

MODEL = re.compile(r"\b(?:openai|deepseek|anthropic|google|llamacpp|ollama|vllm|server|local|hf)/([^\s,?]+)[^\s,]*")
SIMULATED = r"sim/\1?base=4&round=-2"
"""A model that needs a key, a server or a download becomes a simulated one of the same name."""
DEFAULT = "sim/any?base=4&round=-2"
"""The model for commands that name none."""

PLACEHOLDERS = {"--model": DEFAULT, "--data": "BBQ/data"}
"""The values for … after a flag, where a page leaves the value to the reader."""

SMALLER = {
    "--topics": "3", "--count": "2", "--limit": "4", "--prompts": "2", "--completions": "1", "--per-base": "1",
    "--effect": "0.9", "--responses": "3", "--workers": "2",
}  # fmt: skip
"""Smaller values for flags that make a run long."""
ADDED = {
    ("run", "malibu", "--suite", "full"): [
        "--scenarios",
        "fitness-desk-worker,law-fire-exit",
        "--identities",
        "gender",
    ],
    ("run", "malibu", "--suite", "wide"): ["--scenarios", "astronomy-planet-dip", "--identities", "gender"],
    ("run", "referee"): ["--limit", "6"],
    ("report",): ["--draws", "50", "--no-files"],
}
"""Flags added to commands that have all of these words, unless the command sets them itself."""
NOT_SIMULATED = {
    "self-debias-gen,": "",
    "keep=500": "",
    "engine=duckduckgo": "engine=folder:articles",
    "none,duckduckgo": "none,folder:articles",
    "expected": "sampled",
}
"""Replacements for what needs a real model or a network."""
ONLY_PARSED = {
    ("view",): "serves until Ctrl-C: tests/viewer",
    ("train",): "needs torch: tests/training",
    ("replicate",): "all runs of a paper: tests/parley/test_replicate.py",
    ("run", "attention"): "needs torch: tests/judging/test_attention.py",
    ("models", "fetch"): "a download: tests/agents/test_catalogue.py",
    ("export", "drafts"): "needs toxic drafts: tests/parley/test_export_conversations.py",
    ("export", "chains"): "the same, of MABRF",
    ("export", "kindness"): "needs a reader's own study: the same tests",
    ("runs/tutorial.sqlite",): "run, with what it prints: test_examples",
    ("runs/null.sqlite",): "the same",
    ("runs/silent.sqlite",): "the same",
    ("report", "runs/a.sqlite", "--paper"): "needs a run of a paper: as in docs/malibu.md",
    ("run", "--executor", "ray"): "starts Ray: tests/parley/test_ray.py",
}
"""Commands with these words are only parsed, and why."""
OUTSIDE = {
    "pip",
    "pip-audit",
    "cmake",
    "llama-server",
    "accelerate",
    "hf",
    "ruff",
    "mypy",
    "git",
    "ollama",
    "vllm",
    "ray",
    "cd",
}
"""Other programs, which are not run."""
FOREIGN = {
    "--api-key",
    "--max-model-len",
    "--enable-prefix-caching",
    "--enable-prompt-tokens-details",
    "--cache-ram",
    "--reasoning-parser",
    "--upgrade-deps",
}
"""Flags of vLLM, llama.cpp's server and venv that sentences name."""
ACCEPTED_STATUS = {"detox": {0, 1}}
"""1: not all criteria are met, which is a valid result."""


class Typed(NamedTuple):
    """A command as bash would start it, its standard input, and the token that stands for its output."""

    words: list[str]
    stdin: str
    token: str


RECORDER = r"""
record() {
  token="printed by $BASHPID.$RANDOM"
  { printf '%s\x1f' "$@"; printf '\x1d'; if [ "$2" = - ]; then copy; fi; printf '\x1d%s\x1e' "$token"; } >>"$TAPE"
  printf '%s' "$token"
}
copy() { local line; while IFS= read -r line; do printf '%s\n' "$line"; done; }
command_not_found_handle() { record "$@"; }
PATH=/nowhere
set -f
"""
"""If a page redirects the output of a command to a file, the file contains the token until the command has been run."""


def blocks(text: str, *languages: str) -> list[str]:
    fenced = re.findall(r"^( *)```(\w+)\n(.*?)^\1```", text, re.S | re.M)
    return [re.sub(rf"^{indent}", "", body, flags=re.M) for indent, language, body in fenced if language in languages]


def typed(block: str, place: Path) -> list[Typed]:
    """The commands of a block, in the order in which bash comes to them."""
    tape = place / "tape"
    tape.unlink(missing_ok=True)
    plain = re.sub(r"(?:\.venv/bin/|build/bin/)", "", block)
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is needed to read the blocks")
    done = subprocess.run(
        [bash, "-c", RECORDER + plain], cwd=place, env={"TAPE": str(tape)}, capture_output=True, text=True, check=False
    )
    assert done.stderr == "", f"bash cannot read\n{block}\n{done.stderr}"
    records = tape.read_text().split("\x1e")[:-1] if tape.exists() else []
    parts = (record.split("\x1d") for record in records)
    return [Typed(words.split("\x1f")[:-1], stdin, token) for words, stdin, token in parts]


def redirect_output(printed: str, token: str, place: Path) -> None:
    """Write the output of a command to the file that a page redirects it to."""
    for path in place.iterdir():
        if path.is_file() and path.stat().st_size == len(token) and path.read_text("utf-8") == token:
            path.write_text(printed, "utf-8")


def has(words: list[str], required: tuple[str, ...]) -> bool:
    return all(word in words for word in required)


def runs(word: str, place: Path, shelf: Path) -> list[str]:
    """The run files that a page names: those that the block has made, or one of the same study from the shelf."""
    existing = sorted(place.glob(word)) if not Path(word).is_absolute() else []
    if existing:
        return list(map(str, existing))
    stem = Path(word).stem
    study = next((name for name in ("bbq", "rldf", "stardtox", "squad") if stem.startswith(name)), "malibu")
    copy = place / f"{'malibu-b' if stem == 'b' else study}.sqlite"
    shutil.copy(shelf / copy.name, copy)
    return [copy.name]


def ready(words: list[str], place: Path, shelf: Path) -> list[str]:
    """A command with small numbers, simulated models and existing files."""
    given: list[str] = []
    previous = ""
    for word in words:
        word = MODEL.sub(SIMULATED, word)
        for old, new in NOT_SIMULATED.items():
            word = word.replace(old, new)
        if word == "…":
            given += [PLACEHOLDERS[previous]] if previous in PLACEHOLDERS else []
        elif word.endswith(".sqlite") and previous not in ("--out", "--to"):
            given += runs(word, place, shelf)
        else:
            given.append(SMALLER.get(previous, word))
        previous = word
    for required, more in ADDED.items():
        if has(given, required) and more[0] not in given:
            given += more
    if given == ["show"]:  # reads the newest run of the folder runs/
        (place / "runs").mkdir()
        shutil.copy(shelf / "malibu.sqlite", place / "runs")
    if given[0] in ("run", "detox") and "--model" not in given and "--config" not in given:
        given += ["--model", DEFAULT]
    return given


def check_other_program(command: Typed) -> None:
    """Check a command of another program: its name is known, and if it runs one of our modules, its flags exist."""
    program, *words = command.words
    if program == "accelerate":
        parse(words[words.index("parley") + 1 :])
        return None
    if program in ("python3", "python") and words[:1] == ["-m"]:
        if words[1] in ("venv", "pytest", "pip"):
            return None
        spec = importlib.util.find_spec(words[1])
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{words[1]}.__main__")
        assert spec is not None, f"there is no module {words[1]}"
        assert spec.origin, f"{words[1]} cannot be run"
        source = Path(spec.origin).read_text("utf-8")
        missing = [word for word in words[2:] if word.startswith("--") and f'"{word}"' not in source]
        assert missing == [], f"{words[1]} has no {missing}"
        return None
    assert program in OUTSIDE, f"unknown program: {' '.join(command.words)}"
    return None


def is_read_later(words: list[str], later: list[Typed]) -> bool:
    """Whether another command of the block may read what this one writes."""
    ends_here = {"--report", "--dry-run"} & set(words)
    written = {"--out", "--to", "--json"} & set(words)  # --json: a page may redirect it to a file
    leaves = bool(written) or (words[0] == "run" and not ends_here)
    return leaves and any(command.words[1:2] != ["run"] for command in later)


DONE: set[tuple[str, ...]] = set()
"""Commands that were run already: the same command on the same files runs once, whatever the model's name."""


def test_the_commands_of_a_page_run(
    page: Path, root: Path, desk: Callable[[], Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    text = page.read_text("utf-8")
    protocols = re.findall(r"^\| .* \| `(parley [^`]+)` \|", text, re.M) if page.name == "papers.md" else []
    for block in [*blocks(text, "sh", "bash"), *protocols]:
        folder = desk()
        commands = typed(block, folder.place)
        for place, command in enumerate(commands, 1):
            if command.words[0] != "parley":
                if command.words[1:] == ["-"]:
                    exec(compile(command.stdin, page.name, "exec"), {})
                else:
                    check_other_program(command)
                continue
            description = f"{page.name}: {shlex.join(command.words)}"
            parts = [*command.words, *" ".join(command.words).replace("=", " ").split()]
            if any(has(parts, required) for required in ONLY_PARSED):
                parse(command.words[1:])
                continue
            words = ready(command.words[1:], folder.place, folder.runs)
            same = tuple(sorted(re.sub(r"sim/[^?,]+\?base", "sim?base", word) for word in words))
            if same in DONE and not is_read_later(words, commands[place:]):
                continue
            DONE.add(same)
            try:
                status = main(words)
            except SystemExit as end:
                status = int(end.code or 0)
            output = capsys.readouterr()
            redirect_output(output.out, command.token, folder.place)
            accepted = ACCEPTED_STATUS.get(words[0], {0})
            assert status in accepted, f"{description}\nran as {shlex.join(words)}\n{output.err}"


def spans(text: str) -> Iterator[str]:
    """Commands inside sentences."""
    prose = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.S | re.M)
    for span in re.findall(r"`(parley [^`]+)`", prose):
        if "|" not in span and " --" in span:
            yield " ".join(span.split())


def test_the_commands_inside_sentences_have_flags_that_exist(page: Path) -> None:
    for span in spans(page.read_text("utf-8")):
        words = shlex.split(span)[1:]
        plain = [word for word in words if word != "…"]
        if plain[:1] == ["run"] and plain[1] not in known_studies():  # a reader's own study has its own flags
            continue
        assert any(map(has_flags, (words, plain, [*plain, "…"]))), span


def has_flags(words: list[str]) -> bool:
    """Whether a command can be parsed; … may stand for a value or for more flags, or be left out at the end."""
    try:
        parse(words)
    except ConfigError:
        return False
    except SystemExit as end:
        return end.code == 0  # --help
    return True


@cache
def every_flag() -> set[str]:
    """All flags of all commands and studies, and of our own modules that are run with `python -m`."""
    known: set[str] = set()

    def walk(parser: Any) -> None:
        for action in parser._actions:
            known.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    walk(inner)

    real = argparse.ArgumentParser.parse_known_args
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            argparse.ArgumentParser, "parse_known_args", lambda self, *a, **k: (walk(self), real(self, *a, **k))[1]
        )
        for words in every_command():
            with redirect_stdout(io.StringIO()), suppress(SystemExit):
                parse([*words, "--help"])
        for study in known_studies():
            parser_of(study, everything=True).parse_known_args([study])
    root = Path(__file__).parents[2]
    for path in [*root.glob("benchmarks/**/*.py"), *root.glob("docs/*.py")]:
        known.update(re.findall(r'"(--[a-z-]+)"', path.read_text("utf-8")))
    return known


def test_a_flag_that_a_sentence_names_exists(page: Path) -> None:
    prose = re.sub(r"^( *)```.*?^\1```", "", page.read_text("utf-8"), flags=re.S | re.M)
    named = set()
    for span in re.findall(r"`([^`]+)`", prose):
        flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", span))
        if span.startswith("python -m ") and flags:
            check_other_program(Typed(shlex.split(span), "", ""))
        else:
            named |= flags
    assert named - every_flag() - FOREIGN == set()


def test_a_flag_that_does_not_exist_is_caught(tmp_path: Path) -> None:
    """The tests above can fail."""
    (command,) = typed("x=3\nparley run malibu --temparature $x >out", tmp_path)
    redirect_output("as printed", command.token, tmp_path)
    assert (tmp_path / "out").read_text() == "as printed"
    assert command.words == ["parley", "run", "malibu", "--temparature", "3"]
    with pytest.raises((SystemExit, ConfigError)):
        parse(command.words[1:])
