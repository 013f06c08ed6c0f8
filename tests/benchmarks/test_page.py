"""What the page shows: medians, ratios, and no number where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, report
from benchmarks.measure import QUICK, Bench
from benchmarks.peers.systems import SYSTEMS
from benchmarks.server import server
from benchmarks.viewer import write_run
from parley.runs import RunFile


def cpu(system: str, seconds: float, **more: Any) -> dict[str, Any]:
    figures = {"wall": 1.0, "cpu": seconds, "messages": 1000, "log_bytes": 0, "gzip_bytes": 0, "request_bytes": 2000.0}
    return {"system": system, "way": "http", **figures, **more}


def row(lines: list[str], title: str) -> list[str]:
    line = next(line for line in lines if line.startswith(f"| {title} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_cell_is_the_median_of_its_repeats_and_ratios_are_to_parley() -> None:
    figures = [cpu("parley", 0.5), cpu("parley", 0.7), cpu("parley", 0.6), cpu("ag2", 12.0)]

    lines = page.cpu_section(figures)

    assert row(lines, "Parley, everything recorded")[3:5] == ["0.600", "1.00"]
    assert row(lines, "AG2")[3:5] == ["12.000", "20.00"]


def test_a_system_that_was_not_run_or_failed_has_no_number() -> None:
    figures = [
        cpu("parley", 0.5),
        {"system": "ag2", "way": "http", "not_run": "not installed"},
        {"system": "inspect", "way": "http", "error": "not done after 75 s"},
    ]

    lines = page.cpu_section(figures)

    assert row(lines, "AG2")[3:5] == ["not run", "–"]
    assert row(lines, "Inspect AI with its log")[3:5] == ["failed", "–"]
    assert page.failures(figures) == ["- Inspect AI with its log (http): `not done after 75 s`"]


def test_the_page_says_where_a_peer_is_ahead() -> None:
    def shares(system: str, efficiency: float, peak_mb: float) -> dict[str, Any]:
        return {
            "system": system,
            "latency": 200,
            "conversations": 64,
            "wall": 1.0,
            "efficiency": efficiency,
            "peak_mb": peak_mb,
        }

    grid = [shares("raw", 0.99, 36), shares("parley", 0.9, 70), shares("langgraph", 0.95, 60), shares("ag2", 0.1, 90)]
    costs = [cpu("parley", 0.5), cpu("langgraph", 0.4)]

    assert page.behind(costs, grid, []) == [
        "- CPU ms per message over HTTP: LangGraph 0.400, Parley 0.500",
        "- share of the ideal at 200 ms and 64 concurrent: LangGraph 0.950, Parley 0.900",
        "- peak MB at 200 ms and 64 concurrent: LangGraph 60, Parley 70",
    ]


@pytest.mark.parametrize(
    "system", [system for system in SYSTEMS if not system.environment], ids=lambda system: system.name
)
def test_raw_aiohttp_and_parley_run_the_same_conversations_on_the_same_server(system: Any, tmp_path: Path) -> None:
    with server() as url:
        figure = Bench(QUICK).cell(system, "--conversations", 6, "--rounds", 1, "--latency", 1, url=url)

    assert figure["messages"] == 24
    assert figure["requests"] == 24 + 16, "including the four warm-up conversations"
    assert figure["request_bytes"] == pytest.approx(1400, rel=0.1)
    assert (figure["log_bytes"] > 0) == (system.name == "parley")
    assert figure["gzip_bytes"] <= figure["log_bytes"] / 3


def test_the_viewers_run_file_is_like_that_of_a_run(tmp_path: Path) -> None:
    """A new column in the run file's tables once made the benchmark measure an empty run."""
    write_run(tmp_path / "a.sqlite", 500)
    with RunFile.open(tmp_path / "a.sqlite") as file:
        assert file.counts() == {"planned": 0, "done": 49, "failed": 1}
        assert file.rows("SELECT count(*) FROM messages")[1] == [(500,)]
        assert file.spent()[0] == 400


@pytest.mark.parametrize(("design", "verdicts", "differences"), [("paper", 224, 3 * 5), ("silent", 200, 3)])
def test_the_reports_run_file_is_like_that_of_a_run(
    design: str, verdicts: int, differences: int, tmp_path: Path
) -> None:
    """A facet that debates no longer have once ended the benchmark."""
    report.write_run(tmp_path / "a.sqlite", 200, 3, 0, design)
    figures = report.time_report(tmp_path / "a.sqlite", 20, 0)
    assert (figures["rows"], figures["differences"]) == (verdicts, differences)
