"""A report as files: untrusted names, tables that other programs can read, the same bytes every time."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from parley.analysis.page.figures import dots, save, sheet
from parley.analysis.page.forest_figure import draw_forest
from parley.analysis.page.render import html, latex, markdown, write
from parley.analysis.page.report import Figure, Report, ReportContext, Table
from parley.analysis.say import format_cell, format_interval
from parley.judging.malibu import report as malibu
from tests.analysis.verdicts import study

MODEL = """<script>alert(1)</script>"'|$x_1$ & 100% #1 {a}~^ <!-- --> """ + "very-long-name-" * 20
# Two dollar signs would make mathematics of what lies between them, and a broken formula cannot be drawn.
LABELS = ('"><img src=x onerror=alert(2)>', "a|b & c_d", r"$\broken{$ ${price} 100%")
METRIC = r"$\metric{$"


@pytest.fixture(scope="module")
def report() -> Report:
    """Scores and preferences under names that contain code."""
    frame = study(LABELS, bases=4, judges=2, rounds=2, phases=(1, 2), metrics=(METRIC,), model=MODEL)
    run = {"file": "a<b>.sqlite", "seed": 3, "models": [MODEL], "versions": {"parley": "0.1"}, "cost": None}
    caution = "<script>alert(3)</script> is SIMULATED."
    return malibu.report(
        frame.assign(category="<b>kind</b>"),
        ReportContext(title=f"malibu · {MODEL}", draws=50, seed=11, runs=(run,), cautions=(caution,)),
    )


@pytest.fixture(scope="module")
def folder(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report as files, with every figure as SVG."""
    place = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("parley.analysis.page.render.FORMATS", ("svg",))
        assert write(report, place, figures="all") == place / "report.html"
    return place


class Page(HTMLParser):
    """What a browser makes of the page: its tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "report.html").read_text("utf-8"))


def test_untrusted_names_are_shown_as_text_and_the_page_loads_and_runs_nothing(page: Page) -> None:
    tags = {tag for tag, _ in page.tags}
    assert not {"script", "b", "link", "iframe", "object", "embed", "base", "form"} & tags
    assert "<script>alert(1)</script>" in page.text, "as text"
    assert LABELS[0] in page.text
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src" not in policy, "what default-src forbids stays forbidden"
    addresses = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert addresses
    assert all(value is not None and value.startswith("data:") for value in addresses)


def test_simulated_results_say_so_in_every_table_and_figure(folder: Path, report: Report, tmp_path: Path) -> None:
    for file in [*(folder / "tables").glob("*.md"), *(folder / "tables").glob("*.tex")]:
        assert "SIMULATED" in file.read_text("utf-8"), file.name
    drawing = draw_forest(report.forests[0], "single")
    save(drawing, tmp_path / "stamped", ["png"], stamp="SIMULATED")
    assert drawing.texts[-1].get_text() == "SIMULATED"


def test_writing_twice_gives_identical_bytes_in_every_format(report: Report, tmp_path: Path) -> None:
    begins = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    once, again = tmp_path / "once", tmp_path / "again"
    short = replace(report, forests=report.forests[:1], figures=report.figures[:1])
    for folder in (once, again):
        write(short, folder, figures="all")
    write(short, tmp_path / "main")
    files = sorted(path.relative_to(once) for path in once.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert [name for name in files if (once / name).read_bytes() != (again / name).read_bytes()] == []
    drawn = {file.name: file.read_bytes() for file in (once / "figures").iterdir()}
    assert len(drawn) == 2 * len(begins)
    assert all(drawn[f"forest-differences-score.{kind}"].startswith(magic) for kind, magic in begins.items())
    assert [file.name for file in (tmp_path / "main" / "figures").iterdir()] == ["forest-differences-score.svg"]


def test_csv_keeps_every_number(folder: Path, report: Report) -> None:
    for table in (table for table in report.tables if len(table.frame.columns)):
        text = {name: str for name in table.frame if table.frame[name].dtype in (object, "str", "string")}
        read = pd.read_csv(folder / "tables" / f"{table.name}.csv", dtype=text)
        for name in table.frame:
            ours, theirs = table.frame[name], read[name]
            if name in text:
                assert theirs.fillna("").tolist() == ours.fillna("").astype(str).tolist(), (table.name, name)
            else:
                assert theirs.to_numpy() == pytest.approx(ours.to_numpy(), rel=1e-14, abs=0, nan_ok=True)


def split(line: str, mark: str) -> list[str]:
    """A line's cells, as a reader finds them: a mark after a backslash is text, and so is a backslash after one."""
    return re.findall(rf"(?:^|(?<={re.escape(mark)}))((?:\\.|[^\\{re.escape(mark)}])*)", line)


CODE = ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "<!-- x")


