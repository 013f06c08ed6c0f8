"""A private copy of the checkout, in which tests run against a module with a fault; and which tests run which lines.

Every run is a fork of a process that has loaded the large libraries, so that a fault costs seconds. Processes that a
test starts use the copy too.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import hashlib
import importlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import lines
from tests.mutants.lines import LINES, as_bits, trace

LARGE = (
    *("aiohttp", "autogen_agentchat.agents", "autogen_agentchat.teams", "autogen_core.models", "hypothesis.strategies"),
    *("pydantic", "rich.console", "pandas", "scipy.stats", "statsmodels.api"),
)
MEMORY_BYTES = 12 << 30
STARTUP_SECONDS, MOST_SECONDS = 60.0, 300.0


@dataclass(frozen=True, slots=True)
class Reach:
    """One test: how long it takes, and which lines of which files it runs, itself or on its file's import, as bits."""

    seconds: float
    lines: Mapping[str, int]
    on_import: Mapping[str, int]


@dataclass(slots=True, eq=False)  # pytest puts plugins into sets
class _Plugin:
    """For pytest: runs some tests in a given order, or records what each runs, with what its file runs on import."""

    wanted: Sequence[str] | None = None
    record: Callable[[str, float], None] = lambda name, seconds: None
    failed: str = ""
    _bad: set[str] = field(default_factory=set)
    _began: float = 0.0
    _file: str = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.wanted is not None:
            place = {name: number for number, name in enumerate(self.wanted)}
            items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if isinstance(collector, pytest.File):
            self._begin(collector.nodeid)

    def _begin(self, file: str) -> None:
        if file != self._file:
            self._file = file
            _forget()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid
        if "::" not in report.nodeid:
            self.record(report.nodeid, 0.0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._begin(nodeid.partition("::")[0])
        self._began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._bad.add(report.nodeid)
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if nodeid not in self._bad:
            self.record(nodeid, time.monotonic() - self._began)


def _forget() -> None:
    """Clears the caches of functions, so that each file of tests runs what it needs, though an earlier one did."""
    for module in list(sys.modules.values()):
        if str(getattr(module, "__file__", "")).startswith(os.getcwd()):
            classes = [value for value in vars(module).values() if isinstance(value, type)]
            for value in (value for owner in (module, *classes) for value in vars(owner).values()):
                if clear := getattr(getattr(value, "__func__", value), "cache_clear", None):
                    clear()


def load_libraries() -> None:
    """Loads what most tests need, for the forks of this process."""
    for library in LARGE:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["--markers", "--noconftest", "-c", os.devnull])  # loads its own modules and plugins


