"""`python -m tests.mutants` on a small project: what it puts in, which tests it runs, and who survives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="the tool forks, which Windows cannot")

from tests.mutants.__main__ import closest, table
from tests.mutants.bench import Bench
from tests.mutants.faults import KINDS, choose, faults_of

RULES = """
from functools import lru_cache

LIMIT = 65

def old(age):
    return age >= LIMIT

def greeting(name):
    return "Hello, " + name

@lru_cache
def names():
    return ("Ann", "Bob")

def share(part, whole):
    return part / whole

def unused(name):
    raise ValueError(name)

def farewell(name):
    return "Goodbye, " + name
"""
TESTS = """
import subprocess, sys
from ages.rules import greeting, names, old

NAMES = names()

def test_old():
    assert old(65) and not old(64)
    assert NAMES[0] == "Ann"

def test_greeting():
    greeting("Ann")

def test_share_in_a_process_of_its_own():
    code = "from ages.rules import share; assert share(1, 2) == 0.5"
    assert subprocess.run([sys.executable, "-c", code], env={}).returncode == 0

def test_that_fails_anyway():
    assert old(0)
"""
GOLDEN = "from ages.rules import farewell\ndef test_case():\n    assert farewell('Ann') == 'Goodbye, Ann'\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"ages/rules.py": RULES, "tests/ages/test_rules.py": TESTS, ".gitignore": "build/\n"}
    for name, text in (files | {"tests/golden/cases.toml": "", "tests/test_golden.py": GOLDEN}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


COMMAND = """
from pathlib import Path
from tests.mutants import __main__ as command, bench
command.ROOT, bench.LARGE = Path.cwd(), ()
assert command.main(["ages", "--count", "100", "--most", "10", "--table", "MUTANTS.md"]) == 1, "some survive"
bench.Bench._trace = None  # what was traced is not traced again
assert command.main(["ages", "--count", "1", "--seed", "2"]) == 0
Path("ages/rules.py").write_text(Path("ages/rules.py").read_text() + "# changed\\n")
try:
    command.main(["ages", "--count", "1"])
except TypeError:
    print("a changed module is traced again")
"""


def test_what_the_tests_find_and_what_they_do_not(project: Path) -> None:
    """In a process of its own, which forks faster than one that has loaded what other tests need."""
    root = Path(__file__).parents[1]
    (project / "MUTANTS.md").write_text(table({"names": [], "ages": []}, seed=7))
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], cwd=project, env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = re.findall(r"^ +\d+ s  (.*?) +ages/rules.py:\d+ ?(\w*): .*`(.*)`(?: \(by .*::(.*)\))?$", done.stdout, re.M)
    assert {(function, change): (outcome, test) for outcome, function, change, test in found[:-1]} == {
        ("", "65 → 66"): ("killed", "test_old"),
        ("old", "age >= LIMIT → age > LIMIT"): ("killed", "test_old"),
        ("old", "return age >= LIMIT → return None"): ("killed", "test_old"),
        ("greeting", 'return "Hello, " + name → return None'): ("survived", ""),
        ("names", 'return ("Ann", "Bob") → return None'): ("killed", "test_old"),
        ("share", "return part / whole → return None"): ("killed", "test_share_in_a_process_of_its_own"),
        ("unused", "raise ValueError(name) → pass"): ("not reached", ""),
        ("farewell", 'return "Goodbye, " + name → return None'): ("killed by golden", "test_case"),
    }
    assert done.stdout.endswith("a changed module is traced again\n")
    page = (project / "MUTANTS.md").read_text()
    assert re.findall(r"\| (names|ages) \| .*? \| (\d.*) \|", page) == [
        ("names", "7 | 0 | 0 | 0 | 0 | 0 | 0"),
        ("ages", "1 | 8 | 5 | 1 | 1 | 1 | 0"),
    ]
    assert "\n## names\n\nNone survived.\n\n## ages\n\n- " in page
    assert "- survived: ages/rules.py:10 greeting: dropped line: " in page


def test_the_closest_tests_are_named_after_the_module_or_the_smallest_that_import_it(project: Path) -> None:
    folder = project / "tests" / "ages"
    for name, text in (("long", "import parley.ages.rules\n" * 9), ("short", "import parley.ages.rules"), ("far", "")):
        (folder / f"test_{name}.py").write_text(text)
    files = [f"tests/ages/test_{name}.py" for name in ("far", "long", "rules", "short")]
    chosen = [closest(project, files, ["ages/rules.py"], count) for count in (1, 2)]
    assert [[Path(file).stem for file in names] for names in chosen] == [["test_rules"], ["test_rules", "test_short"]]


def test_tests_that_do_not_end_are_stopped(project: Path) -> None:
    began = time.monotonic()
    assert Bench(project)._fork(lambda: time.sleep(60) or "", 0.5) is None
    assert time.monotonic() - began < 30


def test_every_kind_of_fault_is_small_and_can_be_chosen_again() -> None:
    source = (
        "def f(a, b, *, c=None):\n"
        "    if not a or a is b:\n"
        "        a.x = max(a, b) + g(a, b, key=2.5)\n"
        "    return f'{a < 3}'\n"
    )
    found = [("f.py", fault) for fault in faults_of(source)]
    assert {(fault.kind, fault.change) for _, fault in found} == {
        ("logic", "not a or a is b → not a and a is b"),
        ("logic", "not a → a"),
        ("comparison", "a is b → a is not b"),
        ("dropped line", "a.x = max(a, b) + g(a, b, key=2.5) → pass"),
        ("swapped arguments", "g(a, b, key=2.5) → g(b, a, key=2.5)"),
        ("dropped argument", "g(…) without key=2.5"),
        ("constant", "2.5 → 5.0"),
        ("dropped line", "return f'{a < 3}' → return None"),
    }
    assert {fault.kind for _, fault in choose(found, len(KINDS), seed=3)} == set(KINDS)
    assert choose(found, 4, seed=3) == choose(found, 4, seed=3)
