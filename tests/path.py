"""How far a result is from its beginning: `python -m tests.path [RUN] [--verdict] [--policy] [--list]`.

Three journeys are run under `sys.setprofile`, which sees what our functions take and return:

- RUN (default: the shipped example): `parley report RUN`, from the run file to the headline in the terminal, without
  the quotation and the next commands below it. Watched are one verdict's value (or, since whole numbers are
  everywhere, its unit), the means of the clusters, the estimate that the headline names, and its sentence.
- `--verdict`: `parley run malibu`, from the shell to a stored verdict. Watched are the model as it was typed, the
  scenario's name, and the verdict's value.
- `--policy`: `parley run rldf`, `export` and `train --dry-run`, from a debate to the pairs that the trainer takes (what
  follows needs torch). Watched is an exported statement.

A module must be opened if one of its functions takes or returns something that holds what is watched: who follows a
number has to know what that function does to it. Modules that are entered for something else are not counted.

A form is what holds the number between two functions: a class, a number, a text, an array, or a frame, told from other
frames by its first two columns. Several of a form in a list, a tuple or a dict are another form; frames are not, since
a tuple of them is a frame that was divided.

At ca76af76 this gives 32 modules and 23 forms for RUN (a reader had counted 33 and 23), 35 modules for a verdict (39),
and 36 up to a policy's pairs (43 up to the policy).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import parley
from parley.cli import main as command_line
from parley.reports.loading import load_run
from parley.reports.making import make_report
from parley.runs.example import example_runs

PRODUCT = str(Path(parley.__file__).parent) + os.sep
DEEPEST = 6
"""How deep an object is searched."""
MOST = 3_000
"""Members of a collection that are looked at."""
CALLS = 200
"""Calls of a function that are looked at until it is given what is watched."""


@dataclass(slots=True)
class Watch:
    """The functions that take or return one of these numbers or texts, and in which form."""

    numbers: Collection[float] = ()
    texts: Collection[str] = ()
    entered: set[tuple[str, str]] = field(default_factory=set)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    returned: dict[tuple[str, str], str] = field(default_factory=dict)
    looked: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    busy: bool = False

    @property
    def modules(self) -> list[str]:
        """The modules that must be opened, in the order in which the number reaches them."""
        return list(dict.fromkeys(file for file, _ in (*self.taken, *self.returned)))

    @property
    def forms(self) -> list[str]:
        """What holds the number between two functions."""
        return list(dict.fromkeys((*self.taken.values(), *self.returned.values())))

    def run(self, journey: Callable[[], object]) -> Watch:
        """Watch a journey, which prints nothing."""
        quiet = io.StringIO()
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            sys.setprofile(self.see)
            try:
                journey()
            finally:
                sys.setprofile(None)
        return self

    def see(self, frame: FrameType, event: str, result: object) -> None:
        """What `sys.setprofile` calls."""
        code = frame.f_code
        if self.busy or event not in ("call", "return") or not code.co_filename.startswith(PRODUCT):
            return
        if code.co_name.startswith("<"):  # a comprehension is part of its function
            return
        function = (code.co_filename.removeprefix(PRODUCT), code.co_qualname)
        self.entered.add(function)
        seen = self.taken if event == "call" else self.returned
        self.looked[(event, *function)] += 1
        if function in seen or self.looked[(event, *function)] > CALLS:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [frame.f_locals[name] for name in names if name in frame.f_locals] if event == "call" else [result]
        self.busy = True  # properties of ours that are read are not part of the journey
        try:
            for holder in filter(self.holds, given):
                seen.setdefault(function, self.form(holder))
        finally:
            self.busy = False

    def holds(self, value: Any, depth: int = DEEPEST) -> bool:
        """Whether something holds a number or a text that is watched."""
        if isinstance(value, str):
            return any(text in value for text in self.texts)
        if isinstance(value, float):
            return value in self.numbers
        if depth == 0 or value is None or isinstance(value, bool | int | bytes | type):
            return False
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "f":
                return bool(np.isin(value, list(self.numbers)).any())
            return value.dtype.kind == "O" and any(self.holds(each, depth - 1) for each in value.ravel()[:MOST])
        if isinstance(value, pd.DataFrame | pd.Series):
            return any(self.holds(column, depth - 1) for column in _columns(value))
        return any(self.holds(member, depth - 1) for member in _members(value))

    def form(self, value: Any) -> str:
        """What holds the number, in words."""
        if isinstance(value, pd.DataFrame):
            return f"DataFrame({', '.join(map(str, value.columns[:2]))}, …)"
        if isinstance(value, list | tuple | dict | set) and not hasattr(value, "_fields"):
            inner = self.form(next(each for each in _members(value) if self.holds(each)))
            return inner if inner.startswith(("DataFrame", "several")) else f"several {inner}"
        return type(value).__name__


def _columns(table: pd.DataFrame | pd.Series) -> Iterator[np.ndarray]:
    for column in [table] if isinstance(table, pd.Series) else [table.iloc[:, at] for at in range(table.shape[1])]:
        if column.dtype.kind in "fO":
            yield column.to_numpy()


def _members(value: Any) -> Sequence[Any]:
    """What an object is made of, as far as it is looked into."""
    if isinstance(value, Mapping):
        return list(value.values())[:MOST]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)[:MOST]
    if is_dataclass(value):
        return [getattr(value, each.name, None) for each in fields(value)]
    if type(value).__module__.startswith("parley."):
        return list(getattr(value, "__dict__", {}).values())
    return []


def to_a_sentence(run: Path) -> Watch:
    """From a run file to the headline that `parley report` prints."""
    report = make_report([run])
    assert report.headline, f"{run} has no headline"
    line = report.headline.line or next(line for line in report.forests[0].lines if not line.secondary)
    verdicts = load_run(run).verdicts
    for name, values in line.units.items():
        if name in verdicts:
            verdicts = verdicts[verdicts[name].astype(str).isin(values)]
    verdicts = verdicts[verdicts["value"].notna()]
    rarest = verdicts["value"].value_counts(sort=False).idxmin()
    numbers = {float(rarest), line.estimate, *map(float, line.values.values())}
    texts = [report.headline.answer]
    if float(rarest).is_integer():  # such numbers are everywhere, so that the verdict is known by its unit
        texts.append(str(verdicts.loc[verdicts["value"] == rarest, "unit"].iloc[0]))
        numbers = {number for number in numbers if not number.is_integer()}
    watch = Watch(numbers, texts)
    screen = "parley.cli.first_screen"
    with patch(f"{screen}._in_words", lambda *_: ()), patch(f"{screen}._next_commands", lambda *_: ()):
        return watch.run(lambda: command_line(["report", str(run), "--no-files"]))


RUN = ("run", "malibu", "--model", "sim/judge?noise=0.5&item=0.4", "--design", "silent", "--limit", "2",
       "--phases", "1", "--identities", "gender", "--yardstick", "off", "--quiet", "--out")  # fmt: skip
DEBATES = ("run", "rldf", "--model", "sim/debate?base=6&round=-2&noise=0.7&item=0.5", "--design", "paper", "--topics",
           "9", "--rounds", "2", "--quiet", "--out", "run.sqlite")  # fmt: skip
EXPORT = ("export", "run.sqlite", "--to", "pairs", "--strategy", "all", "--splits", "0.6,0.2,0.2")
TRAIN = ("train", "all", "--set", "data=pairs", "--set", "min_pairs=5", "--dry-run")


def to_a_verdict() -> Watch:
    """From the shell to a stored verdict; the run is made twice, since its verdicts are not known before."""
    Watch().run(lambda: command_line([*RUN, "first.sqlite"]))
    with contextlib.closing(sqlite3.connect("first.sqlite")) as stored:
        unit, value = stored.execute("SELECT unit, value FROM verdicts ORDER BY unit").fetchone()
    watch = Watch(frozenset({float(value)}), (RUN[3], unit.split("/")[1]))
    return watch.run(lambda: command_line([*RUN, "second.sqlite"]))


def to_a_policy() -> Watch:
    """From a debate to the pairs that are trained on; made twice, since its statements are not known before."""

    def journey() -> None:
        for words in (DEBATES, EXPORT, TRAIN):
            command_line(list(words))

    Watch().run(journey)
    chosen = json.loads(Path("pairs/train.jsonl").read_text("utf-8").splitlines()[0])["chosen"][-1]["content"]
    Path("run.sqlite").unlink()
    shutil.rmtree("pairs")
    return Watch(texts=(chosen,)).run(journey)


def show(name: str, watch: Watch, *, listed: bool = False) -> None:
    entered = {file for file, _ in watch.entered}
    print(
        f"{name}: {len(watch.modules)} modules must be opened ({len(entered)} entered, {len(watch.entered)} "
        f"functions), {len(watch.forms)} forms"
    )
    if listed:
        for module in watch.modules:
            functions = {each for file, each in (*watch.taken, *watch.returned) if file == module}
            print(f"  {module:44} {', '.join(sorted(functions))}")
        for form in watch.forms:
            print(f"  form: {form[:110]}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.path", description="How far a result is from its beginning.")
    parser.add_argument("run", nargs="?", type=Path, help="a run file (default: the shipped example)")
    parser.add_argument("--verdict", action="store_true", help="from the shell to a stored verdict")
    parser.add_argument("--policy", action="store_true", help="from debates to the pairs of a policy")
    parser.add_argument("--list", action="store_true", help="name modules, functions and forms")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.run or not (chosen.verdict or chosen.policy):
            copy = Path(folder, "run.sqlite")
            shutil.copy(chosen.run or example_runs()["silent"], copy)
            show("run file to sentence", to_a_sentence(copy), listed=chosen.list)
            copy.unlink()
        with contextlib.chdir(folder):
            if chosen.verdict:
                show("shell to stored verdict", to_a_verdict(), listed=chosen.list)
            if chosen.policy:
                show("debates to a policy's pairs", to_a_policy(), listed=chosen.list)


if __name__ == "__main__":
    main()
