"""A command is a class: what an engineer writes, and what a user of it sees."""

from __future__ import annotations

import json
import sys

import pytest

from parley import cli

GREET = '''
from typing import ClassVar, Literal
from pydantic import Field
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional, Repeated

class Greet(Command):
    """Greet people by name."""

    needs: ClassVar = {"loudness": "shout"}
    alone: ClassVar = {"silent": ("shout",)}

    names: Positional[list[str]] = Field(description="whom to greet")
    words: Literal["hello", "welcome"] = Field("hello", description="what to say")
    also: Repeated[list[str]] = Field([], description="a remark; may be repeated")
    shout: bool = Field(False, description="in capitals")
    silent: bool = Field(False, description="say nothing")
    comma: bool = Field(True, description="leave out the comma")
    loudness: int = Field(1, ge=1, le=9, description="how loud")

    def answer(self) -> Answer:
        line = f"{self.words}{',' * self.comma} {' and '.join(self.names)}"
        said = [] if self.silent else [line.upper() if self.shout else line, *self.also]
        return Answer({"said": said, "loudness": self.loudness}, said, 0 if said else 1)
'''


@pytest.fixture
def greet(parley, place, monkeypatch):
    """All that a new command takes: a file with the class, and a line in the table."""
    (place / "greeting.py").write_text(GREET)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setitem(cli.COMMANDS, "greet", cli.Entry("greeting:Greet", "greet people by name"))
    yield lambda *words: parley("greet", *words)
    sys.modules.pop("greeting", None)


def test_fields_are_flags_and_the_docstring_is_the_help(greet):
    shown = " ".join(greet("--help").out.split())
    assert shown.startswith("usage: parley greet [-h]")
    assert "Greet people by name." in shown
    for part in ("NAMES", "--words {hello,welcome}", "(default: hello)", "--also", "--shout", "--no-comma", "--json"):
        assert part in shown, part
    assert "--no-shout" not in shown


def test_lines_for_people_json_for_programs_and_the_status(greet):
    told = greet("Ada", "Ben", "--also", "one, two", "--also", "three")
    assert (told.status, told.out) == (0, "hello, Ada and Ben\none, two\nthree\n")
    assert greet("Ada", "--no-comma", "--shout", "--loudness", "3", "--json").json == {
        "said": ["HELLO ADA"],
        "loudness": 3,
    }
    assert greet("Ada", "--silent").status == 1


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("", "the following arguments are required: NAMES (see `parley greet --help`)"),
        ("Ada --words helo", "--words must be 'hello' or 'welcome', got 'helo' (did you mean hello?)"),
        ("Ada --shout --loudness 10", "--loudness must be at most 9, got '10'"),
        ("Ada --shout --loudness loud", "--loudness must be a whole number, got 'loud'"),
        ("Ada --loudness 3", "--loudness needs --shout"),
        ("Ada --silent --shout", "leave out --shout: it has no effect with --silent"),
        ("Ada --shuot", "unknown arguments: --shuot (did you mean --shout? `parley greet --help` lists all flags)"),
    ],
)
def test_a_wrong_word_is_one_line_that_names_the_flag(greet, typed, line):
    told = greet(*typed.split())
    assert (told.status, told.out, told.err) == (2, "", f"parley: {line}\n")


def test_what_a_program_makes_is_checked_as_what_is_typed(greet):
    greet("Ada")
    Greet = sys.modules["greeting"].Greet
    assert json.loads(json.dumps(Greet(names=["Ada"]).answer().data)) == {"said": ["hello, Ada"], "loudness": 1}
    with pytest.raises(ValueError, match="--loudness needs --shout"):
        Greet(names=["Ada"], loudness=2)