@pytest.mark.parametrize("name", [MODEL, *LABELS, *CODE, "a\nb", "a\\|b", "", "plain"])
def test_markdown_has_equally_many_cells_in_every_row_and_shows_code_as_text(name: str) -> None:
    table = Table("t", "Title", pd.DataFrame({"model": [name, "x"], "p|q": [0.5, np.nan]}), note=f"Of {name}")
    text = markdown(table, name)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 4
    assert {len(split(line, "|")) for line in lines} == {4}, "two cells between three marks"
    assert lines[3] == "| x | – |"
    assert text.startswith("**Title**\n\n")
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert not re.search(r"<(script|img|!)", rendered)
    assert 'javascript:alert(1)"' not in rendered.partition("</table>")[0]
    assert name not in CODE or rendered.count(escape(name.partition("(")[0], quote=False)) == 3


@pytest.mark.parametrize("name", [MODEL, *LABELS, r"\input{/etc/passwd}", "x² ± α – χ", "plain"])
def test_latex_escapes_all_special_characters(name: str) -> None:
    frame = pd.DataFrame({"model_name": [name, "x"], "p": [0.5, np.nan]})
    lines = latex(Table("t", f"Title\n{name}", frame)).splitlines()
    assert lines[0].startswith("% Title ")
    assert lines[1:3] == [r"\begin{tabular}{lr}", r"\toprule"]
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert lines[-3] == r"x & -- \\"
    rows = [line for line in lines[3:-2] if line != r"\midrule"]
    assert len(rows) == 3
    for row in rows:
        assert row.endswith(r" \\")
        words = r"\\text(?:asciitilde|asciicircum|backslash|less|greater|bar|quotedbl)\{\}"
        known = words + r"|\$\\?(?:chi|alpha|kappa|pm|\^2|-)\$|\\[&%$#_{}]"
        bare = re.sub(known, "", row.removesuffix(r"\\"))
        assert bare.count("&") == 1, "one mark between two cells"
        assert not set(bare) & set("%$#_{}~^<>\\"), bare


def test_an_unbounded_interval_is_shown_as_such_everywhere() -> None:
    table = Table("t", "Title", pd.DataFrame({"low": [-np.inf], "high": [np.inf], "p": [np.nan]}))
    assert "| −∞ | ∞ | – |" in markdown(table)
    assert r"$-$$\infty$ & $\infty$ & -- \\" in latex(table)
    report = Report("Title", tables=(table,))
    assert '<td class="number">−∞</td>' in html(report, {})
    assert report.data()["t"] == [{"low": None, "high": None, "p": None}]
    assert (format_interval(-np.inf, np.inf), format_interval(-0.0, 0.25), format_interval(np.nan, 1)) == (
        "−∞ to ∞",
        "0.00 to 0.25",
        "",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.nan, "–"),
        (None, "–"),
        ("", "–"),
        (np.inf, "∞"),
        (np.float64(-np.inf), "−∞"),
        (0.0, "0.00"),
        (0.0004, "0.0004"),
        (-0.0004, "-0.0004"),
        (7.126, "7.13"),
        (np.int64(12), "12"),
        (np.bool_(True), "yes"),
        ("x", "x"),
    ],
)
def test_a_cell_is_formatted_for_reading(value: Any, text: str) -> None:
    assert format_cell(value) == text


def test_an_unbounded_interval_is_an_arrow_that_moves_no_limit(tmp_path: Path) -> None:
    ends = [([0.0, -math.inf, math.nan], [1.0, math.inf, math.nan]), ([0.0, 0.25, 0.1], [1.0, 0.75, 0.9])]
    limits = []
    for low, high in ends:
        figure, axes = sheet(4, 2)
        dots(axes[0, 0], ["a", "b", "c"], *(pd.Series(column) for column in ([0.5] * 3, low, high)), ["k"] * 3)
        limits.append(axes[0, 0].get_xlim())
        drawn = save(figure, tmp_path / "figure")
        assert all(path.stat().st_size > 0 for path in drawn)
        arrows = len(axes[0, 0].texts)
        assert arrows == (2 if -math.inf in low else 0)
    assert limits[0] == limits[1]


def test_an_unfinished_report_has_no_page_and_an_empty_one_a_valid_page(tmp_path: Path) -> None:
    def fails() -> Any:
        raise MemoryError

    broken = Report("r", tables=(Table("t", "T", pd.DataFrame({"a": [1]})),), figures=(Figure("f", "c", "t", fails),))
    with pytest.raises(MemoryError):
        write(broken, tmp_path)
    assert not (tmp_path / "report.html").exists()
    assert "<h1>Nothing</h1>" in html(Report("Nothing"), {})


def test_a_report_in_the_terminal_needs_no_matplotlib() -> None:
    code = "import sys, parley.reports.making, parley.judging.malibu.report; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
