"""Wrong words and wrong files: every command, every kind of file, every kind of damage. One line says it, and nothing
is written."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import seeds
from tests.fuzz.strategies import as_jsonl
from tests.panels import TINY_PANEL

Parley = Callable[..., Any]
SIM = (*TINY_PANEL, "--model", "sim/judge")
COMMANDS = [
    line.split(" → ")
    for line in Path(__file__).with_name("bad_commands.txt").read_text("utf-8").splitlines()
    if " → " in line
]


def one_line(result: Any, status: int, *words: str) -> None:
    """Check that stderr has exactly one line, with these words in it, and the exit status."""
    assert result.status == status, result
    assert result.out == ""
    assert result.err.count("\n") == 1, result.err
    assert result.err.startswith("parley: ")
    for word in words:
        assert word in result.err, result.err


NOTES = ("Caution: ", "downloading ", "line ")
"""How lines begin that may stand before the one line of the error."""


def one_error(result: Any, status: int, *words: str) -> None:
    """The same, though cautions or problems by line may stand before it."""
    lines = [line for line in result.err.splitlines(keepends=True) if not line.startswith(NOTES)]
    one_line(replace(result, err="".join(lines)), status, *words)


def typed(command: str) -> list[str]:
    panel, sim = shlex.join(TINY_PANEL), shlex.join(SIM)
    return shlex.split(command.replace("{panel}", panel).replace("{sim}", sim))


@pytest.mark.parametrize(("command", "words"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_wrong_command_is_one_line_and_writes_nothing(parley, prepared, monkeypatch, command, words):
    monkeypatch.chdir(prepared)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    before = sorted(prepared.glob("[!_]*"))
    one_error(parley(*typed(command)), 2, *words.split(" … "))
    assert sorted(prepared.glob("[!_]*")) == before


# Files: a kind is named by the file, with the command that reads it

KINDS = {
    "c.toml": "{sim} --config",
    "c.yaml": "{sim} --config",
    "judges.toml": "{sim} --judges",
    "rubric.toml": "{sim} --rubric",
    "identities.toml": "{sim} --identities",
    "suite.toml": "{sim} --suite",
    "wordings.toml": "{sim} --design silent --wordings",
    "bias.toml": "run rldf --model sim/debate --bias",
    "team.toml": "detox x --model sim/m --team",
    "topics.txt": "run framing --model sim/judge --topics-from",
    "rubric.jsonl": "run rubric --model sim/judge --data",
    "rows.jsonl": "run bbq --model sim/judge --data",
    "squad.json": "run squad --model sim/judge --data",
    "rtp.jsonl": "run stardtox --model sim/m --sets moderate --data",
    "a.sqlite": "show",
    "b.sqlite": "report",
}
NESTED = "[" * 100_000
ANY_DAMAGE: dict[str, Callable[[str], bytes | None]] = {
    "missing": lambda kind: None,
    "not text": lambda kind: b"\xff\xfe\x00",
    "nothing": lambda kind: b"",
    "nested too deeply": lambda kind: f"a = {NESTED}".encode() if kind.endswith("toml") else NESTED.encode(),
    "too many digits": lambda kind: (b"a = " if kind.endswith("toml") else b'{"a": ') + b"9" * 5000,
}

HARMLESS = {"c.toml": ["nothing"]}
"""A config may be empty."""


def read(parley: Parley, prepared: Path, kind: str) -> Any:
    """Run the command that reads this kind of file."""
    command = typed(KINDS[kind].replace("{prepared}", str(prepared)))
    return parley(*command, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_any_file_may_be_damaged_in_any_way(parley, prepared, place, kind):
    for name, damage in ANY_DAMAGE.items():
        content = damage(kind)
        if name in HARMLESS.get(kind, ()):
            continue
        if content is not None:
            (place / kind).write_bytes(content)
        result = read(parley, prepared, kind)
        assert result.status in (1, 2), (name, result)
        one_error(replace(result, err=result.err.splitlines(True)[-1]), result.status, kind)
        assert all(kind in line for line in result.complaints)
        assert not list(place.glob("**/runs/*")), "nothing was started"


ROW = seeds.BBQ[0]
DAMAGE: list[tuple[str, str | bytes, str]] = [
    ("c.toml", "round = 3", "c.toml: unknown key 'round'; did you mean 'rounds'?"),
    ("c.yaml", "budget-call: 3", "c.yaml: unknown key 'budget_call'; did you mean 'budget_calls'?"),
    ("c.toml", "to = 'x.toml'", "c.toml: unknown key 'to'"),
    ("c.toml", "report = 3", "report must be a valid boolean, got 3"),
    ("c.toml", "zzz = 3", "c.toml: unknown key 'zzz' (known: suite, "),
    ("c.yaml", "7: 3", "c.yaml: unknown key '7'"),
    ("c.toml", 'rounds = "two"', "rounds must be a whole number, got 'two'"),
    ("c.toml", "rounds = 2.5", "rounds must be a whole number, got"),
    ("c.yaml", "identities: 3", "identities must be a valid list, got 3"),
    ("c.yaml", "cache: perhaps", "cache must be a valid boolean, got 'perhaps'"),
    ("c.toml", "rounds = \n", "line 1"),
    ("c.yaml", "rounds: [1, 2", "c.yaml, line 1, column 14: expected ',' or ']'"),
    ("c.yaml", "just words", "c.yaml: expected a table of keys and values"),
    ("c.yaml", "a: 2001-99-99", "c.yaml"),
    ("c.yaml", "a: 0b_", "c.yaml"),
    ("c.yaml", seeds.MERGE, "aliases"),
    ("c.toml", f'rounds = "{"x" * 1_000_000}"', "rounds must be a whole number"),
    ("judges.toml", "[[persona]]\nname = 'Two words'\nabout = 'x'\n", "'Two words'"),
    ("judges.toml", "[[persona]]\nname = 'Ada'\n", "about"),
    ("judges.toml", "[[judge]]\nname = 'Ada'\nabout = 'x'\n", "judges.toml: it has no [[persona]] table"),
    ("judges.toml", "persona = []", "judges.toml"),
    ("judges.toml", "[[persona]\n", "line 1"),
    ("rubric.toml", 'model = "sim/x"\n[[metric]]\nname = "A"\nquestions = ["b?"]\n', "unknown key model"),
    ("topics.txt", "word " * 1000, "topics.txt"),
    ("topics.txt", "?\n?\n", "topics.txt"),
    ("rows.jsonl", as_jsonl([{**ROW, "category": ["Age"]}]), "rows.jsonl, line 1"),
    ("rows.jsonl", as_jsonl([{**ROW, "label": float("inf")}]), "rows.jsonl, line 1"),
    ("rows.jsonl", "{}\n", "rows.jsonl, line 1:"),
    ("squad.json", json.dumps(seeds.SQUAD).replace("When?", "\\ud800"), "squad.json"),
    ("a.sqlite", "Dear diary, today I ran a study.\n" * 50, "a.sqlite is not a Parley run file"),
    ("b.sqlite", "Dear diary", "b.sqlite is not a Parley run file"),
]


@pytest.mark.parametrize(("kind", "content", "words"), DAMAGE, ids=[f"{row[0]}: {row[2]}"[:60] for row in DAMAGE])
def test_a_wrong_file_is_explained(parley, prepared, place, kind, content, words):
    (place / kind).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    result = read(parley, prepared, kind)
    one_error(result, 1 if kind.endswith("sqlite") else 2, words)
    assert len(result.err) < 2100, "a long value is shortened"


LONG_KEYS = (
    "a." * 20_000 + "a = 1",
    "\"a b\".'c' . " * 10_000 + "a = 1",
    "[" + "a." * 20_000 + "a]\n",
    "[[ " + "a." * 20_000 + "a]]\n",
    "x = {y = 1, " + "a." * 20_000 + "a = 1}",
)


def test_a_key_of_20_000_parts_is_rejected_before_it_is_parsed(parley, prepared, place, monkeypatch):
    """tomllib takes seconds for one, four times as many for one that is twice as long."""
    parse = __import__("tomllib").loads
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("it is parsed") if len(text) > 3e4 else parse(text))
    for key in LONG_KEYS:
        for kind in ("c.toml", "judges.toml", "suite.toml"):
            (place / kind).write_text(key)
            one_line(read(parley, prepared, kind), 2, kind, "nested too deeply for a ")


def test_a_byte_order_mark_is_read_wherever_people_bring_files(parley, prepared, place):
    """Windows' editors write one; SQuAD's file was accepted with it, BBQ's was not."""
    for name in ("bbq/Age.jsonl", *(path.name for path in prepared.iterdir() if path.suffix in MARKED)):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("\ufeff" + (prepared / name).read_text("utf-8"), "utf-8")
    for line in READS_MARKED.splitlines():
        result = parley(*line.split())
        assert result.status == 0, (line, result.err)
    assert parley("scenarios", "list", "topics.txt", "--json").json["topics"][0].startswith("Should")


