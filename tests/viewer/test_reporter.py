"""Reports in the background: what is waited for comes first, and a report that fails does not stop the others."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from parley.viewer import reporter
from parley.viewer.open_run import OpenRun
from parley.viewer.reporter import FAILED, Reporter


class Process:
    """Stands for the process: it answers when it is told to, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.answer = threading.Semaphore(0)
        self.stdin = self.stdout = self
        self.ended = False

    def write(self, text: str) -> None:
        self.given.append(Path(text.strip('[]"\n')).name)

    def flush(self) -> None: ...

    def readline(self) -> str:
        self.answer.acquire()
        return "" if self.ended else "done\n"

    def poll(self) -> int | None:
        return 1 if self.ended else None

    def kill(self) -> None:
        self.ended = True
        self.answer.release()


def wait_for(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def test_the_run_on_screen_comes_first_small_runs_before_large_ones_and_a_lost_report_is_named(
    tmp_path, build, monkeypatch
) -> None:
    process = Process()
    monkeypatch.setattr(reporter, "_start", lambda: process)
    paths = {name: tmp_path / name for name in ("now", "large", "small", "shown")}
    for (_, path), size in zip(paths.items(), (1, 300, 100, 200), strict=True):
        path.write_bytes(b"x" * size)
    reports = Reporter()
    reports.request(paths["now"], first=False)
    wait_for(lambda: process.given)
    for name in ("large", "small", "large"):
        reports.request(paths[name], first=False)
    reports.request(paths["shown"], first=True)
    for _ in range(4):
        process.answer.release()
    wait_for(lambda: len(process.given) == 4)
    assert process.given == ["now", "shown", "small", "large"]
    path = build.write_run(tmp_path / "a.sqlite", [build.pair_unit(build.pair(1, 0), [build.JudgeReply("One", "A")])])
    run = OpenRun(path)
    assert run.headline(reports, first=True)["pending"]
    wait_for(lambda: len(process.given) == 5)
    process.kill()
    wait_for(lambda: reports.failed)
    assert run.headline(reports, first=True)["unavailable"] == FAILED
    reports.close()
    run.close()
