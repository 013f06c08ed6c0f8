"""Wrong arguments, broken files and full disks give one line, and nothing is lost."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.panels import TINY_PANEL

RUN = TINY_PANEL
SIM = (*RUN, "--model", "sim/judge")
KEY = "sk-a-secret-that-must-not-show"


def one_line(result: Any, status: int, *words: str) -> None:
    """Check that stderr has exactly one line, with these words in it, and the exit status."""
    assert result.status == status, result
    assert result.out == ""
    assert result.err.count("\n") == 1, result.err
    assert result.err.startswith("parley: ")
    for word in words:
        assert word in result.err, result.err


# Arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "maliboo"), ("unknown study 'maliboo'", "malibu")),
        (("run", "nothere.py:Panel"), ("there is no file nothere.py",)),
        (("run", "no_such_module:Panel"), ("no module 'no_such_module'",)),
        (("run", "json:Panel"), ("json:Panel is not a study", "does not exist")),
        ((*RUN, "--model", "nobody/gpt"), ("unknown provider 'nobody'", "openai", "sim")),
        ((*RUN, "--model", "gpt-4o"), ("'gpt-4o' is not a model name", "provider/model")),
        ((*RUN, "--model", "server/x"), ("needs an address", "base_url")),
        ((*RUN, "--model", "server/x?base_url=localhost:8000"), ("must begin with http://",)),
        ((*RUN, "--model", "server/x?base_url=http://h/v1&tempreature=1"), ("unknown option 'tempreature'",)),
        ((*RUN, "--model", "sim/judge?noise"), ("option 'noise' has no value",)),
        ((*RUN, "--model", "sim/judge?noise=-1"), ("option 'noise'", "greater than or equal to 0")),
        ((*RUN, "--model", "openai/gpt-4o-mini"), ("openai/gpt-4o-mini needs a key", "set OPENAI_API_KEY")),
        ((*SIM, "--suite", "quickest"), ("unknown suite 'quickest' (known: quick, ", "or a .toml file")),
        ((*SIM, "--suite", "mine.toml"), ("mine.toml: No such file",)),
        ((*SIM, "--scenarios", "plumbing"), ("unknown scenario or base 'plumbing'", "parley scenarios list")),
        ((*SIM, "--per-base", "0"), ("per_base must be at least 1, got '0'",)),
        ((*SIM, "--identities", "female,purple"), ("unknown identity 'purple'", "religion")),
        ((*SIM, "--identities", "race+purple"), ("unknown identity 'purple'", "race+gender")),
        ((*SIM, "--identities", "mine.toml"), ("mine.toml: No such file",)),
        ((*SIM, "--rubric", "five"), ("unknown rubric 'five'", "four, three, bs, ce, ls, or a path to a .toml file")),
        ((*SIM, "--judges", "kind"), ("unknown panel 'kind'", "temperaments, demographic")),
        ((*RUN, "--model", "sim/judge,sim/judge"), ("--model: 'sim/judge' is given twice",)),
        ((*RUN, "--model", "sim/judge,gpt-4o"), ("'gpt-4o' is not a model name",)),
        ((*SIM, "--metrics", "Charm"), ("unknown metric 'Charm'", "Creativity")),
        ((*SIM, "--phases", "3"), ("phases must be 1 or 2, got 3",)),
        ((*SIM, "--rounds", "two"), ("rounds must be a whole number, got 'two'",)),
        ((*SIM, "--concurrency", "0"), ("concurrency must be at least",)),
        ((*SIM, "--readout", "expected"), ("needs log-probabilities", "sim/judge gives none")),
        ((*SIM, "--judges", "mine.toml"), ("mine.toml: No such file",)),
        (("models", "fetch", "gpt-5"), ("no model 'gpt-5' can be downloaded", "smollm2")),
        (("models", "fetch"), ("name the model to download",)),
    ],
)
def test_a_wrong_argument_is_named(
    parley: Callable[..., Any], place: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    one_line(parley(*arguments), 2, *words)

    assert list(place.glob("**/*.sqlite*")) == [], "nothing was started"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("c.toml", "round = 3", ("c.toml: unknown key 'round'; did you mean 'rounds'?",)),
        ("c.yaml", "budget-calls: 3", ("c.yaml: unknown key 'budget-calls'; did you mean 'budget_calls'?",)),
        ("c.toml", "zzz = 3", ("c.toml: unknown key 'zzz' (known: suite, ",)),
        ("c.yaml", "7: 3", ("c.yaml: unknown key '7'",)),
        ("c.toml", 'rounds = "two"', ("rounds must be a whole number, got 'two'",)),
        ("c.toml", "rounds = 2.5", ("rounds must be a whole number, got", "2.5")),
        ("c.yaml", "identities: female", ("identities must be a valid list, got 'female'",)),
        ("c.yaml", "cache: perhaps", ("cache must be a valid boolean, got 'perhaps'",)),
        ("c.toml", "rounds = \n", ("c.toml: ", "line 1")),
        ("c.yaml", "rounds: [1, 2", ("c.yaml, line 1, column 14: expected ',' or ']'",)),
        ("c.yaml", "just words", ("c.yaml: expected a table of keys and values",)),
        ("c.yaml", "", ("c.yaml: expected a table of keys and values",)),
    ],
)
def test_a_wrong_config_file_is_explained(
    parley: Callable[..., Any], place: Path, name: str, text: str, words: tuple[str, ...]
) -> None:
    (place / name).write_text(text)

    one_line(parley(*SIM, "--config", name), 2, *words)

    assert list(place.glob("**/*.sqlite")) == []


def test_a_config_file_that_is_not_text(parley: Callable[..., Any], place: Path) -> None:
    (place / "c.toml").write_bytes(b"rounds = \xff\xfe")
    one_line(parley(*SIM, "--config", "c.toml"), 2, "c.toml: ")


def test_a_missing_config_file(parley: Callable[..., Any]) -> None:
    one_line(parley(*SIM, "--config", "nothere.toml"), 2, "nothere.toml: No such file or directory")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[[persona]]\nname = 'Two words'\nabout = 'x'\n", ("'Two words'",)),
        (b"[[persona]]\nname = 'Ada'\n", ("judges.toml", "about")),
        (b"[[judge]]\nname = 'Ada'\nabout = 'x'\n", ("judges.toml: it has no [[persona]] table",)),
        (b"[[persona]\n", ("judges.toml", "line 1")),
        (b"[[persona]]\nname = 'Ada'\nabout = '\xff'\n", ("judges.toml",)),
    ],
)
def test_a_wrong_file_of_judges(parley: Callable[..., Any], place: Path, text: bytes, words: tuple[str, ...]) -> None:
    (place / "judges.toml").write_bytes(text)
    one_line(parley(*SIM, "--judges", "judges.toml"), 2, *words)


NO_SOURCES = """
from pydantic import BaseModel
class Config(BaseModel): pass
class Mine:
    name = "mine"
    Config = Config
    def __init__(self, config): self.config = config
    def models(self): return ["sim/judge"]
    def plan(self): return iter(())
    async def run(self, unit, models): ...