MARKED = (".jsonl", ".json", ".toml", ".yaml", ".txt")
READS_MARKED = """\
run bbq --data bbq --model sim/judge --quiet
run squad --data squad.json --model sim/judge --quiet
run rubric --data texts.jsonl --model sim/judge --quiet
run stardtox --data rtp.jsonl --sets moderate --prompts 1 --completions 1 --model sim/judge --quiet
run framing --topics-from topics.txt --topics 2 --model sim/judge --quiet
run malibu --config config.toml --dry-run
run malibu --config config.yaml --dry-run
scenarios list suite.toml"""


NO_BASE = """
from pydantic import BaseModel
class Config(BaseModel): pass
class Mine:
    name = "mine"
    Config = Config
    def plan(self): return iter(())
    async def run(self, unit, models): ...
"""
NO_UNITS = (
    "from parley.judging.malibu.study import Malibu\n\n\nclass Mine(Malibu):\n    name = 'mine'\n\n"
    "    def plan(self):\n        return iter(())\n"
)


def test_a_pipe_or_device_is_not_read_to_its_end(parley, place):
    for name in ("config.toml", "config"):
        os.mkfifo(place / name)
    os.symlink("/dev/zero", place / "texts.jsonl")
    for words in (
        *(("malibu", "--config", name) for name in ("config.toml", "config", "/dev/zero")),
        *(("malibu", "--suite", "config.toml"), ("rubric", "--data", "texts.jsonl")),
    ):
        one_line(parley("run", *words, "--model", "sim/judge"), 2, f"{words[-1]}: not a regular file")