class Bench:
    """The copy, and the tests' reach, which is kept in `build/mutants` for the next time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        self.tree = self._folder / "tree"
        self._lines = self._folder / "lines"
        self._cache = root / "build" / "mutants"
        self._alone: dict[str, bool] = {}
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
        self._sources = [name for name in names if name.endswith(".py") and not name.startswith("tests/")]
        self._sources += [name for name in names if name == "tests/golden/cases.toml"]  # its tests are made from it
        for name in filter(None, names):
            if os.path.lexists(root / name):
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.tree / name, follow_symlinks=False)
        shutil.copy2(str(lines.__file__), self.tree / "sitecustomize.py")

    def reach(self, files: Sequence[str], sources: Sequence[str]) -> dict[str, Reach]:
        """The tests that pass, with the lines that they run."""
        self._cache.mkdir(parents=True, exist_ok=True)
        versions = {source: _digest(self.tree / source) for source in self._sources}
        needed = {source: versions[source] for source in sources}
        kept = {file: self._cache / f"{_digest_of(file)}.json.gz" for file in files}
        known: dict[str, Any] = {}
        for file, place in kept.items():
            if place.exists():
                entry = json.loads(gzip.decompress(place.read_bytes()))
                if entry["file"] == _digest(self.tree / file) and needed.items() <= entry["sources"].items():
                    known[file] = entry
        if stale := [file for file in files if file not in known]:
            print(f"tracing {len(stale)} files of tests…", flush=True)
            traced: dict[str, dict[str, Any]] = {file: {} for file in stale}
            for line in self._trace(stale):
                name, seconds, ran = json.loads(line)
                file = name.partition("::")[0]
                if file in traced:
                    traced[file][name] = [seconds, ran]
            for file, tests in traced.items():
                known[file] = {"file": _digest(self.tree / file), "sources": versions, "tests": tests}
                kept[file].write_bytes(gzip.compress(json.dumps(known[file]).encode(), 5))
        reach = {}
        for file, entry in known.items():
            on_import = _from_hex(entry["tests"].pop(file, [0.0, {}])[1])
            for name, (seconds, ran) in entry["tests"].items():
                reach[name] = Reach(seconds, _from_hex(ran), on_import)
        return reach

    def _trace(self, files: Sequence[str]) -> list[str]:
        written = self._folder / "reach.jsonl"
        written.write_text("")
        self._lines.mkdir(exist_ok=True)
        (self._lines / "sources").write_text("\n".join(self._sources))
        child = self._fork(lambda: self._record(files, written), 600.0 + 120.0 * len(files))
        if child is None:
            print("tracing took too long: the tests that were not reached are not used", flush=True)
        recorded = written.read_text().splitlines()
        if not recorded:
            sys.exit(f"mutants: no test passed in the copy:\n{(self._folder / 'log.txt').read_text()[-2000:]}{child}")
        return recorded

    def _record(self, files: Sequence[str], written: Path) -> str:
        os.environ[LINES] = str(self._lines)
        ran = trace()

        def record(name: str, seconds: float) -> None:
            touched = {source: as_bits(numbers) for source, numbers in ran.items() if numbers}
            for part in self._lines.glob("*.json"):
                for source, bits in json.loads(part.read_text()).items():
                    touched[source] = touched.get(source, 0) | int(bits, 16)
                part.unlink()
            with written.open("a") as file:
                hexed = {source: f"{bits:x}" for source, bits in touched.items()}
                file.write(json.dumps([name, seconds, hexed]) + "\n")
            for numbers in ran.values():
                numbers.clear()
            sys.settrace(threading.gettrace())  # Python takes a tracer out if it fails, as at the limit of recursion

        self._pytest(files, _Plugin(record=record))
        return ""

    def try_fault(self, path: str, source: str, tests: Mapping[str, float]) -> str | None:
        """The test that fails if the module is this source; empty if none does, None if they do not end."""
        left = dict(tests)
        while left:
            failed = self._with(path, source, left)
            if not failed or not self._fails_anyway(failed, tests):
                return failed
            left.pop(failed, None)
        return ""

    def _fails_anyway(self, test: str, tests: Mapping[str, float]) -> bool:
        """Whether a test also fails alone, without a fault: because of the machine, or the tests that ran before it."""
        if test in tests and test not in self._alone:
            self._alone[test] = self._run({test: tests[test]}) != ""
        return self._alone.get(test, False)

    def _with(self, path: str, source: str, tests: Mapping[str, float]) -> str | None:
        place = (self.tree / path).resolve()
        original, times = place.read_bytes(), place.stat()
        place.write_text(source, "utf-8")
        # Compiled modules are recognised by the second of their source's last change.
        os.utime(place, (times.st_atime, times.st_mtime + 1000 + time.monotonic()))
        try:
            return self._run(tests)
        finally:
            place.write_bytes(original)
            os.utime(place, (times.st_atime, times.st_mtime))

    def _run(self, tests: Mapping[str, float]) -> str | None:
        files = list(dict.fromkeys(name.partition("::")[0] for name in tests))

        def run() -> str:
            plugin = _Plugin(wanted=list(tests))
            status = self._pytest([*files, "-x"], plugin)
            return plugin.failed or ("" if status in (0, 5) else f"pytest ended with {int(status)}")  # 5: no tests

        return self._fork(run, min(MOST_SECONDS, STARTUP_SECONDS + 10 * sum(tests.values())))

    def _pytest(self, words: Sequence[str], plugin: _Plugin) -> int | pytest.ExitCode:
        quiet = ("--tb=no", "-p", "no:cacheprovider", "-o", "addopts=", "-m", "not nightly")
        place = ("--rootdir", str(self.tree), "--basetemp", str(self._folder / "tmp"), "--import-mode=importlib")
        return pytest.main([*words, *quiet, *place, "--hypothesis-seed=0"], plugins=[plugin])

    def _fork(self, work: Callable[[], str], seconds: float) -> str | None:
        """What the work returns in a process of its own; None if it took longer."""
        answer = self._folder / "answer"
        answer.unlink(missing_ok=True)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                self._move_in()
                answer.write_text(work())
            except BaseException as error:
                answer.write_text(f"the tests could not be run: {error!r}")
            finally:
                os._exit(0)
        ends = time.monotonic() + seconds
        try:
            while os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() < ends:
                time.sleep(0.02)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # also what tests have left behind
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
        return answer.read_text() if answer.exists() else None if time.monotonic() > ends else "the process died"

    def _move_in(self) -> None:
        """Makes this process one that was started in the copy."""
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with open(self._folder / "log.txt", "w") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))  # _AS would stop browsers
        os.chdir(self.tree)
        sys.path[:] = [str(self.tree), *(path for path in sys.path if path and Path(path).resolve() != self.root)]
        for name in [name for name in sys.modules if name.partition(".")[0] in ("parley", "tests")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        own = {"PYTHONPATH": str(self.tree)}
        os.environ |= own
        start = subprocess.Popen.__init__

        def started(popen: Any, *words: Any, env: Mapping[str, str] | None = None, **named: Any) -> None:
            """Tests clear PYTHONPATH, and their processes would not use the copy."""
            traced = {LINES: str(self._lines)} if LINES in os.environ else {}
            start(popen, *words, env={**(os.environ if env is None else env), **own, **traced}, **named)

        subprocess.Popen.__init__ = started  # type: ignore[method-assign,assignment]


def _from_hex(ran: Mapping[str, str]) -> dict[str, int]:
    return {source: int(bits, 16) for source, bits in ran.items()}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]
