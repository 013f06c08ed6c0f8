"""`python -m tests.mutants` on a small project: what it puts in, which tests it runs, and who survives."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="the tool forks, which Windows cannot")

from tests.mutants.__main__ import Tried, closest, table, try_room
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
def bench(tmp_path: Path) -> Bench:
    files = {"ages/rules.py": RULES, "tests/ages/test_rules.py": TESTS, ".gitignore": "build/\n"}
    for name, text in (files | {"tests/golden/cases.toml": "", "tests/test_golden.py": GOLDEN}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return Bench(tmp_path)


def test_what_the_tests_find_and_what_they_do_not(bench: Bench) -> None:
    tried = list(try_room(bench, "ages", count=100, seed=1, most=10))
    outcomes = {(one.fault.function, one.fault.change): (one.outcome, one.test.rpartition("::")[2]) for one in tried}
    assert outcomes == {
        ("", "65 → 66"): ("killed", "test_old"),
        ("old", "age >= LIMIT → age > LIMIT"): ("killed", "test_old"),
        ("old", "return age >= LIMIT → return None"): ("killed", "test_old"),
        ("greeting", 'return "Hello, " + name → return None'): ("survived", ""),
        ("names", 'return ("Ann", "Bob") → return None'): ("killed", "test_old"),
        ("share", "return part / whole → return None"): ("killed", "test_share_in_a_process_of_its_own"),
        ("unused", "raise ValueError(name) → pass"): ("not reached", ""),
        ("farewell", 'return "Goodbye, " + name → return None'): ("killed by golden", "test_case"),
    }
    assert (bench.root / "ages" / "rules.py").read_text() == (bench.tree / "ages" / "rules.py").read_text() == RULES
    page = table({"ages": tried}, 1, before=table({"names": [], "ages": []}, seed=7))
    assert re.findall(r"\| (names|ages) \| .*? \| (\d.*) \|", page) == [
        ("names", "7 | 0 | 0 | 0 | 0 | 0 | 0"),
        ("ages", "1 | 8 | 5 | 1 | 1 | 1 | 0"),
    ]
    assert "\n## names\n\nNone survived.\n\n## ages\n\n- " in page
    assert "- survived: ages/rules.py:10 greeting: dropped line: " in page


def test_tests_are_traced_again_only_if_they_or_the_module_changed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached() -> list[str]:
        return sorted(bench.reach(["tests/ages/test_rules.py"], ["ages/rules.py"]))

    found = reached()
    assert "tests/ages/test_rules.py::test_old" in found
    assert "tests/ages/test_rules.py::test_that_fails_anyway" not in found
    with monkeypatch.context() as patched:
        patched.setattr(Bench, "_trace", None)
        assert reached() == found
    (bench.tree / "ages" / "rules.py").write_text(RULES + "# changed\n")
    monkeypatch.setattr(Bench, "_trace", lambda *_: [])
    assert reached() == []


def test_the_closest_tests_are_named_after_the_module_or_the_smallest_that_import_it(bench: Bench) -> None:
    folder = bench.tree / "tests" / "ages"
    for name, text in (("long", "import parley.ages.rules\n" * 9), ("short", "import parley.ages.rules"), ("far", "")):
        (folder / f"test_{name}.py").write_text(text)
    files = [f"tests/ages/test_{name}.py" for name in ("far", "long", "rules", "short")]
    chosen = [closest(bench.tree, files, ["ages/rules.py"], count) for count in (1, 2)]
    assert [[Path(file).stem for file in names] for names in chosen] == [["test_rules"], ["test_rules", "test_short"]]


def test_tests_that_do_not_end_are_stopped(bench: Bench) -> None:
    began = time.monotonic()
    assert bench._fork(lambda: time.sleep(60) or "", 0.5) is None
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


def test_a_survivor_is_named_by_file_line_function_and_change() -> None:
    (fault,) = faults_of("class A:\n    def f(self):\n        return 1 < self.x\n")[:1]
    assert str(Tried("a.py", fault, "survived")).startswith("a.py:3 A.f: dropped line: `return 1 < self.x → ")