"""


def test_an_incomplete_study_is_told_what_is_missing(parley: Callable[..., Any], place: Path) -> None:
    (place / "mine.py").write_text(NO_SOURCES)
    one_line(parley("run", "mine.py:Mine", "--quiet"), 2, "mine.py:Mine is not a study", "prompts", "sources")


# Run files


def text_file(path: Path) -> None:
    path.write_text("Dear diary, today I ran a study.\n" * 50)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
        db.commit()


READS = (("show",), ("report",))


@pytest.mark.parametrize("command", [*READS, ("run",)], ids=" ".join)
@pytest.mark.parametrize("make", [text_file, foreign_database, Path.touch])
def test_a_file_that_is_not_a_run_is_named_and_not_changed(
    parley: Callable[..., Any], place: Path, make: Callable[[Path], None], command: tuple[str, ...]
) -> None:
    if command == ("run",) and make is Path.touch:
        pytest.skip("a run may begin in an empty file")
    path = place / "a.sqlite"
    make(path)
    before = path.read_bytes()
    result = parley(*SIM, "--out", path) if command == ("run",) else parley(*command, path)
    one_line(result, 1, "a.sqlite is not a Parley run file")
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", [*READS, ("run",)], ids=" ".join)
def test_a_run_truncated_to_half_its_size(parley: Callable[..., Any], whole: Path, command: tuple[str, ...]) -> None:
    os.truncate(whole, whole.stat().st_size // 2)
    result = parley(*SIM, "--out", whole) if command == ("run",) else parley(*command, whole)
    one_line(result, 1, "whole.sqlite is damaged or truncated")


def test_a_run_truncated_anywhere_is_detected(parley: Callable[..., Any], place: Path, whole: Path) -> None:
    data = whole.read_bytes()
    for size in range(4096, len(data), 4096 * 3):
        for suffix in ("-wal", "-shm"):
            Path(f"cut.sqlite{suffix}").unlink(missing_ok=True)
        (place / "cut.sqlite").write_bytes(data[:size])
        one_line(parley("report", "cut.sqlite", "--no-files"), 1, "damaged or truncated")
        one_line(parley(*SIM, "--out", "cut.sqlite"), 1, "damaged or truncated")


def test_a_run_with_a_broken_page_gives_one_line(parley: Callable[..., Any], whole: Path) -> None:
    with closing(sqlite3.connect(whole)) as db:
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'units'").fetchone()[0]
    with whole.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    one_line(parley(*SIM, "--out", whole), 1, "whole.sqlite is damaged")


@pytest.mark.parametrize("command", [*READS, ("run",)], ids=" ".join)
@pytest.mark.parametrize(("version", "age"), [(2, "an older"), (7, "a newer")])
def test_a_run_of_another_format(
    parley: Callable[..., Any], whole: Path, command: tuple[str, ...], version: int, age: str
) -> None:
    with closing(sqlite3.connect(whole)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = whole.read_bytes()
    result = parley(*SIM, "--out", whole) if command == ("run",) else parley(*command, whole)
    one_line(result, 1, f"was written by {age} Parley (format {version}; this one reads format 3)")
    assert whole.read_bytes() == before


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_a_missing_run(parley: Callable[..., Any], place: Path, command: tuple[str, ...]) -> None:
    one_line(parley(*command, "nothere.sqlite"), 2, "there is no run file nothere.sqlite")
    assert not (place / "nothere.sqlite").exists()


def test_a_missing_unit(parley: Callable[..., Any], whole: Path) -> None:
    one_line(parley("show", whole, "p9/"), 2, "begins with 'p9/'", "--list")


# Plans that changed


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (("--rounds", "3"), "rounds: 2 in the file, 3 requested"),
        (("--seed", "1"), "seed: 0 in the file, 1 requested"),
        (("--suite", "full"), 'suite: "tiny" in the file, "full" requested'),
        (("--model", "sim/other"), 'model: ["sim/judge"] in the file, ["sim/judge", "sim/other"] requested'),
        (("--rubric", "three"), 'rubric: "four" in the file, "three" requested'),
    ],
)
def test_a_changed_plan_names_the_difference(
    parley: Callable[..., Any], whole: Path, run_file: Any, changed: tuple[str, str], difference: str
) -> None:
    before = run_file(whole).story()

    one_line(parley(*SIM, "--out", whole, *changed), 1, "contains a different run (", difference, "--out")

    assert run_file(whole).story() == before


def test_a_plan_that_changed_is_noticed_although_a_setting_is_gone(parley: Callable[..., Any], whole: Path) -> None:
    """Of a Parley that had another setting, left at its default, and planned other units."""
    with closing(sqlite3.connect(whole)) as db, db:
        config = json.loads(db.execute("SELECT value FROM run WHERE key = 'config'").fetchone()[0])
        db.execute("UPDATE run SET value = ? WHERE key = 'config'", [json.dumps({**config, "generator": None})])
        db.execute("UPDATE run SET value = '\"earlier\"' WHERE key = 'plan'")

    one_line(parley(*SIM, "--out", whole), 1, "the plan has changed (units: ")


def test_another_study_on_the_same_file(parley: Callable[..., Any], place: Path, whole: Path) -> None:
    (place / "own.py").write_text(
        "from parley.judging.malibu.study import Malibu\nclass Own(Malibu):\n    name = 'own'\n"
    )
    result = parley("run", "own.py:Own", *SIM[2:], "--out", whole)
    one_line(result, 1, "study: malibu in the file, own requested")


SUITE = """
schema = 1
name = "mine"
version = "1"
[[scenario]]
id = "bakery"
domain = "baking"
text = "{text}"
stereotype = "none"
responses = ["Knead.", "Wait."]
"""


def test_a_suite_that_was_edited_is_noticed(parley: Callable[..., Any], place: Path) -> None:
    command = (*SIM, "--suite", "mine.toml", "--identities", "gender", "--out", "a.sqlite")
    (place / "mine.toml").write_text(SUITE.format(text="Bake bread."))
    assert parley(*command).status == 0
    (place / "mine.toml").write_text(SUITE.format(text="Bake cake."))

    one_line(parley(*command), 1, "suite mine 1 has changed")


def test_a_scenario_whose_id_is_a_number_can_be_named(parley: Callable[..., Any], place: Path) -> None:
    (place / "mine.toml").write_text(SUITE.format(text="Bake bread.").replace('"bakery"', '"7"'))

    result = parley(*SIM, "--suite", "mine.toml", "--scenarios", "7", "--identities", "gender", "--out", "a.sqlite")

    assert result.status == 0, result.err


PANEL = [{"name": "Ada", "about": "You are Ada."}, {"name": "Ben", "about": "You are Ben."}]


def write_panel(path: Path, panel: list[dict[str, str]]) -> None:
    lines = (
        f"[[persona]]\n{''.join(f'{k} = {json.dumps(v)}{chr(10)}' for k, v in persona.items())}" for persona in panel
    )
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(
    "changed",
    [
        [{"name": "Ada", "about": "You are Ada, a critic."}, PANEL[1]],
        [*PANEL, {"name": "Cy", "about": "You are Cy."}],
        pytest.param(PANEL[:1]),
        pytest.param([PANEL[0], {**PANEL[1], "model": "sim/other?female=9"}]),
    ],
    ids=["reworded", "one more", "one fewer", "another model"],
)
def test_a_panel_that_was_edited_is_noticed(
    parley: Callable[..., Any], place: Path, changed: list[dict[str, str]]
) -> None:
    command = (*SIM, "--judges", "judges.toml", "--out", "a.sqlite")
    write_panel(place / "judges.toml", PANEL)
    assert parley(*command).status == 0
    write_panel(place / "judges.toml", changed)

    result = parley(*command)

    one_line(result, 1, "a.sqlite contains a different run")