def test_a_study_that_lacks_something_is_told_what(parley, place):
    (place / "mine.py").write_text(NO_BASE)
    said = "mine.py:Mine is not a study: write class Mine(Study), with from parley.judging import Study"
    one_line(parley("run", "mine.py:Mine", "--quiet"), 2, said)
    (place / "half.py").write_text("from parley.judging import Study\nclass Half(Study):\n    name = 'half'\n")
    one_line(parley("run", "half.py:Half"), 2, "half.py:Half is not a study: Half lacks Config, plan, run (see judging")
    (place / "empty.py").write_text(NO_UNITS)
    empty = parley("run", "empty.py:Mine", "--model", "sim/judge", "--suite", "tiny", "--out", "x.sqlite")
    one_line(empty, 2, "there is nothing to run", "mine has no units")
    (place / "def.py").write_text("def")
    one_line(parley("run", "def.py:Mine"), 2, "def.py cannot be loaded", "invalid syntax")
    assert not list(place.glob("*.sqlite"))


def test_a_file_with_several_problems_gets_a_line_for_each(parley, place):
    (place / "mine.toml").write_text(
        '[[base]]\nid = "Bus Driver"\ntext = "Driving."\nstereotype = "Drivers are men."\n'
        '[[scenario]]\nid = "bus"\nbase = "tram"\nresponses = ["I stop.", "I wait.", "I go."]\ntxt = "You drive."\n'
    )
    found = parley("run", "malibu", "--suite", "mine.toml", "--model", "sim/judge")
    assert found.status == 2
    for complaint, words in zip(found.complaints, PROBLEMS, strict=True):
        assert complaint.startswith(f"parley: mine.toml{words}")
    (place / "c.toml").write_text('suit = "tiny"\nmodle = "sim/judge"\n')
    keys = parley("run", "malibu", "--config", "c.toml")
    assert keys.complaints == [
        "parley: c.toml: unknown key 'suit'; did you mean 'suite'?",
        "parley: c.toml: unknown key 'modle'; did you mean 'model'?",
    ]
    (place / "c.toml").write_text("rounds = 0\nper_base = 0\n")
    values = parley("run", "malibu", "--model", "sim/judge", "--config", "c.toml")
    assert [line.partition(" must")[0] for line in values.complaints] == ["parley: per_base", "parley: rounds"]


PROBLEMS = (
    " lacks schema = 1, name and version",
    ": line 2: base 'Bus Driver' id: expected lower-case letters, digits and hyphens, not 'Bus Driver'",
    ": line 5: scenario 'bus' lacks text",
    ": line 8: scenario 'bus' responses: expected one or two texts, or none yet",
    ": line 9: scenario 'bus' has an unknown key txt; did you mean 'text'?",
)


def test_what_people_type_may_be_long_or_no_text(parley, prepared, place, monkeypatch):
    one_line(parley("show", "x" * 5000), 2, "xxx")
    long = parley("run", "malibu", "--suite", "x" * 100_000, "--model", "sim/judge")
    one_line(long, 2, "unknown suite 'xxx")
    assert len(long.err) < 2100
    one_line(parley("models", "list", "a", "b\nc\x1b[2J"), 2, "unknown arguments: b c\\x1b[2J (")
    import io

    from parley.cli import main

    Path("\udcff.sqlite").write_bytes((prepared / "mine.sqlite").read_bytes())
    stdout = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr("sys.stdout", stdout)  # a file's name that is not UTF-8, printed to a stream that is
    assert main(["report", "\udcff.sqlite", "--no-files", "--draws", "20"]) == 0
    stdout.flush()
    assert b"parley show '\\udcff.sqlite'" in stdout.buffer.getvalue()  # type: ignore[attr-defined]
